#!/bin/sh
# shellcheck disable=SC2016 # the shells of the programs expand these
# work: what a program tells of its turns and files; get --turns --files, resume --from-turn.
. "$(dirname "$0")/lib.sh"
start_broker

# Says each line of a file, and prints what is answered to it.
cat >teller <<'END'
#!/bin/bash
while IFS= read -r line; do
    printf '%s\n' "$line" >&"$TASKMQ_FD"
    case $line in
    'file read '* | 'file write '* | 'file delete '*) continue ;;
    esac
    read -r answer <&"$TASKMQ_FD"
    echo "$answer"
done <"$TASKMQ_TOLD"
END
chmod +x teller
# told STATUS LINES...: what was answered to them in one attempt, which ends with the status.
told ()
{
    status=$1
    shift
    printf '%s\n' "$@" >lines
    run 0 env TASKMQ_TOLD="$room/lines" STATUS="$status" taskctl work q --max-tasks 1 -- \
        sh -c './teller >answers; echo "$TASKMQ_TURNS" >turns; exit "$STATUS"'
    cp answers out
}

# What is wrong is answered and changes nothing.
submit q
told 100 'turn' 'turn nonsense' 'turn [1]' 'turn {"agent":1}' 'turn {"agnt":"a"}' \
    'turn {"started_at":"yesterday"}' 'turn {"duration_ms":-1}' 'turn {"files":[{"op":"eat","path":"a"}]}' \
    'file' 'file eat a' 'file read' 'turn {"agent":"a","agent":"b"}'
out 'error turn needs a JSON object
error turn needs a JSON object
error turn needs a JSON object
error turn agent must be a string without NUL
error turn does not know the key '\''agnt'\''; it knows agent, status, content, tool_calls, tool_log, files, started_at and duration_ms
error turn started_at must be a time, as 2026-11-21T05:00:00Z
error turn duration_ms must be a whole number from 0 up
error turn files must be an array of at most 256 {"op":"read|write|delete","path":...}
error file needs read|write|delete PATH
error file needs read|write|delete PATH
error file needs read|write|delete PATH
error turn has a key twice'
run 0 taskctl -o json get --turns --files "$id"
json turns '[]'
json files '[]'
json turn_count 0

# Files go with the next turn; what is left of them at the end is a turn of its own.
submit q
told 100 'file read src/a b.c' \
    'turn {"agent":"planner","status":"ok","content":"first\nsecond","tool_calls":[{"name":"grep"},{"name":"edit"}],"tool_log":"3 hits","started_at":"2026-11-21T05:00:00Z","duration_ms":2500}' \
    'turn {"agent":"coder","files":[{"op":"write","path":"src/a b.c"}]}' 'file delete old'
out 'told 1
told 2'
run 0 taskctl -o json get --turns --files "$id"
golden turns.json

# Tasks are found by who had a turn and by the files that were touched, beside all other conditions.
touched=$id
submit q
told 100 'turn {"agent":"planner","files":[{"op":"read","path":"old"},{"op":"read","path":"docs/é.md"}]}'
other=$id
finds ()
{
    eventually found_are "$@"
}
found_are ()
{
    these=$1
    shift
    run 0 taskctl -o id list "$@"
    [ "$(cat out)" = "$these" ]
}
finds "$(printf '%s\n%s' "$other" "$touched")" --agent planner
finds "$touched" --agent planner --agent coder --file 'src/a b.c'
finds "$touched" --agent planner --file old --file 'src/a b.c' --status failed --queue q
finds "$other" --file docs/é.md --since 1h
finds '' --file OLD
finds '' --agent coder --file docs/é.md
run 0 taskctl count --agent planner --file old
out 2
run 0 taskctl export --with-file 'src/a b.c' --format json
out_has "$touched"
run 2 taskctl list --agent ''
err_has 'must not be empty'
run 2 taskctl list --file "$(printf '%1025s' a)"
run 2 taskctl watch --agent planner
id=$touched
run 0 taskctl get --turns --files --attempts "$id"
grep -q '^         tools  grep, edit$' out || fail "get --turns does not name the tools"
grep -q '^    write   turn 2    src/a b.c$' out || fail "get --files does not show the file"
run 8 taskctl watch --since 0 --until completed "$id"
out_has '^[0-9:.]+  turn  .*  turn 1  attempt 1  by .*  planner  ok$'
run 8 taskctl -o jsonl watch --since 0 --until completed "$id"
grep -q '"kind":"turn".*"message":"ok","turn":1,"agent":"planner"' out || fail "no event of the turn"

# A resume goes back to a turn, through a kill of the broker; the next attempt knows how many there are.
run 2 taskctl resume "$id" --from-turn 4
err_has 'the task has 3 turns'
run 2 taskctl resume --queue q --from-turn 1
run 2 taskctl resume "$id" --from-turn -1
run 0 taskctl resume "$id" --from-turn 1
run 0 taskctl get --events "$id"
out_has "resumed .*  by uid:$(id -u)  from turn 1$"
run 0 taskctl -o json get --events "$id"
out_has '"kind":"resumed".*"message":"from turn 1"'
run 2 taskctl retry "$id" --from-turn 1
err_has '^hint: taskctl resume ID --from-turn N goes back to a turn$'
kill_broker
start_broker
told 0 'turn {"content":"again"}'
out 'told 1'
[ "$(cat turns)" = 3 ] || fail "TASKMQ_TURNS is $(cat turns)"
run 0 taskctl -o json get --turns --files "$id"
golden turns-resumed.json

# They go with the task.
run 0 taskctl purge "$id"
run 5 taskctl get --turns "$id"

# How many there may be, the operator says.
stop_broker
printf 'limits\n    task_turns = 2\n    task_turn_bytes = 1M\n    turn_rate = 5\n    namespace_turn_bytes = 2G\n' >conf
run 0 taskmqd --show-config -c conf
out_has '^ +task_turns = 2 '
out_has '^ +task_turn_bytes = 1M '
out_has '^ +turn_rate = 5 '
out_has '^ +namespace_turn_bytes = 2G '
broker_options="-c $room/conf"
start_broker
submit q
told 100 'turn {}' 'turn {}' 'turn {}'
out_has '^told 2$'
out_has '^error turn: .*turns of a task.* 2'

# Tool calls are passed on as they stand there, also what a parser has no room for.
submit q
told 0 'turn {"tool_calls": [{"id": 12345678901234567890, "f": 0.1}, "a\u0000b", 1e999]}' \
    'turn {"content":"a\u0000b"}'
out 'told 1
error turn content must be a string without NUL'
run 0 taskctl -o json get --turns "$id"
out_has '"tool_calls":\[\{"id":12345678901234567890,"f":0\.1\},"a\\u0000b",1e999\]'

# Turns that come faster than they may are told all the same, one after the other: of a program that waits
# for the answers, and of one that ends without.
stop_broker
printf 'limits\n    turn_rate = 2\n' >conf
start_broker
submit q
set --
for n in $(seq 12); do
    set -- "$@" "turn {\"content\":\"$n\"}"
done
told 0 "$@"
[ "$(cat out)" = "$(seq -f 'told %g' 12)" ] || fail "not all turns were told: $(cat out)"
submit q
printf '%s\n' "$@" 'file write last' >lines
run 0 taskctl work q --max-tasks 1 -- sh -c 'eval "cat >&$TASKMQ_FD" <lines'
[ "$(status_of "$id")" = completed ] || fail "it is $(status_of "$id")"
run 0 taskctl -o json get --turns --files "$id"
json turn_count 13
[ "$(grep -o '"content":"[0-9]*"' out | tr -dc '0-9\n')" = "$(seq 12)" ] || fail 'the turns are not in order'
