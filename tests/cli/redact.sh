#!/bin/sh
# export/redact: what looks secret leaves neither in tasks.jsonl nor in an export, and stays in the store.
# shellcheck disable=SC2016 # the shells of the programs expand these
. "$(dirname "$0")/lib.sh"

secret=ghp_abcdefghijklmnopqrstuvwxyz0123456789
printf 'export\n    redact = common\n    redact = "ticket=TICKET-[0-9]{4,}"\n' >taskmqd.conf
broker_options="--config $room/taskmqd.conf"
start_broker

printf '{"url":"postgres:\\/\\/joe:%s@db","note":"TICKET\\u002d12345","card":4111111111111111}' s3cret >body
submit q --file body --content-type application/json
first=$id
printf 'bytes \000 %s \377' "$secret" >bytes
submit q --file bytes --content-type application/octet-stream --meta "{\"k\":\"$secret\"}"
submit q --data 'nothing to hide'
plain=$id
submit talk --data "$secret"
run 0 taskctl work talk --drain -- sh -c '
    echo "turn {\"agent\":\"a\",\"content\":\"said '"$secret"'\",\"tool_calls\":[{\"Authorization\":\"Basic am9lOnBhc3M=\"}],\"tool_log\":\"-----BEGIN PRIVATE KEY-----\\nMIIE\\n-----END PRIVATE KEY-----\"}" >&"$TASKMQ_FD"
    echo "TICKET-99999" >&2; echo "result '"$secret"'"; exit 0'

# tasks.jsonl.
has_lines () { [ "$(wc -l <.taskmq/tasks.jsonl)" -ge 4 ]; }
eventually has_lines
done_is_written () { grep -q '"status":"completed"' .taskmq/tasks.jsonl; }
eventually done_is_written
lacks_secrets ()
{
    if grep -E 'ghp_abc|s3cret|TICKET-|TICKET\\u|am9lOnBhc3M|MIIE|Z2hwX2' "$1"; then
        fail "$1 tells a secret"
    fi
}
lacks_secrets .taskmq/tasks.jsonl
python3 - "$first" "$plain" <<'END' || fail 'tasks.jsonl is not what it should be'
import json, sys
lines = [json.loads (line) for line in open (".taskmq/tasks.jsonl")]
one = next (line for line in lines if line["task_id"] == sys.argv[1])
assert one["redacted"] is True
assert one["payload"] == {"url": "postgres://[redacted:url]@db", "note": "[redacted:ticket]",
                          "card": 4111111111111111}, one["payload"]
other = next (line for line in lines if line["task_id"] == sys.argv[2])
assert "redacted" not in other
END

# Exports, in all forms; the store has everything.
for form in jsonl json csv task; do
    run 0 taskctl export --format $form
    lacks_secrets out
    grep -q '\[redacted:' out || fail "$form has nothing that was replaced"
    run 0 taskctl export --format $form --file "all.$form"
    [ $form = csv ] || err_has '^3 redacted: what looks secret in them was replaced \(--redact none exports them whole\)$'
done
run 0 taskctl export
out_lines 4
python3 -c 'import json, sys
for line in open ("out"): json.loads (line)' || fail 'an export is no JSON any more'
run 0 taskctl export --dir records
cat records/* >records.all
lacks_secrets records.all
run 0 taskctl payload "$first"
grep -q s3cret out || fail 'the store was changed'
run 0 taskctl export --redact none
grep -q "$secret" out || fail 'none replaces something'
run 0 taskctl export --redact 'card=[0-9]{16}' --redact common
out_has '"card":"\[redacted:card\]"'
out_has '\[redacted:ticket\]'
run 0 taskctl export --format csv --redact 'all=[a-z]+' --fields task_id,payload_bytes
run 2 taskctl export --redact 'card=[0-9'
err_has "missing terminating \] for character class"
run 2 taskctl export --redact none --redact common
# What takes too much work is not shown at all, and that is told.
run 0 taskctl export --file dear.jsonl --redact 'x=(*LIMIT_MATCH=1)(to|hide|n)+[y-z]'
grep -q 'redacted:too-much-work' dear.jsonl || fail 'nothing is too much work'
err_has '^[0-9]+ replaced as a whole .*: simpler patterns'
run 2 taskctl export --redact secrets
err_has 'must be common, or NAME=PATTERN'

# events.jsonl, a chain over what is left.
submit parked --label "token=$secret"
run 0 taskctl cancel "$id"
has_event () { grep -q '"kind":"cancelled"' .taskmq/events.jsonl; }
eventually has_event
lacks_secrets .taskmq/events.jsonl
grep -q '"token":"\[redacted:github\]".*,"redacted":true,' .taskmq/events.jsonl ||
    fail 'an event has its label'
run 0 taskctl audit verify .taskmq/events.jsonl

# A bad pattern is told with its line, at the start and before; the file goes on behind what is there.
stop_broker
printf '    redact = "x=a(b"\n' >>taskmqd.conf
run 2 taskmqd --config taskmqd.conf --check-config
err_has 'taskmqd\.conf:4: export/redact = x=a\(b: byte 4 of the pattern: missing closing parenthesis'
run 2 taskmqd --data .taskmq --config taskmqd.conf
broker_options=
lines=$(wc -l <.taskmq/tasks.jsonl)
start_broker
submit q --data "TICKET-11111"
is_written () { grep -q 'TICKET-11111' .taskmq/tasks.jsonl; }
eventually is_written
[ "$(wc -l <.taskmq/tasks.jsonl)" -gt "$lines" ] || fail 'the file was begun anew'
run 0 taskctl export
grep -q "$secret" out || fail 'something is replaced without a list'
stop_broker
