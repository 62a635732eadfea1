# This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
# If a copy of the MPL was not distributed with this file, You can obtain one at
# https://mozilla.org/MPL/2.0/.

"""Drives the broker by PROTOCOL.md and taskmq.proto alone: submit, work, watch, wait, repeat, and go
on after the broker was killed. That it passes proves the document sufficient."""

import os

import taskmq_pb2 as pb
from broker import Broker
from wire import Link, Refused, events_of, uuid7

SUBMITTED, CLAIMED, COMPLETED = 1, 2, 8
STATUS_COMPLETED, STATUS_CANCELLED = 4, 6
NO_LINK, NOT_FOUND, CONFLICT, WRONG_STATUS, STALE_LEASE = 4, 5, 8, 9, 10
CANCELLED = 73


def refused_with(code, call, *arguments):
    try:
        call(*arguments)
    except Refused as refusal:
        assert refusal.code == code, refusal
    else:
        raise AssertionError(f"expected code {code}")


def test_submit(link):
    ids = [uuid7() for _ in range(3)]
    specs = [pb.TaskSpec(task_id=ids[0], queue="hash", content_type="text/plain"),
             pb.TaskSpec(task_id=ids[1], queue="not a name"),
             pb.TaskSpec(task_id=ids[2], queue="hash", labels=[pb.Label(key="k", value="ü")])]
    items = link.submit(specs, [b"abc", b"", b"de"])
    assert [item.code for item in items] == [0, 1, 0]
    assert items[0].task_id == ids[0] and not items[0].existing
    again = link.submit([specs[0]], [b"abc"])
    assert again[0].existing and again[0].code == 0
    other = link.submit([specs[0]], [b"other"])
    assert other[0].code == CONFLICT
    reply, payload = link.request_with_body("payload", pb.Get(task_id=ids[0]))
    assert payload == b"abc" and reply.task.queue == "hash" and reply.task.owner
    refused_with(NOT_FOUND, link.request, "get", pb.Get(task_id=uuid7()))
    refused_with(WRONG_STATUS, link.request, "result", pb.Get(task_id=ids[0]))
    assert link.request("count", pb.Count()).counted.count == 2
    page = link.request("list", pb.List(limit=1)).page
    assert page.tasks[0].task_id == ids[2] and page.next
    page = link.request("list", pb.List(limit=1, cursor=page.next)).page
    assert page.tasks[0].task_id == ids[0]
    suffix = ids[2].hex()[-8:]
    assert link.request("resolve", pb.Resolve(suffix=suffix)).resolved == ids[2]
    return [ids[0], ids[2]]


def register(link, worker_id, leases=(), seen=0):
    return link.request("register", pb.Register(worker_id=worker_id, name="python", queues=["hash"],
                                                capacity=2, seen=seen, leases=leases)).registered


def lease_of(assignment):
    return pb.Lease(task_id=assignment.task_id, attempt=assignment.attempt,
                    secret=assignment.secret)


def test_work(link, ids):
    worker_id = os.urandom(16)
    register(link, worker_id)
    held = {}
    for _ in ids:
        _, assignment, payload = link.take("assignment")
        held[assignment.task_id] = (assignment, payload)
    assert sorted(held) == sorted(ids)
    assert held[ids[0]][1] == b"abc" and held[ids[1]][1] == b"de"
    lease = lease_of(held[ids[0]][0])
    link.request("started", pb.Started(lease=lease))
    states = link.request("renew", pb.Renew(worker_id=worker_id, leases=[lease])).renewed.leases
    assert states[0].code == 0 and states[0].lease_ms > 0
    link.request("push", pb.Push(lease=lease, status_message="half way",
                                 progress=pb.Progress(done=0.5, total=2)))
    complete = pb.Complete(lease=lease, result_bytes=4, result_type="text/plain")
    request_id = os.urandom(16)
    link.request("complete", complete, b"done", request_id)
    link.request("complete", complete, b"done", request_id)  # a repeat gets the stored answer
    _, result = link.request_with_body("result", pb.Get(task_id=ids[0]))
    assert result == b"done"
    stale = pb.Lease(task_id=ids[1], attempt=1, secret=b"x" * 16)
    refused_with(STALE_LEASE, link.request, "complete", pb.Complete(lease=stale))
    # The other one is cancelled while it is worked on.
    second = lease_of(held[ids[1]][0])
    link.request("started", pb.Started(lease=second))
    assert link.request("cancel", pb.Cancel(task_id=ids[1], message="no")).task.status == \
        STATUS_CANCELLED
    notice = link.take("cancel")[1]
    assert notice.task_id == ids[1] and notice.message == "no"
    states = link.request("renew", pb.Renew(worker_id=worker_id, leases=[second])).renewed.leases
    assert states[0].code == CANCELLED
    link.request("cancel_ack", pb.CancelAck(lease=second))
    link.request("leave", pb.Leave(worker_id=worker_id))


def collect(link, number, upto):
    """Events of a subscription until its cursor has reached upto; credit is given on the way."""
    events = []
    cursor = 0
    while cursor < upto:
        _, batch, body = link.take("events")
        assert batch.subscription == number
        found = events_of(body) if batch.count else []
        assert len(found) == batch.count
        events += found
        cursor = batch.upto
        link.send("credit", pb.Credit(subscription=number, received_upto=cursor))
    return events, cursor


def newest(link):
    """The newest sequence of the namespace: what a welcome says now."""
    probe = Link(link.endpoint)
    seq = probe.welcome.seq
    probe.close()
    return seq


def test_watch(link, ids):
    link.request("subscribe", pb.Subscribe(subscription=1, after_seq=0))
    events, _ = collect(link, 1, newest(link))
    assert [event.seq for event in events] == list(range(1, len(events) + 1))
    first = [event.kind for event in events if event.task_id == ids[0]]
    assert first[0] == SUBMITTED and CLAIMED in first and first[-1] == COMPLETED
    history = link.request("task_events", pb.TaskEvents(task_id=ids[0])).event_page.list.events
    assert [event.seq for event in history] == \
        [event.seq for event in events if event.task_id == ids[0]]
    link.request("unsubscribe", pb.Unsubscribe(subscription=1))
    return events[-1].seq


def test_crash(broker, link, cursor):
    """The broker is killed: NO_LINK or silence, hello again, everything is still there."""
    generation = link.welcome.generation
    epoch = link.welcome.epoch
    task = uuid7()
    link.submit([pb.TaskSpec(task_id=task, queue="hash")], [b"later"])
    broker.kill()
    broker.start()
    link.connect()
    assert link.welcome.epoch == epoch + 1 and link.welcome.generation == generation
    link.request("subscribe", pb.Subscribe(subscription=9, generation=generation, after_seq=cursor))
    wait = link.send("wait", pb.Wait(task_ids=[task, uuid7()]))
    worker_id = os.urandom(16)
    register(link, worker_id)
    _, assignment, payload = link.take("assignment")
    assert assignment.task_id == task and payload == b"later"
    link.request("complete", pb.Complete(lease=lease_of(assignment), result_bytes=1), b"\xff")
    waited = {}
    while len(waited) < 2:
        reply = link.take("reply")[1]
        if reply.id == wait:
            waited.update({item.task_id: item for item in reply.waited.items})
            assert reply.more == (len(waited) < 2)
    assert waited[task].status == STATUS_COMPLETED
    assert sorted(item.code for item in waited.values()) == [0, NOT_FOUND]
    events, _ = collect(link, 9, newest(link))
    assert [event.seq for event in events] == list(range(cursor + 1, cursor + 1 + len(events)))
    assert [event.kind for event in events if event.task_id == task] == \
        [SUBMITTED, CLAIMED, COMPLETED]
    task_now = link.request("get", pb.Get(task_id=task)).task
    assert task_now.result_type == "application/octet-stream"


def test_strangers(link):
    """A wrong token is answered NO_LINK, and nothing is done."""
    stranger = Link(link.endpoint)
    stranger.token = bytes(16)
    refused_with(NO_LINK, stranger.request, "count", pb.Count())
    other = Link(link.endpoint, namespace="elsewhere")
    assert other.request("count", pb.Count()).counted.count == 0
    other.close()


def main():
    with Broker() as broker:
        link = Link(broker.endpoint)
        ids = test_submit(link)
        test_work(link, ids)
        cursor = test_watch(link, ids)
        test_strangers(link)
        test_crash(broker, link, cursor)
        assert link.request("stats", pb.Stats()).stats.counters
        link.close()
    print("the protocol document is sufficient")


main()
