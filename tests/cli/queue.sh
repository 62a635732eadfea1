#!/bin/sh
# Queues: how they stand, pauses, settings, and what is refused.
. "$(dirname "$0")/lib.sh"

start_broker

# A pause of a queue that nobody uses yet counts for whoever will.
run 0 taskctl queue pause thumbs --why "the disk is full"
err_has '^queue thumbs is paused; what workers hold goes on$'
err_has '^nobody uses a queue of this name now'
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
neutral out | sed 's/"by":"[^"]*"/"by":"WHO"/' >out.who && mv out.who out
golden queue.json
run 0 taskctl -q queue resume thumbs
err_lacks '.'
run 0 taskctl queue resume thumbs
run 0 taskctl work thumbs --drain -- cat
[ "$(status_of "$first")" = completed ] || fail "the task was not worked on"
run 5 taskctl queue show never.used
err_has 'no such queue'

# Settings.
run 0 taskctl queue set thumbs --max-running 2 --rate 10/1m --burst 3 --max-tasks 1 --max-bytes 1M \
    --ttl 0 --lease 10s --backoff 2s --max-attempts 5
run 0 taskctl -o wide queue list
out_has 'max-running=2 rate=10/1m burst=3 max-tasks=1 max-bytes=1M ttl=0 lease=10s backoff=2s max-attempts=5$'
run 0 taskctl -o json queue list
json max_running 2
json ttl_never 1
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

# What is wrong is said, and changes nothing.
run 2 taskctl queue set thumbs
err_has 'what is to be set'
run 2 taskctl queue set thumbs --rate 0/1s
err_has 'a rate of 0 would let nothing begin'
err_has '^hint: taskctl queue pause'
run 2 taskctl queue set thumbs --rate 10
err_has 'must be N/DURATION'
run 2 taskctl queue set thumbs --rate 1000000/1ms
run 2 taskctl queue set thumbs --burst 5
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
run 0 taskctl queue show thumbs
out_has '^max-running +7$'
stop_broker
