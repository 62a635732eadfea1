#!/bin/sh
# test_confined.sh NO_LANDLOCK: the broker serves while it is confined, with all of its threads; and
# also on a kernel that has no Landlock.

no_landlock=$1
. "$TASKMQ_SOURCE/tests/cli/lib.sh"
[ -x "$no_landlock" ] || fail 'there is no no_landlock'

# One life through the broker.
serves ()
{
    run 0 taskctl submit q --data hello
    id=$(cat out)
    run 0 taskctl work q --drain -- tr a-z A-Z
    run 0 taskctl result "$id"
    [ "$(cat out)" = HELLO ] || fail 'the result is not HELLO'
}

mkdir other
broker_options="--listen ipc://$room/other/second.ipc --listen tcp://127.0.0.1:0"
start_broker
serves
for status in /proc/"$broker_pid"/task/*/status; do
    grep -q '^NoNewPrivs:[[:space:]]*1' "$status" || fail "a thread may get privileges"
    grep -q '^Seccomp:[[:space:]]*2' "$status" || [ "$(uname -m)" != x86_64 ] ||
        fail "the calls of a thread are not filtered"
done
run 0 taskctl -e "ipc://$room/other/second.ipc" ping
grep -q 'id=CONFINED .*landlock=[0-9]* filter=1' broker.err || fail 'it does not say how far'
stop_broker

# What has a key leaves no core, unless it is asked to.
# shellcheck disable=SC3045 # dash and bash have it
ulimit -c unlimited 2>/dev/null || :
core_limit ()
{
    sed -n 's/^Max core file size *//p' "/proc/$broker_pid/limits"
}
# shellcheck disable=SC3045
before=$(ulimit -c)
broker_options="--listen tcp://127.0.0.1:0?curve"
start_broker
core_limit | grep -q '^0  *0 ' || fail "it may leave a core: $(core_limit)"
run 0 taskctl -e "ipc://$room/.taskmq/taskmqd.ipc" ping
stop_broker
if [ "$before" = unlimited ]; then
    export TASKMQD_BROKER_CORE_DUMPS=on
    # The address sanitizer has a wish of its own for the limit.
    export ASAN_OPTIONS="${ASAN_OPTIONS:-}:disable_coredump=0"
    start_broker
    core_limit | grep -q '^unlimited ' || fail "it may leave no core: $(core_limit)"
    stop_broker
    unset TASKMQD_BROKER_CORE_DUMPS
fi
broker_options=

cat >taskmqd <<END
#!/bin/sh
exec "$no_landlock" "$TASKMQ_BIN/taskmqd" "\$@"
END
chmod +x taskmqd
PATH="$room:$PATH"
start_broker
grep 'id=CONFINED' broker.err | grep -q 'has no Landlock.* landlock=0 filter=1' ||
    fail 'it does not say that there is no Landlock'
serves
stop_broker
