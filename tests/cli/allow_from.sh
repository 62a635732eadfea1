#!/bin/sh
# broker/allow_from: who comes from elsewhere is closed before a byte is read, and never asked about.
. "$(dirname "$0")/lib.sh"

if ! unshare -n ip link >/dev/null 2>&1; then
    echo "$scenario: skipped: no network namespace can be made here (root and iproute2 are needed)"
    exit 77
fi
spawn room unshare -n sleep 1000
near=$(cat room.pid)
is_apart () { [ "$(readlink "/proc/$near/ns/net")" != "$(readlink /proc/self/ns/net)" ]; }
eventually is_apart
at () { nsenter -t "$near" -n "$@"; }
at ip link set lo up || fail "lo"
for host in 10.77.0.1 10.77.0.2 10.78.0.9; do
    at ip addr add "$host/32" dev lo || fail "$host"
done
mkdir -m 700 .taskmq
printf 'broker\n    allow_from = 10.77.0.0/24\n' >taskmqd.conf
spawn broker nsenter -t "$near" -n taskmqd --data "$room/.taskmq" --config taskmqd.conf \
    --listen tcp://10.77.0.1:5560 --listen 'tcp://[::]:5561'
eventually test -s .taskmq/endpoint
eventually taskctl --timeout 20s ping

# What the broker says first to a connection from this address: how many bytes, 0 if it ends it.
greeting_of ()
{
    at python3 -c '
import socket, sys
connection = socket.create_connection (("10.77.0.1", int (sys.argv[2])), 60, (sys.argv[1], 0))
connection.settimeout (60)
try:
    connection.sendall (b"\xff" + bytes (8) + b"\x7f")
    print (len (connection.recv (1)))
except ConnectionError:
    print (0)' "$1" "$2"
}
greetings ()
{
    for port in 5560 5561; do # of IPv4 alone, and of both
        [ "$(greeting_of 10.77.0.2 $port)" = 1 ] || fail "10.77.0.2 is not listened to at $port"
        [ "$(greeting_of 10.78.0.9 $port)" = 0 ] || fail "10.78.0.9 is listened to at $port"
        [ "$(greeting_of 127.0.0.1 $port)" = 1 ] || fail "the machine itself is not, at $port"
    done
}
greetings

# Also after the address was opened anew, with another key.
before=$(grep '^tcp:' .taskmq/endpoint)
grep -q '^tcp://.*:5561' .taskmq/endpoint || fail "nothing listens for IPv6"
run 0 taskctl server-key rotate --now
is_moved () { [ "$(grep '^tcp:' .taskmq/endpoint)" != "$before" ]; }
eventually is_moved
is_open () { [ "$(greeting_of 10.77.0.2 5560)$(greeting_of 10.77.0.2 5561)" = 11 ]; }
eventually is_open
greetings
signal broker TERM
ended broker 0
