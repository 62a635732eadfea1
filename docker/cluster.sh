#!/bin/sh
# What compose.cluster.yaml needs before its first start, into docker/secrets: a password for the
# database, one key for both brokers, a key for the worker and for the client, and who may do what.
# What is there already stays. The keys are made in the image; ENGINE is the command, docker where it
# is unset.
set -eu

cd "$(dirname "$0")"
umask 077
mkdir -p secrets

# put NAME: stdin becomes that file, whole. The container's user reads it; the directory keeps others out.
put ()
{
    cat >"secrets/$1.new"
    [ -s "secrets/$1.new" ] || exit 1
    chmod 644 "secrets/$1.new"
    mv "secrets/$1.new" "secrets/$1"
}

key ()
{
    [ -s "secrets/$1.key" ] || ${ENGINE:-docker} run --rm --network none --entrypoint sh taskmq \
        -c 'taskctl key new >/dev/null 2>&1; cat .config/taskmq/keys/default.key' | put "$1.key"
}

public_of ()
{
    sed -n 's/^# public key //p' "secrets/$1.key"
}

[ -s secrets/database.password ] || od -An -N 24 -t x1 /dev/urandom | tr -d ' \n' | put database.password
printf '*:*:*:taskmq:%s\n' "$(cat secrets/database.password)" | put database.pgpass
key brokers
key cluster-worker
key cluster-client
public_of brokers | put brokers.public
{
    printf 'worker  key:%s  worker(default/render)\n' "$(public_of cluster-worker)"
    printf 'client  key:%s  client(default/*)\n' "$(public_of cluster-client)"
} | put cluster.access
echo 'docker/secrets has what the cluster needs'
