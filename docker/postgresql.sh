#!/bin/sh
# The server of Dockerfile.postgresql. The first start makes its files; one that was killed meanwhile
# makes them anew.
set -eu

[ "${1-}" = postgres ] || exec "$@"
shift

if [ ! -e "$PGDATA" ]; then
    umask 077
    fresh=$PGDATA.fresh
    rm -rf "$fresh"
    password=$(sed "s/'/''/g; 1q" "$POSTGRES_PASSWORD_FILE")
    # shellcheck disable=SC2086 # options are words
    initdb -D "$fresh" -U postgres --auth-local=trust --auth-host=scram-sha-256 --data-checksums \
        --encoding=UTF8 --locale=C.UTF-8 ${POSTGRES_INITDB_ARGS-} >/dev/null
    echo 'host all all all scram-sha-256' >>"$fresh/pg_hba.conf"
    printf '%s\n' "CREATE ROLE \"$POSTGRES_USER\" LOGIN PASSWORD '$password'" \
        "CREATE DATABASE \"$POSTGRES_DB\" OWNER \"$POSTGRES_USER\"" |
        postgres --single -D "$fresh" postgres >/dev/null
    sync
    mv "$fresh" "$PGDATA"
fi
exec postgres -D "$PGDATA" -c 'listen_addresses=*' -c unix_socket_directories=/tmp "$@"
