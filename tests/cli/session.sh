#!/bin/sh
# taskctl session: what is set, and how a session stands, through SIGKILL of the broker; bad input; and
# what goes with a session that is removed.
. "$(dirname "$0")/lib.sh"

# Values and items that are left of the session.
emptied ()
{
    taskctl -o id context list --session trip >left && [ ! -s left ] || return 1
    taskctl -o id session input list trip >left && [ ! -s left ]
}

start_broker
run 0 taskctl -o id session list
out_lines 0
run 5 taskctl session pause trip
submit jobs --session trip
first=$id
run 0 taskctl -o id session list
out trip
run 0 taskctl session set trip --goal 'a week in Lisbon' --salience 300 --context '{"days":7}' \
    --label who=us
run 0 taskctl session pause trip --why 'the user thinks'
submit jobs --session trip
submit jobs
run 0 taskctl why "$first"
out_has "^its session 'trip' was paused by .* ago: the user thinks"

kill_broker
start_broker
run 0 taskctl -o json session show trip
golden session.json
run 0 taskctl work jobs --max-tasks 1 -- cat
run 0 taskctl count --status queued
out 2
run 0 taskctl work jobs --drain -- cat
err_has '^taskctl: 2 tasks are left that somebody has paused$'
run 0 taskctl -o json get "$first"
out_has '"phase":"paused"'
run 0 taskctl session list --status paused
out_has '^trip +paused +2 +300 '
run 0 taskctl -o id session list --status active
out_lines 0
run 0 taskctl session resume trip
run 0 taskctl work jobs --drain -- cat
run 0 taskctl count --status queued
out 0

# A frozen one takes nothing, also after a kill; a complete one neither.
run 0 taskctl session freeze trip --why 'no more money'
kill_broker
start_broker
run 10 taskctl submit jobs --session trip
err_has 'session trip is frozen, and takes no tasks: no more money'
run 0 taskctl session close trip
run 6 taskctl submit jobs --session trip
err_has 'session trip is complete'
run 0 taskctl session resume trip
run 0 taskctl -o jsonl watch --subject session --since 0 --count 6
out_has '"kind":"changed".*"subject":"session","name":"trip"'

# It goes with what belongs to it, also if the broker is killed meanwhile.
for n in 1 2 3 4 5; do
    run 0 taskctl context put "key$n" --session trip --data "$n"
    run 0 taskctl session input add trip --data "$n"
done
run 0 taskctl context put kept --data 1
submit later --session trip
run 6 taskctl session remove trip
err_has 'live tasks'
err_lacks '^hint: '
run 0 taskctl cancel "$id"
run 0 taskctl session remove trip
kill_broker
start_broker
run 5 taskctl session show trip
eventually emptied
run 0 taskctl -o id context list
out_lines 1
run 5 taskctl session remove trip

# Bad input.
run 2 taskctl session set trip --salience 0
run 2 taskctl session set trip --salience 1001
run 2 taskctl session set trip --goal "$(head -c 2048 /dev/zero | tr '\0' x)"
err_has 'at most 1024 bytes'
run 2 taskctl session set trip --context '{days'
err_has 'must be JSON'
run 2 taskctl session set 'a b'
run 2 taskctl session list --status gone
run 0 taskctl complete -- session fre
out freeze
run 0 taskctl session set paris
run 0 taskctl complete -- session show pa
out_has '^paris'
stop_broker
