#!/bin/sh
# A PostgreSQL of a test's own: made by initdb in a directory that the caller made for it, reached by
# a socket there. Never a service of the machine.
#
#   postgres.sh found                    where its programs are; 77 and a word when they are nowhere
#   postgres.sh needed                   the same, and says nothing when they are there
#   postgres.sh built                    77: this build cannot speak to it, for want of libpq
#   postgres.sh make HOME                a server's files in HOME/data
#   postgres.sh copy HOME SOURCE PORT    those of a standby of the server in SOURCE, which runs; what
#                                        HOME had before is gone
#   postgres.sh run HOME [NAME=VALUE...] becomes the server, with these settings
#   postgres.sh kill PID                 kill -9 of that server with all its processes; they are gone
#                                        when this returns, but for what their parent has to wait for
#   postgres.sh remove HOME              the files of a server that has ended
#
# Everybody who reaches the socket may come in. "postgres" is the superuser; "taskmq" owns the
# database taskmq and has no other right, as a broker's role should. Root, whom PostgreSQL refuses,
# lends its user to it. The server dies with the process that it is the child of.
#
# initdb takes seconds of a processor, so it runs once for a build: what it made is copied.

set -eu

. "$(dirname "$0")/no_pg.sh"

die ()
{
    printf 'postgres.sh: %s\n' "$*" >&2
    exit 1
}

# The newest of those that Debian keeps beside each other, else that of the path. 14 is the oldest
# that the store takes.
programs ()
{
    for version in 18 17 16 15 14; do
        if [ -x "/usr/lib/postgresql/$version/bin/initdb" ]; then
            printf '%s\n' "/usr/lib/postgresql/$version/bin"
            return
        fi
    done
    if found=$(command -v initdb); then
        dirname "$(readlink -f "$found")"
        return
    fi
    printf 'skipped: PostgreSQL is not installed (Debian: postgresql)\n' >&2
    exit 77
}

# as_server COMMAND...: becomes it, as the user that a server has.
as_server ()
{
    if [ "$(id -u)" -eq 0 ]; then
        exec setpriv --reuid="$user" --regid="$group" --clear-groups --pdeathsig=KILL -- "$@"
    fi
    exec setpriv --pdeathsig=KILL -- "$@"
}

find_user ()
{
    user=postgres
    id -u "$user" >/dev/null 2>&1 || user=nobody
    group=$(id -g "$user")
    user=$(id -u "$user")
}

# Makes the files that are copied later: not in the build, where that user may not be let in.
make_template ()
{
    place=$(mktemp -d "${TMPDIR:-/tmp}/tmq-initdb.XXXXXX")
    if [ "$(id -u)" -eq 0 ]; then
        chown "$user:$group" "$place"
    fi
    if ! (as_server "$bin/initdb" -D "$place/data" -U postgres --auth=trust --no-sync \
        --encoding=UTF8 --locale=C --wal-segsize=1 </dev/null) >"$place/log" 2>&1 ||
        ! printf '%s\n' 'CREATE ROLE taskmq LOGIN' 'CREATE DATABASE taskmq OWNER taskmq' |
        (as_server "$bin/postgres" --single -F -D "$place/data" postgres) >>"$place/log" 2>&1; then
        cat "$place/log" >&2
        rm -rf "$place"
        die 'initdb failed'
    fi
    rm -rf "$1.new"
    cp -a "$place/data" "$1.new"
    rm -rf "$place"
    mv "$1.new" "$1"
}

make_server ()
{
    home=$1
    build=$(cd "${TASKMQ_BIN:-../bin}/.." && pwd)
    template=$build/tests/postgres-$(basename "$(dirname "$bin")")
    mkdir -p "$build/tests"
    if [ ! -d "$template" ]; then
        exec 9>"$template.lock"
        flock 9
        [ -d "$template" ] || make_template "$template"
        exec 9>&-
    fi
    cp -a --reflink=auto "$template" "$home/data"
    if [ "$(id -u)" -eq 0 ]; then
        chown "$user:$group" "$home"
    fi
}

copy_server ()
{
    rm -rf "$1/data"
    mkdir -m 700 "$1/data"
    if [ "$(id -u)" -eq 0 ]; then
        chown "$user:$group" "$1" "$1/data"
    fi
    (as_server "$bin/pg_basebackup" -h "$2" -p "$3" -U postgres -D "$1/data" -R -c fast --no-sync)
}

# Small, quick to start and to end, and as durable as a real one.
run_server ()
{
    home=$1
    shift
    count=$#
    while [ "$count" -gt 0 ]; do
        setting=$1
        shift
        set -- "$@" -c "$setting"
        count=$((count - 1))
    done
    cd "$home"
    as_server "$bin/postgres" -D "$home/data" -c "unix_socket_directories=$home" \
        -c listen_addresses= -c shared_buffers=16MB -c dynamic_shared_memory_type=mmap \
        -c max_connections=40 -c max_wal_size=256MB -c min_wal_size=8MB -c jit=off \
        -c wal_level=minimal -c max_wal_senders=0 -c logging_collector=off "$@"
}

# A process that waits only to be fetched by its parent is gone.
lives ()
{
    state=$(sed -n 's/^State:[[:space:]]*\(.\).*/\1/p' "/proc/$1/status" 2>/dev/null) || return 1
    case "$state" in
    '' | Z | X) return 1 ;;
    esac
}

# Whether it stands still, or is gone.
stands ()
{
    state=$(sed -n 's/^State:[[:space:]]*\(.\).*/\1/p' "/proc/$1/status" 2>/dev/null) || return 0
    case "$state" in
    '' | T | Z | X) return 0 ;;
    esac
    return 1
}

# The server stands still first, so that it makes no process that is not among those, and goes first,
# so that it does not start what dies anew.
kill_server ()
{
    kill -STOP "$1" 2>/dev/null || :
    until stands "$1"; do
        sleep 0.01
    done
    pids="$1 $(cat "/proc/$1/task/$1/children" 2>/dev/null || :)"
    for pid in $pids; do
        kill -KILL "$pid" 2>/dev/null || :
    done
    for pid in $pids; do
        while lives "$pid"; do
            sleep 0.01
        done
    done
}

remove_server ()
{
    case "$1" in
    */tmq-pg-*) ;;
    *) die "$1 is no place of a server" ;;
    esac
    # One that was killed has left a piece of shared memory, whose number is in the 7th line.
    if memory=$(sed -n 7p "$1/data/postmaster.pid" 2>/dev/null) && [ -n "$memory" ]; then
        ipcrm -m "${memory##* }" 2>/dev/null || :
    fi
    rm -rf "$1"
}

verb=${1-}
[ $# -gt 0 ] && shift
case "$verb" in
found)
    programs
    ;;
needed)
    programs >/dev/null
    ;;
built)
    printf 'skipped: built without libpq (Debian: libpq-dev)\n' >&2
    exit 77
    ;;
make | run | copy)
    bin=$(programs)
    find_user
    "${verb}_server" "$@"
    ;;
kill | remove)
    "${verb}_server" "$1"
    ;;
*)
    die "no verb: '$verb'"
    ;;
esac
