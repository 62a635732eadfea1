#!/bin/sh
# submit --parent: tasks that are parts of another one, and what is done with all of them.
. "$(dirname "$0")/lib.sh"
start_broker

unknown=01890000-0000-7000-8000-0000000000ee

submit plan --fair-key tenant-7 --require gpu=a100
root=$id
# The file of tasks has the last line of a task say what `get` says, also of this.
last_line_says ()
{
    grep -F "\"task_id\":\"$1\"" .taskmq/tasks.jsonl | tail -n 1 | grep -qF "$2"
}
eventually last_line_says "$root" '"has_parts":false'
submit build --parent "$root"
one=$id
submit build --parent "$root"
two=$id
submit test --parent "$one"
deep=$id

eventually last_line_says "$root" '"has_parts":true'

# What is shown.
run 0 taskctl -o json get "$root"
json parent null
json has_parts true
json parts '{"total":2,"queued":2,"working":0,"input_required":0,"completed":0,"failed":0,"cancelled":0}'
json fair_key '"tenant-7"'
json require '{"gpu":"a100"}'
run 0 taskctl -o json get "$deep"
json parent "\"$one\""
json has_parts false
json parts null
json require '{}'
run 0 taskctl get "$root"
out_has '  parts *2 queued'
out_has '  fair key *tenant-7'
out_has '  require *gpu=a100'
run 0 taskctl get "$two"
out_has "  part of *$root"
run 0 taskctl -o id list --parent "$root"
out "$two
$one"
run 0 taskctl -o id list --parent "$root" --parent "$one" --queue test
out "$deep"
run 0 taskctl count --parent "$root" --status queued
out 2
# Endings of ids do as well, also in --after.
run 0 taskctl -o id list --parent "${one#????????-????-????-}"
out "$deep"
submit test --parent "${one#????????-????-????-}" --after "${two#????????-????-????-}:continue"
late=$id
run 0 taskctl -o json get "$late"
json parent "\"$one\""
json depends_on "[\"$two\"]"

# Waiting for a tree finds what comes while it waits, too.
cat >program <<'END'
#!/bin/sh
[ "$TASKMQ_QUEUE" != plan ] || taskctl submit build --parent "$TASKMQ_TASK_ID" >>made
END
chmod +x program
spawn waiter taskctl -o id wait --tree --for 60s "$root"
run 0 taskctl work plan build test --label gpu=a100 --drain -- ./program
ended waiter 0
sort waiter.out >waited
{
    printf '%s\n' "$root" "$one" "$two" "$deep" "$late"
    cat made
} | sort >expected
cmp expected waited || fail "other tasks were waited for than those of the tree"
run 0 taskctl -o json get "$root"
json parts '{"total":3,"queued":0,"working":0,"input_required":0,"completed":3,"failed":0,"cancelled":0}'
# A task that has ended may get parts as well, and knows it after it left memory.
submit plan
ended_one=$id
run 0 taskctl work plan --drain -- true
submit build --parent "$ended_one"
run 0 taskctl -o json get "$ended_one"
json has_parts true

# Cancelling.
submit plan
root=$id
submit build --parent "$root"
one=$id
submit test --parent "$one"
deep=$id
run 0 taskctl cancel --tree --dry-run "$root"
out 3
run 0 taskctl -o id cancel --tree "$one"
err_has '2 cancelled, 0 had ended'
run 0 taskctl -o id cancel --tree "$root"
err_has '3 cancelled, 0 had ended'
for each in "$root" "$one" "$deep"; do
    [ "$(status_of "$each")" = cancelled ] || fail "$each is not cancelled"
done

# Through kills of the broker: who is part of what, and that a tree was cancelled. The worker that
# holds one of it is told when it is back.
submit plan
root=$id
submit build --parent "$root"
one=$id
submit grip --parent "$one"
held=$id
cat >holder <<'END'
#!/bin/sh
: >held
exec sleep 1000
END
chmod +x holder
spawn gripper taskctl work grip -- ./holder
eventually test -e held
kill_broker
start_broker
run 0 taskctl -o json get "$root"
json has_parts true
json parts '{"total":1,"queued":1,"working":0,"input_required":0,"completed":0,"failed":0,"cancelled":0}'
run 0 taskctl -o id list --parent "$one"
out "$held"
submit test --parent "$held"
deep=$id
run 0 taskctl -o json get "$held"
json has_parts true
kill_broker
start_broker
run 0 taskctl -o id cancel --tree "$root"
sort out >felled
printf '%s\n' "$root" "$one" "$held" "$deep" | sort >expected
cmp expected felled || fail "other tasks were cancelled than those of the tree"
kill_broker
start_broker
for each in "$root" "$one" "$held" "$deep"; do
    [ "$(status_of "$each")" = cancelled ] || fail "$each is not cancelled after the kill"
done
signal gripper TERM
ended gripper 0

# A file, whose lines refer to earlier ones.
cat >tree.jsonl <<END
{"queue":"t"}
{"queue":"t","parent":"line:1"}
{"queue":"t","parent":"line:2"}
{"queue":"t","parent":"$root"}
END
run 0 taskctl submit --batch tree.jsonl
cp out ids
run 0 taskctl -o json get "$(sed -n 3p ids)"
json parent "\"$(sed -n 2p ids)\""
run 0 taskctl -o id cancel --tree "$(sed -n 1p ids)"
out_lines 3
run 0 taskctl -o json submit q --dry-run --parent "$root"
json parent "\"$root\""

# What is refused.
run 5 taskctl submit q --parent $unknown
err_has "there is no task $unknown"
run 5 taskctl -n other submit q --parent "$root"
run 0 taskctl purge "$root"
run 5 taskctl submit q --parent "$root"
run 2 taskctl submit q --parent 42
err_has "'42' must be the id of a task"
run 2 taskctl submit q --id $unknown --parent $unknown
err_has 'a task cannot be a part of itself'
run 2 taskctl submit q --parent line:1
err_has 'line:N is for the lines of a --batch'
printf '{"queue":"t","parent":"line:1"}\n' >bad.jsonl
run 2 taskctl submit --batch bad.jsonl
err_has 'line 1: parent: line 1 is no earlier line'
run 2 taskctl list --parent 42
err_has "'42' is not an id"
run 2 taskctl wait --tree --queue q
err_has '.--tree goes with ids'
run 2 taskctl wait --parent "$one" "$two"
err_has 'ids or conditions, not both'
# As deep as it may be, and one more.
submit q
top=$id
i=0
while [ $i -lt 32 ]; do
    submit q --parent "$id"
    i=$((i + 1))
done
run 10 taskctl submit q --parent "$id"
err_has 'as many as 32 tasks are above'
run 0 taskctl -o id cancel --tree "$top"
out_lines 33

# More than somebody can wait for: it can be stopped all the same.
submit plan
many=$id
awk -v parent="$many" 'BEGIN { for (i = 0; i < 10050; i++) printf "{\"queue\":\"t\",\"parent\":\"%s\"}\n", parent }' \
    >many.jsonl
run 0 taskctl submit --batch many.jsonl
run 10 taskctl wait --tree "$many"
err_has 'the tree has more than 10000 tasks'
run 0 taskctl -o id cancel --tree "$many"
err_has '10051 cancelled, 0 had ended'
