#!/bin/sh
# Several hosts in a URI. A server that takes the password decides nothing when it is a standby, or has
# no session left: a broker with a password goes to the next host, and waits, as one without. A first
# start ends when one refuses for good and none is merely away, in whatever order they stand.
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
eventually grep -q 'id=DATABASE-AWAY.*hot standby mode' broker.err
stop
printf '*:*:*:*:wrong\n' >passwords
start_with "postgresql:///taskmq?host=$copies,$postgres_home&user=taskmq"
ended broker 3
grep -q 'password authentication failed' broker.err || fail 'it does not say what is wrong'
printf '*:*:*:*:hidden\n' >passwords
# One that was connected once waits for all but its password.
start_with "$database"
eventually grep -q id=READY broker.err
stop
sql 'REVOKE ALL ON DATABASE taskmq FROM PUBLIC, taskmq'
start_with "$database"
eventually grep -q 'id=DATABASE-AWAY.*permission denied for database' broker.err
sql 'GRANT ALL ON DATABASE taskmq TO PUBLIC'
eventually grep -q id=READY broker.err
stop
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
unset PGPASSWORD

# --- a first start: who refuses for good, who is merely away, and who says nothing

# One that is there by its port: says that code to everybody, or nothing at all.
fake ()
{
    spawn "$1" python3 -c '
import socket, sys
said = sys.argv[1].encode()
server = socket.create_server(("127.0.0.1", 0))
print(server.getsockname()[1], flush=True)
held = []
while True:
    client, _ = server.accept()
    if not said:
        held.append(client)
        continue
    fields = b"SFATAL\0VFATAL\0C" + said + b"\0Mas the test has it\0\0"
    try:
        start = client.recv(4096)
        while len(start) == 8:  # it asks for TLS, or GSS
            client.sendall(b"N")
            start = client.recv(4096)
        client.sendall(b"E" + (len(fields) + 4).to_bytes(4, "big") + fields)
    except OSError:  # the machine is busy, and it did not wait
        pass
    client.close()' "$2"
    eventually test -s "$1.out"
}
fake silent ''
fake starting 57P03
fake refusing 28000
silent="127.0.0.1 $(cat silent.out)"
starting="127.0.0.1 $(cat starting.out)"
refusing="127.0.0.1 $(cat refusing.out)"
nobody="$room/nobody 5432"
good="$postgres_home 5432"
hosts () # HOST PORT...: the URI of them, in this order
{
    names=''
    ports=''
    while [ $# -gt 0 ]; do
        names="$names,$1"
        ports="$ports,$2"
        shift 2
    done
    printf 'postgresql:///taskmq?user=taskmq&host=%s&port=%s\n' "${names#,}" "${ports#,}"
}
first () # HOST PORT...: a first start
{
    rm -rf "$room/.taskmq"
    start_with "$(hosts "$@")"
}
is_refused () # URI: by --check-config, which looks once
{
    taskmqd --check-config --data "$room/.taskmq" --store postgresql --database "$1" >out 2>err
    [ $? -eq 3 ]
}
# shellcheck disable=SC2086 # a host is two words
for wrong in "$silent $refusing" "$refusing $silent" "$nobody $refusing" "$refusing $nobody" \
    "$silent $nobody $refusing"; do
    first $wrong
    ended broker 3
    err_has '28000: +as the test has it'
    eventually is_refused "$(hosts $wrong)"
    out_has '^wrong +database +.*28000'
done
# Each is named with its reason, and a refusal comes out when the other one has gone for good.
# shellcheck disable=SC2086
for wrong in "$starting $refusing" "$refusing $starting"; do
    first $wrong
    eventually grep -q id=DATABASE-AWAY broker.err
    for port in "$(cat starting.out)" "$(cat refusing.out)"; do
        grep -q "id=DATABASE-AWAY.*127.0.0.1:$port: FATAL: .*as the test has it" broker.err ||
            fail "it does not name the host at $port"
    done
    stop
done
# shellcheck disable=SC2086
first $starting $refusing
eventually grep -q id=DATABASE-AWAY broker.err
signal starting KILL
ended starting 137
ended broker 3
err_has '28000: +as the test has it'
# shellcheck disable=SC2086
first $silent $nobody
eventually grep -Eq 'id=DATABASE-AWAY.*: no answer in time; .*/nobody:5432: .*No such file' broker.err
stop
# One that takes it decides, beside whatever others say.
# shellcheck disable=SC2086
first $refusing $silent $good
eventually grep -q id=READY broker.err
stop
# Of many some are named.
# shellcheck disable=SC2086
first $nobody $nobody $nobody $nobody $nobody $nobody
eventually grep -q 'id=DATABASE-AWAY.*nobody:5432.*; and 2 more' broker.err
stop

# --- what no server mends, also for one that was connected once

wrong () # REASON URI
{
    for data in never known; do
        run 2 taskmqd --data "$room/$data" --store postgresql --database "$2"
        err_has "$1"
    done
}
rm -rf .taskmq
start_with "$database"
eventually grep -q id=READY broker.err
stop
mv .taskmq known
wrong "invalid port number '70000'" "postgresql://taskmq@localhost:70000/taskmq"
wrong "invalid port number 'x'" "postgresql:///taskmq?host=$postgres_home,$postgres_home&port=5432,x"
wrong 'invalid sslmode value' "$database&sslmode=bogus"
wrong "list of 'port' has 3" "postgresql:///taskmq?host=$postgres_home,$copies&port=1,2,3"
exit 0
