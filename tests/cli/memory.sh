#!/bin/sh
# --store memory: everything works from submit to watch, no database, and nothing outlives a restart.
. "$(dirname "$0")/lib.sh"
broker_options='--store memory'
start_broker

spawn watcher taskctl -o jsonl watch --since 0 --count 11
submit jobs --data one
first=$id
run 6 taskctl result "$first"
spawn waiter taskctl wait "$first"
spawn worker taskctl work jobs -- tr a-z A-Z
ended waiter 0
out_has "^$first  completed  jobs"
run 0 taskctl result "$first"
[ "$(cat out)" = ONE ] || fail "the result is $(cat out)"

printf '{"queue":"jobs","data":"two"}\n{"queue":"jobs","data":"three"}\n' >batch.jsonl
run 0 taskctl submit --batch batch.jsonl
cp out ids
# shellcheck disable=SC2046 # ids hold no spaces
run 0 taskctl wait --for 60s $(cat ids)
submit nobody --data x
run 0 taskctl cancel "$id"
run 0 taskctl -o id list --status completed
out_lines 3
run 0 taskctl -o id list
out_lines 4

# Each event once: three lives of three events, and one that was cancelled.
ended watcher 0
out_lines 11
for kind in submitted:4 claimed:3 completed:3 cancelled:1; do
    [ "$(grep -c "\"kind\":\"${kind%:*}\"" out)" -eq "${kind#*:}" ] || fail "not $kind"
done

signal worker TERM
ended worker 0
stop_broker
for kept in taskmq.db journal.log; do
    [ ! -e ".taskmq/$kept" ] || fail "$kept was written"
done
start_broker
run 5 taskctl get "$first"
run 0 taskctl -o id list
out_lines 0
