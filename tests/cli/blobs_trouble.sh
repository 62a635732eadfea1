#!/bin/sh
# Large payloads in trouble: a stream without an end, one that breaks, a file that is written to all the
# while, a disk that is full, a client and a broker that are killed. Each is told, nothing half-made
# becomes a task, and the same command succeeds when the trouble is over.
. "$(dirname "$0")/lib.sh"
seq 1 600000 >large

# A broker whose disk is full while ./full exists.
mkdir bin
cat >bin/taskmqd <<END
#!/bin/sh
exec env LD_PRELOAD="${TASKMQ_TEST_ENOSPC-}" TASKMQ_ENOSPC_FLAG="$room/full" \
    TASKMQ_ENOSPC_DIR="$room/.taskmq/blobs/uploads" ASAN_OPTIONS=verify_asan_link_order=0 \
    "$TASKMQ_BIN/taskmqd" "\$@"
END
chmod +x bin/taskmqd
start_broker

# No end: it is read no further than the limit, which has a name.
run 2 taskctl submit q --file /dev/zero
err_has '/dev/zero has more than 16777216 bytes.*limits/blob_bytes'
run 2 sh -c 'yes | taskctl submit q -'
err_has 'standard input has more than 16777216 bytes.*limits/blob_bytes'
run 2 taskctl submit q --file .
err_has 'cannot read .: Is a directory'
run 0 sh -c '(cat large; exit 1) | taskctl submit q -' # a pipe does not say how its writer ended
run 0 taskctl payload "$(cat out)"
cmp -s out large || fail 'what came by a pipe is another one'
run 0 taskctl count --queue q
out 1

# Somebody writes to the file all the while.
cp large growing
spawn writer sh -c 'while :; do echo more >>growing; done'
is_refused ()
{
    taskctl submit q --file growing 2>growing.err
    [ $? -eq 6 ] && grep -q 'the file changed while it was read' growing.err
}
eventually is_refused
signal writer KILL
grep -qx 'taskctl: growing: the file changed while it was read' growing.err || fail 'the file is not named'
grep -qx 'hint: submit it when nobody writes to it, or submit a copy' growing.err || fail 'no hint'

# A client that is killed in the middle, and a broker: the upload goes on.
head -c 15000000 /dev/urandom >fifteen
for pause in 0.02 0.05 0.1; do
    spawn killed taskctl submit killed --file fifteen
    sleep $pause
    kill -KILL "$(cat killed.pid)" 2>/dev/null || :
    kill_broker
    start_broker
done
# Who is not killed is told that it goes on, too.
uploads ()
{
    find .taskmq/blobs/uploads -type f | wc -l
}
is_cut_off ()
{
    head -c 16000000 /dev/urandom >fresh
    before=$(uploads)
    rm -f cut.ended
    (
        taskctl --timeout 1s submit cut --file fresh >cut.out 2>cut.err
        : >cut.ended
    ) &
    cut_pid=$!
    until [ "$(uploads)" -gt "$before" ] || [ -e cut.ended ]; do :; done
    kill_broker
    wait "$cut_pid"
    start_broker
    grep -q '^taskctl: the upload of fresh was cut off: ' cut.err
}
for _ in 1 2 3 4 5 6 7 8 9 10; do # where it was whole before the kill came, another one is tried
    ! is_cut_off || break
done
grep -qx 'hint: within an hour the same command goes on where the upload ended' cut.err || fail "the end of an upload is not told: $(cat cut.err)"
run 0 taskctl submit cut --file fresh
run 0 taskctl payload "$(cat out)"
cmp -s out fresh || fail 'what was cut off is another one'
run 0 taskctl submit survived --file fifteen
run 0 taskctl payload "$(cat out)"
cmp -s out fifteen || fail 'what was taken in parts is another one'
stop_broker
run 0 taskmqd --check --data .taskmq
out_has 'no damage$'

[ -e "${TASKMQ_TEST_ENOSPC-}" ] || exit 0
PATH="$room/bin:$PATH"
start_broker
: >full
head -c 5000000 /dev/urandom >five
run 10 taskctl submit full --file five
err_has 'disk (is full|has no room)' # whoever notices first
run 0 taskctl ping
rm full
eventually taskctl submit full --file five
run 0 taskctl list --queue full -o jsonl
out_lines 1
run 0 taskctl payload "$(sed 's/.*"task_id":"\([^"]*\)".*/\1/' out)"
cmp -s out five || fail 'what came behind a full disk is another one'
