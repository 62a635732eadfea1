#!/bin/sh
# import: what is wrong in a line is named, with the number of the line, the key, and what it must
# be. Without a broker: every line is judged before anything is sent.
. "$(dirname "$0")/lib.sh"

now=$(date -u +%Y-%m-%dT%H:%M:%S.000Z)
good='{"task_id":"0190a3f0-0000-7000-8000-000000000001","queue":"q","status":"failed",
"created_at":"2026-01-01T00:00:00.000Z","updated_at":"2026-01-01T00:00:01.000Z","version":1,
"finished_at":"2026-01-01T00:00:01.000Z","attempt":2,"max_attempts":2,"payload_bytes":0,
"error":{"code":1,"message":"m"},"progress":{"done":1,"total":2},
"attempts":[{"attempt":1,"worker":"w","end":"lease_lost","kept":{"bytes":3,"content_type":"t",
"at":"'$now'","until":"2999-01-01T00:00:00.000Z","text":"abc"}}],
"turn_count":1,"turns":[{"attempt":1,"files":[{"op":"read","path":"/a"}]}],
"after":[{"task_id":"0190a3f0-0000-7000-8000-000000000002","policy":"ignore","status":"completed"}],
"artifacts":[{"name":"a","type":"t","bytes":3,"attempt":1,"attached_at":"2026-01-01T00:00:00.500Z",
"hash":"bddd813c634239723171ef3fee98579b94964e3bb1cb3e427262c8c068d52319","text":"abc"}],
"events":[]}'
printf '%s\n' "$good" | tr -d '\n' >good
echo >>good
run 0 taskctl import good --dry-run
err '1 task is fine; nothing was imported'

# refused SED TEXT: of the good line, changed so, this is told.
refused ()
{
    { cat good && sed -E "$1" good; } >lines
    ! cmp -s good lines || fail "nothing was changed by $1"
    run 2 taskctl import lines --dry-run
    grep -qxF "taskctl: line 2: $2" err || fail "$1 is not told as: $2"
}
refused 's/"progress":\{[^}]*\}/"progress":"x"/' 'progress must be an object'
refused 's/"done":1/"done":"x"/' 'progress: done must be a number'
refused 's/"error":\{"code":1/"error":{"code":"x"/' 'error: code must be a whole number of 32 bits'
refused 's/"error":\{[^}]*\}/"error":[]/' 'error must be an object'
refused 's/"attempts":\[.*\],"turn_count"/"attempts":"abc","turn_count"/' 'attempts must be an array'
refused 's/"attempts":\[.*\],"turn_count"/"attempts":{"a":1},"turn_count"/' 'attempts must be an array'
refused 's/"attempts":\[.*\],"turn_count"/"attempts":[1,2,3],"turn_count"/' 'attempts[1] must be an object'
refused 's/"worker":"w"/"worker":5/' 'attempts[1]: worker must be a string'
refused 's/\[\{"attempt":1,"worker"/[{"worker"/' 'attempts[1]: attempt is missing'
refused 's/"end":"lease_lost"/"end":"lost"/' "attempts[1]: 'lost' is no end of an attempt"
refused 's/"kept":\{[^}]*\}/"kept":"x"/' 'attempts[1]: kept must be an object'
refused 's/"kept":\{"bytes":3/"kept":{"bytes":4/' 'attempts[1]: kept: it has not the 4 bytes that it says'
refused 's/,"text":"abc"\}\}\]/,"base64":"*"}}]/' 'attempts[1]: kept: base64 must be a string of that'
refused 's/,"text":"abc"\}\}\]/,"hash":"12"}}]/' 'attempts[1]: kept: text or base64 is missing, it had 3 bytes'
refused 's/"kept":\{"bytes":3(.*),"text":"abc"\}\}\]/"kept":{"bytes":300000\1,"hash":"12"}}]/' 'attempts[1]: kept: hash must be 64 hexadecimal digits'
refused 's/"turns":\[.*\],"after"/"turns":"x","after"/' 'turns must be an array'
refused 's/"turns":\[.*\],"after"/"turns":["x"],"after"/' 'turns[1] must be an object'
refused 's/"files":\[[^]]*\]/"files":{}/' 'turns[1]: files must be an array'
refused 's/"op":"read"/"op":"eat"/' 'turns[1]: files[1]: needs op and path'
refused 's/"after":\[[^]]*\]/"after":1/' 'after must be an array'
refused 's/"status":"completed"\}\]/"status":"done"}]/' "after[1]: 'done' is no status"
refused 's/"policy":"ignore"/"policy":"x"/' 'after[1]: needs task_id and policy'
refused 's/"artifacts":\[.*\],"events"/"artifacts":7,"events"/' 'artifacts must be an array'
refused 's/"name":"a"/"name":"x\/a"/' "artifacts[1]: name must not have a '/': it is the name of a file, not a path"
refused 's/"name":"a"/"name":null/' 'artifacts[1]: name must not be empty'
refused 's/"type":"t","bytes":3/"type":"t","bytes":2/' 'artifacts[1]: a has other bytes than its hash says'
refused 's/"hash":"bd/"hash":"cd/' 'artifacts[1]: a has other bytes than its hash says'
refused 's/,"text":"abc"\}\],"events"/}],"events"/' 'artifacts[1]: a: text or base64 is missing, it had 3 bytes'
refused 's/"text":"abc"\}\],"events"/"text":3}],"events"/' 'artifacts[1]: text must be a string'
refused 's/"events":\[\]/"events":1/' 'events must be an array'
refused 's/("created_at":")2026/\11970/; s/1970-01-01T00:00:00.000Z/1970-01-01T00:00:00.000Z/' 'created_at must be later than 1970-01-01T00:00:00.000Z'
refused 's/("finished_at":")2026/\11969/' 'finished_at "1969-01-01T00:00:01.000Z": must be between 1970 and 9999'
refused 's/"attempt":2,/"attempt":5000000000,/' 'attempt must be a whole number of at most 4294967295'

# An earlier version wrote no bytes of it: then it is left, and the rest comes.
sed -E 's/,"text":"abc"\}\}\]/}}]/; s/"status":"completed"\}\]/"status":null}]/; s/"after":\[[^]]*\]/"after":[]/' good >old
run 0 taskctl import old --dry-run

# Close to the ends of time and numbers a task comes, and goes out again as it is.
start_broker
sed -E 's/("(created|updated|finished)_at":")2026-01-01T00:00:00?/\11970-01-01T00:00:0/g; s/"after":\[[^]]*\]/"after":[]/
    s/"1970-01-01T00:00:0.000Z"/"1970-01-01T00:00:00.001Z"/; s/"attempt":2,/"attempt":2147483647,/; s/"version":1/"version":2147483647/' good >early
grep -q '"created_at":"1970-01-01T00:00:00.001Z"' early || fail 'it is not of 1970'
run 0 taskctl import early
err_has '^1 imported$'
id=0190a3f0-0000-7000-8000-000000000001
run 0 taskctl retry "$id"
run 0 taskctl work q --drain -- true
[ "$(status_of "$id")" = completed ] || fail 'it cannot be done again'
run 0 taskctl export --file again.jsonl
grep -q '"attempt":2147483648,' again.jsonl || fail 'its attempts are counted otherwise'
grep -q '"created_at":"1970-01-01T00:00:00.001Z"' again.jsonl || fail 'it is not of 1970 any more'
stop_broker
mv .taskmq first
start_broker
run 0 taskctl import again.jsonl
err_has '^1 imported$'
run 0 taskctl export
grep -q '"attempt":2147483648,' out || fail 'it does not come again'
sed 's/"attempt":2147483648,/"attempt":4000000001,/; s/00000000001"/00000000003"/' again.jsonl >high
run 2 taskctl import high
err_has 'attempt: must be in 0..4000000000'

# Of a time that is ahead the key is told.
for key in created_at updated_at finished_at attached_at; do
    sed "s/\"$key\":\"2026-01-01T00:00:0/\"$key\":\"2999-01-01T00:00:0/; s/0000000001\"/0000000009\"/; s/\"after\":\[[^]]*\]/\"after\":[]/" good >ahead
    [ $key != created_at ] || sed -i 's/"updated_at":"2026/"updated_at":"2999/' ahead
    run 2 taskctl import ahead
    err_has "$key: its time is more than a day ahead of the broker's$"
done
stop_broker
