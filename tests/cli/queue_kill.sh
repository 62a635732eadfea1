#!/bin/sh
# What is set for queues holds through SIGKILL of the broker: pauses, caps, rates.
. "$(dirname "$0")/lib.sh"

# Tasks of a queue that stand so: ready N, running N.
stands ()
{
    taskctl -o json queue show "$1" >stands.json || return 1
    grep -qF "\"ready\":$2," stands.json && grep -qF "\"running\":$3," stands.json
}

start_broker
for queue in paused capped keyed rated; do
    for n in 1 2 3 4 5 6 7 8; do
        echo "{\"queue\":\"$queue\",\"data\":\"$n\",\"fair_key\":\"$((n % 2))\",\"lease\":\"1h\"}"
    done
done >tasks.jsonl
run 0 taskctl queue pause paused --why "until tomorrow"
run 0 taskctl queue set capped --max-running 2
run 0 taskctl queue set keyed --max-per-key 1
run 0 taskctl queue set rated --rate 1/1d --burst 2
run 0 taskctl submit --batch tasks.jsonl
spawn worker taskctl work paused capped keyed rated -j 32 -- sleep 600
eventually stands capped 6 2
eventually stands keyed 6 2
eventually stands rated 6 2
stands paused 8 0 || fail "a paused queue gave something away"

kill_broker
start_broker

# The worker is back with what it holds. A rate lets one burst through after a restart.
eventually stands rated 4 4
eventually stands capped 6 2
eventually stands keyed 6 2
stands paused 8 0 || fail "the pause did not survive"
run 0 taskctl queue show paused
out_has '^paused +by .*: until tomorrow$'
out_has '^state +paused$'

# Room for one more, and one more begins.
run 0 taskctl queue set capped --max-running 3
eventually stands capped 5 3
run 0 taskctl queue resume paused
eventually stands paused 0 8
stands rated 4 4 || fail "the rate let more through"
signal worker TERM
eventually grep -q finishing worker.err # two at once may be one
signal worker TERM
ended worker 143
stop_broker
