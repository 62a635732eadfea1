#!/bin/sh
# shellcheck disable=SC2016 # the shells of the programs expand these
# export: its formats, its files, and what it finds wrong.
. "$(dirname "$0")/lib.sh"
start_broker

# An id may end in digits alone, as the name of a worker does: so ids go first.
neutral_page ()
{
    neutral out >page
    mv page out
    sed -E -i -e 's/^(owner +).*/\1OWNER/; s/^(worker +).*/\1WORKER/' \
        -e 's/uid:[0-9]+/ACTOR/g; s/[^ ]+-[0-9]+-[0-9]+( |$)/WORKER\1/g' out
}

# A task with everything, one with nothing, one whose bytes are no text.
submit nobody
bare=$id
run 0 taskctl session set trip --goal travel
submit first
after=$id
submit reports --data '{"month":11,"of":["a","b"]}' --content-type application/json --session trip \
    --label album=summer --label lang=de --method "$(printf 'a\033[31mb')" --meta '{"a":1}' \
    --priority 7 --ttl 0 --max-attempts 5 --fair-key k --trace 00-ab --parent "$bare" \
    --after "$after:ignore" --max-runtime 1h --start-by 1h
full=$id
run 0 taskctl cancel "$after"
run 0 taskctl work reports --drain --release-delay 1ms --result-type text/plain -- \
    sh -c '[ "$TASKMQ_ATTEMPT" = 1 ] && exit 75; printf "a,b\n" >"$TASKMQ_ARTIFACTS/points.csv"; printf "one\n== no heading\n\n\033[1mtwo\n"'
printf '\000\001\377' >bytes
submit broken --file bytes --max-attempts 1
broken=$id
run 0 taskctl work broken --drain -- sh -c 'echo "it broke, \"here\"" >&2; exit 100'

run 0 taskctl export --format task "$full"
out_has '^== result ='
out_lacks '^== no heading'
neutral_page
golden export-full.task
run 0 taskctl export --format task "$bare"
neutral_page
golden export-bare.task
run 0 taskctl export --format task "$broken"
out_has '^  not a text: --format jsonl has it$'
out_has '^  code 100$'

# jsonl has the parts; json is one document of the same.
run 0 taskctl export "$full"
out_lines 1
out_has '"artifacts":\[\{"name":"points.csv",.*"text":"a,b\\n"\}\]'
json payload '{"month":11,"of":["a","b"]}'
out_has '"attempts":\[\{"attempt":1,.*"end":"released"'
out_has '"events":\[\{"kind":"submitted"'
run 0 taskctl export "$broken"
json payload '{"base64":"AAH/"}'
run 0 taskctl export
out_lines 4
cp out all.jsonl
run 0 taskctl export --format json
sed -e '1d' -e '$d' -e 's/,$//' out | cmp -s - all.jsonl || fail 'json and jsonl differ'
run 0 taskctl -o json export
out_has '^\],"next":null\}$'
run 0 taskctl export --queue reports --status completed --label album=summer --since 1h
cmp -s out all.jsonl && fail 'the conditions did nothing'
out_lines 1
run 0 taskctl export --limit 3
head -n 3 all.jsonl | cmp -s - out || fail 'not the three newest'
run 0 taskctl export --limit 1 --search broke
out_lines 1
run 0 taskctl export --format csv --limit 2
out_lines 3
run 2 taskctl export --limit 1 "$broken"
err_has '^taskctl: --limit goes with conditions$'
run 0 taskctl export --fields task_id,status "$broken"
out "{\"task_id\":\"$broken\",\"status\":\"failed\"}"
run 0 taskctl export --fields attempts,parts.completed "$bare"
out '{"attempts":[],"parts.completed":1}'
run 0 taskctl -o json get --attempts --fields attempts,questions "$bare"
out '{"attempts":[],"questions":[]}'

# csv: a head also without tasks; quotes; columns by choice.
run 0 taskctl export --format csv
out_lines 5
out_has '^task_id,namespace,queue,session,'
out_has '"\{""code"":100,""message"":""it broke, \\""here\\"""",'
run 0 taskctl export --format csv --queue none
out_lines 1
run 0 taskctl export --format csv --fields task_id,label:album,method "$full" "$bare"
out "task_id,label:album,method
$full,summer,a\\x1b[31mb
$bare,,"

# Files: whole or not there, and one a task.
run 0 taskctl export --file -
out_has '^\{"task_id"'
[ ! -e - ] || fail 'there is a file named -'
run 0 taskctl export --file all.copy
err '4 tasks in all.copy'
cmp -s all.copy all.jsonl || fail 'the file is not what stdout has'
[ "$(stat -c %a all.copy)" = 600 ] || fail 'others can read the file'
echo kept >target
run 2 taskctl export --file target
err_has '^taskctl: target is there, and is no export: it stays as it is$'
err_has '^hint: --with-file FILE exports the tasks that touched it'
printf 'status,queue\n' >target
run 2 taskctl export --file target --format csv
run 2 taskctl export --file target --format jsonl --fields status,queue
run 0 taskctl export --file target --format csv --fields status,queue
[ "$(wc -l <target)" = 5 ] || fail 'another export stays'
run 0 taskctl export --file target2 --format json
run 0 taskctl export --file target2 --format task
run 0 taskctl export --file target2 --fields status
run 2 taskctl export --file target2
: >target
run 0 taskctl export --file target
cp target kept
run 5 taskctl export --file target ffffffffffff
cmp -s target kept || fail 'a failed export took the place of the file'
run 9 taskctl export --file target "$bare" ffffffffffff
[ "$(wc -l <target)" = 1 ] || fail 'what was found is not in the file'
run 0 taskctl export --dir records
run 0 taskctl export --dir records
err '4 tasks in records'
[ "$(find records -type f | wc -l)" = 4 ] || fail 'not a file for each task'
name=$(taskctl -o json get "$full" | sed -E 's/.*"created_at":"([^"]*)Z".*/\1/; s/:/-/g')
run 0 taskctl export --format task "$full"
cmp -s out "records/$name-$(printf %s "$full" | tail -c 6).task" || fail 'another name or text'
made=$(taskctl -o json get "$bare" | sed -E 's/.*"created_at":"([^"]*)Z".*/\1/; s/:/-/g')
printf 'task_id  of another\n' >"records/$made-$(printf %s "$bare" | tail -c 6).task"
run 0 taskctl export --dir records "$bare"
[ -f "records/$made-$(printf %s "$bare" | tail -c 12).task" ] || fail 'took the name of another'
run 0 taskctl export --dir json --format json "$bare"
[ -f "json/$made-$(printf %s "$bare" | tail -c 6).json" ] || fail 'no file of JSON'

printf '{"status":"of another"}' >"json/$made-$(printf %s "$bare" | tail -c 6).json"
run 0 taskctl export --dir json --format json --fields task_id,status "$bare"
run 0 taskctl export --dir json --format json --fields task_id,status "$bare"
[ "$(find json -type f | wc -l)" = 2 ] || fail 'a file is not known again'

# What is no file stays what it is: a pipe, a link, a name of standard output.
rm "records/$made-$(printf %s "$bare" | tail -c 6).task"
mkfifo "records/$made-$(printf %s "$bare" | tail -c 6).task"
run 0 taskctl export --dir records "$bare"
[ -p "records/$made-$(printf %s "$bare" | tail -c 6).task" ] || fail 'took the place of a pipe'
mkfifo pipe
cat pipe >piped &
run 0 taskctl export --file pipe "$bare"
wait $!
[ -p pipe ] || fail 'a file took the place of the pipe'
[ "$(wc -l <piped)" = 1 ] || fail 'nothing went through the pipe'
ln -s "$PWD/linked" link
run 0 sh -c "taskctl export --file link $bare >linked"
[ -h link ] || fail 'a file took the place of a name of standard output'
[ "$(wc -l <linked)" = 1 ] || fail 'nothing went to standard output'

# JSON of others that a parser may refuse: numbers without room, a NUL in a key.
submit odd --content-type application/json \
    --data '[123456789012345678901234567890,1e999,{"a\u0000b":-1.5,"c":"\\u0000"}]'
run 0 taskctl export --format task "$id"
out_has '^ +"123456789012345678901234567890",$'
out_has '^ +"1e999",$'
out_has '"a\\\\u0000b": -1.5'
run 0 taskctl export --format csv --fields payload_bytes "$id"
out_lines 2
for field in payload result attempts turns artifacts; do
    run 2 taskctl export --format csv --fields task_id,$field
    err_has "^taskctl: a list has no $field\$"
    run 2 taskctl -o jsonl list --fields $field
    err_has '"hint":"taskctl export --format jsonl has it, and get of some tasks"'
done
run 2 taskctl watch --search word
err_has '^hint: --search is of list, count and export only$'

# A text that a program for tables would carry out.
submit sums --label sum=-2+3 --label name=a-b
run 0 taskctl export --format csv --fields label:sum,label:name "$id"
out "label:sum,label:name
'-2+3,a-b"

# Who ends it leaves no part of a file behind.
i=0
while [ $i -lt 200 ]; do
    echo '{"queue":"many","data":"x"}'
    i=$((i + 1))
done >many.jsonl
run 0 taskctl submit --batch many.jsonl
spawn export taskctl export --queue many --file ended
eventually sh -c '[ -e ended ] || ls .ended.new-*'
kill -TERM "$(cat export.pid)" 2>/dev/null # it may be at its end
wait "$(cat export.pid)"
[ -z "$(find . -name '.ended.new-*')" ] || fail 'a part of a file is left'

# What a killed one left goes with the next one to the same place, when it is a minute old.
mkdir into
touch -d '2 minutes ago' .ended.new-killed into/.export.new-killed
touch .ended.new-others into/.export.new-others
run 0 taskctl export --limit 1 --file ended
run 0 taskctl export --limit 1 --dir into
for part in .ended.new- into/.export.new-; do
    [ ! -e "${part}killed" ] || fail "${part}killed is left"
    [ -e "${part}others" ] || fail "${part}others, which somebody writes, is gone"
    rm "${part}others"
done
[ "$(find into -type f | wc -l)" -eq 1 ] || fail 'parts are left in a directory'

# What is no file, or somebody else's, stays, whatever its name and age.
echo kept >kept
ln -s ../kept into/.export.new-symbol
mkfifo into/.export.new-pipes1
mkdir into/.export.new-folder
: >into/.export.new-stolen
strangers='symbol pipes1 folder'
if [ "$(id -u)" -eq 0 ]; then
    chown 65534 into/.export.new-stolen
    strangers="$strangers stolen"
else
    echo 'skipped: only root can give a file away, so no export meets one of another user'
fi
touch -h -d '2 minutes ago' into/.export.new-*
run 0 taskctl export --limit 1 --dir into
for part in $strangers; do
    find into -name ".export.new-$part" | grep -q . || fail ".export.new-$part is gone"
done
[ "$(cat kept)" = kept ] || fail 'an export writes through a link'
rm -r into/.export.new-*

# Mistakes.
run 2 taskctl export --format xml
err_has "there is no format 'xml'"
run 2 taskctl export --dir there --format csv
run 2 taskctl export --dir there --file here
run 2 taskctl export --format task --fields task_id
run 2 taskctl export --dir there --format json --fields status,task_id
err_has 'the first field is task_id'
run 2 taskctl export --fields nothing
run 2 taskctl export --queue reports "$full"
err_has 'ids or conditions, not both'
run 1 taskctl export --dir target
err_has 'cannot make the directory target'
run 1 taskctl export --file /proc/nowhere/file
run 5 taskctl export ffffffffffff
run 10 sh -c 'taskctl export >/dev/full'
err_has 'No space left'
[ ! -e there ] || fail 'a mistake made a directory'
[ -z "$(find . -name '.*.part' -o -name '.*.new-*')" ] || fail 'parts of files are left'
