#!/bin/sh
# compose.sh ARCHIVE: docker/compose.yaml as it is meant to run, with the image of ARCHIVE: a broker, two
# workers, a client and a gateway, each on a network of its own with the broker. One of the workers is
# killed at its work, and the other one brings the result. By HTTP tasks come from this machine.
set -eu

# shellcheck disable=SC2034 # compose_lib.sh uses these
file=compose.yaml
# shellcheck disable=SC2034
services='broker worker-a worker-b client gateway'
. "$(dirname "$0")/compose_lib.sh"

# The workers wait with their work as long as there is a file, so that one can be killed at it.
grep -q 'render -- tr a-z A-Z"' compose.yaml || fail 'compose.yaml has other workers'
sed -i "s%render -- tr a-z A-Z%render -- sh -c 'while [ -e /tmp/hold ]; do sleep 0.1; done; tr a-z A-Z'%" \
    compose.yaml

# result ID: what the client has of it.
result ()
{
    inside client taskctl result "$1"
}

# field ID NAME: of the task, as the broker's operator sees it.
field ()
{
    inside broker taskctl get "$1" -o json | sed -n "s/.*\"$2\":\"\{0,1\}\([^\",]*\).*/\1/p"
}

works ()
{
    [ "$(field "$1" status)" = working ]
}

compose up -d broker
eventually 'the broker does not answer' inside broker taskctl --timeout 3s ping
COMPOSE='podman-compose -p taskmq' ./invite.sh >>"$SCRATCH/compose.log" 2>&1
compose up -d worker-a worker-b client gateway
eventually 'the client does not join' inside client taskctl whoami

# Each reaches the broker, and none another one: it has no name for it, and no way out.
for name in worker-a worker-b client gateway; do
    inside "$name" getent hosts broker >/dev/null || fail "$name does not find the broker"
    for other in worker-a worker-b client gateway; do
        [ "$name" = "$other" ] || ! inside "$name" getent hosts "$other" >/dev/null ||
            fail "$name finds $other"
    done
    # The gateway alone has one, as its port is published.
    if [ "$name" != gateway ] && inside "$name" grep -q '^eth0[[:space:]]*00000000' /proc/net/route; then
        fail "$name has a way out of its network"
    fi
done
[ "$(inside client taskctl submit render --data hello --wait)" = HELLO ] || fail 'the result is not HELLO'

# One is killed at its work.
inside worker-a touch /tmp/hold
inside worker-b touch /tmp/hold
id=$(inside client taskctl submit render --data again)
eventually 'nobody begins' works "$id"
killed=worker-a other=worker-b
case $(field "$id" worker) in
"$(inside worker-b hostname)"*) killed=worker-b other=worker-a ;;
esac
inside "$other" rm /tmp/hold
podman kill --signal KILL "$(container "$killed")" >/dev/null
eventually 'the result does not come' result "$id"
[ "$(result "$id")" = AGAIN ] || fail 'the result is not AGAIN'
[ "$(field "$id" attempt)" = 2 ] || fail 'it was not a second attempt'
# By HTTP: with the first token, and with one that was made for a client.
url=http://127.0.0.1:7433
eventually 'the gateway is not ready' curl -sf $url/readyz
[ "$(curl -s -o /dev/null -w '%{http_code}' $url/v1/tasks)" = 401 ] || fail 'nobody has to show a token'
# posted TOKEN: the result of a task that is submitted with it.
posted ()
{
    curl -sSf -H "Authorization: Bearer $1" -H 'Content-Type: text/plain' --data "$2" \
        $url/v1/queues/render/tasks >posted.json || return 1
    curl -sSf -H "Authorization: Bearer $1" -H 'Prefer: wait=60' \
        "$url/v1/tasks/$(sed -n 's/.*"task_id":"\([^"]*\)".*/\1/p' posted.json)/result"
}
[ "$(posted "$(inside gateway cat .taskmq/gateway.token)" http)" = HTTP ] || fail 'the result is not HTTP'
token=$(inside gateway taskmq-gateway token add ann --roles client)
podman kill --signal HUP "$(container gateway)" >/dev/null
eventually 'the token is not taken' posted "$token" ann
[ "$(posted "$token" ann)" = ANN ] || fail 'the result is not ANN'
echo "a broker, two workers, a client and a gateway served, and $killed was killed at its work"
