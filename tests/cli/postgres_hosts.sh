#!/bin/sh
# A server that takes the password decides nothing when it is a standby, or has no session left: a
# broker with a password goes to the next host, and waits, as one without.
# shellcheck disable=SC2016,SC2154,SC2317 # by shells of programs, in lib.sh, and by eventually
. "$(dirname "$0")/lib.sh"

replicates="wal_level=replica max_wal_senders=5"
# shellcheck disable=SC2086 # options are words
start_postgres $replicates
sql "ALTER ROLE taskmq PASSWORD 'hidden'"
printf 'local all postgres trust\nlocal replication postgres trust\nlocal all taskmq scram-sha-256\n' >hba
cat hba >"$postgres_home/data/pg_hba.conf"
sql 'SELECT pg_reload_conf ()'
printf '*:*:*:*:hidden\n' >passwords
chmod 600 passwords
export TASKMQD_DATABASE_PASSFILE="$room/passwords"

copies=$(mktemp -d "/tmp/tmq-pg-$scenario.XXXXXX")
sh "$postgres_script" copy "$copies" "$postgres_home" 5432 || fail 'no standby'
# shellcheck disable=SC2086
spawn standby sh "$postgres_script" run "$copies" $replicates hot_standby=on
is_there ()
{
    [ "$("$postgres_programs/psql" -X -q -A -t -h "$copies" -U postgres -d taskmq -c 'SELECT pg_is_in_recovery ()')" = t ]
}
eventually is_there

start_with ()
{
    rm -f broker.err # what the one before said
    spawn broker taskmqd --data "$room/.taskmq" --store postgresql --database "$1"
}
stop ()
{
    signal broker TERM
    ended broker 0
}
is_held ()
{
    [ "$(sql "SELECT count (*) FROM pg_stat_activity WHERE query = 'SELECT pg_sleep (600)'")" = 1 ]
}
is_full ()
{
    ! "$postgres_programs/psql" -X -q -h "$postgres_home" -U taskmq -d taskmq -c '' 2>full &&
        grep -q 'slots are reserved' full
}

for hosts in "$copies,$postgres_home" "$postgres_home,$copies"; do
    start_with "postgresql:///taskmq?host=$hosts&user=taskmq"
    eventually grep -q id=READY broker.err
    stop
done
start_with "postgresql:///taskmq?host=$copies&user=taskmq"
eventually grep -q 'id=DATABASE-AWAY.*read-only' broker.err
stop
printf '*:*:*:*:wrong\n' >passwords
start_with "postgresql:///taskmq?host=$copies,$postgres_home&user=taskmq"
ended broker 3
grep -q 'password authentication failed' broker.err || fail 'it does not say what is wrong'
printf '*:*:*:*:hidden\n' >passwords
sh "$postgres_script" kill "$(cat standby.pid)"
wait "$(cat standby.pid)"
sh "$postgres_script" remove "$copies"

stop_postgres
start_postgres max_connections=10 superuser_reserved_connections=9
# The one session that is left; those that looked whether the server is there may have it still.
PGPASSWORD=hidden
export PGPASSWORD
spawn held sh -c 'until "$0" -h "$1" -U taskmq -d taskmq -c "SELECT pg_sleep (600)"; do sleep 0.1; done' \
    "$postgres_programs/psql" "$postgres_home"
eventually is_held
eventually is_full
start_with "$database"
eventually grep -q 'id=DATABASE-AWAY.*slots are reserved' broker.err
signal held KILL
ended held 137
stop_postgres
start_postgres
eventually grep -q id=READY broker.err
stop
exit 0
