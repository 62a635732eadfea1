#!/bin/sh
# A full disk below the long pieces of work on the record: vacuum, cleanup, rotation of events,
# compaction of tasks.jsonl, import, restore. Each says what is wrong, loses nothing, and is done when there is space
# again. (backup_full.sh has backups; upgrades are tried in a unit test.)
. "$(dirname "$0")/lib.sh"
[ -e "${TASKMQ_TEST_ENOSPC-}" ] || {
    echo 'skipped: there is no library that fills a disk'
    exit 77
}
export TASKMQD_EXPORT_COMPACT=64K TASKMQD_EXPORT_FORGET=1s TASKMQD_EVENTS_KEEP=64K
tasks=1000

# The broker, with a disk that is full below ./.taskmq while ./full exists.
mkdir bin
cat >bin/taskmqd <<END_OF_PROGRAM
#!/bin/sh
exec env LD_PRELOAD="$TASKMQ_TEST_ENOSPC" TASKMQ_ENOSPC_FLAG="$room/full" \
    TASKMQ_ENOSPC_DIR="$room/.taskmq" ASAN_OPTIONS=verify_asan_link_order=0 \
    "$TASKMQ_BIN/taskmqd" "\$@"
END_OF_PROGRAM
chmod +x bin/taskmqd
PATH="$room/bin:$PATH"

lines ()
{
    awk -v queue="$1" -v tasks="$tasks" 'BEGIN {
        for (i = 0; i < tasks; i++) {
            printf "{\"queue\":\"%s\",\"ttl\":0,\"data\":\"", queue
            for (j = 0; j < 100; j++)
                printf "%d-0123456789", i
            print "\"}"
        }
    }'
}
lines keep >keep.lines
lines pass >pass.lines

# Every task of ./acked is there once, and nothing is damaged.
look ()
{
    stop_broker
    run 0 taskmqd --check --data .taskmq
    start_broker
    run 0 taskctl -o id list --queue keep --all
    sort out >have
    cmp -s have want || fail "$1: other tasks are there than were acknowledged"
    run 0 taskctl audit verify
}
takes_again ()
{
    taskctl --timeout 2s submit probe --data x
}

start_broker
run 0 taskctl submit --batch keep.lines
sort out >want
run 0 taskctl submit --batch pass.lines
run 0 taskctl cancel --queue pass --yes

# Cleanup: what it removes is a change, too, and may find no room. It goes on by itself.
run 0 taskctl queue set pass --max-count 1
: >full
taskctl --timeout 2s cleanup >out 2>err
case $? in
0 | 3 | 4 | 8 | 10) ;;
*) fail 'a cleanup on a full disk ends otherwise' ;;
esac
run 0 taskctl count --queue keep
out "$tasks"
rm full
one_left ()
{
    [ "$(taskctl count --queue pass)" -eq 1 ]
}
eventually takes_again
eventually taskctl cleanup
eventually one_left
look cleanup

# Vacuum.
: >full
taskctl --timeout 20s vacuum >out 2>err
code=$?
case $code in
0) ;; # it needed no more than it had
10) err_has 'space' ;;
*) fail "a vacuum on a full disk ends with $code" ;;
esac
run 0 taskctl count --queue keep
out "$tasks"
rm full
eventually takes_again
eventually taskctl vacuum
look vacuum

# Rotation and compaction: nobody waits for them; they are behind, and catch up.
: >full
i=0
while [ "$i" -lt 3 ]; do
    taskctl --timeout 2s submit --batch pass.lines >out 2>err
    taskctl --timeout 2s cancel --queue pass --yes >out 2>err
    i=$((i + 1))
done
rm full
eventually takes_again
run 0 taskctl submit --batch pass.lines
run 0 taskctl cancel --queue pass --yes
written ()
{
    sed -n 's/.*"task_id":"\([^"]*\)".*"queue":"keep".*/\1/p' .taskmq/tasks.jsonl | sort -u >lines.now
    cmp -s lines.now want && ! grep -v '^{.*}$' .taskmq/tasks.jsonl
}
eventually written
look 'rotation and compaction'
[ "$(find .taskmq -name 'events-*' | wc -l)" -ge 1 ] || fail 'no file of events was turned'

# Import: what there is no room for is refused by its line, and comes when there is.
run 0 taskctl export --queue keep --file keep.jsonl
run 0 taskctl backup whole.tar
stop_broker
rm -rf .taskmq
start_broker
: >full
taskctl --timeout 2s import keep.jsonl >out 2>err
case $? in
9 | 10) ;;
*) fail 'an import on a full disk ends otherwise' ;;
esac
err_has "the broker's store is full"
err_has '^[0-9]+ refused$'
rm full
eventually takes_again
run 0 taskctl import keep.jsonl
err_has ' imported$'
run 0 taskctl import keep.jsonl
err "$tasks here already, passed over"
look import

# Restore: it ends, says so, and is done again.
stop_broker
rm -rf .taskmq
: >full
run 11 taskmqd --restore whole.tar --data .taskmq
err_has '[Nn]o space'
rm full
run 0 taskmqd --restore whole.tar --data .taskmq
start_broker
look restore
stop_broker
