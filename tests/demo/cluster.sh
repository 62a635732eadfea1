#!/bin/bash
# Two brokers on one PostgreSQL, a worker, and kill -9 of the broker that owns it in the middle of
# the work: the other one takes over, and every task comes to its end once.
#
# usage: cluster.sh [--check]      --check: fewer tasks
#
# The programs are taken from $TASKMQ_BIN; PostgreSQL is made in a new directory, and is no service of
# the machine. Exits 0 only if nothing is lost. Whatever happens, the processes that it started are
# gone at the end, and after a success the directory, too.

set -uo pipefail
export PAGER=

source_dir=$(cd "$(dirname "$0")/../.." && pwd)
bin=${TASKMQ_BIN:-$source_dir/build/bin}
export PATH="$bin:$PATH"
postgres=$source_dir/tests/support/postgres.sh
. "$source_dir/tests/support/no_pg.sh"
lease=4s
stall_s=60 # no change for so long means that something hangs
tasks=400
case "${1-}" in
'') ;;
--check) tasks=60 lease=2s ;;
*)
    echo 'usage: cluster.sh [--check]' >&2
    exit 2
    ;;
esac

green='' red='' plain=''
if [ -t 1 ] && [ -z "${NO_COLOR-}" ]; then
    green=$'\e[1;32m' red=$'\e[1;31m' plain=$'\e[0m'
fi

work=
db=
declare -A pid_of=()

say ()
{
    printf '  %s\n' "$*"
}

now_ms ()
{
    date +%s%3N
}

clean_up ()
{
    local name
    trap - EXIT
    for name in worker one two database; do
        [ -n "${pid_of[$name]-}" ] || continue
        if [ "$name" = database ]; then
            sh "$postgres" kill "${pid_of[$name]}"
        else
            kill -KILL "${pid_of[$name]}"
        fi
        wait "${pid_of[$name]}"
    done 2>/dev/null
    [ -z "$db" ] || sh "$postgres" remove "$db"
    if [ -n "$work" ]; then
        rm -rf "$work"
    fi
}
trap clean_up EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

die ()
{
    printf '\n%sdemo: %s%s\n' "$red" "$*" "$plain" >&2
    tail -n 5 "$work"/*.log >&2
    exit 1
}

# await COMMAND...: until it succeeds.
await ()
{
    local end=$((SECONDS + stall_s))
    until "$@" >/dev/null 2>&1; do
        [ "$SECONDS" -lt "$end" ] || die "this did not come true: $*"
        sleep 0.02
    done
}

logged () { grep -q "id=$2 " "$work/$1.log"; }

broker ()
{
    taskmqd --data "$work/$1" --standby --store postgresql \
        --database "postgresql:///taskmq?host=$db&user=taskmq" >>"$work/$1.log" 2>&1 &
    pid_of[$1]=$!
}

# The counters of whoever owns the database.
completed ()
{
    taskctl --timeout 30s -o json count --status completed | tr -cd 0-9
}

work=$(mktemp -d /tmp/taskmq-cluster.XXXXXX) || exit 1 # a socket's path is short
export TASKMQD_CLUSTER_LEASE=$lease
export TASKMQ_ENDPOINT="ipc://$work/one/taskmqd.ipc ipc://$work/two/taskmqd.ipc"

printf 'taskmq  two brokers on one PostgreSQL\n\n'
db=$(mktemp -d /tmp/tmq-pg-demo.XXXXXX) || exit 1
sh "$postgres" make "$db" || exit
sh "$postgres" run "$db" >"$work/database.log" 2>&1 &
pid_of[database]=$!
await test -S "$db/.s.PGSQL.5432"
broker one
await logged one READY
say "broker one   pid ${pid_of[one]}   owns the database"
broker two
await logged two DATABASE-STANDBY
say "broker two   pid ${pid_of[two]}   waits: it takes over when the other gives no sign for $lease"
taskctl work shout -j 2 -- sh -c 'sleep 0.01; tr a-z A-Z' >"$work/worker.log" 2>&1 </dev/null &
pid_of[worker]=$!
say "worker       pid ${pid_of[worker]}   taskctl work shout -j 2, with both endpoints"

for ((i = 0; i < tasks; i++)); do
    printf '{"queue":"shout","data":"hello %d"}\n' "$i"
done >"$work/batch.jsonl"
taskctl -o id submit --batch "$work/batch.jsonl" >"$work/ids" || die 'the tasks could not be submitted'
say "$tasks tasks submitted; each was in the database before it was acknowledged"

third=$((tasks / 3))
end=$((SECONDS + stall_s))
until done_before=$(completed) && [ "$done_before" -ge "$third" ]; do
    [ "$SECONDS" -lt "$end" ] || die "stands still at $done_before"
done
printf '\n  %skill -9 %s%s   broker one is dead, with %d of %d done\n' \
    "$red" "${pid_of[one]}" "$plain" "$done_before" "$tasks"
killed_ms=$(now_ms)
kill -KILL "${pid_of[one]}"
wait "${pid_of[one]}" 2>/dev/null
await logged two READY
taskctl --timeout 60s submit shout --data 'hello again' >>"$work/ids" || die 'nobody takes tasks'
took_ms=$(($(now_ms) - killed_ms))
say "broker two   owns the database; the first new task was taken $((took_ms / 1000)).$((took_ms % 1000 / 100)) s after the kill"
pid_of[one]=
broker one
await logged one DATABASE-STANDBY
say "broker one   pid ${pid_of[one]}   started again, and waits in turn"

wanted=$((tasks + 1))
end=$((SECONDS + stall_s))
last=
until done_now=$(completed) && [ "$done_now" -eq "$wanted" ]; do
    [ "$done_now" = "$last" ] || end=$((SECONDS + stall_s))
    last=$done_now
    [ "$SECONDS" -lt "$end" ] || die "stands still at $done_now of $wanted"
    sleep 0.1
done
right=0
while read -r id; do
    [[ $(taskctl result "$id") == HELLO\ * ]] && right=$((right + 1))
done < <(sed -n '1~20p;$p' "$work/ids")
looked=$(sed -n '1~20p;$p' "$work/ids" | wc -l)
[ "$right" -eq "$looked" ] || die "$right of $looked results are right"

printf '\n%sOK%s  %d of %d tasks completed, %s, %d of %d results looked at are right; taken over in %d.%d s\n' \
    "$green" "$plain" "$done_now" "$wanted" "nothing lost" "$right" "$looked" \
    "$((took_ms / 1000))" "$((took_ms % 1000 / 100))"
