#!/bin/sh
# Two brokers on two machines with keys, their database on a third one, a worker and a client on a
# fourth, and a wire between them: what docs/CLUSTER.md says of two machines. The owner is killed at
# work, then the next owner's wire is cut, and nothing is lost.
# shellcheck disable=SC2016,SC2154,SC2317 # by shells of programs, in lib.sh, and by eventually
. "$(dirname "$0")/certificates.sh"
. "$(dirname "$0")/lib.sh"

if ! unshare -n ip link >/dev/null 2>&1; then
    echo "$scenario: skipped: no network namespace can be made here (root and iproute2 are needed)"
    exit 77
fi

# --- four machines at a switch

at () # MACHINE COMMAND...
{
    machine_pid=$(cat "$1.pid")
    shift
    nsenter -t "$machine_pid" -n "$@"
}
is_apart () # it has a namespace of its own
{
    [ "$(readlink "/proc/$(cat "$1.pid")/ns/net")" != "$(readlink /proc/self/ns/net)" ]
}
for machine in switch store one two farm; do
    spawn "$machine" unshare -n sleep 1000
    eventually is_apart "$machine"
done
if ! at switch ip link add lan type bridge 2>/dev/null; then
    echo "$scenario: skipped: this kernel has no bridge"
    exit 77
fi
at switch ip link set lan up
plug () # MACHINE ADDRESS
{
    at switch ip link add "port-$1" type veth peer name wire netns "$(cat "$1.pid")" 2>/dev/null || return 1
    at switch ip link set "port-$1" master lan up
    at "$1" ip link set lo up
    at "$1" ip addr add "$2/24" dev wire
    at "$1" ip link set wire up
}
if ! plug store 10.78.0.10; then
    echo "$scenario: skipped: this kernel has no veth"
    exit 77
fi
plug one 10.78.0.1 || fail 'no wire'
plug two 10.78.0.2 || fail 'no wire'
plug farm 10.78.0.20 || fail 'no wire'
pull () { at switch ip link set "port-$1" down; }
put_back () { at switch ip link set "port-$1" up; }

# --- the database: by TLS and password

authority ours
signed store ours store 30 subjectAltName=IP:10.78.0.10
postgres_within="nsenter -t $(cat store.pid) -n"
# shellcheck disable=SC2119 # its arguments are settings
start_postgres
sql "ALTER ROLE taskmq PASSWORD 'hidden'"
stop_postgres
server_has store
printf 'local all postgres trust\nhostssl taskmq taskmq 10.78.0.0/24 scram-sha-256\n' \
    >"$postgres_home/data/pg_hba.conf"
start_postgres listen_addresses=10.78.0.10 ssl=on
printf '10.78.0.10:*:taskmq:taskmq:hidden\n' >passwords
chmod 600 passwords
export TASKMQD_DATABASE_PASSFILE="$room/passwords"
export TASKMQD_CLUSTER_LEASE=2s

# --- two brokers with the same server key and access file

broker () # MACHINE ADDRESS
{
    spawn "broker-$1" nsenter -t "$(cat "$1.pid")" -n taskmqd --data "$room/data-$1" \
        --listen "tcp://$2:5560" --standby --store postgresql \
        --database "postgresql://taskmq@10.78.0.10/taskmq?sslrootcert=$room/ours.crt"
}
logged () { grep -q "$2" "broker-$1.err"; }
operator () # MACHINE COMMAND...: on that machine, by the broker's socket
{
    operator_socket="ipc://$room/data-$1/taskmqd.ipc"
    shift
    taskctl -e "$operator_socket" "$@"
}
mkdir "$room/farm"
on_farm () { at farm env XDG_CONFIG_HOME="$room/farm" "$@"; }

broker one 10.78.0.1
eventually logged one id=READY
eventually operator one --timeout 20s ping
[ "$(sql 'SELECT count(*) > 1 AND bool_and (ssl) FROM pg_stat_ssl JOIN pg_stat_activity USING (pid)
    WHERE usename = '"'taskmq'")" = t ] || fail 'it is in plain text'
for name in render-1 shop; do
    role=worker
    [ "$name" = shop ] && role=client
    run 0 operator one invite "$name" --role "$role" --queue render \
        --address 10.78.0.1:5560 --address 10.78.0.2:5560
    line=$(sed 's/^taskctl join //' out)
    mkdir "$room/farm/$name"
    run 0 at farm env XDG_CONFIG_HOME="$room/farm/$name" taskctl join "$line"
    out_has "joined tcp://10.78.0.1:5560.* as $name"
done
mkdir -m 700 data-two
cp -p data-one/server.key data-one/access data-two
broker two 10.78.0.2
eventually logged two id=DATABASE-STANDBY

shop () { at farm env XDG_CONFIG_HOME="$room/farm/shop" taskctl --profile=default "$@"; }
spawn worker nsenter -t "$(cat farm.pid)" -n env XDG_CONFIG_HOME="$room/farm/render-1" \
    taskctl --profile=default work render --jobs 4 -- sh -c 'sed s/^/done\ /'
: >acknowledged
# The client submits all the time, and writes down what was acknowledged. It ends with a refusal.
spawn client nsenter -t "$(cat farm.pid)" -n env XDG_CONFIG_HOME="$room/farm/shop" sh -c '
    n=0
    until [ -e enough ]; do
        n=$((n + 1))
        id=$(taskctl --profile=default submit render --data "task $n") || exit 1
        echo "$n $id" >>acknowledged
    done'
count_acknowledged () { wc -l <acknowledged; }
has_acknowledged () { [ "$(count_acknowledged)" -ge "$1" ]; }
more () # as many tasks are acknowledged from now on
{
    eventually has_acknowledged $(($(count_acknowledged) + $1))
}
more 5

# --- kill -9 of the owner at work

signal broker-one KILL
ended broker-one 137
eventually logged two id=READY
logged two id=DATABASE-ADOPTED || fail 'nobody says that it took over'
more 5
broker one 10.78.0.1
eventually logged one id=DATABASE-STANDBY

# --- the next owner is cut off: it tells nobody anything, and ends when it hears of the other one

known=$(sed -n '$s/.* //p' acknowledged)
run 0 operator two get "$known"
pull two
eventually logged one id=READY
logged one id=DATABASE-ADOPTED || fail 'nobody says that it took over'
more 5
run 0 shop cancel "$(shop submit render --data later --delay 1h)"
last=$(sed -n '$s/.* //p' acknowledged)
# Who asks the one that is cut off hears nothing of the tasks: not that the last one is unknown, and
# not how the others stood.
kill -0 "$(cat broker-two.pid)" || fail 'it ended, and nobody told it to'
for id in "$known" "$last"; do
    operator two --timeout 3s get "$id" >out 2>err && fail 'who is cut off answers'
    err_lacks 'no such task|not found|unknown task'
done
operator two --timeout 3s submit render --data lost >out 2>err && fail 'who is cut off takes work'
put_back two
ended broker-two 13
err_has id=STORE-FENCED
broker two 10.78.0.2
eventually logged two id=DATABASE-STANDBY
more 5

# --- nothing is lost, and nothing is there that nobody was told of

touch enough
ended client 0
while read -r n id; do
    run 0 shop wait "$id"
    run 0 shop result "$id"
    out_has "^done task $n\$"
done <acknowledged
tasks=$(sql "SELECT count(*) FROM taskmq.task WHERE queue = 'render'")
[ "$tasks" -eq $(($(count_acknowledged) + 1)) ] || fail "$tasks tasks of $(count_acknowledged) and one"
run 0 operator one audit verify "$room/data-one/events.jsonl"
signal worker TERM
ended worker 0
for machine in two one; do
    signal "broker-$machine" TERM
    ended "broker-$machine" 0
done
exit 0
