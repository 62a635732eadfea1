#!/bin/sh
# An invitation for each worker, the client and the gateway of compose.yaml, into docker/secrets. Each is good once;
# whoever has joined needs none, so those that are there already stay. COMPOSE is the command, docker
# compose where it is unset.
set -eu

cd "$(dirname "$0")"
umask 077
mkdir -p secrets

# invite NAME OPTION...
invite ()
{
    name=$1
    shift
    [ ! -s "secrets/$name.join" ] || return 0
    ${COMPOSE:-docker compose} -f compose.yaml exec -T broker taskctl invite "$name" "$@" >"secrets/$name.new"
    grep -o 'tmqjoin_[a-z2-7]*' "secrets/$name.new" >"secrets/$name.join"
    rm -f "secrets/$name.new"
    chmod 644 "secrets/$name.join" # the container's user reads it; the directory keeps others out
    echo "invited $name"
}

invite worker-a --role worker --queue render
invite worker-b --role worker --queue render
invite client --role client
invite gateway --role operator # its tokens say who may do less
