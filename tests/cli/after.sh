#!/bin/sh
# shellcheck disable=SC2016 # the shells of the programs expand these
# submit --after: tasks that wait for others, and what is refused.
. "$(dirname "$0")/lib.sh"
start_broker

unknown=01890000-0000-7000-8000-0000000000ee

# It waits, and then its program hears how the others ended.
submit q --data 'exit 100'
first=$id
submit q --data 'echo two'
second=$id
submit q --after "$first:continue" --after "$second" --data 'echo "$TASKMQ_AFTER"'
third=$id
submit q --after "$first:ignore" --data 'echo "[$TASKMQ_AFTER]"'
fourth=$id
submit q --after "$first" --data 'echo never'
fifth=$id
submit q --after "$fifth" --data 'echo never'
sixth=$id
run 0 taskctl -o json get "$third"
json phase '"blocked"'
json depends_on "[\"$first\",\"$second\"]"
run 0 taskctl list q
out_has 'queued \(blocked\)'
run 0 taskctl -o json queue show q
json ready 2
json blocked 4
run 0 taskctl -o json stats
json blocked 4
run 0 taskctl get "$third"
out_has "phase *blocked"
out_has "after *$first  whatever becomes of it"
out_has "$second  it fails with it"
cat >program <<'END'
#!/bin/sh
exec sh -c "$(cat)"
END
chmod +x program
run 0 taskctl work q --drain -- ./program
run 8 taskctl wait --for 60s "$first" "$second" "$third" "$fourth" "$fifth" "$sixth"
run 0 taskctl result "$third"
out "$first=failed $second=completed"
run 0 taskctl result "$fourth"
out '[]'
run 8 taskctl result "$fifth"
err_has "the task $first that this one depends on is failed"
run 0 taskctl -o json get "$sixth"
json status '"failed"'
json error "{\"code\":-33004,\"message\":\"the task $fifth that this one depends on is failed\",\"data\":{\"task_id\":\"$fifth\",\"status\":\"failed\"}}"
run 0 taskctl get "$third"
out_has "after *$first  failed"
run 0 taskctl -o json get "$fourth"
json depends_on '[]'

# One that ended before counts at once.
run 0 taskctl submit q --after "$second"
run 0 taskctl -o json get "$(cat out)"
json phase '"ready"'
run 0 taskctl submit q --after "$first"
run 0 taskctl -o json get "$(cat out)"
json status '"failed"'

# What is refused.
run 5 taskctl submit q --after $unknown
err_has "there is no task $unknown"
run 2 taskctl submit q --after "$first:later"
err_has "'later' must be fail, ignore or continue"
run 2 taskctl submit q --after 42
err_has "'42' must be the id of a task"
run 2 taskctl submit q --after line:1
err_has 'line:N is for the lines of a --batch'
run 2 taskctl submit q --after "$first" --after "$first:ignore"
err_has 'is given twice'
run 2 taskctl submit q --id $unknown --after $unknown
err_has 'cannot depend on itself'
set --
i=10
while [ $i -lt 75 ]; do
    set -- "$@" --after "01890000-0000-7000-8000-0000000000$i"
    i=$((i + 1))
done
run 2 taskctl submit q "$@"
err_has 'after: more than 64 tasks'
run 0 taskctl submit q --ttl 1s --id 01890000-0000-7000-8000-0000000000dd
run 0 taskctl cancel 01890000-0000-7000-8000-0000000000dd
# A task that was removed counts as failed.
is_removed ()
{
    ! taskctl get 01890000-0000-7000-8000-0000000000dd
}
eventually is_removed
run 0 taskctl submit q --after 01890000-0000-7000-8000-0000000000dd
run 0 taskctl -o json get "$(cat out)"
json status '"failed"'
# So is one that was purged by hand.
submit nobody
gone=$id
run 0 taskctl cancel "$gone"
run 0 taskctl purge "$gone"
run 0 taskctl submit q --after "$gone"
run 0 taskctl -o json get "$(cat out)"
json status '"failed"'
# One of another namespace is none of ours.
run 5 taskctl -n other submit q --after "$second"

# A file, whose lines refer to earlier ones.
cat >tree.jsonl <<END
{"queue":"t","data":"1"}

{"queue":"t","after":"line:1"}
{"queue":"t","after":["line:1:ignore","line:3:continue","$second"]}
END
run 0 taskctl submit --batch tree.jsonl
cp out ids
run 0 taskctl -o json get "$(sed -n 2p ids)"
json depends_on "[\"$(sed -n 1p ids)\"]"
run 0 taskctl -o json get "$(sed -n 3p ids)"
json depends_on "[\"$(sed -n 1p ids)\",\"$(sed -n 2p ids)\",\"$second\"]"
run 0 taskctl cancel "$(sed -n 1p ids)"
run 0 taskctl -o json get "$(sed -n 2p ids)"
json status '"failed"'
run 0 taskctl -o json get "$(sed -n 3p ids)"
json phase '"ready"'
broken ()
{
    printf '{"queue":"bad"}\n%s\n' "$1" >bad.jsonl
    run 2 taskctl submit --batch bad.jsonl
    out_lines 0
    err_has "^taskctl: line 2: after$2"
}
broken '{"queue":"bad","after":"line:2"}' ': line 2 is no earlier line'
broken '{"queue":"bad","after":"line:3"}' ': line 3 is no earlier line'
broken '{"queue":"bad","after":"line:x"}' ': line:N needs the number of a line'
broken '{"queue":"bad","after":["x"]}' ": 'x' must be the id of a task, a whole one"
broken '{"queue":"bad","after":[7]}' ' must be a string'
broken "{\"queue\":\"bad\",\"id\":\"$unknown\",\"after\":\"$unknown\"}" ': a task cannot depend on itself'
run 0 taskctl -o json submit q --dry-run --after "$first:ignore"
json after "[\"$first:ignore\"]"

# A worker that drains does not wait for what others have to do, nor for what waits for that.
submit lab --require gpu=a100
unfit=$id
submit lab --after "$unfit"
submit lab --require cpu=arm
fit=$id
run 0 taskctl work lab --label cpu=arm --drain -- true
err_has '1 task is left that this worker may not do: it has no label gpu=a100'
[ "$(status_of "$fit")" = completed ] || fail "what the worker may do was not done"
run 0 taskctl work lab --label gpu=a100 --drain -- true
[ "$(status_of "$unfit")" = completed ] || fail "another worker did not do it"
