#!/bin/sh
# server-key rotate on a full disk: it says so, the present key goes on, and it is done when there is
# space again.
. "$(dirname "$0")/lib.sh"
[ -e "${TASKMQ_TEST_ENOSPC-}" ] || {
    echo 'skipped: there is no library that fills a disk'
    exit 77
}
# Full for the files that a key is written to first: other files may shrink meanwhile, and make room.
mkdir bin
cat >bin/taskmqd <<END
#!/bin/sh
exec env LD_PRELOAD="$TASKMQ_TEST_ENOSPC" TASKMQ_ENOSPC_FLAG="$room/full" \
    TASKMQ_ENOSPC_DIR="$room/.taskmq/.server.key" ASAN_OPTIONS=verify_asan_link_order=0 \
    "$TASKMQ_BIN/taskmqd" "\$@"
END
chmod +x bin/taskmqd
PATH="$room/bin:$PATH"
mkdir -m 700 .taskmq
broker_options="--listen tcp://127.0.0.1:0?curve"
start_broker
run 0 taskctl server-key show
server=$(cat out)

# Neither an order nor a change at once leaves anything behind.
: >full
for when in '--in 1h' --now; do
    # shellcheck disable=SC2086 # an option and its value
    run 10 taskctl server-key rotate $when
    err_has 'space|full'
    run 0 taskctl server-key show
    out "$server"
    grep -q "server_key=$server\$" .taskmq/endpoint || fail "$when: another address"
    [ ! -s .taskmq/server.key.next ] || fail "$when: a key that is to follow is kept"
done
run 0 taskctl ping

# The present key outlives a kill meanwhile.
kill_broker
rm full
start_broker
run 0 taskctl server-key show
out "$server"
run 0 taskctl server-key rotate --now
next=$(cat out)
[ "$next" != "$server" ] || fail 'the next key is the present one'
moved ()
{
    grep -q "server_key=$next\$" .taskmq/endpoint
}
eventually moved
stop_broker
