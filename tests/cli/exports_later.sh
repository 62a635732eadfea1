#!/bin/sh
# The exports and the index do not hold up a start: they begin behind READY, and go on from what is
# written after a kill -9 in the middle of that. A broker that takes a database over is in this state.
. "$(dirname "$0")/lib.sh"
tasks=20000

start_broker
awk -v tasks=$tasks 'BEGIN { for (i = 0; i < tasks; i++) print "line " i }' >lines
run 0 taskctl submit mail --lines lines
sort out >want
stop_broker

# Its directory lacks all exports, as that of a standby may.
rm -f .taskmq/tasks.jsonl .taskmq/events*.jsonl* .taskmq/search.db*

# Not start_broker, whose first question the broker answers later than that line.
start_and_kill ()
{
    : >broker.err
    rm -f .taskmq/endpoint
    taskmqd --data "$room/.taskmq" >>broker.out 2>>broker.err &
    broker_pid=$!
    until grep -q 'id=READY ' broker.err; do
        kill -0 "$broker_pid" || fail "taskmqd has ended"
        sleep 0.01
    done
    until [ "$(wc -l <.taskmq/events.jsonl)" -ge "$1" ]; do
        kill -0 "$broker_pid" || fail "taskmqd has ended"
    done
    kill_broker
}

start_and_kill 0
in_order=$(sed -n 's/.* id=\(READY\|SEARCH-BUILDS\) .*/\1/p' broker.err | head -n 1)
[ "$in_order" = READY ] || fail "the index was built before the broker was ready"

unfinished=0
for lines in 1 5000 10000; do
    start_and_kill $lines
    [ "$(wc -l <.taskmq/events.jsonl)" -gt $tasks ] || unfinished=$((unfinished + 1))
done
[ $unfinished -gt 0 ] || fail "no kill was in the middle of events.jsonl"

# positions: those of events.jsonl, which have to be all, once and in order
positions () { sed -n 's/^{"n":[0-9]*,"pos":\([0-9]*\),"kind":"submitted".*/\1/p' .taskmq/events.jsonl; }
all_positions () { positions >have && seq 1 $tasks | cmp -s - have; }
# shellcheck disable=SC2317 # by eventually
all_tasks ()
{
    sed -n 's/.*"task_id":"\([^"]*\)".*/\1/p' .taskmq/tasks.jsonl | sort -u | cmp -s - want
}
start_broker
eventually all_positions
eventually all_tasks
run 0 taskctl audit verify
stop_broker
all_positions || fail "events.jsonl has lost something at the stop"
grep -v '^{.*}$' .taskmq/tasks.jsonl .taskmq/events.jsonl && fail "a line is torn"
exit 0
