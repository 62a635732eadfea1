#!/bin/sh
# What a commit on PostgreSQL waits for (database/synchronous_commit), what becomes of one whose answer
# is lost, and what an operator is told of a database that could lose work, or keeps too much.
# shellcheck disable=SC2317 # eventually calls them
. "$(dirname "$0")/lib.sh"

broker_log () { grep -q "id=$1" broker.err; }
# start [NAME=VALUE...]: of the broker, with a log of its own
start ()
{
    rm -f broker.err
    # shellcheck disable=SC2034 # in lib.sh
    broker_options="--store postgresql --database $database"
    start_broker
}
counter () { taskctl -o json stats | grep -Eq "\"$1\":$2[,}]"; }

# --- a database that could lose work, and one that could not

replicates="wal_level=replica max_wal_senders=5"
# shellcheck disable=SC2086 # options are words
start_postgres $replicates
sums () # disable or enable
{
    stop_postgres
    "$postgres_programs/pg_checksums" "--$1" -D "$postgres_home/data" >sums 2>&1 || fail "$(cat sums)"
    # shellcheck disable=SC2086
    start_postgres $replicates
}
[ "$(sql 'SHOW data_checksums')" = off ] || sums disable
start
broker_log DATABASE-UNSUMMED || fail 'nobody says that there are no checksums'
broker_log DATABASE-UNREPLICATED || fail 'nobody says that no other server has the commits'
stop_broker
sums enable
start
broker_log DATABASE-UNSUMMED && fail 'there are checksums'
stop_broker

copy=$(mktemp -d "/tmp/tmq-pg-$scenario.XXXXXX")
sh "$postgres_script" copy "$copy" "$postgres_home" 5432 || fail 'no standby'
stop_postgres
# shellcheck disable=SC2086
start_postgres $replicates 'synchronous_standby_names=*'
# shellcheck disable=SC2086
start_standby () { spawn standby sh "$postgres_script" run "$copy" $replicates hot_standby=on; }
end_standby ()
{
    sh "$postgres_script" kill "$(cat standby.pid)"
    ended standby 137
}
on_standby () { "$postgres_programs/psql" -X -q -A -t -h "$copy" -U postgres -d taskmq -c "$1"; }
follows () { [ "$(sql "SELECT sync_state FROM pg_stat_replication")" = sync ]; }
start_standby
eventually follows
start
broker_log DATABASE-UNREPLICATED && fail 'another server has the commits'
stop_broker

# --- what a commit waits for: the other server's memory, its disk, or nothing of it

submitted () { taskctl submit "$1" --data x >out 2>err; }
# Whoever asks is told nothing, as long as what the commit waits for does not come.
held ()
{
    export TASKMQ_TIMEOUT=1s
    submitted "$1" && fail "$1: it is acknowledged"
    export TASKMQ_TIMEOUT=60s
}
paused () { [ "$(on_standby 'SELECT pg_get_wal_replay_pause_state ()')" = paused ]; }
pause ()
{
    on_standby 'SELECT pg_wal_replay_pause ()' >thrown
    eventually paused
}

# Somebody forgets a transaction: it takes a minute until that is told.
spawn forgotten "$postgres_programs/psql" -X -h "$postgres_home" -U taskmq -d taskmq -c 'SELECT pg_sleep (600)'

export TASKMQD_DATABASE_SYNCHRONOUS_COMMIT=remote_apply
start
counter database_pinned_ms 0 || fail 'the transaction is young'
broker_log DATABASE-PINNED && fail 'the transaction is young'
submitted applied || fail 'the other server has applied it'
pause
held unapplied
on_standby 'SELECT pg_wal_replay_resume ()' >thrown
submitted resumed || fail 'it applies again'
stop_broker

export TASKMQD_DATABASE_SYNCHRONOUS_COMMIT=on
start
pause
submitted written || fail 'the other server has it on its disk'
end_standby
held unwritten
newest () { grep -E 'id=DATABASE-(LOST|FOUND)' broker.err | tail -n 1 | grep -Eq "$1"; }
eventually newest 'LOST .*commits wait for a synchronous standby .synchronous_standby_names = \*., and none answers'

# ... one whose answer is lost is looked up, and is no second one: not before the other server has it
start_standby
eventually follows
submitted known || fail 'the other server has it on its disk again'
eventually newest 'FOUND .*it answers'
counter unknown_commits 0 || fail 'no answer was lost'
end_standby
waiting ()
{
    sql "SELECT pid FROM pg_stat_activity WHERE application_name LIKE 'taskmq commits %' AND
        wait_event = 'SyncRep'"
}
waits () { now=$(waiting) && [ -n "$now" ] && [ "$now" != "$before" ]; }
before=
spawn lost taskctl submit lost --data x
eventually waits
before=$(waiting)
sql "SELECT pg_terminate_backend ($before)" >thrown
eventually waits
test ! -s lost.out || fail 'it is acknowledged, and the other server does not have it'
start_standby
ended lost 0
grep -q 'id=DATABASE-FOUND.*commit [0-9]* had landed' broker.err || fail 'it does not say what became of it'
eventually counter unknown_commits 1
[ "$(taskctl count --queue lost)" = 1 ] || fail 'a commit was made twice'
stop_broker
end_standby

# --- ... or the database alone

export TASKMQD_DATABASE_SYNCHRONOUS_COMMIT=local
start
submitted alone || fail 'it waits for another server'
broker_log 'DATABASE-UNREPLICATED .*database/synchronous_commit is local' || fail 'it does not say what that may lose'

# --- the transaction is so old now that the operator is told of it

eventually counter database_pinned_ms '[0-9]{5,}'
grep -q 'id=DATABASE-PINNED .*psql.* is [0-9]* s old' broker.err || fail 'it does not name the transaction'
signal forgotten INT
ended forgotten 1
eventually counter database_pinned_ms 0
stop_broker
unset TASKMQD_DATABASE_SYNCHRONOUS_COMMIT

# --- a server that comes instead while the broker runs has a standby of its own, or none

start_standby
eventually follows
start
broker_log DATABASE-UNREPLICATED && fail 'another server has the commits'
stop_postgres
end_standby
# shellcheck disable=SC2086
start_postgres $replicates
eventually broker_log "DATABASE-UNREPLICATED .*is empty.* at $postgres_home:5432, schema taskmq"
broker_log 'DATABASE-LOST .*FATAL:  57P01: ' || fail 'it does not say by which code the sessions ended'
eventually broker_log "DATABASE-FOUND .*it answers: database taskmq at $postgres_home:5432, schema taskmq"
stop_broker

# --- of two that take writes the one that its configuration keeps them away from is passed over

start_standby
streams () { [ "$(sql 'SELECT count (*) FROM pg_stat_replication')" = 1 ]; }
eventually streams
on_standby 'SELECT pg_promote ()' >thrown
sql 'ALTER SYSTEM SET default_transaction_read_only = on'
sql 'SELECT pg_reload_conf ()' >thrown
fenced () { [ "$(sql 'SHOW default_transaction_read_only')" = on ]; }
eventually fenced
database="postgresql:///taskmq?host=$postgres_home,$copy&user=taskmq"
start
broker_log "DATABASE-OWNED .*: database taskmq at $postgres_home:5432, $copy:5432 .$copy:5432 answered., schema taskmq" ||
    fail 'it does not say which of the two has the data'
stop_broker
end_standby
sh "$postgres_script" remove "$copy"
