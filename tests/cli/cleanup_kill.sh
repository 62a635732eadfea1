#!/bin/sh
# cleanup through kill -9: it goes on by itself with each start, what must stay is never lost, and at
# the end exactly that is there. TASKS=100000 in the environment makes it long.
. "$(dirname "$0")/lib.sh"

tasks=${TASKS:-2000}
kills=20
start_broker
awk -v n="$tasks" 'BEGIN {for (i = 0; i < n; i++) print "{\"queue\":\"q\",\"data\":\"x\",\"ttl\":0}"}' >lines
awk 'BEGIN {for (i = 0; i < 40; i++) print "{\"queue\":\"other\",\"data\":\"x\",\"ttl\":0}"}' >others
awk 'BEGIN {for (i = 0; i < 40; i++) print "{\"queue\":\"q\",\"data\":\"x\",\"ttl\":\"1d\"}"}' >timed
run 0 taskctl submit --batch lines
tail -n 10 out >stay
for file in others timed; do
    run 0 taskctl submit --batch "$file"
    cat out >>stay
done
run 0 taskctl cancel --queue q --yes
run 0 taskctl cancel --queue other --yes
sort stay >want
run 0 taskctl queue set q --max-count 12 --min-keep 10 --max-age 1s

# The age is over soon; 10 stay because of min_keep.
left ()
{
    taskctl count
}
all_due ()
{
    [ "$(taskctl -o id cleanup --dry-run --limit 1000 | wc -l)" -gt 990 ]
}
eventually all_due
spawn load taskctl cleanup
kill=1
while [ "$kill" -le "$kills" ]; do
    target=$((tasks + 80 - kill * tasks / (kills + 1)))
    fell ()
    {
        [ "$(left)" -le "$target" ]
    }
    eventually fell
    kill_broker
    start_broker
    taskctl -o id list --all | sort >have
    comm -23 want have >lost
    [ ! -s lost ] || fail "kill $kill lost $(wc -l <lost) tasks that must stay"
    kill=$((kill + 1))
done
only_what_stays ()
{
    taskctl -o id list --all | sort | cmp -s - want
}
eventually only_what_stays
stop_broker
