#!/bin/sh
# Mistakes on the command line: exit 2, one line, a hint; nothing needs a broker.
. "$(dirname "$0")/lib.sh"

# Who says nothing is shown everything.
run 2 taskctl
out_has '^usage: taskctl '
out_has '^find and follow tasks:$'

run 2 taskctl sumbit q
err 'taskctl: unknown command '\''sumbit'\''
hint: did you mean '\''submit'\''?'

run 2 taskctl submit q --tll 5m
err 'taskctl: unknown option '\''--tll'\''
hint: did you mean --ttl?'

# What is far off is not meant.
run 2 taskctl gut
err_has 'did you mean '\''get'\''\?'
run 2 taskctl xyz
err_lacks 'did you mean'
# The beginning of one command is, that of several is not.
run 2 taskctl sub
err_has 'did you mean '\''submit'\''\?'
run 2 taskctl re
err_lacks 'did you mean'
# Who means a queue, and who forgets half of what is needed.
run 2 taskctl cancel thumbs --yes
err_has 'the tasks of a queue: --queue thumbs$'
run 2 taskctl adopt abcdef
err_has 'adopt needs ID ATTEMPT$'
# shellcheck disable=SC2046 # nine options
run 2 taskctl submit q $(seq 9 | sed 's/.*/--require k&=v/')
err_has 'more than 8 required labels$'
run 2 taskctl list --tab
err_lacks 'did you mean'

# An option that there is not is unknown, and so is the beginning of one.
run 2 taskctl submit q --frobnicate 5m
err_has "unknown option '--frobnicate'"
run 2 taskctl submit q --dat x
err_has 'did you mean --data'

run 2 taskctl submit q --ttl 5
err_has "^taskctl: --ttl '5' must be a duration with its unit"
run 2 taskctl submit q --ttl
err_has '--ttl needs a value'
run 2 taskctl submit q --wait=3
err_has '--wait takes no value'
run 2 taskctl submit q --priority 256
err_has 'whole number from 0 to 255'
run 2 taskctl submit 'a b'
err_has "queue 'a b' must be"
run 2 taskctl submit q --data x --file y
err_has 'only one of --data, --file and -'
run 2 taskctl submit q --file /nonexistent
err_has 'cannot read /nonexistent: No such file'
run 2 taskctl submit q --id 1234
err_has 'must be a UUIDv7'
run 2 taskctl submit q --id 6f7c1e2a-0000-4000-8000-000000000000
err_has 'must be a UUIDv7'
run 2 taskctl submit q --label =x
run 2 taskctl submit q --label a=1 --label a=2
err_has "label 'a' is given twice"
run 2 taskctl submit q --meta '[1]'
err_has 'meta must be a JSON object'
run 2 taskctl submit q --meta '{"a":1,"a":2}'
err_has 'meta must be a JSON object: duplicate'
run 2 taskctl submit q --for 5s
err_has '--for goes with --wait'
run 2 taskctl submit
err_has 'submit needs a queue'
run 2 taskctl get
err_has 'get needs ID'
run 2 taskctl get zz
err_has "'zz' is not an id"
run 2 taskctl get 12345
err_has "'12345' is not an id"
run 2 taskctl list 'a b'
err_has "queue 'a b' must be"
for command in count stats ping help 'work q -- true' 'result 0123456' 'payload 0123456'; do
    # shellcheck disable=SC2086 # the words of a command
    run 2 taskctl -o id $command
    err_has 'prints no ids: -o id means nothing here$'
done
run 2 taskctl list --status 'done'
err_has 'must be queued, working'
run 2 taskctl list --all --limit 3
run 2 taskctl list --since tomorrow
err_has 'must be a time: 2026-11-21,'
run 2 taskctl list --since 2026-02-30
run 2 taskctl list --since 2026-11-21x
run 2 taskctl list --status failed,
run 2 taskctl list --status failed,,cancelled
run 2 taskctl -o json watch
err_has 'one JSON document'
run 2 taskctl watch --until completed
err_has 'needs the ids'
run 2 taskctl watch --since 1-
run 2 taskctl work q
err_has "needs a command behind '--'"
run 2 taskctl work q -- /nonexistent/program
err_has 'cannot execute /nonexistent/program: No such file'
run 2 taskctl work q -- .
err_has 'cannot execute'
run 2 taskctl work q -j 0 -- true
run 2 taskctl get 0123456 -- x
err_has "takes nothing behind '--'"
run 2 taskctl -e somewhere list
err_has "endpoint: 'somewhere' is neither tcp://HOST:PORT nor ipc://PATH"
run 2 taskctl --timeout 0 list
run 2 taskctl --request-id 0123456789abcdef0123456789abcdef list
err_has 'list takes no --request-id'
run 2 env TASKMQ_TIMEOUT=5 taskctl list
run 2 env TASKMQ_NAMESPACE='a b' taskctl list

# The first mistake counts, wherever -o stands.
run 2 taskctl submit q --ttl 5 -o json
err '{"error":{"code":"USAGE","message":"--ttl '\''5'\'' must be a duration with its unit: 500ms, 30s, 5m, 1h30m, 1d","retriable":false,"hint":"taskctl help submit","task_id":null}}'

# Help is no mistake.
run 0 taskctl --help
out_has '^submit tasks, fetch results:$'
run 0 taskctl help work
out_has '--max-tasks N'
run 0 taskctl submit --nonsense --help
out_has '^usage: taskctl submit QUEUE'
run 2 taskctl help wrok
err_has "did you mean 'work'"
run 0 taskctl --version
out_has '^taskctl [0-9]+\.[0-9]+\.[0-9]+$'

# Every command of the overview has a help with examples, and no line is wider than a terminal.
run 0 taskctl --help
out_lacks '^.{81}'
sed -n '/^global options:/,$d; s/^  \([a-z][a-z-]*\).*/\1/p' out >names
[ "$(wc -l <names)" -gt 10 ] || fail 'too few commands'
while IFS= read -r name; do
    run 0 taskctl help "$name"
    out_has "^usage: taskctl $name"
    out_has '^examples:$'
    out_has "^  taskctl .*$name"
    out_lacks '^.{81}'
done <names
run 0 taskmqd --help
out_lacks '^.{81}'

# A dry run checks and prints the line that a batch file would have.
run 0 taskctl submit q --dry-run --data 'a"b' --ttl 0 --label a=b --meta '{"k": [1]}' --priority 5 \
    --lease 90s --id 01890000-0000-7000-8000-000000000000
out '{"queue":"q","data":"a\"b","id":"01890000-0000-7000-8000-000000000000","priority":5,"ttl":"0","lease":"90s","labels":{"a":"b"},"meta":{"k":[1]}}'
cp out line.jsonl
run 0 taskctl submit --batch line.jsonl --dry-run
err_has '1 task is fine'
printf '\377' >bytes
run 0 taskctl submit q --dry-run --file bytes
out '{"queue":"q","data":{"base64":"/w=="}}'
