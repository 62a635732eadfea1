#!/bin/sh
# kill -9 of the broker, or of the program, in the middle of each long piece of work on the record:
# write-back of the journal, rotation of events.jsonl, compaction of tasks.jsonl, vacuum, backup,
# restore, import, a new index, an upgrade. After each: what was acknowledged is there, each task once, and nothing is damaged.
#
#     RECORD_KILLS=20 RECORD_SEED=7 kill_record.sh     so many kills each; ./dev soak record
. "$(dirname "$0")/lib.sh"
kills=${RECORD_KILLS:-2}
seed=${RECORD_SEED:-$$}
echo "seed $seed"
export TASKMQD_EXPORT_COMPACT=64K TASKMQD_EXPORT_FORGET=1s TASKMQD_STORE_JOURNAL_SIZE=1M
export TASKMQD_EVENTS_KEEP=64K TASKMQD_EVENTS_PACK=true
tasks=400

# A moment within the first MS milliseconds, by the seed.
moment ()
{
    seed=$(((seed * 1103515245 + 12345) % 2147483648))
    sleep "$(awk "BEGIN {print $seed % $1 / 1000}")"
}

# lines QUEUE: what one batch submits.
lines ()
{
    awk -v queue="$1" -v tasks="$tasks" 'BEGIN {
        for (i = 0; i < tasks; i++) {
            printf "{\"queue\":\"%s\",\"data\":\"", queue
            for (j = 0; j < 100; j++)
                printf "%d-0123456789", i
            print "\"}"
        }
    }'
}
lines keep >keep.lines
lines pass >pass.lines

# The tables, the journal and the events are whole, and every task of ./acked is there.
look ()
{
    [ -z "$broker_pid" ] || kill_broker
    run 0 taskmqd --check --data .taskmq
    start_broker
    run 0 taskctl -o id list --queue keep --all
    sort out >have
    sort acked >want
    comm -23 want have >missing
    [ ! -s missing ] || fail "$1: $(wc -l <missing) tasks that were acknowledged are missing: $(head -3 missing)"
    [ -z "$(uniq -d have)" ] || fail "$1: a task is there twice"
    run 0 taskctl audit verify
}

# tasks.jsonl comes to say the same as the broker: a task's last line counts.
exported ()
{
    sed -n 's/.*"task_id":"\([^"]*\)".*"queue":"keep".*/\1/p' .taskmq/tasks.jsonl | sort -u >lines.now
    comm -23 want lines.now >missing
    [ ! -s missing ] && ! grep -v '^{.*}$' .taskmq/tasks.jsonl
}

add ()
{
    taskctl submit --batch "$1.lines" >added || true
    [ "$1" != keep ] || cat added >>acked
}

# Tasks that come and go: free pages, old lines, tombstones.
pass ()
{
    taskctl submit --batch pass.lines
    taskctl cancel --queue pass --yes
    taskctl purge --queue pass --yes
}

# killed WHAT MS COMMAND...: the broker dies while the command runs.
killed ()
{
    what=$1
    within=$2
    shift 2
    round=0
    while [ "$round" -lt "$kills" ]; do
        round=$((round + 1))
        spawn work "$@"
        moment "$within"
        kill_broker
        signal_quietly work
        look "$what, round $round"
    done
    echo "$what: $kills kills"
}
signal_quietly ()
{
    kill -KILL "$(cat "$1.pid")" 2>/dev/null
    wait "$(cat "$1.pid")" 2>/dev/null
}

: >acked
start_broker
add keep
add keep
look 'the first tasks'

round=0
while [ "$round" -lt "$kills" ]; do
    round=$((round + 1))
    # Each submit has a file of its own: the one that outlives its loop is cut off in a line, too.
    # shellcheck disable=SC2016 # for the shell of the work
    spawn work env TASKMQ_TIMEOUT=5s ROUND="$round" sh -c '
        i=0
        while taskctl submit --batch keep.lines >"written.$ROUND.$i"; do i=$((i + 1)); done'
    moment 1500
    kill_broker
    signal_quietly work
    # A batch is printed when all of it was acknowledged, so each line that stands there was.
    cat written."$round".* | grep -E '^[0-9a-f-]{36}$' >>acked || true
    look "write-back, round $round"
done
echo "write-back: $kills kills"
eventually exported

# Tasks that come and go fill files of events and make lines of tasks.jsonl superfluous.
come_and_go='taskctl submit --batch pass.lines && taskctl cancel --queue pass --yes &&
    taskctl purge --queue pass --yes'
churn="while $come_and_go; do :; done"
killed rotation 1500 env TASKMQ_TIMEOUT=5s sh -c "$churn"
# A slow machine may have come to none before the kill: what was killed goes on then.
turned ()
{
    [ "$(find .taskmq -name 'events-*' | wc -l)" -ge 2 ] || {
        sh -c "$come_and_go" >>turned.out 2>&1
        false
    }
}
eventually turned
killed compaction 1500 env TASKMQ_TIMEOUT=5s sh -c "$churn"
eventually exported

pass >out 2>&1
killed vacuum 300 env TASKMQ_TIMEOUT=5s taskctl vacuum

killed backup 400 env TASKMQ_TIMEOUT=5s taskctl backup killed.tar
rm -f killed.tar*
run 0 taskctl backup whole.tar
[ "$(find .taskmq/backups -name '.*' | wc -l)" -eq 0 ] || fail 'a part of a backup is left'

killed reindex 500 env TASKMQ_TIMEOUT=5s taskctl search reindex
found ()
{
    taskctl -o jsonl list --search 0123456789 --queue keep --limit 1 >out && [ -s out ]
}
eventually found

# Import: cut off on either side, and repeated.
run 0 taskctl export --queue keep
head -n $((2 * tasks)) out >exported.jsonl
stop_broker
cp acked acked.first
sed 's/^{"task_id":"\([^"]*\)".*/\1/' exported.jsonl >exported
: >acked
# import_killed SIDE: the import begins with nothing, loses that side, and is done again.
import_killed ()
{
    round=0
    while [ "$round" -lt "$kills" ]; do
        round=$((round + 1))
        rm -rf .taskmq
        start_broker
        spawn work env TASKMQ_TIMEOUT=5s taskctl import exported.jsonl
        moment 800
        [ "$1" = program ] || kill_broker
        signal_quietly work
        look "import, killed $1, round $round"
        cp exported acked
        run 0 taskctl import exported.jsonl
        look "import, done again, round $round"
        run 0 taskctl export --queue keep
        for file in exported.jsonl out; do
            sed -E 's/,"events":\[.*\]\}$/}/' "$file" | sort >"$file.bare"
        done
        cmp -s exported.jsonl.bare out.bare || fail "import, killed $1, round $round: another export"
        : >acked
        stop_broker
    done
    echo "import, killed $1: $kills kills"
}
import_killed program
import_killed broker
cp acked.first acked

# Restore: what was cut off is done again, and no broker takes it for whole.
round=0
while [ "$round" -lt "$kills" ]; do
    round=$((round + 1))
    rm -rf .taskmq
    spawn work taskmqd --restore whole.tar --data .taskmq
    moment 300
    signal_quietly work
    if [ -e .taskmq/.restoring ]; then
        taskmqd --data .taskmq >out 2>err && fail 'a start took half a restore'
    fi
    if [ ! -e .taskmq/taskmq.db ] || [ -e .taskmq/.restoring ]; then
        run 0 taskmqd --restore whole.tar --data .taskmq
    fi
    look "restore, round $round"
    kill_broker
done
echo "restore: $kills kills"

# Upgrade: the start itself is killed.
: >acked
round=0
while [ "$round" -lt "$kills" ]; do
    round=$((round + 1))
    rm -rf .taskmq
    mkdir -m 700 .taskmq
    tar -xzf "$TASKMQ_SOURCE/tests/stored/schema-6.tar.gz" -C .taskmq
    spawn work taskmqd --data .taskmq
    moment 150
    signal_quietly work
    start_broker
    run 0 taskctl count
    out_has '\b11\b'
    look "upgrade, round $round"
    kill_broker
done
echo "upgrade: $kills kills"
