#!/bin/sh
# kill -9 of the broker at random moments, while tasks come one by one, some of them with large bodies, and the
# archive is away now and then. Each time a backup of the beginning and the archive are restored, beside the
# broker or behind its kill: that is a beginning of what was submitted, in its order and without holes; it has
# everything that the broker had said to be carried; and each body is whole.
#
#     ARCHIVE_KILLS=20 ARCHIVE_SEED=7 archive_kill.sh     so many kills; ./dev soak archive
. "$(dirname "$0")/lib.sh"
kills=${ARCHIVE_KILLS:-2}
seed=${ARCHIVE_SEED:-$$}
echo "seed $seed"
broker_options="--archive $room/archive"
mkdir archive

# random N: from 0 to N - 1, into $drawn.
random ()
{
    seed=$(((seed * 1103515245 + 12345) % 2147483648))
    drawn=$((seed / 65536 % $1))
}

# Until ./enough is there. A submit that was begun goes on over a restart of the broker, and one that finds no
# broker did nothing: so ids are in the order of acceptance.
submit_on ()
{
    submitted=0
    while [ ! -e enough ]; do
        submitted=$((submitted + 1))
        if [ $((submitted % 9)) -eq 0 ]; then
            head -c 300000 /dev/urandom >body
            taskctl submit q --ttl 0 --file body
        else
            taskctl submit q --ttl 0 --data "$submitted"
        fi >>acked 2>refused || grep -q 'no broker is running' refused || exit 1
    done
}

# What was acknowledged is in the archive by now, if the broker says that nothing waits. Into $carried.
look_what_is_carried ()
{
    count=$(wc -l <acked)
    ! taskctl --timeout 5s -o json stats 2>/dev/null | grep -q '"archive_backlog_bytes":0[,}]' || carried=$count
}

# restore N: into ./restored, and what that has into have.N, the oldest first.
restore ()
{
    rm -rf restored
    run 0 taskmqd --restore first.tar --archive archive --data restored
    err_lacks 'RESTORED-(BLOBS|UNREAD)'
    run 0 taskmqd --check --data restored
    taskmqd --data restored >other.out 2>&1 &
    other=$!
    eventually test -s restored/endpoint
    eventually taskctl -e "ipc://$room/restored/taskmqd.ipc" --timeout 20s ping
    run 0 taskctl -e "ipc://$room/restored/taskmqd.ipc" -o id list --all
    kill -KILL "$other"
    wait "$other" 2>/dev/null
    tac out >"have.$1"
    echo "$carried" >"carried.$1"
}

start_broker
eventually grep -q 'id=ARCHIVE-BEGUN' broker.err
run 0 taskctl backup first.tar
: >acked
spawn submitter submit_on
carried=0
n=0
while [ "$n" -lt "$kills" ]; do
    n=$((n + 1))
    random 3
    [ "$drawn" -ne 0 ] || mv archive away
    random 12
    for _ in $(seq "$drawn"); do
        sleep 0.1
        look_what_is_carried
    done
    [ ! -d away ] || mv away archive
    random 4
    if [ "$drawn" -eq 0 ]; then
        restore "$n.beside"
    fi
    look_what_is_carried
    random 10
    sleep "0.0$drawn"
    kill_broker
    restore "$n"
    start_broker
done
touch enough
ended submitter 0
stop_broker
carried=$(wc -l <acked)
restore end

for have in have.*; do
    lines=$(wc -l <"$have")
    head -n "$lines" acked >wanted
    cmp -s "$have" wanted || fail "$have is no beginning of what was submitted: $(diff "$have" wanted | head -3)"
    [ "$lines" -ge "$(cat "carried.${have#have.}")" ] || fail "$have lacks what was carried"
done
! grep -E 'ARCHIVE-(GAP|BROKEN|BLOB|UNREAD)' broker.err || fail 'something is not in the archive'
run 0 taskmqd --check --archive archive
out_has ': 0 findings$'
echo "$kills kills, $(wc -l <acked) tasks, $(find . -maxdepth 1 -name 'have.*' | wc -l) restores"
