# This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
# If a copy of the MPL was not distributed with this file, You can obtain one at
# https://mozilla.org/MPL/2.0/.

"""Large payloads, results and artifacts by HTTP: test_bodies.py PART [MIB]."""

import glob
import hashlib
import http.client
import os
import random
import re
import signal
import socket
import subprocess
import sys

from broker import Broker, eventually
from gateway import Gateway, PATIENCE_S, program
from test_gateway import check, check_problem, start_worker
from test_streams import Later, metric

FRAME = 262144
MIB = 1024 * 1024
PIECE = 192 * 1024  # DOWNLOAD_PIECE_BYTES
FAST = ["rate = 100000", "rate_burst = 100000"]


def made(length, seed=1):
    return random.Random(seed).randbytes(length)


def tag_of(data):
    return '"' + hashlib.blake2b(data, digest_size=32).hexdigest() + '"'


class Stage:
    """A broker with tasks whose bodies taskctl brings, and a gateway."""

    def __init__(self, broker, gateway):
        self.broker = broker
        self.gateway = gateway
        self.file = os.path.join(broker.home, "body")

    def ctl(self, *arguments):
        done = subprocess.run([program("taskctl"), "-e", self.broker.endpoint, *arguments],
                              capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    def submit(self, data, *more, queue="q"):
        with open(self.file, "wb") as file:
            file.write(data)
        return self.ctl("submit", queue, "--file", self.file, *more)

    def blob_path(self, data):
        name = hashlib.blake2b(data, digest_size=32).hexdigest()
        found = [path for path in glob.glob(os.path.join(self.broker.data, "**", name[2:]),
                                            recursive=True)]
        assert len(found) == 1, found
        return found[0]


def resident(gateway):
    with open(f"/proc/{gateway.process.pid}/statm", encoding="utf-8") as file:
        return int(file.read().split()[1]) * 4096


def buffers(gateway):
    text = gateway.get("/metrics").body.decode()
    return int(re.search(r'^taskmq_gateway_memory_bytes\S*use="buffers"\S* (\d+)', text, re.M).group(1))


def number_of(gateway, name):
    text = gateway.get("/metrics").body.decode()
    return int(re.search(rf"^{name} (\d+)", text, re.M).group(1))


class Slow:
    """A reader of its own pace: the head at once, the body when it is asked to."""

    def __init__(self, gateway, target, room=4096, **fields):
        self.link = socket.socket()
        self.link.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, room)
        self.link.settimeout(PATIENCE_S)
        self.link.connect(("127.0.0.1", gateway.port))
        more = "".join(f"{name.replace('_', '-')}: {value}\r\n" for name, value in fields.items())
        self.link.sendall(f"GET {target} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n{more}"
                          f"Authorization: Bearer {gateway.first_token}\r\n\r\n".encode())
        self.response = http.client.HTTPResponse(self.link)
        self.response.begin()
        self.taken = 0

    def rest(self):
        """What comes, and whether it was all that was told."""
        out = b""
        try:
            while piece := self.response.read(65536):
                out += piece
                self.taken = len(out)
        except (http.client.IncompleteRead, ConnectionResetError) as error:
            out += getattr(error, "partial", b"")
        self.link.close()
        return out, len(out) == int(self.response.headers["content-length"])


# What there is to read.

def try_whole(stage):
    gateway = stage.gateway
    for length in (0, 1, FRAME, FRAME + 1, PIECE * 2, PIECE * 2 + 1, 8 * MIB):
        data = made(length)
        target = f"/v1/tasks/{stage.submit(data)}/payload"
        answer = gateway.get(target)
        check(f"{length} bytes", (answer.status, answer.body == data, answer.fields["content-length"],
                                  answer.fields["etag"], answer.fields["accept-ranges"]),
              (200, True, str(length), tag_of(data), "bytes"))
        head = gateway.ask("HEAD", target)
        check("HEAD", (head.status, head.body, head.fields["content-length"], head.fields["etag"]),
              (200, b"", str(length), tag_of(data)))
        check("the same", gateway.get(target, If_None_Match=tag_of(data)).status, 304)
        check("another", gateway.get(target, If_None_Match='"x"').status, 200)
        old = Slow(gateway, target)
        check("in HTTP/1.1 with close", old.rest(), (data, True))


def try_ranges(stage):
    gateway = stage.gateway
    for length in (1000, 3 * PIECE + 7):
        data = made(length, 2)
        target = f"/v1/tasks/{stage.submit(data)}/payload"
        for field, first, end in (("0-", 0, length), ("0-0", 0, 1), ("10-99", 10, 100),
                                  (f"{length - 1}-", length - 1, length), ("-5", length - 5, length),
                                  (f"5-{length + 99}", 5, length)):
            answer = gateway.get(target, Range="bytes=" + field)
            check(f"{field} of {length}", (answer.status, answer.body == data[first:end],
                                           answer.fields["content-range"], answer.fields["etag"]),
                  (206, True, f"bytes {first}-{end - 1}/{length}", tag_of(data)))
        for field in ("bytes=0-1,3-4", "lines=0-1", "bytes=9-3"):
            answer = gateway.get(target, Range=field)
            check(field, (answer.status, answer.body == data), (200, True))
        for field in (f"bytes={length}-", "bytes=-0"):
            answer = gateway.get(target, Range=field)
            check_problem(answer, 416, "range-not-satisfiable")
            check("how many there are", answer.fields["content-range"], f"bytes */{length}")
        known = gateway.get(target, Range="bytes=1-2", If_Range=tag_of(data))
        check("If-Range", (known.status, known.body), (206, data[1:3]))
        other = gateway.get(target, Range="bytes=1-2", If_Range='"x"')
        check("If-Range of another", (other.status, other.body == data), (200, True))
    # In pieces that a client chose, as curl -C does.
    pieces = b"".join(gateway.get(target, Range=f"bytes={at}-{at + 99999}").body
                      for at in range(0, length, 100000))
    check("all of it", pieces == data, True)


def try_results(stage):
    gateway = stage.gateway
    data = made(2 * MIB, 3)
    task = stage.submit(data, queue="echo")
    worker = start_worker(stage.broker, "echo", "sh", "-c",
                          'cat >"$TASKMQ_ARTIFACTS/large.bin" && cp "$TASKMQ_ARTIFACTS/large.bin" '
                          '"$TASKMQ_ARTIFACTS/ä b.txt.bin" && cat "$TASKMQ_ARTIFACTS/large.bin" && '
                          'printf small >"$TASKMQ_ARTIFACTS/small.txt" && : >"$TASKMQ_ARTIFACTS/empty"')
    answer = gateway.get(f"/v1/tasks/{task}/result", Prefer="wait=60")
    worker.terminate()
    worker.wait()
    check("a result", (answer.status, answer.body == data, answer.fields["etag"]),
          (200, True, tag_of(data)))
    answer = gateway.get(f"/v1/tasks/{task}/artifacts")
    listed = {item["name"]: item for item in answer.json["items"]}
    check("artifacts", {name: item["bytes"] for name, item in listed.items()},
          {"large.bin": len(data), "ä b.txt.bin": len(data), "small.txt": 5, "empty": 0})
    for name, wanted in (("large.bin", data), ("%C3%A4%20b.txt.bin", data), ("small.txt", b"small"),
                         ("empty", b"")):
        answer = gateway.get(f"/v1/tasks/{task}/artifacts/{name}")
        check(name, (answer.status, answer.body == wanted, answer.fields["etag"]),
              (200, True, tag_of(wanted)))
        assert answer.fields["content-disposition"].endswith("''" + name), answer
    part = gateway.get(f"/v1/tasks/{task}/artifacts/small.txt", Range="bytes=-4")
    check("of a small one", (part.status, part.body), (206, b"mall"))
    check_problem(gateway.get(f"/v1/tasks/{task}/artifacts/none"), 404, "not-found")
    check("its hash is its tag", '"' + listed["large.bin"]["hash"] + '"', tag_of(data))


def try_owners(stage):
    """What is somebody else's is not there, to the byte."""
    gateway = stage.gateway
    ann, bob = (gateway.make_token(name, "client") for name in ("ann", "bob"))
    gateway.reload()
    data = made(FRAME + 1, 4)
    task = stage.submit(data, "--on-behalf", "ann")
    absent = "01a2007e-d6c2-7f5e-8f1f-c21cce16b92e"

    def plain(answer):
        body = re.sub(rb"[0-9a-f]{8}-[0-9a-f-]{27}", b"ID", answer.body)
        return answer.status, sorted(answer.fields), body
    for what in ("payload", "result", "artifacts", "artifacts/x"):
        for more in ({}, {"Range": "bytes=0-9"}, {"If_None_Match": tag_of(data)}):
            foreign = gateway.get(f"/v1/tasks/{task}/{what}", token=bob, **more)
            check(what, plain(foreign), plain(gateway.get(f"/v1/tasks/{absent}/{what}", token=bob, **more)))
            check(what, foreign.status, 404)


def part_read():
    with Broker() as broker, Gateway(broker, configuration=FAST) as gateway:
        stage = Stage(broker, gateway)
        try_whole(stage)
        try_ranges(stage)
        try_results(stage)
        try_owners(stage)


# What goes wrong on the way.

def try_damage(stage):
    """A byte that is another one, or a file that is gone, is never a whole answer."""
    gateway = stage.gateway
    data = made(3 * MIB, 5)
    target = f"/v1/tasks/{stage.submit(data)}/payload"
    path = stage.blob_path(data)
    os.chmod(path, 0o600)
    with open(path, "r+b") as file:
        file.seek(100)
        file.write(bytes([data[100] ^ 1]))
    before = number_of(gateway, "taskmq_gateway_cut_total")
    out, whole = Slow(gateway, target, room=65536).rest()
    check("cut before its end", (whole, len(out) < len(data)), (False, True))
    check("counted", number_of(gateway, "taskmq_gateway_cut_total"), before + 1)
    assert "GATEWAY-CUT" in gateway.read_log()
    small = made(FRAME + 1, 6)
    target = f"/v1/tasks/{stage.submit(small)}/payload"
    os.remove(stage.blob_path(small))
    told = check_problem(gateway.get(target), 500, "no-blob")
    check("code", told["code"], "NO_BLOB")


def await_stuck(gateway, slow):
    """The broker is away, and what had come before has been read."""
    eventually("the broker is away", lambda: gateway.get("/readyz", token=None).status == 503)
    reader = Later(slow.rest)
    lengths = []

    def is_still():
        lengths.append(slow.taken)
        return len(lengths) > 50 and lengths[-1] == lengths[-50]
    eventually("all that had come is read", is_still)
    return reader


def try_broker_kill(stage):
    """The broker is killed in the middle: the answer waits for it, and is whole."""
    gateway = stage.gateway
    data = made(12 * MIB, 7)
    target = f"/v1/tasks/{stage.submit(data)}/payload"
    slow = Slow(gateway, target)
    stage.broker.kill()
    reader = await_stuck(gateway, slow)
    assert slow.taken < len(data), slow.taken
    stage.broker.start()
    out, _ = reader.get()
    check("all of it", out == data, True)


def try_broker_gone(stage):
    """It does not come back: the answer is cut, and a range goes on with it."""
    gateway = stage.gateway
    data = made(12 * MIB, 8)
    target = f"/v1/tasks/{stage.submit(data)}/payload"
    slow = Slow(gateway, target)
    stage.broker.kill()
    out, whole = await_stuck(gateway, slow).get()
    check("it is not whole", (whole, len(out) < len(data)), (False, True))
    stage.broker.start()
    gateway.await_broker()
    answer = gateway.get(target, Range=f"bytes={len(out)}-", If_Range=tag_of(data))
    check("the rest", (answer.status, out + answer.body == data), (206, True))


def try_gateway_kill(stage):
    gateway = stage.gateway
    data = made(12 * MIB, 9)
    target = f"/v1/tasks/{stage.submit(data)}/payload"
    slow = Slow(gateway, target)
    gateway.kill()
    out, whole = slow.rest()
    check("it is not whole", whole, False)
    gateway.start()
    answer = gateway.get(target, Range=f"bytes={len(out)}-", If_Range=tag_of(data))
    check("the rest", (answer.status, out + answer.body == data), (206, True))


def try_stop(stage):
    """A gateway that stops gives who reads the time for it."""
    gateway = stage.gateway
    data = made(12 * MIB, 10)
    slow = Slow(gateway, f"/v1/tasks/{stage.submit(data)}/payload")
    gateway.process.send_signal(signal.SIGTERM)
    eventually("it stops", lambda: "GATEWAY-STOPPING" in gateway.read_log())
    check("all of it", slow.rest(), (data, True))
    check("and ends well", gateway.process.wait(timeout=PATIENCE_S), 0)


def part_cut():
    settings = ["output_timeout = 8s", "request_timeout = 1s", "drain_timeout = 60s", *FAST]
    with Broker() as broker, Gateway(broker, configuration=settings) as gateway:
        stage = Stage(broker, gateway)
        for one in (try_damage, try_broker_kill, try_broker_gone, try_gateway_kill):
            one(stage)
        try_stop(stage)
        gateway.start()


# What readers cost.

def part_slow():
    """Many who read slowly: each is owed one piece, nobody else waits, and all get everything."""
    readers = 20
    with Broker() as broker, Gateway(broker, configuration=FAST) as gateway:
        stage = Stage(broker, gateway)
        data = made(8 * MIB, 11)
        target = f"/v1/tasks/{stage.submit(data)}/payload"
        check("once", gateway.get(target).body == data, True)
        before = resident(gateway)
        slow = [Slow(gateway, target) for _ in range(readers)]
        eventually("their pieces wait", lambda: buffers(gateway) >= readers * PIECE // 2)
        for _ in range(20):
            held = buffers(gateway)
            assert held <= readers * (PIECE + 4096), held
            check("another one is served", gateway.get("/v1/session").status, 200)
        # A piece and its copy for each, and as much again for what the allocator does not give back.
        grown = resident(gateway) - before
        assert grown < readers * 4 * PIECE, grown
        for reader in slow:
            check("all of it", reader.rest(), (data, True))
        eventually("all of it is given back", lambda: buffers(gateway) < PIECE)


def part_stalled():
    """Who reads nothing is closed, and leaves nothing."""
    with Broker() as broker, Gateway(broker, configuration=["output_timeout = 500ms",
                                                            "streams_max = 2", *FAST]) as gateway:
        stage = Stage(broker, gateway)
        target = f"/v1/tasks/{stage.submit(made(8 * MIB, 12))}/payload"
        stalled = [Slow(gateway, target) for _ in range(2)]
        eventually("they are closed", lambda: metric(gateway, "streams") == 0)
        assert buffers(gateway) < PIECE, buffers(gateway)
        check("there is room again", gateway.get(target).status, 200)
        for one in stalled:
            check("it is not whole", one.rest()[1], False)


def part_large():
    """A body of many MiB through a gateway that does not grow by it."""
    size = int(sys.argv[2]) * MIB
    broker = Broker("--config", "{home}/large.conf")
    with open(os.path.join(broker.home, "large.conf"), "w", encoding="utf-8") as file:
        file.write(f"limits\n    blob_bytes = {size}B\n")
    with broker, Gateway(broker, configuration=FAST) as gateway:
        stage = Stage(broker, gateway)
        data = made(size, 13)
        target = f"/v1/tasks/{stage.submit(data)}/payload"
        gateway.get("/v1/session")
        before = resident(gateway)
        answer = gateway.get(target)
        check("all of it", (answer.status, answer.body == data), (200, True))
        grown = resident(gateway) - before
        assert grown < 16 * PIECE, grown
        print(f"{size} bytes, and {grown} more of memory")


if __name__ == "__main__":
    {"read": part_read, "cut": part_cut, "slow": part_slow, "stalled": part_stalled,
     "large": part_large}[sys.argv[1]]()
