#!/bin/sh
# shellcheck disable=SC2016 # the shells of the programs expand these
# wait: a line per task as it ends, and what the exit code says of all of them.
. "$(dirname "$0")/lib.sh"
start_broker
spawn worker taskctl work -j 4 jobs -- sh -c 'exit "$(cat)"'

submit jobs --data 0
good=$id
run 0 taskctl wait "$good"
out_has "^$good  completed  jobs"
run 0 taskctl -o json wait "$good"
out_has '^\{"items":\[$'
json status '"completed"'
run 0 taskctl -o jsonl wait "$good"
out_lines 1
run 0 taskctl -o id wait "$good"
out "$good"

# Who names a task twice hears of it once, in the order of the first names.
run 0 taskctl -o id wait "$good" "$good" "$good"
out_lines 1

submit jobs --data 100
bad=$id
run 8 taskctl wait "$good" "$bad"
out_lines 2
submit nobody
run 7 taskctl wait --for 1ms "$id" "$id"
err_has 'the task has not ended in 1ms'
run 7 taskctl wait --for 200ms "$good" "$bad" "$id"
out_lines 2 # however slow the machine is: after the deadline comes one more look
run 7 taskctl wait --for 1ms "$good" "$bad" "$id"
out_lines 2
err_has '1 of 3 tasks have not ended in 1ms'
run 5 taskctl wait "$good" 01890000-0000-7000-8000-0000000000dd
out_lines 1
run 5 taskctl wait "$bad" 01890000-0000-7000-8000-0000000000dd
run 8 taskctl wait "$bad"
submit nobody
run 0 taskctl cancel "$id"
run 8 taskctl wait "$id"
out_has "^$id  cancelled"

# Conditions that match nothing are no reason to fail, and none to be silent.
run 0 taskctl wait --queue nowhere
out_lines 0
err_has '^no task matches, so there is nothing to wait for$'
run 0 taskctl -o json wait --queue nowhere
err_has 'no task matches'
run 0 taskctl -q wait --queue nowhere
err_lacks .

# It outlives the broker: a wait that began before a crash ends after it.
submit later --data 0
spawn waiter taskctl -v wait "$id"
eventually grep -q connected waiter.err
kill_broker
eventually grep -qx 'taskctl: the broker is gone; waiting for it' waiter.err
start_broker
eventually grep -Eqx 'taskctl: the broker is back after [0-9]+(ms|s|m)' waiter.err
spawn second taskctl work later -- true
ended waiter 0
out_has "^$id  completed"

# More than one message asks for: each is named once, as it ends.
awk 'BEGIN {for (i = 0; i < 1050; i++) print "{\"queue\":\"many\"}"}' >many.jsonl
run 0 taskctl submit --batch many.jsonl
cp out ids
# shellcheck disable=SC2046 # ids hold no spaces
spawn many taskctl -v -o id wait $(cat ids)
eventually grep -q connected many.err
run 0 taskctl cancel --queue many --yes
ended many 8
sort out >ended
sort ids | cmp -s - ended || fail 'not every task is named once'
for name in worker second; do
    signal $name TERM
    ended $name 0
done
