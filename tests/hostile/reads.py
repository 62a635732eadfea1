# This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
# If a copy of the MPL was not distributed with this file, You can obtain one at
# https://mozilla.org/MPL/2.0/.

"""Attacks with requests that only ask."""

import os
import threading

import taskmq_pb2 as pb
from stage import (FRAME_BYTES, LIMIT, NOT_FOUND, OK, PATIENCE_S, REQUESTS_MAX, Client)
from wire import NO_LINK, uuid7

LINK_READS_MAX = 64    # open reads of one link
BROKER_READS_MAX = 4096  # of all
LINK_WAITS_MAX = 10000   # ids that a link waits for
WAITS_AT_ONCE = 1000     # in one message


def finished_task(link, queue, result):
    """A completed task with a result of that size. Returns its id."""
    task, = link.fill(1, queue=queue)
    worker = os.urandom(16)
    link.request("register", pb.Register(worker_id=worker, name="w", queues=[queue], capacity=1))
    assignment = link.take("assignment")[1]
    lease = pb.Lease(task_id=task, attempt=assignment.attempt, secret=assignment.secret)
    link.request("complete", pb.Complete(lease=lease, result_bytes=len(result)), result)
    link.request("leave", pb.Leave(worker_id=worker))
    return task


def assert_limited(codes, opened_max):
    """At most opened_max were carried out, the others were refused for now."""
    assert set(codes) <= {OK, LIMIT, NO_LINK}, codes
    assert codes[OK] <= opened_max, codes
    assert codes[LIMIT] > 0, codes


def gets_of_one_large_task(on):
    """1,024 `get` of one task with a result of 256 KiB, in one message"""
    link = on.client()
    task = finished_task(link, "large", bytes(FRAME_BYTES))
    on.begin()
    codes = link.ask([("get", pb.Get(task_id=task))] * REQUESTS_MAX)
    assert set(codes) <= {OK, LIMIT, NO_LINK}, codes
    on.went_on()
    on.assert_growth_below(96)


def counts_beyond_the_limit(on):
    """1,024 `count` in one message: what is above the open reads of a link is refused"""
    link = on.client()
    link.fill(on.amount(1000))
    on.begin()
    codes = link.ask([("count", pb.Count())] * REQUESTS_MAX)
    assert_limited(codes, REQUESTS_MAX - 1)
    again = link.ask([("count", pb.Count())])
    assert again[OK] == 1, again
    on.went_on()


def counts_and_leave(on):
    """1 MB of `count` over 20,000 tasks, and nobody waits for the answers"""
    on.client().fill(on.amount(20000))
    on.begin()
    for _ in range(on.amount(100)):
        link = on.client()
        link.message([("count", pb.Count())] * REQUESTS_MAX)
        link.send("goodbye", pb.Goodbye())
    on.went_on()
    on.assert_growth_below(128)


def lists_of_everything(on):
    """60 messages of 1,000 `list` of 1,000 tasks each"""
    link = on.client()
    link.fill(on.amount(5000, 1000))
    on.begin()
    codes = link.collect({number for _ in range(on.amount(60, 5))
                          for number in link.message([("list", pb.List(limit=1000))] * 1000)})
    assert set(codes) <= {OK, LIMIT, NO_LINK}, codes
    on.went_on()
    on.assert_growth_below(256)


def reads_of_many_links(on):
    """200 links with 64 open reads each: beyond 4,096 in all they are refused for now"""
    on.client().fill(on.amount(2000, 1000))
    on.begin()
    links = [on.client() for _ in range(on.amount(200, 80))]
    asked = [(link, link.message([("list", pb.List(limit=1000))] * LINK_READS_MAX))
             for link in links]
    for link, ids in asked:
        codes = link.collect(ids)
        assert set(codes) <= {OK, LIMIT, NO_LINK}, codes
    on.went_on()
    on.assert_growth_below(384)


def subscriptions_with_snapshot(on):
    """10,000 subscriptions of one link, each with a snapshot of 100 tasks"""
    link = on.client()
    link.fill(100)
    on.begin()
    wanted = on.amount(10000, 1000)
    open_ids = set()
    for first in range(1, wanted + 1, REQUESTS_MAX):
        numbers = range(first, min(wanted + 1, first + REQUESTS_MAX))
        open_ids |= set(link.message(
            [("subscribe", pb.Subscribe(subscription=number, snapshot=True))
             for number in numbers]))
    codes = link.collect(open_ids)
    assert set(codes) <= {OK, LIMIT, NO_LINK}, codes
    on.went_on()
    on.assert_growth_below(256)


def histories(on):
    """The history of a task with 5,000 events, page by page, by 20 clients at once"""
    link = on.client()
    events = on.amount(5000, 500)
    task = talkative_task(link, events)
    on.begin()

    def walk():
        reader = Client(on.endpoint)
        before, seen = 0, 0
        while True:
            reply = reader.reply_to(reader.send("task_events", pb.TaskEvents(
                task_id=task, before_seq=before, limit=100)))
            if reply.code == LIMIT:
                continue
            assert reply.code == OK, reply
            seen += len(reply.event_page.list.events)
            before = reply.event_page.before_seq
            if before == 0:
                break
        assert seen >= events, seen
        reader.drop()

    in_parallel(20, walk)
    on.went_on()
    on.assert_growth_below(128)


def talkative_task(link, events):
    """A working task with that many status messages. Returns its id."""
    task, = link.fill(1, queue="talk")
    link.request("register", pb.Register(worker_id=os.urandom(16), name="w", queues=["talk"],
                                         capacity=1))
    assignment = link.take("assignment")[1]
    lease = pb.Lease(task_id=task, attempt=assignment.attempt, secret=assignment.secret)
    for first in range(0, events, 500):
        codes = link.ask([("push", pb.Push(lease=lease, status_message=f"step {i}"))
                          for i in range(first, min(events, first + 500))])
        assert set(codes) == {OK}, codes
    return task


def in_parallel(count, work):
    """Runs work in that many threads; fails if one of them does."""
    failures = []

    def guarded():
        try:
            work()
        except Exception as failure:  # whatever it is, it is told by the case's own thread
            failures.append(failure)

    threads = [threading.Thread(target=guarded) for _ in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=PATIENCE_S)
        assert not thread.is_alive(), "a client has no answer"
    if failures:
        raise failures[0]


def short_ids(on):
    """20 messages of 1,024 `resolve` among 10,000 tasks"""
    link = on.client()
    tasks = link.fill(on.amount(10000, 1000))
    on.begin()
    for i in range(on.amount(20, 2)):
        codes = link.ask([("resolve", pb.Resolve(suffix=tasks[-1 - i].hex()[-12:]))]
                         * (REQUESTS_MAX // 2) +
                         [("resolve", pb.Resolve(suffix=uuid7().hex()[-12:]))]
                         * (REQUESTS_MAX // 2))
        assert set(codes) <= {OK, NOT_FOUND, LIMIT}, codes
    on.went_on()
    on.assert_growth_below(64)


def clients_that_leave(on):
    """100 clients that list everything, page by page at once, and leave before the answer"""
    on.client().fill(on.amount(20000, 1000))
    on.begin()
    for _ in range(on.amount(100, 10)):
        link = Client(on.endpoint)
        link.message([("list", pb.List(limit=1000))] * 20)
        link.drop()
    on.went_on()
    on.assert_growth_below(256)


def never_reads(on):
    """A client that asks for 256 KiB 2,000 times and never reads an answer"""
    task = finished_task(on.client(), "large", bytes(FRAME_BYTES))
    on.begin()
    link = on.client()
    for _ in range(on.amount(500, 50)):
        link.message([("get", pb.Get(task_id=task))] * 4)
    on.went_on()
    on.assert_growth_below(96)


def waits_of_many_links(on):
    """100 links wait 10,000 times each: half of them for a task that ends, and then all leave"""
    owner = on.client()
    ends, stays = owner.fill(2)
    on.begin()
    links = [on.client() for _ in range(on.amount(100, 4))]
    asked = []
    for number, link in enumerate(links):
        wait = pb.Wait(task_ids=[ends if number % 2 == 0 else stays])
        asked.append([request for _ in range(LINK_WAITS_MAX // WAITS_AT_ONCE)
                      for request in link.message([("wait", wait)] * WAITS_AT_ONCE)])
        link.reply_to(link.send("heartbeat", pb.Heartbeat()))
    on.mark()
    assert owner.request("cancel", pb.Cancel(task_id=ends)).code == OK
    for link, requests in list(zip(links, asked))[::2]:
        codes = link.collect(requests)
        assert set(codes) == {OK}, codes
    for link in links:
        link.drop()
    on.went_on()
    on.until("nothing is left of the waits", lambda: waits_open(owner) <= 1)  # the bystander's
    on.assert_growth_below(256)


def waits_open(link):
    counters = link.request("stats", pb.Stats()).stats.counters
    return next(counter.value for counter in counters if counter.name == "waits")


CASES = [gets_of_one_large_task, counts_beyond_the_limit, counts_and_leave, lists_of_everything,
         reads_of_many_links, subscriptions_with_snapshot, histories, short_ids,
         clients_that_leave, never_reads, waits_of_many_links]
