#!/bin/sh
# shellcheck disable=SC2016 # the shells of the programs expand these
# export and import: artifacts and late successes go to another broker byte for byte, small ones in
# the line and others with --bodies; kills in the middle leave nothing half, and nothing counted
# wrong.
. "$(dirname "$0")/lib.sh"
export ROOM="$room"
start_broker

# The order of a list is that in which they came here.
sorted ()
{
    without_events "$1" | sort
}

# Nothing is damaged, and each blob is named as often as tasks name it.
check ()
{
    stop_broker
    run 0 taskmqd --check --data .taskmq
    out_has 'no damage$'
    start_broker
}

# Text, JSON, bytes, nothing, more than a frame, a name in need of escapes; and so many that a line
# has no room for all, and an import none for those that the line has.
awk 'BEGIN {for (i = 0; i < 60000; i++) printf "%d and some more\n", i * 7919}' >large
submit things --data 1
things=$id
run 0 taskctl work things --max-tasks 1 -- sh -c 'cd "$TASKMQ_ARTIFACTS"
    printf "a,b\n\342\202\254\n" >points.csv
    printf "{\"n\": 1.10}\n" >of.json
    printf "a\000b\377" >bytes.bin
    printf "\001\002\003\004\005\006\007" >control
    : >empty
    echo x >"two words \"quoted\""
    cp "$ROOM/large" film.mp4; echo done'
submit many --data 2 --max-attempts 1
many=$id
run 0 taskctl work many --max-tasks 1 -- sh -c 'cd "$TASKMQ_ARTIFACTS"
    seq 15 | while read -r i; do { echo "$i"; head -c 250000 "$ROOM/large"; } >"part-$i"; done
    { echo said; head -c 15000 "$ROOM/large"; } >small; exit 100'
submit bare --data 3

# A worker stands still for longer than its lease, and brings a result all the same.
cat >gated <<'PROGRAM'
#!/bin/sh
: >"running.$TASKMQ_TASK_ID"
while ! [ -e "gate.$TASKMQ_TASK_ID" ]; do sleep 0.05; done
cat
PROGRAM
chmod +x gated
is_lost ()
{
    [ "$(status_of "$small_late")" = queued ]
}
guard_is_gone ()
{
    ! kill -0 "$guard" 2>/dev/null || grep -q '^State:.Z' "/proc/$guard/status"
}
submit late --data 'too late' --lease 1s --backoff 5m --max-attempts 5
small_late=$id
spawn late taskctl work late --max-tasks 1 -- ./gated
eventually test -e "running.$small_late"
guard=$(pgrep -P "$(cat late.pid)")
signal late STOP
eventually is_lost
: >"gate.$small_late"
eventually guard_is_gone
signal late CONT
ended late 0

# Another one has a payload and a late success that are larger than a frame: an import brings it.
large_late=0190a3f0-0000-7000-8000-000000000001
run 0 taskctl export --bodies bodies --file few.jsonl
film=$(sed -E '/film.mp4/!d; s/.*"name":"film.mp4",[^}]*"hash":"([0-9a-f]*)".*/\1/' few.jsonl)
size=$(wc -c <large)
grep "$small_late" few.jsonl | sed -E "s/$small_late/$large_late/g
    s/\"bytes\":8,\"content_type\":\"text.plain\"/\"bytes\":$size,\"content_type\":\"text\/x-large\"/
    s/\"text\":\"too late\"/\"hash\":\"$film\"/
    s/\"payload_bytes\":8/\"payload_bytes\":$size/; s/\"payload\":\"too late\"/\"payload\":null,\"payload_hash\":\"$film\"/" >one.jsonl
run 0 taskctl import one.jsonl --bodies bodies
run 0 taskctl get --attempts "$large_late"
out_has 'a late success is kept: .* text/x-large'

# In the line stand those that fit, as what they are.
run 0 taskctl export --file bare.jsonl
err_has '^[0-9]+ of their bodies are too large for a line: --bodies DIR writes them, too, and an import needs them$'
run 0 taskctl export --bodies bodies --file all.jsonl
err_lacks 'too large for a line'
cmp -s bare.jsonl all.jsonl || fail 'the lines are others with --bodies'
[ "$(wc -l <all.jsonl)" -eq 5 ] || fail 'a task is missing'
grep "$things" all.jsonl >line
grep -qF '"name":"points.csv","type":"text/csv","bytes":8,"hash":"' line || fail 'no artifact'
grep -qF '"text":"a,b\n€\n"' line || fail 'a text is no text'
grep -qF '"text":"{\"n\": 1.10}\n"' line || fail 'JSON is no text'
grep -qF '"base64":"YQBi/w=="' line || fail 'bytes are no base64'
grep -qF '"text":"\u0001\u0002\u0003' line || fail 'control characters are no text'
grep -qE '"name":"empty",[^}]*"text":""}' line || fail 'the empty one has no text'
grep -qE '"name":"film.mp4",[^}]*"attached_at":"[^"]*"}' line || fail 'the film stands in the line'
cmp -s "bodies/$film" large || fail 'the film is another file'
grep -q '"kept":{"bytes":8,"content_type":"text/plain","at":"[^"]*","until":"[^"]*","text":"too late"}' all.jsonl ||
    fail 'no late success'
grep -q '"kept":{"bytes":[0-9]*,"content_type":"text/x-large","at":"[^"]*","until":"[^"]*","hash":"'"$film"'"}' all.jsonl ||
    fail 'a large late success has no hash'
grep "$many" all.jsonl | tr '{' '\n' | grep '"name":"part-' >parts
[ "$(grep -c '"text":"' parts)" -eq 8 ] || fail 'not 2 MiB of artifacts in the line'
[ "$(find bodies -type f | wc -l)" -eq 8 ] || fail 'not each body is there once'
run 0 taskctl export --fields task_id,artifacts "$things"
out_has '"artifacts":\[\{"name":"bytes.bin"'
run 2 taskctl export --format csv --fields task_id,artifacts
err_has '^taskctl: a list has no artifacts$'
run 0 taskctl export --format task "$things"
out_has '^== artifacts ='
out_has '^  points.csv  8 bytes, text/csv  attempt 1  20'
out_lacks 'YQBi'
run 0 taskctl export --format task "$small_late"
out_has '^     a late success is kept: 8 bytes, text/plain  20[^ ]*, until  20'
run 0 taskctl export --format task "$large_late"
out_has '^  not here: taskctl payload ID -o FILE fetches it$'

# Nothing of a task comes without its bodies.
empty_broker first
run 2 taskctl import all.jsonl
err_has '^taskctl: line [0-9]: artifact film.mp4 of [0-9]+ bytes: export and import with --bodies DIR bring it along$'
err_has '^taskctl: line [0-9]: payload of [0-9]+ bytes: export and'
run 0 taskctl count
out 0
cp -R bodies fewer
tr 0 1 <large >"fewer/$film"
run 2 taskctl import all.jsonl --bodies fewer --dry-run
err_has "^taskctl: line [0-9]: artifact film.mp4 of [0-9]+ bytes: the file $film has other bytes"

# The round trip: field by field, and byte for byte.
sorted all.jsonl >wanted
same ()
{
    run 0 taskctl export --bodies back --file back.jsonl
    sorted back.jsonl >found
    cmp -s wanted found || fail 'an import changes what was exported'
}
run 0 taskctl import all.jsonl --bodies bodies
err_has '^5 imported$'
err_lacks 'late successes'
kill_broker
start_broker
same
run 0 taskctl import all.jsonl --bodies bodies
err '5 here already, passed over'
check
run 0 taskctl artifact get "$things" --dir got
cmp -s got/film.mp4 large || fail 'the film is another one'
printf 'a\000b\377' | cmp -s - got/bytes.bin || fail 'the bytes are others'
run 0 taskctl artifact get "$many" --dir parts.d
for i in 1 9 15; do
    { echo "$i"; head -c 250000 large; } | cmp -s - "parts.d/part-$i" || fail "part $i is another one"
done
sed 's/"type":"video\/mp4"/"type":"video\/x"/' all.jsonl >other.jsonl
run 9 taskctl import other.jsonl --bodies bodies
err_has 'the task is here already with other contents \(artifacts\); nothing of it was changed'

# A late success is one: it is adopted here.
run 0 taskctl adopt "$small_late" 1
run 0 taskctl result "$small_late"
[ "$(cat out)" = 'too late' ] || fail 'another late success'
run 0 taskctl adopt "$large_late" 1
run 0 taskctl result "$large_late"
cmp -s out large || fail 'another large late success'

# One whose time is over, or whose bytes no line has, is left, and that is told.
empty_broker third
sed -E 's/("(until|at)":")20[0-9]{2}/\12020/g' all.jsonl | grep "$small_late" >over
sed -E 's/("at":")20[0-9]{2}/\12020/g' all.jsonl | grep "$small_late" >long_over # whatever it says of its end
sed -E 's/,"text":"too late"//' all.jsonl | grep "$small_late" >older
run 0 taskctl import over
err_has '^1 of their late successes stay behind$'
empty_broker old
run 0 taskctl import long_over
err_has '^1 of their late successes stay behind$'
empty_broker fourth
run 0 taskctl -o json import older
json late_successes_left 1
run 0 taskctl get --attempts "$small_late"
out_lacks 'is kept'

# What is redacted comes as what is left of it.
empty_broker fifth
grep "$things" all.jsonl | sed -E 's/"text":"a,b/"text":"[redacted:ab]/; s/\}$/,"redacted":true}/' >redacted
run 0 taskctl import redacted --bodies bodies
run 0 taskctl artifact get "$things" points.csv
[ "$(head -n 1 out)" = '[redacted:ab]' ] || fail 'what is left of an artifact'
run 0 taskctl import redacted --bodies bodies
err_has '^1 here already, passed over$'

# A kill in the middle, here of an import of what an import gave: what came is whole, nothing is
# counted twice, and the same import goes on.
empty_broker sixth
spawn import taskctl import back.jsonl --bodies back
until [ "$(find .taskmq/blobs -type f | wc -l)" -ge 4 ]; do
    kill -0 "$(cat import.pid)" 2>/dev/null || break
done
kill_broker
kill -KILL "$(cat import.pid)" 2>/dev/null
wait "$(cat import.pid)" 2>/dev/null
run 0 taskmqd --check --data .taskmq
start_broker
run 0 taskctl import back.jsonl --bodies back
same
# With their tasks they go, and nothing is named any more: all files are those of nobody.
run 0 taskctl cancel --status queued --yes
run 0 taskctl purge --status completed,failed,cancelled --yes
stop_broker
run 0 taskmqd --check --data .taskmq
out_has "^$(find .taskmq/blobs -type f -not -path '*/uploads/*' | wc -l) blobs no task names "
out_has ' 0 blobs and '
