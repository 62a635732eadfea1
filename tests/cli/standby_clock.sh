#!/bin/sh
# Brokers of a pair whose wall clocks are hours apart: who owns, whose attempt it is and what came first
# do not depend on them.
# shellcheck disable=SC2016 # the shells of the programs expand these
. "$(dirname "$0")/lib.sh"

# shellcheck disable=SC2119 # its arguments are settings
start_postgres

# broker NAME SECONDS: a standby whose wall clock is so far ahead of the machine's.
broker ()
{
    [ -d "$room/$1" ] || mkdir -m 700 "$room/$1"
    spawn "$1" env LD_PRELOAD="$TASKMQ_TEST_WALL" TASKMQ_WALL_S="$2" ASAN_OPTIONS=verify_asan_link_order=0 \
        taskmqd --standby --data "$room/$1/data" --listen "ipc://$room/$1/socket" --store postgresql \
        --database "$database"
}
logged () { grep -q "$2" "$1.err"; }
field () { taskctl -o json get "$1" | sed -n "s/.*\"$2\":\"\{0,1\}\([^,\"]*\).*/\1/p"; }
works () { [ "$(field "$1" status)" = working ]; }
export TASKMQ_ENDPOINT="ipc://$room/a/socket ipc://$room/b/socket ipc://$room/c/socket"
export TASKMQD_CLUSTER_LEASE=2s

# takes_over FROM TO SECONDS: in the middle of an attempt, which goes on.
takes_over ()
{
    id=$(taskctl submit mail --data "$2") || fail submit
    eventually works "$id"
    broker "$2" "$3"
    eventually logged "$2" id=DATABASE-STANDBY
    signal "$1" KILL
    ended "$1" 137
    eventually logged "$2" id=READY
    [ "$(field "$id" status)" = working ] || fail "$2: the attempt is $(field "$id" status)"
    touch "$2.go"
    run 0 taskctl wait "$id"
    [ "$(field "$id" attempt)" = 1 ] || fail "$2: attempt $(field "$id" attempt) of a task that nobody lost"
    ids="$id $ids"
}

ids=
broker a 0
eventually logged a id=READY
spawn worker taskctl work mail -- sh -c 'name=$(cat); until [ -e "$name.go" ]; do sleep 0.1; done'
spawn heard taskctl -o jsonl watch
takes_over a b 3600  # an hour ahead
takes_over b c -3600 # and two behind that one
takes_over c a 0

# events: one behind the other, from whichever broker they came
heard_all () { grep -c '"kind":"completed"' heard.out | grep -qx 3; }
eventually heard_all
sed -n 's/.*"seq":\([0-9]*\),.*/\1/p' heard.out >seqs
seq "$(head -n 1 seqs)" "$(tail -n 1 seqs)" | cmp -s - seqs || fail "events $(tr '\n' ' ' <seqs)"

# tasks: the newest first, whatever their times say; none ended before it began
# shellcheck disable=SC2086 # one a line
printf '%s\n' $ids >wanted
taskctl -o jsonl list >listed
sed -n 's/.*"task_id":"\([^"]*\)".*/\1/p' listed | cmp -s - wanted || fail "the order of $(cat listed)"
sed -n 's/.*"created_at":"\([^"]*\)".*"finished_at":"\([^"]*\)".*/\1 \2/p' listed >spans
[ "$(wc -l <spans)" = 3 ] || fail "the times of $(cat listed)"
while read -r created finished; do
    printf '%s\n%s\n' "$created" "$finished" | sort -C || fail "it ended at $finished, and came at $created"
done <spans
signal worker TERM
signal a TERM
ended a 0
