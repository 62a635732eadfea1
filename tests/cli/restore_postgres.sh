#!/bin/sh
# A backup of a broker on SQLite, and what its archive has behind it, become the data of one on
# PostgreSQL: all of it, or nothing, whatever interrupts that.
# shellcheck disable=SC2016,SC2034,SC2119,SC2154 # by shells of programs, by eval, and in lib.sh
. "$(dirname "$0")/lib.sh"

start_postgres
mkdir archive
into="--store postgresql --database $database"

# A moment between what was before and what comes behind.
moment ()
{
    sleep 0.01
    date -u +%Y-%m-%dT%H:%M:%S.%3NZ
    sleep 0.01
}

# What changes with the time of the question, or counts since the start, is left out.
settled ()
{
    sed -E 's/"(recency|oldest_ready_ms|submitted|completed|failed|attempts_failed)":[0-9.]+,//g'
}

# asked FILE COMMAND...: what taskctl answers.
asked ()
{
    asked_for=$1
    shift
    taskctl "$@" >answer || fail "no answer to $*"
    settled <answer >"$asked_for"
}

# All that a client can ask for, into files of a directory.
snapshot ()
{
    mkdir "$1"
    taskctl export --bodies "$1/bodies" >"$1/export" || fail 'no export'
    taskctl -n other export >"$1/other" || fail 'no export of the other namespace'
    asked "$1/queue" -o json queue show parts
    asked "$1/session" -o json session show trip
    asked "$1/inputs" -o jsonl session input list trip
    asked "$1/context" -o json context list --session trip
    asked "$1/plan" context get plan --session trip
    asked "$1/mail" -o jsonl mail read planner --session trip
    asked "$1/schedule" -o json schedule show nightly
    asked "$1/labelled" -o id list --label album=summer
    asked "$1/agents" -o id list --agent cook
    taskctl get "$purged" >"$1/purged" 2>&1 && fail 'what was purged is there'
    taskctl artifact get "$told" film -o "$1/film" || fail 'no artifact'
    return 0
}

# same ONE OTHER: two snapshots, line by line.
same ()
{
    diff -r "$1" "$2" >difference || fail "they differ: $(head -c 2000 difference)"
}

tasks_of ()
{
    sql "SELECT coalesce ((SELECT count (*) FROM $1.task), 0)"
}

schemas ()
{
    sql "SELECT count (*) FROM pg_namespace WHERE nspname = '$1'"
}

# --- a life on SQLite

broker_options="--archive $room/archive"
start_broker
submit nobody
bare=$id
submit later --dedup-key one
later=$id
run 0 taskctl session set trip --goal 'a week' --salience 300 --context '{"days":7}'
run 0 taskctl session input add trip --source user --type text --data 'by train'
run 0 taskctl context put plan --session trip --data draft
run 0 taskctl mail send planner --session trip --data 'late' --type note
run 0 taskctl schedule add nightly reports --cron '30 3 * * *' --zone Europe/Berlin --data hello
run 0 taskctl queue set parts --max-tasks 20000
submit reports --data '{ "month": 11.50 }' --content-type application/json --session trip \
    --label album=summer --method m --meta '{"a":1.10}' --priority 7 --ttl 0 --max-attempts 5 \
    --parent "$bare" --after "$later:ignore" --lease 45s --backoff 2s
waiting=$id
submit told --data 'a text' --max-attempts 2 --backoff 1ms
told=$id
work_twice told "$told"
head -c 4000000 /dev/urandom >big
submit parts --file big
large=$id
submit gone
purged=$id
run 0 taskctl cancel "$purged"
run 0 taskctl purge "$purged"
run 0 taskctl -n other submit q --data there
awk 'BEGIN {for (i = 0; i < 3000; i++) printf "{\"queue\":\"parts\",\"data\":\"number %d\",\"labels\":{\"n\":\"%d\"}}\n", i, i}' >lines
sed -n 1,500p lines >few
run 0 taskctl submit --batch few
run 0 taskctl -o jsonl watch --since 0 --count 1
cursor=$(sed -n 's/.*"cursor":"\([0-9]*-[0-9]*\)".*/\1/p' out)
run 0 taskctl backup b.tar --with-keys

# ... and behind the backup, in the archive alone
submit later --data two
then=$(moment)
before_then=$(taskctl count)
submit later --data three
head -c 400000 /dev/urandom >bigger
submit parts --file bigger
run 0 taskctl cancel "$later"
run 0 taskctl submit --batch lines
snapshot on_sqlite
stop_broker

# --- into PostgreSQL

# shellcheck disable=SC2086 # options are words
run 0 taskmqd --restore b.tar --archive archive --data moved $into
out "now start it, with the other settings that it had: taskmqd --data moved --store postgresql --database '$database'"
err_has 'id=RESTORED .* archived=[1-9]'
test ! -e moved/taskmq.db || fail 'there are tables of SQLite, too'
test ! -e moved/.restoring || fail 'the mark is left'
test -s moved/instance || fail 'it is no directory of a broker on PostgreSQL'
test -s moved/server.key || [ ! -s .taskmq/server.key ] || fail 'the key is missing'
[ "$(sql 'SELECT count (*) FROM taskmq.blob WHERE whole')" -ge 3 ] || fail 'large bodies are not there'
run 3 taskmqd --data "$room/moved"
err_has 'its tasks are in PostgreSQL'

mv .taskmq sqlite
mv moved .taskmq
rm -rf .taskmq/blobs # of another machine: what the database has is enough
broker_options=$into
start_broker
snapshot on_postgresql
same on_sqlite on_postgresql
run 0 taskctl payload "$large"
cmp -s out big || fail 'a large body is another one'
run 6 taskctl submit later --dedup-key one --data other
run 0 taskctl -o jsonl watch --since "$cursor" --count 1
out_has '"kind":"gap"'
run 0 taskctl -o jsonl audit tail --kind broker.restored
out_lines 1
run 0 taskctl audit verify

# It works on: what waited for a task that has ended is done, and numbers go on.
run 0 taskctl work reports --drain -- cat
[ "$(status_of "$waiting")" = completed ] || fail 'what waited is not worked on'
submit fresh
newest=$(taskctl -q -o id list --limit 1)
[ "$newest" = "$id" ] || fail 'a new task is not the newest'
kill_broker
start_broker
run 0 taskctl list --limit 1 -o id
out "$newest"

# --- what is refused, with nothing touched

sum=$(sql 'SELECT count (*), max (number) FROM taskmq.task')
# shellcheck disable=SC2086
run 3 taskmqd --restore b.tar --data second $into
err_has 'schema taskmq is not empty'
test ! -e second || fail 'a refused restore left its directory'
[ "$(sql 'SELECT count (*), max (number) FROM taskmq.task')" = "$sum" ] || fail 'the database was changed'
stop_broker
sql 'CREATE SCHEMA theirs AUTHORIZATION taskmq; CREATE TABLE theirs.orders (a int)'
export TASKMQD_DATABASE_SCHEMA=theirs
# shellcheck disable=SC2086
run 3 taskmqd --restore b.tar --data second $into
err_has 'schema theirs is not empty'
export TASKMQD_DATABASE_SCHEMA=until
run 3 taskmqd --restore b.tar --data second --store postgresql --database "postgresql:///missing?host=$postgres_home&user=taskmq"
err_has 'id=DATA-ACCESS .*database .*missing.* does not exist'
test ! -e second || fail 'a refused restore left its directory'
head -c 100000 b.tar >cut.tar
# shellcheck disable=SC2086
run 9 taskmqd --restore cut.tar --data second $into
[ "$(schemas until)" = 0 ] || fail 'a damaged backup left a schema'
test ! -e second || fail 'a refused restore left its directory'

# Up to a moment; into a schema that somebody made for the role.
sql 'CREATE SCHEMA until AUTHORIZATION taskmq'
# shellcheck disable=SC2086
run 0 taskmqd --restore b.tar --archive archive --until "$then" --data second $into
out_has '^now start it, .*: TASKMQD_DATABASE_SCHEMA=until taskmqd --data second '
mv .taskmq first
mv second .taskmq
start_broker
[ "$(taskctl count)" = "$before_then" ] || fail "there are $(taskctl count) tasks, not $before_then"
stop_broker

# --- what interrupts it

# A database that is away costs nothing, and the next try needs nothing.
export TASKMQD_DATABASE_SCHEMA=again
stop_postgres
# shellcheck disable=SC2086
run 10 taskmqd --restore b.tar --archive archive --data again $into
test ! -e again || fail 'a restore without a database left its directory'
start_postgres

# Killed anywhere: the database has all of it or nothing, and no broker starts on what is left.

# Sessions of a restore, of which something is true.
sessions ()
{
    sql "SELECT count (*) FROM pg_stat_activity WHERE application_name LIKE 'taskmq restore%' AND $1"
}
# The restore writes, or has ended.
writes_or_ended ()
{
    [ "$(sessions 'backend_xid IS NOT NULL')" != 0 ] || ! kill -0 "$(cat restore.pid)"
}
# The server ends the session that has lost its client.
no_session ()
{
    [ "$(sessions true)" = 0 ]
}
# what_is_left DIR: behind a kill, in the database's schema of this name, too.
what_is_left ()
{
    if [ -e "$1/.restoring" ]; then
        # shellcheck disable=SC2086
        run 3 taskmqd --data "$room/$1" $into
        err_has 'restore'
    fi
    [ -e "$1/instance" ] || [ "$(schemas "$1")" = 0 ] || fail 'half of it is there'
}
# once_more DIR: it comes to its end, if it has not.
once_more ()
{
    interrupted=
    [ ! -e "$1/.restoring" ] || interrupted=yes
    [ -n "$interrupted" ] || [ ! -e "$1/instance" ] || return 0
    # shellcheck disable=SC2086
    run 0 taskmqd --restore b.tar --archive archive --data "$1" $into
    [ -z "$interrupted" ] || err_has 'id=RESTORE-AGAIN'
    test ! -e "$1/.restoring" || fail 'the mark is left'
}

for pause in 0.02 0.1 written; do
    # shellcheck disable=SC2086
    spawn restore taskmqd --restore b.tar --archive archive --data again $into
    case "$pause" in
    written) eventually writes_or_ended ;;
    *) sleep "$pause" ;;
    esac
    kill -KILL "$(cat restore.pid)" 2>/dev/null # which may have ended
    wait "$(cat restore.pid)"
    eventually no_session
    what_is_left again
    [ ! -e again/instance ] || break
done
once_more again

# The same when the database dies: that transaction is over.
export TASKMQD_DATABASE_SCHEMA=died
# shellcheck disable=SC2086
spawn restore taskmqd --restore b.tar --archive archive --data died $into
eventually writes_or_ended
kill_postgres
wait "$(cat restore.pid)"
start_postgres
what_is_left died
once_more died

# A crash behind the commit: the next try finds that it is done. The mark says which history it was.
mkdir died/.restoring
printf '%016x\n' "$(sql 'SELECT generation FROM died.shard')" >died/.restoring/generation
# shellcheck disable=SC2086
run 3 taskmqd --data "$room/died" $into
rm -f died/audit.jsonl
# shellcheck disable=SC2086
run 0 taskmqd --restore b.tar --archive archive --data died $into
err_has 'id=RESTORE-AGAIN .*the database has all of it'
mv .taskmq third
mv died .taskmq
start_broker
snapshot at_last
same on_sqlite at_last
stop_broker

# A crash before the commit: what was put into the directory is put there anew.
export TASKMQD_DATABASE_SCHEMA=anew
mkdir -p new/.restoring new/blobs/aa
printf '%016x\n' 4711 >new/.restoring/generation
echo stray >new/blobs/aa/stray
cp .taskmq/instance new/instance
# shellcheck disable=SC2086
run 0 taskmqd --restore b.tar --archive archive --data new $into
err_has 'id=RESTORE-AGAIN .*began anew'
test ! -e new/blobs/aa/stray || fail 'something of the restore before is left'
[ "$(tasks_of anew)" = "$(tasks_of died)" ] || fail 'tasks are missing'
