# This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
# If a copy of the MPL was not distributed with this file, You can obtain one at
# https://mozilla.org/MPL/2.0/.

"""Who listens to a feed and may not any more."""

import os
import re

import zmq
from stage import PATIENCE_S
from zmq.utils.monitor import recv_monitor_message

from keys import door_of, key_text

EVENTS = (zmq.EVENT_HANDSHAKE_SUCCEEDED | zmq.EVENT_HANDSHAKE_FAILED_AUTH | zmq.EVENT_DISCONNECTED)


class Subscriber:
    """A SUB with a key, and what its connections came to."""

    def __init__(self, endpoint, server, pair):
        self.socket = zmq.Context.instance().socket(zmq.SUB)
        self.socket.setsockopt(zmq.LINGER, 0)
        self.socket.setsockopt(zmq.SUBSCRIBE, b"")
        self.socket.curve_serverkey = server
        self.socket.curve_publickey, self.socket.curve_secretkey = pair
        self.monitor = self.socket.get_monitor_socket(EVENTS)
        self.socket.connect(endpoint)

    def next_event(self):
        assert self.monitor.poll(PATIENCE_S * 1000), "nothing happens to the connection"
        return recv_monitor_message(self.monitor)["event"]

    def hears(self):
        """An event of the feed has come."""
        return self.socket.poll(0) != 0 and self.socket.recv_multipart() is not None

    def end(self):
        self.socket.disable_monitor()
        self.socket.close()


def list_keys(on, pairs):
    path = os.path.join(on.broker.data, "access")
    with open(path + ".new", "w", encoding="ascii",
              opener=lambda name, flags: os.open(name, flags, 0o600)) as file:
        for name, pair in pairs.items():
            file.write(f"{name} key:{key_text(pair[0])} observer(*)\n")
    os.rename(path + ".new", path)


def feed_of(on):
    """Its address, which the broker has chosen and logged."""
    with open(on.broker.log.name, encoding="utf-8") as file:
        found = re.findall(r"id=FEED .*endpoint=(\S+)", file.read())
    return found[-1]


def feed_revoked(on):
    """A subscriber of a feed whose key is taken away hears nothing more; the other one goes on"""
    pairs = {"stays": zmq.curve_keypair(), "goes": zmq.curve_keypair()}
    on.stop_broker()
    list_keys(on, pairs)
    on.broker.start()
    on.begin()
    _, server = door_of(on)
    endpoint = feed_of(on)
    subscribers = {name: Subscriber(endpoint, server, pair) for name, pair in pairs.items()}
    for name, subscriber in subscribers.items():
        assert subscriber.next_event() == zmq.EVENT_HANDSHAKE_SUCCEEDED, name
        on.until(f"{name} hears", subscriber.hears)  # of the bystander's tasks
    goes = pairs.pop("goes")
    list_keys(on, pairs)
    assert subscribers["goes"].next_event() == zmq.EVENT_DISCONNECTED
    assert subscribers["goes"].next_event() == zmq.EVENT_HANDSHAKE_FAILED_AUTH
    while subscribers["goes"].hears():
        pass  # what was on the way
    assert subscribers["stays"].next_event() == zmq.EVENT_DISCONNECTED
    assert subscribers["stays"].next_event() == zmq.EVENT_HANDSHAKE_SUCCEEDED
    while subscribers["stays"].hears():
        pass
    on.until("the other one hears again", subscribers["stays"].hears)
    assert not subscribers["goes"].hears()
    for subscriber in subscribers.values():
        subscriber.end()
    on.went_on()


feed_revoked.broker = {"options": ("--listen", "tcp://127.0.0.1:0?curve",
                                   "--feed", "default=tcp://127.0.0.1:0?curve")}

CASES = [feed_revoked]
