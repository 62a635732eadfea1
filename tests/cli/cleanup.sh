#!/bin/sh
# cleanup: what retention lets go, shown and removed; rules of queues and of the namespace, a reload,
# and what is refused.
. "$(dirname "$0")/lib.sh"

cat >conf <<'END'
retention
    min_keep = 1
END
broker_options="-c conf"
start_broker

for i in 1 2 3 4 5 6; do
    submit letters --data "letter $i" --ttl 0
    [ "$i" != 1 ] || oldest=$id
done
submit letters --data 'with a time to live' --ttl 1d
timed=$id
run 0 taskctl work letters --drain -- cat
submit letters --data 'not yet' --ttl 0
waiting=$id

# Nothing is set: nothing goes.
run 0 taskctl cleanup --dry-run
out_lines 0
err_has '^nothing would go$'
run 0 taskctl cleanup
out_has '^0 of 6 removed, 0 of payloads, results and turns$'

# What contradicts itself.
run 2 taskctl queue set letters --max-count 2 --min-keep 3
err_has 'max_count is less than min_keep'
err_has '^hint: --max-count N --min-keep N says both at once, --unset min-keep takes it back$'
run 2 taskctl queue set letters --max-age 2d --keep-failed 1d
err_has 'keep_failed is less than max_age'
err_has '^hint: --max-age D --keep-failed D says both at once'
run 2 taskctl cleanup --limit 3
err_has 'of a --dry-run only'
run 2 taskctl cleanup letters
err_has "the rules of all queues at once, and takes no 'letters'"
err_has '^hint: taskctl purge --queue NAME'

run 0 taskctl queue set letters --max-ended-bytes 1M
err_has '^queue letters: max-ended-bytes=1M$'
err_has '^7 ended tasks are here: taskctl cleanup --dry-run shows what would go$'
run 0 taskctl queue set letters --max-ended-bytes 0 --max-bytes 0
err 'queue letters: nothing is set any more'
run 0 taskctl -o json queue show letters
out_has '"ended":[1-9].*"max_bytes":null,.*"max_ended_bytes":null'
run 2 taskctl queue set letters --max-ended-bytes 1048577G
err_has 'from 1B to 1024T, or 0: no limit'
run 0 taskctl queue set letters --max-count 2 --max-ended-bytes 1G --keep-failed 30d
err_has '^queue letters: max-count=2 max-ended-bytes=1G keep-failed=30d$'
err_has '^these rules are for tasks with a ttl of 0; --ttl 0 sets that for those to come$'
run 0 taskctl queue set letters --max-running 9 # which says nothing of retention
err 'queue letters: max-running=9 max-count=2 max-ended-bytes=1G keep-failed=30d'
run 0 taskctl queue set letters --unset max-running
run 0 taskctl -o wide queue list
out_has 'max-count=2 max-ended-bytes=1G keep-failed=30d'
run 0 taskctl cleanup --dry-run --limit 3
out_lines 4
out_has '^TASK +QUEUE +STATUS +ENDED +BYTES +WHY$'
out_has "letters +completed +([0-9]+s ago|now) +16B +max_count of the queue$"
err_has '^more follow: --cursor [0-9a-f]*, or --all$'
run 0 taskctl -o id cleanup --dry-run --all
out_lines 4
run 0 taskctl -o json cleanup --dry-run --limit 1
out_has '"queue":"letters","status":"completed","policy":"max_count","of":"queue","age_ms":[0-9]*,"bytes":16}'
run 0 taskctl -o json cleanup
json looked 6
json removed 4
json removed_bytes 64
run 5 taskctl get "$oldest"
err_has 'the task was removed at .*, by max_count of the queue'
run 0 taskctl get "$timed"
[ "$(status_of "$waiting")" = queued ] || fail 'what has not ended went'
run 0 taskctl watch --since 0 --count 100 --for 100ms
out_has "purged +$oldest .*max_count of the queue"
run 0 taskctl list --queue letters --all
out_lines 5

# The rule of the namespaces is the configuration's, and a reload takes it.
printf 'retention\n    max_count = 3\n    min_keep = 5\n' >conf
run 2 taskctl reload
err_has 'retention/max_count \(conf:2\), retention/min_keep \(conf:3\): max_count is less than min_keep'
printf 'retention\n    max_count = 1\n' >conf
run 0 taskctl reload
run 0 taskctl cleanup --dry-run
out_has 'max_count of the namespace$'
run 0 taskctl -o json cleanup
json removed 1
run 0 taskctl audit tail
out_has 'cleanup'

# A namespace may have its own in place of it.
printf 'retention\n    max_count = 1\n    namespace = default=max_count:2,min_keep:3\n' >conf
run 2 taskctl reload
err_has 'max_count is less than min_keep'
printf 'retention\n    max_count = 1\n    namespace = default=none\n' >conf
run 0 taskctl reload
submit letters --data 'another one' --ttl 0
run 0 taskctl cancel "$id"
run 0 taskctl -o json cleanup
json removed 0
printf 'retention\n    max_count = 1\n    namespace = other=none\n' >conf
run 0 taskctl reload
run 0 taskctl -o json cleanup
json removed 1

# A start does it, too.
submit letters --data 'one more' --ttl 0
run 0 taskctl cancel "$id" "$waiting"
stop_broker
start_broker
one_left ()
{
    [ "$(taskctl -o id list --queue letters --all | wc -l)" = 2 ]
}
eventually one_left
run 0 taskctl get "$id"

# What retention removed, a vacuum gives back to the file system.
awk 'BEGIN {for (i = 0; i < 1000; i++) {printf "{\"queue\":\"q\",\"ttl\":0,\"data\":\""; for (j = 0; j < 400; j++) printf "%d-0123456789", i; print "\"}"}}' >lines
run 0 taskctl submit --batch lines
run 0 taskctl cancel --queue q --yes
run 0 taskctl cleanup
emptied ()
{
    taskctl vacuum && [ "$(stat -c %s .taskmq/taskmq.db)" -lt 2000000 ]
}
eventually emptied

# 0 is off, and a name is that of the option or of the configuration.
run 0 taskctl queue set others --max-age 2d --max-count 3
run 0 taskctl queue set others --max-age 0 --unset max_count
run 5 taskctl queue show others
err_has 'it has no tasks, no workers and no settings'
submit others
run 0 taskctl cancel "$id"
run 0 taskctl queue set others --max-age 2d
err_has '^1 ended task is here: taskctl cleanup --dry-run shows'
stop_broker
