#!/bin/sh
# events.jsonl: every event once, as watch shows it, in a chain that shows what was done to it; and a
# database that lost events does not start.
. "$(dirname "$0")/lib.sh"
printf 'events\n    keep = 64K\n' >conf
broker_options='-c conf'
data=.taskmq

# upto POS: everything up to this position is in the files.
upto ()
{
    grep -qs "\"pos\":$1," $data/events*.jsonl
}
# Without what only the file has.
plain ()
{
    sed 's/^{"n":[0-9]*,"pos":[0-9]*,/{/; s/,"prev":"[0-9a-f]*"}$/}/'
}

start_broker
run 0 taskctl submit q --data 1
id=$(cat out)
run 0 taskctl cancel "$id"
eventually upto 2
spawn watcher taskctl -q -o jsonl watch --since 1h
shown () { [ "$(wc -l <watcher.out)" -eq 2 ]; }
eventually shown
signal watcher TERM
ended watcher 143
grep -v '"kind":"anchor"' $data/events.jsonl | plain >written
cmp -s written watcher.out || fail 'the file shows events in another way than watch'
head -n 1 $data/events.jsonl >out
out_has '^\{"n":1,"pos":0,"kind":"anchor","format":1,"generation":"[0-9a-f]{16}","first_pos":1,.*"why":"begun",.*"prev":"0{64}"\}$'

# Of a kill nothing is to be seen, and half a line is cut off.
kill_broker
printf '{"n":4,"pos":3,"ki' >>$data/events.jsonl
run 0 taskctl audit verify
err_has 'half written'
start_broker
run 0 taskctl submit q --data 2
eventually upto 3
run 0 taskctl audit verify $data/events.jsonl
out_has '^lines 1 to 4 are whole$'

# Files are turned when they are full, and stay one chain.
i=0
while [ $i -lt 3 ]; do
    i=$((i + 1))
    yes | head -n 200 | taskctl submit q --lines - >ids 2>err || fail 'not submitted'
    eventually upto $((3 + 200 * i))
done
[ -e $data/events-0000000000000001.jsonl ] || fail 'no file was turned'
run 0 taskctl -o jsonl audit verify $data
grep '"chain":"events"' out >events && mv events out
json fault null
json first 1
stop_broker
run 0 taskctl audit verify $data/events*.jsonl
head=$(sed -n 's/^head [0-9]* //p' out)
run 0 taskctl audit verify $data --head "$head"
err_has 'your head is that of line [0-9]*$'
logged=$(sed -n 's/.*id=EVENTS-HEAD.* hash=//p' broker.err | tail -n 1)
[ "$logged" = "$head" ] || fail 'the log has another head'

# refused RE: what was done to the copies in ./copy.
refused ()
{
    run 1 taskctl audit verify copy
    out_has "$1"
}
copy ()
{
    rm -rf copy
    mkdir copy
    cp $data/events*.jsonl copy
}
copy
sed '3s/"cancelled"/"completed"/' $data/events-0000000000000001.jsonl >copy/events-0000000000000001.jsonl
refused '^copy/events-0000000000000001.jsonl:3: line 3 was changed$'
copy
sed 3d $data/events-0000000000000001.jsonl >copy/events-0000000000000001.jsonl
refused '^copy/events-0000000000000001.jsonl:3: line 3 is missing here$'
copy
awk 'NR == 3 {third = $0; next} {print} NR == 4 {print third}' $data/events-0000000000000001.jsonl \
    >copy/events-0000000000000001.jsonl
refused '^copy/events-0000000000000001.jsonl:3: line 3 is not here, but at .*:4$'
# A file that is lost, and the end of one.
copy
lost=$(find copy -name 'events-*' | LC_ALL=C sort | sed -n 2p)
[ -n "$lost" ] || fail 'only one file was turned'
rm "$lost"
refused ':1: line [0-9]* is missing here$'
copy
sed '$d' $data/events-0000000000000001.jsonl >copy/events-0000000000000001.jsonl
refused ':1: line [0-9]* is missing here$'
copy
sed '$d' $data/events.jsonl >copy/events.jsonl
run 0 taskctl audit verify copy
run 1 taskctl audit verify copy --head "$head"
out_has 'no line has this head'

# A chain that is whole says nothing of events that nobody wrote into it.
cat >chain.py <<'END'
import hashlib, re, sys
n, prev = 0, bytes (32)
for line in open (sys.argv[1]):
    pos = int (re.match (r'{"n":\d+,"pos":(\d+),', line).group (1))
    if 4 <= pos <= 6 and sys.argv[2] == 'hole' or 4 <= pos < 6:
        continue
    line = re.sub (r'^{"n":\d+,', '', line.rstrip ('\n'))
    line = re.sub (r',"prev":"[0-9a-f]*"}$', '', line)
    if pos == 6 and sys.argv[2] == 'gap':
        line = '"pos":6,"kind":"gap","from":4,"to":6,"other_history":false'
    n += 1
    line = '{"n":%d,%s,"prev":"%s"}' % (n, line, prev.hex ())
    print (line)
    prev = hashlib.blake2b (prev + line.encode (), digest_size=32).digest ()
END
mkdir rewritten
for what in hole gap; do
    python3 chain.py $data/events-0000000000000001.jsonl $what >rewritten/events.jsonl
    run 1 taskctl audit verify rewritten
    out_has '^line 5 .*the events from 4 to 6 \(by their pos\)'
    out_has ' are whole$'
    err_has '^--accept events:5 passes over it'
    run 0 taskctl audit verify rewritten --accept events:5
    run 1 taskctl -o json audit verify rewritten
    out_has '"gaps":\[\{"n":5,"accepted":false,"message":"line 5 '
done
out_has 'tells of a loss: the database had lost or forgotten the events'

# An old copy of the database: the broker sees what it lacks.
mkdir old
cp $data/taskmq.db $data/journal.log old
start_broker
run 0 taskctl submit q --data 3
eventually upto 604
stop_broker
cp old/* $data
taskmqd --data "$room/.taskmq" -c conf >out 2>err
[ $? -eq 16 ] || fail 'it does not end with 16'
err_has 'id=STORE-ROLLBACK .*ends at event 603 \(by its pos\), events.jsonl and the files before it have them up to 604'
run 0 taskctl audit verify $data
run 16 taskmqd --check --data $data
out_has '^committed work was lost: the database ends at event 603 \(by its pos\), events.jsonl and the files before it have them up to 604$'
out_has ': 1 finding$'
broker_options='-c conf --accept-rollback'
start_broker
grep -q 'id=EVENTS-ROLLBACK' broker.err || fail 'the log does not say so'
run 0 taskctl audit tail --kind broker.restored
out_has 'rollback: events that the database lacked were given up'
run 0 taskctl submit q --data 4
anchored () { head -n 1 $data/events.jsonl | grep -q '"pos":603,.*"why":"rollback",.*"before_pos":604,'; }
eventually anchored
eventually grep -q '"pos":604,' $data/events.jsonl
stop_broker
broker_options='-c conf'
start_broker
stop_broker
run 0 taskctl audit verify $data
run 0 taskmqd --check --data $data
out_has ' 6[0-9]* lines of events.jsonl, .*: no damage$'
oldest=$data/events-0000000000000001.jsonl
cp $oldest kept
sed '3s/"queue":"q"/"queue":"p"/' kept >$oldest
run 15 taskmqd --check --data $data
out_has '/events-0000000000000001.jsonl:3: line 3 of the chain was changed$'
cp kept $oldest

# A database that is gone altogether is no new beginning.
mkdir lost
mv $data/taskmq.db* $data/journal.log lost
taskmqd --data "$room/.taskmq" -c conf >out 2>err
[ $? -eq 16 ] || fail 'an empty database takes the place of a lost one'
err_has 'id=STORE-ROLLBACK .*the database is an empty one, .* have events up to 604;'
rm -f $data/taskmq.db* $data/journal.log
cp lost/* $data

# Full files are packed by choice, and read as before.
printf 'events\n    keep = 64K\n    pack = on\n' >conf
start_broker
plain_ones () { find $data -name 'events-*.jsonl' | grep -q .; }
all_packed () { ! plain_ones; }
eventually all_packed
[ -e $data/events-0000000000000001.jsonl.zst ] || fail 'it is not packed'
run 0 taskctl audit verify $data
stop_broker
run 0 taskctl audit verify $data/events*

# What is taken away is begun anew, and no task is lost.
rm $data/events*
start_broker
eventually upto 604
run 0 taskctl audit verify $data
out_has '^events: lines 1 to 605 are whole$'
stop_broker

# Without it there is none.
rm -rf .taskmq
printf 'events\n    file = off\n' >conf
start_broker
run 0 taskctl submit q --data 1
stop_broker
[ ! -e $data/events.jsonl ] || fail 'there is a file'
