#!/bin/sh
# What somebody left where the broker keeps its files, links to files of others above all: nothing is
# written through a link, whether the broker starts or refuses to. Then files that are torn, too large
# or open to others while it runs: what was read before them stays.
. "$(dirname "$0")/lib.sh"

is_up_or_over ()
{
    [ -s .taskmq/endpoint ] && [ ! -L .taskmq/endpoint ] || ! kill -0 "$(cat started.pid)" 2>/dev/null
}

# finds_link FILE EXIT [TEXT]: the broker finds a link instead of this file, and ends with EXIT. The
# file behind it is empty, so that it is as good as any for who does not look.
finds_link ()
{
    rm -rf .taskmq victim
    mkdir -m 700 .taskmq
    : >victim
    ln -s "$room/victim" ".taskmq/$1"
    spawn started taskmqd --data "$room/.taskmq" --listen 'tcp://127.0.0.1:0?curve'
    eventually is_up_or_over
    kill -TERM "$(cat started.pid)" 2>/dev/null
    last_command="the start with a link for $1"
    ended started "$2"
    err_has "${3-.}"
    [ ! -s victim ] || fail "$1: the broker wrote through a link: $(head -c 80 victim)"
}

finds_link taskmq.db 3 'taskmq.db is a symbolic link'
finds_link journal.log 3 'journal.log: is a symbolic link'
finds_link journal.new 0
finds_link journal.db 3 'journal.db is a symbolic link'
finds_link taskmq.db-wal 3 'symbolic links'
finds_link taskmq.db-shm 3 'symbolic links'
finds_link journal.db-wal 0
finds_link taskmq.lock 3 'taskmq.lock: .*symbolic links'
finds_link audit.jsonl 3 'audit.jsonl: .*symbolic links'
finds_link tasks.jsonl 3 'tasks.jsonl'
finds_link access 14 'access is a symbolic link'
finds_link server.key 14 'server.key'
finds_link taskmqd.ipc 5 'taskmqd.ipc'
finds_link taskmqd.ipc.lock 5 'taskmqd.ipc.lock'
for replaced in reserve endpoint .gitignore; do
    finds_link "$replaced" 0
done

# A directory of somebody else above: neither program uses it.
if [ "$(id -u)" -eq 0 ]; then
    mkdir -p theirs/below/.taskmq
    mkdir -m 755 theirs/.taskmq
    printf 'ipc:///nowhere\n' >theirs/.taskmq/endpoint
    chown -R 65534 theirs/.taskmq
    rmdir theirs/below/.taskmq
    cd theirs/below || exit 1
    run 3 taskctl ping
    err_lacks nowhere
    cd "$room" || exit 1
fi

# While it runs: access file and configuration.
rm -rf .taskmq
mkdir -m 700 .taskmq
good="me uid:$(id -u) operator
ci uid:4711 client(default)"
(umask 077 && printf '%s\n' "$good" >.taskmq/access)
printf 'limits\n    links = 77\n' >conf
broker_options='-c conf'
start_broker

# stays WHAT: the file that is there is not taken, and all is as it was.
stays ()
{
    run 2 taskctl reload
    err_has "$1"
    run 0 taskctl key list
    out_has '^ci '
    run 0 taskctl submit q
}
mend ()
{
    rm -f .taskmq/access
    (umask 077 && printf '%s\n' "$good" >.taskmq/access)
    printf 'limits\n    links = 77\n' >conf
    run 0 taskctl reload
}
printf '%s' "$good" | head -c 40 >.taskmq/access
stays 'access:2: '
mend
printf '%s\nx uid:7 client(a)\000 operator\n' "$good" >.taskmq/access
stays 'access:3: '
mend
head -c 10485760 /dev/zero | tr '\0' '#' >.taskmq/access
stays 'more than 1048576'
mend
chmod 660 .taskmq/access
stays 'chmod go-w'
mend
rm .taskmq/access
stays 'is gone'
mend
mv .taskmq/access elsewhere
ln -s "$room/elsewhere" .taskmq/access
stays 'symbolic link'
mend
printf 'limits\n    links = 7' | head -c 14 >conf
stays 'conf:2: '
printf 'limits\n    links = 7\000\n' >conf
stays 'conf:2: '
head -c 10485760 /dev/zero | tr '\0' '#' >conf
stays 'conf'
mend
stop_broker
