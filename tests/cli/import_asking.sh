#!/bin/sh
# import: a task that waits for an answer comes with its open questions, and is answered here.
# shellcheck disable=SC2016 # the shells of the programs expand these
. "$(dirname "$0")/lib.sh"
start_broker
asks='ask colour { "text" : "which colour?" }
ask size {"text":"how large?"}'
submit q --data "$asks" --label a=b
asked_twice ()
{
    [ "$(taskctl -o id inbox --task "$id" | wc -l)" -eq 2 ]
}
spawn worker taskctl work q --max-tasks 1 -- sh -c '{ cat; echo; } >&"$TASKMQ_FD"; sleep 600'
eventually asked_twice
# Their numbers are of the broker, and so is the attempt that goes on.
bare ()
{
    sed -E -e 's/"events":\[[^]]*\]//' -e 's/"number":[0-9]+/"number":N/g' \
        -e 's/"attempts":\[[^]]*\]//' "$1"
}
run 0 taskctl export
cp out asking.jsonl
grep -q '"request":{"text":"which colour?"},"default":null' asking.jsonl || fail 'no question is exported'
kill_broker
signal worker KILL
wait "$(cat worker.pid)" 2>/dev/null

# It waits here as it did there, also after a kill.
rm -rf .taskmq
start_broker
run 0 taskctl import asking.jsonl
err_has '^1 imported$'
err_lacks 'question'
[ "$(status_of "$id")" = input_required ] || fail 'it does not wait for an answer'
run 0 taskctl import asking.jsonl
err '1 here already, passed over'
kill_broker
start_broker
run 0 taskctl export
bare out >there
bare asking.jsonl >here
cmp -s here there || fail 'an import changes what was exported'
run 0 taskctl inbox
out_has 'colour .*which colour[?]$'
run 0 taskctl answer "$id" --ask colour --data '"red"'
run 0 taskctl answer "$id" --ask size --data 5
[ "$(status_of "$id")" = queued ] || fail 'its answers do not queue it'

# The next attempt asks the same, with white space or not, and has the answers.
run 0 taskctl work q --drain -- sh -c '{ cat; echo; } >&"$TASKMQ_FD"
    n=0
    while [ $n -lt 2 ] && read -r line <&"$TASKMQ_FD"; do
        case $line in answer*|error*) echo "$line"; n=$((n + 1)) ;; esac
    done'
run 0 taskctl result "$id"
out_has '^answer colour "red"$'
out_has '^answer size 5$'

# Whoever may not see the question exports none of it: the task's worker asks again.
sed -E 's/"request":\{[^}]*\}/"request":null/g' asking.jsonl >blind.jsonl
stop_broker
rm -rf .taskmq
start_broker
run 0 taskctl import blind.jsonl
err_has 'had a worker, which is not here'
err_has '^2 of their open questions stay behind$'
[ "$(status_of "$id")" = queued ] || fail 'nobody asks, and it waits'
sed 's/"key":"size"/"key":"colour"/' asking.jsonl >twice.jsonl
stop_broker
rm -rf .taskmq
start_broker
run 2 taskctl import twice.jsonl
err_has 'questions.key: each stands there once'
stop_broker
