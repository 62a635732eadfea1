# This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
# If a copy of the MPL was not distributed with this file, You can obtain one at
# https://mozilla.org/MPL/2.0/.

"""Who may do what with whose tasks: each route of `taskmq-gateway --routes`, by each role, with a
task of one's own, of somebody else, of another namespace, and one that is not there."""

import json
import os
import re
import subprocess

from broker import Broker
from gateway import Gateway, program
from test_gateway import check
from test_mcp import META, MODERN, Client

TOOLS = {"tools": [{"name": "job", "description": "a task", "inputSchema": {"type": "object"},
                    "execution": {"taskSupport": "required"}, "taskmq": {"queue": "tools"}}]}
TASKS = {"extensions": {META + "tasks": {}}}
ROLES = ("observer", "client", "operator", "metrics")
ABSENT = "01a2007e-d6c2-7f5e-8f1f-c21cce16b92e"
BODIES = {"/v1/tasks": {"queue": "q"}, "/v1/queues/{queue}/tasks": b"x",
          "/v1/tasks:batch": {"tasks": [{"queue": "q"}]}, "/v1/tasks:wait": {"ids": [ABSENT]},
          "/v1/tasks/{id}/cancel": {}, "/v1/tasks/{id}/adopt": {"attempt": 1},
          "/v1/tasks/{id}/answer": {"key": "k", "answer": 1}}
# What says nothing about the task: of the request, and of the time.
OWN_FIELDS = ("x-request-id", "traceresponse", "ratelimit", "date", "content-length")


class Matrix:
    def __init__(self, gateway):
        self.gateway = gateway
        self.tokens = {role: gateway.make_token(role, role) for role in ROLES}
        self.tokens["bob"] = gateway.make_token("bob", "client")
        self.tokens["far"] = gateway.make_token("far", "operator", "--namespaces", "far")
        gateway.reload()
        self.tried = 0

    def make(self, owner):
        """A new task. Who may not submit sees only what others did."""
        answer = self.gateway.post("/v1/tasks", {"queue": "q"}, token=self.tokens[owner],
                                   Prefer="return=minimal")
        check("submit", answer.status, 201)
        return answer.json["task_id"]

    def ask(self, method, path, role, task_id, head=False):
        target = path.replace("{id}", task_id).replace("{suffix}", task_id[-12:])
        target = target.replace("{queue}", "q").replace("{type}", "busy").replace("{name}", "n")
        self.tried += 1
        return self.gateway.ask("HEAD" if head else method, target, None if method == "GET" else BODIES.get(path),
                                token=self.tokens.get(role))

    def try_task_route(self, method, path, who):
        for role in ROLES:
            mine = self.make(role if role in ("client", "operator") else "bob")
            answers = {kind: self.ask(method, path, role, task_id, path.endswith("/stream") and
                                      kind != "absent" and (kind == "own" or role != "client") and
                                      kind != "far")
                       for kind, task_id in (("own", mine), ("foreign", self.make("bob")),
                                             ("far", self.make("far")), ("absent", ABSENT))}
            what = f"{method} {path} by {role}"
            statuses = {kind: answer.status for kind, answer in answers.items()}
            if role not in who:
                check(what, statuses, dict.fromkeys(statuses, 403))
                continue
            absent = self.plain(answers["absent"])
            assert statuses["own"] not in (401, 403), (what, answers["own"])
            assert self.plain(answers["own"]) != absent, (what, answers["own"])
            check(what, statuses["absent"], 404)
            check(what + ", another namespace", self.plain(answers["far"]), absent)
            if "own" in who[role]:
                check(what + ", foreign", self.plain(answers["foreign"]), absent)
            else:
                check(what + ", foreign", statuses["foreign"], statuses["own"])

    @staticmethod
    def plain(answer):
        """An answer without what every one has of its own."""
        body = re.sub(rb"[0-9a-f]{8}-[0-9a-f-]{27}", b"ID", answer.body)
        fields = {name: value for name, value in answer.fields.items() if name not in OWN_FIELDS}
        return answer.status, fields, body

    def try_plain_route(self, method, path, who):
        """Who may not is told so; who may is not, and neither is anybody without a token let in."""
        for role in ROLES:
            status = self.ask(method, path, role, ABSENT, path == "/v1/events").status
            assert (status == 403) == (role not in who), (method, path, role, status)
        check(f"{method} {path} by nobody", self.ask(method, path, "nobody", ABSENT).status, 401)

    def try_owners(self, broker):
        """It is the broker that keeps them apart: a client's task is his there, too."""
        task_id = self.make("client")
        owner = self.gateway.get(f"/v1/tasks/{task_id}", token=self.tokens["client"]).json["owner"]
        check("owner", owner.split("/")[1:], ["client"])
        for behalf, code in (("client", 0), ("bob", 5)):
            done = subprocess.run([program("taskctl"), "-e", broker.endpoint, "get", task_id,
                                   "--on-behalf", behalf], capture_output=True, check=False)
            check(f"on behalf of {behalf}", done.returncode, code)
        # What the gateway's label says is not what counts.
        forged = subprocess.run([program("taskctl"), "-e", broker.endpoint, "submit", "q", "--data", "x",
                                 "--label", "gw.principal=client"], capture_output=True, text=True,
                                check=True).stdout.strip()
        check("a label alone", self.gateway.get(f"/v1/tasks/{forged}",
                                                token=self.tokens["client"]).status, 404)

    # MCP: each method about a task, in both generations.

    def mcp(self, role, version):
        self.tried += 1
        return Client(self.gateway, version, TASKS if version == MODERN else {}, self.tokens[role])

    def make_call(self, role, version):
        told = self.mcp(role, version).ask("tools/call", {
            "name": "job", "arguments": {}, **({} if version == MODERN else {"task": {"ttl": 60000}})})
        return (told if version == MODERN else told["task"])["taskId"]

    def plain_mcp(self, role, version, method, task_id):
        client = self.mcp(role, version)
        client.number = 0
        params = {"taskId": task_id}
        if method == "tasks/update":
            params["inputResponses"] = {}
        answer = client.post(method, params)
        return self.plain(answer)[0], re.sub(rb"[0-9a-f]{8}-[0-9a-f-]{27}", b"ID", answer.body)

    def try_mcp(self, version, methods):
        for role in ("client", "operator"):
            kinds = {"own": self.make_call(role, version), "foreign": self.make_call("bob", version),
                     "far": self.make_call("far", version), "plain": self.make("client"),
                     "absent": ABSENT}
            for method in methods:
                what = f"{version} {method} by {role}"
                answers = {kind: self.plain_mcp(role, version, method, task_id)
                           for kind, task_id in kinds.items()
                           if not (kind == "own" and method == "tasks/result")}  # it waits
                absent = answers["absent"]
                check(what, json.loads(absent[1])["error"]["code"], -32602)
                for kind in ("foreign", "far", "plain"):
                    check(f"{what}: {kind}", answers[kind], absent)
                assert answers.get("own") != absent, (what, answers["own"])
        for role in ("observer", "metrics"):
            for verb in ("GET", "POST", "DELETE"):
                check(f"{verb} /mcp by {role}", self.ask(verb, "/mcp", role, ABSENT).status, 403)

    def try_mcp_lists(self):
        mine, foreign = self.make_call("client", "2025-11-25"), self.make_call("bob", "2025-11-25")
        ids = {task["taskId"] for task in
               self.mcp("client", "2025-11-25").ask("tasks/list", {})["tasks"]}
        check("tasks/list", (mine in ids, foreign in ids), (True, False))
        theirs = self.mcp("bob", "2025-11-25")
        used = self.mcp("client", "2025-11-25")
        used.session = theirs.session
        guessed = self.mcp("client", "2025-11-25")
        guessed.session = theirs.session[:-4] + "AAAA"
        check("a session of somebody else", self.plain(used.post("ping")),
              self.plain(guessed.post("ping")))

    def try_lists(self):
        mine, foreign, far = self.make("client"), self.make("bob"), self.make("far")

        def get(target):
            return self.gateway.get(target, token=self.tokens["client"])
        ids = {task["task_id"] for task in get("/v1/tasks?limit=1000").json["items"]}
        check("a list", (mine in ids, foreign in ids, far in ids), (True, False, False))
        check("a count", get("/v1/tasks:count").json["count"], len(ids))
        waited = self.gateway.post("/v1/tasks:wait", {"ids": [mine, foreign, far, ABSENT],
                                                      "timeout_ms": 100},
                                   token=self.tokens["client"]).json
        check("a wait", ({item["task_id"]: (item["code"], item["status"]) for item in
                          waited["items"]}, waited["pending"]),
              ({each: ("NOT_FOUND", None) for each in (foreign, far, ABSENT)}, [mine]))
        told = {self.plain(get("/v1/resolve/" + each[-12:]))[2] for each in (foreign, far, ABSENT)}
        check("short ids", len(told), 1)


def read_routes(gateway):
    """(method, path, {role: what is said of it})."""
    for line in gateway.run("--routes").stdout.splitlines():
        method, path, who = line.split(None, 2)
        yield method, path, {word.split()[0]: word for word in who.split(", ")}


def main():
    settings = ["rate = 100000", "rate_burst = 100000"]
    with Broker() as broker:
        with open(os.path.join(broker.data, "tools.json"), "w", encoding="utf-8") as file:
            json.dump(TOOLS, file)
        os.chmod(file.name, 0o600)
        try_all(broker, Gateway(broker, configuration=settings))


def try_all(broker, gateway):
    with gateway:
        matrix = Matrix(gateway)
        routes = [route for route in read_routes(gateway) if "everybody" not in route[2]]
        assert len(routes) > 20, routes
        for method, path, who in routes:
            if "{id}" in path:
                matrix.try_task_route(method, path, who)
            elif "every" not in who and path != "/mcp":
                matrix.try_plain_route(method, path, who)
        matrix.try_mcp(MODERN, ("tasks/get", "tasks/cancel", "tasks/update"))
        matrix.try_mcp("2025-11-25", ("tasks/get", "tasks/cancel", "tasks/result"))
        matrix.try_mcp_lists()
        matrix.try_lists()
        matrix.try_owners(broker)
        assert matrix.tried > 250, matrix.tried


if __name__ == "__main__":
    main()
