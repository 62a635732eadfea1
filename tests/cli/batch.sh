#!/bin/sh
# submit --batch: all lines are checked first, then one line of output per line of input.
. "$(dirname "$0")/lib.sh"
start_broker

cat >good.jsonl <<'END'
{"queue":"q","data":"text"}
{"queue":"q","data":{"base64":"AAH/"},"priority":9}
{"queue":"q","data":{"any":["JSON",1.5,null]},"ttl":"2h","labels":{"a":"1"},"meta":{"b":2}}
{"queue":"q","data":[1, 2]}
{"queue":"q","data":7,"max_attempts":1,"session":"s","dedup_key":"k","method":"m"}

{"queue":"q","id":"01890000-0000-7000-8000-0000000000cc"}
END
run 0 taskctl submit --batch good.jsonl
out_lines 6
out_lacks '^$'
cp out ids
payload ()
{
    run 0 taskctl payload "$(sed -n "$1p" ids)"
}
payload 1
printf text | cmp -s - out || fail 'payload 1'
payload 2
printf '\0\001\377' | cmp -s - out || fail 'payload 2'
payload 3
printf '{"any":["JSON",1.5,null]}' | cmp -s - out || fail 'payload 3'
payload 4
printf '[1,2]' | cmp -s - out || fail 'payload 4'
payload 5
printf 7 | cmp -s - out || fail 'payload 5'
[ "$(sed -n 6p ids)" = 01890000-0000-7000-8000-0000000000cc ] || fail 'id 6'
run 0 taskctl -o json get "$(sed -n 3p ids)"
json ttl_ms 7200000
json labels '{"a":"1"}'
json meta '{"b":2}'

# From stdin, as JSON.
taskctl -o jsonl submit --batch - <good.jsonl >out 2>err || fail 'from stdin'
out_lines 6
golden batch.jsonl
err_has '^2 existed already$'

# Numbers keep their digits, and what a parser has no room for is passed on.
printf '%s\n' '{"queue":"odd","data":[0.1, 1.10,12345678901234567890, 1e999],"meta":{"n":0.10}}' \
    '{"queue":"odd","data":12345678901234567890}' '{"queue":"odd","data":"\u00e9"}' >odd.jsonl
run 0 taskctl -q submit --batch odd.jsonl
run 0 taskctl export --queue odd --fields payload,meta
out '{"payload":"é","meta":null}
{"payload":"12345678901234567890","meta":null}
{"payload":"[0.1,1.10,12345678901234567890,1e999]","meta":{"n":0.10}}'

# A broken line is named, and nothing is submitted.
broken ()
{
    printf '{"queue":"bad"}\n%s\n' "$1" >bad.jsonl
    run 2 taskctl submit --batch bad.jsonl
    out_lines 0
    err_has "^taskctl: line 2: $2"
    err_has '^nothing was submitted$'
}
broken '{"queue":"bad"' '.'
broken '[1]' 'it must be a JSON object'
broken '{"data":"x"}' 'queue is missing'
broken '{"queue":"a b"}' 'queue must be'
broken '{"queue":"bad","queue":"worse"}' 'duplicate'
broken '{"queue":"bad","later":"5m"}' "unknown key 'later'"
broken '{"queue":"bad","wait":true}' "unknown key 'wait'"
broken '{"queue":"bad","dedup-key":"x"}' "unknown key 'dedup-key'"
broken '{"queue":"bad","ttl":5}' 'ttl must be a string'
broken '{"queue":"bad","ttl":"5"}' "ttl '5' must be a duration"
broken '{"queue":"bad","priority":"5"}' 'priority must be a whole number'
broken '{"queue":"bad","priority":300}' "priority '300' must be"
for text in AA A=== 'AA=A' 'AA =' 'A-_/' 'AB=='; do
    broken "{\"queue\":\"bad\",\"data\":{\"base64\":\"$text\"}}" 'data: the base64 is not valid'
done
broken '{"queue":"bad","labels":{"a":1}}' "labels: 'a' must be"
broken '{"queue":"bad","meta":[]}' 'meta must be an object'
broken '{"queue":"bad","id":"x"}' 'the id must be a UUIDv7'
run 0 taskctl count --queue bad
out 0
run 2 taskctl submit --batch /nonexistent
run 2 taskctl submit --batch good.jsonl --ttl 5m
err_has 'does not go with --batch'
run 2 taskctl submit q --batch good.jsonl

# What the broker refuses leaves an empty line; the others are accepted.
cat >some.jsonl <<'END'
{"queue":"q","data":"one"}
{"queue":"q","data":"other content","dedup_key":"k"}
{"queue":"q","data":"three"}
END
run 9 taskctl submit --batch some.jsonl
out_lines 3
[ -z "$(sed -n 2p out)" ] || fail 'the refused line has an id'
err_has '^taskctl: line 2: '

# Many lines, more than travel at once: one id each, all different, all there.
# lines QUEUE COUNT: a batch.
lines ()
{
    awk -v queue="$1" -v count="$2" \
        'BEGIN {for (i = 1; i <= count; i++) printf "{\"queue\":\"%s\",\"data\":\"%d\"}\n", queue, i}'
}
lines many 2500 >many.jsonl
run 0 taskctl submit --batch many.jsonl
out_lines 2500
[ "$(sort -u out | wc -l)" -eq 2500 ] || fail 'ids are repeated'
run 0 taskctl count --queue many
out 2500

# The broker falls silent in the middle: what was asked and not answered is unknown and named, the
# rest is not tried, and every line of input has its line of output. The ids of the first slice do not
# fit into a pipe that nobody reads yet, so the second is not asked for before the broker is frozen.
lines silent 4500 >silent.jsonl
mkfifo pipe
exec 9<>pipe
spawn silent sh -c 'exec taskctl --timeout 5s submit --batch silent.jsonl >pipe 9<&-'
submitted ()
{
    [ "$(taskctl count --queue silent)" -ge 2048 ]
}
eventually submitted
kill -STOP "$broker_pid"
spawn reader head -n 4500 pipe
ended reader 0
cp out lines
ended silent 11
cp lines out
exec 9<&-
kill -CONT "$broker_pid"
out_lines 4500
err_has '^taskctl: line [0-9]+: no answer in time: task [0-9a-f-]{36} may have been submitted'
err_has '^taskctl: the broker does not answer: lines [0-9]+ to 4500 were not submitted$'
answered=$(grep -c . out)
unknown=$(grep -c 'may have been submitted' err)
eventually taskctl ping
there=$(taskctl count --queue silent) || fail 'count'
[ "$there" -ge "$answered" ] || fail "$answered answered, but $there are there"
[ "$there" -le $((answered + unknown)) ] || fail "$there are there of $answered and $unknown"

# One payload a line, with the options for each.
printf 'one\n\ntwo words\n{"queue":"other"}\n' >payloads
run 0 sh -c 'taskctl submit lined --lines - --label a=b --method m <payloads'
out_lines 3
cp out ids
run 0 taskctl count lined
out 3
run 0 taskctl payload "$(sed -n 2p ids)"
out_has '^two words$'
run 0 taskctl payload "$(sed -n 3p ids)"
out_has '^\{"queue":"other"\}$'
run 0 taskctl -o json get "$(sed -n 3p ids)" --fields method,label:a
out '{"method":"m","label:a":"b"}'
run 0 taskctl submit lined --lines payloads --dry-run
err_has '^3 tasks are fine; nothing was submitted$'
run 2 taskctl submit --lines payloads
err_has 'submit needs a queue'
run 2 taskctl submit lined --lines payloads --data x
err_has '.--data does not go with --lines'
run 2 taskctl submit lined - --lines payloads
run 2 taskctl submit lined --lines payloads --priority 300
head -c 17000000 /dev/zero | tr '\0' x >long # larger than limits/blob_bytes
run 9 taskctl submit lined --lines long
err_has 'line 1: 17000000 bytes, at most 16777216'
