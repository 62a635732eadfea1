# This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
# If a copy of the MPL was not distributed with this file, You can obtain one at
# https://mozilla.org/MPL/2.0/.

"""The gateway under load: ./dev bench gateway [--quick] [--rounds N] [--seconds S].

What is measured, and beside whom:

    requests     each row on 32 connections that stay open, for S seconds, on fresh servers; the median of N
                 rounds. CPU is that of gateway and broker together, for an answer; the worker's is apart.
    MCP          the same calls to the official TypeScript server with its task store in memory, if its
                 packages are in build/npm (./dev mcp brings them)
    management   publishing by RabbitMQ's management API, if that is installed
    streams      1,000 clients, 50 events in a second
    connections  4,096 that do nothing

Tables go to build/bench-gateway.md."""

import argparse
import base64
import contextlib
import http.client
import json
import os
import re
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
BIN = os.environ.get("TASKMQ_BIN", os.path.join(ROOT, "build", "bin"))
CONNECTIONS = 32
STREAMS, EVENTS_PER_S = 1000, 50
IDLE = 4096
META = "io.modelcontextprotocol/"
SETTINGS = """rate = 1000000
rate_burst = 1000000
call_rate = 1000000
call_rate_burst = 1000000
principal_requests_max = 100000
call_rate = 1000000
call_rate_burst = 1000000
connections_max = 20000
connection_requests_max = 1000000000
streams_max = 5000
principal_streams_max = 5000
"""
TOOLS = {"tools": [
    {"name": "echo", "description": "gives back", "inputSchema": {"type": "object"},
     "execution": {"taskSupport": "optional"},
     "taskmq": {"queue": "echo", "inline": "30s"}},
    {"name": "job", "description": "takes its time", "inputSchema": {"type": "object"},
     "execution": {"taskSupport": "required"}, "taskmq": {"queue": "job"}}]}
TICKS = os.sysconf("SC_CLK_TCK")


def program(name):
    return os.path.join(BIN, name)


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def await_true(what, fn):
    end = time.monotonic() + 60
    while time.monotonic() < end:
        with contextlib.suppress(OSError, http.client.HTTPException):
            if fn():
                return
        time.sleep(0.05)
    raise SystemExit(f"bench: it did not happen: {what}")


def children_of(pid):
    with contextlib.suppress(OSError):
        with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as file:
            for child in file.read().split():
                yield int(child)
                yield from children_of(int(child))


def cpu_s(pids):
    """Of processes and all that they started."""
    total = 0
    for pid in {one for root in pids for one in (root, *children_of(root))}:
        with contextlib.suppress(OSError):
            with open(f"/proc/{pid}/stat", encoding="ascii") as file:
                words = file.read().rsplit(")", 1)[1].split()
            total += int(words[11]) + int(words[12])
    return total / TICKS


def rss_bytes(pid):
    with open(f"/proc/{pid}/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGESIZE")


class Servers:
    """What one row runs on, in a directory of its own; ended with it."""

    def __init__(self):
        self.home = tempfile.mkdtemp(prefix="taskmq-bench-", dir=os.path.join(ROOT, "build"))
        self.processes = []
        self.measured = []  # whose CPU counts

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for one in reversed(self.processes):
            with contextlib.suppress(ProcessLookupError):
                os.killpg(one.pid, signal.SIGKILL)
            one.wait()
        shutil.rmtree(self.home, ignore_errors=True)

    def spawn(self, *command, measured=True, **more):
        log = open(os.path.join(self.home, "log"), "ab")
        one = subprocess.Popen(command, cwd=self.home, stdout=log, stderr=log, stdin=subprocess.DEVNULL,
                               start_new_session=True, **more)
        log.close()
        self.processes.append(one)
        if measured:
            self.measured.append(one.pid)
        return one

    def ask(self, method, path, body=None, fields=None):
        link = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        link.request(method, path, body, {**self.fields, **(fields or {})})
        answer = link.getresponse()
        answer.text = answer.read()
        link.close()
        return answer

    def load(self, what, seconds, request, status=200, connections=CONNECTIONS):
        """One run: rate, latencies, microseconds of CPU for an answer."""
        path = os.path.join(self.home, "request")
        with open(path, "wb") as file:
            file.write(request)
        before = cpu_s(self.measured)
        done = subprocess.run([program("taskmq-http-load"), what, str(self.port), str(connections),
                               str(seconds), path, str(status)], capture_output=True, text=True,
                              check=False)
        if done.returncode != 0:
            raise SystemExit(f"bench: {done.stderr}")
        told = json.loads(done.stdout.splitlines()[-1])
        return {"rate": told["answers"] / told["seconds"], "p50": told["p50_us"], "p99": told["p99_us"],
                "cpu": (cpu_s(self.measured) - before) / told["answers"] * 1e6}

    def request(self, method, path, body=b"", **fields):
        head = {"Host": f"127.0.0.1:{self.port}", **self.fields,
                **{name.replace("_", "-"): value for name, value in fields.items()}}
        if body:
            head["Content-Length"] = len(body)
        lines = "".join(f"{name}: {value}\r\n" for name, value in head.items())
        return f"{method} {path} HTTP/1.1\r\n{lines}\r\n".encode() + body


class Gateway(Servers):
    def __enter__(self):
        data = os.path.join(self.home, ".taskmq")
        self.broker = self.spawn(program("taskmqd"))
        await_true("the broker is there", lambda: subprocess.run(
            [program("taskctl"), "ping"], cwd=self.home, capture_output=True, check=False).returncode == 0)
        for name, text in (("gateway.conf", SETTINGS), ("tools.json", json.dumps(TOOLS))):
            with open(os.path.join(data, name), "w", encoding="utf-8") as file:
                file.write(text)
            os.chmod(os.path.join(data, name), 0o600)
        self.port = free_port()
        self.fields = {}
        self.gateway = self.spawn(program("taskmq-gateway"), "--data", data, "--listen",
                                  f"127.0.0.1:{self.port}")
        await_true("the gateway is ready", lambda: self.ask("GET", "/readyz").status == 200)
        with open(os.path.join(data, "gateway.token"), encoding="utf-8") as file:
            self.fields = {"Authorization": f"Bearer {file.read().strip()}"}
        return self

    def work(self):
        self.spawn(program("taskmq-http-echo"), os.path.join(self.home, ".taskmq"), "echo",
                   measured=False)
        await_true("the worker is there",
                   lambda: len(json.loads(self.ask("GET", "/v1/workers").text)["items"]) == 1)

    def submit(self, queue):
        return json.loads(self.ask("POST", f"/v1/queues/{queue}/tasks", b"x" * 200).text)["task_id"]

    def mcp(self, method, params, extension=False):
        capabilities = {"extensions": {META + "tasks": {}}} if extension else {}
        body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": {**params, "_meta": {
            META + "protocolVersion": "2026-07-28", META + "clientCapabilities": capabilities,
            META + "clientInfo": {"name": "bench", "version": "1"}}}}).encode()
        return self.request("POST", "/mcp", body, Content_Type="application/json",
                            Accept="application/json, text/event-stream",
                            MCP_Protocol_Version="2026-07-28", Mcp_Method=method,
                            Mcp_Name=params.get("name") or params["taskId"])


class Peer(Servers):
    """The official TypeScript server. Its tasks are in memory."""

    npm = os.path.join(ROOT, "build", "npm")

    @classmethod
    def missing(cls):
        there = os.path.isdir(os.path.join(cls.npm, "node_modules/@modelcontextprotocol/sdk"))
        return None if there and shutil.which("node") else "build/npm is not there: ./dev mcp"

    def __enter__(self):
        script = os.path.join(self.npm, "bench_peer.mjs")
        shutil.copy(os.path.join(ROOT, "bench", "gateway_peer.mjs"), script)
        self.port = free_port()
        self.fields = {"Content-Type": "application/json",
                       "Accept": "application/json, text/event-stream"}
        self.spawn("node", script, str(self.port))
        hello = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
            "protocolVersion": "2025-11-25", "capabilities": {},
            "clientInfo": {"name": "bench", "version": "1"}}})
        await_true("the peer answers", lambda: self.ask("POST", "/mcp", hello).status == 200)
        answer = self.ask("POST", "/mcp", hello)
        self.fields.update({"Mcp-Session-Id": answer.getheader("mcp-session-id"),
                            "MCP-Protocol-Version": "2025-11-25"})
        self.ask("POST", "/mcp", json.dumps({"jsonrpc": "2.0", "method": "notifications/initialized"}))
        return self

    def mcp(self, method, params):
        return self.request("POST", "/mcp", json.dumps(
            {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).encode())


class Rabbit(Servers):
    """RabbitMQ's management API."""

    server = "/usr/lib/rabbitmq/bin/rabbitmq-server"

    @classmethod
    def missing(cls):
        return None if os.access(cls.server, os.X_OK) else "rabbitmq-server is not installed"

    def __enter__(self):
        self.port, node, distribution, epmd = (free_port() for _ in range(4))
        with open(os.path.join(self.home, "plugins"), "w", encoding="ascii") as file:
            file.write("[rabbitmq_management].\n")
        here = self.home
        with open(os.path.join(here, "bench.conf"), "w", encoding="ascii") as file:
            file.write(f"management.tcp.port = {self.port}\nmanagement.tcp.ip = 127.0.0.1\n")
        environment = {
            **os.environ, "HOME": here, "RUNNING_UNDER_SYSTEMD": "1",
            "RABBITMQ_CONF_ENV_FILE": "/dev/null", "RABBITMQ_CONFIG_FILE": f"{here}/bench.conf",
            "RABBITMQ_ADVANCED_CONFIG_FILE": f"{here}/none", "RABBITMQ_MNESIA_BASE": here,
            "RABBITMQ_LOG_BASE": here, "RABBITMQ_LOGS": "-",
            "RABBITMQ_ENABLED_PLUGINS_FILE": f"{here}/plugins", "RABBITMQ_PID_FILE": f"{here}/pid",
            "RABBITMQ_NODENAME": f"bench{node}@localhost", "RABBITMQ_NODE_IP_ADDRESS": "127.0.0.1",
            "RABBITMQ_NODE_PORT": str(node), "RABBITMQ_DIST_PORT": str(distribution),
            "ERL_EPMD_PORT": str(epmd), "ERL_EPMD_ADDRESS": "127.0.0.1",
            "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS": "-kernel inet_dist_use_interface {127,0,0,1}"}
        self.spawn("epmd", "-address", "127.0.0.1", "-port", str(epmd), measured=False)
        self.spawn(self.server, env=environment)
        self.fields = {"Authorization": "Basic " + base64.b64encode(b"guest:guest").decode()}
        await_true("its API answers", lambda: self.ask("GET", "/api/overview").status == 200)
        made = self.ask("PUT", "/api/queues/%2F/bench", json.dumps({
            "durable": True, "arguments": {"x-queue-type": "quorum"}}), {"Content-Type": "application/json"})
        if made.status not in (201, 204):
            raise SystemExit(f"bench: rabbitmq: {made.text}")
        return self


# The rows: what is asked, of whom.

def row_health(gateway, seconds):
    return gateway.load("ask", seconds, gateway.request("GET", "/healthz"))


def row_submit(gateway, seconds):
    body = json.dumps({"queue": "q", "data": "x" * 200}).encode()
    return gateway.load("ask", seconds, gateway.request(
        "POST", "/v1/tasks", body, Content_Type="application/json", Prefer="return=minimal"), 201)


def row_submit_told(gateway, seconds):
    body = json.dumps({"queue": "q", "data": "x" * 200}).encode()
    return gateway.load("ask", seconds, gateway.request(
        "POST", "/v1/tasks", body, Content_Type="application/json"), 201)


def row_get(gateway, seconds):
    return gateway.load("ask", seconds, gateway.request("GET", "/v1/tasks/" + gateway.submit("q")))


def row_list(gateway, seconds):
    for _ in range(100):
        gateway.submit("q")
    return gateway.load("ask", seconds, gateway.request("GET", "/v1/tasks?queue=q&limit=100"))


def row_queues(gateway, seconds):
    for number in range(100):
        gateway.submit(f"q{number}")
    return gateway.load("ask", seconds, gateway.request("GET", "/v1/queues?limit=100"))


def row_tasks_get(gateway, seconds):
    gateway.load("ask", 0.2, gateway.mcp("tools/call", {"name": "job", "arguments": {}}, True))
    task_id = json.loads(gateway.ask("GET", "/v1/tasks?queue=job&limit=1").text)["items"][0]["task_id"]
    return gateway.load("ask", seconds, gateway.mcp("tasks/get", {"taskId": task_id}, True))


def row_call(gateway, seconds):
    gateway.work()
    return gateway.load("ask", seconds, gateway.mcp("tools/call", {"name": "echo", "arguments": {}}))


def row_create(gateway, seconds):
    return gateway.load("ask", seconds,
                        gateway.mcp("tools/call", {"name": "job", "arguments": {}}, True))


def peer_tasks_get(peer, seconds):
    made = peer.ask("POST", "/mcp", json.dumps({
        "jsonrpc": "2.0", "id": 1, "method": "tools/call",
        "params": {"name": "job", "arguments": {"name": "x"}, "task": {"ttl": 600000}}}))
    task_id = json.loads(made.text)["result"]["task"]["taskId"]
    return peer.load("ask", seconds, peer.mcp("tasks/get", {"taskId": task_id}))


def peer_call(peer, seconds):
    return peer.load("ask", seconds,
                     peer.mcp("tools/call", {"name": "echo", "arguments": {"name": "x"}}))


def peer_create(peer, seconds):
    return peer.load("ask", seconds, peer.mcp("tools/call", {
        "name": "job", "arguments": {"name": "x"}, "task": {"ttl": 600000}}))


def rabbit_publish(rabbit, seconds):
    body = json.dumps({"properties": {"delivery_mode": 2}, "routing_key": "bench",
                       "payload": "x" * 200, "payload_encoding": "string"}).encode()
    return rabbit.load("ask", seconds, rabbit.request(
        "POST", "/api/exchanges/%2F/amq.default/publish", body, Content_Type="application/json"))


ROWS = [("GET /healthz", Gateway, row_health),
        ("POST /v1/tasks, answered by its receipt, durable", Gateway, row_submit),
        ("POST /v1/tasks, answered by the task, durable", Gateway, row_submit_told),
        ("… RabbitMQ, POST …/publish, a quorum queue", Rabbit, rabbit_publish),
        ("GET /v1/tasks/{id}", Gateway, row_get),
        ("GET /v1/tasks, 100 tasks", Gateway, row_list),
        ("GET /v1/queues, 100 queues", Gateway, row_queues),
        ("MCP tasks/get", Gateway, row_tasks_get),
        ("… TypeScript server, in memory", Peer, peer_tasks_get),
        ("MCP tools/call, through a worker, durable", Gateway, row_call),
        ("… TypeScript server, inside of it", Peer, peer_call),
        ("MCP tools/call, a new task, durable", Gateway, row_create),
        ("… TypeScript server, in memory", Peer, peer_create)]


def run_rows(rounds, seconds, only):
    for name, kind, row in ROWS:
        if only and only not in row.__name__:
            continue
        missing = kind.missing() if kind is not Gateway else None
        if missing:
            print(f"{name}: left out, {missing}", file=sys.stderr)
            continue
        runs = []
        for _ in range(rounds):
            with kind() as servers:
                runs.append(row(servers, seconds))
        yield name, {key: statistics.median(one[key] for one in runs) for key in runs[0]}


def run_streams(seconds):
    """Every client hears every event; the tasks are submitted one by one, evenly."""
    count = int(seconds * EVENTS_PER_S)
    with Gateway() as servers:
        rss = rss_bytes(servers.gateway.pid)
        path = os.path.join(servers.home, "request")
        with open(path, "wb") as file:
            file.write(servers.request("GET", "/v1/events?queue=q&cursor=0-0"))
        load = subprocess.Popen([program("taskmq-http-load"), "stream", str(servers.port), str(STREAMS),
                                 str(seconds + 60), path, str(count * STREAMS)],
                                stdout=subprocess.PIPE, text=True)
        load.stdout.readline()
        await_true("all are there", lambda: b'\ntaskmq_gateway_streams{kind="events"} %d\n' % STREAMS in
                   servers.ask("GET", "/metrics").text)
        before = cpu_s([servers.gateway.pid])
        link = http.client.HTTPConnection("127.0.0.1", servers.port)
        began = time.monotonic()
        for number in range(count):
            time.sleep(max(0, began + number / EVENTS_PER_S - time.monotonic()))
            link.request("POST", f"/v1/queues/q/tasks?label=made:AT{time.time_ns() // 1000}", b"x",
                         {**servers.fields, "Prefer": "return=minimal"})
            link.getresponse().read()
        most = rss_bytes(servers.gateway.pid)
        told = json.loads(load.stdout.read().splitlines()[-1])
        load.wait()
        cpu = cpu_s([servers.gateway.pid]) - before
        return {"deliveries": told["events"], "wanted": count * STREAMS, "p50_ms": told["p50_ms"],
                "p99_ms": told["p99_ms"], "cpu_us": cpu / max(1, told["events"]) * 1e6,
                "rss_before": rss, "rss": most}


def run_idle():
    with Gateway() as servers:
        before = rss_bytes(servers.gateway.pid)
        load = subprocess.Popen([program("taskmq-http-load"), "idle", str(servers.port), str(IDLE)],
                                stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        load.stdout.readline()
        await_true("all are accepted", lambda: IDLE + 1 == sum(int(number) for number in re.findall(
            rb"\ntaskmq_gateway_connections{.*} (\d+)", servers.ask("GET", "/metrics").text)))
        after = rss_bytes(servers.gateway.pid)
        load.communicate()
        return {"bytes": (after - before) / IDLE, "rss": after}


def main():
    parser = argparse.ArgumentParser(prog="dev bench gateway", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="one round of 1.5 s")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=4)
    parser.add_argument("--only", help="rows whose name in this file has this word; streams, idle")
    options = parser.parse_args()
    if options.quick:
        options.rounds, options.seconds = 1, 1.5
    lines = ["| row | answers/s | p50 | p99 | CPU an answer |", "|---|---|---|---|---|"]
    print(*lines, sep="\n")
    for name, told in run_rows(options.rounds, options.seconds, options.only):
        lines.append(f"| {name} | {told['rate']:,.0f} | {told['p50'] / 1000:.2f} ms | "
                     f"{told['p99'] / 1000:.2f} ms | {told['cpu']:.0f} us |")
        print(lines[-1], flush=True)
    if not options.only or options.only == "streams":
        told = run_streams(max(4, options.seconds))
        lines.append(f"\n{STREAMS:,} streams, {EVENTS_PER_S} events/s: {told['deliveries']:,} of "
                     f"{told['wanted']:,} deliveries, lag p50 {told['p50_ms']:.1f} ms, p99 "
                     f"{told['p99_ms']:.1f} ms, {told['cpu_us']:.1f} us of the gateway's CPU a delivery, "
                     f"resident {told['rss'] / 2**20:.1f} MiB ({told['rss_before'] / 2**20:.1f} before)")
        print(lines[-1], flush=True)
    if not options.only or options.only == "idle":
        told = run_idle()
        lines.append(f"\n{IDLE:,} connections that do nothing: {told['bytes'] / 1024:.1f} KiB each, "
                     f"resident {told['rss'] / 2**20:.1f} MiB")
        print(lines[-1], flush=True)
    with open(os.path.join(ROOT, "build", "bench-gateway.md"), "w", encoding="utf-8") as file:
        file.write("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
