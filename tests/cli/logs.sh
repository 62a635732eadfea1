#!/bin/sh
# shellcheck disable=SC2016 # the shells of the programs expand these
# Logs: what a worker's program writes is shown live, through a kill of the broker and a second
# attempt, and stays bounded.
. "$(dirname "$0")/lib.sh"

start_broker

# Nothing yet, and nobody.
run 2 taskctl logs
run 2 taskctl logs --stream both 0123456789ab
run 2 taskctl -o json logs -f 0123456789ab
run 5 taskctl logs 0123456789ab
id=$(taskctl submit q --max-attempts 2 --backoff 1ms)
run 0 taskctl logs "$id"
out_lines 0
err_has '^the broker has no log of the task$'

# The first attempt fails, the second one is followed through a kill of the broker.
cat >program <<'END'
echo "attempt $TASKMQ_ATTEMPT"
echo "warning $TASKMQ_ATTEMPT" >&2
while [ ! -e "go$TASKMQ_ATTEMPT" ]; do sleep 0.05; done
echo "last word $TASKMQ_ATTEMPT" >&2
[ "$TASKMQ_ATTEMPT" = 2 ]
END
spawn follower taskctl logs -f "$id"
spawn errors taskctl logs -f --stream err "$id"
spawn first taskctl logs -f --attempt 1 "$id"
spawn pieces taskctl -o jsonl logs -f --stream out "$id"
spawn worker taskctl work q -- sh program
eventually grep -q 'warning 1' follower.out
: >go1
eventually grep -q 'warning 2' follower.out
ended first 0
out_has '^last word 1$'
out_lacks 'attempt 2'
eventually grep -q 'attempt 2' pieces.out
kill_broker
: >go2
eventually grep -q 'last word 2' worker.err
start_broker
for name in follower errors pieces; do
    ended $name 0
done
run 0 cat follower.out
out_has '^last word 1$'
out_has '^attempt 2$'
out_has '^last word 2$'
run 0 taskctl logs --attempt 7 "$id"
out_lines 0
err_has '^the broker has no log of attempt 7$'
run 0 cat errors.out
out 'warning 1
last word 1
warning 2
last word 2'
run 0 neutral pieces.out
out '{"task_id":"ID","attempt":1,"stream":"out","offset":0,"lost":0,"data":"attempt 1\n"}
{"task_id":"ID","attempt":2,"stream":"out","offset":0,"lost":0,"data":"attempt 2\n"}'
run 0 taskctl get -o json "$id"
json status '"completed"'

# Afterwards.
run 0 taskctl logs "$id"
out 'attempt 2
warning 2
last word 2'
run 0 taskctl logs --attempt 1 --stream err --tail 1 "$id"
out 'last word 1'
run 0 taskctl logs --tail 0 "$id"
out_lines 0
run 0 taskctl logs -f "$id"
out_lines 3
run 0 taskctl logs --attempt 7 "$id"
out_lines 0
[ "$(find .taskmq/logs -type f ! -perm 600)" = "" ] || fail "others may read a log"
[ "$(find .taskmq/logs -type d ! -perm 700)" = "" ] || fail "others may read the logs"

# A program that writes much does not get far, and its end is what stays.
cat >program <<'END'
head -c 8000000 /dev/zero | tr '\0' x >&2
echo "the end" >&2
END
large=$(taskctl submit q --max-attempts 1)
run 0 taskctl wait "$large"
run 0 taskctl logs --stream err "$large"
tail -n 1 out | grep -q 'xthe end$' || fail "the end is lost"
err_has 'bytes of the err log are not kept'
[ "$(find .taskmq/logs -type f -size +1024k)" = "" ] || fail "a log is larger than it may be"
run 0 taskctl logs --tail 1 "$large"

# In a pipe whose end is gone.
cat >program <<'END'
while [ ! -e stop ]; do echo tick; sleep 0.02; done
END
ticking=$(taskctl submit q --max-attempts 1)
taskctl logs -f "$ticking" | head -n 2 >ticks || fail "logs -f in a pipe"
[ "$(cat ticks)" = "tick
tick" ] || fail "not two ticks"
: >stop

# With its task the log goes.
run 0 taskctl wait "$ticking"
run 0 taskctl purge "$large" "$id"
eventually sh -c '[ "$(find .taskmq/logs -type f | wc -l)" -eq 1 ]'
run 5 taskctl logs "$id"
signal worker TERM
ended worker 0
stop_broker

# What a task that is gone has left is removed at a start, and nothing else.
cp -r .taskmq/logs kept
start_broker
run 0 taskctl purge "$ticking"
eventually sh -c '[ "$(find .taskmq/logs -type f | wc -l)" -eq 0 ]'
stop_broker
rm -r .taskmq/logs
cp -r kept .taskmq/logs
start_broker
eventually sh -c '[ "$(find .taskmq/logs -type f | wc -l)" -eq 0 ]'
stop_broker

# Without a directory for them everything else goes on.
rm -r .taskmq/logs
mkdir elsewhere
ln -s "$room/elsewhere" .taskmq/logs
start_broker
grep -q LOGS-OFF broker.err || fail "a link is followed"
echo "echo said" >program
id=$(taskctl submit q)
run 0 taskctl work q --drain -- sh program
run 0 taskctl wait "$id"
run 0 taskctl logs "$id"
err_has '^the broker has no log of the task$'
[ -z "$(ls elsewhere)" ] || fail "written through a link"
stop_broker

# What a full disk does not take is told, also at the end.
rm .taskmq/logs
: >conf
broker_options="-c conf"
start_broker
id=$(taskctl submit q)
printf 'limits\n    free_space_min = 1024G\n' >conf
run 0 taskctl reload
run 0 taskctl work q --drain -- sh program
run 0 taskctl wait "$id"
run 0 taskctl logs "$id"
out_lines 0
err_has '5 bytes of the out log are not kept'
run 0 taskctl logs -o jsonl "$id"
out_has '"offset":5,"lost":5,"data":""'
grep -q LOGS-STALLED broker.err || fail "nobody says that logs are lost"
stop_broker
