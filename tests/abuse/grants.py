# This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
# If a copy of the MPL was not distributed with this file, You can obtain one at
# https://mozilla.org/MPL/2.0/.

"""Who was let in, and wants more than the access file gives, or goes on after it was taken away."""

import os
import re
import subprocess
import time

import taskmq_pb2 as pb
import zmq
from floods import operations
from links import hello_of, say_hello
from stage import LIMIT, NOT_FOUND, OK, PATIENCE_S
from wire import NO_LINK, events_of, uuid7
from zmq.utils import z85
from zmq.utils.monitor import recv_monitor_message

from keys import HANDSHAKES, KeyClient, door_of, handshake, key_text

CONFLICT, DENIED, STALE_LEASE, QUEUED = 8, 15, 10, 1
OPEN_READS = 64  # of one link
UUID = re.compile("[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
REFUSED = (zmq.EVENT_HANDSHAKE_FAILED_AUTH, 400)


class Member(KeyClient):
    CHANGES = KeyClient.CHANGES | {"enroll", "answer", "adopt", "retry", "resume", "set", "purge",
                                   "ask", "checkpoint"}


class People:
    """The principals of a case, each with a key. A line of the access file has {key} for it."""

    def __init__(self, on, **lines):
        self.on, self.lines = on, lines
        self.pairs = {name: zmq.curve_keypair() for name in lines}
        on.stop_broker()
        self.write()
        on.broker.start()

    @property
    def path(self):
        return os.path.join(self.on.broker.data, "access")

    def write(self):
        text = "".join(f"{name} {line.format(key=key_text(self.pairs[name][0]))}\n"
                       for name, line in self.lines.items())
        part = self.path + ".new"
        with open(part, "w", encoding="ascii",
                  opener=lambda path, flags: os.open(path, flags, 0o600)) as file:
            file.write(text)
        os.rename(part, self.path)

    def read(self):
        with open(self.path, encoding="ascii") as file:
            return file.read()

    def bare(self, name):
        """Is connected, and has said nothing."""
        return Member(*door_of(self.on), self.pairs[name])

    def link(self, name):
        link = self.bare(name)
        self.on.clients.append(link)
        assert say_hello(link) == OK
        return link

    def handshake(self, name):
        return handshake(zmq.Context.instance(), *door_of(self.on), self.pairs[name])


def taskctl(on, *words):
    program = os.path.join(os.environ["TASKMQ_BIN"], "taskctl")
    return subprocess.run([program, "-e", on.endpoint, *words], check=True, capture_output=True,
                          text=True, timeout=PATIENCE_S).stdout


def code_of(link, kind, operation, body=b""):
    return link.reply_to(link.send(kind, operation, body)).code


def task_of(link, task):
    return link.request("get", pb.Get(task_id=task)).task


def everything_said(link):
    """All that came and nobody has read yet."""
    parts = list(link.kept)
    while more := link.receive(0):
        parts += more
    return parts


def speaks_of(part, tasks):
    kind, said, body = part
    if kind == "events":
        return any(event.task_id in tasks for event in events_of(body))
    return any(task in said.SerializeToString() for task in tasks)


def await_refusal(monitor):
    """Until this socket has tried to come back, and was told no: nothing more can come to it."""
    while True:
        assert monitor.poll(PATIENCE_S * 1000), "the connection was not cut"
        event = recv_monitor_message(monitor)
        if (event["event"], event["value"]) == REFUSED:
            return


def taken_back(on):
    """A key revoked beside a lease, a wait, a subscription and replies under way: cut at once"""
    people = People(on, gone="key:{key} admin(default)", other="key:{key} client(default)")
    on.begin()
    operator, gone, other = on.client(), people.link("gone"), people.link("other")
    held, = operator.fill(1, queue="held")
    gone.request("register", pb.Register(worker_id=os.urandom(16), name="w", queues=["held"],
                                         capacity=1))
    assert gone.take("assignment")[1].task_id == held
    waited, = operator.fill(1)
    gone.request("subscribe", pb.Subscribe(subscription=1, from_now=True))
    gone.send("wait", pb.Wait(task_ids=[waited]))
    monitor = gone.socket.get_monitor_socket(HANDSHAKES)
    gone.message([("list", pb.List(limit=1000))] * 64)
    taskctl(on, "key", "revoke", "gone")
    after = operator.fill(20)
    operator.request("cancel", pb.Cancel(task_id=waited))
    await_refusal(monitor)
    gone.socket.disable_monitor()
    late = [part for part in everything_said(gone) if speaks_of(part, after)]
    assert not late, late
    # Its lease went back, not counted, and offline it does not come in either.
    on.until("the task waits again", lambda: task_of(operator, held).status == QUEUED)
    assert task_of(operator, held).failures == 0
    gone.drop()
    assert people.handshake("gone") == REFUSED
    assert code_of(other, "heartbeat", pb.Heartbeat()) == OK  # a neighbour notices nothing
    on.went_on()


def ended(on):
    """A principal whose time ends while it holds a lease and waits: cut within the second"""
    people = People(on, brief="key:{key} admin(default)", other="key:{key} client(default)")
    on.begin()
    operator, brief, other = on.client(), people.link("brief"), people.link("other")
    held, = operator.fill(1, queue="held")
    brief.request("register", pb.Register(worker_id=os.urandom(16), name="w", queues=["held"],
                                          capacity=1))
    assert brief.take("assignment")[1].task_id == held
    brief.request("subscribe", pb.Subscribe(subscription=1, from_now=True))
    monitor = brief.socket.get_monitor_socket(HANDSHAKES)
    end = time.time() + 3
    people.lines["brief"] += time.strftime(" until=%Y-%m-%dT%H:%M:%SZ", time.gmtime(end))
    people.write()
    taskctl(on, "reload")
    await_refusal(monitor)
    assert time.time() > end - 1, "it was cut before its time"
    brief.socket.disable_monitor()
    after = operator.fill(20)
    late = [part for part in everything_said(brief) if speaks_of(part, after)]
    assert not late, late
    on.until("the task waits again", lambda: task_of(operator, held).status == QUEUED)
    assert task_of(operator, held).failures == 0
    brief.drop()
    assert people.handshake("brief") == REFUSED
    assert code_of(other, "heartbeat", pb.Heartbeat()) == OK
    on.went_on()


def narrowed(on):
    """A principal that has less than before, while it is connected: its link ends, it sees less"""
    people = People(on, less="key:{key} reader(default) client(default)")
    on.begin()
    operator, less = on.client(), people.link("less")
    before, = operator.fill(1, queue="b")
    less.request("subscribe", pb.Subscribe(subscription=1, from_now=True))
    assert task_of(less, before).queue == "b"
    people.lines["less"] = "key:{key} client(default/a)"
    people.write()
    taskctl(on, "reload")
    after = operator.fill(20, queue="b")
    assert code_of(less, "get", pb.Get(task_id=before)) == NO_LINK
    late = [part for part in everything_said(less) if speaks_of(part, after)]
    assert not late, late
    less.drop()
    less = people.link("less")
    assert code_of(less, "get", pb.Get(task_id=before)) == NOT_FOUND
    queues = ["a", "b"] * 128  # in one request, each is judged alone
    items = less.submit([pb.TaskSpec(task_id=uuid7(), queue=queue) for queue in queues],
                        [b""] * len(queues))
    assert [item.code for item in items] == [OK, DENIED] * 128, items
    on.went_on()


def before_hello(on):
    """Every request before a hello, or with the token of another link or principal: NO_LINK"""
    people = People(on, one="key:{key} admin(default)", two="key:{key} admin(default)")
    on.begin()
    operator, other = on.client(), people.link("two")
    invented = os.urandom(16)
    asked, answered = 0, 0
    for token in (b"", invented, operator.token, other.token):
        link = people.bare("one")
        link.token = token
        for kind, make in operations().items():
            if kind == "hello":  # the one word that needs no token
                continue
            codes = link.ask([(kind, make())] * 4)
            asked += codes.total()
            answered += codes.total() - codes[NO_LINK]
        link.drop()
    link = people.bare("one")
    codes = link.ask([("submit", operations()["submit"]())] * on.amount(1024, 256))
    asked, answered = asked + codes.total(), answered + codes.total() - codes[NO_LINK]
    assert answered == 0, f"{answered} of {asked} were answered"
    link.drop()
    count = operator.request("count", pb.Count(filter=pb.Filter(queues=["flood"]))).counted.count
    assert count == 0, count
    assert code_of(other, "heartbeat", pb.Heartbeat()) == OK
    on.went_on()
    print(f"{asked} requests, {answered} answered")


def by_id():
    """Each request that names a task, for an id."""
    return {
        "get": lambda task: pb.Get(task_id=task),
        "result": lambda task: pb.Get(task_id=task),
        "payload": lambda task: pb.Get(task_id=task),
        "task_events": lambda task: pb.TaskEvents(task_id=task),
        "cancel": lambda task: pb.Cancel(task_id=task),
        "resolve": lambda task: pb.Resolve(suffix=task.hex()),
        "wait": lambda task: pb.Wait(task_ids=[task]),
        "why": lambda task: pb.Why(task_id=task),
        "answer": lambda task: pb.Answer(task_id=task, items=[pb.AnswerItem(key="k")]),
        "inbox": lambda task: pb.Inbox(task_id=task),
        "read_log": lambda task: pb.ReadLog(task_id=task, stream=1),
        "attempts": lambda task: pb.Attempts(task_id=task),
        "adopt": lambda task: pb.Adopt(task_id=task, attempt=1),
        "retry": lambda task: pb.Retry(task_ids=[task]),
        "resume": lambda task: pb.Retry(task_ids=[task]),
        "set": lambda task: pb.Set(task_ids=[task], priority_plus_1=1),
        "purge": lambda task: pb.Purge(task_ids=[task]),
        "submit": needs_other,
    }


def needs_other(task):
    """Two tasks that name this one: one waits for it, one is a part of it."""
    after = pb.Extra(after=[pb.Dependency(task_id=task)])
    return pb.Submit(tasks=[pb.TaskSpec(task_id=uuid7(), queue="q", extra=extra)
                            for extra in (after, pb.Extra(parent=task))])


def items_of(reply):
    """What a reply says of each task by itself."""
    body = reply.WhichOneof("body")
    return getattr(reply, body).items if body in ("waited", "changed", "submitted") else ()


def said_about(link, kind, tasks):
    """The replies to a request of this kind about each of these, in one message, without ids."""
    numbers = list(link.message([(kind, by_id()[kind](task)) for task in tasks]))
    order, replies = [], {}
    while len(replies) < len(numbers):
        for part, reply, _ in [*link.kept, *link.receive(1)]:
            if part == "reply" and reply.id in numbers:
                order.append(reply.id)
                replies[reply.id] = reply
        link.kept.clear()
    for reply in replies.values():
        reply.id = 0
        for item in items_of(reply):
            item.text = UUID.sub("", item.text)
            item.task_id = b""
    return [numbers.index(number) for number in order], [replies[number] for number in numbers]


def is_answer(reply):
    items = items_of(reply)
    return any(item.code == OK for item in items) if items else reply.code == OK


def time_to_refuse(link, foreign, count):
    """Medians of asking for tasks of others and for none at all, by turns, in us."""
    waits = ([], [])
    for number in range(2 * count):
        task = uuid7() if number % 2 else foreign[number // 2 % len(foreign)]
        began = time.monotonic()
        assert code_of(link, "get", pb.Get(task_id=task)) == NOT_FOUND
        waits[number % 2].append((time.monotonic() - began) * 1e6)
    return tuple(sorted(values)[len(values) // 2] for values in waits)


def others_tasks(on):
    """Tasks of others, by every request that takes an id: as if there were none"""
    people = People(on, owner="key:{key} client(default)", admin="key:{key} admin(default)",
                    thief="key:{key} client(default) reads=1000000/s")
    on.begin()
    owner, admin, thief = people.link("owner"), people.link("admin"), people.link("thief")
    far = on.client("other")
    foreign = owner.fill(OPEN_READS, b"x", queue="q") + far.fill(OPEN_READS, b"x", queue="q")
    ended = foreign[:OPEN_READS // 2]
    for task in ended:
        owner.request("cancel", pb.Cancel(task_id=task))
    removed = admin.request("purge", pb.Purge(task_ids=ended[::2])).changed.items
    assert {item.code for item in removed} == {OK}, removed
    absent = [uuid7() for _ in foreign]
    mixed = [task for pair in zip(foreign, absent) for task in pair]
    asked = 0
    for kind in by_id():
        for first in range(0, len(mixed), OPEN_READS):
            order, replies = said_about(thief, kind, mixed[first:first + OPEN_READS])
            asked += OPEN_READS // 2
            assert not any(is_answer(reply) for reply in replies), (kind, replies)
            assert len({reply.SerializeToString() for reply in replies}) == 1, (kind, replies)
            # Short ids are looked up by several readers side by side: which is first is chance.
            assert order == sorted(order) or kind == "resolve", (kind, order)
    waited = thief.request("wait", pb.Wait(task_ids=mixed)).waited.items
    assert {item.code for item in waited} == {NOT_FOUND} and len(waited) == len(mixed)
    asked += len(foreign)
    # Filters, subscriptions from the beginning with a snapshot, and the same ids used again.
    assert not thief.request("list", pb.List(limit=1000)).page.tasks
    assert thief.request("count", pb.Count()).counted.count == 0
    only = pb.Filter(task_ids=foreign[:OPEN_READS // 2])
    thief.request("subscribe", pb.Subscribe(subscription=1, snapshot=True))
    thief.request("subscribe", pb.Subscribe(subscription=2, snapshot=True, filter=only))
    items = thief.submit([pb.TaskSpec(task_id=task, queue="q") for task in foreign[:20]],
                         [b""] * 20)
    assert {(item.code, item.status, item.text) for item in items} == {
        (CONFLICT, 0, "the id or key is in use")}, items
    own, = thief.fill(1, queue="q")
    thief.request("cancel", pb.Cancel(task_id=own))
    seen = []
    on.until("its own end is told", lambda: seen.extend(thief.receive(0.1)) or any(
        speaks_of(part, [own]) for part in [*seen, *thief.kept]))
    assert not any(speaks_of(part, foreign) for part in [*seen, *thief.kept])
    asked += 3 * len(foreign) + 20
    link = people.bare("thief")
    reply = link.reply_to(link.send("hello", hello_of("other")))
    assert (reply.code, reply.text) == (DENIED, "no access to namespace other"), reply
    link.drop()
    theirs, none = time_to_refuse(thief, foreign, on.amount(5000, 100))
    on.figures.append(f"to be told that there is no task: {theirs:.0f} us for another's, {none:.0f} us "
                      "for none at all (medians)")
    # Nothing of it changed anything.
    untouched = foreign[len(ended):OPEN_READS]
    assert {task_of(owner, task).status for task in untouched} == {QUEUED}
    on.went_on()
    print(f"{asked} requests about tasks of others, 0 answered")



def others_leases(on):
    """A lease and a worker of another principal: its secret, its worker id, and a word too late"""
    people = People(on, one="key:{key} worker(default/q)", two="key:{key} worker(default/q)")
    on.begin()
    operator, one, two = on.client(), people.link("one"), people.link("two")
    mine, others = os.urandom(16), os.urandom(16)
    one.request("register", pb.Register(worker_id=mine, name="w", queues=["q"], capacity=1))
    task, = operator.fill(1, queue="q")
    held = one.take("assignment")[1]
    lease = pb.Lease(task_id=task, attempt=held.attempt, secret=held.secret)
    guess = pb.Lease(task_id=task, attempt=held.attempt, secret=os.urandom(16))

    def ends(lease):
        return (("started", pb.Started(lease=lease)), ("complete", pb.Complete(lease=lease)),
                ("fail", pb.Fail(lease=lease, code=1)), ("release", pb.Release(lease=lease)),
                ("push", pb.Push(lease=lease, status_message="x")),
                ("cancel_ack", pb.CancelAck(lease=lease)),
                ("ask", pb.Ask(lease=lease, request="1")),
                ("take_answers", pb.TakeAnswers(lease=lease)),
                ("checkpoint", pb.Checkpoint(lease=lease)),
                ("checkpoint_read", pb.CheckpointRead(lease=lease)),
                ("log", pb.Log(lease=lease, stream=1, log_bytes=1), b"x"))

    for kind, *operation in ends(lease):
        assert code_of(two, kind, *operation) == DENIED, kind
    for link in (one, two):
        for kind, *operation in ends(guess):
            assert code_of(link, kind, *operation) == STALE_LEASE, kind
    takes = pb.Register(worker_id=mine, name="w", queues=["q"], capacity=1, leases=[lease])
    assert code_of(two, "register", takes) == DENIED
    for kind, operation in (("leave", pb.Leave(worker_id=mine)),
                            ("renew", pb.Renew(worker_id=mine, leases=[lease]))):
        two.reply_to(two.send(kind, operation))
    # Under a worker of its own it brings nothing in either.
    takes.worker_id = others
    reply = two.request("register", takes)
    assert [item.code for item in reply.registered.leases] != [OK], reply
    assert task_of(operator, task).worker == "w"
    # The task goes back, somebody else takes it, and the first one comes too late.
    one.request("leave", pb.Leave(worker_id=mine))
    held = two.take("assignment")[1]
    assert held.task_id == task
    for kind, *operation in ends(lease):
        assert code_of(one, kind, *operation) in (DENIED, STALE_LEASE), kind
    assert code_of(two, "complete", pb.Complete(lease=pb.Lease(
        task_id=task, attempt=held.attempt, secret=held.secret))) == OK
    on.went_on()


def invited(on):
    """An invitation whose answer got lost is good for the same key again, and for no other"""
    people = People(on, ticket="invite:{key} worker(default/q) uses=1 as=new")
    on.begin()
    keys = [zmq.curve_keypair() for _ in range(2)]
    first, second = (pb.Enroll(public_key=z85.decode(pair[0])) for pair in keys)
    link = people.bare("ticket")
    assert say_hello(link) == OK
    link.send("enroll", first)
    link.socket.close(linger=PATIENCE_S * 1000)  # the word arrives, the answer does not
    on.until("the key stands in the file", lambda: key_text(keys[0][0]) in people.read())
    link = people.link("ticket")
    assert code_of(link, "get", pb.Get(task_id=uuid7())) == DENIED
    assert link.request("enroll", first).enrolled.name == "new"
    assert code_of(link, "enroll", second) == DENIED
    people.pairs["new"], people.pairs["none"] = keys
    assert people.read().count(key_text(keys[0][0])) == 1
    assert say_hello(people.bare("new")) == OK
    assert people.handshake("none") == REFUSED
    on.went_on()


def frozen_readers(on):
    """64 links full of subscriptions that read nothing: each is bounded, others are served"""
    people = People(on, slow="key:{key} reader(default) links=64 subscriptions=5000 "
                             "reads=1000000/s")
    large = on.client()
    large.fill(on.amount(400, 100), b"x", queue="large")
    on.begin()
    links = [people.link("slow") for _ in range(64)]
    link = people.bare("slow")
    reply = link.reply_to(link.send("hello", hello_of("")))
    assert reply.code == LIMIT and reply.retry_after_ms > 0, reply
    link.drop()
    each = on.amount(10000, 500)
    for link in links:
        for first in range(1, each + 1, 500):
            link.message([("subscribe", pb.Subscribe(subscription=first + i, snapshot=i == 0))
                          for i in range(500)])
            link.message([("list", pb.List(limit=1000))] * 8)
    on.went_on()
    large.fill(on.amount(2000, 200), b"x", queue="large")
    on.until("no more than the quota", lambda: 0 < on.counter("subscriptions") <= 5000)
    on.went_on()
    on.assert_growth_below(512)


def quotas_stay(on):
    """Quotas of tasks, bytes, rates, reads and leases: refused with a time, also after a restart"""
    people = People(on,
                    few="key:{key} client(default) tasks=5",
                    small="key:{key} client(default) bytes=64K",
                    slow="key:{key} client(default) rate=1/s burst=3 reads=1/s",
                    hand="key:{key} worker(default/h) leases=2")

    def submits(link, payload=b"", queue="q"):
        item, = link.submit([pb.TaskSpec(task_id=uuid7(), queue=queue)], [payload])
        assert item.code == OK or (item.code == LIMIT and item.retry_after_ms > 0), item
        return item

    def full(link, payload=b""):
        return submits(link, payload).code == LIMIT

    few = people.link("few")
    first, *_ = (submits(few).task_id for _ in range(5))
    assert full(few)
    small = people.link("small")
    assert [submits(small, bytes(30000)).code for _ in range(3)] == [OK, OK, LIMIT]
    assert submits(small, bytes(100)).code == OK
    slow = people.link("slow")
    codes = [submits(slow).code for _ in range(20)]
    assert codes[:3] == [OK] * 3 and LIMIT in codes, codes
    codes = slow.ask([("count", pb.Count())] * 50)  # one that is refused says when
    assert codes[OK] >= 4 and codes[LIMIT] > 0, codes
    operator = on.client()
    operator.fill(5, queue="h")
    worker, hand = os.urandom(16), people.link("hand")
    register = pb.Register(worker_id=worker, name="w", queues=["h"], capacity=5)
    hand.request("register", register)
    held = [hand.take("assignment")[1] for _ in range(2)]
    on.restart()
    on.begin()
    few, small, hand = people.link("few"), people.link("small"), people.link("hand")
    assert full(few) and full(small, bytes(30000))
    register.leases.extend(pb.Lease(task_id=each.task_id, attempt=each.attempt,
                                    secret=each.secret) for each in held)
    hand.request("register", register)
    operator = on.client()
    depth = operator.request("stats", pb.Stats()).stats.queues
    assert {item.queue: item.working for item in depth}["h"] == 2, depth
    # What ends makes room.
    few.request("cancel", pb.Cancel(task_id=first))
    assert submits(few).code == OK and full(few)
    hand.request("complete", pb.Complete(lease=register.leases[0]))
    assert hand.take("assignment")[1].task_id not in {each.task_id for each in held}
    on.went_on()


CASES = [taken_back, ended, narrowed, before_hello, others_tasks, others_leases, invited,
         frozen_readers, quotas_stay]
for case in CASES:
    case.broker = {"options": ("--listen", "tcp://127.0.0.1:0?curve")}
