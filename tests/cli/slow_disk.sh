#!/bin/sh
# A disk that takes long for each commit holds up who waits for one. The loop of the broker leaves such
# commits to their thread, so it has time for the others.
. "$(dirname "$0")/lib.sh"

[ -e "$TASKMQ_BIN/slow-disk.so" ] || {
    echo 'skipped: there is no library that slows a disk'
    exit 77
}
mkdir bin
cat >bin/taskmqd <<END
#!/bin/sh
exec env LD_PRELOAD="$TASKMQ_BIN/slow-disk.so" SLOW_DISK_US=50000 \
    ASAN_OPTIONS=verify_asan_link_order=0 "$TASKMQ_BIN/taskmqd" "\$@"
END
chmod +x bin/taskmqd
PATH="$room/bin:$PATH"
start_broker
for task in 1 2 3 4 5 6 7 8 9 10; do
    run 0 taskctl submit q --data $task
done
run 0 taskctl -o json stats
commits=$(sed -n 's/.*"server_commits_inline": *\([0-9]*\).*/\1/p' out)
[ "${commits:-99}" -le 2 ] || fail "the loop made $commits commits itself"
stall=$(sed -n 's/.*"commit_stall_ms": *\([0-9]*\).*/\1/p' out)
[ "${stall:-0}" -ge 50 ] || fail "the longest commit took ${stall:-?} ms"
stop_broker
