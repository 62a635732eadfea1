#!/bin/sh
# retry, resume, set, purge: of ids and of conditions, through a kill of the broker, and what is
# refused.
. "$(dirname "$0")/lib.sh"
start_broker

unknown=01890000-0000-7000-8000-0000000000ee

# One that failed is done again, also after the broker was killed.
submit q --data 'exit 100' --max-attempts 1
task=$id
cat >program <<'PROGRAM'
#!/bin/sh
exec sh -c "$(cat)"
PROGRAM
chmod +x program
run 0 taskctl work q --drain -- ./program
run 8 taskctl wait "$task"
kill_broker
start_broker
run 0 taskctl retry "$task"
out "$task  queued"
kill_broker
start_broker
run 0 taskctl -o json get "$task"
json status '"queued"'
json attempt 1
json error null
run 6 taskctl retry "$task"
err_has 'it cannot be retried: the task is queued'
run 0 taskctl work q --drain -- ./program
run 8 taskctl wait "$task"
run 0 taskctl -o json get "$task"
json attempt 2

# A repeat with the same number is the same request.
hex=00112233445566778899aabbccddeeff
run 0 taskctl --request-id $hex -o jsonl retry "$task"
out "{\"task_id\":\"$task\",\"status\":\"queued\"}"
run 0 taskctl work q --drain -- ./program
run 8 taskctl wait "$task"
kill_broker
start_broker
run 0 taskctl --request-id $hex retry "$task"
out "$task  failed"
run 0 taskctl retry "$task"
run 0 taskctl cancel "$task"
run 0 taskctl resume "$task"
out "$task  queued"
run 0 taskctl get --events "$task"
out_has retried
out_has resumed

# What waits is changed.
run 0 taskctl set "$task" --priority 7 --ttl 2d --max-attempts 9 --label a=1 --label b=2 --delay 1h
run 0 taskctl set "$task" --drop-label a --label b=3
run 0 taskctl -o json get "$task"
json priority 7
json ttl_ms 172800000
json max_attempts 9
json labels '{"b":"3"}'
json phase '"scheduled"'
kill_broker
start_broker
run 0 taskctl -o id list --label b=3
out "$task"
run 0 taskctl count --label b=2
out 0
run 0 taskctl set "$task" --now
run 0 taskctl -o json get "$task"
json phase '"ready"'
run 2 taskctl set "$task"
err_has 'set needs something to change'
run 2 taskctl set "$task" --now --delay 1h
run 2 taskctl set "$task" --priority 300
run 2 taskctl set --priority 3
err_has 'set needs ids, or conditions'

# Only what has ended is purged; then it is known to be gone.
run 6 taskctl purge "$task"
err_has 'only what has ended can be purged: the task is queued'
run 0 taskctl cancel "$task"
run 6 taskctl set "$task" --priority 3
err_has 'only its ttl and labels can be set: the task is cancelled'
run 0 taskctl set "$task" --ttl 0
run 0 taskctl purge "$task"
out "$task  purged"
run 0 taskctl purge "$task"
run 5 taskctl get "$task"
err_has 'the task was removed at'
run 5 taskctl retry "$task"
kill_broker
start_broker
run 5 taskctl get "$task"
run 5 taskctl submit q --id "$task" --data 'exit 100' --max-attempts 1
run 5 taskctl retry $unknown
run 5 taskctl purge $unknown
run 2 taskctl retry nonsense
run 2 taskctl retry
err_has 'retry needs ids, or conditions'

# By conditions.
i=0
while [ "$i" -lt 300 ]; do
    printf '{"queue":"many","data":"x"}\n'
    i=$((i + 1))
done >lines
run 0 taskctl submit --batch lines
run 0 taskctl cancel --queue many --yes
submit many --data x
run 0 taskctl retry --queue many --dry-run
out 300
run 2 taskctl retry --queue many
err_has '300 tasks would be retried'
run 0 taskctl -o id retry --queue many --yes
out_lines 300
err_has '300 of 300 retried'
run 0 taskctl retry --queue many --yes
err_has 'no tasks'
run 0 taskctl -o id set --queue many --priority 1 --yes
err_has '301 of 301 set'
submit many --data y --label page=7
run 0 taskctl -o id set --with-label page=7 --priority 9 --label film=dawn --yes
out "$id"
run 0 taskctl -o json get "$id"
json priority 9
json labels '{"page":"7","film":"dawn"}'
run 0 taskctl cancel --queue many --yes
run 0 taskctl -o id purge --queue many --yes
err_has '302 of 302 purged'
run 0 taskctl count --queue many
out 0
run 2 taskctl purge "$id" --yes
err_has 'go with conditions'

# What conditions match and cannot be changed is said, task by task.
submit stuck --data x
submit stuck --data y
run 2 taskctl retry --queue stuck --status queued --yes
err_has 'no task that is queued can be retried'
run 0 taskctl queue set stuck --max-tasks 2
run 0 taskctl cancel "$id"
submit stuck --data z
run 10 taskctl retry --queue stuck --yes
err_has 'queued tasks of the queue: 2, as many as there may be'

# Some of several.
submit q --data x
run 0 taskctl cancel "$id"
run 9 taskctl retry "$id" $unknown
run 2 taskctl purge --status queued --yes
err_has '^taskctl: no task that is queued can be purged$'
run 2 taskctl retry --status completed --yes
err_has '^taskctl: no task that is completed can be retried$'
run 0 taskctl count --queue q --status queued
out 1
stop_broker
