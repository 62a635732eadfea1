# This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
# If a copy of the MPL was not distributed with this file, You can obtain one at
# https://mozilla.org/MPL/2.0/.

"""A broker that is killed in the middle of each request of MCP, that is away, or that does not answer;
and what the gateway refuses by its own limits: test_mcp_kills.py PART."""

import os
import re
import signal
import sys

from broker import eventually
from gateway import Answer
from test_mcp import MODERN, TASKS, Client, Stage, check, open_request, settle, text_of
from test_mcp_listen import Stream, is_status, listen

UNREACHABLE, UNKNOWN, LIMIT, OVERLOADED = -33264, -33265, -33214, -33212


class Request:
    """One that is under way: the gateway has read it whole when this returns."""

    def __init__(self, client, method, params=None):
        self.client = client
        self.connection = open_request(client.gateway, client, client.message(method, params))
        for _ in range(3):  # its loop has come around since
            client.gateway.get("/healthz", token=None)

    def outcome(self):
        """The one answer: what it says at last, its status and its fields."""
        answer = Answer(self.connection.getresponse())
        self.connection.close()
        messages = [message for message in self.client.messages(answer) if "id" in message]
        check("answers", len(messages), 1)
        return messages[0], answer

    def result(self):
        message, _ = self.outcome()
        assert "result" in message, message
        return message["result"]

    def error(self):
        """Code and data; a retriable one says when."""
        message, answer = self.outcome()
        assert "error" in message, message
        if message["error"]["data"]["retriable"]:
            assert int(answer.fields["retry-after"]) >= 1, answer.fields
            assert message["error"]["data"]["retryAfterMs"] >= 1, message
        return answer.status, message["error"]["code"]


def runs(stage, label):
    """How often the work of that name was done."""
    path = os.path.join(stage.broker.home, "runs")
    if not os.path.exists(path):
        return 0
    with open(path, encoding="utf-8") as file:
        return file.read().split().count(label)


def signal_broker(stage, what):
    stage.broker.process.send_signal(what)


def restart(stage):
    stage.broker.kill()
    stage.broker.start()


def kill_in(stage, *asked):
    """Requests of clients to a broker that stands still, and is killed with them in its socket."""
    signal_broker(stage, signal.SIGSTOP)
    requests = [Request(client, method, params) for client, method, params in asked]
    restart(stage)
    return requests


def working(gateway):
    items = gateway.get("/v1/tasks?status=working").json["items"]
    return [task["task_id"] for task in items]


def of_default(gateway, name):
    told = gateway.get("/metrics").body.decode()
    found = re.search(rf'^taskmq_gateway_{name}{{namespace="default"}} (\d+)', told, re.M)
    return int(found.group(1))


def memory(gateway):
    told = gateway.get("/metrics").body.decode()
    return int(re.search(r'^taskmq_gateway_memory_bytes{use="buffers"} (\d+)', told, re.M).group(1))


def once(label, **more):
    return {"name": "once", "arguments": {"label": label, "seconds": 0.3}, **more}


def twice(stage, client, params, label):
    """The same call once more is the same work."""
    result = client.ask("tools/call", params)
    check(f"runs of {label}", runs(stage, label), 1)
    return result


def try_submits(stage):
    """Whoever calls: one answer, and the same call once more is the same work."""
    plain = Client(stage.gateway)
    modern = Client(stage.gateway, capabilities=TASKS)
    legacy = Client(stage.gateway, "2025-11-25")
    call, handle, task = kill_in(
        stage, (plain, "tools/call", once("call")), (modern, "tools/call", once("handle")),
        (legacy, "tools/call", once("task", task={})))
    check("a call", text_of(call.result()), "done call")
    found = handle.result()
    if found["resultType"] == "task":  # it took longer than `inline`
        found = settle(modern, found["taskId"], "completed")["result"]
    check("of 2026", text_of(found), "done handle")
    found = task.result()["task"]["taskId"]
    settle(legacy, found, "completed")
    check("repeated", text_of(twice(stage, plain, once("call"), "call")), "done call")
    check("repeated", text_of(twice(stage, modern, once("handle"), "handle")), "done handle")
    again = twice(stage, legacy, once("task", task={}), "task")["task"]["taskId"]
    check("the same task", again, found)


def try_work(stage):
    """What waits and listens goes on, longer than any wait of it; the work is not done again."""
    gateway = stage.gateway
    plain = Client(gateway)
    modern = Client(gateway, capabilities=TASKS)
    legacy = Client(gateway, "2025-11-25")
    heard = Stream(gateway, legacy)
    heard.next_id()
    slow = {"seconds": 1, "label": "w"}
    task = legacy.call("slow_compute", slow, task={})["task"]["taskId"]
    told = listen(gateway, modern, 1, taskIds=[task])
    told.next()
    result = Request(legacy, "tasks/result", {"taskId": task})
    call = Request(plain, "tools/call", once("worked"))
    eventually("it works", lambda: runs(stage, "worked") > 0)
    restart(stage)
    check("a call", text_of(call.result()), "done worked")
    check("tasks/result", text_of(result.result()), "done w")
    heard.until(is_status(task, "completed"))
    last = told.until(lambda message: message["params"]["status"] == "completed")[-1]
    check("listen", text_of(last["params"]["result"]), "done w")
    heard.close()
    told.close()
    twice(stage, plain, once("worked"), "worked")


def try_tasks_methods(stage):
    gateway = stage.gateway
    modern = Client(gateway, capabilities={**TASKS, "elicitation": {}})
    legacy = Client(gateway, "2025-11-25")
    done = legacy.call("slow_compute", {"label": "t"}, task={})["task"]["taskId"]
    settle(legacy, done, "completed")
    first, second = (legacy.call("slow_compute", {"seconds": 60}, task={})["task"]["taskId"]
                     for _ in range(2))
    asks = modern.call("confirm_delete", {"filename": "f"})["taskId"]
    settle(modern, asks, "input_required")
    accept = {"confirm": {"action": "accept", "content": {"confirm": True}}}
    one = {"taskId": done}
    get, get_modern, listed, result, cancel, cancel_modern, update, begun = kill_in(
        stage, (legacy, "tasks/get", one), (modern, "tasks/get", one), (legacy, "tasks/list", {}),
        (legacy, "tasks/result", one), (legacy, "tasks/cancel", {"taskId": first}),
        (modern, "tasks/cancel", {"taskId": second}),
        (modern, "tasks/update", {"taskId": asks, "inputResponses": accept}),
        (modern, "subscriptions/listen", {"notifications": {"taskIds": [done]}}))
    check("tasks/get", get.result()["status"], "completed")
    check("of 2026", text_of(get_modern.result()["result"]), "done t")
    assert done in [found["taskId"] for found in listed.result()["tasks"]]
    check("tasks/result", text_of(result.result()), "done t")
    check("tasks/cancel", cancel.result()["status"], "cancelled")
    check("of 2026", cancel_modern.result()["resultType"], "complete")
    for client, task, repeated in ((legacy, first, -32602), (modern, second, None)):
        settle(client, task, "cancelled")
        again, _ = Request(client, "tasks/cancel", {"taskId": task}).outcome()
        check("repeated", again.get("error", {}).get("code"), repeated)
    check("tasks/update", update.result()["resultType"], "complete")
    check("repeated", modern.ask("tasks/update", {"taskId": asks, "inputResponses": accept})
          ["resultType"], "complete")
    check("its answer", text_of(settle(modern, asks, "completed")["result"]), "deleted")
    response = begun.connection.getresponse()
    check("listen", response.status, 200)
    response.close()
    begun.connection.close()


def try_away(stage):
    """Beyond the grace each request is refused at once, and nothing is done."""
    gateway = stage.gateway
    modern = Client(stage.gateway, capabilities=TASKS)
    legacy = Client(stage.gateway, "2025-11-25")
    task = {"taskId": legacy.call("slow_compute", {"seconds": 0}, task={})["task"]["taskId"]}
    stage.broker.kill()
    eventually("it is away", lambda: gateway.get("/readyz", token=None).status == 503)
    for client, method, params in (
            (modern, "tools/call", once("away")), (legacy, "tools/call", once("away")),
            (legacy, "tools/call", once("away", task={})), (modern, "tasks/get", task),
            (modern, "tasks/update", {**task, "inputResponses": {}}),
            (modern, "tasks/cancel", task), (legacy, "tasks/get", task),
            (legacy, "tasks/result", task), (legacy, "tasks/list", {}),
            (legacy, "tasks/cancel", task),
            (modern, "subscriptions/listen", {"notifications": {"taskIds": [task["taskId"]]}})):
        check(method, Request(client, method, params).error(), (200, UNREACHABLE))
    check("what needs no broker", len(modern.ask("tools/list")["tools"]) > 0, True)
    stage.broker.start()
    stage.gateway.await_broker()
    check("nothing was done", runs(stage, "away"), 0)
    check("repeated", text_of(Client(stage.gateway).ask("tools/call", once("away"))), "done away")
    check("once", runs(stage, "away"), 1)


def try_silence(stage):
    """A broker that does not answer in time: it may have been done, and a repeated call is that."""
    plain = Client(stage.gateway)
    signal_broker(stage, signal.SIGSTOP)
    check("tools/call", Request(plain, "tools/call", once("silent")).error(), (200, UNKNOWN))
    signal_broker(stage, signal.SIGCONT)
    stage.gateway.await_broker()
    check("repeated", text_of(twice(stage, plain, once("silent"), "silent")), "done silent")


def try_rate(stage):
    gateway = stage.gateway
    tokens = [gateway.make_token(name, "client") for name in ("ann", "bo", "cy")]
    gateway.reload()
    for version, token in ((MODERN, tokens[0]), ("2025-11-25", tokens[1])):
        client = Client(gateway, version, token=token)
        taken, refused = 0, []
        while not refused:  # several at a time: one call may take as long as a permit
            calls = [Request(client, "tools/call", {"name": "greet", "arguments": {"name": "Ann"}})
                     for _ in range(6)]
            found = [call.outcome() for call in calls]
            refused = [one for one in found if "result" not in one[0]]
            taken += len(found) - len(refused)
            assert taken < 100, "there is no rate"
        message, answer = refused[0]
        assert taken >= 1, message
        check("beyond the rate", (answer.status, message["error"]["code"],
                                  message["error"]["data"]["code"],
                                  message["error"]["data"]["retriable"]), (200, LIMIT, "LIMIT", True))
        assert 0 < message["error"]["data"]["retryAfterMs"] <= 1000, message
        check("Retry-After", answer.fields["retry-after"], "1")
        check("other methods", len(client.ask("tools/list")["tools"]) > 0, True)
        other = Client(gateway, token=tokens[2])
        check("another token", text_of(other.call("greet", {"name": "Bo"})), "Hello, Bo!")
        eventually("there is a permit again", lambda: "result" in Request(
            client, "tools/call", {"name": "greet", "arguments": {"name": "Ann"}}).outcome()[0])
    told = gateway.get("/metrics").body.decode()
    assert re.search(r"^taskmq_gateway_rate_limited_total [1-9]", told, re.M), told


def try_trees(stage):
    """A text of some KB that takes MBs when it is parsed is refused, and leaves nothing behind."""
    gateway = stage.gateway
    client = Client(gateway)

    def trees():
        told = gateway.get("/metrics").body.decode()
        return int(re.search(r'^taskmq_gateway_memory_bytes{use="trees"} (\d+)', told, re.M).group(1))
    before = trees()
    big = {"name": "echo", "arguments": {"list": [{}] * 80000}}
    for _ in range(3):
        message, answer = Request(client, "tools/call", big).outcome()
        check("too much", (answer.status, message["error"]["code"],
                           message["error"]["data"]["code"]), (503, OVERLOADED, "OVERLOADED"))
        check("when again", answer.fields["retry-after"], "1")
    check("nothing stays", trees(), before)
    check("others are served", text_of(client.call("greet", {"name": "Ann"})), "Hello, Ann!")
    # What waits does not hold what it was asked by: else a few calls would keep all others out.
    modern = Client(gateway, capabilities=TASKS)
    slow = {"name": "slow_compute", "arguments": {"seconds": 60, "list": [{}] * 2000}}
    many = [{}] * 2000
    held = [Request(client, "tools/call", slow)]
    task = modern.call("slow_compute", {"seconds": 60})["taskId"]
    heard = listen(gateway, modern, 2, taskIds=[task], **{"filler": many})
    heard.next()
    check("nothing is held", trees(), before)
    assert memory(gateway) < 20000, memory(gateway)
    held[0].connection.close()
    heard.close()
    check("others are served", text_of(client.call("greet", {"name": "Ann"})), "Hello, Ann!")


def try_long(stage):
    """What each event of a stream repeats is short."""
    client = Client(stage.gateway)
    message = client.message("tools/list")
    for size, status in ((1022, 200), (1023, 400)):
        told = client.send({**message, "id": "i" * size}, Mcp_Method="tools/list")
        check("an id", (told.status, told.json.get("error", {}).get("code")),
              (status, None if status == 200 else -32600))
    for size, code in ((1024, None), (1025, -32602)):
        told, _ = Request(client, "tools/call", {
            "name": "greet", "arguments": {"name": "Ann"},
            "_meta": {"progressToken": "t" * size}}).outcome()
        check("a progress token", told.get("error", {}).get("code"), code)


def try_leaving(stage):
    """A client leaves while the broker is away: its task is cancelled all the same. One more than are
    kept goes on, which is told."""
    gateway = stage.gateway
    client = Client(gateway)
    calls = [Request(client, "tools/call", {"name": "slow_compute", "arguments": {
        "seconds": 60, "label": label}}) for label in ("first", "second")]
    eventually("both work", lambda: len(working(gateway)) == 2)
    tasks = working(gateway)
    stage.broker.kill()
    eventually("it is away", lambda: gateway.get("/readyz", token=None).status == 503)
    for call in calls:
        call.connection.close()
    eventually("one was dropped", lambda: of_default(gateway, "cancels_dropped_total") == 1)
    check("one is kept", of_default(gateway, "cancels"), 1)
    stage.broker.start()
    gateway.await_broker()
    eventually("it is settled", lambda: of_default(gateway, "cancels") == 0)
    found = [gateway.get(f"/v1/tasks/{task}").json for task in tasks]
    check("one was cancelled", sorted(task["status"] for task in found), ["cancelled", "working"])
    check("why", [task["cancel_message"] for task in found if task["status"] == "cancelled"],
          ["its caller has left"])


PARTS = {
    "calls": (["grace = 1m", "request_timeout = 1m"], (try_submits, try_work, try_tasks_methods)),
    "away": (["grace = 0", "request_timeout = 2s"], (try_away, try_silence)),
    "bounds": (["call_rate = 2", "call_rate_burst = 3"], (try_rate,)),
    "memory": (["memory_bytes_max = 4M"], (try_trees, try_long)),
    "leaves": (["grace = 0", "request_timeout = 2s", "cancels_max = 1"], (try_leaving,)),
}

if __name__ == "__main__":
    SETTINGS, TESTS = PARTS[sys.argv[1]]
    FREE = ["call_rate = 10000", "call_rate_burst = 10000"] if sys.argv[1] != "bounds" else []
    STAGE = Stage(configuration=SETTINGS + FREE)
    with STAGE:
        for try_part in TESTS:
            print(try_part.__name__, flush=True)
            try_part(STAGE)
