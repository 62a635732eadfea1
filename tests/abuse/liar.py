# This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
# If a copy of the MPL was not distributed with this file, You can obtain one at
# https://mozilla.org/MPL/2.0/.

"""A broker that wants to act on the terminals of those who look at it."""

import os
import subprocess
import threading
import time
import uuid

import taskmq_pb2 as pb
import zmq
from stage import PATIENCE_S
from wire import uuid7

# An escape sequence, one of C1, changes of direction, what cannot be seen, and the ends of a line.
EVIL = "evil\x1b]0;owned\x07\x9b31m\u202e\u2066\u200b\r\n\x7f"
ACTS = ("\x1b", "\x07", "\x9b", "\u202e", "\u2066", "\u200b", "\r", "\x7f")
TASK = uuid7()
UNSUPPORTED = 2


def now_ms():
    return int(time.time() * 1000)


def evil_task():
    return pb.Task(
        task_id=TASK, namespace=EVIL, queue=EVIL, session=EVIL, owner=EVIL, status=4, phase=1,
        status_message=EVIL, method=EVIL, content_type=EVIL, created_at=now_ms(),
        updated_at=now_ms(), attempt=1, max_attempts=1, worker=EVIL, meta='{"m":1}', outcome=2,
        progress=pb.Progress(done=1, total=2, unit=EVIL, message=EVIL), result_type=EVIL, seq=1,
        labels=[pb.Label(key=EVIL, value=EVIL)], error=pb.TaskError(code=1, message=EVIL))


def evil_event():
    return pb.Event(seq=1, at=now_ms(), kind=1, task_id=TASK, queue=EVIL, session=EVIL, status=1,
                    worker=EVIL, actor=EVIL, message=EVIL, owner=EVIL, attempt=1,
                    progress=pb.Progress(done=1, total=2, unit=EVIL, message=EVIL),
                    labels=[pb.Label(key=EVIL, value=EVIL)])


def evil_principal():
    return pb.Principal(name=EVIL, grants=[EVIL], others=[EVIL])


def reply_to(request):
    """What the liar answers; the text of a refusal is as bad as the rest."""
    kind = request.WhichOneof("op")
    reply = pb.Reply(id=request.id)
    if kind == "hello":
        reply.welcome.CopyFrom(pb.Welcome(
            version=1, token=os.urandom(16), namespace="default", identity=EVIL, broker=EVIL,
            principal=EVIL, roles=EVIL, generation=1, epoch=1, seq=1, heartbeat_ms=2000,
            envelope_bytes_max=65536, frame_bytes_max=262144, submit_items_max=256,
            wait_ids_max=1000, now=now_ms()))
    elif kind == "stats":
        reply.stats.counters.add(name=EVIL, value=1)
        reply.stats.queues.add(queue=EVIL, ready=1)
    elif kind == "get":
        reply.task.CopyFrom(evil_task())
    elif kind == "list":
        reply.page.tasks.append(evil_task())
    elif kind == "task_events":
        reply.event_page.list.events.append(evil_event())
    elif kind == "key_list":
        reply.key_page.principals.append(evil_principal())
    elif kind == "subscribe":
        reply.subscribed.SetInParent()
    elif kind not in {"heartbeat", "goodbye", "credit"}:
        reply.code, reply.text = UNSUPPORTED, EVIL
    return reply


class Liar:
    def __init__(self):
        self.socket = zmq.Context.instance().socket(zmq.ROUTER)
        self.socket.setsockopt(zmq.LINGER, 0)
        port = self.socket.bind_to_random_port("tcp://127.0.0.1")
        self.endpoint = f"tcp://127.0.0.1:{port}"
        self.over = threading.Event()
        self.thread = threading.Thread(target=self.serve, daemon=True)
        self.thread.start()

    def serve(self):
        while not self.over.is_set():
            if not self.socket.poll(50):
                continue
            peer, data, *_ = self.socket.recv_multipart()
            for request in pb.ClientMessage.FromString(data).requests:
                if request.WhichOneof("op") == "credit":
                    continue
                self.say(peer, pb.BrokerMessage(replies=[reply_to(request)]))
                if request.WhichOneof("op") == "subscribe":
                    self.tell(peer, request.subscribe.subscription)

    def say(self, peer, message, body=None):
        self.socket.send_multipart([peer, message.SerializeToString()] + ([body] if body else []))

    def tell(self, peer, subscription):
        """An event, and a snapshot before it."""
        self.say(peer, pb.BrokerMessage(snapshot=pb.Snapshot(
            subscription=subscription, tasks=[evil_task()], last=True)))
        events = pb.EventList(events=[evil_event()]).SerializeToString()
        self.say(peer, pb.BrokerMessage(events=[pb.EventBatch(
            subscription=subscription, upto=1, generation=1, count=1,
            list_bytes=len(events))]), events)

    def close(self):
        self.over.set()
        self.thread.join()
        self.socket.close()


def shown(liar, words):
    """What taskctl prints on stdout and stderr together."""
    program = os.path.join(os.environ["TASKMQ_BIN"], "taskctl")
    environment = dict(os.environ, LC_ALL="C.UTF-8", TASKMQ_TIMEOUT="20s")
    done = subprocess.run([program, "-e", liar.endpoint, *words], env=environment,
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, timeout=PATIENCE_S, check=False)
    return done.stdout.decode("utf-8", "strict")


def lying_broker(on):
    """A broker whose every name and text has escapes in it: no view of taskctl lets one through"""
    on.begin()
    liar = Liar()
    task = str(uuid.UUID(bytes=TASK))
    seen, wrong = 0, []
    for words in (["ping"], ["-v", "ping"], ["whoami"], ["doctor"], ["stats"], ["-v", "stats"],
                  ["-o", "wide", "stats"], ["stats", "--prometheus"], ["get", task],
                  ["-o", "wide", "list"], ["list", "--columns", "id,queue,owner,worker"],
                  ["get", task, "--events"], ["watch", "--count", "1", "--for", "20s"],
                  ["watch", "--snapshot", "--for", "2s"], ["key", "list"], ["cancel", task],
                  ["invite", "new", "--role", "worker"], ["invite", "list"], ["submit", "q"],
                  ["audit", "head"], ["reload"], ["complete", "--", "list", "--queue", ""],
                  ["complete", "--", "list", "--label", ""], ["complete", "--", "get", ""]):
        for form in ([], ["-o", "json"]):
            text = shown(liar, [*form, *words])
            seen += "evil" in text
            if any(sign in text for sign in ACTS):
                wrong.append((form, words, text))
    assert not wrong, wrong
    assert seen > 20, seen
    liar.close()
    on.went_on()


CASES = [lying_broker]
