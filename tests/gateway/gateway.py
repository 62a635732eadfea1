# This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
# If a copy of the MPL was not distributed with this file, You can obtain one at
# https://mozilla.org/MPL/2.0/.

"""A gateway of our own for a test, before a broker of our own, and a client that speaks HTTP."""

import http.client
import json
import os
import re
import resource
import signal
import socket
import subprocess

from broker import die_with_the_test, eventually

PATIENCE_S = 60


def program(name):
    return os.path.join(os.environ["TASKMQ_BIN"], name)


class Answer:
    def __init__(self, response):
        self.status = response.status
        self.fields = {name.lower(): value for name, value in response.getheaders()}
        self.body = response.read()

    @property
    def json(self):
        return json.loads(self.body)

    def __repr__(self):
        return f"{self.status} {self.fields} {self.body[:400]!r}"


class Gateway:
    """options go to the command line; lines of configuration into gateway.conf."""

    def __init__(self, broker, *options, configuration=()):
        self.broker = broker
        self.options = options
        with open(self.path("gateway.conf"), "w", encoding="utf-8") as file:
            file.write("\n".join(("log_level = debug", *configuration)) + "\n")
            # A sanitizer makes every request dear: who is to wait for that says so.
            if not any(line.startswith("principal_time") for line in configuration):
                file.write("principal_time = 1s\n")
        os.chmod(self.path("gateway.conf"), 0o600)
        self.log_path = os.path.join(broker.home, "gateway.log")
        self.log = open(self.log_path, "ab")
        self.process = None
        self.limits = {}  # of its process: resource.RLIMIT_NOFILE and the like

    def path(self, name):
        return os.path.join(self.broker.data, name)

    def run(self, *arguments):
        """A command of the gateway's program."""
        return subprocess.run([program("taskmq-gateway"), "--data", self.broker.data, *arguments],
                              capture_output=True, text=True, check=False)

    def begin(self):
        die_with_the_test()
        for what, most in self.limits.items():
            resource.setrlimit(what, (most, most))

    def start(self):
        ready = self.path("gateway.endpoint")
        if os.path.exists(ready):
            os.remove(ready)
        self.process = subprocess.Popen(
            [program("taskmq-gateway"), "--data", self.broker.data, "--listen", "127.0.0.1:0",
             *self.options], stderr=self.log, stdout=self.log, preexec_fn=self.begin)
        with open(self.path("gateway.pid"), "w", encoding="utf-8") as file:
            file.write(str(self.process.pid))

        def is_ready():
            assert self.process.poll() is None, self.read_log()
            return os.path.exists(ready)
        eventually("the gateway says where it listens", is_ready)
        with open(ready, encoding="utf-8") as file:
            self.port = int(re.search(r":(\d+)$", file.readline().strip()).group(1))
        self.await_broker()

    def await_broker(self):
        eventually("there is a way to the broker",
                   lambda: self.get("/readyz", token=None).status == 200)

    def read_log(self):
        with open(self.log_path, encoding="utf-8") as file:
            return file.read()

    def kill(self):
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def stop(self):
        self.process.terminate()
        code = self.process.wait(timeout=PATIENCE_S)
        assert code == 0, f"it ended with {code}: {self.read_log()[-3000:]}"

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, kind, value, trace):
        if self.process.poll() is None:
            if kind is None:
                self.stop()
            else:
                self.kill()
        self.log.close()
        if kind is not None:
            print(self.read_log()[-6000:])

    @property
    def first_token(self):
        with open(self.path("gateway.token"), encoding="utf-8") as file:
            return file.read().strip()

    def make_token(self, name, roles, *more):
        done = self.run("token", "add", name, "--roles", roles, *more)
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    def reload(self):
        before = self.read_log().count("GATEWAY-RELOADED")
        self.process.send_signal(signal.SIGHUP)
        eventually("the tokens are read again",
                   lambda: self.read_log().count("GATEWAY-RELOADED") > before)
        self.await_broker()

    def ask(self, method, target, body=None, token="first", **fields):
        """One request on a connection of its own. fields: Some_Name for Some-Name."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE_S)
        head = {name.replace("_", "-"): value for name, value in fields.items()}
        if token == "first":
            token = self.first_token
        if token is not None:
            head["Authorization"] = f"Bearer {token}"
        if isinstance(body, (dict, list)):
            body = json.dumps(body)
            head.setdefault("Content-Type", "application/json")
        connection.request(method, target, body=body, headers=head)
        answer = Answer(connection.getresponse())
        connection.close()
        return answer

    def get(self, target, **more):
        return self.ask("GET", target, **more)

    def post(self, target, body=None, **more):
        return self.ask("POST", target, body, **more)

    def talk(self, data, pieces=None):
        """Sends bytes as they are, or pieces, and reads until the gateway closes the connection (as
        it does soon when nothing follows). The statuses that came, and the bytes. On a machine that
        stalls, an answer may be lost with the connection: then it is tried again."""
        for _ in range(5):
            statuses, out, reset = self.talk_once(pieces or [data])
            if statuses or not reset:
                break
        return statuses, out

    def talk_once(self, pieces):
        link = socket.create_connection(("127.0.0.1", self.port))
        link.settimeout(PATIENCE_S)
        out = b""
        reset = False
        try:
            for piece in pieces:
                link.sendall(piece)
        except OSError:
            reset = True
        try:
            while piece := link.recv(65536):
                out += piece
        except ConnectionResetError:
            reset = True
        link.close()
        return [int(code) for code in re.findall(rb"HTTP/1\.1 (\d\d\d)", out)], out, reset
