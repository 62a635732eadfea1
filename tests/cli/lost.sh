#!/bin/sh
# A failover to an asynchronous standby that lacks acknowledged tasks: the command of docs/CLUSTER.md
# finds those in the files of the former owner, and no others; also when that was started again.
# shellcheck disable=SC2154,SC2317 # by lib.sh, and by eventually
. "$(dirname "$0")/lib.sh"

replicates="wal_level=replica max_wal_senders=5"
# shellcheck disable=SC2086 # options are words
start_postgres $replicates
copies=$(mktemp -d "/tmp/tmq-pg-$scenario.XXXXXX")
sh "$postgres_script" copy "$copies" "$postgres_home" 5432 || fail 'no standby'
# shellcheck disable=SC2086
spawn standby sh "$postgres_script" run "$copies" $replicates hot_standby=on
there ()
{
    "$postgres_programs/psql" -X -q -A -t -h "$copies" -U postgres -d taskmq -c "$1"
}
eventually there 'SELECT 1'

export TASKMQD_CLUSTER_LEASE=2s
export TASKMQ_ENDPOINT="ipc://$room/a/socket ipc://$room/b/socket"
broker ()
{
    spawn "$1" taskmqd --data "$room/$1/data" --listen "ipc://$room/$1/socket" --standby \
        --store postgresql --database "postgresql:///taskmq?host=$postgres_home,$copies&user=taskmq"
    eventually grep -q -e id=READY -e id=DATABASE-STANDBY "$1.err"
}
# submit_some FILE: its ids, in their order, when they stand in the exports.
submit_some ()
{
    for number in 1 2 3; do
        taskctl submit mail --data "$1-$number" || fail submit
    done >"$1"
    eventually grep -q "$(tail -n 1 "$1")" a/data/events.jsonl
    eventually grep -q "$(tail -n 1 "$1")" a/data/tasks.jsonl
}
has_all () # the rows, too
{
    [ "$(sql 'SELECT count(*) FROM taskmq.journal')" = 0 ] &&
        [ "$(there 'SELECT count(*) FROM taskmq.task')" = "$1" ]
}
hears_nothing () { [ "$(there 'SELECT count(*) FROM pg_stat_wal_receiver')" = 0 ]; }

mkdir -m 700 a b
broker a
broker b
submit_some kept
removed=$(taskctl submit mail --ttl 1s --data removed) || fail submit
run 0 taskctl cancel "$removed"
is_removed () { [ "$(there 'SELECT count(*) FROM taskmq.tombstone')" = 1 ]; }
eventually is_removed
eventually has_all 3
there "ALTER SYSTEM SET primary_conninfo = ''"
there 'SELECT pg_reload_conf ()' >reloaded
eventually hears_nothing
submit_some gone

# --- the owner and its database die, and the standbys of both go on

signal a KILL
ended a 137
kill_postgres
there 'SELECT pg_promote (true, 60)' >promoted
eventually grep -q id=READY b.err
grep -q id=DATABASE-TIMELINE b.err || fail 'it goes on as if nothing were lost'

awk '/^### What was lost/ { here = 1 } here && /^```$/ { exit } code { print } here && /^```text/ { code = 1 }' \
    "$TASKMQ_SOURCE/docs/CLUSTER.md" | sed "s/^[\$>] //; s#/var/lib/taskmq#$room/a/data#" >commands
list_lost ()
{
    PATH="$PATH:$postgres_programs" PGHOST="$copies" PGUSER=postgres sh -e commands || fail "$(cat commands)"
    LC_ALL=C sort gone | cmp - lost || fail 'what is listed is not what was lost'
    grep -h -F -f lost a/data/tasks.jsonl* | grep -c '"payload":"gone-' >payloads
    [ "$(cat payloads)" = 3 ] || fail 'the payloads are not there'
}
list_lost

# --- the former owner has the database again, and keeps what it knew

broker a
eventually grep -q id=DATABASE-STANDBY a.err
signal b TERM
ended b 0
eventually grep -q id=READY a.err
new=$(taskctl submit mail --data new) || fail submit
eventually grep -q "$new" a/data/events.jsonl
eventually grep -q "$new" a/data/tasks.jsonl
is_written () { there "SELECT 'yes' FROM taskmq.task WHERE id = '$new'" | grep -q yes; }
eventually is_written
list_lost
signal a TERM
ended a 0
sh "$postgres_script" kill "$(cat standby.pid)"
wait "$(cat standby.pid)"
sh "$postgres_script" remove "$copies"
