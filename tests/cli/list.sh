#!/bin/sh
# list and count: order, filters, pages, formats.
. "$(dirname "$0")/lib.sh"
start_broker

run 0 taskctl list
err 'no tasks'

# Every list says so in the same way, in a pipe, too.
nothing ()
{
    said=$1
    shift
    run 0 taskctl "$@"
    out_lines 0
    err "$said"
}
nothing 'no open questions' inbox
nothing 'no values' context list
nothing 'no items' -o table mail read planner
nothing 'no sessions' session list
nothing 'no queues' queue list
nothing 'no workers' worker list
nothing 'no schedules' schedule list
nothing 'no profiles' profile list

run 0 taskctl -o json list
out '{"items":[],"next":null}'
run 0 taskctl count
out 0

# Newest first.
i=0
while [ "$i" -lt 7 ]; do
    i=$((i + 1))
    submit "q$((i % 2))" --data "$i" --session "s$((i % 3))"
    printf '%s\n' "$id" >>ids
done
sort -r ids >newest
run 0 taskctl -o id list
cmp -s newest out || fail 'not newest first'
run 0 taskctl list
out_has '^ID +STATUS +QUEUE +CREATED +TOOK +FAILED$'
out_has "^$(head -n 1 ids)  queued  q1 "
out_lines 8
run 0 taskctl -o wide ls
out_has '^ID .* SESSION +PRIORITY +METHOD +LABELS +.* EXPIRES +REMARK$'

# Pages by limit and cursor join into the whole.
run 0 taskctl -o id list --limit 3
cp out pages
err_has '^more follow: --cursor [^ ]+, or --all$'
cursor=$(sed -n 's/^more follow: --cursor \([^,]*\),.*/\1/p' err)
run 0 taskctl -o id list --limit 3 --cursor "$cursor"
cat out >>pages
run 0 taskctl -o json list --limit 3 --cursor "$cursor"
out_has '^\],"next":"[^"]+"\}$'
cursor=$(sed -n 's/^more follow: --cursor \([^,]*\),.*/\1/p' err)
cursor=$(sed -n 's/^\],"next":"\(.*\)"}$/\1/p' out)
run 0 taskctl -o id list --limit 3 --cursor "$cursor"
cat out >>pages
out_lines 1
err_lacks more
cmp -s newest pages || fail 'the pages are not the whole'
run 2 taskctl list --limit 3 --cursor "$cursor" --queue q0
err_has '^hint: a cursor goes with the filters'
run 2 taskctl list --cursor nonsense
run 0 taskctl -o jsonl list --all
out_lines 7
out_lacks '"result":'

# Filters: several of one kind are OR, different kinds AND.
run 0 taskctl count --queue q1
out 4
run 0 taskctl count --queue q1 --queue q0
out 7
run 0 taskctl count q1
out 4
run 0 taskctl -o id list q1 --queue q0
out_lines 7
run 0 taskctl count --queue q1 --session s1
out 2
run 0 taskctl count --session s1 --session s2
out 5
run 0 taskctl cancel "$(head -n 1 ids)"
run 0 taskctl count --status queued
out 6
run 0 taskctl count --status queued --status cancelled
out 7
run 0 taskctl count --status queued,cancelled
out 7
run 0 taskctl -o json count --status cancelled
out '{"count":1}'
run 0 taskctl -o id list --status cancelled
out "$(head -n 1 ids)"

# Times are half open.
run 0 taskctl count --since 1h
out 7
run 0 taskctl count --until 1h
out 0
run 0 taskctl -o json get "$(sed -n 4p ids)"
at=$(sed -n 's/.*"created_at":"\([^"]*\)".*/\1/p' out)
since=$(taskctl count --since "$at")
until=$(taskctl count --until "$at")
[ $((since + until)) -eq 7 ] || fail "$since since and $until until $at are not 7"
[ "$since" -ge 4 ] || fail "$since since $at, which is the time of the fourth of seven"

# A day and a time of day are local; the same text is another moment elsewhere.
for since in yesterday 2001-02-03 '2001-02-03 04:05' 2001-02-03T04:05:06 1d12h; do
    run 0 taskctl count --since "$since"
    out 7
    run 0 taskctl count --until "$since"
    out 0
done
minute=$(date -u '+%Y-%m-%d %H:%M')
run 0 env TZ=EAST-14 taskctl count --since "$minute"
out 7
run 0 env TZ=WEST+12 taskctl count --until "$minute"
out 7
run 0 env TZ=WEST+12 taskctl count --since "$minute"
out 0

# What tells tasks apart is shown where there is something, or by choice.
submit album --method resize --label file=a.jpg --label size=2
run 0 taskctl list album
out_has '^ID +STATUS +QUEUE +METHOD +LABELS +CREATED'
out_has " +resize +file=a.jpg size=2 "
run 0 taskctl list album --columns label:file,id,label:none
out_has '^file +ID +none$'
out_has "^a\.jpg +$id +-$"
run 2 taskctl list --columns id,stats
err_has "did you mean 'status'"
run 2 taskctl -o json list --columns id
err_has 'goes with a table only'
run 0 taskctl -o jsonl list album --fields label:size,task_id,error.code,labels
out "{\"label:size\":\"2\",\"task_id\":\"$id\",\"error.code\":null,\"labels\":{\"file\":\"a.jpg\",\"size\":\"2\"}}"
run 0 taskctl -o json get "$id" --fields labels.file
out '{"labels.file":"a.jpg"}'
run 2 taskctl -o json list --fields statu
err_has "there is no field 'statu'"
run 2 taskctl list --fields status
err_has 'goes with -o json or -o jsonl'

# More than the broker gives in one page.
i=0
while [ "$i" -lt 2300 ]; do
    i=$((i + 1))
    printf '{"queue":"many"}\n'
done >many.jsonl
run 0 taskctl submit --batch many.jsonl
run 0 taskctl -o id list --queue many --all
out_lines 2300
run 0 taskctl list --queue many --all
out_lines 2301
run 0 taskctl -o id list --queue many --limit 1500
out_lines 1500
run 0 taskctl -o json list --queue many --all
out_has '^\],"next":null\}$'
