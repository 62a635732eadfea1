#!/bin/sh
# result, payload and artifact get into a file: whole or not there; what a kill of taskctl, a restart
# of the broker or a full disk interrupted is gone on with, and the hash of all decides.
. "$(dirname "$0")/lib.sh"
printf 'limits\n    blob_bytes = 256M\n' >conf
broker_options='-c conf'
start_broker
head -c 60000000 /dev/urandom >large

run 0 taskctl submit q --file large
id=$(cat out)

# What is too large to be shown is told where it was asked for.
run 0 taskctl get --payload "$id"
err_has '^the payload is larger than 256 KiB: taskctl payload ID -o FILE fetches it$'
run 0 taskctl get "$id"
err_lacks 'payload'

part ()
{
    find . -maxdepth 1 -name ".film.*.part"
}
# begun N: N bytes of it or more are there.
begun ()
{
    [ -n "$(part)" ] && [ "$(stat -c %s "$(part)")" -ge "$1" ]
}

# Until so much has come. It looks as often as it can: a fetch is quick.
fetching ()
{
    looks=0
    until begun "$1" 2>/dev/null; do
        looks=$((looks + 1))
        [ "$looks" -lt 30000 ] || fail 'the fetch did not come so far'
    done
}

# A kill in the middle: the bytes stay, nothing has the name, and the same command goes on.
spawn fetch taskctl payload "$id" -o film
fetching 1000000
kill -KILL "$(cat fetch.pid)"
ended fetch 137
[ ! -e film ] || fail 'half a file has the name'
there=$(stat -c %s "$(part)")
[ "$there" -lt 60000000 ] || fail 'the kill came too late'
run 0 taskctl -v payload "$id" -o film
err_has 'were there already'
cmp -s film large || fail 'what was gone on with is another one'
[ -z "$(part)" ] || fail 'the part stays'

# A signal that ends it: what is kept is told, and the same command goes on. It may be too quick for us.
tries=0
until [ -n "$(part)" ]; do
    tries=$((tries + 1))
    [ "$tries" -lt 50 ] || fail 'every fetch was quicker than a signal'
    rm -f film
    spawn fetch taskctl payload "$id" -o film
    until begun 1000000 2>/dev/null || [ -e film ]; do :; done
    signal fetch TERM
    wait "$(cat fetch.pid)"
done
cp fetch.err err
err_has 'what was fetched of 57.2M is in .*\.film\..*\.part: the same command goes on from there$'
[ ! -e film ] || fail 'half a file has the name after a signal'
run 0 taskctl -v payload "$id" -o film
err_has 'were there already'
cmp -s film large || fail 'what was gone on with after a signal is another one'

# A restart of the broker in the middle: the command waits for it and goes on.
rm film
spawn fetch taskctl payload "$id" -o film
fetching 1000000
kill_broker
start_broker
ended fetch 0
cmp -s film large || fail 'what outlived the broker is another one'

# What stands there of something else is found by the hash, and everything is fetched again.
mark=$(taskctl -o json get --payload "$id" | sed 's/.*"payload_hash":"\(.\{16\}\).*/\1/')
head -c 5000000 /dev/zero >".film.$mark.part"
run 0 taskctl payload "$id" -o film
cmp -s film large || fail 'what was made anew is another one'
head -c 70000000 /dev/zero >".film.$mark.part"
run 0 taskctl payload "$id" -o film
cmp -s film large || fail 'what was too long is another one'

# Not somebody else's file, not two at a time, not a directory.
ln -s "$room/large" ".film.$mark.part"
run 1 taskctl payload "$id" -o film
err_has "Too many levels of symbolic links"
rm ".film.$mark.part"
flock --no-fork ".film.$mark.part" sleep 1000 & # one process: the kill ends it
locker=$!
locked () { ! flock -n ".film.$mark.part" true; }
eventually locked
run 6 taskctl payload "$id" -o film
err_has 'another command is fetching'
kill "$locker"
rm ".film.$mark.part"
mkdir directory
run 1 taskctl payload "$id" -o directory
err_has 'Is a directory'
run 1 taskctl payload "$id" -o nowhere/film
err_has 'No such file or directory'

# Small ones, formats, failures.
submit small --data 'a b'
run 0 taskctl payload "$id" -o small
[ "$(cat small)" = 'a b' ] || fail 'the small one is another one'
run 2 taskctl payload "$id" -o id
run 0 taskctl payload "$id" -o ./id
run 0 taskctl payload "$id" -o -
[ "$(cat out)" = 'a b' ] || fail '- is standard output'
run 6 taskctl result "$id" -o json
err_has '^\{"error":'
run 0 taskctl work small --max-tasks 1 -- sh -c 'echo done'
run 0 taskctl result "$id" -o result
[ "$(cat result)" = 'done' ] || fail 'the result is another one'
run 0 taskctl result --wait "$id" -o waited
[ "$(cat waited)" = 'done' ] || fail 'the awaited result is another one'
submit bad --max-attempts 1
run 0 taskctl work bad --max-tasks 1 -- sh -c 'echo no luck >&2; exit 3'
run 8 taskctl result "$id" -o failed
err_has 'no luck'
[ ! -e failed ] || fail 'a failure made a file'

# A disk that is full: what was fetched stays.
[ -e "${TASKMQ_TEST_ENOSPC-}" ] || exit 0
id=$(taskctl -o id list --queue q)
rm -f film
spawn fetch env LD_PRELOAD="$TASKMQ_TEST_ENOSPC" TASKMQ_ENOSPC_FLAG="$room/full" TASKMQ_ENOSPC_DIR="$room" \
    ASAN_OPTIONS=verify_asan_link_order=0 "$TASKMQ_BIN/taskctl" payload "$id" -o film
fetching 1000000
: >full
ended fetch 10
err_has '\.part: it cannot be written: No space left on device'
err_has 'the same command goes on from there'
rm full
run 0 taskctl -v payload "$id" -o film
err_has 'were there already'
cmp -s film large || fail 'what came behind a full disk is another one'
