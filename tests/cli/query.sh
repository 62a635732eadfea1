#!/bin/sh
# shellcheck disable=SC2016 # the shells of the programs expand these
# get, payload, result, cancel, and the ids they take.
. "$(dirname "$0")/lib.sh"
start_broker
spawn worker taskctl work text -- sh -c 'cat; echo " done"'
spawn failing taskctl work failing -- sh -c 'echo partial; echo "it broke: $(cat)" >&2; exit 100'
spawn typed taskctl work typed --result-type application/json -- sh -c 'printf "{\"a\": [1]}"'

# Full and short ids.
submit text --data hi
run 0 taskctl wait "$id"
short=$(printf %s "$id" | tail -c 8)
run 0 taskctl -o json get "$short"
json task_id "\"$id\""
golden get.json
run 0 taskctl -o id get "$(printf %s "$short" | tr a-f A-F)"
out "$id"
run 0 taskctl -o json get --payload --events "$id"
golden get-events.json
run 0 taskctl get --payload --events "$id"
out_has "^$id  completed$"
out_has '^    hi done$'
out_has '^  queue +text$'

run 5 taskctl get 01890000-0000-7000-8000-0000000000dd
err_has '01890000-0000-7000-8000-0000000000dd: '
run 5 taskctl get ffffffffffff
run 5 taskctl -o json get ffffffffffff
err_has '"code":"NOT_FOUND"'

# Several: a list; one that is missing makes it a part.
submit text --data two
second=$id
first=$(taskctl -o id list --queue text --limit 2 | tail -n 1)
run 9 taskctl -o json get "$first" 01890000-0000-7000-8000-0000000000dd
err_has '"code":"NOT_FOUND",.*"task_id":"01890000-0000-7000-8000-0000000000dd"'
run 0 taskctl -o json get "$first" "$second"
out_has '^\{"items":\[$'
out_has '^\],"next":null\}$'
run 0 taskctl -o jsonl get "$first" "$second"
out_lines 2
run 9 taskctl -o jsonl get "$first" ffffffffffff "$second"
out_lines 2

# Results.
run 0 taskctl result "$first"
out 'hi done'
submit typed
run 0 taskctl result --wait "$id"
printf '{"a": [1]}' | cmp -s - out || fail 'the result is not verbatim'
run 0 taskctl -o json get "$id"
json result '{"a":[1]}'
json result_type '"application/json"'

submit failing --data why
run 8 taskctl result --wait --for 60s "$id"
err_has 'failed.*: it broke: why \(code 100\)'
run 8 taskctl -o json result "$id"
err_has '"code":"TASK_FAILED"'
run 0 taskctl -o json get "$id"
json status '"failed"'
json dead false
json error '{"code":100,"message":"it broke: why","data":null}'

submit nobody --data x
run 6 taskctl result "$id"
err_has '^hint: --wait'
run 7 taskctl result --wait --for 200ms "$id"
run 2 taskctl result --for 200ms "$id"

# Cancel.
run 0 taskctl cancel "$id"
out_has "^$id  cancelled"
run 0 taskctl cancel "$id"
run 8 taskctl result "$id"
err_has 'was cancelled'
run 6 taskctl cancel "$first"
err_has "$first: "
run 6 taskctl -o json cancel "$first"
err_has '"code":"WRONG_STATUS"'
submit nobody
run 9 taskctl cancel "$first" "$id"
out_lines 1
run 0 taskctl -o json get "$id"
json status '"cancelled"'

# What a task says cannot disturb the terminal.
submit nobody --method "$(printf 'a\033[31mb')"
run 0 taskctl get "$id"
out_has 'method +a\\x1b\[31mb'
run 0 taskctl -o json get "$id"
json method '"a\u001b[31mb"'

# Failures are counted apart from attempts: what was given back is none.
submit patient --max-attempts 1
# shellcheck disable=SC2016 # the worker's shell expands it
run 0 taskctl work patient --drain --release-delay 1ms -- \
    sh -c '[ "$TASKMQ_ATTEMPT" -gt 2 ] && exit 3; exit 75'
run 0 taskctl -o json get "$id"
out_has '"attempt":3,"failures":1,"max_attempts":1,'
run 0 taskctl list patient
out_has ' 1/1 '
run 0 taskctl get "$id"
out_has '^  attempt +3$'
out_has '^  failures +1 of 1$'

# Many at once, in the order of the ids, which may come from stdin.
i=0
while [ "$i" -lt 3000 ]; do
    i=$((i + 1))
    printf '{"queue":"many"}\n'
done >many.jsonl
taskctl submit --batch many.jsonl >ids || fail 'the batch was refused'
sort -R ids >shuffled
run 0 sh -c 'taskctl -o id cancel - <shuffled'
cmp -s shuffled out || fail 'the answers are not in the order of the ids'
run 2 sh -c 'printf " \n" | taskctl cancel -'
err_has 'standard input names no ids'
run 2 sh -c 'echo 0123456 zz | taskctl wait -'
err_has "'zz' is not an id"
run 2 sh -c 'echo 0123456 1234567 | taskctl result -'
err_has "no further argument '1234567'"

# By conditions: counted, confirmed, and only what has not ended.
run 2 taskctl cancel
err_has 'needs ids, or conditions'
run 2 taskctl wait
run 2 taskctl cancel --queue many "$id"
err_has 'ids or conditions, not both'
run 2 taskctl cancel --yes "$id"
submit few
submit few --session s
kept=$id
submit few --session t
run 2 taskctl cancel --queue few --session s --session t
err_has '^taskctl: 2 tasks would be cancelled$'
err_has '^hint: --yes does it'
run 0 taskctl cancel --queue few --session t --dry-run
out 1
run 0 taskctl -o json cancel --queue few --session t --dry-run
out '{"count":1}'
run 0 taskctl -o id cancel --queue few --session t --yes
out "$id"
err '1 cancelled, 0 had ended'
run 0 taskctl cancel --queue few --session t --yes
err 'no tasks'
run 0 taskctl count few --status queued
out 2
run 0 taskctl cancel "$kept"
run 8 taskctl -o id wait --queue few --status cancelled --for 60s
out_lines 2
