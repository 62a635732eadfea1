#!/bin/sh
# shellcheck disable=SC2016 # the shells of the programs expand these
# Artifacts for which the broker has no room: what needs little is attached, the wait is told, and
# what is not attached in the end, too, also by a worker that is told to stop.
. "$(dirname "$0")/lib.sh"
export TMPDIR="$room/tmp"
mkdir tmp
printf 'limits\n    blobs_disk = 1M\n' >conf
broker_options='-c conf'
start_broker
export ROOM="$room"
head -c 900000 /dev/urandom >large
head -c 600000 /dev/urandom >middle

submit q
spawn worker taskctl work q -- sh -c 'cd "$TASKMQ_ARTIFACTS"
    cp "$ROOM/large" 0-large; cp "$ROOM/middle" 1-middle; echo x >2-small; echo done'
eventually grep -q "$id: 0-large is not attached yet, and the task waits for it: .*limits/blobs_disk" worker.err
run 0 taskctl -o id artifact list "$id"
out '1-middle
2-small'
is working "$id" || fail "it has ended"
signal worker TERM
ended worker 0
grep -q "$id: 0-large is not attached: .*limits/blobs_disk.*; taskctl was told to stop$" worker.err ||
    fail 'it is not told that it is not attached'
grep -c 'not attached yet' worker.err >count
[ "$(cat count)" -eq 1 ] || fail 'the wait is told more than once'
run 0 taskctl result "$id"
out 'done'
run 0 taskctl logs "$id"
cat out err >both
grep -q '^taskctl: 0-large is not attached: .*limits/blobs_disk' both || fail 'the log does not tell it'
run 0 taskctl -o id artifact list "$id"
out '1-middle
2-small'

# A result waits as well, and says so.
submit results
spawn worker taskctl work results -- cat "$room/large"
eventually grep -q "$id: its result is not taken yet, and the task waits for that: .*limits/blobs_disk" worker.err
signal worker TERM
signal worker TERM
ended worker 143

# Told to stop twice while the broker is away: what is left is told, too.
submit away
spawn worker taskctl work away -- sh -c 'cd "$TASKMQ_ARTIFACTS"
    cp "$ROOM/middle" 1-middle; echo begun >"$ROOM/begun"
    until [ -e "$ROOM/go" ]; do sleep 0.1; done'
eventually test -s begun
kill_broker
touch go
eventually sh -c 'ls -l "/proc/$(cat worker.pid)/fd" | grep -q 1-middle'
signal worker TERM
eventually grep -q 'again to give it back' worker.err
signal worker TERM
ended worker 143
grep -q "$id: 1-middle is not attached: taskctl was told to stop$" worker.err ||
    fail 'what is left is not told'

# ... but of the one that was just named it is not known: here the broker takes it later.
rm -f begun go
start_broker
submit named
spawn worker taskctl work named -- sh -c 'echo x >"$TASKMQ_ARTIFACTS/just-named"; echo begun >"$ROOM/begun"
    until [ -e "$ROOM/go" ]; do sleep 0.1; done'
eventually test -s begun
kill -STOP "$broker_pid"
touch go
eventually sh -c 'ls -l "/proc/$(cat worker.pid)/fd" | grep -q just-named'
signal worker TERM
eventually grep -q 'again to give it back' worker.err
signal worker TERM
ended worker 143
kill -CONT "$broker_pid"
grep -q "$id: whether just-named is attached is not known: taskctl was told to stop$" worker.err ||
    fail 'it is told otherwise'
eventually sh -c "taskctl -o id artifact list $id | grep -q just-named"
