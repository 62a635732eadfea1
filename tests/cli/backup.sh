#!/bin/sh
# backup and --restore: what was acknowledged before comes back, also from a broker under load, and
# what is interrupted can be done again.
# shellcheck disable=SC2016 # the shells of the programs expand these
. "$(dirname "$0")/lib.sh"
start_broker

# Some megabytes, so that a copy takes more than one step.
awk 'BEGIN {for (i = 0; i < 3000; i++) {printf "{\"queue\":\"q\",\"data\":\""; for (j = 0; j < 200; j++) printf "%d-0123456789", i; print "\"}"}}' >lines
run 0 taskctl submit --batch lines
cp out all
run 0 taskctl watch --for 100ms
cursor=$(sed -n 's/.*--since \([0-9]*-[0-9]*\).*/\1/p' err | head -n 1)

# Whatever was acknowledged before a backup began is in it.
: >acked
spawn load sh -c 'while taskctl submit q --data x >>acked; do :; done'
eventually test -s acked
for round in 1 2 3 4; do
    lines=$(wc -l <acked)
    run 0 taskctl backup "b$round.tar"
done
head -n "$lines" acked | cat all - | sort >before
[ ! -e b4.tar.part ] || fail 'the name of a part is left'
[ "$(stat -c %a b4.tar)" = 600 ] || fail 'others can read the backup'
[ "$(find .taskmq/backups -name '*.tar' | wc -l)" -eq 3 ] || fail 'not three backups are kept'
tar -tf b4.tar >out
printf 'taskmq.db\nMANIFEST\n' | cmp -s - out || fail 'the backup holds something else'
tar -xOf b4.tar MANIFEST | grep -q '^tasks 3' || fail 'the manifest is not one'
signal load TERM

# A name that no backup can get costs none of those that are kept.
mkdir directory
find .taskmq/backups | sort >before_names
run 2 taskctl backup directory
err_has '^taskctl: directory is a directory: a backup is a file$'
err_lacks 'the broker keeps it'
echo precious >text
run 2 taskctl backup text
err_has '^taskctl: text is there, and is no backup: it stays as it is$'
[ "$(cat text)" = precious ] || fail 'a file that is no backup was replaced'
find .taskmq/backups | sort | cmp -s - before_names || fail 'a backup was made in vain'
kill_broker

run 0 taskmqd --restore b4.tar --data restored
out 'now start it, with the other settings that it had: taskmqd --data restored'
err_has 'id=RESTORED .* batch=[0-9]* newest=.* tasks=3'
mv .taskmq old
mv restored .taskmq
start_broker
run 0 taskctl -o id list --all
sort out >have
comm -23 before have >missing
[ ! -s missing ] || fail "$(wc -l <missing) tasks that were acknowledged are missing"
run 0 taskctl payload "$(sed -n 1500p all)"
[ "$(wc -c <out)" -gt 2000 ] || fail 'a payload is missing'
if [ -n "$cursor" ]; then
    run 0 taskctl -o jsonl watch --since "$cursor" --count 1
    out_has '"kind":"gap"'
fi
run 0 taskctl -o jsonl audit tail --kind broker.restored
out_lines 1
run 0 taskctl audit verify

# A broker that is killed while it makes one leaves nothing that matters.
for pause in 0 0.01 0.05 0.1 0.2; do
    spawn backup taskctl --timeout 1s backup killed.tar
    sleep $pause
    kill_broker
    wait "$(cat backup.pid)"
    start_broker
    [ ! -e .taskmq/backups/.tmp ] || fail 'the scratch directory is left'
done
rm -f killed.tar
run 0 taskctl backup b5.tar
stop_broker

# A restore that is killed is done again; no broker starts on what it left.
for pause in 0 0.005 0.01 0.02 0.05 0.1; do
    spawn restore taskmqd --restore b5.tar --data again
    sleep $pause
    kill -KILL "$(cat restore.pid)" 2>/dev/null
    wait "$(cat restore.pid)" 2>/dev/null
    if [ -e again/.restoring ]; then
        run 3 taskmqd --data again
        err_has 'did not come to its end'
    fi
    if [ ! -e again/.restoring ] && [ -e again/taskmq.db ]; then
        run 3 taskmqd --restore b5.tar --data again
        err_has 'is not empty'
    else
        rm -f again/taskmq.lock # of the broker that did not start
        run 0 taskmqd --restore b5.tar --data again
    fi
    run 0 taskmqd --check --data again
    rm -rf again
done

mkdir -p begun/.restoring
run 3 taskmqd --check --data begun
err_has 'did not come to its end: do it again'
out_lacks 'good'
mkdir foreign
run 3 taskmqd --check --data foreign
err_has 'is no data directory'

# What is no backup, or has no empty directory, leaves no trace.
run 2 taskmqd --restore b5.tar
err_has 'needs --data'
run 3 taskmqd --restore b5.tar --data .taskmq
err_has 'is not empty'
run 3 taskmqd --restore nowhere.tar --data again
head -c 100000 b5.tar >cut.tar
run 9 taskmqd --restore cut.tar --data again
run 3 taskmqd --restore lines --data again
ln -s /etc/passwd access
tar --format=ustar -cf link.tar access
run 3 taskmqd --restore link.tar --data again
err_has 'no plain file'
tar --format=ustar -P -cf up.tar ../"$(basename "$PWD")"/lines
run 3 taskmqd --restore up.tar --data again
err_has 'a path in its name'
[ ! -e again ] || fail 'a refused restore left its directory'

# The file is whole or not there.
start_broker
run 2 taskctl backup
run 2 taskctl backup -
[ ! -e - ] || fail "a file named -"
: >there
run 1 taskctl backup there/b.tar
run 0 taskctl backup b5.tar
run 0 taskmqd --restore b5.tar --data again
stop_broker

# A store that keeps nothing has nothing to give.
rm -rf .taskmq
broker_options='--store memory'
start_broker
submit q --data x
run 1 taskctl backup memory.tar
err_has 'memory'
[ ! -e memory.tar ] || fail 'there is a backup of nothing'
stop_broker
