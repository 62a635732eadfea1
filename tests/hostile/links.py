# This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
# If a copy of the MPL was not distributed with this file, You can obtain one at
# https://mozilla.org/MPL/2.0/.

"""Attacks with connections, greetings and namespaces."""

import socket
import struct

import taskmq_pb2 as pb
import zmq
from stage import LIMIT, MIB, OK, Client

HELLO = pb.Hello(version_min=1, version_max=1, client="hostile.py")


def hello_of(namespace):
    hello = pb.Hello()
    hello.CopyFrom(HELLO)
    hello.namespace = namespace
    return hello


def say_hello(link, namespace=""):
    """One hello on this connection, sent once. Returns its code."""
    link.token = b""
    reply = link.reply_to(link.send("hello", hello_of(namespace)))
    assert reply.code in {OK, LIMIT}, reply
    assert reply.code == OK or reply.retry_after_ms > 0, reply
    if reply.code == OK:
        link.token = reply.welcome.token
    return reply.code


def hello_flood(on):
    """20,000 hellos over one connection"""
    on.begin()
    link = on.client()
    for _ in range(on.amount(20000, 1000)):
        say_hello(link)
    on.went_on()
    on.assert_growth_below(64)


def namespaces(on):
    """A client makes 10,500 namespaces and leaves; another one still gets its own"""
    on.begin()
    link = on.client()
    for i in range(on.amount(10500, 500)):
        say_hello(link, f"ns.{i}")
    link.request("goodbye", pb.Goodbye())
    on.went_on()
    newcomer = on.client()
    on.until("a newcomer gets a namespace of its own",
             lambda: say_hello(newcomer, "of-its-own") == OK)
    on.assert_growth_below(128)


def connections_one_after_the_other(on):
    """1,000 clients one after the other, where 50 may be there: each first hello is answered"""
    on.begin()
    for _ in range(on.amount(1000, 100)):
        link = bare_client(on.endpoint)
        say_hello(link)
        link.drop()
    on.went_on()


connections_one_after_the_other.broker = {"config": "limits\n    links = 50\n"}


def bare_client(endpoint):
    """A client that is connected and has said nothing."""
    class Silent(Client):
        def connect(self):
            self.socket = self.context.socket(zmq.DEALER)
            self.socket.setsockopt(zmq.LINGER, 0)
            self.socket.connect(self.endpoint)
            self.token = b""
    return Silent(endpoint)


def bare_connection(endpoint):
    """A connection below ZeroMQ."""
    if endpoint.startswith("ipc://"):
        connection = socket.socket(socket.AF_UNIX)
        connection.connect(endpoint.removeprefix("ipc://"))
        return connection
    host, port = endpoint.removeprefix("tcp://").rsplit(":", 1)
    return socket.create_connection((host, int(port)))


def connections_at_once(on):
    """3,000 connections that never say a word"""
    on.begin()
    held = [bare_connection(on.endpoint) for _ in range(on.amount(3000, 300))]
    on.went_on()
    assert say_hello(bare_client(on.endpoint)) == OK
    on.assert_growth_below(256)
    for connection in held:
        connection.close()


# ZMTP 3.0, RFC 23, as far as a peer without manners needs it.

GREETING = b"\xff" + bytes(8) + b"\x7f" + b"\x03\x00" + b"NULL".ljust(20, b"\0") + bytes(32)


def shake_hands(endpoint, kind):
    """A raw connection whose handshake is done; frames may follow."""
    connection = bare_connection(endpoint)
    connection.settimeout(60)
    connection.sendall(GREETING)
    read_exactly(connection, len(GREETING))
    properties = b"\x0bSocket-Type" + struct.pack(">I", len(kind)) + kind
    ready = b"\x05READY" + properties
    connection.sendall(bytes([0x04, len(ready)]) + ready)
    read_exactly(connection, read_exactly(connection, 2)[1])
    return connection


def read_exactly(connection, count):
    data = b""
    while len(data) < count:
        more = connection.recv(count - len(data))
        assert more, "the broker closed a connection that had done nothing wrong"
        data += more
    return data


def send_without_end(connection, head, part, bytes_max):
    """Sends head, then part over and over, until the broker has closed the connection or takes no
    more, or until bytes_max are sent."""
    connection.settimeout(5)
    sent = 0
    try:
        connection.sendall(head)
        while sent < bytes_max:
            connection.sendall(part)
            sent += len(part)
    except (socket.timeout, BrokenPipeError, ConnectionResetError):
        pass


def message_without_end(on):
    """A message of frames that never ends, before any hello, over TCP"""
    on.begin()
    endpoint, = (line for line in on.broker.endpoints if line.startswith("tcp://"))
    connection = shake_hands(endpoint, b"DEALER")
    frame = b"\x03" + struct.pack(">Q", 64 * 1024) + bytes(64 * 1024)  # more follow, long
    send_without_end(connection, b"", frame, on.amount(512, 128) * MIB)
    on.went_on()
    on.assert_growth_below(256)
    connection.close()


message_without_end.broker = {"options": ("--listen", "tcp://127.0.0.1:0")}


def long_frame(size):
    """The head of a frame that says it has so many bytes and is the last of its message."""
    return b"\x02" + struct.pack(">Q", size)


def frame_without_end(on):
    """A frame that says it has 1 TiB"""
    on.begin()
    connection = shake_hands(on.endpoint, b"DEALER")
    send_without_end(connection, long_frame(1 << 40), bytes(MIB), on.amount(512, 128) * MIB)
    on.went_on()
    on.assert_growth_below(64)
    connection.close()


def feed_frame_without_end(on):
    """A frame to the feed that says it has 1 GiB"""
    on.begin()
    connection = shake_hands(f"ipc://{on.broker.home}/feed", b"SUB")
    send_without_end(connection, long_frame(1 << 30), bytes(MIB), on.amount(512, 128) * MIB)
    on.went_on()
    on.assert_growth_below(64)
    connection.close()


feed_frame_without_end.broker = {"options": ("--feed", "default=ipc://{home}/feed")}


def routing_ids(on):
    """One connection whose messages begin with ever other frames"""
    on.begin()
    link = on.client()
    for i in range(on.amount(5000, 500)):
        link.socket.send_multipart([struct.pack(">Q", i) * 40, b"", b"x"])
        if i % 100 == 0:
            link.receive(0)
    on.went_on()
    assert say_hello(bare_client(on.endpoint)) == OK
    on.assert_growth_below(64)


CASES = [hello_flood, namespaces, connections_one_after_the_other, connections_at_once,
         message_without_end, frame_without_end, feed_frame_without_end, routing_ids]
