#!/bin/sh
# The broker gets another key while a worker works: who was told before comes back with it, and
# nothing is lost; who was not is outside.
. "$(dirname "$0")/lib.sh"

config="$XDG_CONFIG_HOME/taskmq"
farm="$config/profiles/farm.conf"
mkdir -m 700 .taskmq
run 0 taskctl key new
cat >.taskmq/access <<END
me        uid:$(id -u)   operator
render-7  key:$(cat out)      worker(default/*)
END
chmod 600 .taskmq/access
broker_options="--listen tcp://127.0.0.1:0?curve"
start_broker
uri=$(grep '^tcp:' .taskmq/endpoint)
plain=${uri%%\?*}
server=${uri##*=}
run 0 taskctl profile add farm -e "$plain" --server-key "$server"

run 2 taskctl server-key rotate
err_has 'say when: --in DURATION, or --now'
run 4 taskctl -e "$uri" server-key rotate --in 1h
id=$(taskctl submit render) || fail "submit"
# shellcheck disable=SC2016 # for the worker's shell
spawn worker taskctl --profile farm work render -- \
    sh -c 'echo >started; until [ -e go ]; do sleep 0.05; done; echo done'
eventually test -e started

# It is told, and kept for the next start; asked again, only the time changes.
run 0 taskctl server-key rotate --in 1h
next=$(cat out)
[ "$next" != "$server" ] || fail "the next key is the present one"
eventually grep -qx "next_server_key = $next" "$farm"
run 0 taskctl server-key rotate --in 2h
out "$next"
[ "$(stat -c %a .taskmq/server.key.next)" = 600 ] || fail "the next key can be read"
run 0 taskctl server-key show
out "$server"

# Its time comes. The worker goes on where it was.
run 0 taskctl server-key rotate --now
out "$next"
eventually grep -qx "server_key = $next" "$farm"
eventually grep -q "server_key=$next\$" .taskmq/endpoint
[ "$(grep '^tcp:' .taskmq/endpoint)" = "$plain?server_key=$next" ] || fail "another address"
[ ! -e .taskmq/server.key.next ] || fail "the key that was to follow is still kept"
echo >go
run 0 taskctl wait "$id"
run 0 taskctl result "$id"
out_has '^done$'
run 0 taskctl -o json get "$id"
json attempt 1
json failures 0
run 0 taskctl --profile farm ping
run 3 taskctl -e "$uri" ping
err_has "closed during the handshake: server_key is not this broker's, or"
signal worker TERM
ended worker 0

# An order outlives the broker, and so does what came of it.
run 0 taskctl server-key rotate --in 1h
third=$(cat out)
kill_broker
rm .taskmq/endpoint
start_broker
run 0 taskctl server-key show
out "$next"
run 0 taskctl server-key rotate --now
out "$third"
eventually grep -q "server_key=$third\$" .taskmq/endpoint
stop_broker
rm .taskmq/endpoint
start_broker
run 0 taskctl server-key show
out "$third"
run 0 taskctl -e "$(grep '^tcp:' .taskmq/endpoint)" ping
stop_broker
if grep -q 'tmqsk_' broker.err broker.out; then
    fail "the log shows a secret key"
fi
run 0 grep -c '"key.rotated"' .taskmq/audit.jsonl
