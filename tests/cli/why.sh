#!/bin/sh
# why: what holds a task.
. "$(dirname "$0")/lib.sh"
start_broker

submit q
first=$id
submit q --after "$first"
second=$id
run 0 taskctl why "$first"
out_has "^no worker serves queue 'q'$"
out_has '^  queue  *q$'
out_has '^  position  *1$'
run 0 taskctl why "$second"
out_has "^it waits for task $first to end$"
out_has "^  tasks  *$first$"
run 0 taskctl -o json why "$second"
json reason '"blocked"'
json phase '"blocked"'
json waits_for "[\"$first\"]"
golden why.json
run 0 taskctl -o id why "$second"
out "$second"
run 0 taskctl queue pause q --why 'a test'
run 0 taskctl -o json why "$first"
json reason '"queue_paused"'
out_has '"why":"a test"'
run 0 taskctl cancel "$first"
run 0 taskctl why "$second"
out_has '^it failed .* ago: the task .* that this one depends on is cancelled$'
out_has '^  error_code  *-33004$'
out_has '^  finished_at .*)$'
run 0 env TZ=XYZ-5 taskctl why "$second"
out_has '^  finished_at +[0-9-]{10} [0-9:.]{12} UTC[+]05:00  [(]'

# A short id will do; what is not there is said.
run 0 taskctl why "$(printf %s "$first" | tail -c 12)"
out_has '^it was cancelled'
run 5 taskctl why 01890000-0000-7000-8000-0000000000ee
run 2 taskctl why
run 2 taskctl why x
run 2 taskctl why "$first" "$second"
