#!/bin/sh
# What a broker says of the URI of its database and of the file with its password, before it waits for
# anything.
# shellcheck disable=SC2154 # by lib.sh
. "$(dirname "$0")/lib.sh"

start_postgres

check () # EXIT [OPTION...]
{
    wanted_exit=$1
    shift
    run "$wanted_exit" taskmqd --check-config --data "$room/.taskmq" --store postgresql "$@"
}
start () # EXIT [OPTION...]
{
    wanted_exit=$1
    shift
    run "$wanted_exit" taskmqd --data "$room/.taskmq" --store postgresql "$@"
}

# --- a setting that libpq does not know, in one line

check 3 --database "$database&nonsense=1"
out_has '^wrong +database +database/uri: invalid URI query parameter: "nonsense"$'
out_lacks '^$'
start 3 --database "$database&nonsense=1"
err_has 'id=DATA-ACCESS msg="database/uri: invalid URI query parameter: .*nonsense[\]"" exit=3$'
exit 0
