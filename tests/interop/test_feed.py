# This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
# If a copy of the MPL was not distributed with this file, You can obtain one at
# https://mozilla.org/MPL/2.0/.

"""The feed as its users meet it: plain SUB sockets, JSON, topics by prefix."""

import json
import os
import socket as socket_module
import subprocess

import zmq

from broker import Broker, eventually

PATIENCE_MS = 60000
WARM = "default/warm/"


def taskctl(broker, *arguments):
    program = os.path.join(os.environ["TASKMQ_BIN"], "taskctl")
    done = subprocess.run([program, "-e", broker.endpoint, *arguments], check=True,
                          capture_output=True, text=True, timeout=60)
    return done.stdout.strip()


def subscriber(broker, context, topic):
    """A subscription takes effect some time after connect, and in order: submits to the queue warm
    until that arrives."""
    socket = context.socket(zmq.SUB)
    socket.setsockopt(zmq.LINGER, 0)
    socket.setsockopt(zmq.RCVTIMEO, PATIENCE_MS)
    socket.setsockopt_string(zmq.SUBSCRIBE, topic)
    socket.setsockopt_string(zmq.SUBSCRIBE, WARM)
    socket.connect(f"ipc://{broker.home}/feed")

    def try_once():
        taskctl(broker, "submit", "warm", "--data", "x")
        return socket.poll(100)
    eventually("the subscription works", try_once)
    return socket


def receive(socket):
    """The next event of another queue than warm, whose events may come late."""
    while True:
        topic, text = socket.recv_multipart()
        if not topic.decode().startswith(WARM):
            return topic.decode(), json.loads(text)


def rude_subscriber(broker):
    """A connection that speaks ZMTP by itself, and so may say what no SUB socket says."""
    connection = socket_module.socket(socket_module.AF_UNIX)
    connection.settimeout(PATIENCE_MS / 1000)
    connection.connect(f"{broker.home}/feed")
    connection.sendall(b"\xff" + bytes(8) + b"\x7f\x03\x00" + b"NULL".ljust(20, b"\0") + bytes(32))
    ready = b"\x05READY\x0bSocket-Type\x00\x00\x00\x03SUB"
    connection.sendall(bytes([4, len(ready)]) + ready)
    seen = b""
    while b"Socket-Type" not in seen:  # the broker's READY: from here on it takes frames
        data = connection.recv(4096)
        assert data, "the broker does not take the greeting"
        seen += data
    return connection


def test_ends_of_nothing(broker, context):
    """Ends of subscriptions that never were: the others still get their events."""
    everything = subscriber(broker, context, "default/")
    rude = rude_subscriber(broker)
    for _ in range(20):
        rude.sendall(b"\x00\x06\x00never")
    rude.sendall(b"\x00\x15\x01default/heard/queued")
    seen = b""
    while b"default/heard/" not in seen:  # its subscription came behind the ends
        taskctl(broker, "submit", "heard", "--data", "x")
        rude.settimeout(0.2)
        try:
            seen += rude.recv(65536)
        except TimeoutError:
            pass
    rude.sendall(b"\x00\x06\x00never" * 20)
    taskctl(broker, "submit", "ends", "--data", "x")
    while not receive(everything)[0].startswith("default/ends/queued/"):
        pass
    rude.close()
    everything.close()


def test_endless_subscriptions(broker, context):
    """One who subscribes to more than can be meant is cut; the others are not."""
    everything = subscriber(broker, context, "default/")
    rude = rude_subscriber(broker)
    try:
        for _ in range(200):
            rude.sendall(b"\x02" + (1001).to_bytes(8, "big") + b"\x01" + os.urandom(1000))
        while rude.recv(65536):
            pass
    except (BrokenPipeError, ConnectionResetError):
        pass
    taskctl(broker, "submit", "endless", "--data", "x")
    assert receive(everything)[0].startswith("default/endless/queued/")
    everything.close()


def test_life(broker, context):
    everything = subscriber(broker, context, "default/")
    completed = subscriber(broker, context, "default/build/completed/")
    task = taskctl(broker, "submit", "build", "--data", "hello")
    taskctl(broker, "work", "build", "--max-tasks", "1", "--", "cat")

    life = [receive(everything) for _ in range(3)]
    assert [topic for topic, _ in life] == [
        f"default/build/queued/{task}",
        f"default/build/working/{task}",
        f"default/build/completed/{task}",
    ], life
    assert [event["kind"] for _, event in life] == ["submitted", "claimed", "completed"]
    first = life[0][1]["seq"]
    assert [event["seq"] for _, event in life] == [first, first + 1, first + 2]
    assert all(event["task_id"] == task for _, event in life)

    topic, event = receive(completed)
    assert topic == f"default/build/completed/{task}" and event == life[2][1]


def test_other_namespace_stays_apart(broker, context):
    mine = subscriber(broker, context, "")
    taskctl(broker, "-n", "other", "submit", "build", "--data", "secret")
    marker = taskctl(broker, "submit", "build", "--data", "open")
    topic, event = receive(mine)
    assert event["task_id"] == marker and topic.startswith("default/"), (topic, event)


def test_bad_feeds_are_refused():
    program = os.path.join(os.environ["TASKMQ_BIN"], "taskmqd")
    for feed, word in (("nonsense", "NAMESPACE=URI"), ("a b=ipc://x", "NAMESPACE=URI"),
                       ("default=tcp://example.org:5999", "not a name")):
        done = subprocess.run([program, "--check", "--feed", feed], capture_output=True, text=True,
                              timeout=30, check=False)
        assert done.returncode != 0 and word in done.stderr, (feed, done)


def main():
    context = zmq.Context()
    with Broker("--feed", "default=ipc://{home}/feed") as broker:
        test_life(broker, context)
        test_ends_of_nothing(broker, context)
        test_endless_subscriptions(broker, context)
        test_other_namespace_stays_apart(broker, context)
    test_bad_feeds_are_refused()
    context.destroy(linger=0)


main()
