# This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
# If a copy of the MPL was not distributed with this file, You can obtain one at
# https://mozilla.org/MPL/2.0/.

"""Bodies of somebody else, by HTTP: an answer about them is that about a task that never was, in its
status, in each value of each field and in each byte of its body; and what is brought to the gateway
tells nobody what others have brought."""

import re

from broker import Broker
from gateway import Gateway
from test_bodies import FRAME, MIB, made, tag_of
from test_gateway import check, start_worker

FAST = ["rate = 100000", "rate_burst = 100000"]
ABSENT = "01a2007e-d6c2-7f5e-8f1f-c21cce16b92e"
# Of the request alone: its id, its trace, when it came and how many there were before.
OWN_FIELDS = ("x-request-id", "traceresponse", "ratelimit", "date")
ID = rb"[0-9a-f]{8}-[0-9a-f-]{27}"


def plain(answer):
    fields = {name: re.sub(ID.decode(), "ID", value) for name, value in answer.fields.items()
              if name not in OWN_FIELDS}
    return answer.status, fields, re.sub(ID, b"ID", answer.body)


class Stage:
    def __init__(self, broker, gateway):
        self.gateway = gateway
        self.ann, self.bob = (gateway.make_token(name, "client") for name in ("ann", "bob"))
        self.far = gateway.make_token("far", "operator", "--namespaces", "far")
        gateway.reload()
        self.large = made(FRAME + 1, 31)
        self.queued = self.submit(self.large)
        self.small = self.submit(b"a few bytes")
        self.done = self.submit(made(FRAME + 2, 32), queue="echo")
        worker = start_worker(broker, "echo", "sh", "-c",
                              'cat >"$TASKMQ_ARTIFACTS/large.bin" && cat "$TASKMQ_ARTIFACTS/large.bin" && '
                              'printf small >"$TASKMQ_ARTIFACTS/small.txt" && : >"$TASKMQ_ARTIFACTS/empty"')
        answer = gateway.get(f"/v1/tasks/{self.done}/result", token=self.ann, Prefer="wait=60")
        check("it is done", (answer.status, len(answer.body)), (200, FRAME + 2))
        worker.terminate()
        worker.wait()

    def submit(self, data, queue="q", token=None, **more):
        answer = self.gateway.post(f"/v1/queues/{queue}/tasks", data, token=token or self.ann, **more)
        check("submit", answer.status, 201)
        return answer.json["task_id"]


def try_reading(stage):
    """Each thing that has bytes, by each method and with each field that says something of them."""
    gateway = stage.gateway
    bodies = {f"{stage.queued}/payload": stage.large, f"{stage.small}/payload": b"a few bytes",
              f"{stage.done}/payload": made(FRAME + 2, 32), f"{stage.done}/result": made(FRAME + 2, 32),
              f"{stage.done}/artifacts/large.bin": made(FRAME + 2, 32),
              f"{stage.done}/artifacts/small.txt": b"small", f"{stage.done}/artifacts/empty": b""}
    others = [f"{stage.done}/artifacts", f"{stage.done}/artifacts/none", f"{stage.queued}/artifacts",
              f"{stage.queued}/result", f"{stage.done}/logs", f"{stage.done}/attempts",
              f"{stage.done}/events", stage.done]
    tried = 0
    for path in (*bodies, *others):
        data = bodies.get(path, b"")
        if path in bodies:
            mine = gateway.get(f"/v1/tasks/{path}", token=stage.ann)
            check(f"hers: {path}", (mine.status, mine.body == data, mine.fields["etag"]),
                  (200, True, tag_of(data)))
        absent = re.sub(r"^[0-9a-f-]{36}", ABSENT, path)
        for more in ({}, {"Range": "bytes=0-9"}, {"Range": "bytes=-5"},
                     {"Range": f"bytes={len(data)}-"}, {"Range": "bytes=9-3"},
                     {"Range": "bytes=1-2", "If_Range": tag_of(data)},
                     {"Range": "bytes=1-2", "If_Range": '"x"'}, {"If_None_Match": tag_of(data)},
                     {"If_None_Match": "*"}, {"Prefer": "wait=1"}):
            for method in ("GET", "HEAD"):
                for token in (stage.bob, stage.far):
                    foreign, never = (gateway.ask(method, f"/v1/tasks/{one}", token=token, **more)
                                      for one in (path, absent))
                    check(f"{method} {path} {more}", plain(foreign), plain(never))
                    check(f"{method} {path} {more}", foreign.status, 404)
                    tried += 1
    check("all were tried", tried, (len(bodies) + len(others)) * 10 * 2 * 2)


def try_bringing(stage):
    """The bytes of somebody else, brought once more: as if they were new, and kept for himself."""
    gateway = stage.gateway

    def bring(data, **more):
        return gateway.post("/v1/queues/q/tasks", data, token=stage.bob, Prefer="return=minimal", **more)
    for theirs, new in ((stage.large, made(FRAME + 1, 41)), (b"a few bytes", b"other bytes")):
        same, other = bring(theirs), bring(new)
        check(f"{len(theirs)} bytes", plain(same), plain(other))
        check("made", (same.status, same.json["existing"]), (201, False))
        check("his own", gateway.get(same.fields["location"] + "/payload", token=stage.bob).body == theirs,
              True)
        check("not hers", gateway.get(same.fields["location"] + "/payload", token=stage.ann).status, 404)
    # A key is of who said it.
    stage.submit(stage.large, Idempotency_Key="mine")
    for data in (stage.large, made(FRAME + 1, 42)):
        answer = bring(data, Idempotency_Key=f"mine{'' if data is stage.large else '2'}")
        check("a key of hers", (answer.status, answer.json["existing"]), (201, False))
    # What one has brought half of is not there for another one: he brings all of it.
    part = made(MIB, 43)
    check("all of it", gateway.get(bring(part).fields["location"] + "/payload", token=stage.bob).body == part,
          True)


def try_naming(stage):
    """No member of a request names bytes that are elsewhere, and none makes a task somebody else's."""
    gateway = stage.gateway
    theirs, never = (tag_of(data).strip('"') for data in (stage.large, made(FRAME + 1, 51)))

    def told(body, **more):
        return plain(gateway.post("/v1/tasks", {"queue": "q", **body}, token=stage.bob, **more))
    for member in ("payload_blob", "blob", "payload_hash", "hash"):
        check(member, told({member: theirs}), told({member: never}))
        check(member, told({member: theirs})[0], 400)
    for value in ({"blob": theirs}, {"hash": theirs, "bytes": FRAME + 1}):
        answer = gateway.post("/v1/tasks", {"queue": "q", "data": value}, token=stage.bob)
        check("it is JSON, no name", answer.status, 201)
        body = gateway.get(answer.fields["location"] + "/payload", token=stage.bob)
        assert theirs.encode() in body.body, body
    for name in ("owner", "depends_on", "parent", "task_id"):
        value = "ann" if name == "owner" else [stage.done] if name == "depends_on" else stage.done
        check(name, told({name: value})[0], 400)
    before = gateway.get("/v1/tasks:count", token=stage.ann).json["count"]
    forged = gateway.post("/v1/tasks", {"queue": "q", "labels": {"gw.principal": "ann"}}, token=stage.bob)
    check("hers are as many", (forged.status == 201,
                               gateway.get("/v1/tasks:count", token=stage.ann).json["count"]),
          (False, before))


def main():
    with Broker() as broker, Gateway(broker, configuration=FAST) as gateway:
        stage = Stage(broker, gateway)
        try_reading(stage)
        try_bringing(stage)
        try_naming(stage)


if __name__ == "__main__":
    main()
