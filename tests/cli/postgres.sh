#!/bin/sh
# A broker on PostgreSQL: what it refuses to start on, and what its operator is told.
# shellcheck disable=SC2016 # the shells of the programs expand these
. "$(dirname "$0")/lib.sh"

start_postgres

# refused EXIT TEXT [OPTION...]: the broker does not start.
refused ()
{
    wanted_exit=$1
    wanted_text=$2
    shift 2
    run "$wanted_exit" taskmqd --data "$room/.taskmq" --store postgresql "$@"
    err_has "$wanted_text"
}

# The same, and --check-config says it without a start.
wrong ()
{
    refused "$@"
    shift 2
    run "$wanted_exit" taskmqd --check-config --data "$room/.taskmq" --store postgresql "$@"
    out_has "^wrong +database +.*$wanted_text"
}

refuses_all () { ! as_taskmq 'SELECT 1'; }
# The one that holds the last place has it.
is_held () { [ "$(sql "SELECT count (*) FROM pg_stat_activity WHERE query LIKE '%pg_sleep (600)'")" = 1 ]; }
is_full () { as_taskmq 'SELECT 1' 2>&1 | grep -q 'slots are reserved'; }
as_taskmq () { "$postgres_programs/psql" -X -q -h "$postgres_home" -U taskmq -d taskmq -c "$1"; }

# --- what it does not start on

run 2 taskmqd --store postgresql --data "$room/.taskmq"
err_has 'postgresql needs database/uri'
run 2 taskmqd --store postgresql --database "postgresql://me:hidden@localhost/x" --data "$room/.taskmq"
err_has 'has a password'
err_lacks hidden
run 2 taskmqd --store postgresql --database "$database" --archive "$room" --data "$room/.taskmq"
err_has 'PostgreSQL archives by itself'

# a server that could lose what it acknowledged
stop_postgres
start_postgres fsync=off
wrong 3 'fsync is off: .*; set fsync = on there' --database "$database"
stop_postgres
start_postgres full_page_writes=off
wrong 3 'full_page_writes is off: .*; set full_page_writes = on there' --database "$database"
stop_postgres
start_postgres

# a role without rights, a database without UTF-8, tables of somebody else, a database of nobody
sql 'CREATE ROLE guest LOGIN'
sql "CREATE DATABASE latin ENCODING LATIN1 LOCALE 'C' TEMPLATE template0 OWNER taskmq"
sql 'CREATE SCHEMA theirs AUTHORIZATION taskmq; CREATE TABLE theirs.orders (a int)'
wrong 3 'may not make schema taskmq' --database "postgresql:///taskmq?host=$postgres_home&user=guest"
wrong 3 'encoding is not UTF8: make a database with ENCODING UTF8 TEMPLATE template0' --database "postgresql:///latin?host=$postgres_home&user=taskmq"
export TASKMQD_DATABASE_SCHEMA=theirs
wrong 7 'tables of another application' --database "$database"
unset TASKMQD_DATABASE_SCHEMA
[ "$(sql "SELECT count(*) FROM pg_tables WHERE schemaname = 'theirs'")" = 1 ] || fail 'theirs was changed'
[ "$(sql "SELECT count(*) FROM pg_namespace WHERE nspname = 'taskmq'")" = 0 ] || fail 'taskmq was made'

# what answers is no PostgreSQL: it crashes nothing, and what it says does nothing to a terminal
spawn strange python3 "$TASKMQ_SOURCE/tests/cli/no_postgres.py"
eventually test -s strange.out
strange="postgresql://taskmq@127.0.0.1:$(cat strange.out)/taskmq?sslmode=disable"
wrong 3 'is it PostgreSQL' --database "$strange"
run 3 taskmqd --check-config --data "$room/.taskmq" --store postgresql --database "$strange&application_name=evil"
out_has 'FATAL: .*evil [?][[]31m[?]'
signal strange KILL
ended strange 137

# passwords stand in a file that nobody else can read
printf '*:*:*:*:hidden\n' >passwords
chmod 644 passwords
export TASKMQD_DATABASE_PASSFILE="$room/passwords"
refused 3 'passwords: others may read it .mode 0644.: it must be of mode 0600' --database "$database"
chmod 600 passwords
run 0 taskmqd --check-config --data "$room/.taskmq" --store postgresql --database "$database"
out_has '^ok +database +PostgreSQL [0-9.]+, database taskmq at .*schema taskmq'
export TASKMQD_DATABASE_PASSFILE="$room/missing"
refused 3 'passfile .*/missing: No such file' --database "$database"
unset TASKMQD_DATABASE_PASSFILE
rm -rf .taskmq

# what no waiting mends: a first start ends, and --check-config says it, too
never ()
{
    refused 3 "$1" --database "$2"
    test ! -e .taskmq/instance || fail 'it was never connected'
    run 3 taskmqd --check-config --data "$room/.taskmq" --store postgresql --database "$2"
    out_has "^wrong +database +.*$1"
    out_lacks 'the configuration is good'
    rm -rf .taskmq
}
never '3D000: .*nobodys.* does not exist' "postgresql:///nobodys?host=$postgres_home&user=taskmq"
never '28000: .*nobody.* does not exist' "postgresql:///taskmq?host=$postgres_home&user=nobody"
# a setting in the URI that the server does not know, or does not let anybody change: said once
never '55P02: .*fsync.* cannot be changed now' "$database&options=-cfsync%3Doff"
never '42704: .*nonsense' "$database&options=-cnonsense%3Doff"
[ "$(grep -o 42704 out | wc -l)" = 1 ] || fail 'it is said more than once'
# one that speaks no TLS: verify-full is what holds beyond this machine
spawn plain python3 -c '
import socket
server = socket.create_server(("127.0.0.1", 0))
print(server.getsockname()[1], flush=True)
while True:
    client, _ = server.accept()
    client.recv(8)
    client.sendall(b"N")
    client.close()'
eventually test -s plain.out
never 'server does not support SSL, but SSL was required: set ssl = on there, or name a weaker sslmode' "postgresql://taskmq@127.0.0.1:$(cat plain.out)/taskmq?sslmode=verify-full"
signal plain KILL
ended plain 137
sql "CREATE ROLE secret LOGIN PASSWORD 'hidden'"
cp -p "$postgres_home/data/pg_hba.conf" hba
printf 'local taskmq secret scram-sha-256\nlocal all postgres trust\n' >"$postgres_home/data/pg_hba.conf"
sql 'SELECT pg_reload_conf ()'
eventually refuses_all
never '28000: +no pg_hba.conf entry' "$database"
# of several hosts the one that says so
never '28000: +no pg_hba.conf entry' "postgresql:///taskmq?host=$room,$postgres_home&user=taskmq"
printf '*:*:*:*:wrong\n' >passwords
export TASKMQD_DATABASE_PASSFILE="$room/passwords"
never '28P01|password authentication failed' "postgresql:///taskmq?host=$postgres_home&user=secret"
unset TASKMQD_DATABASE_PASSFILE
never 'no password supplied: database/passfile is not set, and passfile .*/[.]pgpass: No such file' "postgresql:///taskmq?host=$postgres_home&user=secret"

# … and what passes: it waits, and goes on by itself. So does one that was connected once, whatever it
# meets: its database may be in the middle of a failover.
cat hba >"$postgres_home/data/pg_hba.conf"
sql 'SELECT pg_reload_conf ()'
stop_postgres
run 0 taskmqd --check-config --data "$room/.taskmq" --store postgresql --database "$database"
out_has '^warning +database +'
start_postgres max_connections=10 superuser_reserved_connections=9
# Whoever asked whether the server is up may still have the place.
spawn held sh -c 'while "$1" -X -h "$2" -U taskmq -d taskmq -c "SELECT pg_sleep (600)" 2>&1 |
    grep -q "slots are reserved"; do sleep 0.1; done' - "$postgres_programs/psql" "$postgres_home"
eventually is_held
eventually is_full
spawn waits taskmqd --data "$room/.taskmq" --store postgresql --database "$database"
eventually grep -q 'id=DATABASE-AWAY.*slots are reserved' waits.err
stop_postgres
start_postgres
eventually grep -q id=READY waits.err
signal waits TERM
ended waits 0
wait "$(cat held.pid)"
printf 'local all postgres trust\n' >"$postgres_home/data/pg_hba.conf"
sql 'SELECT pg_reload_conf ()'
eventually refuses_all
spawn waits taskmqd --data "$room/.taskmq" --store postgresql --database "$database"
eventually grep -q 'id=DATABASE-AWAY.*no pg_hba.conf entry' waits.err
cat hba >"$postgres_home/data/pg_hba.conf"
sql 'SELECT pg_reload_conf ()'
eventually grep -q id=READY waits.err
signal waits TERM
ended waits 0
sql 'DROP SCHEMA taskmq CASCADE'
rm -rf .taskmq

# --- what it does

broker_options="--store postgresql --database $database"
start_broker
submit mail --data 'one'
first=$id
run 0 taskctl list
out_has "$first"
[ "$(sql 'SELECT count(*) FROM taskmq.shard')" = 1 ] || fail 'the tables are not there'
test ! -e .taskmq/taskmq.db || fail 'there is a database of SQLite, too'
run 0 taskctl doctor
run 1 taskctl backup copy.tar
err_has 'pg_basebackup'
run 1 taskctl vacuum
err_has 'vacuums'

# a large body that the database does not take is told of; all else is taken
head -c 400000 /dev/urandom >large
submit bodies --file large
grep -q id=DATABASE-BLOBS broker.err && fail 'the database took it'
head -c 400000 /dev/urandom >large
sql 'REVOKE INSERT ON taskmq.blob_chunk FROM taskmq'
run 1 taskctl submit bodies --file large
err_has 'the database refused it'
grep -q 'id=DATABASE-BLOBS .*permission denied for table blob_chunk' broker.err || fail 'nobody says why'
submit bodies --data small
sql 'GRANT INSERT ON taskmq.blob_chunk TO taskmq'
submit bodies --file large
run 0 taskctl payload "$id"
cmp -s out large || fail 'a large body is another one'

# a locked table holds up nobody who only looks
spawn locks "$postgres_programs/psql" -X -q -h "$postgres_home" -U postgres -d taskmq -c 'BEGIN; LOCK TABLE taskmq.meta; SELECT pg_sleep (600)'
eventually is_held
run 0 taskmqd --check-config --data "$room/.taskmq" --store postgresql --database "$database"
out_has '^warning +database +.*did not answer in time'
sql "SELECT pg_terminate_backend (pid) FROM pg_stat_activity WHERE query LIKE '%LOCK TABLE%' AND pid <> pg_backend_pid ()"
wait "$(cat locks.pid)" || :

# another broker on the same tables, and the same directory with another store
run 4 taskmqd --data "$room/other" --store postgresql --database "$database"
stop_broker
run 3 taskmqd --data "$room/.taskmq"
err_has 'its tasks are in PostgreSQL'
taskmqd --data "$room/sqlite" 2>sqlite.err &
sqlite_pid=$!
eventually test -s sqlite/endpoint
kill -TERM "$sqlite_pid"
wait "$sqlite_pid"
run 3 taskmqd --data "$room/sqlite" --store postgresql --database "$database"
err_has 'its tasks are in taskmq.db'
run 2 taskmqd --check --data "$room/.taskmq" --store postgresql --database "$database"
err_has 'pg_amcheck'

# a kill of both, and everything is there
start_broker
submit mail --data 'two'
kill_broker
kill_postgres
start_postgres
start_broker
is submitted "$first" || is queued "$first" || fail "the first task is $(status_of "$first")"
run 0 taskctl list
out_has "$first"
out_has "$id"
run 0 taskctl cancel "$first"
eventually is cancelled "$first"

# a start waits for its database, and can be stopped meanwhile; then it comes up by itself
stop_broker
stop_postgres
# shellcheck disable=SC2086 # options are words
spawn waits taskmqd --data "$room/.taskmq" $broker_options
eventually grep -q 'the start waits for it' waits.err
signal waits TERM
ended waits 0
err_has 'id=STOPPED-AWAY'
# shellcheck disable=SC2086
spawn waits taskmqd --data "$room/.taskmq" $broker_options
eventually grep -q 'the start waits for it' waits.err
start_postgres
eventually taskctl --timeout 20s ping
is queued "$id" || fail "the second task is $(status_of "$id")"
signal waits TERM
ended waits 0
start_broker

# a database that stands still: who looks is sent there, and not to the broker, which runs
postgres_all () # SIGNAL, the server first, so that it starts nothing meanwhile
{
    kill "-$1" "$postgres_pid"
    # shellcheck disable=SC2046 # a list of ids
    kill "-$1" $(cat "/proc/$postgres_pid/task/$postgres_pid/children")
}
says_store ()
{
    taskctl --timeout 1s doctor >out 2>err
    grep -q '^wrong *reach *cannot reach .*store is out of reach' out
}
blobs=$(grep -c 'id=DATABASE-BLOBS' broker.err) # of a table that took none
postgres_all STOP
eventually says_store
out_has '^ +-> the broker runs: see to its database; its log says why \(DATABASE-LOST\)$'
run 3 taskctl --timeout 1s ping
err_has '^hint: the broker runs: see to its database'
run 1 taskctl -e "ipc://$room/.taskmq/taskmqd.ipc" -e "ipc://$room/none" --timeout 1s doctor
out_has '^warning +endpoint +ipc://.*taskmqd.ipc: the broker.s store is out of reach$'
out_has '^warning +endpoint +ipc://.*/none: .*; a standby listens when it takes over, not before$'
out_has '^wrong +reach +none of 2 endpoints answered within 1s$'
[ "$(grep -c -e '-> the broker runs: see to its database' out)" = 1 ] || fail 'it is not sent to the database once'
[ "$(grep -c 'store is out of reach' out)" = 1 ] || fail 'the same is said twice'
out_lacks 'where a take-over lasts longer|nothing was done|said by'
run 3 taskctl -e "ipc://$room/.taskmq/taskmqd.ipc" -e "ipc://$room/none" --timeout 1s ping
err_has '^taskctl: cannot reach ipc://.*taskmqd.ipc: the broker.s store is out of reach; ipc://.*/none: there is no such socket$'
err_has '^hint: the broker runs: see to its database; its log says why \(DATABASE-LOST\)$'
err_lacks 'take-over'
postgres_all CONT
eventually taskctl doctor
grep -q 'id=DATABASE-LOST' broker.err || fail 'its log does not say that the database stood still'
grep 'id=DATABASE-LOST' broker.err | grep -q 'is out of reach"' && fail 'its log does not say why'
[ "$(grep -c 'id=DATABASE-BLOBS' broker.err)" = "$blobs" ] || fail 'nobody waits for a large body'

# … also where a request was sent before: the broker is silent then, and the next connection tells why
loses ()
{
    eventually taskctl ping
    postgres_all STOP
    taskctl -e "ipc://$room/.taskmq/taskmqd.ipc" -e "ipc://$room/none" --timeout 20s submit lost --data x >out 2>err
    got=$?
    postgres_all CONT
    [ "$got" -eq 11 ] && grep -q 'store is out of reach' err
}
loses || loses || loses || fail "a submit ends with $got, not 11" # else the broker noticed before
err_has 'no answer in time: task .* may have been submitted; the broker.s store is out of reach$'
err_has '^hint: the broker runs: see to its database; .*; then run it again with --request-id [0-9a-f]{32}: that cannot'
eventually taskctl doctor

# a newer version's tables are left alone
stop_broker
version=$(sql 'SELECT version FROM taskmq.meta')
sql 'UPDATE taskmq.meta SET version = 99'
wrong 8 'newer version' --database "$database"
sql "UPDATE taskmq.meta SET version = $version"
start_broker
stop_broker

# --- an older copy of the database

stop_postgres
cp -a "$postgres_home/data" "$postgres_home/older"
start_postgres
start_broker
submit mail --data 'three'
third=$id
stop_broker
stop_postgres
mv "$postgres_home/data" "$postgres_home/newer"
mv "$postgres_home/older" "$postgres_home/data"
start_postgres
refused 16 'committed work was lost: .*, if database/uri or database/schema names another one, .*--accept-rollback' --database "$database"
[ "$(sql "SELECT count(*) FROM taskmq.task WHERE queue = 'mail'")" = 2 ] || fail 'the copy was changed'
generation=$(sql 'SELECT generation FROM taskmq.shard')
broker_options="--store postgresql --database $database --accept-rollback"
start_broker
run 5 taskctl get "$third"
run 0 taskctl get "$first"
[ "$(sql 'SELECT generation FROM taskmq.shard')" != "$generation" ] || fail 'the history goes on'
stop_broker

# --- an owner that found something gone marked it: the next start asks nobody

broker_options="--store postgresql --database $database"
generation=$(sql 'SELECT generation FROM taskmq.shard')
last=$(sql 'SELECT last_pos FROM taskmq.written')
sql 'UPDATE taskmq.shard SET timeline = -1'
start_broker
grep -q 'id=DATABASE-TIMELINE' broker.err || fail 'nobody says that it may lack something'
[ "$(sql 'SELECT generation FROM taskmq.shard')" != "$generation" ] || fail 'the history goes on'
eventually grep -q '"why":"other_history"' .taskmq/events.jsonl
head -n 1 .taskmq/events.jsonl | grep -q "\"first_pos\":$((last + 1)),.*\"why\":\"other_history\"" ||
    fail 'events.jsonl does not begin with the new history'
stop_broker

# --- another directory, and back: each goes on where the tables are

mv .taskmq away
start_broker
run 0 taskctl get "$first"
submit mail --data 'four'
fourth=$id
stop_broker
mv .taskmq elsewhere
mv away .taskmq
start_broker
run 0 taskctl get "$fourth"
submit mail --data 'five'
eventually grep -q "$id" .taskmq/events.jsonl
eventually grep -q "$fourth" .taskmq/events.jsonl
grep -q "$fourth" .taskmq/tasks.jsonl || fail 'tasks.jsonl lacks what happened meanwhile'
stop_broker
run 0 taskctl audit verify .taskmq/events.jsonl
# Each directory has its own record of deeds, and the database knows where each of them stood.
grep -q AUDIT-MISSING broker.err && fail 'its own record was there'
mv .taskmq/audit.jsonl audit.gone
start_broker
grep -q AUDIT-MISSING broker.err || fail 'nobody says that the record is gone'
stop_broker

# --- tables of the first version

sql 'DROP SCHEMA taskmq CASCADE'
sql "$(cat "$TASKMQ_SOURCE/tests/stored/postgresql-1.sql")"
sql 'UPDATE taskmq.shard SET owner = NULL, system_id = 0'
rm -rf .taskmq
start_broker
run 0 taskctl list --all
out_has completed
out_has large
[ "$(sql 'SELECT version FROM taskmq.meta')" = "$version" ] || fail 'the tables are as they were'
submit mail --data 'on new tables'
stop_broker
