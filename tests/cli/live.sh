#!/bin/sh
# shellcheck disable=SC2016 # the shells of the programs expand these
# What commands that go on for long say: where they stand, and when the broker goes away and comes back.
. "$(dirname "$0")/lib.sh"
start_broker

cat >gated <<'END'
#!/bin/sh
echo >"running.$TASKMQ_TASK_ID"
until [ -e gate ]; do sleep 0.05; done
echo "one line" >&2
printf "half a line" >&2
END
chmod +x gated

# A worker: its beginning, the broker's absence, its end with what it has done; -v: each task.
spawn worker taskctl -v work jobs more -- ./gated
eventually grep -qx 'taskctl: working on jobs, more, 1 task at a time' worker.err
submit jobs
eventually grep -qx "taskctl: $id attempt 1 begins" worker.err
kill_broker
eventually grep -qx 'taskctl: the broker is gone; what runs goes on' worker.err
start_broker
eventually grep -Eqx 'taskctl: the broker is back after [0-9]+(ms|s|m)' worker.err
: >gate
eventually is completed "$id"
signal worker TERM
ended worker 0
err_has '^half a line$'
err_has "^taskctl: $id attempt 1 ended with 0 after [0-9]+ ms$"
err_has '^one line$'
tail -n 1 err | grep -qx 'taskctl: 1 done' || fail 'no sum at the end'
err_lacks "$(printf '\033')"

# Several at a time: each line names its task, and is ended. -q says nothing of its own.
submit jobs
first=$id
submit jobs
run 0 taskctl -q work jobs -j 2 --drain -- ./gated
for id in "$first" "$id"; do
    err_has "^$(printf %s "$id" | tail -c 12): one line$"
    err_has "^$(printf %s "$id" | tail -c 12): half a line$"
done
[ "$(wc -l <err)" -eq 4 ] || fail 'there are other lines'

# What did not succeed is in the sum.
submit jobs --data 'exit 100'
submit jobs --data 'head -c 16777217 /dev/zero'
big=$id
submit jobs --data '[ "$TASKMQ_ATTEMPT" -gt 1 ] || exit 75'
run 0 taskctl work jobs --drain --release-delay 1ms -- sh -c 'exec sh -c "$(cat)"'
err_has "^taskctl: $big: the result is larger than the limit of 16777216 bytes: failed for good$"
err_has '^taskctl: 1 done, 2 failed, 1 given back$'

# A result that comes too late is thrown away, and nobody overlooks it.
rm gate
submit jobs --lease 3s --backoff 1ms
spawn late taskctl work jobs --max-tasks 1 -- ./gated
eventually test -e "running.$id"
pgrep -P "$(cat late.pid)" >guard
signal late STOP
run 0 taskctl work jobs --max-tasks 1 -- true
: >gate
guard_is_gone ()
{
    ! kill -0 "$(cat guard)" 2>/dev/null || grep -q '^State:.Z' "/proc/$(cat guard)/status"
}
eventually guard_is_gone
signal late CONT
ended late 0
err_has "^taskctl: $id: the result came too late and was thrown away"
err_has '^taskctl: 0 done, 1 too late and thrown away$'

# Who waits for a task is told too, and of a payload that nobody reads.
mkfifo pipe
exec 9<>pipe
echo unread >&9
taskctl submit jobs <pipe >out 2>err || fail 'submit'
err "taskctl: the payload is empty: standard input is read by 'submit jobs -' only"
taskctl submit jobs --data x <pipe >out 2>err || fail 'submit'
[ ! -s err ] || fail 'a loop is told of its input'
exec 9<&-
printf 'one\ntwo\n' >lines
taskctl submit jobs <lines >out 2>err || fail 'submit'
err "taskctl: the payload is empty: standard input is read by 'submit jobs -' only"
taskctl submit jobs - <lines >out 2>err || fail 'submit'
[ ! -s err ] || fail 'a payload is told of that was read'
while read -r line; do
    taskctl submit jobs --label "line=$line" || fail 'submit'
done <lines >out 2>err
[ ! -s err ] || fail 'a loop over a file is told of its input'
taskctl submit jobs </dev/null >out 2>err || fail 'submit'
[ ! -s err ] || fail 'nothing was there'
spawn waiter taskctl submit nobody --data x --wait
eventually test -s waiter.err
id=$(head -n 1 waiter.err)
kill_broker
eventually grep -qx 'taskctl: the broker is gone; waiting for it' waiter.err
start_broker
eventually grep -Eqx 'taskctl: the broker is back after [0-9]+(ms|s|m)' waiter.err
run 0 taskctl cancel "$id"
ended waiter 8

# The status line: on a terminal only, on a line of its own, and gone at the end.
esc=$(printf '\033')
in_terminal ()
{
    spawn "$1" env TERM=xterm script -qefc "stty cols 80; exec $2" /dev/null
}
shows ()
{
    tr '\r' '\n' <"$1.out" | grep -Eqx "${esc}\[K$2"
}
rm gate
in_terminal screen "taskctl work screen -j 2 -- ./gated"
eventually shows screen 'connected  0 running  0 done  0 failed  waiting since [0-9:]{8}'
submit screen
eventually shows screen 'connected  1 running  0 done  0 failed'
kill_broker
eventually shows screen 'no broker since [0-9:]{8}  1 running  0 done  0 failed'
start_broker
eventually shows screen 'connected  1 running  0 done  0 failed'
: >gate
eventually shows screen 'connected  0 running  1 done  0 failed  waiting since [0-9:]{8}'
worker=$(pgrep -P "$(cat screen.pid)")
kill -TERM "$worker"
ended screen 0
tr '\r' '\n' <out | grep -Ex "(${esc}\[K)?$(printf %s "$id" | tail -c 12): one line" || fail 'a line is drawn over'
tr '\r' '\n' <out | grep -Fx "${esc}[Ktaskctl: 1 done" || fail 'the line is left behind'
in_terminal screen "taskctl watch --since 0 --queue nobody"
eventually shows screen 'connected  [0-9]+ events, the last at [0-9:]{8}'
worker=$(pgrep -P "$(cat screen.pid)")
kill -INT "$worker"
ended screen 130
i=0
while [ "$i" -lt 3 ]; do
    i=$((i + 1))
    printf '{"queue":"bar","data":"%d"}\n' "$i"
done >batch.jsonl
in_terminal screen 'taskctl submit --batch batch.jsonl'
ended screen 0
tr '\r' '\n' <out | grep -q '░  0 of 3 submitted' || fail 'no bar of a batch'
in_terminal screen 'taskctl work bar --drain -- true'
ended screen 0
tr '\r' '\n' <out | grep -q '█  0 running  3 done  0 failed  0 left' || fail 'no bar of a drain'
