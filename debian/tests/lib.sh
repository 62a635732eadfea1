# shellcheck shell=sh
# A broker as the packages install it: the one of systemd where that runs, else one started here with
# the unit's options.

set -eu
export LC_ALL=C.UTF-8
cd "${AUTOPKGTEST_TMP:-$(mktemp -d)}"
broker=
in_network= # a command in front of the broker that is started here

fail ()
{
    echo "FAILED: $*"
    [ ! -e broker.log ] || tail -n 20 broker.log
    exit 1
}

# start_broker [OPTION...]
start_broker ()
{
    if [ -d /run/systemd/system ] && [ -z "$in_network" ]; then
        systemctl start taskmqd
        return
    fi
    install -d -o taskmq -g taskmq -m 0755 /run/taskmq
    # shellcheck disable=SC1091
    . /etc/default/taskmqd
    # shellcheck disable=SC2086 # options are words
    $in_network setpriv --reuid taskmq --regid taskmq --init-groups taskmqd --data /var/lib/taskmq \
        --listen ipc:///run/taskmq/taskmqd.ipc ${TASKMQD_OPTIONS-} "$@" >broker.log 2>&1 &
    broker=$!
    until grep -q id=READY broker.log; do
        kill -0 "$broker" 2>/dev/null || fail 'the broker does not start'
        sleep 0.1
    done
}

stop_broker ()
{
    if [ -z "$broker" ]; then
        systemctl stop taskmqd
        return
    fi
    kill -TERM "$broker"
    wait "$broker" || fail "the broker ended with $?"
    broker=
}

trap '[ -z "$broker" ] || kill -KILL "$broker" 2>/dev/null || :' EXIT
