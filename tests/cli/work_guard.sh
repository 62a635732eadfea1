#!/bin/sh
# shellcheck disable=SC2016 # the shells of the programs expand these
# work: nothing that a program has started outlives its attempt where the attempt was stopped, not
# even when the worker is killed; and the program can tell why it is stopped.
. "$(dirname "$0")/lib.sh"
start_broker

# Also one that has ended and that nobody has asked about.
gone ()
{
    ! kill -0 "$(cat "$1")" 2>/dev/null || grep -q '^State:.Z' "/proc/$(cat "$1")/status"
}

# A program with a child in its group, one that has left it, and one whose parent has ended.
cat >family <<'END'
#!/bin/bash
echo $$ >leader
sleep 300 &
echo $! >member
setsid sh -c 'echo $$ >stranger; exec sleep 300' &
(setsid sh -c 'trap "" TERM; echo $$ >orphan; while :; do sleep 0.1; done' &)
until [ -s stranger ] && [ -s orphan ]; do sleep 0.05; done
echo >running
[ ! -e deaf ] || trap '' TERM
while :; do sleep 0.1; done
END
chmod +x family
run_family ()
{
    rm -f running leader member stranger orphan
    submit "$1" --max-attempts 1
    eventually test -e running
}
start_family ()
{
    spawn "$1" taskctl work "$1" -- ./family
    run_family "$1"
}
family_is_gone ()
{
    for process in leader member stranger orphan; do
        eventually gone "$process"
    done
}

# The worker is killed: the program gets SIGTERM, what is left SIGKILL.
start_family killed
signal killed KILL
ended killed 137
family_is_gone
: >deaf
start_family deaf
signal deaf KILL
ended deaf 137
family_is_gone
rm deaf

# The task is cancelled: all of them are gone before it is acknowledged.
acknowledged ()
{
    taskctl -o json get --events "$id" | grep -q '"kind":"cancel_acknowledged"'
}
start_family cancelled
run 0 taskctl cancel "$id"
eventually acknowledged
for process in leader member stranger orphan; do
    gone $process || fail "$process runs on"
done
signal cancelled TERM
ended cancelled 0

# The program itself is killed: what is left of it does not run on beside the next attempt.
start_family crashed
kill -KILL "$(cat leader)"
run 8 taskctl wait "$id"
for process in member stranger orphan; do
    gone $process || fail "$process runs on"
done
run 0 taskctl -o json get "$id"
json error '{"code":137,"message":"ended by signal 9 (Killed)","data":null}'

# The guard is killed: the program dies with it, and the attempt has failed.
run_family crashed
pgrep -P "$(cat crashed.pid)" >guard
kill -KILL "$(cat guard)"
run 8 taskctl wait "$id"
eventually gone leader
run 0 taskctl -o json get "$id"
json error '{"code":137,"message":"ended by signal 9 (Killed)","data":null}'
for process in member stranger orphan; do
    kill -KILL "$(cat $process)"
done
signal crashed TERM
ended crashed 0

# What ends normally may leave something behind.
submit daemon
run 0 taskctl work daemon --drain -- sh -c 'sleep 300 >/dev/null 2>&1 & echo $! >left'
! gone left || fail 'what a program left was ended'
kill "$(cat left)"

# Why it is stopped is a line on TASKMQ_FD before the SIGTERM, and the end of it without a worker.
cat >asks_why <<'END'
#!/bin/sh
stopped ()
{
    why=nobody
    while read -r line <&"$TASKMQ_FD"; do
        case $line in cancel | lost | leave) why=$line && break ;; esac
    done
    echo "$why" >"told.$TASKMQ_ATTEMPT"
    exit 0
}
trap stopped TERM
exec 2>/dev/null # dash has a word about the sleep, and stderr leads nowhere without a worker
echo >"running.$TASKMQ_ATTEMPT"
while :; do sleep 0.1; done
END
chmod +x asks_why
# stopped ATTEMPT WORD: that attempt ended with that word.
stopped ()
{
    eventually test -s "told.$1"
    [ "$(cat "told.$1")" = "$2" ] || fail "attempt $1 was told '$(cat "told.$1")', not '$2'"
    rm -f running.* told.*
}
spawn why taskctl work why -- ./asks_why
submit why
eventually test -e running.1
run 0 taskctl cancel "$id"
stopped 1 cancel
submit why --lease 3s --backoff 1ms
eventually test -e running.1
signal why STOP
spawn other taskctl work why -- ./asks_why
eventually test -e running.2
signal why CONT
stopped 1 lost
signal other TERM
eventually grep -q finishing other.err
signal other TERM
stopped 2 leave
ended other 143
run 0 taskctl cancel "$id"
signal why TERM
ended why 0
submit alone
spawn alone taskctl work alone -- ./asks_why
eventually test -e running.1
signal alone KILL
ended alone 137
stopped 1 nobody
