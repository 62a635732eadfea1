#!/bin/sh
# Data of earlier versions (tests/stored): a start brings it to today's, and all tasks are as they were
# listed by the version that wrote them. The way back leads to the copy.
. "$(dirname "$0")/lib.sh"
fields=task_id,queue,session,status,status_message,progress,labels,meta,attempt,created_at,finished_at
fields=$fields,payload_bytes,result_bytes,result_type,error,dead,ttl_ms,not_before

for stored in schema-6 schema-7 schema-7-db schema-7-log schema-8 schema-9 schema-10; do
    rm -rf .taskmq
    mkdir -m 700 .taskmq
    tar -xzf "$TASKMQ_SOURCE/tests/stored/$stored.tar.gz" -C .taskmq
    version=${stored#schema-}
    version=${version%%-*}
    run 0 taskmqd --check --data .taskmq
    out_has "^schema $version: the next start upgrades it to 11"
    start_broker
    run 0 taskctl -o jsonl list --all --fields "$fields"
    sort out >now
    cmp -s .taskmq/list now || fail "$stored: $(diff .taskmq/list now | cut -c 1-300)"
    grep -q "id=UPGRADED .* from=$version schema=11 copy=backups/before-schema-$((version + 1))" broker.err ||
        fail 'the log does not tell of the upgrade'
    [ -s ".taskmq/backups/before-schema-$((version + 1))/taskmq.db" ] || fail 'there is no copy'
    run 0 taskctl context get plan
    out_has '^{"a":2}$'
    run 0 taskctl result "$(sed -n 's/^{"task_id":"\([^"]*\)","queue":"done","session":"s1".*/\1/p' now)"
    out_has '^well done$'
    # They go on: the question is answered, what waited for another task still does.
    run 0 taskctl answer "$(sed -n 's/^{"task_id":"\([^"]*\)","queue":"asking".*/\1/p' now)" --ask colour --data '"blue"'
    run 0 taskctl count --queue idle --status queued
    run 0 taskctl submit idle --data new
    stop_broker
    run 0 taskmqd --check --data .taskmq
    out_has '^schema 11$'
    out_has 'no damage$'
done

# Without the log of journal.db: no start takes that, however often it is tried, and --check says so.
for stored in schema-6 schema-7 schema-7-db; do
    mkdir -m 700 other
    tar -xzf "$TASKMQ_SOURCE/tests/stored/$stored.tar.gz" -C other
    mv other/journal.db-wal kept
    run 15 taskmqd --check --data other
    out_has 'journal\.db-wal is missing: '
    [ -e other/journal.db-wal ] && fail 'the check made a log'
    for again in 1 2; do
        run 9 taskmqd --data other --listen "ipc://$PWD/other.sock"
        err_has 'journal\.db-wal is missing: .* put it back'
        [ -e other/journal.db-wal ] && fail "start $again made a log"
    done
    mv kept other/journal.db-wal
    run 0 taskmqd --check --data other
    rm -rf other
done

# An older version finds newer data: here this one does.
printf '\000\000\000\143' | dd of=.taskmq/taskmq.db bs=1 seek=60 conv=notrunc 2>err
run 8 taskmqd
err_has 'schema 99, known up to 11); no copy from before that is in .*/backups'
mkdir .taskmq/backups/before-schema-12
run 8 taskmqd
err_has 'backups/before-schema-12 is how it was before that'

# The way back, as the manual has it.
(cd .taskmq && rm -f taskmq.db taskmq.db-* journal.* && cp -p backups/before-schema-11/* .)
run 16 taskmqd --check --data .taskmq # what was done since is given up
out_has '^committed work was lost: '
out_has '^schema 10: the next start'
