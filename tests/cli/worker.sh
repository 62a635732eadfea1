#!/bin/sh
# worker: who works here, what became of it, and how one is drained.
. "$(dirname "$0")/lib.sh"
start_broker

run 0 taskctl worker list
out_lines 0
run 5 taskctl worker show nobody
run 5 taskctl worker drain nobody
run 2 taskctl worker
run 2 taskctl worker drain

# One that works, and says what it is.
spawn one taskctl work q --name render-1 --role renderer --label gpu=a100 -- cat
id=$(taskctl submit q --data x) || fail "submit"
run 0 taskctl wait "$id"
run 0 taskctl worker list
out_has '^NAME *STATE *QUEUES *RUNNING *DONE *FAILED *HEARD *HOST *$'
out_has '^render-1 *idle *q *0 *1 *0 '
run 0 taskctl -o json worker show render-1
json name '"render-1"'
json state '"idle"'
json role '"renderer"'
json labels '{"gpu":"a100"}'
json completed 1
json pid "$(cat one.pid)"
json exit null
run 0 env TZ=XYZ-5 taskctl worker show render-1
out_has '^started +[0-9-]{10} [0-9:.]{12} UTC[+]05:00 [(]'
out_has '^role *renderer$'
out_has '^attempts *1 completed, 0 failed'
run 0 taskctl -o id worker list
out_has '^[0-9a-f]{32}$'
worker_id=$(cat out)
run 0 taskctl worker show "$worker_id"

# Drained while it works: it finishes, ends, and is remembered. Another one goes on.
mkfifo gate
spawn two taskctl work slow --name slow-1 -- sh -c 'cat gate; echo done'
first=$(taskctl submit slow) || fail "submit"
second=$(taskctl submit slow) || fail "submit"
begun () { [ "$(status_of "$first")" = working ]; }
eventually begun
run 0 taskctl worker drain slow-1
err_has '^1 worker gets nothing new any more, and ends when done$'
run 0 taskctl worker list
out_has '^slow-1 *draining *slow *1 '
echo open >gate
run 0 taskctl wait "$first"
ended two 0
[ "$(status_of "$second")" = queued ] || fail "a drained worker took a task"
grep -q 'drained by an operator' two.err || fail "it was not told"
gone () { ! taskctl worker list | grep -q slow-1; }
eventually gone
run 0 taskctl worker list --all
out_has '^slow-1 *ended *slow *0 *1 *0 '
run 0 taskctl -o json worker show slow-1
json exit '{"status":0,"signal":0}'
run 0 taskctl worker list
out_has '^render-1 '

# Over a kill of the broker: it is there again, and what it did is known.
kill_broker
start_broker
back () { taskctl worker list | grep -q '^render-1 *idle'; }
eventually back
run 0 taskctl -o json worker show slow-1
json state '"ended"'
signal one TERM
ended one 0
