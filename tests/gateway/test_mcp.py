# This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
# If a copy of the MPL was not distributed with this file, You can obtain one at
# https://mozilla.org/MPL/2.0/.

"""MCP by plain HTTP, as clients of both generations type it: test_mcp.py PART."""

import http.client
import json
import os
import shutil
import signal
import subprocess
import sys

from broker import Broker, die_with_the_test, eventually
from gateway import Gateway, program

HERE = os.path.join(os.environ["TASKMQ_SOURCE"], "tests", "gateway")
MODERN = "2026-07-28"
META = "io.modelcontextprotocol/"
RESULT = "application/vnd.mcp.result+json"


def check(what, got, wanted):
    assert got == wanted, f"{what}: {got!r}, not {wanted!r}"


class Client:
    """Of one generation: version 2026-07-28, or a session of an older one."""

    def __init__(self, gateway, version=MODERN, capabilities=None, token="first"):
        self.gateway = gateway
        self.version = version
        self.capabilities = capabilities or {}
        self.token = token
        self.session = None
        self.number = 0
        if version != MODERN:
            answer = self.post("initialize", {"protocolVersion": version,
                                              "capabilities": self.capabilities,
                                              "clientInfo": {"name": "t", "version": "1"}})
            self.welcome = answer.json["result"]
            self.session = answer.fields["mcp-session-id"]
            check("initialized", self.send({"jsonrpc": "2.0",
                                            "method": "notifications/initialized"}).status, 202)

    def fields(self, method=None, params=None):
        out = {"Accept": "application/json, text/event-stream"}
        if self.version == MODERN:
            out.update(MCP_Protocol_Version=MODERN)
            if method is not None:
                out.update(Mcp_Method=method)
            name = (params or {}).get("name") or (params or {}).get("taskId")
            if name is not None:
                out.update(Mcp_Name=name)
        elif self.session is not None:
            out.update(Mcp_Session_Id=self.session, MCP_Protocol_Version=self.version)
        return out

    def send(self, message, **fields):
        return self.gateway.post("/mcp", message, token=self.token, **{**self.fields(), **fields})

    def message(self, method, params=None):
        self.number += 1
        params = dict(params or {})
        if self.version == MODERN:
            params["_meta"] = {META + "protocolVersion": MODERN,
                               META + "clientCapabilities": self.capabilities,
                               **params.get("_meta", {})}
        return {"jsonrpc": "2.0", "id": self.number, "method": method, "params": params}

    def post(self, method, params=None, **fields):
        message = self.message(method, params)
        return self.gateway.post("/mcp", message, token=self.token,
                                 **{**self.fields(method, message["params"]), **fields})

    def messages(self, answer):
        """Of an answer that may be a stream: all messages, the answer last."""
        if answer.fields["content-type"] == "application/json":
            return [answer.json]
        data = [line[5:].strip() for line in answer.body.decode().split("\n")
                if line.startswith("data:")]
        return [json.loads(line) for line in data if line]

    def ask(self, method, params=None):
        """The result; the notifications before it are in self.told."""
        answer = self.post(method, params)
        *self.told, last = self.messages(answer)
        check("the id", last["id"], self.number)
        assert "result" in last, last
        return last["result"]

    def refused(self, method, params=None, **fields):
        """HTTP status and code of an error."""
        answer = self.post(method, params, **fields)
        last = self.messages(answer)[-1]
        assert "error" in last, last
        return answer.status, last["error"]["code"]

    def call(self, name, arguments=None, **more):
        return self.ask("tools/call", {"name": name, "arguments": arguments or {}, **more})


class Stage:
    """A broker, its gateway with a copy of the tools, and a worker for them."""

    def __init__(self, *options, configuration=("call_rate = 10000", "call_rate_burst = 10000")):
        self.broker = Broker()
        self.options = options
        self.configuration = configuration

    def __enter__(self):
        self.broker.start()
        tools = os.path.join(self.broker.home, "tools.json")
        shutil.copy(os.path.join(HERE, "tools.json"), tools)
        self.gateway = Gateway(self.broker, "--tools", tools, *self.options,
                               configuration=self.configuration)
        self.gateway.start()
        self.worker = subprocess.Popen(
            [program("taskctl"), "work", "tools", "-j", "32", "--result-type", RESULT, "--",
             os.path.join(HERE, "mcp_tools.py")], cwd=self.broker.home, stderr=self.broker.log,
            preexec_fn=die_with_the_test)
        panics = os.path.join(os.environ["TASKMQ_BIN"], "..", "tests", "panic_worker")
        self.panics = subprocess.Popen([panics, self.broker.data], stderr=self.broker.log,
                                       preexec_fn=die_with_the_test)
        return self.gateway

    def __exit__(self, kind, value, trace):
        for worker in (self.worker, self.panics):
            worker.send_signal(signal.SIGKILL)
            worker.wait()
        self.gateway.__exit__(kind, value, trace)
        self.broker.kill()


def text_of(result):
    return result["content"][0]["text"]


def test_modern(gateway):
    client = Client(gateway)
    found = client.ask("server/discover")
    check("versions", found["supportedVersions"][0], MODERN)
    check("kind", found["resultType"], "complete")
    assert "tasks" not in found["capabilities"], found
    tools = client.ask("tools/list")
    check("tools", len(tools["tools"]), 39)
    check("hidden", [tool for tool in tools["tools"] if "taskmq" in tool or "execution" in tool], [])
    result = client.call("greet", {"name": "Ann"})
    check("greet", (text_of(result), result["resultType"]), ("Hello, Ann!", "complete"))
    bad = client.call("greet", {"name": 5})
    check("bad arguments", bad["isError"], True)
    assert "/name: is not of type" in text_of(bad), bad
    failed = client.call("test_error_handling")
    check("failed", (failed["isError"], text_of(failed)),
          (True, "This tool intentionally returns an error for testing"))
    check("a body as it stands", json.loads(text_of(client.call("echo", {"a": [1.50, "é"]})))
          ["arguments"], {"a": [1.5, "é"]})


def test_modern_refusals(gateway):
    client = Client(gateway)
    check("unknown tool", client.refused("tools/call", {"name": "no"}), (200, -32602))
    check("unknown method", client.refused("prompts/list"), (404, -32601))
    check("another version", client.refused("tools/list", MCP_Protocol_Version="2025-11-25"),
          (400, -32020))
    check("another method", client.refused("tools/list", Mcp_Method="tools/call"), (400, -32020))
    check("another name", client.refused("tools/call", {"name": "greet"}, Mcp_Name="no"),
          (400, -32020))
    check("argument without its field",
          client.refused("tools/call", {"name": "x_header", "arguments": {"region": "eu"}}),
          (400, -32020))
    answer = client.post("tools/call", {"name": "x_header", "arguments": {"region": "eu"}},
                         Mcp_Param_Region="=?base64?ZXU=?=")
    check("in base64", text_of(client.messages(answer)[-1]["result"]), "region eu")
    check("bad base64", client.refused(
        "tools/call", {"name": "x_header", "arguments": {"region": "eu"}},
        Mcp_Param_Region="=?base64?ZXU?="), (400, -32020))
    check("needs the extension", client.refused("tools/call", {"name": "failing_job"}),
          (400, -32021))
    check("tasks/get too", client.refused("tasks/get", {"taskId": "x"}), (400, -32021))
    check("needs sampling", client.refused("tools/call", {"name": "test_missing_capability"}),
          (400, -32021))
    check("GET", gateway.get("/mcp", MCP_Protocol_Version=MODERN).status, 405)


def test_envelopes(gateway):
    client = Client(gateway)

    def raw(body, **fields):
        answer = gateway.post("/mcp", body, Content_Type="application/json",
                              **{**client.fields(), **fields})
        return answer.status, json.loads(answer.body)["error"]["code"]
    check("no JSON", raw("{"), (400, -32700))
    check("batch", raw('[{"jsonrpc":"2.0","id":1,"method":"ping"}]'), (400, -32600))
    check("a number", raw("3"), (400, -32600))
    check("version 1", raw('{"jsonrpc":"1.0","id":1,"method":"ping"}'), (400, -32600))
    check("null id", raw('{"jsonrpc":"2.0","id":null,"method":"ping"}'), (400, -32600))
    check("params", raw('{"jsonrpc":"2.0","id":1,"method":"ping","params":[]}'), (400, -32602))
    check("no method", raw('{"jsonrpc":"2.0","id":1}'), (400, -32600))
    check("half a method", raw('{"jsonrpc":"2.0","id":1,"method":"ping\\u0000x"}'), (400, -32600))
    check("twice", raw('{"jsonrpc":"2.0","id":1,"id":2,"method":"ping"}'), (400, -32600))
    check("Accept", raw('{"jsonrpc":"2.0","id":1,"method":"ping"}', Accept="text/html"),
          (406, -32600))
    check("not JSON", gateway.post("/mcp", "x", Content_Type="text/plain").status, 415)
    check("nobody", gateway.post("/mcp", {}, token=None).status, 401)
    check("of another page", gateway.post("/mcp", {}, Origin="http://evil.example").status, 403)


def test_legacy(gateway):
    client = Client(gateway, "2025-11-25")
    check("version", client.welcome["protocolVersion"], "2025-11-25")
    check("instructions", client.welcome["instructions"], "Tools that are tasks of taskmq.")
    check("ping", client.ask("ping"), {})
    tools = client.ask("tools/list")["tools"]
    check("execution", tools[3]["execution"], {"taskSupport": "optional"})
    result = client.call("greet", {"name": "Bob"})
    check("greet", result, {"content": [{"type": "text", "text": "Hello, Bob!"}]})
    check("as a task only", client.refused("tools/call", {"name": "failing_job"}), (200, -32601))
    check("never as a task", client.refused("tools/call", {"name": "greet", "task": {}}),
          (200, -32601))
    check("unknown method", client.refused("resources/list"), (200, -32601))
    check("newer offers", Client(gateway, "2099-01-01").welcome["protocolVersion"], "2025-11-25")
    check("level", client.ask("logging/setLevel", {"level": "info"}), {})
    check("no level", client.refused("logging/setLevel", {"level": "x"}), (200, -32602))


def test_sessions(gateway):
    client = Client(gateway, "2025-06-18")
    check("version", client.welcome["protocolVersion"], "2025-06-18")
    check("has no tasks", client.refused("tasks/get", {"taskId": "x"}), (200, -32601))
    session = client.session
    client.session = None
    check("none", client.refused("ping"), (400, -32600))
    client.session = session[:-1] + ("A" if session[-1] != "A" else "B")
    check("forged", client.refused("ping"), (404, -32001))
    client.session = session
    other = gateway.make_token("other", "client")
    gateway.reload()
    client.token = other
    check("of somebody else", client.refused("ping"), (404, -32001))
    client.token = "first"
    gateway.kill()
    gateway.start()
    check("goes on behind a kill", client.ask("ping"), {})
    ended = gateway.ask("DELETE", "/mcp", None, Mcp_Session_Id=session)
    check("DELETE", ended.status, 204)
    check("ended", client.refused("ping"), (404, -32001))


TASKS = {"extensions": {META + "tasks": {}}}


def settle(client, task, status):
    """The task, when it has that status."""
    def look():
        found = client.ask("tasks/get", {"taskId": task})
        return found if found["status"] == status else None
    return eventually(f"{task} is {status}", look)


def test_modern_tasks(gateway):
    client = Client(gateway, capabilities=TASKS)
    check("at once", json.loads(text_of(client.call("echo")))["name"], "echo")
    handle = client.call("slow_compute", {"seconds": 0.6, "label": "b"})
    check("a handle", (handle["resultType"], handle["status"], handle["pollIntervalMs"]),
          ("task", "working", 200))
    done = settle(client, handle["taskId"], "completed")
    check("its result", (text_of(done["result"]), done["result"]["resultType"]),
          ("done b", "complete"))
    failed = client.call("failing_job")
    done = settle(client, failed["taskId"], "completed")
    check("a tool's error", (done["result"]["isError"], text_of(done["result"])),
          (True, "the job failed"))
    handle = client.call("protocol_error_job")
    check("an error of JSON-RPC", settle(client, handle["taskId"], "failed")["error"],
          {"code": -32603, "message": "internal panic"})
    handle = client.call("slow_compute", {"seconds": 20})
    check("cancel", client.ask("tasks/cancel", {"taskId": handle["taskId"]})["resultType"],
          "complete")
    settle(client, handle["taskId"], "cancelled")
    check("again", client.ask("tasks/cancel", {"taskId": handle["taskId"]})["resultType"],
          "complete")
    check("unknown", client.refused("tasks/get", {"taskId": "x"}), (200, -32602))
    other = Client(gateway, capabilities=TASKS, token=gateway.make_token("second", "client"))
    gateway.reload()
    check("of somebody else", other.refused("tasks/get", {"taskId": handle["taskId"]}),
          (200, -32602))
    mine = gateway.post("/v1/queues/q/tasks", b"x").json["task_id"]
    check("no call of a tool", client.refused("tasks/get", {"taskId": mine}), (200, -32602))


def test_modern_questions_of_tasks(gateway):
    client = Client(gateway, capabilities={**TASKS, "elicitation": {}})
    handle = client.call("multi_input")
    asked = eventually("both are asked", lambda: (lambda found: found if len(
        found.get("inputRequests", {})) == 2 else None)(
            client.ask("tasks/get", {"taskId": handle["taskId"]})))
    check("status", asked["status"], "input_required")
    check("the request", asked["inputRequests"]["first"]["method"], "elicitation/create")
    answer = {"action": "accept", "content": {"name": "Ann"}}
    for keys in (("first",), ("first", "unknown"), ("second",)):
        client.ask("tasks/update", {"taskId": handle["taskId"],
                                    "inputResponses": {key: answer for key in keys}})
    done = settle(client, handle["taskId"], "completed")
    check("answers", json.loads(text_of(done["result"])), {"first": answer, "second": answer})


def test_modern_questions_of_calls(gateway):
    client = Client(gateway, capabilities={"elicitation": {}, "sampling": {}, "roots": {}})
    name = "test_input_required_result_multiple_inputs"
    asked = client.call(name)
    check("kind", (asked["resultType"], sorted(asked["inputRequests"])),
          ("input_required", ["client_roots", "greeting", "user_name"]))
    answers = {"user_name": {"action": "accept", "content": {"name": "Ann"}},
               "greeting": {"role": "assistant", "content": {"type": "text", "text": "hi"},
                            "model": "m"}, "client_roots": {"roots": []}}
    state = asked["requestState"]
    some = client.call(name, requestState=state, inputResponses={"user_name": answers["user_name"]})
    check("the others", sorted(some["inputRequests"]), ["client_roots", "greeting"])
    done = client.call(name, requestState=some["requestState"],
                       inputResponses={key: answers[key] for key in ("greeting", "client_roots")})
    check("one task", json.loads(text_of(done)), answers)
    for what, params in (
            ("forged", {"requestState": state[:-1] + ("A" if state[-1] != "A" else "B")}),
            ("of other arguments", {"requestState": state, "arguments": {"a": 1}}),
            ("answers that are none", {"inputResponses": {"a": 1}})):
        check(what, client.refused("tools/call", {"name": name, **params}), (200, -32602))
    poor = Client(gateway)
    # 400, or 200 where the answer had become a stream before the worker asked.
    check("cannot be asked", poor.refused("tools/call", {"name": name})[1], -32021)
    before = Client(gateway, capabilities={**TASKS, "elicitation": {}})
    asked = before.call("test_tool_with_task")
    check("before the task", list(asked["inputRequests"]), ["user_name"])
    handle = before.call("test_tool_with_task", requestState=asked["requestState"],
                         inputResponses={"user_name": answers["user_name"]})
    done = settle(before, handle["taskId"], "completed")
    check("told to the worker", text_of(done["result"]), "hello Ann")


def test_streams(gateway):
    for client in (Client(gateway), Client(gateway, "2025-11-25")):
        result = client.call("test_tool_with_progress", _meta={"progressToken": "p"})
        check("result", text_of(result), "progressed")
        check("notices", {(note["method"], note["params"]["progressToken"])
                          for note in client.told}, {("notifications/progress", "p")})
        # A newer one may take the place of one that has not left yet.
        told = [note["params"]["progress"] for note in client.told]
        check("progress", (told[-1], [done for done in (0, 50, 100) if done in told]), (100, told))
    client = Client(gateway, "2025-11-25")
    client.call("test_tool_with_logging")
    check("not asked for", client.told, [])
    client.ask("logging/setLevel", {"level": "info"})
    client.call("test_tool_with_logging")
    check("messages", [note["params"]["data"] for note in client.told],
          ["Tool execution started", "Tool processing data", "Tool execution completed"])
    client = Client(gateway)
    client.call("test_logging_tool", _meta={META + "logLevel": "debug"})
    check("of 2026", client.told[0]["params"], {"level": "info", "logger": "test_logging_tool",
                                                "data": "a log line"})


def open_request(gateway, client, message=None, **more):
    """The connection of a request that was sent. Without a message: GET."""
    connection = http.client.HTTPConnection("127.0.0.1", gateway.port, timeout=60)
    told = client.fields(message["method"], message["params"]) if message else client.fields()
    fields = {name.replace("_", "-"): value for name, value in {**told, **more}.items()}
    token = gateway.first_token if client.token == "first" else client.token
    connection.request("POST" if message else "GET", "/mcp",
                       json.dumps(message) if message else None,
                       {**({"Content-Type": "application/json"} if message else {}),
                        "Authorization": "Bearer " + token, **fields})
    return connection


def open_stream(gateway, client, message=None, **more):
    """A request whose answer is read piece by piece."""
    connection = open_request(gateway, client, message, **more)
    return connection, connection.getresponse()


def next_event(response):
    """Id and message of the next event that has data."""
    found, data = None, ""
    while True:
        line = response.readline().decode()
        if not line:
            raise EOFError
        line = line.rstrip("\n")
        if line.startswith("id:"):
            found = line[3:].strip()
        elif line.startswith("data:"):
            data += line[5:].strip()
        elif not line and (found or data):
            return found, json.loads(data) if data else None


def test_legacy_questions(gateway):
    client = Client(gateway, "2025-11-25", {"elicitation": {}})
    message = {"jsonrpc": "2.0", "id": "e1", "method": "tools/call",
               "params": {"name": "test_elicitation", "arguments": {"message": "Who?"}}}
    connection, response = open_stream(gateway, client, message)
    _, first = next_event(response)
    check("priming", first, None)
    _, request = next_event(response)
    check("request", (request["method"], request["params"]["message"]),
          ("elicitation/create", "Who?"))
    answer = {"jsonrpc": "2.0", "id": request["id"],
              "result": {"action": "accept", "content": {"username": "a", "email": "b"}}}
    check("forged", client.send({**answer, "id": request["id"][:-1]}).status, 202)
    check("taken", client.send(answer).status, 202)
    _, last = next_event(response)
    check("the answer", (last["id"], text_of(last["result"])),
          ("e1", 'User response: action=accept, content={"username": "a", "email": "b"}'))
    connection.close()


def test_resumption(gateway):
    client = Client(gateway, "2025-11-25")
    message = {"jsonrpc": "2.0", "id": 77, "method": "tools/call",
               "params": {"name": "slow_compute", "arguments": {"seconds": 1, "label": "r"}}}
    connection, response = open_stream(gateway, client, message)
    cursor, _ = next_event(response)
    connection.sock.close()
    connection.close()
    answer = gateway.get("/mcp", Last_Event_ID=cursor, **client.fields())
    last = client.messages(answer)[-1]
    check("the answer", (last["id"], text_of(last["result"])), (77, "done r"))
    check("of nothing", gateway.get("/mcp", Last_Event_ID="x", **client.fields()).status, 400)


def test_clients_that_leave(gateway):
    client = Client(gateway)
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call",
               "params": {"name": "slow_compute", "arguments": {"seconds": 30, "label": "leaves"},
                          "_meta": {META + "protocolVersion": MODERN,
                                    META + "clientCapabilities": {}}}}
    connection, response = open_stream(gateway, client, message)
    check("streams", response.status, 200)
    response.close()
    connection.close()

    def cancelled():
        tasks = gateway.get("/v1/tasks?limit=1&status=cancelled").json["items"]
        return tasks and tasks[0]["cancel_message"] == "its caller has left"
    eventually("its task is cancelled", cancelled)


def test_legacy_tasks(gateway):
    client = Client(gateway, "2025-11-25", {"elicitation": {}})
    handle = client.call("slow_compute", {"seconds": 0.5, "label": "t"}, task={"ttl": 90000})
    task = handle["task"]
    check("ttl", task["ttl"], 90000)
    result = client.ask("tasks/result", {"taskId": task["taskId"]})
    check("result", (text_of(result), result["_meta"][META + "related-task"]["taskId"]),
          ("done t", task["taskId"]))
    check("status", client.ask("tasks/get", {"taskId": task["taskId"]})["status"], "completed")
    check("a terminal one", client.refused("tasks/cancel", {"taskId": task["taskId"]}),
          (200, -32602))
    failed = client.call("failing_job", task={})["task"]["taskId"]
    check("a tool's error", client.ask("tasks/result", {"taskId": failed})["isError"], True)
    check("failed", client.ask("tasks/get", {"taskId": failed})["status"], "failed")
    slow = client.call("slow_compute", {"seconds": 30}, task={"ttl": 1})["task"]
    check("at least", slow["ttl"], 60000)
    check("cancel", client.ask("tasks/cancel", {"taskId": slow["taskId"]})["status"], "cancelled")
    listed = client.ask("tasks/list")["tasks"]
    check("newest first", [item["taskId"] for item in listed][:3], [slow["taskId"], failed,
                                                                    task["taskId"]])
    check("a bad cursor", client.refused("tasks/list", {"cursor": "x"}), (200, -32602))


def test_numbers(gateway):
    """Behind all the others: what was asked is counted, and what clients make up is no label."""
    def count(family, **labels):
        wanted = ",".join(f'{name}="{value}"' for name, value in labels.items())
        line = f"taskmq_gateway_{family}{{{wanted}}} "
        found = [one for one in gateway.get("/metrics").body.decode().splitlines() if one.startswith(line)]
        return float(found[0][len(line):]) if found else 0
    modern = Client(gateway)
    tasks = Client(gateway, capabilities={"extensions": {META + "tasks": {}}})
    asks = [("mcp_requests_total", {"generation": "2026", "method": "tools/call", "outcome": "answered"}),
            ("mcp_requests_total", {"generation": "2026", "method": "tools/call", "outcome": "error"}),
            ("mcp_requests_total", {"generation": "2026", "method": "_other", "outcome": "error"}),
            ("tool_calls_total", {"tool": "greet", "mode": "call", "outcome": "completed"}),
            ("tool_calls_total", {"tool": "greet", "mode": "call", "outcome": "refused"}),
            ("tool_calls_total", {"tool": "failing_job", "mode": "task", "outcome": "accepted"}),
            ("tool_call_duration_seconds_count", {"tool": "greet"})]
    before = [count(family, **labels) for family, labels in asks]
    taken = count("tool_call_duration_seconds_sum", tool="greet")
    modern.call("greet", {"name": "Ann"})
    modern.call("greet", {"name": 7})
    modern.post("tools/call", {"name": "made-up-tool"})
    modern.post("made-up", {})
    tasks.call("failing_job")
    grown = [count(family, **labels) - was for (family, labels), was in zip(asks, before)]
    # Arguments that the schema refuses are an answer; a tool that is not known is an error.
    check("counted", grown, [3, 1, 1, 1, 1, 1, 2])
    assert count("tool_call_duration_seconds_sum", tool="greet") > taken
    assert b"made-up" not in gateway.get("/metrics").body


def test_outputs(gateway):
    """What does not fit outputSchema is an error of the tool, however it is asked for."""
    def told(gateway):
        text = gateway.get("/metrics").body.decode()
        return [int(line.split()[-1]) for line in text.splitlines()
                if line.startswith('taskmq_gateway_tool_unfit_results_total{tool="measure"}')][0]
    modern = Client(gateway)
    legacy = Client(gateway, "2025-11-25")
    good = {"content": [], "structuredContent": {"size": 3}}
    before = told(gateway)
    for client in (modern, legacy):
        found = client.call("measure", {"give": good})
        check("fits", (found["structuredContent"], "isError" in found), ({"size": 3}, False))
    bad = "The tool's result does not fit its outputSchema:\n"
    for give, why in (({"structuredContent": {"size": "3"}}, '/size: is not of type "integer"'),
                      ({"content": []}, "there is no structuredContent that can be read")):
        for client in (modern, legacy):
            found = client.call("measure", {"give": {"content": [], **give}})
            check("unfit", (text_of(found), found["isError"], "structuredContent" in found),
                  (bad + why + "\n", True, False))
    own = {"content": [{"type": "text", "text": "no such thing"}], "isError": True}
    check("an error of its own", text_of(modern.call("measure", {"give": own})), "no such thing")
    unfit = {"give": {"content": [], "structuredContent": 7}}
    task = legacy.call("measure", unfit, task={})["task"]["taskId"]
    result = legacy.ask("tasks/result", {"taskId": task})
    check("tasks/result", (result["isError"], result["_meta"][META + "related-task"]["taskId"]),
          (True, task))
    done = Client(gateway, capabilities=TASKS).ask("tasks/get", {"taskId": task})
    check("tasks/get", (done["status"], done["result"]["isError"]), ("completed", True))
    assert told(gateway) - before >= 6, told(gateway)
    # Those of 2025 know outputs that are objects only.
    shown = {tool["name"]: tool for client in (legacy,) for tool in client.ask("tools/list")["tools"]}
    check("of 2025", ("outputSchema" in shown["measure"], "outputSchema" in shown["list_sizes"]),
          (True, False))
    shown = {tool["name"]: tool for tool in modern.ask("tools/list")["tools"]}
    check("of 2026", "outputSchema" in shown["list_sizes"], True)
    check("a list", modern.call("list_sizes", {"give": {"content": [], "structuredContent": [1]}})
          ["structuredContent"], [1])


def test_says(gateway):
    legacy = Client(gateway, "2025-11-25")
    handle = legacy.call("measure", {"give": {"content": [], "structuredContent": {"size": 1}}},
                         task={})
    check("says", handle["_meta"], {META + "model-immediate-response": "It is being measured."})


PARTS = {
    "plain": (test_modern, test_modern_refusals, test_envelopes, test_legacy, test_sessions,
              test_numbers, test_outputs, test_says),
    "tasks": (test_modern_tasks, test_modern_questions_of_tasks, test_modern_questions_of_calls,
              test_legacy_tasks),
    "streams": (test_streams, test_legacy_questions, test_resumption, test_clients_that_leave),
}

if __name__ == "__main__":
    with Stage() as stage_gateway:
        for test in PARTS[sys.argv[1]]:
            print(test.__name__, flush=True)
            test(stage_gateway)
