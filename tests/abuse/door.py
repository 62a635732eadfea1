# This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
# If a copy of the MPL was not distributed with this file, You can obtain one at
# https://mozilla.org/MPL/2.0/.

"""Who tries to come in, and how."""

import os
import resource
import select
import socket
import struct
import threading
import time

import taskmq_pb2 as pb
from links import GREETING, HELLO, bare_client, bare_connection, read_exactly, say_hello
from stage import FRAME_BYTES, OK, PATIENCE_S

DEALER = 5
BOTH_DOORS = {"options": ("--listen", "tcp://127.0.0.1:0")}


def hello_bytes():
    return pb.ClientMessage(requests=[pb.Request(id=1, hello=HELLO)]).SerializeToString()


def frame(body, flags=0):
    if len(body) > 255:
        return bytes([flags | 2]) + struct.pack(">Q", len(body)) + body
    return bytes([flags, len(body)]) + body


def read_to_the_end(connection):
    """All that the broker still says before it ends this connection, as it must."""
    connection.settimeout(PATIENCE_S)
    data = b""
    try:
        while part := connection.recv(65536):
            data += part
    except ConnectionResetError:
        pass
    return data


def say(connection, data):
    """Sends; that the other side has gone is seen by reading."""
    try:
        connection.sendall(data)
    except (BrokenPipeError, ConnectionResetError):
        pass


def end_sending(connection):
    try:
        connection.shutdown(socket.SHUT_WR)
    except OSError:
        pass  # the other side was faster


def assert_ended(connection, what):
    answer = read_to_the_end(connection)
    assert b"taskmqd" not in answer, f"{what} got a welcome: {answer}"
    connection.close()


def old_versions(on):
    """Peers of ZMTP 1 and 2, on ipc and tcp: they have no mechanism, so nobody let them in"""
    on.begin()
    signature_2 = b"\xff" + bytes(7) + b"\x01\x7f" + b"\x01" + bytes([DEALER])
    hello_1 = bytes([len(hello_bytes()) + 1, 0]) + hello_bytes()
    for endpoint in on.broker.endpoints:
        for name, greeting, rest in (
                ("ZMTP 1", b"\x01\x00", hello_1),
                ("ZMTP 2", signature_2, frame(b"") + frame(hello_bytes()))):
            connection = bare_connection(endpoint)
            say(connection, greeting)
            connection.recv(10)  # its own greeting, or the end
            say(connection, rest)
            assert_ended(connection, f"{name} on {endpoint}")
    on.went_on()


old_versions.broker = BOTH_DOORS


def other_mechanisms(on):
    """PLAIN, CURVE, GSSAPI and none of all at doors that speak without keys, and garbage"""
    on.begin()
    for endpoint in on.broker.endpoints:
        for mechanism in (b"PLAIN", b"CURVE", b"GSSAPI", b"", b"\xff" * 20):
            connection = bare_connection(endpoint)
            say(connection, GREETING[:12] + mechanism.ljust(20, b"\0") + bytes(32))
            say(connection, frame(b"\x05HELLO\x01a\x01b", 4))
            assert_ended(connection, f"{mechanism} on {endpoint}")
        for garbage in (b"GET / HTTP/1.1\r\n\r\n" * 10, b"\xff" * 200, os.urandom(4096)):
            connection = bare_connection(endpoint)
            say(connection, garbage)
            end_sending(connection)
            assert_ended(connection, f"garbage on {endpoint}")
    on.went_on()


other_mechanisms.broker = BOTH_DOORS


def property_of(name, value):
    return bytes([len(name)]) + name + struct.pack(">I", len(value)) + value


def open_with(endpoint, properties):
    """A connection whose READY has these properties beside the type of its socket."""
    connection = bare_connection(endpoint)
    connection.settimeout(PATIENCE_S)
    connection.sendall(GREETING)
    read_exactly(connection, len(GREETING))
    ready = b"\x05READY" + property_of(b"Socket-Type", b"DEALER")
    ready += b"".join(property_of(name, value) for name, value in properties)
    connection.sendall(frame(ready, 4))
    read_exactly(connection, read_exactly(connection, 2)[1])
    return connection


def read_message(connection):
    """One message of one short or long frame."""
    flags, length = read_exactly(connection, 2)
    if flags & 2:
        length = struct.unpack(">Q", bytes([length]) + read_exactly(connection, 7))[0]
    return pb.BrokerMessage.FromString(read_exactly(connection, length))


def forged_properties(on):
    """A peer that calls itself somebody else in its greeting: it stays who it is"""
    on.begin()
    for endpoint in on.broker.endpoints:
        connection = open_with(endpoint, [(b"User-Id", b"uid:4711"), (b"user-id", b"uid:4711"),
                                          (b"Peer-Address", b"localhost:4711:4711:1")])
        connection.sendall(frame(hello_bytes()))
        welcome = read_message(connection).replies[0].welcome
        wanted = f"uid:{os.getuid()}" if endpoint.startswith("ipc") else "local"
        assert welcome.identity == wanted, welcome
        connection.close()
    on.went_on()


forged_properties.broker = BOTH_DOORS

def claimed_ids(on):
    """Routing ids of their own: a name, 255 bytes, numbers as ZeroMQ gives them. All that speak are cut"""
    on.begin()
    ids = [b"name", b"x" * 255, b"\0", b"\0abc", b"\0abcde", b"\1abcd"]
    ids += [b"\0" + struct.pack(">I", number)
            for number in range(0, 1 << 32, (1 << 32) // on.amount(500, 50))]
    for endpoint in on.broker.endpoints:
        held = []
        for claim in ids:
            connection = open_with(endpoint, [(b"Identity", claim)])
            say(connection, frame(hello_bytes()))
            held.append(connection)
        for connection in held:
            read_to_the_end(connection)
            connection.close()
    on.went_on()
    assert say_hello(bare_client(on.endpoint)) == OK


claimed_ids.broker = BOTH_DOORS

def all_at_once(on, count):
    """So many connections over tcp that say nothing."""
    endpoint, = (line for line in on.broker.endpoints if line.startswith("tcp://"))
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    return [bare_connection(endpoint) for _ in range(count)]


def descriptors(on):
    """3,000 connections where 1,500 files may be open: newcomers still find room"""
    on.begin()
    held = all_at_once(on, on.amount(3000, 2000))
    on.went_on()
    assert say_hello(bare_client(on.endpoint)) == OK
    on.went_on()
    for connection in held:
        connection.close()


descriptors.broker = {"options": ("--listen", "tcp://127.0.0.1:0"), "files": 1500}


def ways_in(on, count):
    """How long so many newcomers need from the connection to the first answer, in ms: p50 and p99."""
    endpoint, = (line for line in on.broker.endpoints if line.startswith("tcp://"))
    waits = []
    for _ in range(count):
        began = time.monotonic()
        link = bare_client(endpoint)
        assert say_hello(link) == OK
        waits.append((time.monotonic() - began) * 1000)
        link.drop()
    waits.sort()
    return waits[len(waits) // 2], waits[len(waits) * 99 // 100]


def pings(on):
    """The bystander's since the last mark, in ms: p50 and p99."""
    values = on.latencies("ping")
    on.mark()
    if not values:
        return 0, 0
    return values[len(values) // 2] * 1000, values[len(values) * 99 // 100] * 1000


class Dripping:
    """Sends one byte a second on each of these connections, until the end of the block."""

    def __init__(self, held):
        self.over = threading.Event()
        self.thread = threading.Thread(target=self.drip, args=(held,))

    def drip(self, held):
        while not self.over.wait(1):
            for connection in held:
                say(connection, b"x")

    def __enter__(self):
        self.thread.start()

    def __exit__(self, kind, value, trace):
        self.over.set()
        self.thread.join()


def crowd(on):
    """5,000 connections half open, some with a greeting, a byte a second: the door keeps as many as it may"""
    count = on.amount(200, 5)
    on.begin()
    ways = [ways_in(on, count)]
    waits = [pings(on)]
    held = all_at_once(on, on.amount(5000, 1000))
    for connection in held[::2]:
        say(connection, GREETING)
    on.until("there is room again", lambda: on.counter("connections_mute") <= MUTE_MAX)
    waits.append(pings(on))
    with Dripping(held):
        ways.append(ways_in(on, count))
        waits.append(pings(on))
        on.went_on()
    for what, values in (("a ping before, while they come, and after", waits),
                         (f"the way in of {count} newcomers before and after", ways)):
        on.figures.append(f"{what}: p50 " + ", ".join(f"{value[0]:.1f}" for value in values) +
                          " ms, p99 " + ", ".join(f"{value[1]:.1f}" for value in values) + " ms")
    on.assert_growth_below(128)
    for connection in held:
        connection.close()


MUTE_MAX = 256
crowd.broker = {"options": ("--listen", "tcp://127.0.0.1:0"),
                "config": f"limits\n    mute = {MUTE_MAX}\n"}


def heavy_handshakes(on):
    """A frame of 256 KiB, all but its last byte, before the end of the handshake, in 4,000 connections"""
    on.begin()
    held = all_at_once(on, on.amount(4000, 2000))
    head = GREETING + bytes([0x06]) + struct.pack(">Q", FRAME_BYTES)
    body = bytes(FRAME_BYTES - 1)
    for connection in held:
        connection.settimeout(PATIENCE_S)
        say(connection, head + body)
    on.went_on()
    assert say_hello(bare_client(on.endpoint)) == OK
    on.assert_growth_below(300)
    for connection in held:
        connection.close()


heavy_handshakes.broker = {"options": ("--listen", "tcp://127.0.0.1:0")}


def trickle(on):
    """Handshakes of one byte now and then, without an end: a byte does not renew the time they have"""
    on.begin()
    slow = [bare_connection(endpoint) for endpoint in on.broker.endpoints]
    for connection in slow:
        say(connection, GREETING + bytes([0x04, 250]))  # a command that never comes to its end

    def all_ended():
        for connection in slow:
            say(connection, b"x")
        readable, _, _ = select.select(slow, [], [], 0.3)
        for connection in readable:
            if ended_by_now(connection):
                slow.remove(connection)
        return not slow
    on.until("the slow ones are cut", all_ended)
    on.went_on()


def ended_by_now(connection):
    try:
        return connection.recv(4096) == b""
    except ConnectionResetError:
        return True


trickle.broker = BOTH_DOORS


CASES = [old_versions, other_mechanisms, forged_properties, claimed_ids, descriptors,
         crowd, heavy_handshakes, trickle]
