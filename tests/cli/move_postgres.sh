#!/bin/sh
# Tasks from a broker on SQLite to one on PostgreSQL and back, by export and import while both run: all
# that CLUSTER.md says of it stays.
# shellcheck disable=SC2016,SC2119,SC2154 # by shells of programs, and in lib.sh
. "$(dirname "$0")/lib.sh"

start_postgres

# start_at PLACE: the broker of that directory.
start_at ()
{
    place=$1
    shift
    [ "$place" != postgresql ] || set -- --store postgresql --database "$database"
    spawn "$place" taskmqd --data "$room/$place/data" --listen "ipc://$room/$place/socket" "$@"
    eventually grep -q id=READY "$place.err"
}
# What an export has to be like at the other broker: without its events, and what was being worked on
# waits, with its time to live from the beginning.
moved ()
{
    without_events "$1" | sed -E '/"queue":"held"/{
        s/"status":"working","phase":"leased"/"status":"queued","phase":"ready"/
        s/"attempts":\[\{.*\}\],"turns"/"attempts":[],"turns"/
        s/"expires_at":"[^"]*"/"expires_at":"LATER"/
    }'
}
# move FROM TO ATTEMPT: while a worker has that attempt of the task $held.
move ()
{
    export TASKMQ_ENDPOINT="ipc://$room/$1/socket"
    spawn worker taskctl work held -- sleep 1000
    eventually is working "$held"
    run 0 taskctl -o json get "$held"
    json attempt "$3"
    run 0 taskctl export --bodies "$1/bodies" --file "$1/export"
    grep -c '"status":"working","phase":"leased"' "$1/export" >out
    out 1
    export TASKMQ_ENDPOINT="ipc://$room/$2/socket"
    run 0 taskctl import "$1/export" --bodies "$1/bodies"
    err_has '^7 imported$'
    err_has '^1 had a worker, which is not here: they wait in their queues$'
    signal worker KILL
    ended worker 137
    # What is there is in its store.
    signal "$2" KILL
    ended "$2" 137
    start_at "$2"
    run 0 taskctl export --bodies "$2/bodies" --file "$2/export"
    moved "$1/export" >wanted
    moved "$2/export" >found
    diff wanted found >difference || fail "$2 has something else: $(head -c 2000 difference)"
    diff -r "$1/bodies" "$2/bodies" >difference || fail "$2 has other bodies: $(cat difference)"
    [ "$(find "$2/bodies" -type f | wc -l)" = 3 ] || fail 'a large body is missing'
    run 0 taskctl -o json get --events "$told"
    out_has '"events":\[\{"kind":"imported",[^]]*"status":"completed"[^]]*\]'
    run 5 taskctl schedule show nightly
}

# --- one of each kind, on SQLite

for place in sqlite postgresql again; do
    mkdir -m 700 "$place"
    start_at "$place"
done
export TASKMQ_ENDPOINT="ipc://$room/sqlite/socket"
submit first
first=$id
submit reports --data '{ "month": 11.50, "of": ["a","b"] }' --content-type application/json \
    --session trip --label album=summer --label n=1 --method m --meta '{"a":1.10}' --priority 7 \
    --ttl 0 --max-attempts 5 --fair-key k --parent "$first" --after "$first:ignore" --max-runtime 1h \
    --lease 45s --backoff 2s
waiting=$id
submit told --data 'a "text"
of two lines' --max-attempts 2 --backoff 1ms --label album=winter
told=$id
work_twice told "$told"
head -c 400000 /dev/urandom >payload
head -c 500000 /dev/urandom >result
submit large --file payload
large=$id
run 0 taskctl work large --drain -- cat "$room/result"
submit broken --data "$(printf '\001')" --max-attempts 1
broken=$id
run 0 taskctl work broken --drain -- sh -c 'echo "it broke" >&2; exit 100'
submit gone
run 0 taskctl cancel "$id"
submit held --data 'work'
held=$id
run 0 taskctl schedule add nightly reports --cron '30 3 * * *' --data hello

# --- there and back

move sqlite postgresql 1
move postgresql again 2

# It works on, and no attempt has a number twice.
run 0 taskctl work held --drain -- tr a-z A-Z
run 0 taskctl result "$held"
[ "$(cat out)" = WORK ] || fail 'what was worked on is not worked on again'
run 0 taskctl -o json get "$held"
json attempt 3
run 0 taskctl cancel "$first"
run 0 taskctl work reports --drain -- cat
[ "$(status_of "$waiting")" = completed ] || fail 'what waited for another task is not worked on'
run 0 taskctl result "$large"
cmp -s out result || fail 'a large result is another one'
run 0 taskctl artifact get "$told" film -o film
head -c 700000 /dev/zero | cmp -s - film || fail 'an artifact is another one'
run 0 taskctl list --label album=winter -o id
out "$told"
run 0 taskctl -o json get "$broken"
json error '{"code":100,"message":"it broke","data":null}'
