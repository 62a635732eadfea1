#!/bin/sh
# shellcheck disable=SC2016 # the shells of the programs expand these
# submit: payloads, options, repeats, --wait, and what the broker refuses.
. "$(dirname "$0")/lib.sh"
start_broker

# Payloads in, payloads out.
submit q --data 'hello'
run 0 taskctl payload "$id"
printf hello | cmp -s - out || fail 'the payload is not hello'
printf 'a\0b\377\n' >bytes
submit q --file bytes
run 0 taskctl payload "$id"
cmp -s bytes out || fail 'a payload of bytes came back changed'
id=$(taskctl submit q - <bytes) || fail 'submit from stdin'
run 0 taskctl payload "$id"
cmp -s bytes out || fail 'a payload from stdin came back changed'
submit q
run 0 taskctl payload "$id"
[ ! -s out ] || fail 'the payload is not empty'

# The largest payload that fits a frame, and one byte more; the same of a line.
head -c 262144 /dev/zero >largest
submit q --file largest
run 0 taskctl payload "$id"
cmp -s largest out || fail 'the largest payload came back changed'
head -c 262145 /dev/zero >larger
submit q --file larger
run 0 taskctl payload "$id"
cmp -s larger out || fail 'a payload that is larger than a frame came back changed'
tr '\0' x <larger >line
run 0 taskctl submit q --lines line
run 0 taskctl payload "$(cat out)"
cmp -s line out || fail 'a line that is larger than a frame came back changed'

# Every option is seen in the record.
submit q --data '{"n":1}' --session s1 --priority 7 --ttl 2h --method render --content-type \
    application/json --label a=1 --label b=two --meta '{"k":[1,2]}' --max-attempts 5 --backoff 2s \
    --lease 1m --poll-interval 3s --dedup-key k1
run 0 taskctl -o json get --payload "$id"
golden submit-options.json
submit q --ttl 0
run 0 taskctl -o json get "$id"
json ttl_ms null
json expires_at null

# The same key or id with the same content is the same task, with other content a conflict.
submit q --data x --dedup-key k2
first=$id
run 0 taskctl submit q --data x --dedup-key k2
out "$first"
err_has 'exists already, it is queued'
run 0 taskctl -o json submit q --data x --dedup-key k2
json existing true
json task_id "\"$first\""
run 6 taskctl submit q --data other --dedup-key k2
err_has '^hint: the same id or key'
own=01890000-0000-7000-8000-0000000000aa
run 0 taskctl submit q --data x --id $own
out $own
run 0 taskctl submit q --data x --id $own
out $own
run 6 taskctl -o json submit q --data y --id $own
err_has '"code":"CONFLICT"'

# A request id repeats a submit: the second one makes no second task.
request=01890000-0000-7000-8000-0000000000bb
hex=$(printf %s "$request" | tr -d -)
run 0 taskctl --request-id "$hex" submit once --data x
out $request
run 0 taskctl --request-id "$hex" submit once --data x
out $request
run 0 taskctl count --queue once
out 1

# A namespace is a world of its own.
run 0 taskctl -n other submit q --data x
other=$(cat out)
run 5 taskctl get "$other"
run 0 taskctl -n other get "$other"
run 0 env TASKMQ_NAMESPACE=other taskctl get "$other"

# --wait: the result on stdout, the id on stderr, the task's end as exit code.
spawn worker taskctl work jobs -- sh -c 'read -r line; echo "got $line"; [ "$line" = good ]'
run 0 taskctl submit jobs --data good --wait --for 60s
out 'got good'
err_has '^[0-9a-f-]{36}$'
run 8 taskctl submit jobs --data bad --wait --for 60s --max-attempts 1
err_has 'failed for good'
err_has 'exit status 1 \(code 1\)'
run 7 taskctl submit nobody --data x --wait --for 200ms
err_has 'has not ended in 200ms'
signal worker TERM
ended worker 0

# What is wrong with a label is said.
run 2 taskctl submit q --label "a=$(printf '%257s' x)"
err_has 'must be NAME=VALUE, the name 1 to [0-9]* of .*, the value at most 256 bytes$'
