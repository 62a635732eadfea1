# This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
# If a copy of the MPL was not distributed with this file, You can obtain one at
# https://mozilla.org/MPL/2.0/.

"""taskmq's wire protocol in Python, written from PROTOCOL.md and taskmq.proto alone.

One Link is one DEALER socket. It is synchronous: request() sends and returns the reply; whatever
else arrives meanwhile (assignments, events, cancel notices) is kept for take()."""

import collections
import os
import time

import zmq

import taskmq_pb2 as pb

NO_LINK = 4


def uuid7():
    """RFC 9562: 48 bits of time, version, variant, 74 random bits."""
    data = bytearray(int(time.time() * 1000).to_bytes(6, "big") + os.urandom(10))
    data[6] = data[6] & 0x0F | 0x70
    data[8] = data[8] & 0x3F | 0x80
    return bytes(data)


class Refused(Exception):
    def __init__(self, reply):
        super().__init__(f"{reply.code}: {reply.text}")
        self.code = reply.code


class Link:
    PATIENCE_S = 60  # for a reply
    CHANGES = {"submit", "cancel", "push", "cancel_ack", "complete", "fail", "release"}

    def __init__(self, endpoint, namespace=""):
        self.endpoint = endpoint
        self.namespace = namespace
        self.context = zmq.Context.instance()
        self.socket = None
        self.kept = collections.deque()
        self.next_id = 0
        self.connect()

    def connect(self):
        """A new socket and a hello: also the way out after NO_LINK or silence."""
        if self.socket is not None:
            self.socket.close(linger=0)
        self.socket = self.context.socket(zmq.DEALER)
        self.socket.setsockopt(zmq.LINGER, 0)
        self.socket.connect(self.endpoint)
        self.token = b""
        self.kept.clear()
        hello = pb.Hello(version_min=1, version_max=1, namespace=self.namespace, client="interop.py")
        self.welcome = self.request("hello", hello).welcome
        self.token = self.welcome.token

    def close(self):
        self.request("goodbye", pb.Goodbye())
        self.socket.close(linger=0)

    def send(self, kind, operation, body=b"", request_id=None):
        self.next_id += 1
        request = pb.Request(id=self.next_id, deadline_ms=20000)
        getattr(request, kind).CopyFrom(operation)
        if kind in self.CHANGES:
            request.request_id = request_id or os.urandom(16)
        message = pb.ClientMessage(token=self.token, requests=[request])
        frames = [message.SerializeToString()]
        if body:
            frames.append(body)
        self.socket.send_multipart(frames)
        return self.next_id

    def receive(self, timeout_s):
        """One message of the broker in its parts; each is (kind, member, its bytes)."""
        if not self.socket.poll(int(timeout_s * 1000)):
            return []
        frames = self.socket.recv_multipart()
        message = pb.BrokerMessage.FromString(frames[0])
        bodies = frames[1] if len(frames) > 1 else b""
        parts = []
        at = 0
        for reply in message.replies:
            size = reply.task.body if reply.WhichOneof("body") == "task" else 0
            parts.append(("reply", reply, bodies[at:at + size]))
            at += size
        for assignment in message.assignments:
            size = assignment.payload_bytes
            parts.append(("assignment", assignment, bodies[at:at + size]))
            at += size
        parts += [("cancel", cancel, b"") for cancel in message.cancels]
        parts += [("notice", notice, b"") for notice in message.notices]
        for batch in message.events:
            parts.append(("events", batch, bodies[at:at + batch.list_bytes]))
            at += batch.list_bytes
        if message.HasField("snapshot"):
            parts.append(("snapshot", message.snapshot, b""))
        if message.HasField("gap"):
            parts.append(("gap", message.gap, b""))
        return parts

    def request(self, kind, operation, body=b"", request_id=None):
        """The reply; .bytes of the pair for those that carry some: see request_with_body."""
        return self.request_with_body(kind, operation, body, request_id)[0]

    def request_with_body(self, kind, operation, body=b"", request_id=None):
        number = self.send(kind, operation, body, request_id)
        end = time.monotonic() + self.PATIENCE_S
        answer = None
        while answer is None:
            left = end - time.monotonic()
            if left <= 0:
                raise TimeoutError(f"no reply to {kind}")
            for part in self.receive(left):
                if part[0] == "reply" and part[1].id == number:
                    answer = part
                else:
                    self.kept.append(part)
        if answer[1].code != 0:
            raise Refused(answer[1])
        return answer[1], answer[2]

    def take(self, kind, timeout_s=20):
        """The next part of that kind; heartbeats keep the link alive while waiting."""
        end = time.monotonic() + timeout_s
        beat = time.monotonic()
        while True:
            for part in list(self.kept):
                if part[0] == kind:
                    self.kept.remove(part)
                    return part
            now = time.monotonic()
            if now > end:
                raise TimeoutError(f"no {kind} came")
            if now >= beat:
                self.send("heartbeat", pb.Heartbeat())
                beat = now + 2
            self.kept.extend(part for part in self.receive(min(0.5, end - now)))

    def submit(self, specs, payloads, request_id=None):
        for spec, payload in zip(specs, payloads):
            spec.payload_bytes = len(payload)
        return self.request("submit", pb.Submit(tasks=specs), b"".join(payloads),
                            request_id).submitted.items


def events_of(body):
    return list(pb.EventList.FromString(body).events)
