#!/bin/sh
# import: what export wrote, back into an empty broker, field by field; what is here already, what is
# broken, what is cut off by a kill.
# shellcheck disable=SC2016 # the shells of the programs expand these
. "$(dirname "$0")/lib.sh"
start_broker

# Tasks with everything: bodies of JSON with white space, bytes, texts; attempts, turns, relations.
submit nobody
bare=$id
submit later --dedup-key one
later=$id
submit reports --data '{ "month": 11.50, "of": ["a","b"] }' --content-type application/json \
    --session trip --label album=summer --method m --meta '{"a":1.10}' --priority 7 --ttl 0 \
    --max-attempts 5 --fair-key k --require gpu=yes --trace 00-ab --parent "$bare" \
    --after "$later:ignore" --max-runtime 1h --lease 45s --backoff 2s
waiting=$id
submit told --data 'a "text"
of two lines' --max-attempts 2 --backoff 1ms
told=$id
spawn worker taskctl work told --jobs 1 -- sh -c '
    echo "turn {\"agent\":\"a\",\"content\":\"said\",\"tool_calls\":[{\"n\":1.10}],
\"files\":[{\"op\":\"read\",\"path\":\"/etc/hosts\"}]}" | tr -d "\n" >&"$TASKMQ_FD"
    echo >&"$TASKMQ_FD"
    [ "$TASKMQ_ATTEMPT" = 2 ] || { echo "it broke" >&2; exit 3; }
    printf "done\000\001"'
run 0 taskctl wait "$told"
signal worker TERM
ended worker 0
printf '\000\001\377' >bytes
submit broken --file bytes --max-attempts 1
run 0 taskctl work broken --drain -- sh -c 'echo "no" >&2; exit 100'
submit ended
run 0 taskctl cancel "$id"
run 0 taskctl export
out_lines 6
cp out all.jsonl
grep -qF '"payload_text":"{ \"month\": 11.50, \"of\": [\"a\",\"b\"] }"' all.jsonl ||
    fail 'the white space of a payload is lost'

# The round trip.
empty_broker first
run 0 taskctl import all.jsonl --dry-run
err '6 tasks are fine; nothing was imported'
run 0 taskctl count
out 0
run 0 taskctl import all.jsonl
err_has '^6 imported$'
err_has '^[0-9]+ of their events stay behind: each has one, imported$'
run 0 taskctl export
without_events out >back
without_events all.jsonl | cmp -s - back || fail 'an import changes what was exported'
run 0 taskctl get --events -o json "$told"
out_has '"events":\[\{"kind":"imported",[^]]*"status":"completed"[^]]*\]'
run 0 taskctl payload "$waiting"
[ "$(cat out)" = '{ "month": 11.50, "of": ["a","b"] }' ] || fail 'another payload'
stop_broker
start_broker
run 0 taskctl export
without_events out | cmp -s - back || fail 'an import does not survive a start'

# What waited goes on: when the one before it has ended, it is done.
run 0 taskctl cancel "$later"
run 0 taskctl work reports --label gpu=yes --drain -- true
[ "$(status_of "$waiting")" = completed ] || fail 'an imported task is not worked on'
run 2 taskctl submit later --dedup-key one --bad-option
run 6 taskctl submit later --dedup-key one --data other

# What is here already.
empty_broker second
run 0 taskctl import all.jsonl
run 0 sh -c 'taskctl import - <all.jsonl'
err '6 here already, passed over'
taskctl export | taskctl -o json import - >out || fail 'a pipe is not read'
json imported 0
json existing 6
# It is kept in a file until all of it was judged. Where that does not take it, nothing is imported.
absent="$PWD/absent"
taskctl export | TMPDIR=$absent taskctl import - >out 2>err && fail 'TMPDIR is not where it is kept'
err_has '^taskctl: cannot make a file: No such file or directory'
err_has '^hint: TMPDIR names the place$'
taskctl export >small.jsonl
# shellcheck disable=SC2016 # for the inner shell
full='trap "" XFSZ; ulimit -f 0; taskctl import - 2>&1; echo "code $?"'
sed -n 1p small.jsonl | sh -c "$full" | cat >out
out_has '^taskctl: cannot keep what comes in: File too large'
out_has '^code 10$'
sed -e 's/"content":"said"/"content":"sad"/' all.jsonl >turned.jsonl
run 9 taskctl import turned.jsonl
err_has "with other contents \(turns\); nothing of it was changed"
err_has '^5 here already, passed over$'
sed -e 's/of two lines/of two limes/' all.jsonl >other.jsonl
run 9 taskctl import other.jsonl
err_has "a task with this id and another payload is here"
run 0 taskctl export
without_events out | cmp -s - back || fail 'what was refused was changed'
run 0 taskctl purge "$told"
run 9 taskctl import all.jsonl
err_has 'the task was removed at'

# Broken lines are named; the others are imported if that is asked for.
empty_broker third
{
    sed -n 1p all.jsonl
    echo '{"task_id":'
    sed -n 2p all.jsonl | sed 's/"payload":[^,]*,/"payload":"changed",/'
    echo
    echo '[]'
    sed -n 3p all.jsonl | sed 's/"status":"[a-z]*"/"status":"done"/'
    sed -n 6p all.jsonl
    sed -n 2p all.jsonl | sed 's/{"base64":[^}]*}/{"base64":5}/'
} >broken.jsonl
run 2 taskctl import broken.jsonl
err_has '^taskctl: line 2: it is no JSON object: .*end of file' # as of a line that was cut
err_has '^taskctl: line 3: payload has not the [0-9]+ bytes that payload_bytes says$'
err_has '^taskctl: line 5: it is no JSON object$'
err_has '^taskctl: line 8: payload has not'
err_has '^taskctl: line 6: status is missing, or is no status$'
err_has '^nothing was imported; --keep-going imports the other lines$'
run 0 taskctl count
out 0
run 9 taskctl import broken.jsonl --keep-going
err_has '^2 imported$'
err_has '^5 broken lines passed over$'

# A label is not cut off at a NUL.
sed -n 1p all.jsonl | sed 's/"labels":{[^}]*}/"labels":{"album":"su\\u0000mmer"}/' >nul.jsonl
run 2 taskctl import nul.jsonl
err_has "^taskctl: line 1: labels: a NUL in 'album'$"

# A body that is larger than a frame stands in no line, but its hash (import_bodies.sh).
sed -n 1p all.jsonl | sed 's/"payload_bytes":[0-9]*/"payload_bytes":400000/' >blob.jsonl
run 2 taskctl import blob.jsonl
err_has '^taskctl: line 1: payload_hash must be 64 hexadecimal digits$'

# What was redacted comes as what is left of it.
empty_broker left
grep -e "$told" -e "$waiting" all.jsonl | sed -e 's/of two lines/[redacted:lines]/' -e 's/\(\\"month\\": \)11.50/\1\\"[redacted:n]\\"/' \
    -e 's/}$/,"redacted":true}/' >redacted.jsonl
sed -i "s/\"after\":\[{[^]]*\]/\"after\":[]/" redacted.jsonl
run 2 taskctl import redacted.jsonl
err_has '^2 are redacted'
err_has '^taskctl: 1 of them have not ended: workers would get what stands in place of secrets; nothing'
err_has '^hint: export --redact none moves tasks to another broker; --redacted'
(cat redacted.jsonl; echo '{') >worse.jsonl
run 2 taskctl import worse.jsonl
err_has '^those that are redacted: export --redact none moves them whole; --redacted imports them as they are$'
run 0 taskctl count
out 0
run 0 taskctl import redacted.jsonl --redacted
err_has '^2 are redacted'
run 0 taskctl payload "$told"
grep -q 'redacted:lines' out || fail 'what is left of a payload'
run 0 taskctl payload "$waiting"
grep -qF '{ "month": "[redacted:n]"' out || fail 'what is left of JSON'

# The other forms are named; of many lines that are refused for one reason some are told.
for form in json csv task; do
    run 0 taskctl export --format $form
    cp out other.form
    run 2 taskctl import other.form
    err_has "^taskctl: other\.form is of export --format $form: import takes jsonl$"
    [ "$(wc -l <err)" -eq 2 ] || fail 'more is said of another form'
done
taskctl export --format json | taskctl import - 2>err && fail 'a pipe of JSON is imported'
err_has '^taskctl: standard input is of export --format json'
i=0
while [ $i -lt 25 ]; do
    echo '{"queue":"many","data":"x"}'
    i=$((i + 1))
done >lines
run 0 taskctl submit --batch lines
run 0 taskctl cancel --queue many --yes
run 0 taskctl export --queue many
cp out many.jsonl
run 0 taskctl purge --queue many --yes
run 5 taskctl import many.jsonl
[ "$(grep -c 'the task was removed at' err)" -eq 10 ] || fail 'not ten of one reason are told'
err_has '^\.\.\. and 15 more lines: '
err_has '^25 refused$'

empty_broker fourth

# What is over, what is far ahead, what waits for a task that is not here, and who was at work.
line=$(sed -n "/\"task_id\":\"$told\"/p" all.jsonl)
printf '%s\n' "$line" | sed -E 's/"expires_at":"[^"]*"/"expires_at":"2020-01-01T00:00:00.000Z"/' >over
run 0 taskctl import over
err_has 'not imported: their time to live is over'
printf '%s\n' "$line" | sed -E 's/"(finished|updated)_at":"20/"\1_at":"30/g' >ahead
run 2 taskctl import ahead
err_has 'more than a day ahead'
sed -n "/\"task_id\":\"$waiting\"/p" all.jsonl >alone
run 5 taskctl import alone
err_has "after: there is no task $later"
printf '%s\n' "$line" | sed -E -e 's/"status":"completed"/"status":"working"/' \
    -e 's/"(finished_at|result_bytes|result|result_type)":("[^"]*"|[0-9]+|\{[^}]*\})/"\1":null/g' >working
run 0 taskctl import working
err_has 'had a worker, which is not here'
[ "$(status_of "$told")" = queued ] || fail 'nobody holds its lease, and it does not wait'
run 2 taskctl import /dev/null --format csv
run 0 taskctl import /dev/null
err 'no tasks'
run 2 taskctl import nowhere
run 2 taskctl import /dev/zero
err_has 'has more than 41943040 bytes'
stop_broker
run 3 taskctl --timeout 1s import all.jsonl

# Through kills: an import that is repeated goes on.
start_broker
line=$(sed -n "/\"task_id\":\"$bare\"/p" all.jsonl | sed 's/"queue":"nobody"/"queue":"many"/')
printf '%s\n' "$line" | awk -v count=600 '{
    for (i = 0; i < count; i++) {
        copy = $0
        sub (/"task_id":"[^"]*"/, sprintf ("\"task_id\":\"0190a3f0-0000-7000-8000-%012x\"", i), copy)
        print copy
    }
}' >many.jsonl
some_imported ()
{
    [ "$(taskctl count --queue many)" -ge 100 ]
}
spawn import taskctl import many.jsonl
eventually some_imported
kill -KILL "$(cat import.pid)" 2>/dev/null # it may be at its end
wait "$(cat import.pid)"
spawn import taskctl import many.jsonl
eventually some_imported
kill_broker
start_broker
wait "$(cat import.pid)" # it may have found the broker again, or not
run 0 taskctl import many.jsonl
run 0 taskctl count --queue many
out 600
run 0 taskctl import many.jsonl
err '600 here already, passed over'

# What there is no room for comes when there is.
head -n 12 many.jsonl >few.jsonl
empty_broker fifth
run 0 taskctl queue set many --max-tasks 5
run 9 taskctl --timeout 8s import few.jsonl
err_has '^5 imported$'
err_has '^7 refused$'
spawn worker taskctl work many -- true
run 0 taskctl import few.jsonl
err_has '^7 imported$'
err_has '^5 here already, passed over$'
signal worker TERM
ended worker 0
stop_broker
