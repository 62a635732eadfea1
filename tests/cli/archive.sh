#!/bin/sh
# The archive: what is committed stands on another disk, and a restore brings a backup up to any
# moment, also across kills, while the archive was away, and up to what is damaged.
# shellcheck disable=SC2034,SC2154 # by eval, and in lib.sh
. "$(dirname "$0")/lib.sh"
mkdir archive
broker_options="--archive $room/archive"

# A moment between what was before and what comes behind.
moment ()
{
    sleep 0.01
    date -u +%Y-%m-%dT%H:%M:%S.%3NZ
    sleep 0.01
}
# The tasks of a directory are those named on stdin.
has_tasks ()
{
    sort >wanted
    mv .taskmq aside
    mv "$1" .taskmq
    kept_options=$broker_options
    broker_options=
    start_broker
    run 0 taskctl -o id list --all
    sort out >have
    cmp -s wanted have || fail "$1 has other tasks: $(diff wanted have)"
    [ $# -lt 2 ] || { run 0 taskctl payload "$2" && cmp -s out big; } || fail 'the large body is another one'
    stop_broker
    broker_options=$kept_options
    mv .taskmq "$1"
    mv aside .taskmq
}
carried ()
{
    taskctl -o json stats | grep -q '"archive_backlog_bytes":0[,}]'
}

start_broker
grep -q 'id=ARCHIVE-BEGUN' broker.err || eventually grep -q 'id=ARCHIVE-BEGUN' broker.err
submit q --data before
cp out all
run 0 taskctl backup b1.tar
submit q --data one
cat out >>all
head -c 400000 /dev/urandom >big
submit q --file big
cat out >>all
large=$(cat out)
first=$(moment)
cp all at_first
submit q --data two
cat out >>all
kill_broker # at once: the journal has what no segment has
start_broker
submit q --data three
cat out >>all
second=$(moment)
cp all at_second
kill_broker
start_broker # works on nothing
kill_broker
start_broker
for i in 1 2 3 4 5; do
    submit q --data "four $i"
    cat out >>all
done
run 0 taskctl backup b2.tar
submit q --data five
cat out >>all

# The archive goes away: work goes on, and what was done meanwhile comes when it is back.
mv archive away
submit q --data six
cat out >>all
eventually grep -q 'id=ARCHIVE-STALLED' broker.err
taskctl -o json stats | grep -q '"archive_stalled":1' || fail 'nothing says that the archive fails'
submit q --data seven
cat out >>all
kill_broker
mv away archive
start_broker
eventually carried
submit q --data eight
cat out >>all
third=$(moment)
cp all at_third
submit q --data nine
cat out >>all
stop_broker
[ -z "$(find archive -name '*.part')" ] || fail 'a broker that stopped left a segment open'
! grep -E 'ARCHIVE-(GAP|BROKEN|BLOB)' broker.err || fail 'something is not in the archive'

run 0 taskmqd --check --archive archive
out_has ': 0 findings$'
[ "$(grep -c '^history' out)" = 1 ] || fail 'it is not one history'

run 0 taskmqd --restore b1.tar --archive archive --data all_of_it
err_has 'id=RESTORED .* archived=[1-9]'
has_tasks all_of_it "$large" <all
run 0 taskmqd --check --data all_of_it
for when in first second third; do
    eval "time=\$$when"
    run 0 taskmqd --restore b1.tar --archive archive --until "$time" --data "until_$when"
    has_tasks "until_$when" "$large" <"at_$when"
done
run 0 taskmqd --restore b2.tar --archive archive --until "$third" --data later
has_tasks later "$large" <at_third
run 3 taskmqd --restore b2.tar --archive archive --until "$first" --data early
err_has 'take an older backup'
mkdir nothing
run 3 taskmqd --restore b1.tar --archive nothing --data early
err_has 'archive nothing: has nothing of the broker that made this backup'
run 2 taskmqd --restore b2.tar --until "$first" --data early
run 2 taskmqd --restore b2.tar --archive archive --until yesterday --data early
run 2 taskmqd --until "$first" --archive archive
[ ! -e early ] || fail 'a refused restore left its directory'

# One that is damaged is named, and up to it everything can be had.
broken=$(find archive -name '*-0000000004-*.seg' | sort | tail -n 1)
printf X | dd of="$broken" bs=1 seek=200 conv=notrunc 2>/dev/null
run 15 taskmqd --check --archive archive
out_has "$(basename "$broken") is damaged"
run 9 taskmqd --restore b1.tar --archive archive --data early
err_has "$(basename "$broken") is damaged"
[ ! -e early ] || fail 'a refused restore left its directory'
upto=$(sed -n 's/.*there up to \([-0-9T:.]*Z\).*/\1/p' err)
run 0 taskmqd --restore b1.tar --archive archive --until "$upto" --data early
has_tasks early <at_second

# The restored broker begins a history of its own, which needs a backup of its own.
mv .taskmq old
mv early .taskmq
start_broker
submit q --data new
taskctl -o id list --all | sort >all
run 0 taskctl backup b3.tar
submit q --data newer
cat out >>all
stop_broker
[ "$(grep -c 'id=ARCHIVE-BEGUN' broker.err)" = 2 ] || fail 'the new history did not begin'
run 0 taskmqd --restore b3.tar --archive archive --data new
has_tasks new <all

# What cannot be an archive is refused, and nothing is made.
run 3 taskmqd --data .taskmq --archive nowhere
run 3 taskmqd --data .taskmq --archive .taskmq/blobs
err_has 'lies in the data directory'
run 3 taskmqd --data .taskmq --archive b1.tar
run 2 taskmqd --store memory --archive archive
