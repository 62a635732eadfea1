#!/bin/sh
# Schedules: put, shown, paused, removed; through a broker that was killed; and what is refused.
. "$(dirname "$0")/lib.sh"

start_broker

# By the clock of a zone.
run 0 taskctl schedule add nightly reports --cron '30 3 * * *' --zone Europe/Berlin --data hello \
    --label kind=report
err_has '^schedule nightly: next 20[0-9-]* 0[12]:30:00 UTC$'
out_lines 0
run 0 taskctl schedule next nightly --count 3
out_lines 3
run 0 taskctl -o json schedule show nightly
json zone '"Europe/Berlin"'
json payload '"hello"'
json fired 0

# Each instant makes a task, also after a kill.
run 0 taskctl schedule add tick checks --cron '@every 1s' --data now
has_more_than ()
{
    [ "$(taskctl count --queue checks)" -gt "$1" ]
}
eventually has_more_than 1
run 0 taskctl -o json list --queue checks --limit 1
json owner "\"uid:$(id -u)\""
kill_broker
start_broker
before=$(taskctl count --queue checks)
eventually has_more_than "$before"
run 0 taskctl schedule pause tick
err_has '^schedule tick is paused$'
run 0 taskctl -o json schedule show tick
json state '"paused"'
json next '[]'
fired=$(sed -n 's/.*"fired":\([0-9]*\).*/\1/p' out)
[ "$(taskctl count --queue checks)" -eq "$fired" ] || fail "an instant made two tasks, or none"
run 0 taskctl schedule list
out_has '^nightly  30 3 \* \* \*  reports  active  in [0-9hm ]* +0$'
out_has '^tick     @every 1s   checks   paused  - +[0-9]+$'

# One that is there is not lost by mistake.
run 6 taskctl schedule add tick checks --cron @daily
err_has 'a schedule of this name is there already'
err_has '^hint: --replace'
run 0 taskctl schedule add tick checks --cron @daily --replace --overlap skip --missed one
run 0 taskctl -o json schedule show tick
json calendar '"@daily"'
json overlap '"skip"'
json missed '"one"'
run 0 taskctl schedule remove tick
err_has '^schedule tick is removed; its tasks go on$'
run 5 taskctl schedule show tick
err_has 'tick: no such schedule$'
run 5 taskctl schedule resume tick

# Each field wrong in turn.
for bad in '60 * * * *' '* 24 * * *' '* * 0 * *' '* * * 13 *' '* * * * 8' '* * * *' '@often' \
    '@every 0s' '5-1 * * * *' ''; do
    run 2 taskctl schedule add bad checks --cron "$bad"
done
run 2 taskctl schedule add bad checks --cron '* * 32 * *'
err_has '^taskctl: --cron: 32 is no day of the month \(1 to 31\)$'
run 2 taskctl schedule add bad checks --cron '0 0 30 2 *'
err_has '^taskctl: --cron: no such moment ever comes$'
run 2 taskctl schedule add bad checks --cron @daily --until 1s
err_has '^taskctl: --until: no moment comes before it$'
run 2 taskctl schedule delete bad
err_has "did you mean 'schedule remove'"
run 0 taskctl help schedule add
out_has '^usage: taskctl schedule add'
run 2 taskctl help schedule ad
run 2 taskctl schedule add bad checks --cron @daily --zone Mars/Olympus
err_has 'zone: there is no time zone Mars/Olympus here'
run 2 taskctl schedule add bad checks --cron @daily --overlap never
err_has 'must be allow, skip or cancel'
run 2 taskctl schedule add bad checks
err_has 'when\? --cron is needed'
run 2 taskctl schedule add 'b d' checks --cron @daily
run 2 taskctl schedule add bad 'q q' --cron @daily
run 2 taskctl schedule add bad
head -c 70000 /dev/zero | tr '\0' x >large
run 2 taskctl schedule add bad checks --cron @daily --file large
err_has 'payload: 70000 bytes, at most 65536 of a schedule'
run 2 taskctl schedule next nightly --count 101
