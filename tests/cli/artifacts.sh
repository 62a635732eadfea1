#!/bin/sh
# shellcheck disable=SC2016 # the shells of the programs expand these
# Artifacts: what programs of work leave in TASKMQ_ARTIFACTS is attached, listed and fetched, through
# retries and kills of worker and broker; what cannot be attached is told and costs nothing else.
. "$(dirname "$0")/lib.sh"
export TMPDIR="$room/tmp"
mkdir tmp
printf 'limits\n    task_artifact_bytes = 2M\n' >conf
broker_options='-c conf'
start_broker
head -c 700000 /dev/urandom >large

# left: nothing stays of the directories of attempts.
left ()
{
    [ -z "$(find tmp -name 'taskmq-??????*')" ]
}

cat >leave <<'END'
cd "$TASKMQ_ARTIFACTS"
printf 'a,b\n' >points.CSV
cp "$ROOM/large" film.mp4
: >empty
echo hidden >.hidden
echo x >"$(printf 'new\nline')"
mkdir inner
echo deep >inner/file
ln -s "$ROOM/large" link
mkfifo pipe
echo 'the result'
END
export ROOM="$room"
submit q
run 0 taskctl work q --max-tasks 1 -- sh "$room/leave"
err_has "$id: .hidden is not attached: must not begin with a dot$"
err_has "$id: inner is not attached: it is a directory, and these are not looked into$"
err_has "$id: link is not attached: it is no regular file$"
err_has "$id: pipe is not attached: it is no regular file$"
err_has "$id: new.x0aline is not attached: must not have control characters$"
left || fail 'a directory stays'
run 0 taskctl logs "$id"
cat out err >both
grep -q '^taskctl: inner is not attached: it is a directory' both || fail 'the log does not tell it'
run 0 taskctl result "$id"
out 'the result'
run 0 taskctl -o id artifact list "$id"
out 'empty
film.mp4
points.CSV'
run 0 taskctl -o jsonl artifact list "$id"
out_has '^\{"name":"film.mp4","type":"video/mp4","bytes":700000,"hash":"[0-9a-f]{64}","attempt":1,"attached_at":"20.*Z"}$'
out_has '^\{"name":"points.CSV","type":"text/csv","bytes":4,'
out_has '^\{"name":"empty","type":"application/octet-stream","bytes":0,'
run 0 taskctl artifact list "$id"
out_has '^film.mp4 +700000 +video/mp4 +1 '
run 0 taskctl get --events "$id"
out_has ' artifact +attempt 1 .* film.mp4 +video'
out_has ' artifact +attempt 1 .* empty +app'
out_has '^    film.mp4    683K  video/mp4  attempt 1$'
out_has '^    points.CSV    4B  text/csv  attempt 1$'
run 0 taskctl export --format task "$id"
out_has '  artifact  attempt 1  .*  film.mp4  700000 bytes  video/mp4$'
run 0 taskctl -o json get "$id"
out_has '"artifacts":\[\{"name":"empty",.*\{"name":"film.mp4",.*\{"name":"points.CSV"'
eventually grep -q '"status":"completed".*"artifacts":\[{"name":"' .taskmq/tasks.jsonl

# Out again: to stdout, into a file, into a directory, all of them.
run 0 taskctl artifact get "$id" film.mp4
cmp -s out large || fail 'the film is another one'
run 0 taskctl artifact get "$id" film.mp4 -o film
cmp -s film large || fail 'the file is another one'
run 0 taskctl artifact get "$id" --dir all
cmp -s all/film.mp4 large || fail 'the film of all is another one'
[ "$(cat all/points.CSV)" = 'a,b' ] || fail 'the points are others'
[ "$(wc -c <all/empty)" -eq 0 ] || fail 'the empty one is not there'
[ "$(find all -type f | wc -l)" -eq 3 ] || fail 'there are other files'
rm all/empty
mkfifo all/empty
run 0 timeout 30 taskctl artifact get "$id" --dir all
[ -f all/empty ] || fail 'a pipe stands where the artifact belongs'
run 5 taskctl artifact get "$id" nothing
err_has "the task has no artifact 'nothing'$"
run 2 taskctl artifact get "$id"
run 2 taskctl artifact get "$id" film.mp4 -o a --dir b
run 2 taskctl artifact get "$id" film.mp4 -o id
run 10 taskctl artifact get "$id" film.mp4 -o /dev/full
run 5 taskctl artifact list 01a2069a-5cc4-7d2f-a34e-9a0a7b0dd9a1
submit other
run 0 taskctl artifact list "$id"
out_lacks mp4
err 'no artifacts'
run 0 taskctl artifact get "$id" --dir none
err 'no artifacts'
[ ! -e none ] || fail 'a directory was made for nothing'

# A failed attempt attaches, too; the next one replaces what has the same name, and adds.
submit again --max-attempts 2 --backoff 1ms
run 0 taskctl work again --max-tasks 2 -- sh -c 'cd "$TASKMQ_ARTIFACTS"
    echo "of $TASKMQ_ATTEMPT" >log; echo x >"only-$TASKMQ_ATTEMPT"; exit $((2 - TASKMQ_ATTEMPT))'
run 0 taskctl -o id artifact list "$id"
out 'log
only-1
only-2'
run 0 taskctl artifact get "$id" log
out 'of 2'

# Limits are told, and the result is there all the same.
submit limits
run 0 taskctl work limits --max-tasks 1 -- sh -c 'cd "$TASKMQ_ARTIFACTS"
    for i in 1 2 3; do cp "$ROOM/large" "$i"; done; echo small >4; echo kept'
err_has "$id: 3 is not attached: .*2097152"
run 0 taskctl -o id artifact list "$id"
out '1
2
4'
run 0 taskctl result "$id"
out kept
submit many
run 0 taskctl work many --max-tasks 1 -- sh -c 'cd "$TASKMQ_ARTIFACTS"; seq 101 | while read -r i; do echo "$i" >"$(printf %03d "$i")"; done'
err_has "$id: 101 is not attached: a task has at most 100 artifacts$"
run 0 taskctl -o id artifact list "$id"
out_lines 100

# Too many are one line, and the first by name are there; what does not count is told in order, some of it.
submit flood
run 0 taskctl work flood --max-tasks 1 -- sh -c 'cd "$TASKMQ_ARTIFACTS"
    seq -w 1500 | xargs touch; seq -w 13 | while read -r i; do mkdir "dir-$i"; done'
grep -c 'not attached' err >count
[ "$(cat count)" -eq 12 ] || fail "$(cat count) lines tell of what is not attached"
err_has "$id: 1400 of 1500 files are not attached, by name from 0101 on: a task has at most 100 artifacts$"
[ "$(sed -n 's/.*: \(dir-..\) is not attached: .*/\1/p' err | xargs)" = "$(seq -f 'dir-%02.0f' 10 | xargs)" ] ||
    fail 'the first ones are others'
err_has "$id: 3 more are not attached$"
run 0 taskctl -o id artifact list "$id"
[ "$(sed -n '1p;$p' out | xargs)" = '0001 0100' ] || fail 'others than the first by name are attached'
out_lines 100

# A kill of the broker in the middle: all of them are there in the end, each whole.
submit kill
spawn worker taskctl work kill --max-tasks 1 -- sh -c 'cd "$TASKMQ_ARTIFACTS"
    seq 40 | while read -r i; do seq "$i" 2000 >"$i"; done; cp "$ROOM/large" large; echo done'
began ()
{
    [ "$(taskctl -o id artifact list "$id" | wc -l)" -ge "$1" ]
}
eventually began 3
kill_broker
start_broker
eventually began 20
kill_broker
start_broker
ended worker 0
run 0 taskctl artifact get "$id" --dir killed
[ "$(find killed -type f | wc -l)" -eq 41 ] || fail 'some are missing'
cmp -s killed/large large || fail 'the large one is another one'
for i in $(seq 40); do
    seq "$i" 2000 | cmp -s - "killed/$i" || fail "$i is another one"
done
left || fail 'a directory stays after a kill of the broker'

# A kill of the worker in the middle: its directory goes, and the next attempt attaches all.
submit worker
spawn worker taskctl work worker --max-tasks 1 -- sh -c 'cd "$TASKMQ_ARTIFACTS"
    seq 90 | while read -r i; do echo "$i" >"$i"; done'
eventually began 2
signal worker KILL
ended worker 137
eventually left
run 0 taskctl work worker --max-tasks 1 -- sh -c 'cd "$TASKMQ_ARTIFACTS"
    seq 90 | while read -r i; do echo "$i" >"$i"; done'
run 0 taskctl -o id artifact list "$id"
out_lines 90

# What a cancelled task leaves is nobody's.
submit cancelled
spawn worker taskctl work cancelled --max-tasks 1 -- sh -c 'echo x >"$TASKMQ_ARTIFACTS/x"; echo begun >begun; sleep 1000'
eventually test -s begun
run 0 taskctl cancel "$id"
ended worker 0
run 0 taskctl -o id artifact list "$id"
out_lines 0
left || fail 'a directory stays after a cancellation'

# They go with their task, are in a backup, and --check reads their blobs.
film=$(taskctl -o id list --all | tail -n 1)
run 0 taskctl backup copy.tar
run 0 taskctl purge "$id"
run 5 taskctl artifact list "$id"
run 0 taskctl purge "$film"
stop_broker
run 0 taskmqd --check --data .taskmq
out_has 'no damage$'
rm -rf .taskmq
run 0 taskmqd --restore copy.tar --data .taskmq
start_broker
run 0 taskctl artifact get "$film" film.mp4
cmp -s out large || fail 'the film of the backup is another one'
stop_broker
find .taskmq/blobs -type f -size +600k -not -path '*/uploads/*' | while read -r blob; do echo broken >"$blob"; done
run 15 taskmqd --check --data .taskmq
out_has 'blobs/.*task'
