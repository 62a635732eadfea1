#!/bin/sh
# audit: the record of deeds is whole across kills, and what was done to it shows.
. "$(dirname "$0")/lib.sh"
start_broker
data=.taskmq

# What was done stands there, and head is where it stands.
run 0 taskctl audit tail
out_has 'audit.begun .*generation [0-9a-f]{16}, epoch 1'
out_has 'broker.started .*epoch 1'
out_has 'listen .*taskmqd.ipc +ok: ipc'
run 0 taskctl -o jsonl audit tail --kind listen
out_lines 1
out_has '^\{"n":3,"at":"[^"]*","kind":"listen","actor":null,.*,"prev":"[0-9a-f]{64}"\}$'
run 0 taskctl audit tail --kind listen --actor nobody
out_lines 0
err 'no such lines'
run 0 taskctl -q audit tail --kind listen --actor nobody
[ ! -s err ] || fail 'not quiet'
run 0 taskctl audit tail --since 1h
out_has '^AT  *KIND  *ACTOR  *FROM  *OBJECT  *OUTCOME$'
out_lines 4
# Each outcome stands below its head.
at=$(sed -n '1s/OUTCOME$//p' out | tr -d '\n' | wc -c)
run 0 sh -c "TZ=XST-5 taskctl audit tail --since 1h | cut -c $((at + 1))-"
out_has '^OUTCOME$'
[ "$(grep -c '^ok' out)" -ge 2 ] || fail 'the outcomes are no column'
# Times are those of the reader, and JSON has them in UTC.
run 0 sh -c 'TZ=UTC taskctl audit tail --limit 1 | tail -n 1 | cut -c 12-13; TZ=XST-5 taskctl audit tail --limit 1 | tail -n 1 | cut -c 12-13'
[ "$((($(sed -n 1p out | sed "s/^0//") + 5) % 24))" -eq "$(sed -n 2p out | sed 's/^0//')" ] || fail 'not the time of the reader'
run 0 taskctl audit tail --limit 1
out_lines 2
run 2 taskctl audit tail --kind lisen
err_has 'kind: the record has no "lisen"; did you mean listen\?'
run 2 taskctl audit tail --kind foo
err_has '^hint: kinds are key.revoked, .*taskctl\(1\) has them all$'
run 0 taskctl audit head
head=$(cut -d ' ' -f 2 out)

# Of a kill nothing is to be seen but the next start.
kill_broker
printf '{"n":4,"at":"20' >>$data/audit.jsonl
run 0 taskctl audit verify
err_has 'half written'
start_broker
run 0 taskctl audit tail --kind audit.torn
out_has '15 bytes'
run 0 taskctl audit verify $data --head "$head"
out_has '^audit: lines 1 to 6 are whole$'
out_has '^events: lines 1 to 1 are whole$'
err_has 'your head is that of line 3$'

# A follower sees what is added.
spawn follower taskctl -o jsonl audit tail -f --kind backup
run 0 taskctl backup b.tar
eventually grep -q '"kind":"backup".*"outcome":"ok"' follower.out
signal follower TERM
ended follower 143
stop_broker
run 0 taskctl audit verify $data
last=$(sed -n 's/^audit: head \([0-9]*\) .*/\1/p' out)

# refused WHAT: the file ./changed, which is not what it was.
refused ()
{
    run 1 taskctl audit verify changed
    out_has "$1"
    run 1 taskctl -o json audit verify changed
    json fault_n "$2"
}
sed '2s/broker.started/broker.stopped/' $data/audit.jsonl >changed
refused '^changed:2: line 2 was changed$' 2
sed 3d $data/audit.jsonl >changed
refused '^changed:3: line 3 is missing here$' 3
awk 'NR == 3 {third = $0; next} {print} NR == 4 {print third}' $data/audit.jsonl >changed
refused '^changed:3: line 3 is not here, but at changed:4$' 3
sed '1s/.*/x/' $data/audit.jsonl >changed
refused '^changed:1: line 1 was not written by a broker$' 1
# Of the end nothing in the file speaks, but a head does.
sed "${last}d" $data/audit.jsonl >changed
run 0 taskctl audit verify changed
run 1 taskctl audit verify changed --head "$(taskctl audit verify $data | sed -n 's/^audit: head [0-9]* //p')"
out_has 'no line has this head'
run 0 taskctl audit verify changed --head "$head"

# Several files are one chain, in their order only.
head -n 3 $data/audit.jsonl >one
tail -n +4 $data/audit.jsonl >two
run 0 taskctl audit verify one two
run 1 taskctl audit verify two one
run 0 taskctl audit verify two
out_has '^lines 4 to '
err_has '^it begins at line 4, inside of a file: nothing is said of the lines before$'
# A head proves what is there, not what is not.
run 1 taskctl audit verify two --head "$(sed -n 's/^head [0-9]* //p' out)"

# A file is turned while all are verified: it is read when it has another beginning. A pipe that is
# named is read; it says when the others have been looked at.
mkdir turned
head -n 2 $data/audit.jsonl >turned/audit-0001.jsonl
sed -n 3p $data/audit.jsonl >turned/audit.jsonl
mkfifo newest
spawn verifier taskctl audit verify turned newest
exec 3>newest
mv turned/audit.jsonl turned/audit-0002.jsonl
sed -n 4p $data/audit.jsonl >turned/audit.jsonl
tail -n +5 $data/audit.jsonl >file
mv file newest
cat newest >&3
exec 3>&-
ended verifier 0

# What a directory has in place of a file is not waited for.
mkdir pipes
mkfifo pipes/audit.jsonl
run 2 taskctl audit verify pipes
err_has '^taskctl: cannot read pipes/audit.jsonl: it is no regular file \(a pipe is read when it is named\)$'
mkdir pipes/audit-0001.jsonl
rm pipes/audit.jsonl
run 2 taskctl audit verify pipes

# A file that was turned is packed, here one that a kill left plain, and is read as before.
mv $data/audit.jsonl $data/audit-0001.jsonl
start_broker
eventually test ! -e $data/audit-0001.jsonl
[ -e $data/audit-0001.jsonl.zst ] || fail 'it is not packed'
run 0 taskctl -o jsonl audit tail --since 1h --kind audit.begun
out_has '^\{"n":1,'
run 0 taskctl audit verify --head "$head"
out_has '^audit: lines 1 to '
err_has 'your head is that of line 3$'
run 0 taskctl audit verify $data/audit-0001.jsonl $data/audit.jsonl
run 1 taskctl audit verify $data/audit.jsonl $data/audit-0001.jsonl.zst
# One that is damaged is named, by both.
size=$(wc -c <$data/audit-0001.jsonl.zst)
head -c $((size - 9)) $data/audit-0001.jsonl.zst >cut.zst
cp cut.zst $data/audit-0001.jsonl.zst
run 1 taskctl audit verify
err_has 'audit-0001.jsonl.zst: from its beginning on: it is damaged'
run 1 taskctl audit tail --since 1h
err_has 'at its file 1: it is damaged'
run 0 taskctl audit tail
cp $data/audit.jsonl plain.zst
run 1 taskctl audit verify plain.zst
err_has 'not packed by zstd'
rm $data/audit-0001.jsonl.zst
stop_broker

# A file that was emptied is told, alone and among others.
: >audit.jsonl
run 1 taskctl audit verify audit.jsonl
out_has '^audit.jsonl is empty: '
run 1 taskctl -o json audit verify audit.jsonl
json empty '["audit.jsonl"]'
rm audit.jsonl
cp -r $data emptied
run 0 taskctl audit verify emptied
: >emptied/audit.jsonl
run 1 taskctl audit verify emptied
out_has '^audit: emptied/audit.jsonl is empty: '
rm -r emptied

# Mistakes.
run 2 taskctl audit verify nowhere
run 2 taskctl audit verify --head 12 one
run 5 taskctl audit verify .
run 2 taskctl -o json audit tail
(cd / && run 2 taskctl audit verify) || exit 1

# Without a record there is none.
rm -rf .taskmq
printf 'audit\n    file = off\n' >conf
broker_options='-c conf'
start_broker
run 1 taskctl audit head
err_has 'keeps no record'
[ ! -e $data/audit.jsonl ] || fail 'there is a record'
stop_broker
