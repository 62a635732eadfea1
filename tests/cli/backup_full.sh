#!/bin/sh
# backup where a disk is full: the client's or the broker's. Nothing half-made is left, the broker goes on
# and says why, and the next one succeeds. A client that is killed leaves no backup in the way.
. "$(dirname "$0")/lib.sh"
[ -e "${TASKMQ_TEST_ENOSPC-}" ] || {
    echo 'skipped: there is no library that fills a disk'
    exit 77
}
awk 'BEGIN {for (i = 0; i < 3000; i++) {printf "{\"queue\":\"q\",\"data\":\""; for (j = 0; j < 200; j++) printf "%d-0123456789", i; print "\"}"}}' >lines

# full WHERE COMMAND...: with a disk that is full below WHERE while ./full exists.
full ()
{
    where=$1
    shift
    env LD_PRELOAD="$TASKMQ_TEST_ENOSPC" TASKMQ_ENOSPC_FLAG="$room/full" TASKMQ_ENOSPC_DIR="$where" \
        ASAN_OPTIONS=verify_asan_link_order=0 "$@"
}

start_broker
run 0 taskctl submit --batch lines

# The client's.
mkdir small
: >full
run 10 full "$room/small" taskctl backup small/b.tar
err_has '[Nn]o space'
[ -z "$(ls -A small)" ] || fail 'a part of the backup is left'
run 0 taskctl ping
rm full
run 0 full "$room/small" taskctl backup small/b.tar
run 0 taskmqd --restore small/b.tar --data again

# A client that is killed: its end is enough, nobody waits for it.
for pause in 0 0.02 0.05 0.1; do
    spawn killed taskctl backup killed.tar
    sleep $pause
    kill -KILL "$(cat killed.pid)" 2>/dev/null
    wait "$(cat killed.pid)" 2>/dev/null
    eventually taskctl backup next.tar
    rm -f killed.tar* next.tar
done
stop_broker

# The broker's.
mkdir bin
cat >bin/taskmqd <<END
#!/bin/sh
exec env LD_PRELOAD="$TASKMQ_TEST_ENOSPC" TASKMQ_ENOSPC_FLAG="$room/full" \
    TASKMQ_ENOSPC_DIR="$room/.taskmq/backups" ASAN_OPTIONS=verify_asan_link_order=0 \
    "$TASKMQ_BIN/taskmqd" "\$@"
END
chmod +x bin/taskmqd
PATH="$room/bin:$PATH"
start_broker
before=$(find .taskmq/backups -name '*.tar' | wc -l)
: >full
run 10 taskctl backup b.tar
err_has 'space'
[ ! -e b.tar ] || fail 'there is a backup'
[ "$(find .taskmq/backups -type f | wc -l)" -eq "$before" ] || fail 'a part of the copy is left'
grep -q 'id=BACKUP-FAILED .*free space' broker.err || fail 'the log does not say so'
run 0 taskctl count
rm full
run 0 taskctl backup b.tar
eventually taskctl submit q --data x
run 0 taskctl audit tail --kind backup
out_has ' failed: '
stop_broker
