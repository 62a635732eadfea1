# This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
# If a copy of the MPL was not distributed with this file, You can obtain one at
# https://mozilla.org/MPL/2.0/.

"""What every case stands on: a broker, a bystander beside the attack, and a client without manners.

A case may assert on codes, on counts, on generous bounds of the broker's memory, on a clean stop,
and on the bystander: it is answered, and time goes on for it. It never asserts on a latency. The
long form measures those and prints them."""

import collections
import json
import os
import signal
import subprocess
import sys
import threading
import time

import taskmq_pb2 as pb
from broker import Broker, die_with_the_test, eventually
from wire import NO_LINK, Link, uuid7

OK, NOT_FOUND, OVERLOADED, STORE_FULL, LIMIT = 0, 5, 12, 13, 14
RETRIABLE = {OVERLOADED, STORE_FULL, LIMIT}
PATIENCE_S = 90
MIB = 1 << 20
RUNAWAY_BYTES = 3 << 30
FRAME_BYTES = 256 * 1024
ENVELOPE_BYTES = 64 * 1024
REQUESTS_MAX = 1024


class Client(Link):
    """Speaks the protocol, but sends what it likes and as much as it likes."""
    PATIENCE_S = PATIENCE_S

    def message(self, requests):
        """Sends requests, pairs of a kind and an operation, in one message. Returns their ids."""
        first = self.next_id + 1
        parts = []
        for kind, operation in requests:
            self.next_id += 1
            request = pb.Request(id=self.next_id, request_id=os.urandom(16))
            getattr(request, kind).CopyFrom(operation)
            parts.append(request)
        message = pb.ClientMessage(token=self.token, requests=parts)
        self.socket.send(message.SerializeToString())
        return range(first, self.next_id + 1)

    def collect(self, ids):
        """Reads until every request has its answer, or the broker has ended the link, which it may
        do with a client that leaves too much unread. Counts the codes; NO_LINK stands for an ended
        link. A refusal that may be repeated later says when."""
        open_ids = set(ids)
        codes = collections.Counter()
        end = time.monotonic() + self.PATIENCE_S
        while open_ids:
            assert time.monotonic() < end, f"{len(open_ids)} requests have no answer"
            parts = self.receive(1)
            if not parts:
                self.send("heartbeat", pb.Heartbeat())  # is there still a link?
            for kind, reply, _ in parts:
                if kind != "reply" or reply.more:
                    continue
                if reply.id in open_ids:
                    open_ids.discard(reply.id)
                    codes[reply.code] += 1
                    assert reply.code not in RETRIABLE or reply.retry_after_ms > 0, reply
                elif reply.code == NO_LINK:
                    codes[NO_LINK] += len(open_ids)
                    return codes
        return codes

    def ask(self, requests):
        return self.collect(self.message(requests))

    def fill(self, count, payload=b"", ttl_ms=3600 * 1000, queue="attacked"):
        """Submits count tasks, in as large batches as fit, and repeats what is refused for now.
        queue: a name, or a function that makes one of the task's number. Returns their ids."""
        ids = [uuid7() for _ in range(count)]
        step = max(1, min(256, FRAME_BYTES // max(1, len(payload))))
        for first in range(0, count, step):
            specs = [pb.TaskSpec(task_id=ids[i], ttl_ms=ttl_ms,
                                 queue=queue(i) if callable(queue) else queue)
                     for i in range(first, min(count, first + step))]
            self.submit_all(specs, payload)
        return ids

    def submit_all(self, specs, payload):
        for spec in specs:
            spec.payload_bytes = len(payload)
        end = time.monotonic() + self.PATIENCE_S
        while specs:
            assert time.monotonic() < end, "tasks are not taken"
            number = self.send("submit", pb.Submit(tasks=specs), payload * len(specs))
            reply = self.reply_to(number)
            if reply.code == OK:
                again = [item.code in RETRIABLE for item in reply.submitted.items]
                assert all(a or item.code == OK
                           for a, item in zip(again, reply.submitted.items)), reply
                specs = [spec for spec, a in zip(specs, again) if a]
            else:
                assert reply.code in RETRIABLE, reply
            if specs:
                time.sleep(0.05)

    def reply_to(self, number):
        """The reply to one request, whatever its code; other replies are kept."""
        end = time.monotonic() + self.PATIENCE_S
        while time.monotonic() < end:
            answer = None
            for kind, part, _ in self.receive(1):
                if kind == "reply" and part.id == number:
                    answer = part
                elif kind == "reply":
                    self.kept.append(part)
            if answer is not None:
                return answer
        raise TimeoutError(f"no reply to request {number}")

    def drop(self):
        """Leaves without a goodbye."""
        self.socket.close(linger=0)


class Bystander:
    """An honest client in a process of its own, so that the attack does not share its interpreter.
    It reports each answer; `due` is how late a task's time to live ended, so time went on."""

    def __init__(self, endpoint):
        self.samples = collections.defaultdict(list)
        self.process = subprocess.Popen([sys.executable, __file__, endpoint],
                                        stdout=subprocess.PIPE, text=True,
                                        preexec_fn=die_with_the_test)
        self.thread = threading.Thread(target=self.read, daemon=True)
        self.thread.start()

    def read(self):
        for line in self.process.stdout:
            kind, seconds = json.loads(line)
            self.samples[kind].append(seconds)

    def counts(self):
        return {kind: len(self.samples[kind]) for kind in ("ping", "submit", "list", "due")}

    def went_on(self, since):
        """True when it was answered everything at least once from the beginning since then: the
        first further answer may have been under way."""
        assert self.process.poll() is None, "the bystander gave up"
        return all(count >= since[kind] + 2 for kind, count in self.counts().items())

    def end(self):
        self.process.kill()
        self.process.wait()
        self.thread.join()


class Stage:
    """A broker of its own for one case. percent scales the amounts of the attack."""

    def __init__(self, percent=100, sanitized=False, config=None, options=(), files=None):
        self.percent = percent
        self.sanitized = sanitized
        self.broker = Broker(*options)
        self.broker.files = files
        if config is not None:
            path = os.path.join(self.broker.home, "taskmqd.conf")
            with open(path, "w", encoding="ascii") as file:
                file.write(config)
            self.broker.options += ("--config", path)
        self.broker.start()
        self.clients = []
        self.bystander = None
        self.base_bytes = 0
        self.grown = 0  # what growth() was in the end
        self.marks = {}
        self.figures = []  # lines that a case has measured, for the long form

    @property
    def endpoint(self):
        return self.broker.endpoint

    def amount(self, full, least=1):
        """full, scaled; never below least, which is where a case loses its point."""
        return max(least, full * self.percent // 100)

    def client(self, namespace=""):
        client = Client(self.endpoint, namespace)
        self.clients.append(client)
        return client

    # Memory.

    def memory(self, name):
        with open(f"/proc/{self.broker.process.pid}/status", encoding="ascii") as file:
            for line in file:
                if line.startswith(name + ":"):
                    return int(line.split()[1]) * 1024
        raise AssertionError(f"no {name}")

    def growth(self):
        """Bytes by which the broker's peak since begin() is above what it had there."""
        return self.memory("VmHWM") - self.base_bytes

    def assert_growth_below(self, mib):
        """Says nothing under a sanitizer, which keeps freed memory."""
        growth = self.growth()
        assert self.sanitized or growth < mib * MIB, \
            f"the broker grew by {growth // MIB} MiB, {mib} are allowed"

    def counter(self, name):
        """One of the broker's counters, as the command line shows them."""
        program = os.path.join(os.environ["TASKMQ_BIN"], "taskctl")
        done = subprocess.run([program, "-e", self.endpoint, "-o", "json", "stats"], check=True,
                              capture_output=True, text=True, timeout=PATIENCE_S)
        return json.loads(done.stdout)["counters"][name]

    # The course of a case.

    def begin(self):
        """The attack begins: the bystander is there, the peak of memory starts here."""
        if self.bystander is None:
            self.bystander = Bystander(self.endpoint)
        self.went_on()
        with open(f"/proc/{self.broker.process.pid}/clear_refs", "w", encoding="ascii") as file:
            file.write("5")
        self.base_bytes = self.memory("VmRSS")
        self.mark()

    def mark(self):
        """From here on gone_on() and latencies() look."""
        self.marks = self.bystander.counts()

    def until(self, what, condition):
        """Waits for a condition; a broker that takes the machine's memory is not waited for."""
        def looked_at():
            running = self.broker.process.poll() is None
            assert not running or self.memory("VmRSS") < RUNAWAY_BYTES, "memory has no bound"
            return condition()
        return eventually(what, looked_at, PATIENCE_S)

    def went_on(self):
        """From now on the bystander is answered, and time goes on for it."""
        since = self.bystander.counts()
        self.until("the bystander is answered and time goes on",
                   lambda: self.bystander.went_on(since))

    def gone_on(self):
        """True when the bystander was answered and time went on since begin(), or since mark()."""
        return self.bystander.went_on(self.marks)

    def latencies(self, kind):
        """Of the bystander, in seconds, sorted."""
        return sorted(self.bystander.samples[kind][self.marks.get(kind, 0):])

    def restart(self, sig=signal.SIGTERM):
        self.stop_broker(sig)
        self.broker.start()

    def stop_broker(self, sig=signal.SIGTERM):
        """A clean stop, whatever is still asked for."""
        self.broker.process.send_signal(sig)
        code = self.broker.process.wait(timeout=PATIENCE_S)
        wanted = 0 if sig == signal.SIGTERM else -sig
        assert code == wanted, f"the broker ended with {code}, not {wanted}"

    def __enter__(self):
        return self

    def __exit__(self, kind, value, trace):
        if self.bystander is not None:
            self.bystander.end()
        try:
            if self.base_bytes and self.broker.process.poll() is None:
                self.grown = self.growth()
            if kind is None:
                assert self.broker.process.poll() is None, "the broker has ended"
                self.stop_broker()
        except AssertionError:
            self.print_log()
            raise
        finally:
            for client in self.clients:
                client.drop()
            self.broker.__exit__(kind, value, trace)
        return False

    def print_log(self):
        with open(self.broker.log.name, encoding="utf-8", errors="replace") as file:
            print("".join(file.readlines()[-60:]), file=sys.stderr)


def stand_by(endpoint):
    """The bystander's process: one request after the other, and one task at a time that nobody
    works on and whose time to live ends."""
    link = Client(endpoint)
    waiting = None

    def timed(kind, operation):
        began = time.monotonic()
        reply = link.reply_to(link.send(kind, operation))
        assert reply.code == OK or reply.code in RETRIABLE, reply
        return reply, time.monotonic() - began

    def say(kind, seconds):
        print(json.dumps([kind, seconds]), flush=True)

    while True:
        _, seconds = timed("heartbeat", pb.Heartbeat())
        say("ping", seconds)
        task = uuid7()
        spec = pb.TaskSpec(task_id=task, queue="bystander", ttl_ms=100)
        reply, seconds = timed("submit", pb.Submit(tasks=[spec]))
        say("submit", seconds)
        if waiting is None and reply.code == OK and reply.submitted.items[0].code == OK:
            waiting = link.send("wait", pb.Wait(task_ids=[task])), time.monotonic() + 0.1
        _, seconds = timed("list", pb.List(limit=1, filter=pb.Filter(queues=["bystander"])))
        say("list", seconds)
        others = [part for kind, part, _ in link.receive(0.005) if kind == "reply"]
        if waiting is not None and waiting[0] in {part.id for part in [*others, *link.kept]}:
            say("due", max(0, time.monotonic() - waiting[1]))
            waiting = None
        link.kept.clear()


if __name__ == "__main__":
    stand_by(sys.argv[1])
