# This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
# If a copy of the MPL was not distributed with this file, You can obtain one at
# https://mozilla.org/MPL/2.0/.

"""How connections of taskmq-gateway end: clients that close their side and wait for what is due, and
those that are gone; requests behind a stream. test_ends.py PART."""

import http.client
import os
import re
import socket
import sys

from broker import Broker, eventually
from gateway import PATIENCE_S, Gateway
from test_bodies import MIB, Stage, made
from test_gateway import check, submit
from test_streams import metric

FAST = ["rate = 100000", "rate_burst = 100000"]


def request(gateway, target, method="GET", version="1.1", body=b"", **fields):
    head = [f"{method} {target} HTTP/{version}", "Host: localhost",
            f"Authorization: Bearer {gateway.first_token}"]
    if body:
        head.append(f"Content-Length: {len(body)}")
    head += [f"{name.replace('_', '-')}: {value}" for name, value in fields.items()]
    return "\r\n".join((*head, "\r\n")).encode() + body


class Half:
    """A client that says what it has to say, and closes its side."""

    def __init__(self, gateway, data, path=None):
        self.link = socket.socket(socket.AF_UNIX if path else socket.AF_INET)
        self.link.settimeout(PATIENCE_S)
        self.link.connect(path or ("127.0.0.1", gateway.port))
        self.link.sendall(data)
        self.link.shutdown(socket.SHUT_WR)
        self.out = b""

    def read_until(self, text):
        while text not in self.out:
            piece = self.link.recv(65536)
            assert piece, (text, self.out)
            self.out += piece

    def rest(self):
        while piece := self.link.recv(65536):
            self.out += piece
        return self.out

    def statuses(self):
        """Of all answers, without what was sent in front of them."""
        codes = [int(code) for code in re.findall(rb"HTTP/1\.1 (\d\d\d)", self.rest())]
        return [code for code in codes if code != 100]

    def leave(self):
        self.link.close()


def await_waiting(gateway, count):
    eventually(f"{count} wait", lambda: metric(gateway, "waits") == count)


# Clients that close their side.

def try_whole_requests(gateway):
    count = request(gateway, "/v1/tasks:count")
    one = Half(gateway, count)
    check("one", one.statuses(), [200])
    assert b"connection: close" in one.out.lower(), one.out
    check("several", Half(gateway, count * 3 + request(gateway, "/healthz")).statuses(), [200] * 4)
    small = request(gateway, "/v1/queues/q/tasks", "POST", body=b"x")
    large = request(gateway, "/v1/queues/q/tasks", "POST", body=bytes(MIB))
    check("bodies", Half(gateway, small + large + small).statuses(), [201] * 3)
    check("half of a body", Half(gateway, small[:-1]).rest(), b"")
    check("half of a large one", Half(gateway, large[:-1]).rest(), b"")
    check("half of a head", Half(gateway, count[:-2]).rest(), b"")
    check("behind a whole one", Half(gateway, count + small[:-1]).statuses(), [200])
    eventually("nothing is left", lambda: metric(gateway, "uploads") == 0)


def try_waiting(gateway, path=None):
    """A long poll of one that waits, and of one that is gone."""
    task_id = submit(gateway, {"queue": "half"})
    wait = request(gateway, f"/v1/tasks/{task_id}", Prefer="wait=60")
    stays, goes = Half(gateway, wait, path), Half(gateway, wait, path)
    await_waiting(gateway, 2)
    goes.leave()
    await_waiting(gateway, 1)
    gateway.post(f"/v1/tasks/{task_id}/cancel")
    check("its answer", stays.statuses(), [200])
    assert b'"cancelled"' in stays.out, stays.out


def try_gone_at_once(gateway):
    """One that never closed its side alone."""
    task_id = submit(gateway, {"queue": "half"})
    link = socket.create_connection(("127.0.0.1", gateway.port))
    link.sendall(request(gateway, f"/v1/tasks/{task_id}", Prefer="wait=60"))
    await_waiting(gateway, 1)
    link.close()
    await_waiting(gateway, 0)


def try_old(gateway):
    """HTTP/1.0 has nothing that could be sent in front of an answer: it has a few seconds."""
    task_id = submit(gateway, {"queue": "half"})
    old = {"version": "1.0", "Prefer": "wait=60"}
    ends = Half(gateway, request(gateway, f"/v1/tasks/{task_id}", **old))
    await_waiting(gateway, 1)
    gateway.post(f"/v1/tasks/{task_id}/cancel")
    check("its answer", ends.statuses(), [200])
    lasts = Half(gateway, request(gateway, f"/v1/tasks/{submit(gateway, {'queue': 'half'})}", **old))
    await_waiting(gateway, 1)
    check("nothing", lasts.rest(), b"")
    await_waiting(gateway, 0)


def try_stream(gateway):
    events = request(gateway, "/v1/events?queue=half")
    stays, goes = Half(gateway, events), Half(gateway, events)
    for one in (stays, goes):
        one.read_until(b"event: live")
    stays.read_until(b": ping")  # it was asked, and is there
    check("both", metric(gateway, "streams"), 2)
    goes.leave()
    eventually("one is gone", lambda: metric(gateway, "streams") == 1)
    task_id = submit(gateway, {"queue": "half"})
    stays.read_until(task_id.encode())
    stays.leave()
    submit(gateway, {"queue": "half"})  # else its next ping would tell
    submit(gateway, {"queue": "half"})
    eventually("nobody is there", lambda: metric(gateway, "streams") == 0)


def try_download(stage):
    data = made(8 * MIB, 3)
    target = f"/v1/tasks/{stage.submit(data)}/payload"
    one = Half(stage.gateway, request(stage.gateway, target))
    head, _, body = one.rest().partition(b"\r\n\r\n")
    check("all of it", (head[:12], body == data), (b"HTTP/1.1 200", True))
    gone = Half(stage.gateway, request(stage.gateway, target))
    gone.read_until(b"\r\n\r\n")
    gone.leave()
    eventually("it is gone", lambda: metric(stage.gateway, "streams") == 0)


def part_half():
    with Broker() as broker:
        path = os.path.join(broker.home, "half.sock")
        with Gateway(broker, "--listen", f"unix:{path}", configuration=FAST) as gateway:
            try_whole_requests(gateway)
            try_waiting(gateway)
            try_waiting(gateway, path)
            try_gone_at_once(gateway)
            try_old(gateway)
            try_stream(gateway)
            try_download(Stage(broker, gateway))


# Requests behind a stream.

def answers(link, count):
    """The next answers of a connection: status, body."""
    out = []
    for _ in range(count):
        response = http.client.HTTPResponse(link)
        response.fp.close()
        response.fp = link_file(link)
        response.begin()
        out.append((response.status, response.read()))
    return out


FILES = {}


def link_file(link):
    """One file for all answers of a connection: each response would read ahead with its own."""
    if link not in FILES:
        FILES[link] = Unclosed(link.makefile("rb"))
    return FILES[link]


class Unclosed:
    def __init__(self, file):
        self.file = file

    def __getattr__(self, name):
        return getattr(self.file, name)

    def close(self):
        pass


def try_behind_bytes(stage):
    """Downloads, one behind the other, and something else behind them, in their order."""
    gateway = stage.gateway
    bodies = [made(MIB + number, 40 + number) for number in range(4)]
    targets = [f"/v1/tasks/{stage.submit(body)}/payload" for body in bodies]
    with socket.create_connection(("127.0.0.1", gateway.port)) as link:
        link.settimeout(PATIENCE_S)
        link.sendall(b"".join(request(gateway, target) for target in targets) +
                     request(gateway, "/v1/tasks:count"))
        got = answers(link, 5)
        check("each", [(status, body == wanted) for (status, body), wanted in zip(got, bodies)],
              [(200, True)] * 4)
        check("behind them", got[4][0], 200)
        link.sendall(request(gateway, "/v1/tasks:count"))
        check("the connection stays", answers(link, 1)[0][0], 200)


def try_behind_events(gateway):
    """What stands behind a stream of events waits for its end."""
    task_id = submit(gateway, {"queue": "behind"})
    with socket.create_connection(("127.0.0.1", gateway.port)) as link:
        link.settimeout(PATIENCE_S)
        stream = request(gateway, f"/v1/tasks/{task_id}/stream")
        link.sendall(stream + request(gateway, "/v1/tasks:count") + stream +
                     request(gateway, "/v1/tasks:count"))
        eventually("it streams", lambda: metric(gateway, "streams") == 1)
        check("submitted", gateway.post(f"/v1/tasks/{task_id}/cancel").status, 200)
        got = answers(link, 4)
        check("each", [status for status, _ in got], [200] * 4)
        assert b"cancelled" in got[0][1] and b"snapshot" in got[2][1], got


def part_behind():
    with Broker() as broker, Gateway(broker, configuration=FAST) as gateway:
        try_behind_bytes(Stage(broker, gateway))
        try_behind_events(gateway)


if __name__ == "__main__":
    {"half": part_half, "behind": part_behind}[sys.argv[1]]()
