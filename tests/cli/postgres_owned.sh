#!/bin/sh
# A data directory knows which tables its broker owned: a schema that is missing or empty, where a
# wrong name leads to, is refused, and nothing is made there.
# shellcheck disable=SC2119,SC2154 # in lib.sh
. "$(dirname "$0")/lib.sh"

start_postgres
lost='this data directory owned the tasks'
into="--store postgresql --database $database"

schemas () { sql "SELECT string_agg (nspname, ' ' ORDER BY nspname) FROM pg_namespace WHERE nspname ~ '^(full|table|typo|taskmq)'"; }
# refused DIR TEXT [URI]: by a start and by --check-config, whether it would wait for an owner or not.
refused ()
{
    before=$(schemas)
    for standby in '' --standby; do
        # shellcheck disable=SC2086 # options are words
        run 16 taskmqd --data "$room/$1" --store postgresql --database "${3-$database}" $standby
        err_has "id=STORE-ROLLBACK msg=.*$2.*name a new data directory"
        err_lacks 'id=(READY|DATABASE-OWNED)'
    done
    run 16 taskmqd --check-config --data "$room/$1" --store postgresql --database "${3-$database}"
    out_has "^wrong +database .*$2"
    out_lacks 'the configuration is good'
    [ "$(schemas)" = "$before" ] || fail 'a schema was made'
}
starts () # DIR TEXT: a broker on it owns the tables, and ends
{
    # shellcheck disable=SC2086
    spawn broker taskmqd --data "$room/$1" $into
    eventually grep -q id=READY broker.err
    signal broker TERM
    ended broker 0
    grep -q "$2" "$1/instance" || fail "it notes $(cat "$1/instance")"
}

# --- a restore made it

start_broker
submit mail
run 0 taskctl backup b.tar
stop_broker
rm -rf .taskmq
export TASKMQD_DATABASE_SCHEMA=full # names are names, also words of SQL
# shellcheck disable=SC2086
run 0 taskmqd --restore b.tar --data restored $into
export TASKMQD_DATABASE_SCHEMA=typo
refused restored "schema typo is missing, and $lost of schema full in database taskmq: name those"
sql 'CREATE SCHEMA typo AUTHORIZATION taskmq'
refused restored "schema typo is empty, and $lost of schema full in database taskmq: name those"

# Where it was meant, nothing has changed.
export TASKMQD_DATABASE_SCHEMA=full
id=$(cat restored/instance)
starts restored '^owned [0-9-]* full taskmq$'
[ "$(cat restored/instance)" = "$id" ] || fail 'it is another instance'

# --- a broker owned it, and keeps no events

printf 'events\n    file = off\n' >no_events
mkdir owner
# shellcheck disable=SC2086
spawn first taskmqd -c no_events --data "$room/owner" $into
eventually grep -q id=READY first.err
# Who waits has owned nothing.
# shellcheck disable=SC2086
spawn waits taskmqd --data "$room/waits" --standby $into
eventually grep -q id=DATABASE-STANDBY waits.err
grep -q '^owned' waits/instance && fail 'a standby says that it owned something'
signal waits TERM
ended waits 0
signal first TERM
ended first 0
test ! -e owner/events.jsonl || fail 'it keeps events'
export TASKMQD_DATABASE_SCHEMA=typo4
refused owner "schema typo4 is missing, and $lost of schema full"

# Another database of the server, and another server.
sql 'CREATE DATABASE second OWNER taskmq'
export TASKMQD_DATABASE_SCHEMA=full
refused owner "database second at .*: schema full is missing, and $lost of schema full in database taskmq: name" \
    "postgresql:///second?host=$postgres_home&user=taskmq"
cp owner/instance kept
sed -i 's/^owned [0-9-]*/owned 4711/' owner/instance
export TASKMQD_DATABASE_SCHEMA=typo4
refused owner "$lost of schema full in database taskmq of another server"
cp kept owner/instance

# Tables that somebody made, and that nobody owned so far.
# shellcheck disable=SC2086
spawn made taskmqd --data "$room/made" $into
eventually grep -q id=READY made.err
signal made TERM
ended made 0
sql 'UPDATE typo4.shard SET epoch = 0; UPDATE typo4.fence SET epoch = 0'
# shellcheck disable=SC2086
run 16 taskmqd --data "$room/owner" $into
err_has "schema typo4 is empty, and $lost of schema full"
[ "$(sql 'SELECT epoch FROM typo4.shard')" = 0 ] || fail 'it owned them'

# --- what is no mistake

# A directory that owned nothing: new, of a standby, or of a version that noted nothing.
export TASKMQD_DATABASE_SCHEMA=typo5
# shellcheck disable=SC2086
run 0 taskmqd --check-config --data "$room/fresh" $into
out_has '^ok +database .* schema typo5 \(not there: a start makes it\)$'
starts waits '^owned [0-9-]* typo5 taskmq$'
head -c 32 kept >owner/instance
export TASKMQD_DATABASE_SCHEMA=typo6
sql 'CREATE SCHEMA typo6 AUTHORIZATION taskmq'
# shellcheck disable=SC2086
run 0 taskmqd --check-config --data "$room/owner" $into
out_has '^ok +database .* schema typo6 \(empty: a start makes its tables\)$'
starts owner '^owned [0-9-]* typo6 taskmq$'
[ "$(head -c 32 owner/instance)" = "$(head -c 32 kept)" ] || fail 'it is another instance'

# Tables with a history, wherever they are: they were moved, or renamed.
sql 'ALTER SCHEMA "full" RENAME TO "table"'
export TASKMQD_DATABASE_SCHEMA=table
starts owner '^owned [0-9-]* table taskmq$'

# --- they were dropped: that is given up once, or a new directory begins

sql 'SET client_min_messages = error; DROP SCHEMA "table" CASCADE'
refused owner "schema table is missing, and $lost that were in it[.] Put them back"
# shellcheck disable=SC2086
spawn again taskmqd --accept-rollback --data "$room/owner" $into
eventually grep -q id=READY again.err
signal again TERM
ended again 0
starts owner '^owned [0-9-]* table taskmq$'
