#!/bin/sh
# work: cancel, drain, giving back, and the broker going away under it.
. "$(dirname "$0")/lib.sh"
start_broker

# Cancel reaches the program: on TASKMQ_FD and as SIGTERM to its process group.
cat >patient <<'END'
#!/bin/bash
trap 'read -r -t 10 word <&$TASKMQ_FD; echo "$word" >>heard; exit 0' TERM
sleep 1000 &
echo $! >child
echo >running
wait
END
chmod +x patient
spawn worker taskctl work slow -- ./patient
submit slow
eventually test -e running
run 0 taskctl cancel "$id"
eventually grep -qx cancel heard
child_is_gone ()
{
    ! kill -0 "$(cat child)" 2>/dev/null
}
eventually child_is_gone
acknowledged ()
{
    taskctl -o json get --events "$id" | grep -q '"kind":"cancel_acknowledged"'
}
eventually acknowledged
run 8 taskctl result "$id"
rm -f running

# One that does not listen is killed after the grace.
cat >deaf <<'END'
#!/bin/sh
trap '' TERM
echo >running
while :; do sleep 0.1; done
END
chmod +x deaf
spawn deaf_worker taskctl work deaf -- ./deaf
submit deaf
eventually test -e running
run 0 taskctl cancel "$id"
eventually acknowledged
signal deaf_worker TERM
ended deaf_worker 0

# SIGTERM drains: what runs is finished, nothing is taken, exit 0.
cat >gated <<'END'
#!/bin/sh
echo >"running.$TASKMQ_TASK_ID"
until [ -e gate ]; do sleep 0.05; done
echo finished
END
chmod +x gated
spawn draining taskctl work gated -j 2 -- ./gated
submit gated
first=$id
eventually test -e "running.$first"
signal draining TERM
eventually grep -q 'finishing 1 task;' draining.err
submit gated
: >gate
ended draining 0
run 0 taskctl result "$first"
out finished
run 6 taskctl result "$id"
run 0 taskctl cancel "$id"
rm gate

# A second one gives back, uncounted: exit 143, and by SIGINT 130.
for kind in TERM INT; do
    spawn leaving taskctl work gated -- ./gated
    submit gated
    eventually test -e "running.$id"
    signal leaving TERM
    eventually grep -q 'finishing 1 task;' leaving.err
    signal leaving $kind
    if [ $kind = TERM ]; then ended leaving 143; else ended leaving 130; fi
    eventually is queued "$id"
    run 0 taskctl -o json get --events "$id"
    json attempt 1
    out_has '"kind":"released"'
    run 0 taskctl cancel "$id"
done

# The broker dies while a program runs, and its result arrives after all.
spawn loyal taskctl work loyal -- ./gated
submit loyal
eventually test -e "running.$id"
kill_broker
: >gate
start_broker
run 0 taskctl wait --for 60s "$id"
run 0 taskctl -o json get "$id"
json attempt 1
run 0 taskctl result "$id"
out finished
submit loyal
run 0 taskctl wait --for 60s "$id"
signal loyal TERM
ended loyal 0

# While the broker is away the program is told how much of its lease is left.
rm -f gate
cat >listener <<'END'
#!/bin/bash
echo >listening
read -r line <&$TASKMQ_FD
echo "$line"
END
chmod +x listener
spawn told taskctl work told --max-tasks 1 -- ./listener
submit told --lease 3s
eventually test -e listening
kill -STOP "$broker_pid"
has_ended ()
{
    ! pgrep -P "$(cat told.pid)" >/dev/null
}
eventually has_ended
kill -CONT "$broker_pid"
ended told 0
run 0 taskctl result "$id"
out 'deadline 1'

# A worker that was frozen beyond its lease finds that another one took over, and stops its program.
cat >first_hangs <<'END'
#!/bin/bash
if [ "$TASKMQ_ATTEMPT" -gt 1 ]; then
    echo second
    exit 0
fi
trap 'echo >stopped_in_time; exit 0' TERM
echo >hanging
sleep 1000 &
wait
END
chmod +x first_hangs
spawn frozen taskctl work taken -- ./first_hangs
submit taken --lease 3s --backoff 1ms
eventually test -e hanging
signal frozen STOP
spawn quick taskctl work taken -- ./first_hangs
run 0 taskctl wait --for 60s "$id"
signal frozen CONT
eventually test -e stopped_in_time
signal frozen TERM
ended frozen 0
signal quick TERM
ended quick 0
run 0 taskctl result "$id"
out second

# A worker that is killed leaves no program behind, and its task runs again elsewhere.
spawn killed taskctl work gated -- ./patient
rm -f running child
submit gated --lease 2s
eventually test -e running
signal killed KILL
ended killed 137
: >gate
spawn heir taskctl work gated -- ./gated
run 0 taskctl wait --for 60s "$id"
run 0 taskctl result "$id"
out finished
signal heir TERM
ended heir 0
signal worker TERM
ended worker 0

# A result on its way is taken back when its worker gives up its task: nothing of it stays at the broker.
part_of_upload ()
{
    find .taskmq/blobs/uploads -type f -links 1 -size +0 2>/dev/null
}
on_its_way ()
{
    kill -STOP "$broker_pid"
    [ -n "$(find .taskmq/blobs/uploads -type f -links 1 -size +0 -size -14000k)" ] && return 0
    kill -CONT "$broker_pid" # it was quicker than we are, or is slower
    return 1
}
spawn bringing taskctl work bring -- sh -c 'cat; head -c 16000000 /dev/urandom'
submit bring
until on_its_way; do
    [ "$(status_of "$id")" != completed ] || submit bring
done
signal bringing TERM
eventually grep -q 'finishing 1 task;' bringing.err
signal bringing TERM
kill -CONT "$broker_pid"
ended bringing 143
taken_back ()
{
    [ -z "$(part_of_upload)" ]
}
eventually taken_back
