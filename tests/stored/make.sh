#!/bin/sh
# make.sh BIN FILE: a data directory with something of everything, as the broker in the directory BIN
# leaves it when it is killed, packed into FILE. The tables have most of it, the journal the rest.
#
#   schema-6.tar.gz      of 90d5562^: tables of schema 6, the journal still a database
#   schema-7.tar.gz      of 347713c^: the first form of schema 7
#   schema-7-db.tar.gz   of df48c5a^: schema 7, the journal still a database
#   schema-7-log.tar.gz  of df48c5a: … and a log, as today
#   schema-8.tar.gz      of 25e2b1d
#   schema-9.tar.gz      of eb773c3a, with a payload and a result that are blobs, and turns
#   schema-10.tar.gz     of f527b79b
#
# The files stand in the tree because nobody can make them without these versions, and an upgrade has
# to be tried on what they really wrote.
# shellcheck disable=SC2016,SC2094 # the shells of the workers expand these; list is a file
set -eu
PATH="$1:$PATH"
file=$(realpath -m "$2")
room=$(mktemp -d)
cd "$room"
export TASKMQ_TIMEOUT=10s TASKMQD_STORE_JOURNAL_SIZE=64K
broker=
pids=
trap 'kill -KILL $broker $pids 2>/dev/null || :; rm -rf "$room"' EXIT

start ()
{
    taskmqd --data data 2>log &
    broker=$!
    for _ in 1 2 3 4 5 6 7 8 9 10; do
        ! taskctl -e "ipc://$room/data/taskmqd.ipc" ping >/dev/null 2>&1 || return 0
        sleep 0.2
    done
    cat log >&2
    exit 1
}

ctl ()
{
    taskctl -e "ipc://$room/data/taskmqd.ipc" "$@"
}

# work QUEUE SCRIPT: a worker that takes one task.
work ()
{
    taskctl -e "ipc://$room/data/taskmqd.ipc" work "$1" -- sh -c "$2" >/dev/null 2>&1 &
    pids="$pids $!"
}

fields=task_id,queue,session,status,status_message,progress,labels,meta,attempt,created_at,finished_at
fields=$fields,payload_bytes,result_bytes,result_type,error,dead,ttl_ms,not_before
start
head -c 300000 /dev/zero | tr '\0' y >large
ctl context put plan --data '{"a":1}'
ctl queue set slow --max-running 2
done_id=$(ctl submit 'done' --ttl 0 --data paid --label kind=done --label shop=north --session s1)
work 'done' 'echo "progress 1/3 pages" >&$TASKMQ_FD; echo well done; cat'
ctl wait "$done_id" >/dev/null
large_id=$(ctl submit large --ttl 0 --file large)
work large 'echo "turn {\"agent\":\"ann\",\"content\":\"looked\"}" >&$TASKMQ_FD; cat; echo end'
ctl wait "$large_id" >/dev/null
failed_id=$(ctl submit failing --ttl 0 --data bad --max-attempts 1)
work failing 'echo no luck >&2; exit 3'
ctl wait "$failed_id" >/dev/null || :
cancelled_id=$(ctl submit idle --ttl 0 --data never)
ctl cancel "$cancelled_id" >/dev/null
purged_id=$(ctl submit idle --ttl 0 --data gone)
ctl cancel "$purged_id" >/dev/null
ctl purge "$purged_id" >/dev/null
first=$(ctl submit idle --ttl 0 --data first --dedup-key only --meta '{"m":1}')
ctl submit idle --ttl 0 --data second --after "$first" >/dev/null
ctl submit idle --ttl 0 --data later --delay 1000h >/dev/null
ctl submit working --ttl 0 --data w >/dev/null
work working 'echo "progress 7/20 pages" >&$TASKMQ_FD; echo "status half way" >&$TASKMQ_FD; sleep 1000'
ctl submit asking --ttl 0 --data q >/dev/null
work asking 'echo "ask colour {\"text\":\"which?\"}" >&$TASKMQ_FD; sleep 1000'
for _ in 1 2 3 4 5 6 7 8 9 10; do
    ! ctl inbox 2>/dev/null | grep -q colour || break
    sleep 0.2
done
sleep 1 # the tables have it
kill -KILL "$broker"
wait "$broker" 2>/dev/null || :
export TASKMQD_STORE_WRITE_BACK_TIME=60s
start
sleep 0.5
ctl submit idle --ttl 0 --data "in the journal" --label kind=late --session s2 >/dev/null
ctl context put plan --data '{"a":2}'
ctl submit progress --ttl 0 --data p >/dev/null
work progress 'echo "progress 123456789/987654321 bytes" >&$TASKMQ_FD; echo "status in the journal" >&$TASKMQ_FD; sleep 1000'
sleep 1
kill -KILL "$broker"
wait "$broker" 2>/dev/null || :
for pid in $pids; do
    kill -KILL "$pid" 2>/dev/null || :
done
pids=
cp -a data killed # a list has the journal written back
start
ctl -o jsonl list --all --fields "$fields" >list
kill -KILL "$broker"
wait "$broker" 2>/dev/null || :
broker=
sort list >killed/list
cd killed
tar -c --sort=name --sparse --owner=0 --group=0 --mtime=@0 taskmq.db taskmq.db-wal journal.* audit.jsonl blobs list | gzip -9n >"$file"
cd /
