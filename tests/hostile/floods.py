# This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
# If a copy of the MPL was not distributed with this file, You can obtain one at
# https://mozilla.org/MPL/2.0/.

"""Floods: as much as one client can send, of every kind of request."""

import os
import threading

import taskmq_pb2 as pb
import zmq
from stage import ENVELOPE_BYTES, REQUESTS_MAX
from wire import NO_LINK, uuid7

QUIET = {"credit", "worker_credit"}  # answered only when they are refused
CODES_MAX = 20
BURST = 50  # messages sent before what came back is read


def operations():
    """One operation of each kind, with whatever it needs to be taken as valid. Left out is what would
    let somebody else in, make another key or a file of everything, and what needs a body: `log`, `import`."""
    task = uuid7()
    worker = os.urandom(16)
    lease = pb.Lease(task_id=task, attempt=1, secret=os.urandom(16))
    return {
        "hello": lambda: pb.Hello(version_min=1, version_max=1),
        "heartbeat": pb.Heartbeat,
        "submit": lambda: pb.Submit(tasks=[pb.TaskSpec(task_id=uuid7(), queue="flood")]),
        "get": lambda: pb.Get(task_id=task),
        "resolve": lambda: pb.Resolve(suffix="abcdef"),
        "list": lambda: pb.List(limit=1000),
        "count": pb.Count,
        "task_events": lambda: pb.TaskEvents(task_id=task),
        "result": lambda: pb.Get(task_id=task),
        "payload": lambda: pb.Get(task_id=task),
        "cancel": lambda: pb.Cancel(task_id=task),
        "wait": lambda: pb.Wait(task_ids=[task]),
        "stats": pb.Stats,
        "subscribe": lambda: pb.Subscribe(subscription=1),
        "credit": lambda: pb.Credit(subscription=2),
        "unsubscribe": lambda: pb.Unsubscribe(subscription=2),
        "register": lambda: pb.Register(worker_id=worker, name="w", queues=["none"]),
        "worker_credit": lambda: pb.WorkerCredit(worker_id=worker),
        "started": lambda: pb.Started(lease=lease),
        "renew": lambda: pb.Renew(worker_id=worker, leases=[lease]),
        "push": lambda: pb.Push(lease=lease, status_message="x"),
        "cancel_ack": lambda: pb.CancelAck(lease=lease),
        "complete": lambda: pb.Complete(lease=lease),
        "fail": lambda: pb.Fail(lease=lease, code=1),
        "release": lambda: pb.Release(lease=lease),
        "leave": lambda: pb.Leave(worker_id=os.urandom(16)),
        "goodbye": pb.Goodbye,
        "why": lambda: pb.Why(task_id=task),
        "answer": lambda: pb.Answer(task_id=task, items=[pb.AnswerItem(key="k", text=True)]),
        "inbox": pb.Inbox,
        "read_log": lambda: pb.ReadLog(task_id=task, stream=1),
        "attempts": lambda: pb.Attempts(task_id=task),
        "search": lambda: pb.Search(text="flood", limit=1000),
        "reindex": pb.Reindex,
        "turn": lambda: pb.Turn(lease=lease, number=1, agent="a", status="s"),
        "turns": lambda: pb.Turns(task_id=task),
        "retry": lambda: pb.Retry(task_ids=[task]),
        "resume": lambda: pb.Retry(task_ids=[task]),
        "set": lambda: pb.Set(task_ids=[task], priority_plus_1=1),
        "purge": lambda: pb.Purge(task_ids=[task]),
        "adopt": lambda: pb.Adopt(task_id=task, attempt=1),
        "ask": lambda: pb.Ask(lease=lease, request="1"),
        "take_answers": lambda: pb.TakeAnswers(lease=lease),
        "checkpoint": lambda: pb.Checkpoint(lease=lease),
        "checkpoint_read": lambda: pb.CheckpointRead(lease=lease),
        "enroll": lambda: pb.Enroll(public_key=os.urandom(32)),
        "key_list": pb.KeyList,
        "key_revoke": lambda: pb.KeyRevoke(name="nobody"),
        "invite_list": pb.InviteList,
        "invite_revoke": lambda: pb.InviteRevoke(invitation="none"),
        "reload": pb.Reload,
        "access_read": pb.AccessRead,
        "audit": pb.Audit,
        "audit_head": pb.AuditHead,
        "vacuum": lambda: pb.Vacuum(begin=True),
        "queue_list": pb.QueueList,
        "queue_show": lambda: pb.QueueShow(queue="flood"),
        "queue_set": lambda: pb.QueueSet(queue="flood", fields=[5],
                                         settings=pb.QueueSettings(max_running=1)),
        "queue_pause": lambda: pb.QueuePause(queue="flood"),
        "queue_resume": lambda: pb.QueueResume(queue="flood"),
        "session_set": lambda: pb.SessionSet(name="flood", goal="g", fields=[2]),
        "session_show": lambda: pb.SessionName(name="flood"),
        "session_list": lambda: pb.SessionList(limit=1000),
        "session_status": lambda: pb.SessionStatus(name="flood", status=1 + os.urandom(1)[0] % 4),
        "session_remove": lambda: pb.SessionName(name="flood"),
        "schedule_put": lambda: pb.SchedulePut(replace=True, schedule=pb.Schedule(
            name="flood", calendar="@yearly", task=pb.TaskSpec(queue="flood"))),
        "schedule_show": lambda: pb.ScheduleName(name="flood", coming=100),
        "schedule_list": lambda: pb.ScheduleList(limit=1000),
        "schedule_pause": lambda: pb.ScheduleName(name="flood"),
        "schedule_resume": lambda: pb.ScheduleName(name="flood"),
        "schedule_remove": lambda: pb.ScheduleName(name="flood"),
        "value_put": lambda: pb.ValuePut(key="flood"),
        "value_get": lambda: pb.ValueGet(key="flood"),
        "value_list": lambda: pb.ValueList(limit=1000),
        "value_remove": lambda: pb.ValueRemove(key="flood"),
        "item_put": lambda: pb.ItemPut(box="flood"),
        "item_read": lambda: pb.ItemRead(box="flood", limit=256),
        "item_ack": lambda: pb.ItemAck(box="flood", numbers=[1, 2, 3]),
        "worker_list": lambda: pb.WorkerList(limit=1000, all=True),
        "worker_show": lambda: pb.WorkerShow(name="nobody"),
        "worker_drain": lambda: pb.WorkerDrain(name="nobody"),
    }


def as_many_as_fit(kind, make, count=REQUESTS_MAX):
    """Up to so many requests of a kind: what one envelope takes."""
    size = pb.Request(id=1 << 27, request_id=bytes(16), **{kind: make()}).ByteSize() + 4
    return [(kind, make()) for _ in range(min(count, (ENVELOPE_BYTES - 64) // size))]


def full_messages(on):
    """A message full of each kind of request, one after the other: each has one answer"""
    on.client().fill(on.amount(1000))
    on.begin()
    for kind, make in operations().items():
        link = on.client()
        requests = as_many_as_fit(kind, make, on.amount(REQUESTS_MAX, 100))
        ids = link.message(requests)
        probe = link.send("heartbeat", pb.Heartbeat())
        codes = link.collect([probe] if kind in QUIET else [*ids, probe])
        assert max(codes) <= CODES_MAX, (kind, codes)
        link.drop()
    on.went_on()
    on.assert_growth_below(256)


def flood(on, kinds, mib=256):
    """Floods of each kind, until time went on for the bystander beside it: one after the other, or
    in short all of them in one message."""
    on.client().fill(on.amount(1000))
    on.begin()
    for group in [[kind] for kind in kinds] if on.percent >= 100 else [kinds]:
        share = REQUESTS_MAX // (2 * len(group)) if len(group) > 1 else REQUESTS_MAX
        requests = [request for kind in group
                    for request in as_many_as_fit(kind, operations()[kind], share)]
        on.mark()
        with Flood(on, pb.ClientMessage(requests=[
                with_ids(number, kind, operation)
                for number, (kind, operation) in enumerate(requests, 1)])):
            on.until(f"time goes on beside a flood of {', '.join(group)}", on.gone_on)
    on.assert_growth_below(mib)


def flood_of_reads(on):
    """Full messages of each kind of read, without a pause"""
    flood(on, ["get", "resolve", "list", "count", "task_events", "result", "payload", "wait",
               "stats", "why", "inbox", "read_log", "attempts", "search",
               "turns", "worker_list", "worker_show"])


def flood_of_links(on):
    """Full messages of each kind of request about links and subscriptions, without a pause"""
    flood(on, ["heartbeat", "subscribe", "credit", "unsubscribe", "goodbye"])


def flood_of_work(on):
    """Full messages of each kind of request about tasks and workers, without a pause"""
    flood(on, ["submit", "cancel", "register", "worker_credit", "started", "renew", "push",
               "cancel_ack", "complete", "fail", "release", "leave", "answer", "retry", "resume",
               "set", "purge", "adopt", "ask", "take_answers", "checkpoint", "checkpoint_read",
               "turn"])


def flood_of_entries(on):
    """Full messages of each kind about queues, sessions, schedules, values and items, without a pause"""
    # Each kind may take its limit. The bound is what is promised, less what a broker begins with.
    flood(on, [kind for kind in operations() if kind.partition("_")[0] in
               ("queue", "session", "schedule", "value", "item")], mib=448)


def flood_of_files(on):
    """Full messages of what an operator reads and changes in files, without a pause"""
    flood(on, ["key_list", "key_revoke", "invite_list", "invite_revoke", "reload", "access_read",
               "audit", "audit_head", "vacuum", "reindex", "enroll"])


def with_ids(number, kind, operation):
    request = pb.Request(id=number, request_id=os.urandom(16))
    getattr(request, kind).CopyFrom(operation)
    return request


def heartbeats(on):
    """Messages of 1,000 heartbeats without a pause: times to live, leases and delays still end"""
    on.begin()
    link = on.client()
    worker = on.client()
    worker_id = os.urandom(16)
    worker.request("register", pb.Register(worker_id=worker_id, name="w", queues=["due"],
                                           capacity=2))
    with Flood(on, pb.ClientMessage(requests=[
            with_ids(number, "heartbeat", pb.Heartbeat()) for number in range(1, 1001)])):
        lost, delayed = uuid7(), uuid7()
        link.submit_all([pb.TaskSpec(task_id=task, queue="due", lease_ms=1000)
                         for task in (lost, delayed)], b"")
        held = {}
        while len(held) < 2:
            assignment = worker.take("assignment", worker.PATIENCE_S)[1]
            held[assignment.task_id] = assignment
        worker.request("release", pb.Release(delay_ms=500, lease=pb.Lease(
            task_id=delayed, attempt=1, secret=held[delayed].secret)))
        # Both come again: one after its delay, the other when its lease has ended.
        again = set()
        while again != {lost, delayed}:
            again.add(worker.take("assignment", worker.PATIENCE_S)[1].task_id)
        on.until("the bystander's times to live end", on.gone_on)


class Flood:
    """Sends one message over and over in a thread, reads what comes back, and begins a new link
    when the broker has ended this one."""

    def __init__(self, on, message):
        self.link = on.client()
        self.link.socket.setsockopt(zmq.SNDTIMEO, 100)
        self.message = message
        self.over = threading.Event()
        self.thread = threading.Thread(target=self.send, daemon=True)

    def frame(self):
        if self.message.requests[0].WhichOneof("op") != "hello":
            self.message.token = self.link.token
        return self.message.SerializeToString()

    def send(self):
        frame = self.frame()
        while not self.over.is_set():
            try:
                for _ in range(BURST):
                    self.link.socket.send(frame)
            except zmq.Again:
                pass  # the pipe is full; what came back is read, then it goes on
            if self.link_has_ended():
                self.link.connect()
                frame = self.frame()

    def link_has_ended(self):
        """Takes what came, and looks into the last of it only: a flood has no time."""
        last = None
        for _ in range(2 * BURST):
            if not self.link.socket.poll(0):
                break
            last = self.link.socket.recv_multipart()[0]
        return last is not None and any(
            reply.code == NO_LINK for reply in pb.BrokerMessage.FromString(last).replies)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, kind, value, trace):
        self.over.set()
        self.thread.join()


CASES = [full_messages, flood_of_reads, flood_of_links, flood_of_work, flood_of_entries,
         flood_of_files, heartbeats]
