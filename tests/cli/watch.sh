#!/bin/sh
# shellcheck disable=SC2016 # the shells of the programs expand these
# watch: live events, from a cursor, and every way to end it.
. "$(dirname "$0")/lib.sh"
start_broker

# first_line FORMAT OPTION...: a watch that is ended when it has printed something.
first_line ()
{
    format=$1
    shift
    spawn watcher taskctl -o "$format" watch "$@"
    eventually test -s watcher.out
    signal watcher INT
    ended watcher 130
}

# From the beginning, nothing skipped; the cursor at the end goes on without a repeat.
submit jobs --data 1
first=$id
submit jobs --data 2
run 0 taskctl cancel "$id"
run 0 taskctl -o jsonl watch --since 0 --count 3
out_lines 3
golden watch.jsonl
err_has '^cursor: [0-9]+-3$'
run 0 taskctl -o jsonl watch --since 0 --count 2
cursor=$(sed -n 's/^cursor: //p' err)
run 0 taskctl -o jsonl watch --since "$cursor" --count 1
json kind '"cancelled"'
json seq 3
run 0 taskctl -o jsonl watch --since 2 --count 1
json seq 3
run 0 taskctl -o jsonl watch --since 1h --count 3
out_lines 3
run 2 taskctl watch --since 99-1-2
run 0 taskctl watch --since 0 --count 1
out_has "^[0-9:.]{12}  submitted +$first  jobs"

# Elapsed time is no failure.
run 0 taskctl -o jsonl watch --for 100ms
out_lines 0
err_has '^cursor: '

# Filters.
run 0 taskctl -o jsonl watch --since 0 --status cancelled --count 1
json seq 3
submit other --session s1 # which is an event, too
run 0 taskctl -o jsonl watch --since 0 --queue other --count 1
json seq 5
run 0 taskctl -o jsonl watch --since 0 --session s1 --count 1
json seq 5
run 0 taskctl -o id watch --since 0 --count 1 "$first"
out "$first"

submit other --label a=1 --label b=2
run 0 taskctl -o id watch --since 0 --label b=2 --label a=1 --count 1
out "$id"

# A snapshot comes before what happens.
first_line jsonl --snapshot --queue other --label a=1
out_lines 1
json kind '"snapshot"'
json status '"queued"'

# Until a status: what happened before counts too.
run 0 taskctl watch --until cancelled "$(taskctl -o id list --status cancelled)"
spawn watcher taskctl -o jsonl watch --since 0 --until completed "$first"
spawn worker taskctl work jobs -- sh -c 'echo "progress 1/2 half way" >&"$TASKMQ_FD"; cat'
ended watcher 0
out_has '"kind":"submitted"'
out_has '"kind":"claimed"'
tail -n 1 out | grep -q '"kind":"completed"' || fail 'the last event is not the end'
run 5 taskctl watch --until working "$first" 01890000-0000-7000-8000-0000000000dd
submit nobody
run 0 taskctl cancel "$id"
run 8 taskctl watch --until working "$id"
run 0 taskctl watch --since 0 --count 2 "$id" # nobody asked how it ends
out_has ' cancelled '
submit jobs
run 0 taskctl watch --until working "$id"

# Out of time it is not there, which is not 0.
submit nobody
run 7 taskctl watch --until completed --for 100ms "$id"
err_has '^taskctl: the task has not become completed in 100ms$'
err_has '^cursor: '
run 7 taskctl -q watch --until completed --for 100ms "$id"
err_lacks '^cursor: '
run 0 taskctl -q watch --for 100ms
err_lacks .

# Each line has the cursor to go on behind it, as a text.
run 0 taskctl -o jsonl watch --since 0 --count 2
cursor=$(sed -n '1s/.*"cursor":"\([0-9]*-1\)"}$/\1/p' out)
run 0 taskctl -o jsonl watch --since "$cursor" --count 1
json seq 2
first_line jsonl --snapshot --queue other
out_has '"cursor":"[0-9]+-[0-9]+"}$'
out_lacks '"result":'

# Live, and through a crash of the broker: nothing twice, nothing left out.
spawn live taskctl -o jsonl watch --since 0 --queue live --count 4
submit live
eventually test -s live.out
kill_broker
eventually grep -qx 'taskctl: the broker is gone; waiting for it' live.err
start_broker
eventually grep -Eqx 'taskctl: the broker is back after [0-9]+(ms|s|m)' live.err
submit live
submit live
submit live
ended live 0
out_lines 4
[ "$(sed -n 's/.*"task_id":"\([^"]*\)".*/\1/p' out | sort -u | wc -l)" -eq 4 ] ||
    fail 'a task is shown twice'

# It ends when nobody reads any more, also when nothing happens.
run 0 sh -c 'taskctl -o jsonl watch --since 0 | head -n 1'
out_lines 1

# Signals end it in order, with the cursor.
spawn stopped taskctl watch --since 0
eventually test -s stopped.out
signal stopped INT
ended stopped 130
err_has '^cursor: [0-9]+-[0-9]+$'
spawn stopped taskctl watch --since 0
eventually test -s stopped.out
signal stopped TERM
ended stopped 143
err_has '^cursor: '
signal worker TERM
ended worker 0

# One that lies ahead has nothing to do with filters.
run 2 taskctl watch --since 999999999999
err_has 'beyond the newest event'
err_has '^hint: --since 0 '

# A cursor of another history is told as such, not as events that are no longer kept.
run 0 taskctl -o jsonl watch --since 0 --count 1
cursor=$(sed -n 's/^cursor: //p' err)
stop_broker
rm -r .taskmq
start_broker
submit q
first_line jsonl --since "$cursor"
out_has '^\{"kind":"gap",.*"other_history":true,"cursor":"'
first_line table --since "$cursor"
out_has '^-- the cursor belongs to another history \(events may be lost\): this one follows from its event [0-9]+ --$'

# Also to one who had seen no event of it.
spawn early taskctl watch
eventually grep -q . early.err
stop_broker
rm -r .taskmq
start_broker
submit q
told () { grep -q 'another history' early.out; }
eventually told
! grep -q 'no longer kept' early.out || fail 'a gap of no events is told'
signal early TERM
ended early 143
