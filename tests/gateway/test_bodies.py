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
import resource
import shutil
import signal
import socket
import struct
import subprocess
import sys
import time

from broker import Broker, eventually
from gateway import Answer, Gateway, PATIENCE_S, program
from test_gateway import check, check_problem, start_worker
from test_streams import Later, metric

FRAME = 262144
MIB = 1024 * 1024
PIECE = 192 * 1024  # DOWNLOAD_PIECE_BYTES
FAST = ["rate = 100000", "rate_burst = 100000"]
PATIENT = ["output_timeout = 10m", *FAST]  # readers wait for each other, on a slow machine for long


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


def is_sanitized():
    """Then what is freed is kept, and the memory of the process says nothing."""
    with open(program("taskmq-gateway"), "rb") as file:
        return b"__asan_init" in file.read()


def check_growth(what, grown, most):
    print(f"{what}: {grown} bytes more, at most {most}")
    assert is_sanitized() or grown < most, (what, grown, most)


def buffers(gateway):
    """0 where all connections are taken just now, and nobody gives way."""
    answer = gateway.get("/metrics")
    text = answer.body.decode()
    return 0 if answer.status == 503 else int(re.search(r'^taskmq_gateway_memory_bytes\S*use="buffers"\S* (\d+)', text, re.M).group(1))


def number_of(gateway, name):
    text = gateway.get("/metrics").body.decode()
    return int(re.search(rf"^{name} (\d+)", text, re.M).group(1))


class Slow:
    """A reader of its own pace: the head at once, the body when it is asked to."""

    def __init__(self, gateway, target, room=4096, token=None, **fields):
        self.link = socket.socket()
        self.link.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, room)
        self.link.settimeout(PATIENCE_S)
        self.link.connect(("127.0.0.1", gateway.port))
        more = "".join(f"{name.replace('_', '-')}: {value}\r\n" for name, value in fields.items())
        self.link.sendall(f"GET {target} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n{more}"
                          f"Authorization: Bearer {token or gateway.first_token}\r\n\r\n".encode())
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
        for known, status in ((tag_of(data), 200), ('"x", ' + tag_of(data), 200), ("*", 200), ('"x"', 412),
                              ("W/" + tag_of(data), 412)):
            check(f"If-Match: {known}", gateway.get(target, If_Match=known).status, status)
        check_problem(gateway.get(target, If_Match='"x"', Range="bytes=0-0"), 412, "precondition-failed")
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
                          'printf small >"$TASKMQ_ARTIFACTS/small.txt" && : >"$TASKMQ_ARTIFACTS/empty" && '
                          'printf back >"$TASKMQ_ARTIFACTS/a\\\\b"')
    answer = gateway.get(f"/v1/tasks/{task}/result", Prefer="wait=60")
    worker.terminate()
    worker.wait()
    check("a result", (answer.status, answer.body == data, answer.fields["etag"]),
          (200, True, tag_of(data)))
    answer = gateway.get(f"/v1/tasks/{task}/artifacts")
    listed = {item["name"]: item for item in answer.json["items"]}
    check("artifacts", {name: item["bytes"] for name, item in listed.items()},
          {"large.bin": len(data), "ä b.txt.bin": len(data), "small.txt": 5, "empty": 0,
           "a\\b": 4})
    for name, wanted in (("large.bin", data), ("%C3%A4%20b.txt.bin", data), ("small.txt", b"small"),
                         ("empty", b""), ("a%5Cb", b"back")):
        answer = gateway.get(f"/v1/tasks/{task}/artifacts/{name}")
        check(name, (answer.status, answer.body == wanted, answer.fields["etag"]),
              (200, True, tag_of(wanted)))
        assert answer.fields["content-disposition"].endswith("''" + name), answer
    part = gateway.get(f"/v1/tasks/{task}/artifacts/small.txt", Range="bytes=-4")
    check("of a small one", (part.status, part.body), (206, b"mall"))
    check_problem(gateway.get(f"/v1/tasks/{task}/artifacts/none"), 404, "not-found")
    check("its hash is its tag", '"' + listed["large.bin"]["hash"] + '"', tag_of(data))


def part_read():
    with Broker() as broker, Gateway(broker, configuration=FAST) as gateway:
        stage = Stage(broker, gateway)
        try_whole(stage)
        try_ranges(stage)
        try_results(stage)


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

def part_peak():
    """What a crowd of slow readers took is given back to the system when they have gone."""
    readers = 100 if is_sanitized() else 500  # nothing is measured under a sanitizer, which is slow
    kept = 64 * MIB  # TRIM_BYTES_MIN
    settings = ["principal_streams_max = 600", "principal_requests_max = 600",
                "principal_bytes_max = 200M", *PATIENT]
    with Broker() as broker, Gateway(broker, configuration=settings) as gateway:
        stage = Stage(broker, gateway)
        target = f"/v1/tasks/{stage.submit(made(8 * MIB, 12))}/payload"
        slow = [Slow(gateway, target) for _ in range(readers)]
        eventually("their pieces wait", lambda: buffers(gateway) >= readers * PIECE * 3 // 4)
        peak = resident(gateway)
        for reader in slow[::2] + slow[1::2]:
            reader.response.close()
            reader.link.close()
        eventually("they have gone", lambda: buffers(gateway) < PIECE)
        print(f"{peak} bytes with {readers} readers, {resident(gateway)} when they have gone")
        assert is_sanitized() or peak > kept, peak
        eventually("it is given back", lambda: is_sanitized() or resident(gateway) < kept)


def part_slow():
    """Many who read slowly: each is owed one piece, nobody else waits, and all get everything."""
    readers = 20
    with Broker() as broker, Gateway(broker, configuration=PATIENT) as gateway:
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
        check_growth(f"{readers} readers", resident(gateway) - before, readers * 4 * PIECE)
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


# Up.

class Slowly:
    """Who sends a body at its own pace."""

    def __init__(self, gateway, length, token=None, target="/v1/queues/q/tasks", **fields):
        self.link = socket.create_connection(("127.0.0.1", gateway.port))
        self.link.settimeout(PATIENCE_S)
        more = "".join(f"{name.replace('_', '-')}: {value}\r\n" for name, value in fields.items())
        framing = "Transfer-Encoding: chunked" if length is None else f"Content-Length: {length}"
        self.link.sendall(f"POST {target} HTTP/1.1\r\nHost: localhost\r\n{framing}\r\n{more}"
                          f"Authorization: Bearer {token or gateway.first_token}\r\n\r\n".encode("latin-1"))

    def send(self, data):
        self.link.sendall(data)

    def abort(self):
        """Not merely the end of what it sends: it does not read any more."""
        self.link.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.link.close()

    def answer(self):
        response = http.client.HTTPResponse(self.link)
        response.begin()
        out = Answer(response)
        self.link.close()
        return out


def refused_early(asked, status, detail):
    """Before the request was whole: the answer has no id of it."""
    answer = asked.answer()
    check("status", answer.status, status)
    assert detail in answer.json["detail"], answer


def chunks_of(data, size):
    for at in range(0, len(data), size):
        yield data[at:at + size]


def uploads(gateway):
    return number_of(gateway, "taskmq_gateway_uploads"), number_of(gateway, "taskmq_gateway_spool_bytes")


def await_none(gateway):
    eventually("no upload is under way", lambda: uploads(gateway) == (0, 0))


def payload_of(gateway, answer):
    check("it was taken", answer.status, 201)
    return gateway.get(answer.fields["location"] + "/payload").body


def try_sizes(gateway):
    for length in (FRAME - 1, FRAME, FRAME + 1, FRAME + 2, 2 * FRAME + 2, 8 * MIB):
        data = made(length, length)
        check(f"{length} bytes", payload_of(gateway, gateway.post("/v1/queues/q/tasks", data)) == data, True)
        # The same bytes in chunks: http.client sends an iterable so.
        chunked = gateway.post("/v1/queues/q/tasks?priority=7", chunks_of(data, 100001), Content_Type="image/x")
        check("in chunks", payload_of(gateway, chunked) == data, True)
        check("what was said with it", (chunked.json["priority"], chunked.json["content_type"]),
              (7, "image/x"))
    await_none(gateway)


def try_keys(gateway):
    data = made(FRAME + 1, 21)

    def post(body):
        return gateway.post("/v1/queues/q/tasks", body, Idempotency_Key="large")
    first = post(data)
    again = post(data)
    check("once", (first.status, again.status, again.fields["idempotent-replayed"],
                   again.json["task_id"]), (201, 200, "true", first.json["task_id"]))
    check_problem(post(data[:-1] + b"x"), 422, "idempotency-key-reused")
    check_problem(post(b"small"), 422, "idempotency-key-reused")


def try_refused(gateway):
    """What is wrong is told before the body comes."""
    for target, more, status in (("/v1/queues/q/tasks?what=1", {}, 400),
                                 ("/v1/queues/a%20b/tasks", {}, 400),
                                 ("/v1/queues/q/tasks", {"Idempotency_Key": "ä"}, 400),
                                 ("/v1/queues/q/tasks", {"Content_Type": "x/" + "x" * 300}, 400),
                                 ("/v1/queues/q/tasks", {"Content_Type": "text/x; name=\xe4"}, 400),
                                 ("/v1/queues/q/tasks", {"Content_Type": "text"}, 400),
                                 ("/v1/queues/q/tasks?ttl_ms=315576000001", {}, 400),
                                 ("/v1/queues/q/tasks?lease_ms=1", {}, 400),
                                 ("/v1/queues/q/tasks?label=a:1&label=a:2", {}, 400),
                                 ("/v1/queues/q/tasks", {"Content_Encoding": "gzip"}, 415),
                                 ("/v1/queues/q/tasks", {"Content_Range": f"bytes 0-{MIB - 1}/{MIB}"}, 400),
                                 ("/v1/queues/q/tasks", {"Content_MD5": "x"}, 400),
                                 ("/v1/queues/q/tasks", {"Content_Digest": "sha-256=:x:"}, 400)):
        asked = Slowly(gateway, MIB, target=target, Expect="100-continue", **more)
        check(target, asked.answer().status, status)
    asked = Slowly(gateway, 3 * MIB + 1, Expect="100-continue")
    refused_early(asked, 413, "'raw_bytes_max' allows, 3145728")
    asked = Slowly(gateway, None)
    for _ in range(3):
        asked.send(b"100000\r\n" + bytes(MIB) + b"\r\n")
    asked.send(b"1\r\n")
    refused_early(asked, 413, "'raw_bytes_max' allows, 3145728")
    await_none(gateway)
    asked = Slowly(gateway, FRAME + 1, Expect="100-continue")
    check("100", asked.link.recv(100), b"HTTP/1.1 100 Continue\r\n\r\n")
    asked.send(bytes(FRAME + 1))
    check("201", asked.answer().status, 201)


def try_owner(stage):
    """It is the client's own, whatever its size."""
    gateway = stage.gateway
    ann, bob = (gateway.make_token(name, "client") for name in ("ann", "bob"))
    gateway.reload()
    data = made(FRAME + 1, 22)
    answer = gateway.post("/v1/queues/q/tasks", data, token=ann)
    check("hers", gateway.get(answer.fields["location"] + "/payload", token=ann).body == data, True)
    check("not his", gateway.get(answer.fields["location"] + "/payload", token=bob).status, 404)


def part_up():
    with Broker() as broker:
        gateway = Gateway(broker, configuration=FAST)
        with gateway:
            try_sizes(gateway)
            try_keys(gateway)
            try_owner(Stage(broker, gateway))
        with Gateway(broker, configuration=["raw_bytes_max = 3M", *FAST]) as gateway:
            try_refused(gateway)
    broker = Broker("--config", "{home}/small.conf")
    limit_blobs(broker, "1M")
    with broker, Gateway(broker, configuration=["body_timeout = 1s", "request_timeout = 1s", *FAST]) as gateway:
        try_limit(Stage(broker, gateway))


def limit_blobs(broker, size):
    with open(os.path.join(broker.home, "small.conf"), "w", encoding="utf-8") as file:
        file.write(f"limits\n    blob_bytes = {size}\n")


def try_limit(stage):
    """The broker's limit is the one that it has now, and nobody's when it is away."""
    gateway, broker = stage.gateway, stage.broker
    data = made(MIB + 1, 29)
    told = check_problem(gateway.post("/v1/queues/q/tasks", data), 413, "too-large")
    assert "1048576 (limits/blob_bytes)" in told["detail"], told
    check("as much as that", gateway.post("/v1/queues/q/tasks", bytes(MIB)).status, 201)
    broker.process.send_signal(signal.SIGSTOP)
    check_problem(gateway.post("/v1/queues/q/tasks", data), 503, "unreachable")
    broker.process.send_signal(signal.SIGCONT)
    gateway.await_broker()
    limit_blobs(broker, "2M")
    stage.ctl("reload")
    check("after a reload", payload_of(gateway, gateway.post("/v1/queues/q/tasks", data)) == data, True)
    limit_blobs(broker, "1M")
    stage.ctl("reload")
    check_problem(gateway.post("/v1/queues/q/tasks", made(MIB + 1, 30)), 413, "too-large")
    await_none(gateway)


def names_in(directory):
    return {os.path.join(where, name) for where, _, names in os.walk(directory) for name in names}


def left_behind(broker):
    """Files of bodies, whole or not, at the broker and at the gateway, whose directory it is, too."""
    return {path for path in names_in(broker.data) if "/blobs/" in path or "upload" in path}


def under_way(broker):
    """Bytes of uploads that the broker has not put together yet."""
    return sum(os.stat(path).st_size for path in names_in(os.path.join(broker.data, "blobs", "uploads")))


def try_leaving(stage):
    """A client that goes in the middle leaves nothing, here and at the broker."""
    gateway = stage.gateway
    before = left_behind(stage.broker)
    for length in (8 * MIB, None):
        asked = Slowly(gateway, length)
        asked.send((b"400000\r\n" if length is None else b"") + bytes(4 * MIB))
        eventually("it is on the disk", lambda: uploads(gateway)[1] >= 3 * MIB)
        asked.link.close()
        await_none(gateway)
    check("files", left_behind(stage.broker) - before, set())


def try_stalling(stage):
    """Who sends nothing more is cut; who sends slowly is not."""
    gateway = stage.gateway
    asked = Slowly(gateway, MIB)
    asked.send(bytes(FRAME * 2))
    refused_early(asked, 408, "the body did not come in time")
    await_none(gateway)
    data = made(6 * FRAME, 23)
    asked = Slowly(gateway, len(data))
    for piece in chunks_of(data, FRAME):
        asked.send(piece)
        time.sleep(0.8)  # six of these are longer than body_timeout
    check("in its own time", payload_of(gateway, asked.answer()) == data, True)


def try_dead_gateway(stage):
    gateway = stage.gateway
    before = left_behind(stage.broker)
    asked = Slowly(gateway, 8 * MIB)
    asked.send(bytes(4 * MIB))
    eventually("it is on the disk", lambda: uploads(gateway)[1] == 8 * MIB)
    gateway.kill()
    check("files", left_behind(stage.broker) - before, set())
    gateway.start()
    await_none(gateway)


def count_of(gateway, queue):
    """Asked again while the broker is busy with the disk for longer than a request here may wait."""
    for _ in range(20):
        answer = gateway.get(f"/v1/tasks:count?queue={queue}")
        if answer.status != 503:
            break
    return answer.json["count"]


def begin_stopped(stage, data, key):
    """A client that has sent all of it; the broker has a part, and stands still."""
    def part():
        paths = names_in(os.path.join(stage.broker.data, "blobs", "uploads"))
        return sum(os.stat(path).st_size for path in paths)
    while True:
        asked = Slowly(stage.gateway, len(data), Idempotency_Key=key)
        asked.send(data)
        eventually("the broker has some of it", lambda: part() > 0)
        stage.broker.process.send_signal(signal.SIGSTOP)
        if part() < len(data) - 2 * FRAME:
            return asked
        stage.broker.process.send_signal(signal.SIGCONT)
        assert asked.answer().status == 201
        data, key = made(len(data), key), key + "+"


def try_leaving_late(stage):
    """A client that goes while the broker takes the bytes: that takes them back."""
    gateway = stage.gateway
    before = left_behind(stage.broker)
    asked = begin_stopped(stage, made(16 * MIB, 51), "late")
    asked.abort()
    await_none(gateway)
    stage.broker.process.send_signal(signal.SIGCONT)
    eventually("nothing is left at the broker", lambda: under_way(stage.broker) == 0)
    gateway.await_broker()
    check("files", {path for path in left_behind(stage.broker) - before if "/uploads/" in path}, set())
    check("no task", count_of(gateway, "q"), 0)


def try_leaving_one_of_two(stage):
    """Two clients of a principal bring the same bytes, and one of them goes."""
    gateway = stage.gateway
    data = made(16 * MIB, 52)
    asked = begin_stopped(stage, data, "one")
    other = Slowly(gateway, len(data), Idempotency_Key="other")
    other.send(data)
    eventually("both are there", lambda: uploads(gateway)[0] == 2)
    asked.abort()
    eventually("one has gone", lambda: uploads(gateway)[0] == 1)
    stage.broker.process.send_signal(signal.SIGCONT)
    check("the other one's", payload_of(gateway, other.answer()) == data, True)
    await_none(gateway)


def try_dead_broker(stage):
    """Killed while it takes the bytes: the request waits for it, and is done once."""
    gateway = stage.gateway
    data = made(16 * MIB, 24)
    for number in range(3):
        posted = Later(gateway.post, "/v1/queues/killed/tasks", data, Idempotency_Key=f"k{number}")
        eventually("the broker has some of it",
                   lambda: under_way(stage.broker) > MIB or posted.answer)
        stage.broker.kill()
        stage.broker.start()
        answer = posted.get()
        check("taken", answer.status, 201)
        check("all of it", gateway.get(answer.fields["location"] + "/payload").body == data, True)
        data = made(16 * MIB, 25 + number)
    gateway.await_broker()
    check("once each", count_of(gateway, "killed"), 3)


def try_dead_gateway_sending(stage):
    """Killed while the broker takes the bytes: the same request, made again, does it once."""
    gateway = stage.gateway
    data = made(16 * MIB, 31)

    def post():
        try:
            return gateway.post("/v1/queues/sending/tasks", data, Idempotency_Key="sending").status
        except (OSError, http.client.HTTPException):
            return "cut"
    posted = Later(post)
    eventually("the broker has some of it", lambda: under_way(stage.broker) > MIB or posted.answer)
    gateway.kill()
    assert posted.get() in ("cut", 201), posted.get()
    gateway.start()
    answer = gateway.post("/v1/queues/sending/tasks", data, Idempotency_Key="sending")
    assert answer.status in (200, 201), answer
    check("all of it", gateway.get(answer.fields["location"] + "/payload").body == data, True)
    check("once", count_of(gateway, "sending"), 1)
    await_none(gateway)


def try_broker_away(stage):
    """It does not come back: 503, and the same request does it later."""
    gateway = stage.gateway
    data = made(MIB, 28)
    stage.broker.process.send_signal(signal.SIGSTOP)
    posted = Later(gateway.post, "/v1/queues/q/tasks", data, Idempotency_Key="away")
    told = check_problem(posted.get(), 503, "unreachable")
    check("later", told["retriable"], True)
    stage.broker.process.send_signal(signal.SIGCONT)
    gateway.await_broker()
    answer = gateway.post("/v1/queues/q/tasks", data, Idempotency_Key="away")
    check("then", payload_of(gateway, answer) == data, True)
    await_none(gateway)


def part_left():
    settings = ["body_timeout = 4s", "request_timeout = 1s", *FAST]
    with Broker() as broker, Gateway(broker, configuration=settings) as gateway:
        stage = Stage(broker, gateway)
        for one in (try_leaving, try_stalling, try_dead_gateway):
            one(stage)
    with Broker() as broker, Gateway(broker, configuration=["request_timeout = 1s", "body_timeout = 1m",
                                                            *FAST]) as gateway:
        stage = Stage(broker, gateway)
        for one in (try_leaving_late, try_leaving_one_of_two):
            one(stage)
    with Broker() as broker, Gateway(broker, configuration=["request_timeout = 1s", "body_timeout = 5s",
                                                            *FAST]) as gateway:
        stage = Stage(broker, gateway)
        for one in (try_dead_broker, try_dead_gateway_sending, try_broker_away):
            one(stage)


def part_full():
    """Neither disk takes more than it has: it is told, and everything else goes on."""
    with Broker() as broker:
        gateway = Gateway(broker, configuration=FAST)
        gateway.limits[resource.RLIMIT_FSIZE] = MIB  # as a full disk, for this process alone
        with gateway:
            answer = gateway.post("/v1/queues/q/tasks", bytes(2 * MIB))
            told = check_problem(answer, 507, "store-full")
            assert "the gateway cannot keep the payload" in told["detail"], told
            check("again later", (told["retriable"], "retry-after" in answer.fields), (True, True))
            await_none(gateway)
            check("a smaller one", gateway.post("/v1/queues/q/tasks", bytes(MIB)).status, 201)
    for line, status, name in (("free_space_min = 1024G", 507, "store-full"),
                               ("blobs_disk = 1M", 507, "store-full")):
        broker = Broker("--config", "{home}/full.conf")
        if "free" in line and shutil.disk_usage(broker.home).free > 1024 << 30:
            continue  # this disk has more than that
        with open(os.path.join(broker.home, "full.conf"), "w", encoding="utf-8") as file:
            file.write(f"limits\n    {line}\n")
        with broker, Gateway(broker, configuration=["request_timeout = 300ms", *FAST]) as gateway:
            answer = gateway.post("/v1/queues/q/tasks", bytes(2 * MIB))
            told = check_problem(answer, status, name)
            check("later", (told["retriable"], answer.fields["retry-after"]), (True, "30"))
            await_none(gateway)


def part_many():
    """Twenty at once, of several principals: bounded in memory, and each within its part."""
    count, length = 20, 4 * MIB
    with Broker() as broker:
        with Gateway(broker, configuration=FAST) as gateway:
            tokens = [gateway.make_token(f"p{number}", "client") for number in range(4)]
            gateway.reload()
            check("one", gateway.post("/v1/queues/q/tasks", bytes(length)).status, 201)
            before = resident(gateway)
            bodies = [made(length, 100 + number) for number in range(count)]
            asked = [Slowly(gateway, length, tokens[number % 4]) for number in range(count)]
            for one, body in zip(asked, bodies):
                one.send(body[:2 * MIB])
            eventually("all are under way", lambda: uploads(gateway) == (count, count * length))
            peak = resident(gateway) - before
            for one, body in zip(asked, bodies):
                one.send(body[2 * MIB:])
            later = [Later(one.answer) for one in asked]
            answers = []
            for number, one in enumerate(later):
                peak = max(peak, resident(gateway) - before)
                answers.append(one.get())
                check(f"upload {number}", answers[-1].status, 201)
            # Of each a piece from its client, one that is read back and its copy on the way to the broker.
            check_growth(f"{count} uploads of {length}", peak, count * 4 * FRAME)
            for number, answer in enumerate(answers):
                body = gateway.get(answer.fields["location"] + "/payload", token=tokens[number % 4]).body
                check(f"payload {number}", body == bodies[number], True)
            await_none(gateway)
        settings = ["uploads_max = 4", "raw_bytes_max = 2M", "spool_bytes_max = 4M", *FAST]
        with Gateway(broker, configuration=settings) as gateway:
            try_parts(gateway, tokens)


def try_operators(broker):
    """For the broker all operators are one, this gateway. They come to its places in turn."""
    count, length = 48, 2 * MIB
    settings = ["uploads_max = 200", "request_timeout = 2m", "body_timeout = 2m", *FAST]
    with Gateway(broker, configuration=settings) as gateway:
        many, other = (gateway.make_token(name, "operator") for name in ("many", "other"))
        gateway.reload()
        asked = [Slowly(gateway, length, many) for _ in range(count)]
        asked.append(Slowly(gateway, length, other))
        for number, one in enumerate(asked):
            one.send(made(length, 300 + number)[:-1])
        eventually("all are under way", lambda: uploads(gateway)[0] == count + 1)
        ends = [made(length, 300 + number)[-1:] for number in range(count + 1)]
        for one, end in zip(asked, ends):
            one.send(end)
        for one in asked:
            check("upload", one.answer().status, 201)
        done = re.findall(r"method=POST .* status=201 .* principal=(\w+)", gateway.read_log())
        print(f"{done.index('other')} of {count} were there before the other one's")
        assert done.index("other") < count // 2, done


def part_places():
    """The broker takes 16 uploads of an owner at a time: one who has more waits, and nobody else."""
    count, length = 20, 4 * MIB
    settings = ["request_timeout = 2m", "body_timeout = 2m", *FAST]
    with Broker() as broker:
        try_operators(broker)
    with Broker() as broker, Gateway(broker, configuration=settings) as gateway:
        many, other = (gateway.make_token(name, "client") for name in ("many", "other"))
        gateway.reload()
        bodies = [made(length, 200 + number) for number in range(count)]
        asked = [Slowly(gateway, length, many) for _ in range(count)]
        asked.append(Slowly(gateway, MIB, other))
        for one, body in zip(asked, [*bodies, bytes(MIB)]):
            one.send(body[:-1])
        eventually("all are under way", lambda: uploads(gateway)[0] == count + 1)
        for one, body in zip(asked, [*bodies, bytes(MIB)]):
            one.link.settimeout(40)  # the broker takes a place back after 60 s, which would help, too
            one.send(body[-1:])
        for number, one in enumerate(reversed(asked)):
            check(f"upload {number}", one.answer().status, 201)
        await_none(gateway)


def try_parts(gateway, tokens):
    def begin(token, length=MIB):
        asked = Slowly(gateway, length, token)
        asked.send(bytes(FRAME + 1))
        return asked

    def named(asked, name):
        told = check_problem(asked.answer(), 429, "rate-limited")
        assert name in told["detail"], told
    first = [begin(tokens[0]) for _ in range(2)]
    eventually("two are under way", lambda: uploads(gateway)[0] == 2)
    named(begin(tokens[0]), "uploads_max")
    second = [begin(tokens[1], 2 * MIB)]
    eventually("three are under way", lambda: uploads(gateway)[0] == 3)
    named(begin(tokens[1]), "spool_bytes_max")
    for one, length in [*((one, MIB) for one in first), *((one, 2 * MIB) for one in second)]:
        one.send(bytes(length - FRAME - 1))
        check("those go on", one.answer().status, 201)
    await_none(gateway)
    done = gateway.run("--check")
    check("--check", done.returncode, 0)
    with open(gateway.path("gateway.conf"), "a", encoding="utf-8") as file:
        file.write("raw_bytes_max = 3M\n")
    done = gateway.run("--check")
    check("no half for one", (done.returncode, "twice raw_bytes_max" in done.stderr), (2, True))


def part_large():
    """A body of many MiB, up and down, through a gateway that does not grow by it."""
    size = int(sys.argv[2]) * MIB
    broker = Broker("--config", "{home}/large.conf")
    with open(os.path.join(broker.home, "large.conf"), "w", encoding="utf-8") as file:
        file.write(f"limits\n    blob_bytes = {size}B\n")
    settings = [f"raw_bytes_max = {size}B", *FAST]
    with broker, Gateway(broker, configuration=settings) as gateway:
        data = made(size, 13)
        gateway.get("/v1/session")
        before = resident(gateway)
        answer = gateway.post("/v1/queues/q/tasks", data)
        check("it was taken", answer.status, 201)
        up = resident(gateway) - before
        answer = gateway.get(answer.fields["location"] + "/payload")
        check("all of it", (answer.status, answer.body == data), (200, True))
        down = resident(gateway) - before
        check_growth(f"{size} bytes up", up, 16 * FRAME)
        check_growth(f"{size} bytes down", down, 16 * FRAME)


if __name__ == "__main__":
    {"read": part_read, "cut": part_cut, "slow": part_slow, "peak": part_peak, "stalled": part_stalled, "up": part_up,
     "left": part_left, "full": part_full, "many": part_many, "places": part_places,
     "large": part_large}[sys.argv[1]]()
