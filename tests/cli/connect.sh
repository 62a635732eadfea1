#!/bin/sh
# Where the broker is looked for, and what is said when it is not there.
# shellcheck disable=SC2016 # the shells of the programs expand these
. "$(dirname "$0")/lib.sh"

run 3 taskctl list
err_has '^taskctl: no broker is known'
err_has '^hint: start .taskmqd.'
run 0 taskctl -e tcp://127.0.0.1:1 profile add far
run 3 taskctl list
err_has '^hint: a saved connection is taken when it is named: --profile far$'
run 0 taskctl profile remove far

# Several: each is named with its reason, each once, and there are not more than 8.
run 3 taskctl --timeout 300ms -e tcp://127.0.0.1:1 -e ipc:///nonexistent/x -e tcp://127.0.0.1:1 list
err "taskctl: cannot reach tcp://127.0.0.1:1: nobody listens there; ipc:///nonexistent/x: there is no such socket
hint: a take-over may last longer: allow more time; 'taskctl doctor' looks at each endpoint"
run 0 taskctl -e tcp://127.0.0.1:1 -e ipc:///nonexistent/x -e tcp://127.0.0.1:1 profile add pair
run 0 taskctl profile show pair
out 'endpoint = tcp://127.0.0.1:1
endpoint = ipc:///nonexistent/x'
run 0 taskctl profile list
out_has '^pair +tcp://127.0.0.1:1 ipc:///nonexistent/x +'
eight=$(seq -s ' ' -f 'ipc:///nonexistent/%g' 8)
run 2 env TASKMQ_ENDPOINT="$eight ipc:///nonexistent/9" taskctl list
err_has "^taskctl: TASKMQ_ENDPOINT: endpoint: a client has at most 8 different ones, and 'ipc:///nonexistent/9' is one more$"
# shellcheck disable=SC2086 # they are words
printf 'endpoint = %s\n' $eight ipc:///nonexistent/9 >"$XDG_CONFIG_HOME/taskmq/profiles/pair.conf"
run 2 taskctl --profile pair list
err_has "profiles/pair.conf: endpoint: a client has at most 8 different ones"
run 3 env TASKMQ_ENDPOINT="$eight $eight" taskctl --timeout 1s list
err_has 'ipc:///nonexistent/1: there is no such socket; '
err_lacks 'and [0-9]+ more'
run 0 taskctl profile remove pair

# Where it is certain that nobody is there, nobody waits: these have a minute (lib.sh), and the test
# has not.
mkdir .taskmq
run 3 taskctl list
err "taskctl: cannot reach $room/.taskmq: no broker is running there
hint: taskmqd --data $room/.taskmq"
run 3 taskctl -e ipc:///nonexistent/x list
err 'taskctl: cannot reach ipc:///nonexistent/x: there is no such socket
hint: start '\''taskmqd'\'', or look at the path'
run 3 taskctl -o json -e ipc:///nonexistent/x list
err '{"error":{"code":"UNREACHABLE","message":"cannot reach ipc:///nonexistent/x: there is no such socket","retriable":true,"hint":"start '\''taskmqd'\'', or look at the path","task_id":null}}'
run 3 taskctl -e tcp://127.0.0.1:1 list
err_has 'cannot reach tcp://127.0.0.1:1: nobody listens there$'

# One that is starting holds its lock already: it is waited for.
run 3 flock .taskmq/taskmq.lock taskctl --timeout 300ms list
err_has 'its broker is starting'
rm -r .taskmq

# A worker waits in any case: its broker may be started yet.
run 3 taskctl --timeout 300ms -e ipc:///nonexistent/x work q -- true
spawn worker taskctl --timeout 60s work q --max-tasks 1 -- true

# The endpoint file, from any directory below.
start_broker
mkdir -p a/b
cd a/b || exit 1
run 0 taskctl ping
out_has '^taskmqd .* at ipc://.* answers in [0-9.]+ ms$'
cd "$room" || exit 1
run 0 taskctl submit q
ended worker 0
uri=$(head -n 1 .taskmq/endpoint)

# The environment wins over the file, the flag over the environment, and several are tried.
run 3 taskctl --timeout 300ms -e 'tcp://nobody.invalid:5560?insecure' ping
err_has '^hint: (look at the name|is taskmqd running there\? look at host, port and firewall)'
run 3 env TASKMQ_ENDPOINT=ipc:///nonexistent/x taskctl ping
run 0 env TASKMQ_ENDPOINT=ipc:///nonexistent/x taskctl -e "$uri" ping
run 0 env TASKMQ_ENDPOINT="ipc:///nonexistent/x $uri" taskctl ping
run 0 taskctl -e ipc:///nonexistent/x -e "$uri" ping
run 3 taskctl --timeout 300ms -e ipc:///nonexistent/x -e tcp://127.0.0.1:1 ping
err_has 'cannot reach ipc:///nonexistent/x: there is no such socket; tcp://127.0.0.1:1: nobody listens'

# With several endpoints a request may take as long as a take-over, unless somebody says otherwise; and
# a program that a worker runs knows all of them, too.
run 0 env -u TASKMQ_TIMEOUT taskctl -v -e ipc:///nonexistent/x -e "$uri" ping
err_has 'of 2 endpoints another one may be taking over: --timeout is 15 s$'
run 0 env -u TASKMQ_TIMEOUT taskctl -v --timeout 20s -e ipc:///nonexistent/x -e "$uri" ping
err_lacks 'taking over'
run 0 env -u TASKMQ_TIMEOUT taskctl -v -e "$uri" ping
err_lacks 'taking over'
submit where
run 0 env TASKMQ_ENDPOINT="ipc:///nonexistent/x $uri" \
    taskctl work where --max-tasks 1 -- sh -c 'printf %s "$TASKMQ_ENDPOINT"'
run 0 taskctl result "$id"
[ "$(cat out)" = "ipc:///nonexistent/x $uri" ] || fail "a task knows $(cat out)"
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
out_has '^QUEUE +READY +SCHEDULED +BLOCKED +WORKING +ASKING +OLDEST +FAILED$'
out_has '^q +1 +0 +0 +0 +0 +[0-9.]+m?s +0$'
run 0 taskctl -o json stats
json ready 1
run 0 taskctl stats -v
out_has '^submitted +[0-9]+ +tasks accepted$'
out_has '^overloads +0 +submissions refused .*; bad: above 0: '
out_lacks 'not known to this taskctl'

# A broker that does not answer is not a broker that is gone: nothing was done, or perhaps it was.
kill -STOP "$broker_pid"
run 3 taskctl --timeout 300ms ping
kill -CONT "$broker_pid"
eventually taskctl ping
stop_broker
run 3 taskctl --timeout 300ms ping
