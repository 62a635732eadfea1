# This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
# If a copy of the MPL was not distributed with this file, You can obtain one at
# https://mozilla.org/MPL/2.0/.

"""Listeners of MCP give way to principals with less, whether they read or not.
test_shares_mcp.py PART."""

import http.client
import json
import socket
import sys

from broker import eventually
from test_bodies import buffers
from test_mcp import TASKS, Client, Stage, settle
from test_mcp_listen import SUBSCRIPTION, listen
from test_shares import FAST, MIB, SMALL, await_stall, make, make_answers, serve_third
from test_gateway import check
from test_streams import Events, metric

RESULT_BYTES = 200000
CALLS = ["call_rate = 10000", "call_rate_burst = 10000", *FAST]


def make_tasks(gateway, client):
    """Tasks with results that no socket takes."""
    tasks = [client.call("slow_compute", {"seconds": 0.5, "dots": RESULT_BYTES,
                                          "label": str(number)})["taskId"] for number in range(32)]
    for task in tasks:
        settle(client, task, "completed")
    return tasks


def listen_slowly(gateway, client, number, tasks):
    stream = listen(gateway, client, number, taskIds=tasks)
    stream.connection.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    return stream


def answers_of(stream):
    """Reads to the end, whole or not: how often its request was answered."""
    data = b""
    try:
        while piece := stream.response.read1(65536):
            data += piece
    except (OSError, http.client.IncompleteRead):
        pass
    return sum("result" in json.loads(line[5:]) for line in data.split(b"\n")
               if line.startswith(b"data:") and line.endswith(b"}"))


def part_seats():
    with Stage(configuration=["streams_max = 4", "output_bytes_max = 64K", "output_timeout = 5m",
                              *CALLS]) as gateway:
        client = Client(gateway, capabilities=TASKS)
        bob, = make(gateway, "bob")
        tasks = make_tasks(gateway, client)
        polite = listen(gateway, client, 7, toolsListChanged=True)
        polite.next()
        slow = [listen_slowly(gateway, client, number, tasks) for number in range(3)]
        await_stall(gateway, 3 * RESULT_BYTES)
        others = [Events(gateway, "/v1/events", token=bob, again=False) for _ in range(2)]
        for number, other in enumerate(others):
            check(f"another one, {number}", other.await_kind("live") is not None, True)
        check("so many gave way", metric(gateway, "streams_displaced_total"), 2)
        check("who reads has an answer", polite.next(), {"jsonrpc": "2.0", "id": 7, "result": {
            "resultType": "complete", "_meta": {SUBSCRIPTION: 7}}})
        check("who does not has one at most", answers_of(slow[0]) <= 1, True)
        for one in others:
            one.stop()
        for one in (polite, *slow):
            one.close()


def part_memory():
    with Stage(configuration=["output_bytes_max = 64K", *CALLS, *SMALL]) as gateway:
        ann, bob, cid = make(gateway, "ann", "bob", "cid")
        task_id, = make_answers(gateway, cid)
        slow = []
        for token in (ann, bob):
            client = Client(gateway, capabilities=TASKS, token=token)
            tasks = make_tasks(gateway, client)
            slow += [listen_slowly(gateway, client, number, tasks) for number in range(6)]
        # With the trees of messages it is as much as leaves no room for the third one's answer.
        eventually("they hold it", lambda: buffers(gateway) > 7 * MIB // 4 - RESULT_BYTES // 2)
        for number in range(5):
            serve_third(gateway, cid, task_id)
        for one in slow:
            one.close()


if __name__ == "__main__":
    {"seats": part_seats, "memory": part_memory}[sys.argv[1]]()
