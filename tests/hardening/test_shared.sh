#!/bin/sh
# A socket that the configuration names is for other users when an access file says what they may, and
# for nobody else before that. The data directory's own is never.
set -u

. "$TASKMQ_SOURCE/tests/cli/lib.sh"

# mode PATH MODE
mode ()
{
    [ "$(stat -c %a "$1")" = "$2" ] || fail "$1 has mode $(stat -c %a "$1"), not $2"
}

mkdir -m 755 shared
broker_options="--listen ipc://$room/shared/q.ipc"
start_broker
mode shared/q.ipc 700
mode .taskmq/taskmqd.ipc 700
stop_broker

printf 'me uid:%s operator\nother uid:12345 client(*)\n' "$(id -u)" >.taskmq/access
chmod 600 .taskmq/access
start_broker
mode shared/q.ipc 666
mode .taskmq/taskmqd.ipc 700
run 0 taskctl -e "ipc://$room/shared/q.ipc" ping

if [ "$(id -u)" -ne 0 ] || ! command -v setpriv >/dev/null; then
    printf 'skipped: only root can be another user\n'
    exit 77
fi
chmod 755 .
as ()
{
    uid=$1
    shift
    setpriv --reuid "$uid" --clear-groups env HOME=/ "$@"
}
if ! as 12345 taskctl --version >/dev/null 2>&1; then
    printf 'skipped: other users do not reach the programs\n'
    exit 77
fi
run 0 as 12345 taskctl -e "ipc://$room/shared/q.ipc" submit q --data x
run 4 as 12346 taskctl -e "ipc://$room/shared/q.ipc" ping
