#!/bin/sh
# Dependencies hold through SIGKILL of the broker: a chain, a fan, and a chain that fails from its
# head. AFTER_TASKS tasks in each, 60 unless it is said.
. "$(dirname "$0")/lib.sh"
tasks=${AFTER_TASKS:-60}
kills=4

# One task, and what depends on it: on the line before, or each on the first.
chain_of ()
{
    awk -v queue="$1" -v tasks="$tasks" 'BEGIN {
        printf "{\"queue\":\"%s\"}\n", queue
        for (i = 2; i <= tasks; i++)
            printf "{\"queue\":\"%s\",\"after\":\"line:%d\"}\n", queue, i - 1
    }'
}
fan_of ()
{
    awk -v queue="$1" -v tasks="$tasks" 'BEGIN {
        printf "{\"queue\":\"%s\"}\n", queue
        for (i = 1; i <= tasks; i++)
            printf "{\"queue\":\"%s\",\"after\":\"line:1\"}\n", queue
    }'
}
completed ()
{
    [ "$(taskctl count chain fan --status completed)" -ge "$1" ]
}
has_ended ()
{
    taskctl wait --for 1h --queue "$1" >ended.out 2>&1
}

start_broker
for shape in chain fan; do
    "${shape}_of" $shape >$shape.jsonl
    run 0 taskctl submit --batch $shape.jsonl
done
chain_of doom >doom.jsonl
run 0 taskctl submit --batch doom.jsonl
head=$(sed -n 1p out)
run 0 taskctl count doom fan --status queued
out $((2 * tasks + 1))

spawn worker taskctl -q work chain fan -j 4 -- true
kill=1
while [ $kill -le $kills ]; do
    until completed $((kill * 2 * tasks / (kills + 1))); do
        sleep 0.05
    done
    # What fails in turns is interrupted, too.
    [ $kill -ne 2 ] || run 0 taskctl cancel "$head"
    kill_broker
    start_broker
    kill=$((kill + 1))
done
has_ended chain || fail "the chain did not complete"
has_ended fan || fail "the fan did not complete"
has_ended doom
signal worker TERM
ended worker 0

run 0 taskctl count chain fan --status completed
out $((2 * tasks + 1))
run 0 taskctl count doom --status failed
out $((tasks - 1))
run 0 taskctl -o json list doom --limit 1
out_has '"error":{"code":-33004,'
# None of the chain began before the one before it had ended. The newest comes first.
run 0 taskctl -o jsonl list chain --all --fields started_at,finished_at
awk -F '"' 'NR > 1 && $8 > began { print "line " NR ": " $8 " is after " began; exit 1 }
            { began = $4 }' out || fail "one of the chain began too early"
out_lines "$tasks"
stop_broker
