# This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
# If a copy of the MPL was not distributed with this file, You can obtain one at
# https://mozilla.org/MPL/2.0/.

"""What one peer of taskmq-gateway can take from the others: connections, turns, waits, tokens."""

import json
import os
import resource
import signal
import socket
import subprocess

from broker import Broker, eventually
from gateway import Gateway, program
from test_gateway import check, check_problem, pipeline, submit
from test_mcp import Client, META, MODERN
from test_streams import Events, Later, await_waits, fill, metric

FAST = ["rate = 100000", "rate_burst = 100000"]


def ask(link, target, token=None):
    """A request on a connection that stays open; the bytes that came first."""
    who = f"Authorization: Bearer {token}\r\n" if token else ""
    link.sendall(f"GET {target} HTTP/1.1\r\nHost: localhost\r\n{who}\r\n".encode())
    return link.recv(4096)


def is_open(link):
    link.setblocking(False)
    try:
        return link.recv(1) != b""
    except BlockingIOError:
        return True
    except ConnectionResetError:
        return False
    finally:
        link.setblocking(True)


def try_crowd(broker):
    """Strangers who hold all connections lock nobody out; who is known and waits is left alone."""
    with Gateway(broker, configuration=["connections_max = 8"]) as gateway:
        def connect():
            link = socket.create_connection(("127.0.0.1", gateway.port))
            link.settimeout(60)
            return link
        token = gateway.first_token
        friend = connect()
        assert b" 200 " in ask(friend, "/v1/session", token)
        stream = Events(gateway, "/v1/events")
        stream.await_kind("live")
        strangers = [connect() for _ in range(6)]
        for link in strangers[:5]:
            assert b" 200 " in ask(link, "/healthz")
        strangers[5].sendall(b"GET /healthz HT")
        for number in range(12):
            check(f"newcomer {number}", gateway.get("/v1/session").status, 200)
        eventually("a stranger has gone", lambda: not all(is_open(link) for link in strangers))
        assert b" 200 " in ask(friend, "/v1/session", token), "a friend was sent away"
        check("the stream stays", stream.status, 200)
        assert metric(gateway, "connections_displaced_total") > 0
        check("nobody was refused", metric(gateway, "connections_refused_total"), 0)
        stream.stop()
        for link in (friend, *strangers):
            link.close()


def try_files(broker):
    """Strangers cannot take the descriptors that others need, however few there are."""
    gateway = Gateway(broker)
    gateway.limits = {resource.RLIMIT_NOFILE: 128}
    with gateway:
        assert "GATEWAY-FILES" in gateway.read_log()
        strangers = [socket.create_connection(("127.0.0.1", gateway.port)) for _ in range(300)]
        for number in range(10):
            check(f"newcomer {number}", gateway.get("/v1/session").status, 200)
        assert "GATEWAY-ACCEPT" not in gateway.read_log()
        # The way to the broker is found again: nobody took its descriptors.
        broker.kill()
        eventually("it is away", lambda: gateway.get("/readyz", token=None).status == 503)
        broker.start()
        gateway.await_broker()
        for link in strangers:
            link.close()


def begin_head(gateway, size):
    """A stranger who never comes to the end of a head."""
    link = socket.create_connection(("127.0.0.1", gateway.port))
    link.settimeout(60)
    link.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nX-Filler: " + b"x" * size)
    return link


def try_strangers(broker):
    """What strangers hold together is bounded, and takes nothing from those who are known."""
    most = 256 * 1024
    settings = FAST + [f"strangers_bytes_max = {most}B", "memory_bytes_max = 1M", "head_timeout = 1m"]
    with Gateway(broker, configuration=settings) as gateway:
        description = gateway.get("/openapi.json", token=None).body
        task_id = submit(gateway, {"queue": "strangers", "data": "x" * 100000})
        question = b"GET /openapi.json HTTP/1.1\r\nHost: localhost\r\n\r\n"
        readers = [pipeline(gateway, question, 400)[0] for _ in range(24)]
        eventually("they are owed something", lambda: metric(gateway, "strangers_bytes") > 0)
        writers = [begin_head(gateway, 12000) for _ in range(100)]
        for _ in range(10):
            assert metric(gateway, "strangers_bytes") <= most, metric(gateway, "strangers_bytes")
            check("who is known", gateway.get(f"/v1/tasks/{task_id}/payload").status, 200)
            check("who looks", gateway.get("/healthz", token=None).status, 200)
            check("who comes to read", gateway.get("/openapi.json", token=None).body, description)
        assert metric(gateway, "connections_displaced_total") > 0
        for link in (*readers, *writers):
            link.close()
        eventually("all of it is given back", lambda: metric(gateway, "strangers_bytes") == 0)


def try_share(broker):
    """A principal who reads nothing of what it asks for takes its part of the memory, and no more."""
    size = 200000
    settings = FAST + ["principal_bytes_max = 1M", "output_bytes_max = 64K"]
    with Gateway(broker, configuration=settings) as gateway:
        sue, tom = gateway.make_token("sue", "client"), gateway.make_token("tom", "client")
        gateway.reload()
        ids = [submit(gateway, {"queue": "share", "data": "x" * size}, token=token)
               for token in (sue, tom)]
        get = (f"GET /v1/tasks/{ids[0]}/payload HTTP/1.1\r\nHost: localhost\r\n"
               f"Authorization: Bearer {sue}\r\n\r\n").encode()
        links = []

        def refused():
            # The system's buffers grow and take some of it: one more link fills that again.
            links.append(pipeline(gateway, get, 100)[0])
            answer = gateway.get(f"/v1/tasks/{ids[0]}/payload", token=sue)
            return answer if answer.status != 200 else None
        told = eventually("its part is full", refused)
        check("it is told", (told.status, told.json["type"]), (503, "/problems/busy"))
        assert "principal_bytes_max" in told.json["detail"], told.json
        check("another one", gateway.get(f"/v1/tasks/{ids[1]}/payload", token=tom).status, 200)
        for link in links:
            link.close()
        eventually("it is given back", lambda: gateway.get(f"/v1/tasks/{ids[0]}/payload",
                                                           token=sue).status == 200)


def try_dear(broker):
    """A principal whose requests are dear does not take the loop from one whose requests are not."""
    with Gateway(broker, configuration=FAST + ["principal_time = 5ms"]) as gateway:
        eve, kim = gateway.make_token("eve", "client"), gateway.make_token("kim", "client")
        gateway.reload()
        dear = {"queue": "dear", "data": [{}] * 20000}

        def refused():
            check("another one", gateway.get("/v1/session", token=kim).status, 200)
            answer = gateway.post("/v1/tasks", dear, token=eve)
            return answer if answer.status != 201 else None
        told = check_problem(eventually("it is dear", refused), 429, "rate-limited")
        assert "principal_time" in told["detail"], told
        check("another one", gateway.get("/v1/session", token=kim).status, 200)

    # Streams of one's own tasks wait as well, and lose nothing.
    with Gateway(broker, configuration=FAST + ["principal_time = 1ms"]) as gateway:
        streams = [Events(gateway, f"/v1/events?queue=own&queue=other{number}", token=eve)
                   for number in range(6)]
        for stream in streams:
            stream.await_kind("live")

        def told():
            return gateway.post("/v1/tasks:batch", {"tasks": [{"queue": "own"}] * 100}, token=eve)
        for _ in range(3):
            check("another one", gateway.get("/v1/session", token=kim).status, 200)
            eventually("a batch is taken", lambda: told().status == 200)
        for stream in streams:
            stream.await_kind("submitted", 300)
            numbers = stream.numbers()
            check("each once and in order", (len(numbers), sorted(set(numbers))), (300, numbers))
            stream.stop()


def try_turns(broker):
    """Who does not read what he asked for keeps nobody from catching up."""
    with Gateway(broker, configuration=FAST) as gateway:
        fill(gateway, "turns", 1600, 6)
        links = []
        for _ in range(70):  # more than catch up at a time
            link = socket.socket()
            link.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            link.connect(("127.0.0.1", gateway.port))
            link.sendall(f"GET /v1/events?snapshot=yes HTTP/1.1\r\nHost: localhost\r\n"
                         f"Authorization: Bearer {gateway.first_token}\r\n\r\n".encode())
            links.append(link)
        eventually("all are there", lambda: metric(gateway, "streams") == len(links))
        reader = Events(gateway, "/v1/events?queue=other&snapshot=yes")
        reader.await_kind("live")
        reader.stop()
        for link in links:
            link.close()


def try_ahead(gateway):
    """A cursor that the history has not come to is refused, also where others read the same."""
    other = Events(gateway, "/v1/events?queue=ahead")
    other.await_kind("live")
    submit(gateway, {"queue": "ahead"})
    generation, seq = other.await_kind("submitted")[1].split("-")
    for far in (int(seq) + 1000000, 2**64 - 1):
        check_problem(gateway.get(f"/v1/events?queue=ahead&cursor={generation}-{far}"), 400,
                      "bad-cursor")
    other.stop()


def try_waits(broker):
    """One principal waits for a part of what all may wait for."""
    settings = FAST + ["wait_ids_max = 6", "principal_wait_ids_max = 4"]
    with Gateway(broker, configuration=settings) as gateway:
        ann, bob = gateway.make_token("ann", "client"), gateway.make_token("bob", "client")
        gateway.reload()
        ids = [submit(gateway, {"queue": "wait"}, token=ann) for _ in range(4)]
        theirs = submit(gateway, {"queue": "wait"}, token=bob)
        first = Later(gateway.post, "/v1/tasks:wait", {"ids": ids[:3]}, token=ann)
        await_waits(gateway, 3)
        told = check_problem(gateway.post("/v1/tasks:wait", {"ids": ids[2:]}, token=ann), 429,
                             "rate-limited")
        assert "principal_wait_ids_max" in told["detail"], told
        second = Later(gateway.post, "/v1/tasks:wait", {"ids": ids[:1]}, token=ann)
        other = Later(gateway.post, "/v1/tasks:wait", {"ids": [theirs]}, token=bob)
        await_waits(gateway, 5)
        for each in (*ids, theirs):
            gateway.post(f"/v1/tasks/{each}/cancel")
        check("all have ended", [len(poll.get().json["items"]) for poll in (first, second, other)],
              [3, 1, 1])
        again = gateway.post("/v1/tasks:wait", {"ids": ids, "timeout_ms": 0}, token=ann)
        check("there is room again", len(again.json["items"]), 4)


def try_single_waits(broker):
    """Lists of tasks that are waited for keep nobody from waiting for one."""
    settings = FAST + ["wait_ids_max = 10", "principal_wait_ids_max = 10"]
    with Gateway(broker, configuration=settings) as gateway:
        ian, joe = gateway.make_token("ian", "client"), gateway.make_token("joe", "client")
        gateway.reload()
        ids = [submit(gateway, {"queue": "wait"}, token=ian) for _ in range(10)]
        theirs = submit(gateway, {"queue": "wait"}, token=joe)
        check_problem(gateway.post("/v1/tasks:wait", {"ids": ids}, token=ian), 503, "overloaded")
        many = Later(gateway.post, "/v1/tasks:wait", {"ids": ids[:8]}, token=ian)
        await_waits(gateway, 8)
        one = Later(gateway.get, f"/v1/tasks/{theirs}", token=joe, Prefer="wait=60")
        await_waits(gateway, 9)
        for each in (theirs, *ids):
            gateway.post(f"/v1/tasks/{each}/cancel")
        check("one", one.get().json["status"], "cancelled")
        check("many", len(many.get().json["items"]), 8)
    # The broker takes no more of a gateway than this: a wait beyond would never be told its end.
    beyond = Gateway(broker, configuration=["wait_ids_max = 10001"])
    check("beyond the broker's", beyond.run("--check").returncode, 2)


def is_cancelled(gateway, queue, why):
    items = gateway.get(f"/v1/tasks?queue={queue}&limit=1").json["items"]
    return items and (items[0]["status"], items[0]["cancel_message"]) == ("cancelled", why)


def leave(gateway, client, name):
    """Calls a tool and goes, before the broker hears of it."""
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call",
               "params": {"name": name, "arguments": {}, "_meta": {
                   META + "protocolVersion": MODERN, META + "clientCapabilities": {}}}}
    body = json.dumps(message)
    fields = {**client.fields("tools/call", message["params"]), "Host": "localhost",
              "Content-Type": "application/json", "Content-Length": len(body),
              "Authorization": "Bearer " + gateway.first_token}
    before = gateway.read_log().count("route=/mcp status=0")
    with socket.create_connection(("127.0.0.1", gateway.port)) as link:
        link.sendall(("POST /mcp HTTP/1.1\r\n" + "".join(
            f"{field.replace('_', '-')}: {value}\r\n" for field, value in fields.items()) +
            "\r\n" + body).encode())
    eventually("the gateway has seen it",
               lambda: gateway.read_log().count("route=/mcp status=0") > before)


def try_calls(broker):
    """A call of a tool that ends without an answer of its task leaves no task behind."""
    with open(os.path.join(broker.data, "tools.json"), "w", encoding="utf-8") as file:
        json.dump({"tools": [{"name": name, "inputSchema": {"type": "object"},
                              "taskmq": {"queue": f"tool.{name}", "inline": "10ms"}}
                             for name in ("streams", "waits", "leaves")]}, file)
    with Gateway(broker, configuration=["streams_max = 1", "wait_ids_max = 1"]) as gateway:
        client = Client(gateway)
        stream = Events(gateway, "/v1/events")
        stream.await_kind("live")
        told = client.post("tools/call", {"name": "streams", "arguments": {}})
        check_problem(told, 503, "busy")
        eventually("it is cancelled", lambda: is_cancelled(gateway, "tool.streams",
                                                           "its call could not be followed"))
        stream.stop()
        task_id = submit(gateway, {"queue": "calls"})
        poll = Later(gateway.get, f"/v1/tasks/{task_id}", Prefer="wait=60")
        await_waits(gateway, 1)
        told = client.post("tools/call", {"name": "waits", "arguments": {}})
        check("overloaded", told.json["error"]["data"]["code"], "OVERLOADED")
        eventually("it is cancelled", lambda: is_cancelled(gateway, "tool.waits",
                                                           "its call could not be followed"))
        gateway.post(f"/v1/tasks/{task_id}/cancel")
        check("the end", poll.get().json["status"], "cancelled")
        # A client that leaves while its call is on the way to the broker.
        broker.process.send_signal(signal.SIGSTOP)
        leave(gateway, client, "leaves")
        broker.process.send_signal(signal.SIGCONT)
        eventually("it is cancelled", lambda: is_cancelled(gateway, "tool.leaves",
                                                           "its caller has left"))
        # … and a gateway that stops before the broker has heard of that.
        broker.process.send_signal(signal.SIGSTOP)
        leave(gateway, client, "leaves")
        gateway.stop()
        broker.process.send_signal(signal.SIGCONT)


def try_tokens(broker):
    """Tokens that are made at the same time are all there."""
    with Gateway(broker) as gateway:
        makers = [subprocess.Popen(
            [program("taskmq-gateway"), "--data", broker.data, "token", "add", f"maker-{number}"],
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) for number in range(16)]
        tokens = [maker.communicate()[0].strip() for maker in makers]
        check("made", [maker.returncode for maker in makers], [0] * 16)
        gateway.reload()
        check("good", [gateway.get("/v1/session", token=token).status for token in tokens],
              [200] * 16)


def main():
    with Broker() as broker:
        try_crowd(broker)
        try_files(broker)
        try_strangers(broker)
        try_share(broker)
        try_dear(broker)
        try_turns(broker)
        with Gateway(broker) as gateway:
            try_ahead(gateway)
        try_waits(broker)
        try_single_waits(broker)
        try_calls(broker)
        try_tokens(broker)


if __name__ == "__main__":
    main()
