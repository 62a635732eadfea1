#!/bin/sh
# vacuum: what removed tasks left free in the tables goes back to the file system, on an idle broker,
# beside a load, and by two at once; and a store without a file says so.
# shellcheck disable=SC2016 # the shells of the programs expand these
. "$(dirname "$0")/lib.sh"
start_broker

awk 'BEGIN {for (i = 0; i < 1000; i++) {printf "{\"queue\":\"q\",\"data\":\""; for (j = 0; j < 400; j++) printf "%d-0123456789", i; print "\"}"}}' >lines

# Some megabytes come, and go.
fill_and_empty ()
{
    run 0 taskctl submit --batch lines
    run 0 taskctl cancel --queue q --yes
    run 0 taskctl purge --queue q --yes
}

fill_and_empty
# A vacuum may come before the removals are in the tables, and what they left may go in two steps.
removed ()
{
    taskctl -o json stats | grep -q '"tombstones": *1000\b'
}
emptied ()
{
    taskctl vacuum && [ "$(stat -c %s .taskmq/taskmq.db)" -lt 2000000 ]
}
eventually removed
eventually emptied
run 0 taskctl -o json vacuum
json given_bytes 0
json free_bytes 0

: >acked
spawn load sh -c 'while taskctl submit keep --data x >>acked; do :; done'
eventually test -s acked
fill_and_empty
spawn other taskctl vacuum
run 0 taskctl vacuum
out_has 'given back; the tables have'
wait "$(cat other.pid)" || fail 'a vacuum beside another one failed'
signal load TERM
sort -u acked >want
run 0 taskctl -o id list --queue keep --all
sort out >have
comm -23 want have >missing
[ ! -s missing ] || fail "$(wc -l <missing) tasks that were acknowledged are missing"

# One that a stop of the broker cuts off goes on behind the start, and tells no tables of no size.
fill_and_empty
spawn other taskctl vacuum
connected () # or it has ended already
{
    ! kill -0 "$(cat other.pid)" 2>/dev/null || taskctl -o json stats | grep -q '"links": *2\b'
}
eventually connected
stop_broker
start_broker
ended other 0
grep -q 'given back; the tables have [1-9]' other.out || fail "it tells $(cat other.out)"
eventually emptied
run 0 taskctl -o id list --queue keep --all
sort out >have
comm -23 want have >missing
[ ! -s missing ] || fail 'a vacuum over a restart lost tasks'

stop_broker
broker_options='--store memory'
start_broker
run 1 taskctl vacuum
err_has 'has no file'
stop_broker
