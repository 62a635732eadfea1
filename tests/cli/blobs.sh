#!/bin/sh
# shellcheck disable=SC2016 # the shells of the programs expand these
# Payloads that are larger than a frame: in by file and by pipe, out again byte for byte, through a
# kill of the broker, a backup and a restore; what is too large, missing or damaged is named.
. "$(dirname "$0")/lib.sh"
start_broker

awk 'BEGIN {for (i = 0; i < 60000; i++) printf "%d and some more\n", i * 7919}' >large
cut -c1-5 large | head -n 45000 >edge # just above a frame
head -c 262144 large >frame
head -c 262145 large >above

for name in large edge frame above; do
    run 0 taskctl submit q --file $name
    cp out "$name.id"
    run 0 taskctl payload "$(cat $name.id)"
    cmp -s out $name || fail "$name is another one"
done
run 0 sh -c 'cat large | taskctl submit pipe -'
cp out pipe.id
run 0 sh -c 'taskctl submit q - <large'
run 0 sh -c 'head -c 100 large | taskctl submit q -'
run 0 taskctl payload "$(cat out)"
[ "$(wc -c <out)" -eq 100 ] || fail 'a short pipe is another one'

# More at once than one user may have under way: each waits until there is a place for it.
for n in $(seq 24); do
    { echo "$n" && cat large large; } >"once.$n"
done
run 0 sh -c 'seq 24 | xargs -P 24 -I@ taskctl submit once --file once.@'
[ "$(sort -u out | wc -l)" -eq 24 ] || fail 'not all were submitted'
rm once.*

# The same id again is the same task; with another file it is not.
id=$(cat large.id)
run 0 taskctl submit q --file large --id "$id"
err_has 'exists already'
run 6 taskctl submit q --file edge --id "$id"

run 0 taskctl -o json get --payload "$id"
json payload null
json payload_bytes "$(wc -c <large)"
out_has '"payload_hash":"[0-9a-f]{64}"'
run 0 taskctl export --format task "$id"
out_has '^  not here: taskctl payload ID -o FILE fetches it$'
# A dry run of it asks the broker whether it takes so much, and what it shows is no line of a batch.
run 0 taskctl submit q --file large --dry-run
out "{\"queue\":\"q\",\"data_bytes\":$(wc -c <large)}"
err_has '^nothing was submitted; the broker takes a payload of this length'
cp out line
run 2 taskctl submit --batch line
err_has "line 1: unknown key 'data_bytes'"
run 0 sh -c 'taskctl submit q - --dry-run <large'
run 2 sh -c 'taskctl submit q - --dry-run </dev/zero'
err_has 'standard input has more than 16777216 bytes'
truncate -s 17000000 sparse
run 2 taskctl submit q --file sparse --dry-run
err_has 'the file sparse is too large: 17000000 bytes, at most 16777216 .limits/blob_bytes.'

# Programs have it on stdin, or in their file.
kill_broker
start_broker
run 0 taskctl work pipe --max-tasks 1 -- sh -c 'cksum'
run 0 taskctl result "$(cat pipe.id)"
[ "$(cat out)" = "$(cksum <large)" ] || fail 'stdin was another one'
run 0 taskctl submit file --file large
cp out file.id
run 0 taskctl work file --payload-file --max-tasks 1 -- sh -c 'cksum <"$TASKMQ_PAYLOAD_FILE"'
run 0 taskctl result "$(cat file.id)"
[ "$(cat out)" = "$(cksum <large)" ] || fail 'the file was another one'

# Results: out of a program, through a kill of the broker, and out again. The answer to the end of
# an attempt may be that the broker, started again, wants to hear of the upload once more.
submit double
run 0 taskctl work double --drain -- sh -c 'cat large edge'
cat large edge >both
run 0 taskctl result "$id"
cmp -s out both || fail 'the result is another one'
run 0 taskctl -o json get "$id"
json result null
json result_bytes "$(wc -c <both)"
out_has '"result_hash":"[0-9a-f]{64}"'
run 0 taskctl get "$id"
out_has 'result  *1[0-9.]*M  application/octet-stream'
submit double
kill_broker
start_broker
spawn waiter taskctl result --wait "$id"
run 0 taskctl work double --drain -- sh -c 'cat edge large'
cat edge large >both
ended waiter 0
cmp -s out both || fail 'the result that was waited for is another one'
submit double --max-attempts 1
run 0 sh -c 'trap "" XFSZ; ulimit -f 600; taskctl work double --drain -- cat large'
run 8 taskctl result "$id"
err_has 'the result cannot be kept: File too large'

# Lines of a batch, large and small ones.
for name in large edge; do
    printf '{"queue":"lines","data":"%s"}\n' "$(tr '\n' ' ' <$name)"
    printf '{"queue":"lines","data":"small"}\n'
done >many
run 0 taskctl submit --batch many
out_lines 4
run 0 taskctl payload "$(sed -n 3p out)"
printf '%s' "$(tr '\n' ' ' <edge)" | cmp -s - out || fail 'a line of a batch is another one'
run 0 sh -c 'tr "\n" " " <large | taskctl submit lines --lines -'
run 0 taskctl payload "$(cat out)"
tr '\n' ' ' <large | cmp -s - out || fail 'a large line is another one'
printf '{"queue":"lines","data":"%s"}\n{"queue":"lines","data":"small"}\n' "$(yes 0123456789 | head -c 17000000 | tr '\n' ' ')" >many
run 9 taskctl submit --batch many
err_has 'line 1: .*limits/blob_bytes'
out_lines 2
[ -n "$(sed -n 2p out)" ] || fail 'a refused line keeps the others back'

id=$(cat large.id)

# Limits.
head -c 17000000 /dev/zero >huge
run 2 taskctl submit q --file huge
err_has 'the file huge is too large: .*17000000 bytes, at most 16777216 .limits/blob_bytes.'
err_has '^hint: .*limits/blob_bytes.* taskmqd was started with \(-c\); then: taskctl reload$'
run 2 taskctl submit q --file nothing
err_has 'cannot read nothing'

# A backup has them.
run 0 taskctl backup b.tar
tar -tf b.tar | grep -q '^blobs$' || fail 'the backup has no blobs'
tar -xOf b.tar MANIFEST | grep -q '^part blobs ' || fail 'the manifest does not name them'
stop_broker
mv .taskmq old
run 0 taskmqd --restore b.tar --data .taskmq
start_broker
run 0 taskctl payload "$id"
cmp -s out large || fail 'the restored payload is another one'

# What is damaged or missing is named, and its task stays readable.
hash=$(taskctl -o json get --payload "$id" | sed 's/.*"payload_hash":"\([0-9a-f]*\)".*/\1/')
file=.taskmq/blobs/$(echo "$hash" | cut -c1-2)/$(echo "$hash" | cut -c3-)
printf X | dd of="$file" bs=1 seek=1000 conv=notrunc 2>dd.err
run 1 taskctl payload "$id"
err_has "$hash is damaged"
err_has '^hint: the RUNBOOK says under BLOB-DAMAGED'
run 1 taskctl payload "$id" -o whole # of which nothing is worth to be kept
err_has "$hash is damaged"
err_lacks 'goes on from there'
[ -z "$(find . -name '.whole*.part')" ] || fail 'other bytes stay behind'
run 0 taskctl get "$id"
run 0 taskctl submit q --file large # whoever brings the bytes again mends it
run 0 taskctl payload "$id"
cmp -s out large || fail 'the mended payload is another one'
rm "$file"
run 1 taskctl payload "$id"
err_has "$hash is missing"
run 0 taskctl submit broken --file large --max-attempts 1
cp out broken.id
rm -f "$file"
run 0 taskctl work broken --max-tasks 1 -- cat
run 8 taskctl result "$(cat broken.id)"
err_has "$hash is missing"
