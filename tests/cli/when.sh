#!/bin/sh
# shellcheck disable=SC2016 # the shells of the programs expand these
# When a task may run: --delay, --at, --start-by, --max-runtime; a broker that is killed meanwhile.
. "$(dirname "$0")/lib.sh"
start_broker

# What was asked for is shown, and stands in a file too.
submit later --delay 1h --start-by 3h --max-runtime 90s --trace '00-ab-cd-01 x=1'
run 0 taskctl -o json get "$id" --fields phase,max_runtime_ms,trace
out '{"phase":"scheduled","max_runtime_ms":90000,"trace":"00-ab-cd-01 x=1"}'
run 0 taskctl get "$id"
out_has '^  not before .*\(in (59m|1h)'
out_has '^  start by .*\(in [23]h\)'
out_has '^  max runtime +90s'
out_has '^  trace +00-ab-cd-01 x=1'
run 0 taskctl list later
out_has 'due in (59m|1h)'
run 0 taskctl submit later --at 2030-01-02T03:04:05Z --start-by 2031-01-01T00:00:00Z \
    --max-runtime 1m --trace t --dry-run -o json
out_has '"at":"2030-01-02T03:04:05.000Z","start_by":"2031-01-01T00:00:00.000Z","max_runtime":"1m","trace":"t"'
cp out line.jsonl
run 0 taskctl submit --batch line.jsonl
run 0 taskctl -o json get "$(cat out)" --fields not_before,start_by,max_runtime_ms,trace
out '{"not_before":"2030-01-02T03:04:05.000Z","start_by":"2031-01-01T00:00:00.000Z","max_runtime_ms":60000,"trace":"t"}'
submit later --at 23:59:59
run 0 taskctl -o json get "$id" --fields phase
out '{"phase":"scheduled"}'

# What cannot be.
run 2 taskctl submit later --delay 1m --at 18:00
err_has 'only one of delay and at'
run 2 taskctl submit later --delay 1h --start-by 30m
err_has 'start_by is before the task may start \(delay\)'
run 2 taskctl submit later --at 2031-01-01 --start-by 2030-01-01
err_has 'start_by is before the task may start \(at\)'
run 2 taskctl submit later --start-by 2020-01-01
err_has 'start_by: that time has passed'
printf '{"queue":"later","label":{"a":"b"}}\n' >bad.jsonl
run 2 taskctl submit --batch bad.jsonl
err_has 'line 1: label is written "labels":'
run 2 taskctl submit later --at yesterday
err_has "must be a time: 18:00"
run 2 taskctl submit later --trace "$(printf 'a\tb')"
err_has 'trace must be printable ASCII'

# A delayed task is taken when its time has come, and lives on through a kill.
submit soon --delay 2s --data hi
delayed=$id
submit missed --start-by 8s
missed=$id
kill_broker
start_broker
run 0 taskctl -o json get "$missed" --fields start_by
out_lacks '"start_by":null'
spawn soon_worker taskctl work soon -- sh -c 'cat; echo'
run 0 taskctl wait --for 60s "$delayed"
run 0 taskctl result "$delayed"
out hi
run 0 taskctl -o json get "$delayed"
json attempt 1
run 8 taskctl wait --for 60s "$missed"
run 0 taskctl -o json get "$missed"
json attempt 0
out_has '"error":\{"code":-33005,'
signal soon_worker TERM
ended soon_worker 0

# An attempt that runs too long is stopped: it is told at half time, and by TASKMQ_FD why.
cat >slow <<'END'
#!/bin/bash
echo "$TASKMQ_TRACE $TASKMQ_MAX_RUNTIME_MS" >env
trap : TERM # it reads why first
while read -r line <&$TASKMQ_FD; do
    echo "$line" >>heard
    [ "$line" = max_runtime ] && exit 1
done
END
chmod +x slow
spawn slow_worker taskctl work slow -- ./slow
submit slow --max-runtime 2s --max-attempts 1 --trace tr
run 8 taskctl wait --for 60s "$id"
run 0 taskctl -o json get --events "$id"
out_has '"error":\{"code":-33003,"message":"the attempt ran longer than allowed"'
json dead true
eventually grep -qx max_runtime heard
grep -qx 'tr 2000' env || fail 'the environment lacks the trace or the bound'
grep -qx 'hurry 1' heard || fail 'it was not told to hurry'
signal slow_worker TERM
ended slow_worker 0
grep -q '1 stopped after their max_runtime' slow_worker.err || fail 'the worker does not say so'

# A broker that is killed while an attempt runs goes on counting, or its worker does.
spawn long_worker taskctl work long -- sh -c 'echo >runs; sleep 1000'
submit long --max-runtime 3s --max-attempts 1
eventually test -e runs
kill_broker
start_broker
run 8 taskctl wait --for 60s "$id"
run 0 taskctl -o json get "$id"
json failures 1
signal long_worker TERM
ended long_worker 0
