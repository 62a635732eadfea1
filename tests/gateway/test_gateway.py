# This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
# If a copy of the MPL was not distributed with this file, You can obtain one at
# https://mozilla.org/MPL/2.0/.

"""taskmq-gateway before a broker: test_gateway.py PART."""

import json
import os
import re
import socket
import subprocess
import sys
import tempfile
import time

from broker import Broker, die_with_the_test, eventually
from gateway import Gateway, program

HOST = b"Host: 127.0.0.1\r\n"
POST = b"POST /v1/queues/q/tasks HTTP/1.1\r\n" + HOST


def check(what, got, wanted):
    assert got == wanted, f"{what}: {got!r}, not {wanted!r}"


def check_problem(answer, status, name):
    check("status", (answer.status, answer.fields.get("content-type")),
          (status, "application/problem+json"))
    check("type", answer.json["type"], "/problems/" + name)
    check("status in the body", answer.json["status"], status)
    check("instance", answer.json["instance"], answer.fields["x-request-id"])
    return answer.json


# Bytes of strangers.

def hostile_cases(token):
    """Name, bytes, statuses that must come."""
    get = b"GET /healthz HTTP/1.1\r\n"
    head = POST + b"Authorization: Bearer " + token.encode() + b"\r\n"
    chunked = head + b"Transfer-Encoding: chunked\r\n\r\n"
    smuggled = get + HOST + b"\r\n"
    return [
        ("plain", get + HOST + b"\r\n", [200]),
        ("no Host", get + b"\r\n", [400]),
        ("two Hosts", get + HOST + HOST + b"\r\n", [400]),
        ("1.0 without Host", b"GET /healthz HTTP/1.0\r\n\r\n", [403]),
        ("1.0", b"GET /healthz HTTP/1.0\r\n" + HOST + b"\r\n", [200]),
        ("2.0", b"GET /healthz HTTP/2.0\r\n" + HOST + b"\r\n", [505]),
        ("1.9", b"GET /healthz HTTP/1.9\r\n" + HOST + b"\r\n", [505]),
        ("garbage", b"\x16\x03\x01\x02\x00\x01\x00\r\n\r\n", [400]),
        ("CL and TE", head + b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" +
         smuggled, [400]),
        ("gzip, chunked", head + b"Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n", [400]),
        ("xchunked and CL", head + b"Content-Length: 5\r\nTransfer-Encoding: xchunked\r\n\r\nabcde",
         [400]),
        ("TE twice", head + b"Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n"
         b"0\r\n\r\n", [400]),
        ("CL twice", head + b"Content-Length: 3\r\nContent-Length: 5\r\n\r\nabcde", [400]),
        ("CL +3", head + b"Content-Length: +3\r\n\r\nabc", [400]),
        ("CL -1", head + b"Content-Length: -1\r\n\r\nabc", [400]),
        ("CL 0x3", head + b"Content-Length: 0x3\r\n\r\nabc", [400]),
        ("CL 3, 3", head + b"Content-Length: 3, 3\r\n\r\nabc", [400]),
        ("CL huge", head + b"Content-Length: 99999999999999999999999\r\n\r\nabc", [400]),
        ("chunk 0x3", chunked + b"0x3\r\nabc\r\n0\r\n\r\n", [400]),
        ("chunk -1", chunked + b"-1\r\nabc\r\n0\r\n\r\n", [400]),
        ("chunk huge", chunked + b"ffffffffffffffffff\r\nabc\r\n0\r\n\r\n", [400]),
        ("chunk ends wrong", chunked + b"3\r\nabcXX\r\n0\r\n\r\n", [400]),
        ("trailers", chunked + b"0\r\nContent-Length: 9\r\n\r\n", [400]),
        ("space before colon", get + b"Name : a\r\n" + HOST + b"\r\n", [400]),
        ("fold", get + HOST + b"X: a\r\n b\r\n\r\n", [400]),
        ("empty name", get + HOST + b": v\r\n\r\n", [400]),
        ("bad name", get + HOST + b"X(y)@: v\r\n\r\n", [400]),
        ("NUL in a value", get + HOST + b"X: a\0b\r\n\r\n", [400]),
        ("LF alone", b"GET /healthz HTTP/1.1\nHost: 127.0.0.1\n\n", [400]),
        ("CR alone", get + HOST + b"X: a\rb\r\n\r\n", [400]),
        ("absolute form", b"GET http://evil.example/healthz HTTP/1.1\r\n" + HOST + b"\r\n", [400]),
        ("method", b"FOO /healthz HTTP/1.1\r\n" + HOST + b"\r\n", [501]),
        ("small method", b"get /healthz HTTP/1.1\r\n" + HOST + b"\r\n", [501]),
        ("NUL in the target", b"GET /x\0y HTTP/1.1\r\n" + HOST + b"\r\n", [400]),
        ("%00 in the target", b"GET /x%00y HTTP/1.1\r\n" + HOST + b"\r\n", [400]),
        ("64 KiB field", get + HOST + b"X: " + b"a" * 65536 + b"\r\n\r\n", [431]),
        ("2000 fields", get + HOST + b"".join(b"X%d: a\r\n" % i for i in range(2000)) + b"\r\n",
         [431]),
        ("64 KiB target", b"GET /" + b"a" * 65536 + b" HTTP/1.1\r\n" + HOST + b"\r\n", [414]),
        ("5 MiB body", head + b"Content-Length: 5242880\r\n\r\n" + b"a" * 5242880, [413]),
        ("three in a row", smuggled * 3, [200, 200, 200]),
        ("HEAD", b"HEAD /healthz HTTP/1.1\r\n" + HOST + b"\r\n", [200]),
    ]


def silent_links(gateway):
    """Those who say too little have so long in total, however slowly they go on."""
    began = time.monotonic()
    link = socket.create_connection(("127.0.0.1", gateway.port))
    link.settimeout(0.02)
    out = b""
    sent = b"GET /healthz HTTP/1.1\r\n" + HOST + b"X: "
    while not out and time.monotonic() - began < 60:
        try:
            link.sendall(sent)
            sent = b"a"
            out = link.recv(1000)
        except socket.timeout:
            continue
        except OSError:
            out = b"408: the answer was lost with the connection"
    assert b"408" in out.split(b"\r\n")[0], out
    link.close()


def memory_of(gateway):
    text = gateway.get("/metrics").body.decode()
    return int(re.search(r"^taskmq_gateway_memory_bytes\S* (\d+)", text, re.M).group(1))


def pipeline(gateway, request, count):
    """Sends a request many times and reads nothing. The connection, and how much was taken."""
    link = socket.socket()
    link.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    link.connect(("127.0.0.1", gateway.port))
    link.setblocking(False)
    data = request * count
    sent = 0
    try:
        while sent < len(data):
            sent += link.send(data[sent:])
    except BlockingIOError:
        pass
    link.setblocking(True)
    link.settimeout(60)
    return link, sent


def read_answers(link, count, size):
    """Reads so many answers with bodies of one size. The statuses."""
    file = link.makefile("rb")
    statuses = []
    for _ in range(count):
        statuses.append(int(file.readline().split()[1]))
        while file.readline() != b"\r\n":
            pass
        assert len(file.read(size)) == size
    return statuses


def part_mark():
    """Who does not read what it asked for is not asked for more, and takes no memory from others."""
    size = 100000
    settings = ["memory_bytes_max = 1M", "output_bytes_max = 64K", "rate = 100000",
                "rate_burst = 100000"]
    with Broker() as broker, Gateway(broker, configuration=settings) as gateway:
        answer = gateway.post("/v1/queues/q/tasks", b"x" * size)
        get = (f"GET {answer.fields['location']}/payload HTTP/1.1\r\nHost: 127.0.0.1\r\n"
               f"Authorization: Bearer {gateway.first_token}\r\n\r\n").encode()
        count = 200
        links = [pipeline(gateway, get, count) for _ in range(3)]
        eventually("an answer waits for its reader", lambda: memory_of(gateway) >= size)
        # Three that read nothing: each is owed the bound and one answer at most.
        for _ in range(20):
            assert memory_of(gateway) <= 3 * (64 * 1024 + 2 * size), memory_of(gateway)
        check("another one is served", gateway.get(answer.fields["location"] + "/payload").status,
              200)
        link, sent = links[0]
        whole = sent // len(get)
        check("each answer comes", read_answers(link, whole, size), [200] * whole)
        for link, _ in links:
            link.close()

        # No room for the answer at all: that is said.
        large = gateway.post("/v1/queues/q/tasks", b"x" * size * 2).fields["location"] + "/payload"
        check("there is room", gateway.get(large).status, 200)
        crowd = [pipeline(gateway, get, count)[0] for _ in range(40)]

        def refused():
            # The system's buffers grow and take some of it: one more link fills that again.
            crowd.append(pipeline(gateway, get, count)[0])
            answer = gateway.get(large)
            return answer if answer.status != 200 else None
        told = eventually("there is no room", refused)
        check("it is told", (told.status, told.json["type"]), (503, "/problems/busy"))
        for link in crowd:
            link.close()
        eventually("all of it is given back", lambda: memory_of(gateway) < size)


def part_http():
    with Broker() as broker, Gateway(broker, configuration=["idle_timeout = 1s",
                                                            "raw_bytes_max = 256K"]) as gateway:
        for name, data, wanted in hostile_cases(gateway.first_token):
            statuses, out = gateway.talk(data)
            assert statuses == wanted, f"{name}: {statuses}, not {wanted}: {out[:500]!r}"
        statuses, out = gateway.talk(None, [POST + b"Authorization: Bearer " +
                                            gateway.first_token.encode() +
                                            b"\r\nExpect: 100-continue\r\n"
                                            b"Content-Length: 3\r\n\r\n", b"abc"])
        check("Expect", statuses, [100, 201])
        statuses, _ = gateway.talk(POST + b"Authorization: Bearer " +
                                   gateway.first_token.encode() +
                                   b"\r\nContent-Length: 3\r\nConnection: close\r\n\r\nabc")
        check("after all that", statuses, [201])
        check("nothing was smuggled", gateway.get("/v1/tasks:count").json, {"count": 2})
    with Broker() as broker, Gateway(broker, configuration=["head_timeout = 1s"]) as gateway:
        silent_links(gateway)


# Tasks.

def start_worker(broker, queue, *command):
    return subprocess.Popen([program("taskctl"), "-e", broker.endpoint, "work", queue, "--",
                             *command], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                            preexec_fn=die_with_the_test)


def submit(gateway, body, **more):
    answer = gateway.post("/v1/tasks", body, **more)
    check("submit", answer.status, 201)
    return answer.json["task_id"]


def try_submits(gateway):
    answer = gateway.post("/v1/tasks", {"queue": "q", "data": "hello", "labels": {"a": "b"},
                                        "priority": 7, "ttl_ms": 3600000, "meta": {"x": [1]}})
    check("submit", answer.status, 201)
    task_id = answer.json["task_id"]
    check("location", answer.fields["location"], f"/v1/tasks/{task_id}")
    task = gateway.get(f"/v1/tasks/{task_id}")
    check("task", [task.json[key] for key in
                   ("task_id", "queue", "status", "priority", "ttl_ms", "meta", "payload_bytes")],
          [task_id, "q", "queued", 7, 3600000, {"x": [1]}, 5])
    check("labels", task.json["labels"], {"a": "b", "gw.principal": "local"})
    check("payload", gateway.get(f"/v1/tasks/{task_id}/payload").body, b"hello")

    for data, wanted in (({"base64": "AAH/"}, b"\0\1\xff"), ("\u00e4\0", "\u00e4\0".encode()),
                         ([1, {"a": None}], b'[1, {"a": null}]'), (True, b"true"), ("", b"")):
        other = submit(gateway, {"queue": "q", "data": data})
        check("payload", gateway.get(f"/v1/tasks/{other}/payload").body, wanted)
    numbers = gateway.post("/v1/tasks", '{"queue":"q","data": {"n": 1.10} }',
                           Content_Type="application/json")
    check("JSON as it stands", gateway.get(numbers.fields["location"] + "/payload").body,
          b'{"n": 1.10}')

    raw = gateway.post("/v1/queues/q/tasks?ttl_ms=0&label=a:c:d", b"\0raw", Content_Type="x/y")
    check("raw", raw.status, 201)
    answer = gateway.get(raw.fields["location"] + "/payload")
    check("raw payload", (answer.body, answer.fields["content-type"]), (b"\0raw", "x/y"))
    check("raw task", gateway.get(raw.fields["location"]).json["labels"]["a"], "c:d")
    return task_id


def try_refusals(gateway):
    for body, pointer in (({}, "/queue"), ({"queue": "a b"}, "/queue"),
                          ({"queue": "q", "what": 1}, "/what"), ({"queue": "q", "ttl_ms": "1h"}, "/ttl_ms"),
                          ({"queue": "q", "priority": 256}, "/priority"),
                          ({"queue": "q", "labels": {"gw.principal": "x"}}, "/labels"),
                          ({"queue": "q", "labels": {"a": 1}}, "/labels"),
                          ({"queue": "q", "meta": 1}, "/meta"),
                          ({"queue": "q", "data": {"base64": "?"}}, "/data"),
                          ({"queue": "q", "data": "x" * 262145}, "/data")):
        told = check_problem(gateway.post("/v1/tasks", body), 400, "invalid")
        check("pointer", told["errors"][0]["pointer"], pointer)
    deep = "[" * 65 + "]" * 65
    for text in ("", "[]", "{", '{"queue":"q","queue":"q"}', '{"queue":"q"} x', "\ufeff{}",
                 '{"queue":"q","dat\\u0061":1}', f'{{"queue":"q","data":{deep}}}'):
        check_problem(gateway.post("/v1/tasks", text.encode(), Content_Type="application/json"), 400,
                      "invalid")
    told = check_problem(gateway.post("/v1/tasks", b"{}", Content_Type="text/plain"), 415,
                         "unsupported-media-type")
    check("how to say it", told["detail"], "the body is JSON: say 'Content-Type: application/json'")
    check_problem(gateway.post("/v1/queues/q/tasks?what=1", b"x"), 400, "invalid")
    check_problem(gateway.post("/v1/queues/a%20b/tasks", b"x"), 400, "invalid")
    check_problem(gateway.get("/v1/tasks/x"), 400, "invalid")
    check_problem(gateway.get("/v1/tasks/01a2007e-d6c2-7f5e-8f1f-c21cce16b92e"), 404, "not-found")
    check_problem(gateway.get("/v1/nothing"), 404, "not-found")
    answer = gateway.ask("DELETE", "/v1/tasks")
    check_problem(answer, 405, "method-not-allowed")
    check("allow", answer.fields["allow"], "GET, HEAD, POST")
    check("in words", answer.json["detail"], "this path takes GET, HEAD, POST")
    there = "/v1/tasks/" + gateway.post("/v1/tasks", {"queue": "unread"}).json["task_id"]
    for path in ("", "/result", "/payload", "/why"):
        told = check_problem(gateway.get(f"{there}{path}?wait=2"), 400, "invalid")
        check("a parameter that nobody reads", told["detail"], "there is no parameter 'wait'")
        assert gateway.get(f"{there}{path}?namespace=default").status in (200, 409), path
    for line in gateway.run("--routes").stdout.splitlines():
        method, path = line.split()[:2]
        for name, value in (("{id}", there[len("/v1/tasks/"):]), ("{queue}", "q"), ("{name}", "n"),
                            ("{suffix}", there[-12:]), ("{type}", "busy"), ("{file}", "app.js")):
            path = path.replace(name, value)
        told = check_problem(gateway.ask(method, f"{path}?unread=2"), 400, "invalid")
        check(line, told["detail"], "there is no parameter 'unread'")
    for target, key, most in (("/v1/queues/q/tasks", "raw_bytes_max", 16777216),
                              ("/v1/tasks", "json_bytes_max", 393216)):
        statuses, out = gateway.talk(f"POST {target} HTTP/1.1\r\nHost: localhost\r\n"
                                     f"Authorization: Bearer {gateway.first_token}\r\n"
                                     f"Content-Type: application/json\r\n"
                                     f"Content-Length: {most + 1}\r\n\r\n".encode())
        check("413", statuses, [413])
        assert f"the body has more bytes than '{key}' allows, {most}".encode() in out, out
        check("the way out", b"a larger payload is the body of POST /v1/queues/{queue}/tasks" in out,
              key == "json_bytes_max")
    check("page", gateway.get("/problems/not-found", token=None).status, 200)
    check_problem(gateway.get("/problems/none", token=None), 404, "not-found")


def try_keys(gateway):
    body = {"queue": "keys", "data": "one"}
    first = gateway.post("/v1/tasks", body, Idempotency_Key="k")
    again = gateway.post("/v1/tasks", body, Idempotency_Key="k")
    check("first", (first.status, "idempotent-replayed" in first.fields), (201, False))
    check("again", (again.status, again.fields["idempotent-replayed"]), (200, "true"))
    check("the same task", again.json["task_id"], first.json["task_id"])
    check_problem(gateway.post("/v1/tasks", {"queue": "keys", "data": "two"}, Idempotency_Key="k"),
                  422, "idempotency-key-reused")
    check_problem(gateway.post("/v1/tasks", body, Idempotency_Key="a b"), 400, "invalid")


def try_batch(gateway):
    answer = gateway.post("/v1/tasks:batch", {"tasks": [{"queue": "batch", "data": 1}, {"queue": "/"},
                                                        {"queue": "batch", "data": [2, {"x": "]"}]}]})
    check("batch", [item["code"] for item in answer.json["items"]], ["OK", "INVALID", "OK"])
    task_id = answer.json["items"][2]["task_id"]
    check("payload", gateway.get(f"/v1/tasks/{task_id}/payload").body, b'[2, {"x": "]"}]')
    check_problem(gateway.post("/v1/tasks:batch", {"tasks": []}), 400, "invalid")
    keyed = {"tasks": [{"queue": "batch", "data": 1}, {"queue": "batch", "data": 1},
                       {"queue": "batch", "data": 1, "idempotency_key": "own"}]}
    first, again = (gateway.post("/v1/tasks:batch", keyed, Idempotency_Key="batch").json["items"]
                    for _ in range(2))
    check("three tasks", len({item["task_id"] for item in first}), 3)
    check("the same ones", [(item["task_id"], item["existing"]) for item in again],
          [(item["task_id"], True) for item in first])
    alone = gateway.post("/v1/tasks", {"queue": "batch", "data": 1}, Idempotency_Key="own")
    check("a key is a key", (alone.status, alone.json["task_id"]), (200, first[2]["task_id"]))
    other = gateway.post("/v1/tasks:batch", {"tasks": [{"queue": "batch", "data": 2}]},
                         Idempotency_Key="batch")
    check("other content", [item["code"] for item in other.json["items"]], ["CONFLICT"])
    bad = gateway.post("/v1/tasks:batch", {"tasks": [{"queue": "batch", "idempotency_key": "a b"},
                                                     {"queue": "batch", "idempotency_key": 1}]})
    check("bad keys", [item["code"] for item in bad.json["items"]], ["INVALID", "INVALID"])
    check_problem(gateway.post("/v1/tasks:batch", {"tasks": [{}] * 257}), 400, "invalid")


def try_reads(gateway, task_id):
    answer = gateway.get(f"/v1/tasks/{task_id}")
    tag = answer.fields["etag"]
    check("unchanged", gateway.get(f"/v1/tasks/{task_id}", If_None_Match=tag).status, 304)
    check("other tag", gateway.get(f"/v1/tasks/{task_id}", If_None_Match='"1-1"').status, 200)
    check("HEAD", (gateway.ask("HEAD", f"/v1/tasks/{task_id}").status,
                   gateway.ask("HEAD", f"/v1/tasks/{task_id}").body), (200, b""))
    check("short id", gateway.get(f"/v1/resolve/{task_id[-12:]}").json, {"task_id": task_id})
    events = gateway.get(f"/v1/tasks/{task_id}/events").json
    check("events", [item["kind"] for item in events["items"]], ["submitted"])
    check_problem(gateway.get(f"/v1/tasks/{task_id}/result"), 409, "unfinished")

    found, target = [], "/v1/tasks?queue=q&limit=3"
    for _ in range(100):
        answer = gateway.get(target)
        check("list", answer.status, 200)
        found += [item["task_id"] for item in answer.json["items"]]
        if answer.json["next"] is None:
            break
        target = answer.fields["link"].split(">")[0][1:]
    check("all pages", (len(found), len(set(found)), found[-1]), (8, 8, task_id))
    check("count", gateway.get("/v1/tasks:count?queue=q").json, {"count": 8})
    check("label", gateway.get("/v1/tasks:count?label=a:b").json, {"count": 1})
    check("status", gateway.get("/v1/tasks:count?status=failed&status=working").json, {"count": 0})
    check("time", gateway.get("/v1/tasks:count?created_since=2100-01-01T00:00:00Z").json,
          {"count": 0})
    for query in ("status=x", "what=1", "label=a", "created_since=soon", "limit=1001", "limit=-1"):
        check_problem(gateway.get(f"/v1/tasks?{query}"), 400, "invalid")
    check_problem(gateway.get("/v1/tasks?cursor=x"), 400, "bad-cursor")
    queue = gateway.get("/v1/queues/q").json
    check("queue", (queue["queue"], queue["ready"]), ("q", 8))
    assert {"queue": "q", "ready": 8}.items() <= gateway.get("/v1/queues").json["items"][-1].items()
    assert gateway.get("/v1/stats").json["counters"]["submitted"] >= 8
    check_problem(gateway.get("/v1/queues/none"), 404, "not-found")


def try_queues(gateway, broker):
    """A queue that is paused gives nothing away, and says who did it and why."""
    task_id = submit(gateway, {"queue": "p"})
    paused = gateway.post("/v1/queues/p/pause", {"why": "a new disk"}).json
    check("paused", (paused["closed"], paused["paused"]["why"]),
          (["paused"], "a new disk (by local through the gateway)"))
    check("once more", gateway.post("/v1/queues/p/pause").json["paused"]["why"],
          "by local through the gateway")
    check("a long why", gateway.post("/v1/queues/p/pause", {"why": "w" * 256}).json["paused"]["why"],
          "w" * 256)
    for flaw in ({"why": "w" * 257}, {"why": 1}, {"what": "x"}, {"why": "a\0b"}):
        check_problem(gateway.post("/v1/queues/p/pause", flaw), 400, "invalid")
    check_problem(gateway.post("/v1/queues/a%20b/pause"), 400, "invalid")
    worker = start_worker(broker, "p", "cat")
    eventually("it is served", lambda: gateway.get("/v1/queues/p").json["workers"] == 1)
    check("nothing is given away", gateway.get(f"/v1/tasks/{task_id}").json["status"], "queued")
    check("resumed", gateway.post("/v1/queues/p/resume").json["closed"], [])
    check("it goes on", gateway.get(f"/v1/tasks/{task_id}", Prefer="wait=60").json["status"],
          "completed")
    worker.terminate()
    worker.wait()
    page = gateway.get("/v1/queues?limit=1").json
    rest = gateway.get(f"/v1/queues?limit=1000&cursor={page['next']}").json
    check("pages", [one["queue"] for one in page["items"] + rest["items"]],
          [one["queue"] for one in gateway.get("/v1/queues").json["items"]])
    check("the last page", rest["next"], None)
    check_problem(gateway.get("/v1/queues?cursor=x"), 400, "bad-cursor")
    check_problem(gateway.get("/v1/queues?limit=1001"), 400, "invalid")
    submit(gateway, {"queue": "p"})
    shown = subprocess.run([program("taskctl"), "-e", broker.endpoint, "queue", "show", "p", "-o",
                            "json"], capture_output=True, check=True).stdout
    mine, theirs = gateway.get("/v1/queues/p").json, json.loads(shown)
    theirs.pop("ended", None)
    check("what taskctl shows", sorted(mine), sorted(theirs))
    check("its settings", mine["settings"], theirs["settings"])


def try_attempts(gateway, broker):
    """What its workers did, attempt by attempt, and what their programs wrote."""
    failing = start_worker(broker, "tries", "sh", "-c", "echo out; printf 'bad\\377' >&2; exit 3")
    task_id = submit(gateway, {"queue": "tries", "max_attempts": 2, "backoff_ms": 1})
    target = f"/v1/tasks/{task_id}"
    check_problem(gateway.get(f"{target}/result", Prefer="wait=60"), 404, "no-result")
    failing.terminate()
    failing.wait()
    first = gateway.get(f"{target}/attempts?limit=1").json
    second = gateway.get(f"{target}/attempts?after={first['next']}").json
    check("attempts", [(one["attempt"], one["end"], one["error"]["code"]) for one in
                       first["items"] + second["items"]],
          [(1, "attempt_failed", 3), (2, "failed", 3)])
    check("no more", second["next"], None)
    schemas = gateway.get("/openapi.json", token=None).json["components"]["schemas"]
    check("its members", sorted(first["items"][0]), sorted(schemas["Attempt"]["required"]))
    log = gateway.get(f"{target}/logs").json
    check("its members", sorted(log), sorted(schemas["Log"]["required"]))
    check("out", (log["attempt"], log["data"], log["end"], log["next"]), (2, "out\n", 4, None))
    piece = gateway.get(f"{target}/logs?attempt=1&offset=1&limit=2").json
    check("a piece", (piece["attempt"], piece["offset"], piece["lost"], piece["data"], piece["next"]),
          (1, 1, 0, "ut", 3))
    check("bytes", gateway.get(f"{target}/logs?stream=err").json["data"], {"base64": "YmFk/w=="})
    check("without a log", gateway.get(f"/v1/tasks/{submit(gateway, {'queue': 'x'})}/logs").json[
        "attempt"], 0)
    for query in ("logs?stream=in", "logs?limit=65537", "logs?what=1", "attempts?limit=1001"):
        check_problem(gateway.get(f"{target}/{query}"), 400, "invalid")


def try_traces(gateway, broker):
    """submit, worker and answers belong to one trace, whoever began it."""
    theirs = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"

    def trace_of(answer):
        return gateway.get(answer.fields["location"]).json["trace"]
    answer = gateway.post("/v1/tasks", {"queue": "t"}, traceparent=theirs, tracestate="a=b")
    check("trace", trace_of(answer), theirs + " a=b")
    told = answer.fields["traceresponse"].split("-")
    check("told", (told[1], told[3]), (theirs.split("-")[1], "01"))
    assert told[2] != theirs.split("-")[2], told
    # A later version may have more, which is not taken; a version that is none is no trace.
    for later, flags in (("01" + theirs[2:], "01"), ("cc" + theirs[2:-2] + "fe-more", "00")):
        made = gateway.post("/v1/tasks", {"queue": "t"}, traceparent=later, tracestate="a=b")
        check("a later version", trace_of(made), theirs[:-2] + flags + " a=b")
    two = {"tracestate": "a=b", "Tracestate": "c=d"}
    check("two fields", trace_of(gateway.post("/v1/tasks", {"queue": "t"}, traceparent=theirs, **two)),
          theirs + " a=b,c=d")
    for flaw in ("x", theirs + "-more", theirs[:-1], "ff" + theirs[2:], "01" + theirs[2:] + "x",
                 theirs.upper(), theirs.replace("0af7651916cd43dd8448eb211c80319c", "0" * 32)):
        made = gateway.post("/v1/tasks", {"queue": "t"}, traceparent=flaw, tracestate="a=b")
        check("one of our own", (trace_of(made), made.fields["traceresponse"][-2:]),
              (made.fields["traceresponse"], "00"))
        assert re.fullmatch(r"00-[0-9a-f]{32}-[0-9a-f]{16}-00", trace_of(made)), trace_of(made)
    made = gateway.post("/v1/queues/traced/tasks", b"x")
    trace = trace_of(made).split("-")[1]
    worker = start_worker(broker, "traced", "sh", "-c", "echo $TRACEPARENT")
    result = gateway.get(made.fields["location"] + "/result", Prefer="wait=60").body.decode()
    check("the worker's", result.split("-")[1], trace)
    worker.terminate()
    worker.wait()
    assert trace in gateway.read_log(), "no line of the log has the trace"


def try_ends(gateway, broker, task_id):
    answer = gateway.post(f"/v1/tasks/{task_id}/cancel", {"message": "no need"})
    check("cancel", (answer.status, answer.json["status"], answer.json["cancel_message"]),
          (200, "cancelled", "no need (by local through the gateway)"))
    check("again", gateway.post(f"/v1/tasks/{task_id}/cancel").status, 200)
    check_problem(gateway.post(f"/v1/tasks/{task_id}/cancel", {"x": 1}), 400, "invalid")
    check_problem(gateway.get(f"/v1/tasks/{task_id}/result"), 404, "no-result")

    ids = [submit(gateway, {"queue": "work", "data": f"{i}"}) for i in range(3)]
    answer = gateway.post("/v1/tasks:wait", {"ids": ids, "timeout_ms": 50})
    check("nothing yet", (answer.json["items"], answer.json["pending"]), ([], ids))
    worker = start_worker(broker, "work", "cat")
    answer = gateway.get(f"/v1/tasks/{ids[0]}/result", Prefer="wait=60")
    check("result", (answer.status, answer.body), (200, b"0"))
    check("sandboxed", (answer.fields["content-disposition"], answer.fields["x-content-type-options"]),
          (f'attachment; filename="{ids[0]}"', "nosniff"))
    answer = gateway.post("/v1/tasks:wait", {"ids": ids, "mode": "all"})
    check("all", [item["status"] for item in answer.json["items"]], ["completed"] * 3)
    check("none is pending", answer.json["pending"], [])
    never = submit(gateway, {"queue": "nobody"})
    answer = gateway.post("/v1/tasks:wait", {"ids": [never, ids[1]], "mode": "any"})
    check("any", (answer.json["items"][0]["task_id"], answer.json["pending"]), (ids[1], [never]))
    check_problem(gateway.post(f"/v1/tasks/{ids[0]}/cancel"), 409, "wrong-status")
    for body in ({}, {"ids": []}, {"ids": ["x"]}, {"ids": ids, "mode": "some"},
                 {"ids": ids, "timeout_ms": 60001}):
        check_problem(gateway.post("/v1/tasks:wait", body), 400, "invalid")
    worker.terminate()
    worker.wait()


def try_again(gateway, broker):
    failing = start_worker(broker, "fail", "false")
    task_id = submit(gateway, {"queue": "fail", "max_attempts": 1})
    check_problem(gateway.get(f"/v1/tasks/{task_id}/result", Prefer="wait=60"), 404, "no-result")
    failing.terminate()
    failing.wait()
    check("why", gateway.get(f"/v1/tasks/{task_id}/why").json["task_id"], task_id)
    for verb in ("retry", "resume"):
        check(verb, gateway.post(f"/v1/tasks/{task_id}/{verb}").json["status"], "queued")
        check_problem(gateway.post(f"/v1/tasks/{task_id}/{verb}"), 409, "wrong-status")
        check_problem(gateway.ask("DELETE", f"/v1/tasks/{task_id}"), 409, "wrong-status")
        gateway.post(f"/v1/tasks/{task_id}/cancel")
    check_problem(gateway.post(f"/v1/tasks/{task_id}/adopt", {"attempt": 1}), 409, "wrong-status")
    check_problem(gateway.post(f"/v1/tasks/{task_id}/adopt", {"attempt": 0}), 400, "invalid")
    check("purge", gateway.ask("DELETE", f"/v1/tasks/{task_id}").status, 204)
    check_problem(gateway.get(f"/v1/tasks/{task_id}"), 410, "purged")


def try_questions(gateway, broker):
    task_id = submit(gateway, {"queue": "ask"})
    worker = start_worker(broker, "ask", "bash", "-c",
                          'echo \'ask size "How large?"\' >&$TASKMQ_FD; read -ru "$TASKMQ_FD" a; '
                          'echo "$a"')
    items = eventually("a question", lambda: gateway.get("/v1/inbox?queue=ask").json["items"])
    check("question", (items[0]["task_id"], items[0]["key"]), (task_id, "size"))
    target = f"/v1/tasks/{task_id}/answer"
    for body in ({}, {"key": "size"}, {"key": "size", "answer": 1, "text": "x"}, {"answer": 1}):
        check_problem(gateway.post(target, body), 400, "invalid")
    check_problem(gateway.post(target, {"key": "none", "answer": 1}), 404, "not-found")
    check("answer", gateway.post(target, {"key": "size", "answer": {"cm": 1.50}}).status, 200)
    shown = gateway.get("/v1/workers?limit=1").json["items"]
    check("who works", [one["queues"] for one in shown], [["ask"]])
    wanted = gateway.get("/openapi.json", token=None).json["components"]["schemas"]["Worker"]
    check("a worker", sorted(shown[0]), sorted(wanted["required"]))
    check_problem(gateway.get("/v1/workers?limit=1001"), 400, "invalid")
    check("it reached the worker", gateway.get(f"/v1/tasks/{task_id}/result", Prefer="wait=60").body,
          b'answer size {"cm": 1.5}\n')
    worker.terminate()
    worker.wait()


def try_description(gateway, task_id):
    """What is described is what there is, and looks as it is described."""
    answer = gateway.get("/openapi.json", token=None)
    described = {(method.upper(), path) for path, methods in answer.json["paths"].items()
                 for method in methods}
    heads = {line for line in described if line[0] == "HEAD"}
    described -= heads
    check("HEAD is where GET is", [path for _, path in heads if ("GET", path) not in described], [])
    for path in ("", "/payload"):
        check("HEAD", (("HEAD", f"/v1/tasks/{{id}}{path}") in heads,
                       gateway.ask("HEAD", f"/v1/tasks/{task_id}{path}").status), (True, 200))
    told = answer.json["paths"]["/v1/tasks/{id}/payload"]["head"]
    check("HEAD of other bytes", (gateway.ask("HEAD", f"/v1/tasks/{task_id}/payload",
                                              If_Match='"other"').status, "412" in told["responses"],
                                  "If-Match" in [one["name"] for one in told["parameters"]]),
          (412, True, True))
    there = {tuple(line.split()[:2]) for line in gateway.run("--routes").stdout.splitlines()}
    check("described and there", sorted(described ^ there), [])
    schemas = answer.json["components"]["schemas"]
    submission = schemas["Submission"]["properties"]
    for name, target in (("Task", f"/v1/tasks/{task_id}"), ("Queue", "/v1/queues/q"),
                         ("Why", f"/v1/tasks/{task_id}/why"),
                         ("Problem", "/v1/tasks/x")):
        shown, wanted = set(gateway.get(target).json), schemas[name]
        assert set(wanted["required"]) <= shown <= set(wanted["properties"]), (name, shown)
    example = answer.json["paths"]["/v1/tasks"]["post"]["requestBody"]["content"]["application/json"]
    task = gateway.post("/v1/tasks", example["example"])
    check("the task", (task.status, sorted(task.json)),
          (201, sorted(gateway.get(task.fields["location"]).json)))
    check("its tag", gateway.get(task.fields["location"], If_None_Match=task.fields["etag"]).status,
          304)
    receipt = gateway.post("/v1/tasks", example["example"], Prefer="return=minimal")
    check("receipt", (receipt.status, sorted(receipt.json)),
          (201, sorted(schemas["Receipt"]["required"])))
    for name, value in (("session", "s"), ("method", "m"), ("content_type", "a/b"), ("priority", 0),
                        ("ttl_ms", 0), ("max_attempts", 1), ("backoff_ms", 1), ("lease_ms", 1000),
                        ("poll_interval_ms", 1), ("delay_ms", 0), ("max_runtime_ms", 1),
                        ("fair_key", "k"), ("labels", {}), ("meta", {}), ("data", 1),
                        ("idempotency_key", "described")):
        submission.pop(name)
        submit(gateway, {"queue": "described", name: value})
    check("every member was tried", list(submission), ["queue"])


def try_metrics(gateway):
    answer = gateway.get("/metrics")
    check("metrics", (answer.status, answer.fields["content-type"]),
          (200, "text/plain; version=0.0.4; charset=utf-8"))
    text = answer.body.decode()
    for line in ('taskmq_queue_tasks{namespace="default",queue="q",state="ready"} 7',
                 'taskmq_broker_up{namespace="default"} 1',
                 'taskmq_gateway_http_requests_total{route="/v1/tasks/{id}",method="DELETE",'
                 'status="204"} 1',
                 'taskmq_gateway_stream_gaps_total 0', 'taskmq_gateway_hub_lag_seconds 0.000'):
        assert line + "\n" in text, (line, text)
    def refused(reason):
        text = gateway.get("/metrics").body.decode()
        found = re.search(rf'^taskmq_gateway_refused_total{{reason="{reason}"}} (\d+)$', text, re.M)
        return int(found.group(1)) if found else 0
    before = [refused(reason) for reason in ("foreign-origin", "not-authenticated", "malformed")]
    gateway.get("/v1/tasks", Host="page.example")
    gateway.get("/v1/tasks", token="tmq_guess")
    gateway.talk(b"GET /healthz HTTP/1.1\r\n\r\n")
    check("refused", [refused(reason) for reason in ("foreign-origin", "not-authenticated", "malformed")],
          [count + 1 for count in before])
    path = os.path.join(gateway.broker.home, "metrics")
    times = [line for line in text.splitlines(True) if "duration_seconds" in line]
    check("all times", times[-3].split()[1], times[-1].split()[1])
    with open(path, "w", encoding="utf-8") as file: # the parser knows no histograms
        file.write("".join(line for line in text.splitlines(True) if line not in times))
    parser = os.path.join(os.environ["TASKMQ_SOURCE"], "tests/cli/exposition.awk")
    subprocess.run(["awk", "-f", parser, path], check=True, env={**os.environ, "LC_ALL": "C"})


def part_rest():
    with Broker() as broker, Gateway(broker, configuration=["rate = 100000",
                                                            "rate_burst = 100000"]) as gateway:
        task_id = try_submits(gateway)
        try_reads(gateway, task_id)
        try_refusals(gateway)
        try_keys(gateway)
        try_batch(gateway)
        try_ends(gateway, broker, task_id)
        try_again(gateway, broker)
        try_questions(gateway, broker)
        try_metrics(gateway)
        try_description(gateway, task_id)
        try_queues(gateway, broker)
        try_attempts(gateway, broker)
        try_traces(gateway, broker)
        answer = gateway.get("/healthz", X_Request_Id="mine")
        check("request id", answer.fields["x-request-id"], "mine")
        printed = gateway.run("--check")
        check("--check", (printed.returncode, printed.stdout.splitlines()[0]), (0, "# 1 tokens"))
        check_manual()


def check_manual():
    """taskmq-gateway(8) has every limit with its default."""
    manual = os.path.join(os.environ["TASKMQ_SOURCE"], "docs/man/taskmq-gateway.8.scd")
    with open(manual, encoding="utf-8") as file:
        told = re.findall(r"^\*(\w+)\* = (\S+) \(\S+\.\.\S+\)$", file.read(), re.M)
    with tempfile.TemporaryDirectory() as data:
        printed = subprocess.run([program("taskmq-gateway"), "--data", data, "--check"], check=True,
                                 capture_output=True, text=True).stdout
    limits = printed[printed.index("log_format"):].splitlines()[1:]
    check("limits", told, [tuple(line.split()[0:3:2]) for line in limits])


# Who may do what.

def try_tokens(gateway):
    check_problem(gateway.get("/v1/tasks", token=None), 401, "not-authenticated")
    for text in ("tmq_x", "x", "", "tmq_" + "A" * 43):
        check_problem(gateway.get("/v1/tasks", token=text), 401, "not-authenticated")
    basic = gateway.get("/v1/tasks", token=None, Authorization="Basic YTpi")
    told = check_problem(basic, 401, "not-authenticated")
    check("another scheme", told["detail"], "say 'Authorization: Bearer TOKEN'")
    listed = gateway.run("token", "list").stdout
    assert "local  operator  default  never" in listed and "tmq_" not in listed, listed
    with open(gateway.path("gateway.tokens"), encoding="utf-8") as file:
        assert gateway.first_token not in file.read()
    check("mode", os.stat(gateway.path("gateway.tokens")).st_mode & 0o777, 0o600)
    twice = gateway.run("token", "add", "local")
    check("twice", (twice.returncode, "'token remove' ends it" in twice.stderr), (2, True))
    gateway.run("token", "add", "gone", "--expires", "1ms")
    ends = [line for line in gateway.run("token", "list").stdout.splitlines() if "gone" in line]
    check("its time is over", [line.endswith("Z  over") for line in ends], [True])
    check("removed", gateway.run("token", "remove", "gone").returncode, 0)
    check("role", gateway.run("token", "add", "x", "--roles", "king").returncode, 2)


def try_roles(gateway):
    tokens = {name: gateway.make_token(name, roles) for name, roles in
              (("ann", "client"), ("bob", "client"), ("eve", "observer"), ("prom", "metrics"))}
    gateway.reload()
    of_ann = submit(gateway, {"queue": "q", "data": "a"}, token=tokens["ann"])
    check_problem(gateway.post("/v1/tasks", {"queue": "q"}, token=tokens["eve"]), 403, "denied")
    check_problem(gateway.get("/v1/tasks", token=tokens["prom"]), 403, "denied")
    check_problem(gateway.get("/v1/stats", token=tokens["ann"]), 403, "denied")
    for path in ("", "/payload", "/result", "/events"):
        target = f"/v1/tasks/{of_ann}{path}"
        wanted = 409 if path == "/result" else 200
        check("ann", gateway.get(target, token=tokens["ann"]).status, wanted)
        check("eve", gateway.get(target, token=tokens["eve"]).status, wanted)
        foreign = check_problem(gateway.get(target, token=tokens["bob"]), 404, "not-found")
        absent = check_problem(gateway.get(target.replace(of_ann[-12:], "0" * 12),
                                           token=tokens["bob"]), 404, "not-found")
        check("foreign is as absent", {**foreign, "instance": 0, "task_id": 0},
              {**absent, "instance": 0, "task_id": 0})
    check_problem(gateway.post(f"/v1/tasks/{of_ann}/cancel", token=tokens["bob"]), 404, "not-found")
    check_problem(gateway.post(f"/v1/tasks/{of_ann}/cancel", token=tokens["eve"]), 403, "denied")
    check_problem(gateway.get(f"/v1/resolve/{of_ann[-12:]}", token=tokens["bob"]), 404, "not-found")
    check("list", gateway.get("/v1/tasks", token=tokens["bob"]).json["items"], [])
    check("list", len(gateway.get("/v1/tasks", token=tokens["ann"]).json["items"]), 1)
    waited = gateway.post("/v1/tasks:wait", {"ids": [of_ann], "timeout_ms": 0}, token=tokens["bob"])
    check("wait", waited.json["items"][0]["code"], "NOT_FOUND")
    keyed = {"queue": "q", "data": "k"}
    check("key", gateway.post("/v1/tasks", keyed, token=tokens["ann"], Idempotency_Key="k").status, 201)
    check("a key is one's own",
          gateway.post("/v1/tasks", keyed, token=tokens["bob"], Idempotency_Key="k").status, 201)
    own = gateway.post(f"/v1/tasks/{of_ann}/cancel", {"message": "mine"}, token=tokens["ann"]).json
    check("the broker knows who it was", own["cancel_message"], "mine")
    check("remove", gateway.run("token", "remove", "bob").returncode, 0)
    gateway.reload()
    check_problem(gateway.get("/v1/tasks", token=tokens["bob"]), 401, "not-authenticated")


def try_origins(gateway):
    here = f"127.0.0.1:{gateway.port}"
    for host, wanted in ((here, 200), ("localhost:1", 200), ("[::1]", 200), ("tasks.example:80", 200),
                         ("evil.example", 403), ("127.0.0.1.evil.example", 403), ("", 403),
                         ("127.0.0.1:x", 403)):
        check(f"Host {host}", gateway.get("/healthz", token=None, Host=host).status, wanted)
    for origin, wanted in ((f"http://{here}", 200), ("https://page.example", 200), ("null", 403),
                           ("http://evil.example", 403), (f"http://{here}.evil.example", 403)):
        check(f"Origin {origin}", gateway.get("/healthz", token=None, Origin=origin).status, wanted)
    answer = gateway.ask("OPTIONS", "/v1/tasks", token=None, Origin="https://page.example")
    check("preflight", (answer.status, answer.fields["access-control-allow-origin"],
                        answer.fields["access-control-max-age"]),
          (204, "https://page.example", "600"))


def try_namespaces(gateway):
    token = gateway.make_token("both", "operator", "--namespaces", "default,other")
    gateway.reload()
    check_problem(gateway.get("/v1/tasks", token=token), 400, "invalid")
    check_problem(gateway.get("/v1/tasks", token=token, Taskmq_Namespace="third"), 403, "denied")
    task_id = submit(gateway, {"queue": "q"}, token=token, Taskmq_Namespace="other")
    check("there", gateway.get(f"/v1/tasks/{task_id}", token=token, Taskmq_Namespace="other").json
          ["namespace"], "other")
    check_problem(gateway.get(f"/v1/tasks/{task_id}", token=token, Taskmq_Namespace="default"), 404,
                  "not-found")


def part_access():
    names = ["host = tasks.example", "origin = https://page.example", "failures_max = 1000"]
    with Broker() as broker, Gateway(broker, configuration=names) as gateway:
        try_tokens(gateway)
        try_roles(gateway)
        try_origins(gateway)
        try_namespaces(gateway)
    slow = ["rate = 1", "rate_burst = 3", "failures_max = 2", "failures_pause = 1h"]
    with Broker() as broker, Gateway(broker, configuration=slow) as gateway:
        answers = [gateway.get("/v1/tasks") for _ in range(10)]
        limited = next(answer for answer in answers if answer.status != 200)
        check_problem(limited, 429, "rate-limited")
        check("advice", limited.fields["retry-after"], "1")
        check("policy", limited.fields["ratelimit-policy"], '"principal";q=3;w=3')
        for _ in range(2):
            check("guess", gateway.get("/v1/tasks", token="tmq_guess").status, 401)
        told = check_problem(gateway.get("/v1/tasks", token="tmq_guess"), 429, "rate-limited")
        assert told["retry_after_ms"] > 3000000, told
        good = gateway.get("/v1/tasks")  # it has its own rate, and does not pay for others
        assert good.status == 200 or good.json["retry_after_ms"] < 3000000, good.json
        check("others are served", gateway.get("/healthz", token=None).status, 200)
    with Broker() as broker:
        gateway = Gateway(broker, configuration=["rat = 1"])
        refused = gateway.run("--check")
        check("unknown key", refused.returncode, 2)
        assert "gateway.conf:2: there is no key 'rat'; is 'rate' meant?" in refused.stderr, refused
        for option in ("--listen=0.0.0.0:1", "--what"):
            check(option, gateway.run(option, "--check").returncode, 2)
        for option in ("--listen=x", "--listen=localhost:1", "--listen=7433"):
            refused = Gateway(broker).run(option, "--check")
            check(option, refused.returncode, 2)
            assert "is no address" in refused.stderr, refused
        for line in ("host = https://tasks.example", "host = tasks.example:443", "host = a/b",
                     "host = [::1", "origin = tasks.example", "origin = https://tasks.example/",
                     "origin = https://"):
            refused = Gateway(broker, configuration=[line]).run("--check")
            check(line, refused.returncode, 2)
            assert f"{line.split()[0]}: '{line.split()[2]}' is no" in refused.stderr, refused
        for line in ("host = tasks.example", "host = [fe80::1]", "origin = https://a.example:8443",
                     "origin = vscode-webview://x"):
            check(line, Gateway(broker, configuration=[line]).run("--check").returncode, 0)


def part_joined():
    """By a saved connection and a key of its own, as on a machine without the broker."""
    def taskctl(broker, *arguments):
        return subprocess.run([program("taskctl"), *arguments], cwd=broker.home, check=True,
                              capture_output=True, text=True).stdout
    with Broker("--listen", "tcp://127.0.0.1:0?curve") as broker:
        line = re.search("tmqjoin_[a-z2-7]+", taskctl(broker, "invite", "web", "--role", "operator"))
        os.environ["XDG_CONFIG_HOME"] = os.path.join(broker.home, "saved")
        taskctl(broker, "join", line.group())
        with Gateway(broker, "--profile", "default") as gateway:
            task = gateway.post("/v1/tasks", {"queue": "q", "data": "x"}).json["task_id"]
            check("who the gateway is", json.loads(taskctl(broker, "get", task, "-o", "json"))["owner"],
                  "web")
        for configuration, wanted in (("profile = default", "profile = default  #"),
                                      ("profile =", "gateway.conf:2:")):
            gateway = Gateway(broker, configuration=[configuration])
            told = gateway.run("--check")
            assert wanted in told.stdout + told.stderr, told


# Kills.

def try_no_room_for_the_file():
    """What cannot be written down keeps nobody from being served; it is written later."""
    with Broker() as broker:
        gateway = Gateway(broker)
        with gateway:
            token = gateway.first_token
        path = gateway.path("gateway.endpoint")
        os.makedirs(os.path.join(path, "in-the-way"))
        gateway.log = open(gateway.log_path, "ab")
        gateway.process = subprocess.Popen(
            [program("taskmq-gateway"), "--data", broker.data, "--listen", "127.0.0.1:0"],
            stderr=gateway.log, preexec_fn=die_with_the_test)
        with gateway.log:
            said = eventually("it listens", lambda: re.findall(
                r"GATEWAY-READY \S+ address=http://127.0.0.1:(\d+)", gateway.read_log())[1:])
            gateway.port = int(said[0])
            gateway.await_broker()
            check("it serves", gateway.get("/v1/session", token=token).status, 200)
            assert "GATEWAY-ENDPOINT" in gateway.read_log()
            os.rmdir(os.path.join(path, "in-the-way"))
            os.rmdir(path)
            eventually("it is told", lambda: os.path.isfile(path))
            check("a link", gateway.run("link").returncode, 0)
            gateway.stop()
            assert not os.path.exists(path)


def part_restart():
    try_no_room_for_the_file()
    with Broker() as broker, Gateway(broker, configuration=["grace = 200ms"]) as gateway:
        body = {"queue": "q", "data": "x"}
        first = gateway.post("/v1/tasks", body, Idempotency_Key="k").json["task_id"]
        gateway.kill()
        gateway.start()
        again = gateway.post("/v1/tasks", body, Idempotency_Key="k")
        check("a key outlives the gateway", (again.status, again.json["task_id"]), (200, first))
        broker.kill()
        eventually("away", lambda: gateway.get("/readyz", token=None).status == 503)
        eventually("it fails at once", lambda: gateway.post("/v1/tasks", body).json.get("detail") ==
                   "the broker is away; nothing was done")
        answer = gateway.post("/v1/tasks", body)
        check_problem(answer, 503, "unreachable")
        assert int(answer.fields["retry-after"]) >= 1
        check("alive", gateway.get("/healthz", token=None).status, 200)
        broker.start()
        eventually("back", lambda: gateway.get("/readyz", token=None).status == 200)
        again = gateway.post("/v1/tasks", body, Idempotency_Key="k")
        check("a key outlives the broker", (again.status, again.json["task_id"]), (200, first))
        second = gateway.run("--listen", f"127.0.0.1:{gateway.port}")
        assert second.returncode != 0 and "Address already in use" in second.stderr, second
        assert os.path.exists(gateway.path("gateway.endpoint")), "it is the first one's"
        gateway.stop()
        assert not os.path.exists(gateway.path("gateway.endpoint"))
        gateway.start()
    with Broker() as broker:
        path = os.path.join(broker.home, "socket")
        with Gateway(broker, "--listen", f"unix:{path}", "--insecure-no-auth") as gateway:
            link = socket.socket(socket.AF_UNIX)
            link.connect(path)
            link.sendall(b"GET /v1/tasks:count HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
            out = b""
            while piece := link.recv(65536):
                out += piece
            check("a socket file", json.loads(out.split(b"\r\n\r\n")[1]), {"count": 0})
            check("without a token", gateway.get("/v1/tasks:count", token=None).json, {"count": 0})


if __name__ == "__main__":
    {"http": part_http, "mark": part_mark, "rest": part_rest, "access": part_access,
     "joined": part_joined, "restart": part_restart}[sys.argv[1]]()
