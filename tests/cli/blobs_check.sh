#!/bin/sh
# --check reads the blobs: what is missing, damaged or cut off is told with its name; what no task
# names is told and is no damage. A damaged one does not make a backup useless: it is left out.
. "$(dirname "$0")/lib.sh"

# file_of FILE: where its bytes lie.
file_of ()
{
    b2sum -l 256 "$1" | sed 's|^\(..\)\([^ ]*\).*|blobs/\1/\2|'
}

for name in one two three; do
    yes "this is $name" | head -c 300000 >$name
done
start_broker
for name in one two three; do
    run 0 taskctl submit q --file $name
    cp out $name.id
done
run 0 taskctl submit q --file one
again=$(cat out)
for _ in 1 2 3 4 5 6 7; do
    run 0 taskctl -n other submit q --file two
done
stop_broker
run 0 taskmqd --check --data .taskmq
out_has ', 3 blobs and .*: no damage$'

# What nobody names.
yes orphan | head -c 400000 >left
mkdir -p ".taskmq/$(dirname "$(file_of left)")"
cp left ".taskmq/$(file_of left)"
run 0 taskmqd --check --data .taskmq
out_has '^1 blob no task names .390K.: a broker removes'
out_has ', 3 blobs and .*: no damage$'

printf X | dd of=".taskmq/$(file_of one)" bs=1 seek=1000 conv=notrunc 2>dd.err
mv ".taskmq/$(file_of two)" kept
truncate -s 299999 ".taskmq/$(file_of three)"
run 15 taskmqd --check --data .taskmq
out_has "^$(file_of one): is damaged: its bytes are not those of its name; 2 tasks name it: $(cat one.id), $again\$"
out_has "^$(file_of two): is missing; 8 tasks name it: $(cat two.id), ([0-9a-f-]{36} \(namespace other\),? ?){4} and 3 more\$"
out_has "^$(file_of three): has 299999 bytes in place of 300000; 1 task names it: $(cat three.id)\$"
out_has ': 3 findings$'
out_lacks 'is good$'

# Each is the trouble of its own tasks alone, and a backup has all the others.
mv kept ".taskmq/$(file_of two)"
start_broker
run 1 taskctl payload "$(cat one.id)"
err_has 'is damaged'
run 1 taskctl payload "$(cat three.id)"
err_has 'is damaged'
run 0 taskctl payload "$(cat two.id)"
cmp -s out two || fail 'the undamaged payload is another one'
run 9 taskctl backup b.tar
err_has '^taskctl: b\.tar lacks 2 large bodies that tasks name: they are missing or damaged'
tar -xOf b.tar MANIFEST | grep -qx 'lacks 2' || fail 'the manifest does not tell what is lacking'
run 0 taskctl doctor
out_has '^warning +blobs +the newest backup lacks'
out_has '^warning +blobs +large bodies could not be'
grep -q 'id=BLOB-DAMAGED .* blobs=2' broker.err || fail 'the log does not tell what the backup lacks'
stop_broker
mv .taskmq old
run 0 taskmqd --restore b.tar --data .taskmq
err_has 'id=RESTORED-BLOBS .* missing=2'
run 15 taskmqd --check --data .taskmq
out_has "^$(file_of one): is missing; 2 tasks name it: $(cat one.id), $again\$"
out_has "^$(file_of three): is missing; 1 task names it: $(cat three.id)\$"
out_has ': 2 findings$'
start_broker
run 0 taskctl payload "$(cat two.id)"
cmp -s out two || fail 'the restored payload is another one'
run 1 taskctl payload "$(cat one.id)"
err_has 'is missing'
run 9 taskctl -o json backup again.tar # what is missing is told as what is damaged
err_has 'lacks 2 large bodies'
run 0 taskctl get "$(cat one.id)"

# Behind a kill, what waits in the journal counts: tasks that it brings, and those that it removes.
yes 'this is four' | head -c 300000 >four
run 0 taskctl submit q --file four
cp out four.id
submit q --file four
run 0 taskctl cancel "$id"
run 0 taskctl purge "$id"
kill_broker
rm ".taskmq/$(file_of four)"
run 15 taskmqd --check --data .taskmq
out_has "^$(file_of four): is missing; 1 task names it: $(cat four.id)\$"
