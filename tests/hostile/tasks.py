# This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
# If a copy of the MPL was not distributed with this file, You can obtain one at
# https://mozilla.org/MPL/2.0/.

"""Attacks with tasks: how many there are, what they carry, and when they fall due."""

import os
import time

import taskmq_pb2 as pb
from stage import FRAME_BYTES, OK
from wire import uuid7

WORKER_QUEUES_MAX = 64


def count_of(link, **conditions):
    """Tasks that a filter takes."""
    return link.request("count", pb.Count(filter=pb.Filter(**conditions))).counted.count


def expired_while_down(on):
    """20,000 tasks whose time to live ended while the broker was down"""
    count = on.amount(20000, 2000)
    on.client().fill(count, ttl_ms=1000)
    on.stop_broker()
    end = time.time() + 1.1  # the last one was accepted before this
    on.until("the last time to live is over", lambda: time.time() > end)
    on.broker.start()
    on.begin()
    link = on.client()
    on.until("all have expired",
             lambda: count_of(link, queues=["attacked"], statuses=[1]) == 0)
    on.went_on()
    on.assert_growth_below(192)


def payloads_of_one_worker(on):
    """64 queues of large payloads that only the tables have, wanted by a worker with room for one"""
    each = on.amount(32, 2)
    filler = on.client()
    for i in range(WORKER_QUEUES_MAX):
        filler.fill(each, bytes(FRAME_BYTES), queue=f"large.{i}")
    filler.drop()
    on.clients.remove(filler)
    on.restart()
    on.begin()
    link = on.client()
    link.request("register", pb.Register(worker_id=os.urandom(16), name="w", capacity=1, queues=[
        f"large.{i}" for i in range(WORKER_QUEUES_MAX)]))
    assert link.take("assignment")[1].payload_bytes == FRAME_BYTES
    on.went_on()
    on.assert_growth_below(32)


def many_queues(on):
    """20,000 queues, and 1,024 `stats` in one message"""
    link = on.client()
    link.fill(on.amount(20000, 1000), queue=lambda i: f"queue.{i}")
    on.begin()
    codes = link.ask([("stats", pb.Stats())] * 1024)
    assert codes[OK] > 0, codes
    on.went_on()
    on.assert_growth_below(256)


def thick_tasks(on):
    """5,000 tasks with 16 KiB of meta each"""
    link = on.client()
    meta = '{"m":"' + "x" * (16 * 1024 - 8) + '"}'
    specs = on.amount(5000, 200)
    on.begin()
    for _ in range(0, specs, 3):
        link.submit_all([spec_with(meta) for _ in range(3)], b"")
    on.went_on()
    on.assert_growth_below(384)


def spec_with(meta):
    return pb.TaskSpec(task_id=uuid7(), queue="thick", meta=meta, ttl_ms=3600 * 1000)


CASES = [expired_while_down, payloads_of_one_worker, many_queues, thick_tasks]
