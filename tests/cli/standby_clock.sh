#!/bin/sh
# Brokers of a pair, workers and the database, on machines whose wall clocks are hours apart and leap:
# who owns, whose attempt it is and what came first do not depend on them.
# shellcheck disable=SC2016,SC2086 # the shells of the programs expand these; words
. "$(dirname "$0")/lib.sh"

# shellcheck disable=SC2119 # its arguments are settings
start_postgres

# With TASKMQ_WALL_S=SECONDS behind it: a command whose wall clock is so far ahead of the machine's.
wrong="env LD_PRELOAD=$TASKMQ_TEST_WALL ASAN_OPTIONS=verify_asan_link_order=0"
# broker NAME SECONDS: a standby there.
broker ()
{
    [ -d "$room/$1" ] || mkdir -m 700 "$room/$1"
    spawn "$1" $wrong TASKMQ_WALL_S="$2" taskmqd --standby --data "$room/$1/data" \
        --listen "ipc://$room/$1/socket" --store postgresql --database "$database"
}
# is_ahead TIME SECONDS: a time of just now, in seconds, of a clock that is so far ahead.
is_ahead ()
{
    off=$(($1 - $(date +%s) - $2))
    [ "$off" -ge -900 ] && [ "$off" -le 900 ]
}
# Its user may not be let into the build.
cp "$TASKMQ_TEST_WALL" "$postgres_home/wall.so"
chmod 755 "$postgres_home/wall.so"
# server_leaps SECONDS: the database fails, and comes back with a clock that is so far ahead.
server_leaps ()
{
    kill_postgres
    # shellcheck disable=SC2034 # start_postgres uses it
    postgres_within="env LD_PRELOAD=$postgres_home/wall.so TASKMQ_WALL_S=$1"
    # shellcheck disable=SC2119
    start_postgres
    is_ahead "$(sql 'SELECT extract (epoch FROM clock_timestamp ())::int8')" "$1" ||
        fail "the database has another clock than that"
}
logged () { grep -q "$2" "$1.err"; }
field () { taskctl -o json get "$1" | sed -n "s/.*\"$2\":\"\{0,1\}\([^,\"]*\).*/\1/p"; }
works () { [ "$(field "$1" status)" = working ]; }
export TASKMQ_ENDPOINT="ipc://$room/a/socket ipc://$room/b/socket ipc://$room/c/socket"
export TASKMQD_CLUSTER_LEASE=2s

# went_on ID SECONDS: the attempt did, on a machine whose clock is so far ahead.
went_on ()
{
    run 0 taskctl wait "$1"
    [ "$(field "$1" attempt)" = 1 ] || fail "attempt $(field "$1" attempt) of a task that nobody lost"
    run 0 taskctl result "$1"
    is_ahead "$(cat out)" "$2" || fail "the worker had another clock than that: $(cat out)"
}
# takes_over FROM TO SECONDS: in the middle of two attempts, which go on. Who submitted the second
# task is four hours behind the first.
takes_over ()
{
    early=$($wrong TASKMQ_WALL_S=7200 taskctl submit early --data "$2") || fail submit
    late=$($wrong TASKMQ_WALL_S=-7200 taskctl submit late --data "$2") || fail submit # its id is older
    printf '%s\n%s\n' "$late" "$early" | sort -C || fail "the submitters had the same clock"
    eventually works "$early"
    eventually works "$late"
    broker "$2" "$3"
    eventually logged "$2" id=DATABASE-STANDBY
    signal "$1" KILL
    ended "$1" 137
    eventually logged "$2" id=READY
    works "$early" || fail "$2: the attempt did not go on"
    works "$late" || fail "$2: the attempt of the later task did not go on"
    touch "$2.go"
    went_on "$early" -7200
    went_on "$late" 7200
    ids="$late $early $ids"
}

ids=
broker a 0
eventually logged a id=READY
work='name=$(cat); until [ -e "$name.go" ]; do sleep 0.1; done; date +%s'
spawn early $wrong TASKMQ_WALL_S=-7200 taskctl work early -- sh -c "$work"
spawn late $wrong TASKMQ_WALL_S=7200 taskctl work late -- sh -c "$work"
spawn heard taskctl -o jsonl watch
server_leaps 10800
takes_over a b 3600  # an hour ahead
server_leaps -10800
takes_over b c -3600 # and two behind that one
takes_over c a 0

# events: one behind the other, from whichever broker they came
heard_all () { grep -c '"kind":"completed"' heard.out | grep -qx 6; }
eventually heard_all
sed -n 's/.*"seq":\([0-9]*\),.*/\1/p' heard.out >seqs
seq "$(head -n 1 seqs)" "$(tail -n 1 seqs)" | cmp -s - seqs || fail "events $(tr '\n' ' ' <seqs)"

# tasks: the newest first, whatever their times and ids say; none ended before it began
printf '%s\n' $ids >wanted
taskctl -o jsonl list >listed
sed -n 's/.*"task_id":"\([^"]*\)".*/\1/p' listed | cmp -s - wanted || fail "the order of $(cat listed)"
sed -n 's/.*"created_at":"\([^"]*\)".*"finished_at":"\([^"]*\)".*/\1 \2/p' listed >spans
[ "$(wc -l <spans)" = 6 ] || fail "the times of $(cat listed)"
while read -r created finished; do
    printf '%s\n%s\n' "$created" "$finished" | sort -C || fail "it ended at $finished, and came at $created"
done <spans
signal early TERM
signal late TERM
signal a TERM
ended a 0
