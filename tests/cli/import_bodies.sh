#!/bin/sh
# shellcheck disable=SC2016 # the shells of the programs expand these
# export --bodies and import --bodies: payloads and results that are larger than a frame go to
# another broker byte for byte; a file that is missing or has other bytes; an import that a kill cuts
# off is repeated.
. "$(dirname "$0")/lib.sh"
start_broker

# The order of a list is that in which they came here.
sorted ()
{
    without_events "$1" | sort
}

awk 'BEGIN {for (i = 0; i < 60000; i++) printf "%d and some more\n", i * 7919}' >large
{ echo first && cat large; } >other
run 0 taskctl submit waits --file large
waits=$(cat out)
run 0 taskctl submit large --file large --content-type text/plain
done=$(cat out)
run 0 taskctl work large --max-tasks 1 --result-type text/x-large -- sh -c 'echo first; cat'
run 0 taskctl submit small --data tiny
small=$(cat out)
run 0 taskctl work small --max-tasks 1 -- cat other
run 0 taskctl submit none --data nothing
run 0 taskctl submit fails --data 1 --max-attempts 1

# Each body once, under its hash, for its owner alone.
run 0 taskctl export --bodies bodies --file all.jsonl
[ "$(find bodies -type f | wc -l)" -eq 2 ] || fail 'not each body is there once'
large_hash=$(sed -n 's/.*"payload_hash":"\([0-9a-f]*\)".*/\1/p' all.jsonl | sed -n 1p)
cmp -s "bodies/$large_hash" large || fail 'the payload is another one'
[ "$(stat -c %a "bodies/$large_hash")" = 600 ] || fail 'others may read a body'
other_hash=$(sed -n 's/.*"result_hash":"\([0-9a-f]*\)".*/\1/p' all.jsonl | sed -n 1p)
cmp -s "bodies/$other_hash" other || fail 'the result is another one'

# Again: what is there stays; what was changed is fetched again.
touch -d '2020-01-01' "bodies/$large_hash"
printf x >>"bodies/$other_hash"
run 0 taskctl export --bodies bodies --file all.jsonl
[ "$(stat -c %Y "bodies/$large_hash")" -lt 1600000000 ] || fail 'a whole body was fetched again'
cmp -s "bodies/$other_hash" other || fail 'a body with other bytes stays'
# A pipe would be waited for, and what a link points to is not ours: both make way.
rm "bodies/$large_hash" "bodies/$other_hash"
mkfifo "bodies/$large_hash"
ln -s /dev/null "bodies/$other_hash"
run 0 timeout 60 taskctl export --bodies bodies --file all.jsonl
cmp -s "bodies/$large_hash" large || fail 'a body went into a pipe'
[ ! -L "bodies/$other_hash" ] || fail 'a link stays in place of a body'
cmp -s "bodies/$other_hash" other || fail 'a body went into a device'
run 2 taskctl export --bodies bodies --format csv
run 2 taskctl export --bodies bodies --redact common
err_has '^taskctl: --bodies writes bodies as they are'

# Without them, or with one that is missing or another one, nothing of its task comes.
empty_broker first
run 2 taskctl import all.jsonl
err_has '^taskctl: line [0-9]: payload of [0-9]+ bytes: export and import with --bodies DIR bring it along$'
run 0 taskctl count
out 0
cp -R bodies fewer
rm "fewer/$other_hash"
run 2 taskctl import all.jsonl --bodies fewer --dry-run
err_has "^taskctl: line [0-9]: result of [0-9]+ bytes: the file $other_hash is not in the directory of --bodies$"
tr 0 1 <other >"fewer/$other_hash"
run 9 taskctl import all.jsonl --bodies fewer --keep-going
err_has "^taskctl: line [0-9]: result of [0-9]+ bytes: the file $other_hash has other bytes: remove it, and export with --bodies again$"
err_has '^3 imported$'
err_has '^2 broken lines passed over$'
run 5 taskctl get "$done"

# The round trip, over what is here already.
run 0 taskctl import all.jsonl --bodies bodies
err_has '^2 imported$'
err_has '^3 here already, passed over$'
run 0 taskctl export --file back.jsonl
sorted all.jsonl >wanted
sorted back.jsonl >found
cmp -s wanted found || fail 'an import changes what was exported'
kill_broker
start_broker
for id in "$waits" "$done"; do
    run 0 taskctl payload "$id"
    cmp -s out large || fail 'a payload came back as another one'
done
for id in "$done" "$small"; do
    run 0 taskctl result "$id"
    cmp -s out other || fail 'a result came back as another one'
done
run 0 taskctl work waits --max-tasks 1 -- cksum
run 0 taskctl result "$waits"
[ "$(cat out)" = "$(cksum <large)" ] || fail 'its worker got another payload'

# What an import names stays as long as a task does, and is counted as of two.
stop_broker
run 0 taskmqd --check --data .taskmq
out_has 'no damage$'
start_broker

# A kill in the middle: what came is whole, and the same import goes on.
empty_broker second
spawn import taskctl import all.jsonl --bodies bodies
until [ -n "$(find .taskmq/blobs -type f)" ]; do sleep 0.01; done
kill_broker
kill -KILL "$(cat import.pid)" 2>/dev/null
wait "$(cat import.pid)" 2>/dev/null
start_broker
run 0 taskctl import all.jsonl --bodies bodies
run 0 taskctl export --file back.jsonl
sorted back.jsonl >found
cmp -s wanted found || fail 'what was cut off is not whole'
run 0 taskctl result "$done"
cmp -s out other || fail 'a result is another one after a kill'

# A body that the broker lost is told; the rest is exported, and imported when it is there.
stop_broker
rm ".taskmq/blobs/$(printf %.2s "$large_hash")/${large_hash#??}"
start_broker
run 9 taskctl export --bodies lost --file lost.jsonl
err_has 'of their bodies are missing'
[ "$(wc -l <lost.jsonl)" -eq 5 ] || fail 'a task is missing with its body'
