# This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
# If a copy of the MPL was not distributed with this file, You can obtain one at
# https://mozilla.org/MPL/2.0/.

"""What principals of taskmq-gateway share, and none of them can hold alone, nor a few of them
together: uploads, streams, long polls, filters, turns, time. test_shares.py PART."""

import os
import re
import selectors
import signal
import socket
import sys
import time

from broker import Broker, eventually
from gateway import PATIENCE_S, Gateway
from test_bodies import FRAME, MIB, PIECE, Slow, Slowly, Stage, buffers, made, number_of
from test_gateway import check, check_problem, pipeline, submit
from test_streams import Events, Later, await_waits, fill, metric

FAST = ["rate = 100000", "rate_burst = 100000"]


def uploads(gateway):
    return number_of(gateway, "taskmq_gateway_uploads"), number_of(gateway, "taskmq_gateway_spool_bytes")


def spooled(gateway):
    """The bytes of each body that has a file."""
    fds = f"/proc/{gateway.process.pid}/fd"
    sizes = []
    for fd in os.listdir(fds):
        try:
            if "(deleted)" in os.readlink(f"{fds}/{fd}"):
                sizes.append(os.stat(f"{fds}/{fd}").st_size)
        except FileNotFoundError:
            pass  # it was closed meanwhile
    return sizes


def sleeps(gateway):
    """Nothing is left for any of its threads to do."""
    tasks = f"/proc/{gateway.process.pid}/task"
    for task in os.listdir(tasks):
        with open(f"{tasks}/{task}/stat", encoding="ascii") as file:
            if file.read().rpartition(")")[2].split()[0] != "S":
                return False
    return True


def named(answer, status, kind, key):
    told = check_problem(answer, status, kind)
    assert key in told["detail"], told
    check("again later", (told["retriable"], "retry-after" in answer.fields), (True, True))


def make(gateway, *names, role="client"):
    for name in names:
        gateway.run("token", "remove", name)  # of the part before
    tokens = [gateway.make_token(name, role) for name in names]
    gateway.reload()
    return tokens


def upload(gateway, token, length=MIB):
    """One whose client stops behind the first piece."""
    one = Slowly(gateway, length, token)
    one.send(bytes(FRAME + 1))
    return one


# Uploads.

def try_places(broker):
    """Two who hold all places do not keep a third one out, nor a fourth."""
    with Gateway(broker, configuration=["uploads_max = 4", "body_timeout = 5m", *FAST]) as gateway:
        ann, bob, cid, dan, eve = make(gateway, "ann", "bob", "cid", "dan", "eve")
        slow = []
        for token in (ann, ann, bob, bob):
            slow.append(upload(gateway, token))
            eventually("it is under way", lambda: uploads(gateway)[0] == len(slow))
        named(upload(gateway, ann).answer(), 429, "rate-limited", "uploads_max")
        check("a third one", gateway.post("/v1/queues/q/tasks", bytes(MIB), token=cid).status, 201)
        named(slow[0].answer(), 503, "busy", "uploads_max")  # the first one of who has the most
        held = upload(gateway, cid)
        eventually("it has its place", lambda: uploads(gateway)[0] == 4)
        other = upload(gateway, dan)
        named(slow[2].answer(), 503, "busy", "uploads_max")
        eventually("it has its place", lambda: uploads(gateway)[0] == 4)
        # Each has one now: who comes is told, and nobody is sent away.
        named(upload(gateway, eve).answer(), 503, "busy", "uploads_max")
        named(upload(gateway, bob).answer(), 503, "busy", "uploads_max")
        check("so many gave way", number_of(gateway, "taskmq_gateway_uploads_displaced_total"), 2)
        for one in (slow[1], slow[3], held, other):
            one.send(bytes(MIB - FRAME - 1))
            check("they go on", one.answer().status, 201)
        eventually("nothing is left", lambda: uploads(gateway) == (0, 0))


def try_spool(broker):
    """The same of the disk, where the places would do; also where a body tells no length."""
    settings = ["raw_bytes_max = 2M", "spool_bytes_max = 4M", "body_timeout = 5m", *FAST]
    with Gateway(broker, configuration=settings) as gateway:
        ann, bob, cid = make(gateway, "ann", "bob", "cid")
        slow = []
        for token in (ann, bob, ann, bob):
            slow.append(upload(gateway, token))
            eventually("it is under way", lambda: uploads(gateway)[0] == len(slow))
        named(upload(gateway, ann).answer(), 429, "rate-limited", "spool_bytes_max")
        check("a third one", gateway.post("/v1/queues/q/tasks", bytes(MIB), token=cid).status, 201)
        named(slow[0].answer(), 503, "busy", "spool_bytes_max")
        slow[0] = upload(gateway, ann)
        eventually("it is under way", lambda: uploads(gateway)[0] == 4)
        body = made(MIB + 5)
        answer = gateway.ask("POST", "/v1/queues/q/tasks", iter([body[:MIB], body[MIB:]]),
                             token=cid)
        check("in chunks", answer.status, 201)
        check("all of it", gateway.get(answer.fields["location"] + "/payload", token=cid).body == body,
              True)
        # Two of the others', because it turned out to be larger than what one of them had.
        check("so many gave way", number_of(gateway, "taskmq_gateway_uploads_displaced_total"), 3)


def try_vain(broker):
    """Nobody gives up his bytes for one who has no room even so."""
    settings = ["raw_bytes_max = 2M", "spool_bytes_max = 4M", "body_timeout = 5m", *FAST]
    with Gateway(broker, configuration=settings) as gateway:
        ann, bob, cid = make(gateway, "ann", "bob", "cid")
        small = [upload(gateway, token, 300 * 1024) for token in (ann, bob)]
        eventually("they are under way", lambda: uploads(gateway)[0] == 2)
        broker.process.send_signal(signal.SIGSTOP)  # what is whole waits, and stays
        held = [Slowly(gateway, MIB + MIB // 2, token) for token in (ann, bob)]
        for one in held:
            one.send(bytes(MIB + MIB // 2))
        # Seen from outside: the gateway's own numbers wait for the broker, too.
        eventually("both are whole", lambda: spooled(gateway).count(MIB + MIB // 2) == 2)
        eventually("the gateway knows", lambda: sleeps(gateway))
        named(upload(gateway, cid, MIB + MIB // 4).answer(), 503, "busy", "spool_bytes_max")
        broker.process.send_signal(signal.SIGCONT)
        check("nobody gave way", number_of(gateway, "taskmq_gateway_uploads_displaced_total"), 0)
        for one in small:
            one.send(bytes(300 * 1024 - FRAME - 1))
        for one in held + small:
            check("they go on", one.answer().status, 201)


def part_uploads():
    with Broker() as broker:
        try_vain(broker)
        try_places(broker)
        try_spool(broker)


# Connections, and memory for answers.

BODY = "x" * 200000


def ask(gateway, task_id, token, count):
    """Somebody who reads nothing of what he asks for."""
    return pipeline(gateway, f"GET /v1/tasks/{task_id}/payload HTTP/1.1\r\nHost: localhost\r\n"
                    f"Authorization: Bearer {token}\r\n\r\n".encode(), count)[0]


def make_answers(gateway, *tokens):
    return [submit(gateway, {"queue": "c", "data": BODY}, token=token) for token in tokens]


def try_all_connections(broker):
    """Who asks on every connection and reads no answer keeps nobody out, and others' answers stay."""
    settings = ["connections_max = 12", "output_bytes_max = 4K", "output_timeout = 5m", *FAST]
    with Gateway(broker, configuration=settings) as gateway:
        ann, bob = make(gateway, "ann", "bob")
        hers, his = make_answers(gateway, ann, bob)
        kept = ask(gateway, his, bob, 60)
        links = []
        for number in range(30):
            links.append(ask(gateway, hers, ann, 100))
            answer = gateway.get(f"/v1/tasks/{hers}/payload", token=bob)
            check(f"another one, {number}", answer.status, 404)
        eventually("some gave way", lambda: metric(gateway, "connections_displaced_total") >= 19)
        check("nobody was shut out", metric(gateway, "connections_refused_total"), 0)
        left = 60 * len(BODY)
        while left > 0:
            piece = kept.recv(1 << 20)
            assert piece, "the one of somebody else was closed"
            left -= piece.count(b"x")
        for link in (kept, *links):
            link.close()


def try_all_memory(broker):
    """Two who read nothing take all the memory of answers, each its part: a third one is served."""
    settings = ["memory_bytes_max = 1800K", "principal_bytes_max = 1M", "output_bytes_max = 64K",
                "output_timeout = 5m", *FAST]
    with Gateway(broker, configuration=settings) as gateway:
        ann, bob, cid = make(gateway, "ann", "bob", "cid")
        ids = make_answers(gateway, ann, bob, cid)
        links = []

        def is_full(number):
            # The system's buffers grow and take some of it: one more link fills that again.
            links.append(ask(gateway, ids[number], (ann, bob)[number], 100))
            told = gateway.get(f"/v1/tasks/{ids[number]}/payload", token=(ann, bob)[number])
            return told.status == 503 and "principal_bytes_max" in told.json["detail"]

        def gave_way():
            for number in range(2):
                eventually("its part is full", lambda: is_full(number))
            answer = gateway.get(f"/v1/tasks/{ids[2]}/payload", token=cid)
            check("a third one", (answer.status, len(answer.body)), (200, len(BODY)))
            return metric(gateway, "connections_displaced_total") > 0
        eventually("one gave way", gave_way)
        for link in links:
            link.close()


def await_stall(gateway, least):
    """So much is owed, and nothing is added to it any more."""
    seen = []

    def stalls():
        held = buffers(gateway)
        seen.append(held // 65536)  # the answer to who asks is some of it
        return held >= least and len(seen) >= 20 and len(set(seen[-20:])) == 1
    eventually("they owe all they may", stalls)


def try_reader(broker):
    """Who reads, however slowly, goes only if there is nobody who does not."""
    settings = ["connections_max = 8", "memory_bytes_max = 128M", "principal_bytes_max = 120M",
                "output_bytes_max = 64M", "output_timeout = 5m", *FAST]
    with Gateway(broker, configuration=settings) as gateway:
        ann, bob = make(gateway, "ann", "bob")
        task_id, = make_answers(gateway, ann)
        reader = ask(gateway, task_id, ann, 100)
        reader.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, MIB)
        # Its last answer is there before theirs: it would be the first to go.
        eventually("most of its answers are there", lambda: buffers(gateway) > 70 * len(BODY))
        links = [ask(gateway, task_id, ann, 40) for _ in range(7)]
        await_stall(gateway, 70 * len(BODY))
        all_of_it, began, taken = 100 * len(BODY), time.monotonic(), 0

        def others_are_idle():
            nonlocal taken
            seconds = time.monotonic() - began
            while taken < all_of_it * seconds / 6:
                taken += reader.recv(MIB // 4).count(b"x")
            return seconds > 3  # UNREAD_MS, and more
        eventually("one reads, and the others do not", others_are_idle)
        check("another one", gateway.get("/v1/session", token=bob).status, 200)
        check("one gave way", metric(gateway, "connections_displaced_total") >= 1, True)
        while taken < all_of_it:
            piece = reader.recv(MIB)
            assert piece, "the one that reads was closed"
            taken += piece.count(b"x")
        for link in (reader, *links):
            link.close()


def serve_third(gateway, token, task_id):
    """Somebody with little is served, whatever others hold, and it is they who give way."""
    def gave_way():
        answer = gateway.get(f"/v1/tasks/{task_id}/payload", token=token)
        check("a third one", (answer.status, len(answer.body)), (200, len(BODY)))
        return metric(gateway, "connections_displaced_total") > 0
    eventually("one gave way", gave_way)


SMALL = ["memory_bytes_max = 2M", "principal_bytes_max = 1M", "output_timeout = 5m",
         "body_timeout = 5m", *FAST]


def try_stream_memory(broker):
    """Two who read nothing of their downloads hold all the memory of streams."""
    with Gateway(broker, configuration=SMALL) as gateway:
        ann, bob, cid = make(gateway, "ann", "bob", "cid")
        task_id, = make_answers(gateway, cid)
        data = made(8 * MIB, 31)
        links = []
        for token in (ann, bob):
            target = gateway.post("/v1/queues/q/tasks", data, token=token).fields["location"]
            links += [Slow(gateway, target + "/payload", token=token) for _ in range(7)]
        eventually("they hold it", lambda: buffers(gateway) > 2 * MIB - len(BODY))
        serve_third(gateway, cid, task_id)
        for link in links:
            link.response.close()
            link.link.close()


def try_event_memory(broker):
    """The same of streams of events: they are told, and go on behind their cursor."""
    with Gateway(broker, configuration=["output_bytes_max = 128K", *SMALL]) as gateway:
        ann, bob, cid = make(gateway, "ann", "bob", "cid")
        task_id, = make_answers(gateway, cid)
        for number, token in enumerate((ann, bob)):
            fill(gateway, f"e{number}", 4000, 4, token)
        links = [Slow(gateway, "/v1/events?cursor=0-0", token=token)
                 for token in (ann, bob) for _ in range(8)]
        eventually("they hold it", lambda: buffers(gateway) > 2 * MIB - len(BODY))
        serve_third(gateway, cid, task_id)
        for link in links:
            link.response.close()
            link.link.close()


def try_body_memory(broker):
    """Two whose bodies never come to their end hold all the memory of bodies."""
    with Gateway(broker, configuration=SMALL) as gateway:
        ann, bob, cid = make(gateway, "ann", "bob", "cid")
        task_id, = make_answers(gateway, cid)
        slow = []
        for token in (ann, bob):
            for _ in range(5):
                slow.append(Slowly(gateway, 300000, token, target="/v1/tasks",
                                   Content_Type="application/json"))
                slow[-1].send(bytes(200000))
        eventually("they hold it", lambda: buffers(gateway) > 2 * MIB - len(BODY))
        serve_third(gateway, cid, task_id)
        told = slow[0].answer()
        check("it is told", (told.status, told.json["type"]), (503, "/problems/busy"))
        assert "memory_bytes_max" in told.json["detail"], told
        check("which request it was", told.fields["x-request-id"], told.json["instance"])
        for one in slow[1:]:
            one.link.close()


def part_connections():
    with Broker() as broker:
        try_reader(broker)
        try_stream_memory(broker)
        try_event_memory(broker)
        try_body_memory(broker)
        try_all_connections(broker)
        try_all_memory(broker)


# Streams.

def try_downloads(broker):
    """Who reads nothing of what it asked for keeps nobody from reading, and may come again."""
    settings = ["streams_max = 4", "principal_streams_max = 3", "output_timeout = 5m", *FAST]
    with Gateway(broker, configuration=settings) as gateway:
        cid, = make(gateway, "cid")
        stage = Stage(broker, gateway)
        data = made(8 * MIB, 21)
        target = f"/v1/tasks/{stage.submit(data)}/payload"
        mine = gateway.post("/v1/queues/q/tasks", data[:MIB], token=cid).json["task_id"]
        slow = [Slow(gateway, target) for _ in range(3)]
        eventually("their pieces wait", lambda: buffers(gateway) >= 3 * PIECE // 2)
        named(gateway.get(target), 429, "rate-limited", "principal_streams_max")
        for number in range(2):
            answer = gateway.get(f"/v1/tasks/{mine}/payload", token=cid)
            check(f"another one, {number}", (answer.status, answer.body == data[:MIB]), (200, True))
        check("nobody gave way", metric(gateway, "streams_displaced_total"), 0)
        watcher = Events(gateway, "/v1/events", token=cid)
        watcher.await_kind("live")
        answer = gateway.get(f"/v1/tasks/{mine}/payload", token=cid)
        check("with two streams", (answer.status, answer.body == data[:MIB]), (200, True))
        check("one gave way", metric(gateway, "streams_displaced_total"), 1)
        got, whole = slow[0].rest()
        check("it sees that it is not all", (whole, got == data[:len(got)]), (False, True))
        answer = gateway.get(target, Range=f"bytes={len(got)}-")
        check("and goes on", (answer.status, got + answer.body == data), (206, True))
        for one in slow[1:]:
            check("all of it", one.rest(), (data, True))
        watcher.stop()


def download(gateway, task_id, token):
    link = socket.create_connection(("127.0.0.1", gateway.port))
    link.sendall(f"GET /v1/tasks/{task_id}/payload HTTP/1.1\r\nHost: localhost\r\n"
                 f"Connection: close\r\nAuthorization: Bearer {token}\r\n\r\n".encode())
    return link


def order_of(links):
    """Reads all of them to their end. Which one ended when, and the bytes of each."""
    order, taken = [], dict.fromkeys(links, 0)
    with selectors.DefaultSelector() as selector:
        for link in links:
            selector.register(link, selectors.EVENT_READ)
        while len(order) < len(links):
            for key, _ in selector.select(PATIENCE_S) or [(None, None)]:
                assert key, "nothing comes"
                piece = key.fileobj.recv(1 << 20)
                taken[key.fileobj] += len(piece)
                if not piece:
                    selector.unregister(key.fileobj)
                    order.append(key.fileobj)
    return order, taken


def part_pieces():
    """Who reads much at a time has his pieces in turn with who reads little."""
    many, length = 30, 8 * PIECE
    settings = ["request_timeout = 1m", "grace = 1m", *FAST]
    with Broker() as broker, Gateway(broker, configuration=settings) as gateway:
        ann, bob = make(gateway, "ann", "bob")
        ids = [gateway.post("/v1/queues/q/tasks", made(length, seed), token=token).json["task_id"]
               for seed, token in enumerate((ann, bob))]
        broker.process.send_signal(signal.SIGSTOP)  # all of them come to stand in the line
        links = [download(gateway, ids[0], ann) for _ in range(many)]
        links.append(download(gateway, ids[1], bob))
        check("they were read", gateway.get("/healthz").status, 200)
        broker.process.send_signal(signal.SIGCONT)
        order, taken = order_of(links)
        check("all of each", min(taken.values()) > length, True)
        before = order.index(links[-1])
        print(f"{before} of {many} were whole before the other one's")
        assert before < many // 2, before
        for link in links:
            link.close()


def try_events(broker):
    """Streams of events give way as well, and go on from their cursor when there is room."""
    with Gateway(broker, configuration=["streams_max = 4", *FAST]) as gateway:
        ann, bob = make(gateway, "ann", "bob")
        streams = [Events(gateway, "/v1/events", token=ann, again=False) for _ in range(4)]
        for stream in streams:
            stream.await_kind("live")
        named(gateway.get("/v1/events", token=ann), 503, "busy", "streams_max")
        other = Events(gateway, "/v1/events", token=bob)
        other.await_kind("live")
        eventually("one was told to stop", lambda: sum("stop" in one.kinds() for one in streams) == 1)
        gone = next(one for one in streams if "stop" in one.kinds())
        task_id = submit(gateway, {"queue": "shared"}, token=ann)
        rest = [one for one in streams if one is not gone]
        rest[0].stop()
        eventually("there is room", lambda: metric(gateway, "streams") == 3)
        again = Events(gateway, f"/v1/events?cursor={gone.last_id}", token=ann)
        check("what it missed", again.await_kind("submitted")[2]["task_id"], task_id)
        for stream in (*rest[1:], other, again):
            stream.stop()


def try_hub(broker):
    """The only reader of a source goes just when another one would have joined it."""
    with Gateway(broker, configuration=["streams_max = 2", *FAST]) as gateway:
        ann, bob = make(gateway, "ann", "bob", role="observer")
        first = [Events(gateway, f"/v1/events?queue={name}", token=ann, again=False)
                 for name in ("one", "two")]
        for stream in first:
            cursor = stream.await_kind("live")[1]
        for number in range(4):
            theirs = Events(gateway, f"/v1/events?queue=one&cursor={cursor}", token=bob, again=False)
            theirs.await_kind("live")
            task_id = submit(gateway, {"queue": "one"})
            check("it hears", theirs.await_kind("submitted")[2]["task_id"], task_id)
            cursor = theirs.last_id
            theirs.stop()
            eventually("it has gone", lambda: metric(gateway, "streams") < 2)
            stream = Events(gateway, f"/v1/events?queue=one&cursor={cursor}", token=ann, again=False)
            stream.await_kind("live")
            first.append(stream)
        for stream in first:
            stream.stop()


def try_behind(broker):
    """Streams that stand behind those that gave way do not take the places that these left."""
    with Gateway(broker, configuration=["streams_max = 4", *FAST]) as gateway:
        ann, bob = make(gateway, "ann", "bob")
        reader = Events(gateway, "/v1/events", token=ann, again=False)
        cursor = reader.await_kind("live")[1]
        data = (f"GET /v1/events?cursor={cursor} HTTP/1.1\r\nHost: localhost\r\n"
                f"Authorization: Bearer {ann}\r\n\r\n".encode())
        links = []
        for number in range(3):
            links.append(socket.create_connection(("127.0.0.1", gateway.port)))
            links[-1].sendall(data * 50)
            eventually("it streams", lambda: metric(gateway, "streams") == number + 2)
        reader.await_kind("live")
        others = [Events(gateway, "/v1/events", token=bob, again=False) for _ in range(2)]
        for other in others:
            other.await_kind("live")
        check("two gave way", metric(gateway, "streams_displaced_total"), 2)
        for one in (reader, *others):
            one.stop()
        for link in links:
            link.close()


def part_streams():
    with Broker() as broker:
        try_behind(broker)
        try_downloads(broker)
        try_events(broker)
        try_hub(broker)


# Long polls.

def try_polls(broker):
    """Who waits for most of what may be waited for is answered for one who waits for fewer."""
    settings = ["wait_ids_max = 10", "principal_wait_ids_max = 4", *FAST]
    with Gateway(broker, configuration=settings) as gateway:
        ann, bob, cid = make(gateway, "ann", "bob", "cid")

        def poll(token, count):
            ids = [submit(gateway, {"queue": "never"}, token=token) for _ in range(count)]
            return ids, Later(gateway.post, "/v1/tasks:wait", {"ids": ids}, token=token)
        ids, first = poll(ann, 4)
        await_waits(gateway, 4)
        _, second = poll(bob, 4)
        await_waits(gateway, 8)
        _, third = poll(cid, 2)
        answer = first.get()
        check("who has the most", (answer.status, answer.json), (200, {"items": [], "pending": ids}))
        check("it is counted", metric(gateway, "waits_displaced_total"), 1)
        await_waits(gateway, 6)
        _, refused = poll(ann, 4)
        named(refused.get(), 503, "overloaded", "wait_ids_max")  # then it would have as many as others
        check("nobody else gave way", (second.answer, third.answer), (None, None))
        single = Later(gateway.get, f"/v1/tasks/{ids[0]}", token=ann, Prefer="wait=50")
        await_waits(gateway, 7)
        check("a single one has room", (single.answer, second.answer), (None, None))


def part_polls():
    with Broker() as broker:
        try_polls(broker)


# Filters, turns to catch up, and the time that streams take.

def part_filters():
    with Broker() as broker, Gateway(broker, configuration=["principal_filters_max = 3",
                                                            *FAST]) as gateway:
        ann, bob = make(gateway, "ann", "bob")
        streams = [Events(gateway, f"/v1/events?queue=q{number}", token=ann) for number in range(3)]
        streams.append(Events(gateway, "/v1/events?queue=q2", token=ann))  # it is one of them
        for stream in streams:
            stream.await_kind("live")
        for target in ("/v1/events", "/v1/events?queue=q0&queue=q1",
                       f"/v1/tasks/{submit(gateway, {'queue': 'q'}, token=ann)}/stream"):
            named(gateway.get(target, token=ann), 429, "rate-limited", "principal_filters_max")
        other = Events(gateway, "/v1/events?queue=q9", token=bob)
        other.await_kind("live")
        streams[2].stop()  # the other one of its filter still has it
        eventually("it has gone", lambda: metric(gateway, "streams") == 4)
        named(gateway.get("/v1/events", token=ann), 429, "rate-limited", "principal_filters_max")
        streams[3].stop()
        eventually("it has gone", lambda: metric(gateway, "streams") == 3)
        last = Events(gateway, "/v1/events", token=ann)
        last.await_kind("live")
        for stream in (*streams[:2], other, last):
            stream.stop()


def busy(gateway):
    """Connections with a request that is whole."""
    text = gateway.get("/metrics").body.decode()
    return sum(int(re.search(rf'^taskmq_gateway_connections{{state="{state}"}} (\d+)', text, re.M).group(1))
               for state in ("waiting", "streaming"))


def part_turns():
    """A principal has a part of the turns to catch up, however many streams it opens."""
    settings = ["request_timeout = 500ms", "grace = 500ms", *FAST]
    with Broker() as broker, Gateway(broker, configuration=settings) as gateway:
        ann, bob = make(gateway, "ann", "bob")
        broker.process.send_signal(signal.SIGSTOP)  # nobody's turn ends
        streams = [Events(gateway, "/v1/events?cursor=0-0", token=ann) for _ in range(70)]
        eventually("they wait", lambda: metric(gateway, "streams_waiting") == 70 - 16)
        streams.append(Events(gateway, "/v1/events?cursor=0-0", token=bob))
        eventually("it is there", lambda: busy(gateway) == 71 + 1)  # … and who asks for the numbers
        check("it waits for nobody", metric(gateway, "streams_waiting"), 70 - 16)
        broker.process.send_signal(signal.SIGCONT)
        for stream in streams:
            stream.await_kind("live")
        check("nobody waits", metric(gateway, "streams_waiting"), 0)
        for stream in streams:
            stream.stop()


def part_cost():
    """Streams of all tasks are paid by those who read them."""
    with Broker() as broker, Gateway(broker, configuration=FAST + ["principal_time = 15ms"]) as gateway:
        eve, kim = make(gateway, "eve", "kim", role="observer")
        fill(gateway, "cost", 4000, 6)
        reader = Events(gateway, "/v1/events?queue=cost", token=kim, again=False)
        reader.await_kind("live")

        def refused():
            check("another one", gateway.get("/v1/session", token=kim).status, 200)
            answer = gateway.get("/v1/session", token=eve)
            return answer if answer.status != 200 else None
        streams = [Events(gateway, f"/v1/events?queue=cost&queue=x{number}&cursor=0-0", token=eve,
                          again=False) for number in range(8)]
        named(eventually("it has to pay", refused), 429, "rate-limited", "principal_time")
        eventually("all are answered", lambda: all(stream.status for stream in streams))
        let_in = [stream for stream in streams if stream.status == 200]
        assert let_in, "the first one"
        for stream in let_in:
            stream.await_kind("live")
            numbers = stream.numbers()
            check("each once and in order", numbers, sorted(set(numbers)))
            stream.stop()
        reader.stop()


if __name__ == "__main__":
    {"uploads": part_uploads, "connections": part_connections, "streams": part_streams,
     "polls": part_polls, "pieces": part_pieces, "filters": part_filters, "turns": part_turns,
     "cost": part_cost}[sys.argv[1]]()
