#!/bin/sh
# Where the broker is looked for, and what is said when it is not there.
. "$(dirname "$0")/lib.sh"

run 3 taskctl list
err_has '^taskctl: no broker is known'
err_has '^hint: start .taskmqd.'
mkdir -m 700 .taskmq
run 3 taskctl list
err_has "^taskctl: no broker is running for .*/\.taskmq$"

# A directory that somebody else may have planted is not read.
echo "ipc:///nonexistent/planted" >.taskmq/endpoint
chmod 777 .taskmq
run 3 taskctl list
err_has "^taskctl: others may write in .*/\.taskmq$"
err_has '^hint: chmod go-w '
chmod 700 .taskmq
if chown 65534 .taskmq 2>/dev/null; then
    run 3 taskctl list
    err_has "^taskctl: .*/\.taskmq belongs to uid 65534, not to you$"
    err_has '^hint: say -e URI'
    run 3 taskctl submit q --data secret
    err_has "belongs to uid 65534"
fi
rm -r .taskmq

run 3 taskctl --timeout 300ms -e ipc:///nonexistent/x list
err 'taskctl: cannot reach ipc:///nonexistent/x: no answer in 300ms
hint: is taskmqd running?'
run 3 taskctl -o json --timeout 300ms -e ipc:///nonexistent/x list
err '{"error":{"code":"UNREACHABLE","message":"cannot reach ipc:///nonexistent/x: no answer in 300ms","retriable":true,"hint":"is taskmqd running?","task_id":null}}'
run 3 taskctl --timeout 300ms -e ipc:///nonexistent/x work q -- true

# The endpoint file, from any directory below.
start_broker
mkdir -p a/b
cd a/b || exit 1
run 0 taskctl ping
out_has '^taskmqd .* at ipc://.* answers in [0-9.]+ ms$'
cd "$room" || exit 1
uri=$(head -n 1 .taskmq/endpoint)

# The environment wins over the file, the flag over the environment, and several are tried.
run 3 env TASKMQ_ENDPOINT=ipc:///nonexistent/x TASKMQ_TIMEOUT=300ms taskctl ping
run 0 env TASKMQ_ENDPOINT=ipc:///nonexistent/x taskctl -e "$uri" ping
run 0 env TASKMQ_ENDPOINT="ipc:///nonexistent/x $uri" taskctl ping
run 0 taskctl -e ipc:///nonexistent/x -e "$uri" ping
cd / || exit 1
(cd "$room" && run 0 env TASKMQ_ENDPOINT="$uri" taskctl ping) || exit 1
cd "$room" || exit 1

run 0 taskctl -v ping
err_has "^taskctl: connected to $uri as "
run 0 taskctl -o json ping
json namespace '"default"'
json epoch 1

run 0 taskctl stats
out_has '^COUNTER +VALUE$'
run 0 taskctl submit q
run 0 taskctl stats
out_has '^QUEUE +READY +SCHEDULED +WORKING +INPUT REQUIRED$'
out_has '^q +1 +0 +0 +0$'
run 0 taskctl -o json stats
json ready 1

# A broker that does not answer is not a broker that is gone: nothing was done, or perhaps it was.
kill -STOP "$broker_pid"
run 3 taskctl --timeout 300ms ping
kill -CONT "$broker_pid"
eventually taskctl ping
stop_broker
run 3 taskctl --timeout 300ms ping
