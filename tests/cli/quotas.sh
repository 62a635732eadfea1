#!/bin/sh
# A principal with quotas: what goes on when the broker says when, and what is told when nothing
# helps.
. "$(dirname "$0")/lib.sh"
mkdir -m 700 .taskmq
printf 'bob local client(default) reads=20/s\n' >.taskmq/access
broker_options='--listen tcp://127.0.0.1:0'
start_broker
bob=$(sed -n 's/^\(tcp:[^ ]*\).*/\1/p' .taskmq/endpoint)
[ -n "$bob" ] || fail 'no tcp listener'

# An export is several reads a task: it waits as long as the broker says, and is whole.
i=0
while [ $i -lt 60 ]; do
    echo '{"queue":"q","data":"x"}'
    i=$((i + 1))
done >lines
run 0 taskctl -e "$bob" submit --batch lines
cp out ids
run 0 taskctl -e "$bob" export
out_lines 60
# shellcheck disable=SC2046 # ids are words
run 0 taskctl -e "$bob" -o jsonl get --payload --attempts --events $(cat ids)
out_lines 60

# What is not allowed is counted as what it is, and it is said once what would be needed.
run 0 taskctl -e "$bob" cancel --queue q --yes
run 4 taskctl -e "$bob" purge --queue q --yes
err_has '^0 of 60 purged$'
[ "$(grep -c '^hint: it needs the role admin; taskctl whoami shows yours$' err)" -eq 1 ] ||
    fail 'the hint is not there once'

# Nobody waits for longer than --timeout. It has to do for the connection, too.
printf 'bob local client(default) reads=1/s\n' >.taskmq/access
run 0 taskctl reload
# shellcheck disable=SC2317 # eventually calls it
is_bounded ()
{
    taskctl --timeout 500ms -e "$bob" export >out 2>err
    [ $? -eq 10 ] && grep -q 'reads a second of bob: 1,' err
}
eventually is_bounded
stop_broker
