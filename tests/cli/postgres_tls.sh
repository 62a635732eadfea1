#!/bin/sh
# A database that is reached by TLS, with certificates as they are on two machines: what a first start
# ends on, what a broker that was connected once waits for, and that nothing goes on in plain text.
# shellcheck disable=SC2016,SC2154,SC2317 # by shells of programs, in lib.sh, and by eventually
. "$(dirname "$0")/certificates.sh"
. "$(dirname "$0")/lib.sh"

# --- two authorities, and what they signed

here=subjectAltName=DNS:localhost,IP:127.0.0.1
authority ours
authority theirs
signed good ours localhost 30 "$here"
signed foreign theirs localhost 30 "$here"
signed renamed ours elsewhere 30 subjectAltName=DNS:elsewhere.example
signed expired ours localhost -1 "$here"
signed broker ours taskmq 30 extendedKeyUsage=clientAuth
signed stranger theirs taskmq 30 extendedKeyUsage=clientAuth

# --- the server: anybody may come in, by TLS or without

PGPORT=$(python3 -c '
import random, socket
while True:
    port = random.randrange(20000, 30000)  # no connection of somebody else begins there
    with socket.socket() as probe:
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            continue
    print(port)
    break')
export PGPORT
serve () # what start_postgres takes
{
    start_postgres listen_addresses=127.0.0.1 "port=$PGPORT" "$@"
}
presents () # it has read it
{
    openssl s_client -starttls postgres -connect "127.0.0.1:$PGPORT" </dev/null 2>/dev/null |
        openssl x509 -noout -serial >presented 2>/dev/null
    openssl x509 -noout -serial -in "$1.crt" | cmp -s - presented
}
change_to () # while it runs; who is connected stays
{
    server_has "$1"
    sql 'SELECT pg_reload_conf ()' >reloaded
    eventually presents "$1"
}
serve
stop_postgres
server_has good
cp ours.crt "$postgres_home/data/ours.crt"
chmod 644 "$postgres_home/data/ours.crt"
serve ssl=on

at="postgresql://taskmq@localhost:$PGPORT/taskmq"
root="sslrootcert=$room/ours.crt"
never () # REASON URI [EXIT]: a first start ends, and --check-config says it, too
{
    run "${3-3}" taskmqd --data "$room/never" --store postgresql --database "$2"
    err_has "$1"
    test ! -e never/instance || fail 'it was connected'
    run "${3-3}" taskmqd --check-config --data "$room/never" --store postgresql --database "$2"
    out_has "^wrong +database +.*$1"
    rm -rf never
}
begin ()
{
    spawn broker taskmqd --data "$room/.taskmq" --store postgresql --database "$1"
}
end ()
{
    signal broker TERM
    ended broker 0
}
takes () # URI: it comes up, and nothing of it goes in plain text
{
    rm -rf .taskmq
    begin "$1"
    eventually grep -q id=READY broker.err
    [ "$(sql 'SELECT count(*) > 1 AND bool_and (ssl) FROM pg_stat_ssl JOIN pg_stat_activity USING (pid)
        WHERE usename = '"'taskmq'")" = t ] || fail 'it is in plain text'
    end
}

# --- who names a root certificate gets a server that is verified, also on this machine

takes "$at?$root"
takes "postgresql://taskmq@127.0.0.1:$PGPORT/taskmq?$root"
never 'certificate verify failed: .*nobody signed it whom sslrootcert' "$at?sslrootcert=$room/theirs.crt"
never 'certificate verify failed' "$at?sslmode=require&sslrootcert=$room/theirs.crt"
never 'root certificate file .*missing.crt.* does not exist: name the right one by sslrootcert' "$at?sslrootcert=$room/missing.crt"
never 'root certificate file .*missing.crt.* does not exist: name the right one by sslrootcert' "$at?sslmode=require&sslrootcert=$room/missing.crt"
for mode in disable allow prefer; do
    never "sslrootcert verifies nothing with sslmode=$mode" "$at?sslmode=$mode&$root" 2
done
PGSSLROOTCERT="$room/theirs.crt"
export PGSSLROOTCERT
never 'certificate verify failed' "$at"
unset PGSSLROOTCERT
# a socket has nobody in between
rm -rf .taskmq
begin "postgresql:///taskmq?host=$postgres_home&user=taskmq&$root"
eventually grep -q id=READY broker.err
end

change_to renamed
never 'server certificate for .*elsewhere.* does not match host name .*localhost' "$at?$root"
takes "$at?sslmode=verify-ca&$root"
change_to expired
never 'certificate verify failed: it is out of date' "$at?$root"
stop_postgres
serve
never 'server does not support SSL' "$at?$root"
never 'server does not support SSL' "$at?sslmode=require"
stop_postgres

# --- a server that wants a certificate of the broker

server_has good
cp -p "$postgres_home/data/pg_hba.conf" hba
printf 'local all all trust\nhostssl all taskmq 127.0.0.1/32 cert\n' >"$postgres_home/data/pg_hba.conf"
serve ssl=on ssl_ca_file=ours.crt
never '28000: +connection requires a valid client certificate' "$at?$root"
never 'alert unknown ca: the server does not know who signed sslcert' \
    "$at?$root&sslcert=$room/stranger.crt&sslkey=$room/stranger.key"
never 'private key file' "$at?$root&sslcert=$room/broker.crt&sslkey=$room/missing.key"
takes "$at?$root&sslcert=$room/broker.crt&sslkey=$room/broker.key"
stop_postgres
cat hba >"$postgres_home/data/pg_hba.conf"

# --- one that was connected once waits, says why, and goes on when it is mended

serve ssl=on
rm -rf .taskmq
begin "$at?$root"
eventually grep -q id=READY broker.err
count ()
{
    grep -c "id=$1" broker.err
}
again () # a word once more than before
{
    [ "$(count "$1")" -gt "$2" ]
}
throw_out ()
{
    sql "SELECT pg_terminate_backend (pid) FROM pg_stat_activity WHERE usename = 'taskmq'" >thrown
}
said_since () # LINE REASON
{
    tail -n "+$1" broker.err | grep -q "id=DATABASE-LOST.*$2"
}
for bad in foreign renamed expired; do
    reason='certificate verify failed'
    [ "$bad" = renamed ] && reason='does not match host name'
    back=$(count DATABASE-BACK)
    away=$(count DATABASE-AWAY)
    lines=$(($(wc -l <broker.err) + 1))
    change_to "$bad"
    throw_out
    eventually again DATABASE-AWAY "$away"
    eventually said_since "$lines" "$reason"
    change_to good
    eventually again DATABASE-BACK "$back"
    run 0 taskctl submit mail --data "$bad"
done
end
for bad in foreign renamed expired; do
    change_to "$bad"
    begin "$at?$root"
    eventually grep -Eq 'id=DATABASE-AWAY.*(certificate verify failed|does not match host name)' broker.err
    change_to good
    eventually grep -q id=READY broker.err
    end
done
stop_postgres
serve
begin "$at?$root"
eventually grep -q 'id=DATABASE-AWAY.*server does not support SSL' broker.err
stop_postgres
serve ssl=on
eventually grep -q id=READY broker.err
run 0 taskctl list
[ "$(taskctl list | grep -c mail)" = 3 ] || fail 'a task is missing'
end
exit 0
