# This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
# If a copy of the MPL was not distributed with this file, You can obtain one at
# https://mozilla.org/MPL/2.0/.

"""Who comes with a wrong key, with none, or with somebody else's words."""

import base64
import hashlib
import os
import socket
import threading

import zmq
from links import GREETING, HELLO, say_hello
from stage import OK, PATIENCE_S, Client
from zmq.utils import z85
from zmq.utils.monitor import recv_monitor_message

from door import assert_ended, bare_connection, end_sending, frame, hello_bytes, say

HANDSHAKES = (zmq.EVENT_HANDSHAKE_SUCCEEDED | zmq.EVENT_HANDSHAKE_FAILED_AUTH
              | zmq.EVENT_HANDSHAKE_FAILED_PROTOCOL | zmq.EVENT_HANDSHAKE_FAILED_NO_DETAIL)


def key_text(key_z85):
    """A public key as the access file has it."""
    prefix, key = b"tmqpk_", z85.decode(key_z85)
    check = hashlib.blake2b(prefix + key, digest_size=32).digest()[:4]
    return (prefix + base64.b32encode(key + check).lower().rstrip(b"=")).decode()


def door_of(on):
    """The endpoint that wants a key, and the broker's key in Z85."""
    endpoint, text = next(line.split("?server_key=tmqpk_") for line in on.broker.endpoints
                          if "server_key" in line)
    raw = base64.b32decode(text.upper() + "=" * (-len(text) % 8))
    return endpoint, z85.encode(raw[:32])


def handshake(context, endpoint, server, pair):
    """What became of a handshake: event and value; None: no answer within the time of one."""
    peer = context.socket(zmq.DEALER)
    peer.setsockopt(zmq.LINGER, 0)
    if server is not None:
        peer.curve_serverkey, (peer.curve_publickey, peer.curve_secretkey) = server, pair
    monitor = peer.get_monitor_socket(HANDSHAKES)
    peer.connect(endpoint)
    seen = None
    if monitor.poll(PATIENCE_S * 1000):
        event = recv_monitor_message(monitor)
        seen = event["event"], event["value"]
    peer.disable_monitor()
    peer.close()
    return seen


def assert_ended_in_handshake(seen):
    """Both sides notice the mistake; who is first decides what the client sees."""
    assert seen is not None and seen[0] in {zmq.EVENT_HANDSHAKE_FAILED_PROTOCOL,
                                            zmq.EVENT_HANDSHAKE_FAILED_NO_DETAIL}, seen


class KeyClient(Client):
    """Comes with a key."""

    def __init__(self, endpoint, server, pair):
        self.server, self.pair = server, pair
        super().__init__(endpoint)

    def connect(self):
        self.socket = self.context.socket(zmq.DEALER)
        self.socket.setsockopt(zmq.LINGER, 0)
        self.socket.curve_serverkey = self.server
        self.socket.curve_publickey, self.socket.curve_secretkey = self.pair
        self.socket.connect(self.endpoint)
        self.token = b""


def wrong_keys(on):
    """No key, an unknown key, a wrong key of the broker: refused; the listed key comes in"""
    pair = zmq.curve_keypair()
    listed(on, pair)
    on.begin()
    endpoint, server = door_of(on)
    context = zmq.Context.instance()
    assert handshake(context, endpoint, server, zmq.curve_keypair()) == (
        zmq.EVENT_HANDSHAKE_FAILED_AUTH, 400)
    assert_ended_in_handshake(handshake(context, endpoint, None, None))
    assert_ended_in_handshake(handshake(context, endpoint, zmq.curve_keypair()[0], pair))
    for data in (os.urandom(4096), GREETING + frame(b"\x05READY", 4) + frame(hello_bytes())):
        connection = bare_connection(endpoint)
        say(connection, data)
        end_sending(connection)
        assert_ended(connection, "no mechanism")
    # The loopback address without keys does not take one.
    open_door = next(line for line in on.broker.endpoints
                     if line.startswith("tcp") and "server_key" not in line)
    assert_ended_in_handshake(handshake(context, open_door, server, pair))
    assert say_hello(KeyClient(endpoint, server, pair)) == OK
    on.went_on()


def listed(on, pair):
    """Gives the key an access file, before the broker starts again."""
    on.stop_broker()
    with open(os.path.join(on.broker.data, "access"), "w", encoding="ascii",
              opener=lambda path, flags: os.open(path, flags, 0o600)) as file:
        file.write(f"ci key:{key_text(pair[0])} client(*)\n")
    on.broker.start()


def guessed_keys(on):
    """Unknown keys as fast as they can be tried: the guesser waits, the others do not"""
    on.begin()
    endpoint, server = door_of(on)
    over = threading.Event()

    def guess():
        context = zmq.Context()
        while not over.is_set():
            peers = []
            for _ in range(50):
                peer = context.socket(zmq.DEALER)
                peer.setsockopt(zmq.LINGER, 0)
                peer.curve_serverkey = server
                peer.curve_publickey, peer.curve_secretkey = zmq.curve_keypair()
                peer.connect(endpoint)
                peers.append(peer)
            over.wait(0.05)  # between two batches, so that the machine has room for others
            for peer in peers:
                peer.close()
        context.term()

    threads = [threading.Thread(target=guess) for _ in range(2)]
    for thread in threads:
        thread.start()
    try:
        on.until("the guesser waits", lambda: on.counter("zap_silent") >= on.amount(200, 20))
        on.mark()
        on.until("the bystander is served", on.gone_on)
    finally:
        over.set()
        for thread in threads:
            thread.join()
    on.went_on()
    on.assert_growth_below(256)


class Wire:
    """Between a client and the broker: keeps what the client said, and may turn a bit of it."""

    def __init__(self, endpoint, turn_at=None):
        self.endpoint, self.turn_at, self.said = endpoint, turn_at, b""
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.address = f"tcp://127.0.0.1:{self.listener.getsockname()[1]}"
        self.ended = threading.Event()
        self.threads = [threading.Thread(target=self.serve, daemon=True)]
        self.threads[0].start()

    def serve(self):
        client, _ = self.listener.accept()
        broker = bare_connection(self.endpoint)
        back = threading.Thread(target=self.copy, args=(broker, client, bytes), daemon=True)
        back.start()
        self.copy(client, broker, self.hear)
        back.join()
        self.ended.set()

    def hear(self, data):
        at = len(self.said)
        self.said += data
        if self.turn_at is None or not at <= self.turn_at < at + len(data):
            return data
        turned = bytearray(data)
        turned[self.turn_at - at] ^= 1
        return bytes(turned)

    @staticmethod
    def copy(source, target, through):
        try:
            while data := source.recv(65536):
                target.sendall(through(data))
        except OSError:
            pass
        for side in (source, target):
            end_sending(side)


def spoken_again(on):
    """A conversation that was taken down, said once more, and one with a bit turned: both end"""
    pair = zmq.curve_keypair()
    listed(on, pair)
    on.begin()
    endpoint, server = door_of(on)
    wire = Wire(endpoint)
    honest = KeyClient(wire.address, server, pair)
    assert say_hello(honest) == OK
    said = wire.said
    again = bare_connection(endpoint)
    say(again, said)
    assert_ended(again, "a repeated conversation")
    wire = Wire(endpoint, turn_at=len(said) - 20)  # inside of its hello
    turned = KeyClient(wire.address, server, pair)
    turned.send("hello", HELLO)
    on.until("the turned conversation ends", wire.ended.is_set)
    honest.drop()
    turned.drop()
    assert say_hello(KeyClient(endpoint, server, pair)) == OK
    on.went_on()


for case in (wrong_keys, guessed_keys, spoken_again):
    case.broker = {"options": ("--listen", "tcp://127.0.0.1:0?curve",
                               "--listen", "tcp://127.0.0.1:0")}

CASES = [wrong_keys, guessed_keys, spoken_again]
