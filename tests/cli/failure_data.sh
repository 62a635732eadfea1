#!/bin/sh
# The data of an error, up to 64 KiB: a program says it, `get` has it, also after SIGKILL of the broker.
. "$(dirname "$0")/lib.sh"

# What was said is the data of its error.
has_data ()
{
    taskctl -o json get "$1" >now.json && grep -qFf pattern now.json
}

cat >fails.sh <<'PROGRAM'
{ printf 'failure '; cat wanted.json; echo; echo 'failure no'; } >&"$TASKMQ_FD"
read -r answer <&"$TASKMQ_FD"
echo "$answer" >&2
exit "$1"
PROGRAM

start_broker
awk 'BEGIN { printf "{\"text\":\""; for (i = 0; i < 65525; i++) printf "%c", 97 + i % 26; printf "\"}" }' >wanted.json
[ "$(wc -c <wanted.json)" -eq 65536 ] || fail "this is not what may just be said"
{ printf '"data":'; cat wanted.json; } >pattern

# A failure for good, and one whose attempts are used up.
submit bad
first=$id
submit bad --max-attempts 1
second=$id
run 0 taskctl work bad --max-tasks 1 -- sh ./fails.sh 100
run 0 taskctl work bad --max-tasks 1 -- sh ./fails.sh 3
is failed "$first" || fail "it did not fail"
is failed "$second" || fail "it has attempts left"
run 8 taskctl result "$first"
err_has 'error failure needs a JSON value'
kill_broker
start_broker
has_data "$first" || fail "the data is not what was said"
has_data "$second" || fail "the data of the other is not what was said"

# A list says how long it is, the file of tasks has all of it.
run 0 taskctl -o json list --queue bad
json data_bytes 65536
json data null
line_is_there ()
{
    grep -F "\"task_id\":\"$1\"" .taskmq/tasks.jsonl | tail -n 1 | grep -qFf pattern
}
eventually line_is_there "$first"
eventually line_is_there "$second"

# One more byte is too many.
awk 'BEGIN { printf "{\"text\":\""; for (i = 0; i < 65526; i++) printf "x"; printf "\"}" }' >wanted.json
cat >says.sh <<'PROGRAM'
{ printf 'failure '; cat wanted.json; echo; } >&"$TASKMQ_FD"
read -r answer <&"$TASKMQ_FD"
echo "$answer" >&2
exit 100
PROGRAM
submit bad2
run 0 taskctl work bad2 --max-tasks 1 -- sh ./says.sh
run 8 taskctl result "$id"
err_has 'error failure may have 65536 bytes'
run 0 taskctl -o json get "$id"
json data null
stop_broker
