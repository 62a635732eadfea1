#!/bin/sh
# shellcheck disable=SC2016 # the shells of the programs expand these
# work: what a program is given, and what each of its endings means.
. "$(dirname "$0")/lib.sh"
start_broker

# A program that does what its payload says.
cat >program <<'END'
#!/bin/sh
exec sh -c "$(cat)"
END
chmod +x program

done_with ()
{
    run 0 taskctl wait --for 60s "$id"
}

# Result, environment, stderr.
submit q --session s1 --method m1 --data 'echo "$TASKMQ_TASK_ID $TASKMQ_ATTEMPT $TASKMQ_QUEUE \
$TASKMQ_SESSION $TASKMQ_METHOD"; echo to-stderr >&2'
run 0 taskctl work q --drain -- ./program
err_has '^to-stderr$'
run 0 taskctl result "$id"
out "$id 1 q s1 m1"
run 0 taskctl -o json get "$id"
json result_type '"text/plain"'

# It has broker, namespace, labels and meta, and nothing of an outer worker's task.
run 0 taskctl -n prod submit q --label film=dawn --label a.b= --label a-b=2 --meta '{"n": [1, 2]}' --data '
cd / && taskctl submit child --data "$TASKMQ_META" >&2
printf "%s|" "$TASKMQ_LABEL_film" "$TASKMQ_LABEL_a_b" "${TASKMQ_LABEL_old-none}" "$TASKMQ_LABELS"'
id=$(cat out)
run 0 env TASKMQ_LABEL_old=outer TASKMQ_META=outer taskctl -n prod work q --drain -- ./program
run 0 taskctl -n prod result "$id"
printf '%s' 'dawn||none|{"film":"dawn","a.b":"","a-b":"2"}|' | cmp -s - out || fail 'the labels'
run 0 taskctl -n prod payload "$(taskctl -n prod -o id list --queue child)"
printf '%s' '{"n": [1, 2]}' | cmp -s - out || fail 'the meta'

# Failures: retried while attempts are left; the last line of stderr is the message.
submit q --max-attempts 2 --backoff 100ms --data 'echo first >&2; echo second >&2; exit 3'
run 0 taskctl work q --drain -- ./program
run 0 taskctl -o json get "$id"
json status '"failed"'
json dead true
json attempt 2
json error '{"code":3,"message":"second","data":null}'
submit q --data 'exit 100'
run 0 taskctl work q --drain -- ./program
run 0 taskctl -o json get "$id"
json attempt 1
json dead false
json error '{"code":100,"message":"exit status 100","data":null}'
submit q --max-attempts 1 --data 'kill -9 $$'
run 0 taskctl work q --drain -- ./program
run 0 taskctl -o json get "$id"
json error '{"code":137,"message":"ended by signal 9 (Killed)","data":null}'
submit q --max-attempts 1 --data 'printf "bad \\377 bytes" >&2; exit 1'
run 0 taskctl work q --drain -- ./program
run 0 taskctl -o json get "$id"
json error '{"code":1,"message":"bad ? bytes","data":null}'

# 75 gives back, uncounted.
submit q --max-attempts 1 --data '[ "$TASKMQ_ATTEMPT" -gt 2 ] || exit 75'
run 0 taskctl work q --drain --release-delay 50ms -- ./program
run 0 taskctl -o json get --events "$id"
json status '"completed"'
json attempt 3
out_has '"kind":"released"'

# What came with it, as a file too; the trace in the words of those who follow traces. What the worker
# itself was started with is no task's.
parent=00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01
submit q --meta '{"from":"web"}' --trace "$parent vendor=a,other=b c"
export TRACEPARENT=outer TRACESTATE=outer
# shellcheck disable=SC2016 # the program's
show='cat "$TASKMQ_META_FILE"; printf "|%s|%s" "${TRACEPARENT-none}" "${TRACESTATE-none}"'
run 0 taskctl work q --drain -- sh -c "$show"
run 0 taskctl result "$id"
[ "$(cat out)" = "{\"from\":\"web\"}|$parent|vendor=a,other=b c" ] || fail "meta and trace: $(cat out)"
submit q --trace "$parent"
run 0 taskctl work q --drain -- sh -c "$show"
run 0 taskctl result "$id"
[ "$(cat out)" = "|$parent|none" ] || fail "a trace without a state: $(cat out)"
submit q
run 0 taskctl work q --drain -- sh -c "$show"
run 0 taskctl result "$id"
[ "$(cat out)" = "|none|none" ] || fail "no trace: $(cat out)"
unset TRACEPARENT TRACESTATE

# The payload: as a file, larger than a pipe, unread.
printf 'a\0b' >bytes
submit q --file bytes
run 0 taskctl work q --drain --payload-file -- sh -c 'cat "$TASKMQ_PAYLOAD_FILE"; cat; ls -l \
    "$TASKMQ_PAYLOAD_FILE" >&2; printf %s "$TASKMQ_PAYLOAD_FILE" >name'
err_has '^-rw-------'
eventually test ! -e "$(cat name)"
run 0 taskctl result "$id"
cmp -s bytes out || fail 'the payload file was not the payload'
head -c 262144 /dev/urandom >large
submit q --file large
run 0 taskctl work q --drain -- cat
run 0 taskctl result "$id"
cmp -s large out || fail 'a large payload came back changed'
run 0 taskctl -o json get "$id"
json result_type '"application/octet-stream"'
submit q --file large
run 0 taskctl work q --drain -- true
run 0 taskctl -o json get "$id"
json status '"completed"'
json result_bytes 0

# A result over the limit is a final failure; one without end is ended.
submit q --data 'head -c 16777217 /dev/zero'
big=$id
submit q --data yes
run 0 taskctl work q --drain -- ./program
for id in "$big" "$id"; do
    run 0 taskctl -o json get "$id"
    json error '{"code":-33008,"message":"the result is larger than the limit of 16777216 bytes","data":{"limit_bytes":16777216}}'
    json attempt 1
done

# TASKMQ_FD: progress goes to watchers, an unknown verb is answered.
cat >talker <<'END'
#!/bin/bash
echo 'progress 0.3/1 reading' >&$TASKMQ_FD
echo 'progress nan/10' >&$TASKMQ_FD
echo 'turns {}' >&$TASKMQ_FD
read -r one <&$TASKMQ_FD
read -r two <&$TASKMQ_FD
printf '%s|%s' "$one" "$two"
until [ -e go ]; do sleep 0.05; done
END
chmod +x talker
spawn watcher taskctl -o jsonl watch --queue talk --since 0
submit talk
eventually grep -q '"kind":"submitted"' watcher.out
spawn talking taskctl work talk --max-tasks 1 -- ./talker
eventually grep -q '"progress":{"done":0.3,"total":1,"unit":null,"message":"reading"}' watcher.out
: >go
ended talking 0
run 0 taskctl result "$id"
out_has '^error progress needs DONE/TOTAL .*\|error unknown verb .turns.$'
signal watcher TERM
ended watcher 143

# Several at a time, from several queues; --max-tasks counts.
i=0
while [ "$i" -lt 6 ]; do
    i=$((i + 1))
    submit "par$((i % 2))" --data "echo >here.$i; until [ -e here.1 -a -e here.2 -a -e here.3 ]; do sleep 0.05; done"
done
run 0 taskctl work par0 par1 -j 3 --max-tasks 4 -- ./program
run 0 taskctl count --queue par0 --queue par1 --status completed
out 4
run 0 taskctl work par0 par1 -j 3 --drain -- ./program
run 0 taskctl count --queue par0 --queue par1 --status completed
out 6

# Programs that cannot run: by PATH, not executable, without their interpreter.
submit unrunnable
run 2 taskctl work unrunnable -- no-such-program
err 'taskctl: cannot execute no-such-program: No such file or directory'
: >plain
run 2 taskctl work unrunnable -- ./plain
printf '#!/nonexistent/interpreter\n' >orphan
chmod +x orphan
run 2 taskctl work unrunnable -- ./orphan
err_has 'cannot execute ./orphan: No such file'
run 0 taskctl -o json get "$id"
json status '"queued"'

# What is missing for a start is waited for; the task is neither lost nor worn out by it.
spawn homeless env TMPDIR=later taskctl work homeless --payload-file --max-tasks 1 -- cat
submit homeless
eventually grep -q 'cannot be started yet: No such file' homeless.err
mkdir later
ended homeless 0
run 0 taskctl -o json get "$id"
json status '"completed"'
json attempt 1
run 2 sh -c 'ulimit -n 100; exec taskctl work q -j 50 -- true'
err_has '^taskctl: -j 50 needs more open files than the limit of 100$'
err_has '^hint: ulimit -n [0-9]+$'
