#!/bin/sh
# shellcheck disable=SC2016 # the shells of the programs expand these
# Questions: asked on TASKMQ_FD, listed by inbox, answered by answer, also over a kill of the broker.
. "$(dirname "$0")/lib.sh"
start_broker

# It asks, and its result is what it was answered. Each line read is one from the worker.
cat >asker <<'END'
#!/bin/bash
while read -r line || [ -n "$line" ]; do
    printf '%s\n' "$line" >&"$TASKMQ_FD"
done
while read -r answer <&"$TASKMQ_FD"; do
    case $answer in answer*|error*) printf '%s\n' "$answer"; break ;; esac
done
END
chmod +x asker

waits_for_input ()
{
    eventually is input_required "$id"
}

# One question: inbox, get, the answer by its only key, the result.
submit q --session trip --data 'status waiting for you
ask colour "which colour?"'
spawn worker taskctl work q --max-tasks 1 -- ./asker
waits_for_input
run 0 taskctl inbox
out_has '^TASK  *KEY  *AGE  *QUEUE  *QUESTION$'
out_has 'colour .* q  *which colour[?]$'
run 0 env COLUMNS=80 taskctl inbox
[ "$(awk '{ if (length ($0) > most) most = length ($0) } END { print most }' out)" -le 80 ] ||
    fail 'the inbox is wider than 80 columns'
run 0 taskctl -o id inbox q --session trip
out "$id"
run 0 taskctl -o id inbox other
out_lines 0
run 0 taskctl -o json inbox --task "$id"
sed -E -i 's/"number":[0-9]+/"number":N/' out
golden inbox.json
run 0 taskctl -o json get "$id"
out_has "\"questions\":\\[\{\"task_id\":\"$id\",\"key\":\"colour\","
run 0 taskctl get "$id"
out_has '^  question  *colour: which colour[?]$'
run 5 taskctl answer "$id" --ask size --data 5
err_has 'no question with this key'
run 0 taskctl answer "$id" --data '"red"'
run 0 taskctl wait --for 60s "$id"
run 0 taskctl result "$id"
out 'answer colour "red"'
run 0 taskctl get "$id" --events
out_has 'asked .*colour'
out_has 'answered .*colour'

# After the end there is nothing to answer.
run 6 taskctl answer "$id" --ask colour --data '"red"'
run 0 taskctl -o id inbox
out_lines 0

# Two questions: the key has to be named; a repeat is no error, another answer is; text that is no
# JSON; a kill of the broker between the two.
submit q --data 'ask one {"method":"elicitation/create","params":{"message":"first?"}}
ask two "second?"'
spawn worker taskctl work q --max-tasks 1 -- sh -c '{ cat; echo; } >&"$TASKMQ_FD"
    n=0
    while [ $n -lt 2 ] && read -r line <&"$TASKMQ_FD"; do
        case $line in answer*) echo "$line"; n=$((n + 1)) ;; esac
    done'
waits_for_input
eventually sh -c "[ \"\$(taskctl -o id inbox | wc -l)\" = 2 ]"
run 0 taskctl inbox
out_has 'one .*first[?]$'
run 2 taskctl answer "$id" --data yes
err_has '2 open questions'
run 0 taskctl answer "$id" --ask one --data yes
run 0 taskctl answer "$id" --ask one --data yes
run 6 taskctl answer "$id" --ask one --data no
err_has 'another way'
kill_broker
start_broker
run 6 taskctl answer "$id" --ask one --data no
run 0 taskctl answer "$id" --data '{"a":
1}'
run 0 taskctl wait --for 60s "$id"
run 0 taskctl result "$id"
out_has '^answer one "yes"$'
out_has "^answer two [{]\"a\": 1[}]\$"

# One that gives its task back with the question open; the next attempt finds the answer.
submit q --data 'ask later "?"'
spawn worker taskctl work q --max-tasks 2 -- sh -c '
    if [ "$TASKMQ_ATTEMPT" = 1 ]; then
        { cat; echo; } >&"$TASKMQ_FD"
        until taskctl -o id inbox --task "$TASKMQ_TASK_ID" | grep -q .; do sleep 0.1; done
        exit 75
    fi
    read -r line <&"$TASKMQ_FD" && echo "$line"'
eventually sh -c "taskctl -o json get $id --events | grep -q released"
is input_required "$id" || fail 'it does not wait any more'
run 0 taskctl answer "$id" --data ready
run 0 taskctl wait --for 60s "$id"
run 0 taskctl result "$id"
out 'answer later "ready"'
run 0 taskctl -o json get "$id"
json failures 0

# Bad lines are answered and change nothing.
submit q --data 'ask
ask only-a-key
ask key {broken
turn []
file read
checkpoint {x
status
nonsense'
run 0 taskctl work q --drain -- bash -c '{ cat; echo; } >&"$TASKMQ_FD"
    for _ in 1 2 3 4 5 6 7 8; do read -r line <&"$TASKMQ_FD" && echo "$line"; done'
run 0 taskctl result "$id"
out_lines 8
out_has '^error ask needs KEY JSON'
out_has '^error turn needs a JSON object$'
out_has '^error file needs read\|write\|delete PATH$'
out_has "^error unknown verb 'nonsense'\$"
out_has '^error status needs a text$'

# 65 questions are one too many.
submit q --data ''
spawn worker taskctl work q --max-tasks 1 -- bash -c 'for i in $(seq 65); do echo "ask k$i 1" >&"$TASKMQ_FD"; sleep 0.01; done
    while read -r line <&"$TASKMQ_FD"; do case $line in error*) echo "$line"; break ;; esac; done'
run 0 taskctl wait --for 60s "$id"
run 0 taskctl result "$id"
out_has '^error ask k65: .*64'

# What is wrong on the command line.
run 2 taskctl answer "$id"
run 2 taskctl answer "$id" --data x --file y
run 2 taskctl answer "$id" --data ''
err_has 'the answer is empty'
run 2 taskctl inbox 'no name'
run 5 taskctl answer 0192f0c1-0000-7000-8000-000000000000 --data x
head -c 65537 /dev/zero | tr '\0' 1 >large
run 2 taskctl answer "$id" --file large
