# This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
# If a copy of the MPL was not distributed with this file, You can obtain one at
# https://mozilla.org/MPL/2.0/.

"""What watches the gateway: the service manager, Prometheus in both formats, alerts and a dashboard."""

import json
import os
import re
import shutil
import socket
import subprocess

from broker import Broker, eventually
from gateway import Gateway
from test_gateway import check, start_worker, submit
from test_streams import Events

OPEN = "application/openmetrics-text; version=1.0.0; charset=utf-8"


def families(text):
    """Name of a sample -> its family's type, read as OpenMetrics says."""
    types, names = {}, set()
    for line in text.splitlines():
        if line.startswith("# TYPE "):
            _, _, name, kind = line.split()
            assert name not in types, line
            types[name] = kind
        elif not line.startswith("#"):
            names.add(re.match(r"[a-z_]+", line).group())
    return types, names


def try_formats(gateway):
    plain = gateway.get("/metrics").body.decode()
    answer = gateway.get("/metrics", Accept=f"{OPEN},text/plain;q=0.5")
    check("type", answer.fields["content-type"], OPEN)
    text = answer.body.decode()
    assert text.endswith("# EOF\n") and text.count("# EOF") == 1, text[-200:]
    types, names = families(text)
    for name, kind in types.items():
        assert kind in ("counter", "gauge", "histogram", "summary", "unknown"), (name, kind)
        ends = {"counter": ["_total"], "histogram": ["_bucket", "_sum", "_count"],
                "summary": ["_sum", "_count"]}.get(kind, [""])
        assert not name.endswith("_total"), name
        for end in ends:
            # A counter with labels has no sample before it was counted.
            if name + end not in names:
                assert f"{name}{end}" not in plain or kind in ("counter", "summary"), name
        names -= {name + end for end in ends}
    check("samples without a type", sorted(names), [])
    same = [line for line in plain.splitlines() if line.startswith("taskmq_queue")]
    check("the same samples", [line for line in text.splitlines() if line.startswith("taskmq_queue")],
          same)
    for name in ("cpu_seconds_total", "resident_memory_bytes", "virtual_memory_bytes", "open_fds",
                 "max_fds", "start_time_seconds"):
        assert re.search(rf"^process_{name} [1-9]|^process_{name} 0\.\d*[1-9]", plain, re.M), name
    return plain


def value(gateway, sample):
    text = gateway.get("/metrics").body.decode()
    found = re.search(rf"^{re.escape(sample)} (\S+)$", text, re.M)
    return found and float(found.group(1))


def try_numbers(broker, gateway):
    """Each tells what it says: who serves a queue, what connections and streams are about."""
    space = 'namespace="default"'
    serves = f'taskmq_queue_workers{{{space},queue="served"}}'
    paused = f'taskmq_queue_paused{{{space},queue="served"}}'
    worker = start_worker(broker, "served", "cat")
    eventually("a worker serves it", lambda: value(gateway, serves) == 1)
    check("it is not paused", value(gateway, paused), 0)
    check("paused", gateway.post("/v1/queues/served/pause").status, 200)
    eventually("it is told", lambda: value(gateway, paused) == 1)
    worker.terminate()
    worker.wait()
    eventually("nobody serves it", lambda: value(gateway, serves) == 0)
    before = value(gateway, f"taskmq_broker_epoch{{{space}}}")
    files = value(gateway, "process_open_fds")
    links = [socket.create_connection(("127.0.0.1", gateway.port)) for _ in range(3)]
    links[0].sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
    stream = Events(gateway, "/v1/events")
    stream.await_kind("live")
    states = 'taskmq_gateway_connections{state="%s"}'
    eventually("one is idle", lambda: value(gateway, states % "idle") == 1)
    check("two read", value(gateway, states % "reading"), 2)
    check("one streams", value(gateway, states % "streaming"), 1)
    check("its kind", value(gateway, 'taskmq_gateway_streams{kind="events"}'), 1)
    check("no other", value(gateway, 'taskmq_gateway_streams{kind="mcp"}'), 0)
    assert value(gateway, "process_open_fds") >= files + 4
    for link in links:
        link.close()
    stream.stop()
    eventually("they are gone", lambda: [value(gateway, states % name) for name in
                                         ("idle", "reading", "streaming", "closing")] == [0] * 4)
    broker.kill()
    broker.start()
    gateway.await_broker()
    eventually("a start is counted", lambda: value(gateway, f"taskmq_broker_epoch{{{space}}}")
               == before + 1)


def promtool(*words, text=None):
    """Prometheus' own tool, where it is installed."""
    if shutil.which("promtool") is None:
        print("promtool is not installed: its checks are left out")
        return
    done = subprocess.run(["promtool", *words], input=text, capture_output=True, text=True, check=False)
    # Status 3 is advice on names; what is wrong is 1.
    assert done.returncode in (0, 3), (words, done.stdout, done.stderr)


def try_alerts(plain):
    directory = os.path.join(os.environ["TASKMQ_SOURCE"], "docs/grafana")
    alerts = os.path.join(directory, "alerts.yml")
    promtool("check", "rules", alerts)
    promtool("test", "rules", os.path.join(directory, "alerts_test.yml"))
    promtool("check", "metrics", text=plain)
    with open(alerts, encoding="utf-8") as file:
        rules = file.read()
    check("six alerts", rules.count("- alert: "), 6)
    with open(os.path.join(directory, "dashboard.json"), encoding="utf-8") as file:
        board = json.load(file)
    expressions = [target["expr"] for panel in board["panels"] for target in panel.get("targets", [])]
    assert len(expressions) > 8, expressions
    there = set(re.findall(r"^# TYPE (\S+)", plain, re.M))
    for text in [rules, *expressions]:
        for name in re.findall(r"\b(?:taskmq|process)_\w+", text):
            assert re.sub("_(bucket|sum|count)$", "", name) in there or name in there, f"no metric {name}"


def try_supervisor(broker):
    """READY when the broker answered, not before; then a beat; and a word at the end."""
    path = os.path.join(broker.home, "notify")
    heard = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    heard.bind(path)
    heard.settimeout(60)
    said = []

    def hear(word):
        while not any(word in text for text in said):
            said.append(heard.recv(4096).decode())
    broker.kill()
    os.environ.update(NOTIFY_SOCKET=path, WATCHDOG_USEC="400000")
    try:
        gateway = Gateway(broker)
        start = gateway.await_broker
        gateway.await_broker = lambda: None
        gateway.start()
    finally:
        del os.environ["NOTIFY_SOCKET"], os.environ["WATCHDOG_USEC"]
    hear("WATCHDOG=1")
    check("alive", gateway.get("/healthz", token=None).status, 200)
    check("not ready", gateway.get("/readyz", token=None).status, 503)
    check("nor told so", [text for text in said if "READY=1" in text], [])
    broker.start()
    hear("READY=1")
    start()
    said.clear()
    hear("WATCHDOG=1")
    gateway.stop()
    hear("STOPPING=1")
    gateway.log.close()


def main():
    with Broker() as broker:
        tools = os.path.join(os.environ["TASKMQ_SOURCE"], "tests", "gateway", "tools.json")
        with Gateway(broker, "--tools", tools) as gateway:
            submit(gateway, {"queue": "q"})
            eventually("the queue is told", lambda: b'queue="q"' in gateway.get("/metrics").body)
            try_alerts(try_formats(gateway))
            try_numbers(broker, gateway)
        try_supervisor(broker)


if __name__ == "__main__":
    main()
