#!/bin/sh
# shellcheck disable=SC2016 # the shells of the programs expand these
# Logs that are damaged: what is cut off behind the damage is told, and the log goes on.
. "$(dirname "$0")/lib.sh"

start_broker
cat >program <<'END'
for i in 1 2 3; do
    echo "line $i"
    while [ ! -e "go$i" ]; do sleep 0.05; done
done
END
id=$(taskctl submit q --max-attempts 1)
spawn worker taskctl work q -- sh program
for i in 1 2; do
    eventually sh -c "taskctl logs $id | grep -qx 'line $i'"
    [ "$i" = 2 ] || : >go$i
done
kill_broker

# As if it were a file of a version without sums: behind its first damage nothing can be found.
log=$(find .taskmq/logs -name '*.out')
printf 'tmqlog1\n' | dd of="$log" conv=notrunc 2>dd.err
start_broker
: >go2
eventually grep -q 'id=LOGS-CUT .*last=.*\.out.* files=1 bytes=' broker.err
eventually sh -c "taskctl logs $id | grep -aq 'line 3$'"
: >go3
run 0 taskctl wait "$id"
signal worker TERM
ended worker 0
stop_broker
