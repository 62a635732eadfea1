# This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
# If a copy of the MPL was not distributed with this file, You can obtain one at
# https://mozilla.org/MPL/2.0/.

"""Streams of events of taskmq-gateway: test_streams.py PART."""

import http.client
import json
import os
import re
import socket
import subprocess
import sys
import threading

from broker import Broker, die_with_the_test, eventually
from gateway import Gateway
from test_gateway import check, check_problem, start_worker, submit


def tests_program(name):
    return os.path.join(os.environ["TASKMQ_BIN"], "..", "tests", name)


class Events:
    """What an EventSource does: reads a stream, and begins it anew behind the last id when it ends,
    until it is answered by anything but 200. Events are (kind, id, data)."""

    def __init__(self, gateway, target, token=None, again=True):
        self.gateway = gateway
        self.target = target
        self.token = token or gateway.first_token
        self.again = again
        self.last_id = None
        self.status = None
        self.events = []
        self.connects = 0
        self.stopped = False
        self.connection = None
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()

    def run(self):
        while not self.stopped:
            try:
                self.read()
            except (OSError, http.client.HTTPException, AttributeError):
                pass
            self.connection.close()
            if self.status != 200 or not self.again:
                break
            threading.Event().wait(0.05)  # as `retry` says

    def read(self):
        head = {"Authorization": f"Bearer {self.token}"}
        if self.last_id is not None:
            head["Last-Event-ID"] = self.last_id
        self.connection = http.client.HTTPConnection("127.0.0.1", self.gateway.port, timeout=60)
        self.connection.request("GET", self.target, headers=head)
        response = self.connection.getresponse()
        self.status = response.status
        self.connects += 1
        kind, data, last_id = None, [], self.last_id
        while line := response.readline():
            name, _, value = line.decode().rstrip("\n").partition(": ")
            if name == "id":
                last_id = value
            elif name == "event":
                kind = value
            elif name == "data":
                data.append(value)
            elif line == b"\n":
                self.last_id = last_id  # not before the event is whole
                if data:
                    self.events.append((kind, self.last_id, json.loads("\n".join(data))))
                kind, data = None, []

    def stop(self):
        self.stopped = True
        try:
            self.connection.sock.shutdown(socket.SHUT_RDWR)
        except (OSError, AttributeError):
            pass
        self.thread.join(60)

    def kinds(self):
        return [kind for kind, _, _ in self.events]

    def await_kind(self, kind, count=1):
        eventually(f"{count} {kind} in {self.target}", lambda: self.kinds().count(kind) >= count)
        return [event for event in self.events if event[0] == kind][count - 1]

    def numbers(self):
        return [data["seq"] for kind, _, data in self.events if kind not in WORDS]


WORDS = ("live", "snapshot", "snapshot_end", "broker", "stop", "notice", "gap", "refused")


def metric(gateway, name):
    """Its sum over all labels."""
    text = gateway.get("/metrics").body.decode()
    found = re.findall(rf"^taskmq_gateway_{name}(?:{{.*}})? (\d+)$", text, re.M)
    assert found, name
    return sum(int(value) for value in found)


def try_one_task(gateway, broker):
    task_id = submit(gateway, {"queue": "one", "data": "x"})
    stream = Events(gateway, f"/v1/tasks/{task_id}/stream")
    check("snapshot", stream.await_kind("snapshot")[2]["status"], "queued")
    stream.await_kind("live")
    with start_worker(broker, "one", "cat") as worker:
        stream.await_kind("completed")
        worker.terminate()
    stream.thread.join(60)
    check("it ends with the task, and an EventSource does not come again", stream.status, 204)
    check("kinds", stream.kinds(), ["snapshot", "snapshot_end", "live", "claimed", "completed"])
    late = Events(gateway, f"/v1/tasks/{task_id}/stream")
    late.thread.join(60)
    check("of one that has ended", (late.kinds(), late.status), (["snapshot", "snapshot_end"], 204))
    check_problem(gateway.get("/v1/tasks/01a2007e-d6c2-7f5e-8f1f-c21cce16b92e/stream"), 404,
                  "not-found")


def try_targets(gateway):
    told = check_problem(gateway.get("/v1/events?cursor=0"), 400, "bad-cursor")
    assert "0-0 is before the first one" in told["detail"], told
    check_problem(gateway.get("/v1/events", Last_Event_ID="1-2-3"), 400, "bad-cursor")
    check_problem(gateway.get("/v1/events?what=1"), 400, "invalid")
    check_problem(gateway.get("/v1/events?snapshot=maybe"), 400, "invalid")
    check_problem(gateway.get("/v1/events?created_since=2020-01-01T00:00:00Z"), 400, "invalid")
    head = gateway.ask("HEAD", "/v1/events")
    check("head", (head.status, head.fields["content-type"]), (200, "text/event-stream"))
    other = Events(gateway, "/v1/events?cursor=7-9")
    gap = other.await_kind("gap")
    check("a cursor of another history", gap[2]["other_history"], True)
    other.stop()


def try_filters(gateway):
    ann = gateway.make_token("ann", "client")
    gateway.reload()
    mine = Events(gateway, "/v1/events?queue=f", token=ann)
    all_of_them = Events(gateway, "/v1/events?queue=f&snapshot=1")
    labelled = Events(gateway, "/v1/events?label=a:b")
    for stream in (mine, all_of_them, labelled):
        stream.await_kind("live")
    first = submit(gateway, {"queue": "f", "labels": {"a": "b"}})
    second = submit(gateway, {"queue": "f"}, token=ann)
    submit(gateway, {"queue": "g"}, token=ann)

    def ids(stream):
        return [data["task_id"] for kind, _, data in stream.events if kind == "submitted"]
    eventually("events", lambda: len(ids(all_of_them)) == 2 and ids(mine) and ids(labelled))
    check("all of the queue", ids(all_of_them), [first, second])
    check("one's own", ids(mine), [second])
    check("by label", ids(labelled), [first])
    for stream in (mine, all_of_them, labelled):
        stream.stop()
    eventually("who left is not kept", lambda: metric(gateway, "streams") == 0)


def part_streams():
    with Broker() as broker, Gateway(broker, configuration=["stream_ping = 100ms"]) as gateway:
        try_one_task(gateway, broker)
        try_targets(gateway)
        try_filters(gateway)
        # Nothing matches, and yet its reader is told how far it is.
        quiet = Events(gateway, "/v1/events?queue=nothing", again=False)
        quiet.await_kind("live")
        before = quiet.last_id
        submit(gateway, {"queue": "q"})
        eventually("the cursor moves on", lambda: quiet.last_id != before)
        gateway.stop()
        quiet.await_kind("stop")


class Later:
    """A request whose answer comes later."""

    def __init__(self, ask, *arguments, **more):
        self.answer = None
        self.thread = threading.Thread(target=self.run, args=(ask, arguments, more), daemon=True)
        self.thread.start()

    def run(self, ask, arguments, more):
        self.answer = ask(*arguments, **more)

    def get(self):
        self.thread.join(60)
        return self.answer


def await_waits(gateway, count):
    """Long polls wait for so many tasks."""
    eventually(f"{count} tasks are waited for",
               lambda: metric(gateway, "waits") == count)


def part_waits():
    """Long polls end when there is something to tell, when the gateway stops, and with their token."""
    with Broker() as broker, Gateway(broker, configuration=["wait_ids_max = 4"]) as gateway:
        task_id = submit(gateway, {"queue": "w"})
        target = f"/v1/tasks/{task_id}"
        tag = gateway.get(target).fields["etag"]
        ann = gateway.make_token("ann", "operator")
        gateway.reload()
        end = Later(gateway.get, target, Prefer="wait=60")
        change = Later(gateway.get, target, Prefer="wait=60", If_None_Match=tag)
        check("it is another one", gateway.get(target, Prefer="wait=60", If_None_Match='"0-0"').status,
              200)
        check("not so long", gateway.get(target, Prefer="wait=1", If_None_Match=tag).status, 304)
        await_waits(gateway, 2)
        with start_worker(broker, "w", "sleep", "600") as worker:
            check("a change", change.get().json["status"], "working")
            check("cancel", gateway.post(target + "/cancel").status, 200)
            check("the end", end.get().json["status"], "cancelled")
            worker.terminate()
        check("it has ended", gateway.get(target, Prefer="wait=60").json["status"], "cancelled")

        task_id = submit(gateway, {"queue": "w"})
        target = f"/v1/tasks/{task_id}"
        stream = Events(gateway, "/v1/events", token=ann)
        stream.await_kind("live")
        poll = Later(gateway.get, target, Prefer="wait=60", token=ann)
        await_waits(gateway, 1)
        gateway.run("token", "remove", "ann")
        gateway.reload()
        check_problem(poll.get(), 401, "not-authenticated")
        stream.thread.join(60)
        check("who has no token", stream.status, 401)

        tag = gateway.get(target).fields["etag"]
        crowd = [submit(gateway, {"queue": "crowd"}) for _ in range(4)]
        most = Later(gateway.post, "/v1/tasks:wait", {"ids": crowd[:3]})
        await_waits(gateway, 3)
        told = check_problem(gateway.post("/v1/tasks:wait", {"ids": crowd[2:]}), 503, "overloaded")
        assert "wait_ids_max" in told["detail"], told
        for each in crowd[:3]:
            gateway.post(f"/v1/tasks/{each}/cancel")
        check("they have ended", len(most.get().json["items"]), 3)
        check("there is room again", gateway.post("/v1/tasks:wait", {
            "ids": crowd[:2] + crowd[3:], "timeout_ms": 50}).json["pending"], crowd[3:])
        polls = [Later(gateway.get, target, Prefer="wait=60"),
                 Later(gateway.get, target, Prefer="wait=60", If_None_Match=tag),
                 Later(gateway.get, target + "/result", Prefer="wait=60"),
                 Later(gateway.post, "/v1/tasks:wait", {"ids": [task_id]})]
        await_waits(gateway, len(polls))  # each of which waits for one task
        gateway.stop()
        check("when it stops", [poll.get().status for poll in polls], [200, 304, 409, 200])
        check("pending", polls[3].get().json["pending"], [task_id])


def fill(gateway, queue, count, pads=0, token="first"):
    for _ in range(count // 200):
        answer = gateway.post("/v1/tasks:batch", {"tasks": [
            {"queue": queue, "data": "x",
             "labels": {f"pad{i}": "p" * 255 for i in range(pads)}}] * 200}, token=token)
        check("batch", answer.status, 200)
        refused = [item for item in answer.json["items"] if item["code"] != "OK"]
        check("refused of a batch", refused[:1], [])


def part_kills():
    """Each event once and in order, whoever is killed."""
    clients, rounds = 20, 4
    settings = ["rate = 100000", "rate_burst = 100000"]
    with Broker() as broker, Gateway(broker, configuration=settings) as gateway:
        port = gateway.port
        gateway.options = ("--listen", f"127.0.0.1:{port}")
        streams = [Events(gateway, "/v1/events?queue=q") for _ in range(clients)]
        for stream in streams:
            stream.await_kind("live")
        for number in range(rounds):
            fill(gateway, "q", 400)
            if number % 2 == 0:
                broker.kill()
                streams[0].await_kind("broker", number + 1)
                broker.start()
                gateway.await_broker()
            else:
                gateway.kill()
                gateway.start()
        fill(gateway, "q", 200)
        wanted = 400 * rounds + 200
        for stream in streams:
            eventually("all events", lambda: len(stream.numbers()) >= wanted)
        for stream in streams:
            stream.stop()
            numbers = stream.numbers()
            check("each once, in order", numbers, sorted(set(numbers)))
            check("none is missing", len(numbers), wanted)
            check("no gap", stream.kinds().count("gap"), 0)


def part_soak():
    """The same at full size, by readers that keep nothing: EVENTS (a multiple of 1,000) to 20 clients,
    of whom four fall behind again and again; a kill of the broker or of the gateway after each
    twentieth of them."""
    wanted = int(sys.argv[2]) // 1000 * 1000
    settings = ["rate = 100000", "rate_burst = 100000"]
    broker = Broker("--config", "{home}/soak.conf")
    with open(os.path.join(broker.home, "soak.conf"), "w", encoding="utf-8") as file:
        file.write("limits\n    live_tasks = 2000000\n    live_bytes = 4G\n")
    with broker, Gateway(broker, configuration=settings) as gateway:
        gateway.options = ("--listen", f"127.0.0.1:{gateway.port}")
        reader = subprocess.Popen([tests_program("sse_reader"), str(gateway.port), gateway.first_token,
                                   "/v1/events?cursor=0-0", "20", "4", str(wanted)],
                                  stdout=subprocess.PIPE, text=True, preexec_fn=die_with_the_test)
        kills = 0
        for done in range(0, wanted, 1000):
            fill(gateway, "q", 1000)
            if done * 20 // wanted == kills:
                continue
            kills += 1
            (broker if kills % 2 else gateway).kill()
            (broker if kills % 2 else gateway).start()
            gateway.await_broker()
            assert not reader.poll(), reader.stdout.read()
        said = reader.communicate()[0]
        check(said, reader.returncode, 0)
        print(f"{said.strip()}, {kills} kills")


def part_stalled():
    """A client that does not read costs its bound, and nobody else waits for it."""
    settings = ["rate = 100000", "rate_burst = 100000", "output_timeout = 10m"]
    count = 8000
    with Broker() as broker, Gateway(broker, configuration=settings) as gateway:
        stalled = socket.socket()
        stalled.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 256 * 1024)
        stalled.connect(("127.0.0.1", gateway.port))
        stalled.sendall(f"GET /v1/events?queue=q HTTP/1.0\r\nHost: localhost\r\nAuthorization: "
                        f"Bearer {gateway.first_token}\r\n\r\n".encode())
        reader = Events(gateway, "/v1/events?queue=q")
        reader.await_kind("live")
        eventually("both are there", lambda: metric(gateway, "streams") == 2)
        memory = 0
        for number in range(1, count // 200 + 1):
            fill(gateway, "q", 200, 5)
            eventually("the other one reads on", lambda: len(reader.numbers()) >= 200 * number)
            memory = max(memory, eventually("it costs its bound", lambda: next(
                (used + 1 for used in [metric(gateway, "memory_bytes")] if used <= 256 * 1024), None)))
        assert memory > 100000, memory
        # What the ring has lost meanwhile comes from the broker.
        out = b""
        stalled.settimeout(60)
        last = f'"seq":{reader.numbers()[-1]},'.encode()
        while last not in out[-10000:]:
            piece = stalled.recv(1 << 16)
            assert piece, f"cut after {len(out)} bytes"
            out += piece
        out += stalled.recv(1 << 16) if not out.endswith(b"\n\n") else b""
        numbers = [int(seq) for seq in re.findall(rb'data: {"kind":"submitted".*?"seq":(\d+)', out)]
        check("each once, in order", numbers, reader.numbers())
        stalled.close()
        reader.stop()
        eventually("who left is not kept", lambda: metric(gateway, "streams") == 0)


if __name__ == "__main__":
    {"streams": part_streams, "kills": part_kills, "stalled": part_stalled,
     "waits": part_waits, "soak": part_soak}[sys.argv[1]]()
