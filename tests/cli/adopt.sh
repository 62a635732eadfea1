#!/bin/sh
# Late successes: kept, shown with the attempts, adopted; through kills of the broker, and what is
# refused.
. "$(dirname "$0")/lib.sh"
start_broker

cat >gated <<'PROGRAM'
#!/bin/sh
: >"running.$TASKMQ_TASK_ID"
while ! [ -e "gate.$TASKMQ_TASK_ID" ]; do sleep 0.05; done
echo 'the late result'
PROGRAM
chmod +x gated
guard_is_gone ()
{
    ! kill -0 "$(cat guard)" 2>/dev/null || grep -q '^State:.Z' "/proc/$(cat guard)/status"
}
is_queued ()
{
    [ "$(status_of "$id")" = queued ]
}

# A worker that stood still for longer than its lease brings the result, which is too late.
late_result ()
{
    submit jobs --data x --lease 1s --backoff 5m --max-attempts 5
    spawn late taskctl work jobs --max-tasks 1 -- ./gated
    eventually test -e "running.$id"
    pgrep -P "$(cat late.pid)" >guard
    signal late STOP
    eventually is_queued
    : >"gate.$id"
    eventually guard_is_gone
    signal late CONT
    ended late 0
    err_has "^taskctl: $id: the result came too late: .*the success was kept$"
    err_has '^taskctl: 0 done, 1 too late and kept$'
}

late_result
run 0 taskctl get "$id"
out_lacks attempts
run 0 taskctl get --attempts "$id"
out_has '^  attempts$'
out_has '^    1  lease_lost '
out_has 'a late success is kept: 16B  text/plain, since .*, until '
run 0 taskctl -o json get --attempts "$id"
out_has '"attempts":\[{"attempt":1,"worker":"[^"]*","started_at":"'
out_has '"end":"lease_lost","error":{"code":-33002,"message":"[^"]*"},"kept":{"bytes":16,'
run 0 taskctl get --events "$id"
out_has ' late '

# What cannot be adopted.
run 5 taskctl adopt "$id" 7
err_has 'the task has had 1 attempts, not 7'
run 5 taskctl adopt 01890000-0000-7000-8000-0000000000ee 1
run 2 taskctl adopt "$id"
run 2 taskctl adopt "$id" one
err_has "'one' is not the number of an attempt"
run 2 taskctl adopt "$id" 0
run 2 taskctl adopt "$id" 1 2
run 2 taskctl adopt nonsense 1

# The broker is killed before the adoption, and behind it; the same request again succeeds.
hex=00112233445566778899aabbccddee01
kill_broker
start_broker
run 0 taskctl --request-id $hex -o json adopt "$id" 1
json status '"completed"'
json attempt 2
kill_broker
start_broker
run 0 taskctl --request-id $hex -o id adopt "$id" 1
out "$id"
run 6 taskctl adopt "$id" 1
err_has 'no attempt can be adopted: the task is completed'
run 0 taskctl result "$id"
out 'the late result'
run 0 taskctl wait "$id"
run 0 taskctl get --attempts --events "$id"
out_has '^    2  completed '
out_has ' adopted .*of attempt 1'
out_lacks 'is kept'

# Who works on the task meanwhile is told, and what he does is no task of his any more.
late_result
run 0 taskctl set "$id" --now
spawn other taskctl work jobs -- sh -c ': >other; exec sleep 1000'
eventually test -e other
run 6 taskctl adopt "$id" 2
err_has 'attempt 2 is still running'
run 5 taskctl adopt "$id" 7
err_has 'the task has had 2 attempts, not 7'
run 6 taskctl retry "$id"
err_has 'it cannot be retried: the task is working'
run 6 taskctl purge "$id"
err_has 'only what has ended can be purged: the task is working'
run 0 taskctl adopt "$id" 1
run 0 taskctl result "$id"
out 'the late result'
signal other TERM # nothing runs any more, so it ends
ended other 0
run 0 taskctl get --attempts "$id"
out_has '^    2  cancelled '
out_has '^    3  completed '

# A task that was cancelled is none to adopt; queued again it is.
late_result
run 0 taskctl cancel "$id"
run 6 taskctl adopt "$id" 1
err_has 'no attempt can be adopted: the task is cancelled'
run 0 taskctl retry "$id"
run 0 taskctl adopt "$id" 1
stop_broker
