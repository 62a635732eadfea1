#!/bin/sh
# What a user is told who may not reach the broker. As root it is tried as nobody.
. "$(dirname "$0")/lib.sh"

as_other=
if [ "$(id -u)" -eq 0 ]; then
    as_other='setpriv --reuid=65534 --regid=65534 --clear-groups'
    chmod 755 .
    # shellcheck disable=SC2086 # words
    if ! $as_other taskctl --version >out 2>&1; then
        echo 'skipped: nobody else can run taskctl here'
        exit 77
    fi
fi

# says COMMAND...: it is certain, so nobody waits.
says ()
{
    # shellcheck disable=SC2086 # words
    run 3 $as_other "$@"
    err_has '^taskctl: cannot reach .*: permission denied$'
    err_has '^hint: it belongs to another user: ask for access, or start a broker of your own$'
}

start_broker
uri=$(head -n 1 .taskmq/endpoint)
if [ -z "$as_other" ]; then
    chmod 0 .taskmq # an own directory, closed to its owner
fi
says taskctl -e "$uri" ping
says taskctl -e "$uri" list
# shellcheck disable=SC2086 # words
run 3 $as_other taskctl -o json -e "$uri" ping
err_has '"code":"UNREACHABLE".*permission denied'
chmod 700 .taskmq
