#!/bin/sh
# compose_cluster.sh ARCHIVE DATABASE_ARCHIVE: docker/compose.cluster.yaml as it is meant to run, with the
# images of both: two brokers on a PostgreSQL, a worker and a client that know both. Whoever owns the
# database is killed at work, and the other one has the result; what was killed comes back as a standby.
set -eu

# shellcheck disable=SC2034 # compose_lib.sh uses these
file=compose.cluster.yaml
# shellcheck disable=SC2034
services='database broker-a broker-b worker client'
. "$(dirname "$0")/compose_lib.sh"

# The worker waits with its work as long as there is a file.
grep -q 'command: \[taskctl, work, render, --, tr, a-z, A-Z\]' "$file" || fail "$file has another worker"
sed -i 's%\[taskctl, work, render, --, tr, a-z, A-Z\]%[taskctl, work, render, --, sh, -c, "while [ -e /tmp/hold ]; do sleep 0.1; done; tr a-z A-Z"]%' \
    "$file"

# owns NAME: the broker serves; a standby listens nowhere.
owns ()
{
    inside "$1" taskctl --timeout 3s ping
}

owner ()
{
    for name in broker-a broker-b; do
        ! owns "$name" >/dev/null 2>&1 || echo "$name"
    done
}

waits ()
{
    podman logs "$(container "$1")" 2>&1 | grep -q "id=DATABASE-STANDBY"
}

result ()
{
    inside client taskctl result "$1"
}

works ()
{
    inside client taskctl get "$1" -o json | grep -q '"status":"working"'
}

ENGINE=podman ./cluster.sh >>"$SCRATCH/compose.log" 2>&1 || fail "cluster.sh: $(cat "$SCRATCH/compose.log")"
[ "$(stat -c %a secrets)" = 700 ] || fail 'others see the secrets'
compose up -d
eventually 'nobody serves' inside client taskctl --timeout 3s ping
[ "$(inside client taskctl submit render --data hello --wait)" = HELLO ] || fail 'the result is not HELLO'

# One serves, the other one waits. The database is reached by them alone.
first=$(owner)
case "$first" in
broker-a) second=broker-b ;;
broker-b) second=broker-a ;;
*) fail "they serve: '$first'" ;;
esac
eventually 'nobody waits' waits "$second"
for name in worker client; do
    ! inside "$name" getent hosts database >/dev/null || fail "$name finds the database"
done
! inside database psql -w -h 127.0.0.1 -U taskmq -c 'SELECT 1' taskmq >/dev/null 2>&1 ||
    fail 'the database asks for no password'
! inside client taskctl queue pause render >/dev/null 2>&1 || fail 'the client may do what an operator may'

# The owner is killed while the worker is at work: the task goes on, and its result is there.
inside worker touch /tmp/hold
id=$(inside client taskctl submit render --data again)
eventually 'nobody begins' works "$id"
podman kill --signal KILL "$(container "$first")" >/dev/null
eventually 'the other one does not take over' owns "$second"
inside worker rm /tmp/hold
eventually 'the result does not come' result "$id"
[ "$(result "$id")" = AGAIN ] || fail 'the result is not AGAIN'
[ "$(inside client taskctl submit render --data more --wait)" = MORE ] || fail 'the result is not MORE'

# What was killed comes back, and waits in its turn; a clean stop hands over to it.
podman start "$(container "$first")" >/dev/null
eventually 'what was killed does not wait' waits "$first"
podman stop --time 20 "$(container "$second")" >/dev/null
eventually 'it does not take over in turn' owns "$first"
[ "$(inside client taskctl submit render --data last --wait)" = LAST ] || fail 'the result is not LAST'
[ "$(result "$id")" = AGAIN ] || fail 'an earlier result is gone'
compose down
echo "two brokers served by turns: $first was killed at work, and $second stopped"
