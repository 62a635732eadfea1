# This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
# If a copy of the MPL was not distributed with this file, You can obtain one at
# https://mozilla.org/MPL/2.0/.

"""libtaskmq in an asyncio program: the loop watches tmq_client_fd, futures are the user pointers.
That it passes proves the ABI friendly: no callback, no thread, no macro is needed."""

import asyncio
import ctypes as c

from broker import Broker
from library import (OP_COMPLETE, OP_SUBMIT, OP_WAIT, OPTIONS_BYTES, TIMEOUT, Assignment,
                     Completion, Error, Id, Outcome, Submit, WorkerOptions, load)

TASKS = 200
TIMEOUT_MS = 30000


class TaskmqError(Exception):
    pass


class Client:
    """What an asyncio wrapper needs of the library, in one page."""

    def __init__(self, endpoint):
        self.library = load()
        self.error = Error()
        options = c.create_string_buffer(OPTIONS_BYTES)
        self.library.tmq_client_options_init(options, c.c_size_t(OPTIONS_BYTES))
        self.check(self.library.tmq_client_options_set(options, b"endpoint", endpoint.encode(),
                                                       c.byref(self.error)))
        self.client = c.c_void_p()
        self.check(self.library.tmq_client_new(c.byref(self.client), options, c.byref(self.error)))
        self.library.tmq_client_options_clear(options)
        self.futures = {}
        self.next_user = 0
        asyncio.get_running_loop().add_reader(self.library.tmq_client_fd(self.client), self.drain)

    def check(self, code):
        if code != 0:
            raise TaskmqError(f"{self.library.tmq_code_name(code).decode()}: "
                              f"{self.error.text.decode()}")

    def future(self):
        self.next_user += 1
        self.futures[self.next_user] = asyncio.get_running_loop().create_future()
        return self.next_user, self.futures[self.next_user]

    def drain(self):
        completions = (c.POINTER(Completion) * 100)()
        count = c.c_size_t()
        code = self.library.tmq_client_poll(completions, 100, c.byref(count), self.client, 0)
        assert code in (0, TIMEOUT)
        for completion in completions[:count.value]:
            self.settle(completion.contents)
            self.library.tmq_completion_free(completion)

    def settle(self, completion):
        future = self.futures.pop(completion.user)
        if completion.code != 0:
            future.set_exception(TaskmqError(completion.error.contents.text.decode()))
        elif completion.op == OP_SUBMIT:
            future.set_result(bytes(completion.receipts[0].id.bytes))
        else:
            assert completion.op in (OP_WAIT, OP_COMPLETE)
            future.set_result(completion.status)

    async def submit(self, queue, payload):
        task = Submit()
        self.library.tmq_submit_init(c.byref(task), c.c_size_t(c.sizeof(task)))
        task.queue, task.payload, task.payload_bytes = queue, payload, len(payload)
        user, future = self.future()
        self.check(self.library.tmq_submit_start(self.client, task, TIMEOUT_MS, user, self.error))
        return await future

    async def wait(self, task_id):
        user, future = self.future()
        self.check(self.library.tmq_wait_start(self.client, Id((c.c_uint8 * 16)(*task_id)), 1,
                                               TIMEOUT_MS, user, self.error))
        return await future

    async def complete(self, worker, assignment, result):
        user, future = self.future()
        outcome = Outcome(result=result, result_bytes=len(result))
        self.check(self.library.tmq_worker_complete_start(worker, assignment, outcome, TIMEOUT_MS,
                                                          user, self.error))
        return await future

    def close(self):
        asyncio.get_running_loop().remove_reader(self.library.tmq_client_fd(self.client))
        self.library.tmq_client_free(c.byref(self.client))


async def work(client, tasks):
    """A worker that upper-cases, without a thread: next with timeout 0 between other things."""
    queues = (c.c_char_p * 1)(b"upper")
    options = WorkerOptions()
    client.library.tmq_worker_options_init(c.byref(options), c.c_size_t(c.sizeof(options)))
    options.queues, options.queues_count, options.capacity = queues, 1, 50
    worker = c.c_void_p()
    client.check(client.library.tmq_worker_new(c.byref(worker), client.client, options,
                                               client.error))
    ends = []
    while len(ends) < tasks:
        assignment = c.POINTER(Assignment)()
        if client.library.tmq_worker_next(c.byref(assignment), worker, 0, client.error) != 0:
            await asyncio.sleep(0.001)
            continue
        client.check(client.library.tmq_worker_started(worker, assignment, client.error))
        given = assignment.contents
        payload = c.string_at(given.payload, given.payload_bytes)
        ends.append(asyncio.ensure_future(client.complete(worker, assignment, payload.upper())))
        await asyncio.sleep(0)
        client.library.tmq_assignment_free(assignment)
    await asyncio.gather(*ends)
    client.library.tmq_worker_free(c.byref(worker))


async def main():
    with Broker() as broker:
        client = Client(broker.endpoint)
        worker = asyncio.ensure_future(work(client, TASKS))
        ids = await asyncio.gather(*[client.submit(b"upper", b"task %d" % i)
                                     for i in range(TASKS)])
        statuses = await asyncio.gather(*[client.wait(task_id) for task_id in ids])
        assert set(statuses) == {4}, statuses
        await worker
        missing = Id((c.c_uint8 * 16)(*bytes(6), 0x70, 0, 0x80, *bytes(7)))
        task = c.c_void_p()
        code = client.library.tmq_result(c.byref(task), client.client, missing, 5000, client.error)
        assert client.library.tmq_code_name(code) == b"NOT_FOUND"
        try:
            await client.submit(b"not a name", b"")
        except TaskmqError as error:
            assert "queue" in str(error)
        else:
            raise AssertionError("a bad name was taken")
        client.close()
    print(f"{TASKS} tasks through ctypes and asyncio")


asyncio.run(main())
