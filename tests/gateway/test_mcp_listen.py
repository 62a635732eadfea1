# This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
# If a copy of the MPL was not distributed with this file, You can obtain one at
# https://mozilla.org/MPL/2.0/.

"""Notifications of MCP: subscriptions/listen of 2026, and the stream of a session of 2025."""

import json
import os
import re
import sys

from test_mcp import (META, MODERN, TASKS, Client, Stage, check, next_event, open_stream, settle,
                      text_of)

SUBSCRIPTION = META + "subscriptionId"


class Stream:
    """What a client is told, message by message."""

    def __init__(self, gateway, client, message=None, **more):
        self.connection, self.response = open_stream(gateway, client, message, **more)
        self.last = None

    def next(self):
        """The next message; ids that come alone are kept."""
        while True:
            found, message = next_event(self.response)
            self.last = found or self.last
            if message is not None:
                return message

    def next_id(self):
        found, message = next_event(self.response)
        assert message is None, message
        self.last = found
        return found

    def until(self, wanted):
        """The messages up to the first that is as wanted."""
        all_of_them = []
        while not all_of_them or not wanted(all_of_them[-1]):
            all_of_them.append(self.next())
        return all_of_them

    def ended(self):
        try:
            while True:
                next_event(self.response)
        except EOFError:
            return True

    def close(self):
        self.response.close()
        self.connection.close()


def listen(gateway, client, number=1, **notifications):
    params = {"notifications": notifications,
              "_meta": {META + "protocolVersion": MODERN,
                        META + "clientCapabilities": client.capabilities}}
    return Stream(gateway, client, {"jsonrpc": "2.0", "id": number,
                                    "method": "subscriptions/listen", "params": params})


def change_tools(stage, how):
    path = os.path.join(stage.broker.home, "tools.json")
    with open(path, encoding="utf-8") as file:
        tools = json.load(file)
    how(tools)
    with open(path, "w", encoding="utf-8") as file:
        json.dump(tools, file)
    stage.gateway.reload()


def describe(text):
    def change(tools):
        tools["tools"][0]["description"] = text
    return change


def try_tools(stage):
    gateway = stage.gateway
    client = Client(gateway)
    stream = listen(gateway, client, 7, toolsListChanged=True, promptsListChanged=True)
    check("the first message", stream.next(), {
        "jsonrpc": "2.0", "method": "notifications/subscriptions/acknowledged",
        "params": {"notifications": {"toolsListChanged": True}, "_meta": {SUBSCRIPTION: 7}}})
    deaf = listen(gateway, client, "d", promptsListChanged=True)
    check("nothing of that", deaf.next()["params"]["notifications"], {})
    change_tools(stage, lambda tools: None)
    change_tools(stage, describe("greets"))
    check("changed", stream.next(), {"jsonrpc": "2.0", "method": "notifications/tools/list_changed",
                                     "params": {"_meta": {SUBSCRIPTION: 7}}})
    check("new", client.ask("tools/list")["tools"][0]["description"], "greets")
    # A file with a mistake changes nothing; so what comes next is of the one behind it.
    change_tools(stage, lambda tools: tools["tools"][0].update(inputSchema=3))
    change_tools(stage, lambda tools: tools["tools"][0].update(inputSchema={"type": "object"}))
    stream.next()
    check("once", client.ask("tools/list")["tools"][0]["inputSchema"], {"type": "object"})
    check("offered", client.ask("server/discover")["capabilities"]["tools"], {"listChanged": True})
    # Who does not see a tool does not hear of it.
    other = Client(gateway, token=gateway.make_token("agent", "client"))
    gateway.reload()
    theirs = listen(gateway, other, 9, toolsListChanged=True)
    theirs.next()

    def hidden(tools):
        tools["tools"].append({"name": "hidden", "inputSchema": {"type": "object"},
                               "taskmq": {"queue": "tools", "roles": ["operator"]}})
    change_tools(stage, hidden)
    stream.next()
    change_tools(stage, describe("greets all"))
    stream.next()
    theirs.next()
    deaf.close()
    # Both streams end with the answer to their request; nothing else was told.
    gateway.stop()
    for one, number in ((stream, 7), (theirs, 9)):
        check("the end", one.next(), {"jsonrpc": "2.0", "id": number, "result": {
            "resultType": "complete", "_meta": {SUBSCRIPTION: number}}})
        assert one.ended()
    gateway.start()


def try_tasks(stage):
    gateway = stage.gateway
    client = Client(gateway, capabilities={**TASKS, "elicitation": {}})
    handle = client.call("multi_input")["taskId"]
    done = client.call("failing_job")["taskId"]
    settle(client, done, "completed")
    other = Client(gateway, capabilities=TASKS, token=gateway.make_token("other", "client"))
    gateway.reload()
    foreign = other.call("slow_compute", {"seconds": 3})["taskId"]
    nobody = "01890000-0000-7000-8000-000000000000"
    stream = listen(gateway, client, "s1", taskIds=[foreign, handle, nobody, "x", done, handle])
    check("those that are taken", stream.next()["params"]["notifications"],
          {"taskIds": [handle, done]})
    told = {}

    def hear(task, wanted):
        while task not in told or not wanted(told[task]):
            message = stream.next()
            check("method", message["method"], "notifications/tasks")
            params = message["params"]
            check("of this stream", params.pop("_meta"), {SUBSCRIPTION: "s1"})
            told[params["taskId"]] = params
        return told[task]

    failed = hear(done, lambda task: True)
    asked = client.ask("tasks/get", {"taskId": done})
    check("as tasks/get tells", failed, {key: value for key, value in asked.items()
                                         if key not in ("resultType", "_meta")})
    asked = hear(handle, lambda task: len(task.get("inputRequests", {})) == 2)
    check("asks", (asked["status"], sorted(asked["inputRequests"])),
          ("input_required", ["first", "second"]))
    answer = {"action": "accept", "content": {"name": "Ann"}}
    client.ask("tasks/update", {"taskId": handle, "inputResponses": {"first": answer}})
    hear(handle, lambda task: sorted(task.get("inputRequests", {})) == ["second"])
    client.ask("tasks/update", {"taskId": handle, "inputResponses": {"second": answer}})
    ended = hear(handle, lambda task: task["status"] == "completed")
    check("its result", json.loads(text_of(ended["result"])), {"first": answer, "second": answer})
    stream.close()
    for what, params in (("none", {}), ("no texts", {"notifications": {"taskIds": [1]}}),
                         ("no truth", {"notifications": {"toolsListChanged": 1}})):
        check(what, client.refused("subscriptions/listen", params), (200, -32602))
    check("without the extension", Client(gateway).refused(
        "subscriptions/listen", {"notifications": {"taskIds": [handle]}}), (400, -32021))
    old = Client(gateway, "2025-11-25")
    check("of 2025", old.refused("subscriptions/listen", {"notifications": {}}), (200, -32601))
    many = [nobody] * 63 + [handle, done]
    stream = listen(gateway, client, 3, taskIds=many)
    check("the 64 first", stream.next()["params"]["notifications"], {"taskIds": [handle]})
    stream.close()


def states(messages, task):
    """The states of a task that were told, without doubles."""
    told = [message["params"]["status"] for message in messages
            if message["method"] == "notifications/tasks/status"
            and message["params"]["taskId"] == task]
    return [status for i, status in enumerate(told) if i == 0 or told[i - 1] != status]


def is_status(task, status):
    return lambda message: (message["method"] == "notifications/tasks/status" and
                            message["params"]["taskId"] == task and
                            message["params"]["status"] == status)


def try_session(stage):
    gateway = stage.gateway
    client = Client(gateway, "2025-11-25")
    check("offered", client.welcome["capabilities"]["tools"], {"listChanged": True})
    check("Accept", gateway.get("/mcp", **{**client.fields(), "Accept": "application/json"}).status,
          406)
    stream = Stream(gateway, client, Accept="text/event-stream")
    check("an id at once", stream.next_id() is not None, True)
    # A call that is no task says nothing there; one that is tells its states, progress and status.
    client.ask("logging/setLevel", {"level": "info"})
    client.call("greet", {"name": "Ann"})
    task = client.call("slow_compute", {"seconds": 0.2, "label": "l"}, task={})["task"]["taskId"]
    messages = stream.until(is_status(task, "completed"))
    check("states", states(messages, task), ["working", "completed"])
    check("one task", {message["params"].get("taskId", task) for message in messages}, {task})
    check("as tasks/get tells", messages[-1]["params"], client.ask("tasks/get", {"taskId": task}))
    check("status message", [message["params"] for message in messages
                             if message["method"] == "notifications/message"],
          [{"level": "info", "logger": "slow_compute", "data": "computing"}])
    task = client.call("work_in_steps", task={}, _meta={"progressToken": "p"})["task"]["taskId"]
    messages = stream.until(is_status(task, "completed"))
    steps = [message["params"] for message in messages
             if message["method"] == "notifications/progress"]
    rising = [step["progress"] for step in steps]
    check("token", {step["progressToken"] for step in steps}, {"p"})
    check("rises", rising, sorted(set(rising)))
    # It goes on behind what was told, also behind a restart; changes of tools are not missed.
    last = stream.last
    stream.close()
    task = client.call("slow_compute", {"seconds": 0, "label": "m"}, task={})["task"]["taskId"]
    settle(client, task, "completed")
    gateway.kill()
    with open(os.path.join(stage.broker.home, "tools.json"), encoding="utf-8") as file:
        tools = json.load(file)
    describe("greets again")(tools)
    with open(os.path.join(stage.broker.home, "tools.json"), "w", encoding="utf-8") as file:
        json.dump(tools, file)
    gateway.start()
    stream = Stream(gateway, client, Last_Event_ID=last)
    messages = stream.until(is_status(task, "completed"))
    check("changed", messages[0]["method"], "notifications/tools/list_changed")
    check("no more than that", {message["params"].get("taskId", task) for message in messages},
          {task})
    # The newest stream of a session is the one.
    newer = Stream(gateway, client)
    assert stream.ended()
    other = Client(gateway, "2025-11-25")
    check("of another session", gateway.get("/mcp", Last_Event_ID=last, **other.fields()).status,
          400)
    check("DELETE", gateway.ask("DELETE", "/mcp", None, **client.fields()).status, 204)
    assert newer.ended()
    old = Client(gateway, "2025-06-18")
    stream = Stream(gateway, old)
    change_tools(stage, describe("greets once more"))
    check("2025-06-18 too", stream.next()["method"], "notifications/tools/list_changed")
    stream.close()


def try_slow(stage):
    """Who does not read is owed little, nobody else waits, and he has it all when he reads."""
    gateway = stage.gateway
    client = Client(gateway, capabilities=TASKS)
    tasks = [client.call("slow_compute", {"seconds": 0.5, "dots": 200000, "label": str(i)})["taskId"]
             for i in range(16)]
    slow = listen(gateway, client, 1, taskIds=tasks)
    quick = listen(gateway, client, 2, taskIds=tasks)

    def hear(stream):
        told = {}
        check("taken", len(stream.next()["params"]["notifications"]["taskIds"]), 16)
        while len(told) < 16:
            params = stream.next()["params"]
            if params["status"] == "completed":
                told[params["taskId"]] = len(text_of(params["result"]))
        assert min(told.values()) > 200000, told

    hear(quick)
    text = gateway.get("/metrics").body.decode()
    held = int(re.search(r'^taskmq_gateway_memory_bytes{use="buffers"} (\d+)', text, re.M).group(1))
    # What all the results take is 3 MB: the sockets hold some, the gateway one piece and the mark.
    assert held < 1024 * 1024, held
    hear(slow)
    slow.close()
    quick.close()


def try_many(stage):
    """More listeners than look at a time: each of them hears how the task ends."""
    gateway = stage.gateway
    modern = Client(gateway, capabilities=TASKS)
    task = modern.call("slow_compute", {"seconds": 2, "label": "many"})["taskId"]
    heard = [listen(gateway, modern, number, taskIds=[task]) for number in range(30)]
    for stream in heard:
        last = stream.until(lambda message: message["params"].get("status") == "completed")[-1]
        check("its result", text_of(last["params"]["result"]), "done many")
        stream.close()


def try_room(stage):
    """Streams leave half of a token's requests to its calls."""
    gateway = stage.gateway
    sessions = [Client(gateway, "2025-11-25") for _ in range(3)]
    streams = [Stream(gateway, client) for client in sessions[:2]]
    for stream in streams:
        stream.next_id()
    refused = gateway.get("/mcp", **sessions[2].fields())
    check("no stream", (refused.status, refused.fields["allow"]), (405, "POST, DELETE"))
    modern = Client(gateway)
    check("no listen", modern.refused("subscriptions/listen", {"notifications": {}}),
          (200, -33214))
    check("a call", text_of(sessions[2].call("greet", {"name": "Ann"})), "Hello, Ann!")
    # The stream of a session takes the place of the one before it.
    newer = Stream(gateway, sessions[0])
    assert streams[0].ended()
    newer.next_id()
    for stream in (newer, streams[1]):
        stream.close()


PARTS = {"room": (try_room,), "tools": (try_tools,), "tasks": (try_tasks, try_slow), "many": (try_many,), "session": (try_session,)}

if __name__ == "__main__":
    FREE = ["call_rate = 10000", "call_rate_burst = 10000"]
    # A ping would make a listener look that was forgotten.
    MORE = {"room": ["principal_requests_max = 4"], "many": ["stream_ping = 1h"]}
    STAGE = Stage(configuration=FREE + MORE.get(sys.argv[1], []))
    with STAGE:
        for try_part in PARTS[sys.argv[1]]:
            print(try_part.__name__, flush=True)
            try_part(STAGE)
