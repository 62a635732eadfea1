# This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
# If a copy of the MPL was not distributed with this file, You can obtain one at
# https://mozilla.org/MPL/2.0/.

"""What others wrote to hold a server of MCP against, from npm: official.py DIRECTORY, where
tests/gateway/npm was installed. The conformance suite at both versions, the official clients, what
OpenAPI says beside what is answered, and JSON Schema beside ajv. Not among the tests, because it needs npm; ./dev mcp runs it."""

import os
import re
import subprocess
import sys

sys.path.insert(0, os.path.join(os.environ["TASKMQ_SOURCE"], "tests", "gateway"))

from test_mcp import HERE, Stage  # noqa: E402

directory = sys.argv[1]
modules = os.path.join(directory, "node_modules")
node = os.path.join(modules, ".bin", "node")
good = True


def run(what, *command):
    """Its last lines; everything if it fails."""
    global good
    done = subprocess.run([node, *command], cwd=directory, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, check=False)
    good_run = done.returncode == 0
    lines = [line for line in done.stdout.splitlines() if line.strip()]
    totals = re.findall(r"^(?:Total|Passed): .*", done.stdout, re.M)
    print(f"{what}: {'good' if good_run else 'FAILED'}: {(totals or lines)[-1]}", flush=True)
    if not good_run:
        print(done.stdout[-6000:])
    good = good and done.returncode == 0


with Stage("--insecure-no-auth") as gateway:
    url = f"http://127.0.0.1:{gateway.port}/mcp"
    suite = os.path.join(modules, "@modelcontextprotocol", "conformance", "dist", "index.js")
    for version in ("2025-11-25", "2026-07-28"):
        run(f"conformance {version}", suite, "server", "--url", url, "--suite", "all",
            "--spec-version", version, "--expected-failures",
            os.path.join(HERE, "npm", f"baseline-{version}.yml"))
    for scenario in ("lifecycle", "capability-negotiation", "wire-fields", "request-state-removal",
                     "mrtr-input", "request-headers", "dispatch-and-envelope",
                     "required-task-error", "mrtr-composition"):
        run(f"conformance tasks-{scenario}", suite, "server", "--url", url, "--scenario",
            "tasks-" + scenario)
    run("official clients", "clients.mjs", url)
    run("OpenAPI", "openapi.mjs", url.removesuffix("/mcp"))
run("JSON Schema beside ajv", "pairs.mjs",
    os.path.join(os.environ["TASKMQ_BIN"], "..", "tests", "test_gateway_schema"),
    *sys.argv[2:])
sys.exit(0 if good else 1)
