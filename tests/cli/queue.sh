#!/bin/sh
# Queues: how they stand, pauses, settings, and what is refused.
. "$(dirname "$0")/lib.sh"

start_broker

# A pause of a queue that nobody uses yet counts for whoever will.
run 0 taskctl queue pause thumbs --why "the disk is full"
err_has '^queue thumbs is paused; what workers hold goes on$'
err_has '^no task and no worker uses this queue now'
out_lines 0
submit thumbs --data one
first=$id
run 0 taskctl -o json get "$first"
json phase '"paused"'
run 0 taskctl -o json list
json phase '"paused"'
run 0 taskctl queue list
golden queue-list
run 0 taskctl queue show thumbs
out_has '^state +paused$'
out_has '^paused +by .*: the disk is full$'
run 0 taskctl -o json queue show thumbs
neutral out | sed 's/"by":"[^"]*"/"by":"WHO"/; s/"oldest_ready_ms":[0-9]*/"oldest_ready_ms":AGE/' >out.who && mv out.who out
golden queue.json
run 0 taskctl -q queue resume thumbs
err_lacks '.'
run 0 taskctl queue resume thumbs
err 'queue thumbs is not paused any more'
run 0 taskctl work thumbs --drain -- cat
run 0 taskctl queue resume thumbs
err 'queue thumbs is not paused any more'
[ "$(status_of "$first")" = completed ] || fail "the task was not worked on"
run 5 taskctl queue show never.used
err_has 'no such queue'
# One that nobody uses yet can be paused, and is when somebody does.
run 0 taskctl queue pause to.come --why 'not yet'
err_has 'it counts for those to come'
submit to.come
run 0 taskctl why "$id"
out_has "queue 'to.come' was paused by .*: not yet"
run 0 taskctl queue resume to.come
run 0 taskctl cancel "$id"

# Settings.
run 0 taskctl queue set thumbs --max-running 2 --rate 10/1m --burst 3 --max-tasks 1 --max-bytes 1M \
    --ttl 0 --lease 10s --backoff 2s --max-attempts 5
run 0 taskctl -o wide queue list
out_has 'max-running=2 rate=10/1m burst=3 max-tasks=1 max-bytes=1M ttl=0 lease=10s backoff=2s max-attempts=5$'
run 0 taskctl -o json queue list
json max_running 2
json ttl_never true
submit thumbs
run 0 taskctl -o json get "$id"
json ttl_ms null
json max_attempts 5
run 10 taskctl --timeout 1s submit thumbs
err_has 'queued tasks of the queue: 1, as many as there may be'
stop_broker
start_broker
run 0 taskctl queue show thumbs
out_has '^rate +10/1m$'
run 0 taskctl queue set thumbs --unset max-tasks --unset rate --max-running 7
run 0 taskctl queue show thumbs
out_has '^max-running +7$'
out_lacks '^rate|^burst|^max-tasks'

# Fair keys have their turns.
run 0 taskctl queue pause fair
for key in a a a a b c; do
    run 0 taskctl submit fair --data "$key" --fair-key "$key"
done
run 0 taskctl queue resume fair
# shellcheck disable=SC2016 # the shell of the worker reads it
run 0 taskctl work fair --drain -- sh -c 'cat >>"$1"; echo >>"$1"' sh "$PWD/turns"
[ "$(head -3 turns | sort | tr -d '\n')" = abc ] || fail "the turns are $(tr '\n' ' ' <turns)"
run 0 taskctl queue set fair --weight-of owner --max-per-key 2
run 0 taskctl queue show fair
out_has '^weight-of +owner$'
out_has '^max-per-key +2$'
run 2 taskctl queue set fair --weight-of colour

# Requirements: whoever has the labels gets it.
submit needs --data strong --require gpu=a100 --require zone=eu
submit needs --data weak
run 0 taskctl work needs --max-tasks 1 --label gpu=a100 -- cat
[ "$(status_of "$id")" = completed ] || fail "the task without requirements was not worked on"
run 0 taskctl -o json queue show needs
json ready 1
run 0 taskctl work needs --drain --label gpu=a100 --label zone=eu --label more=1 -- cat
run 2 taskctl submit needs --require gpu
run 2 taskctl submit needs --require a=1 --require a=2
run 2 taskctl submit needs --require a=1 --require b=1 --require c=1 --require d=1 --require e=1 \
    --require f=1 --require g=1 --require h=1 --require i=1
err_has 'more than 8'
i=0
while [ "$i" -lt 65 ]; do
    i=$((i + 1))
    echo "{\"queue\":\"sets\",\"data\":\"x\",\"require\":{\"n\":\"$i\"}}"
done >sets.jsonl
run 9 taskctl --timeout 1s submit --batch sets.jsonl
err_has 'sets of requirements in the queue: 64, as many as there may be'

# What is wrong is said, and changes nothing.
run 2 taskctl queue set thumbs
err_has 'what is to be set'
run 2 taskctl queue set thumbs --rate 0/1s
err_has 'a rate of 0 would let nothing begin'
err_has '^hint: taskctl queue pause'
run 2 taskctl queue set thumbs --rate 10
err_has 'must be N/DURATION'
run 2 taskctl queue set thumbs --rate 1000000/1ms
run 2 taskctl queue set nobody --burst 5
err_has 'burst: only beside a rate'
run 2 taskctl queue set thumbs --max-running 0
run 2 taskctl queue set thumbs --max-bytes 12
run 2 taskctl queue set thumbs --unset colour
err_has 'nothing of this name can be set'
run 2 taskctl queue set thumbs --rate 1/s --unset rate
run 2 taskctl queue set 'a b' --max-running 1
run 2 taskctl queue pause
run 2 taskctl queue stop thumbs
err_has "unknown command 'queue stop'"
err_has "did you mean 'queue pause'"
run 2 taskctl queue unpause thumbs
err_has "did you mean 'queue resume'"

# The burst alone, where a rate is set; a second pause keeps the reason of the first.
run 0 taskctl queue set bursty --rate 10/1m
run 0 taskctl queue set bursty --burst 5
run 0 taskctl queue pause bursty --why 'the disk'
run 0 taskctl queue pause bursty
run 0 taskctl queue show bursty
out_has '^burst  *5$'
out_has '^paused .*: the disk$'
run 0 taskctl -o id queue list
out_has '^bursty$'
run 0 taskctl -o id queue resume bursty
out bursty
run 0 taskctl queue show thumbs
out_has '^max-running +7$'

# Changes are events for who asks for them.
run 0 taskctl queue pause thumbs --why lunch
run 0 taskctl -o jsonl watch --subject queue --queue thumbs --since 0 --count 1
out_has '"subject":"queue","name":"thumbs"'
stop_broker
