#!/bin/sh
# What is not in the tables yet is bounded. Beyond it submissions wait, and then nothing is read; both
# end by a write-back that is asked for, not by the one that comes with time.
. "$(dirname "$0")/lib.sh"

TASKMQD_STORE_WRITE_BACK_TIME=1m TASKMQD_LIMITS_DIRTY_BYTES_SOFT=1M TASKMQD_LIMITS_DIRTY_BYTES_HARD=1M
export TASKMQD_STORE_WRITE_BACK_TIME TASKMQD_LIMITS_DIRTY_BYTES_SOFT TASKMQD_LIMITS_DIRTY_BYTES_HARD
start_broker
head -c 200000 /dev/zero | tr '\0' x >payload
for task in 1 2 3 4 5 6 7 8 9 10 11 12; do
    run 0 timeout 50 taskctl submit q --label "task=$task" --file payload
done
run 0 taskctl -o json stats
rounds=$(sed -n 's/.*"server_hard_limit": *\([0-9]*\).*/\1/p' out)
[ "${rounds:-0}" -ge 1 ] || fail "the hard limit was met in ${rounds:-no} rounds"
stop_broker
