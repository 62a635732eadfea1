#!/bin/sh
# The broker in one network namespace, a worker in another: what docs/guide-network.md says, with a
# wire between them. Only keys let the worker in.
. "$(dirname "$0")/lib.sh"

if ! unshare -n ip link >/dev/null 2>&1; then
    echo "$scenario: skipped: no network namespace can be made here (root and iproute2 are needed)"
    exit 77
fi

spawn near unshare -n sleep 1000
spawn far unshare -n sleep 1000
near=$(cat near.pid)
far=$(cat far.pid)
is_apart () # it has a namespace of its own
{
    [ "$(readlink "/proc/$1/ns/net")" != "$(readlink /proc/self/ns/net)" ]
}
eventually is_apart "$near"
eventually is_apart "$far"
at () { nsenter -t "$1" -n sh -c "$2"; }
if ! at "$near" "ip link add wire type veth peer name wire netns $far" 2>/dev/null; then
    echo "$scenario: skipped: this kernel has no veth"
    exit 77
fi
at "$near" "ip addr add 10.77.0.1/24 dev wire && ip link set wire up && ip link set lo up" || fail near
at "$far" "ip addr add 10.77.0.2/24 dev wire && ip link set wire up && ip link set lo up" || fail far
there ()
{
    mkdir -p "$room/there"
    nsenter -t "$far" -n env XDG_CONFIG_HOME="$room/there" "$@"
}
farm=--profile=default # the broker's directory, which is here, is on another machine

spawn broker nsenter -t "$near" -n taskmqd --data "$room/.taskmq" --listen tcp://10.77.0.1:5560
eventually test -s .taskmq/endpoint
eventually taskctl --timeout 20s ping

run 0 taskctl invite render-7 --role worker --queue 'render*'
line=$(sed 's/^taskctl join //' out)
run 4 there taskctl -e tcp://10.77.0.1:5560 ping
err_has "needs the broker's key"
run 0 there taskctl join "$line"
out 'joined tcp://10.77.0.1:5560 as render-7: worker of render* in default'
id=$(taskctl submit render --data 'from afar') || fail "submit"
spawn worker nsenter -t "$far" -n env XDG_CONFIG_HOME="$room/there" taskctl "$farm" work render -- cat
run 0 taskctl wait "$id"
run 0 taskctl result "$id"
out_has '^from afar$'
run 0 taskctl invite list
out_has '10.77.0.2 at '

# The wire is cut for a moment: the worker comes back by itself.
at "$far" "ip link set wire down"
id=$(taskctl submit render --data again) || fail "submit"
at "$far" "ip link set wire up"
run 0 taskctl wait "$id"

run 0 taskctl key revoke render-7
ended worker 4
run 4 there taskctl "$farm" ping
err_has 'does not accept the key'
signal broker TERM
ended broker 0
