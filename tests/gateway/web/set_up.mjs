// This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
// If a copy of the MPL was not distributed with this file, You can obtain one at
// https://mozilla.org/MPL/2.0/.

// A broker, a gateway and workers of our own in a new directory, and a browser that notes every
// complaint. TASKMQ_BIN has the programs.

import { execFileSync, spawn } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { chromium } from "playwright-core";

const PATIENCE_MS = 60_000;

export async function eventually(what, fn) {
  const end = Date.now() + PATIENCE_MS;
  let last;
  while (Date.now() < end) {
    try {
      last = await fn();
      if (last) return last;
    } catch (error) {
      last = error;
    }
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  throw new Error(`it did not happen: ${what}; at last: ${last}`);
}

export function check(what, got, wanted) {
  if (JSON.stringify(got) !== JSON.stringify(wanted)) throw new Error(`${what}: ${JSON.stringify(got)}, not ${JSON.stringify(wanted)}`);
}

export class Site {
  constructor() {
    this.home = mkdtempSync(join(tmpdir(), "taskmq-web-"));
    this.children = new Set();
  }

  start(name, ...words) {
    const child = spawn(join(process.env.TASKMQ_BIN, name), words, { cwd: this.home, stdio: ["ignore", "ignore", "pipe"], detached: true });
    child.log = "";
    child.stderr.on("data", (data) => { child.log += data; });
    child.on("exit", () => this.children.delete(child));
    this.children.add(child);
    return child;
  }

  ctl(...words) {
    return execFileSync(join(process.env.TASKMQ_BIN, "taskctl"), words, { cwd: this.home, encoding: "utf8", stdio: ["ignore", "pipe", "ignore"] }).trim();
  }

  // input: the payload.
  submit(queue, input, ...words) {
    return execFileSync(join(process.env.TASKMQ_BIN, "taskctl"), ["submit", queue, ...words, "-"], { cwd: this.home, input, encoding: "utf8" }).trim();
  }

  async startBroker() {
    this.broker = this.start("taskmqd");
    await eventually("the broker answers", () => this.ctl("ping"));
  }

  offer(...tools) {
    writeFileSync(join(this.home, ".taskmq/tools.json"), JSON.stringify({ tools }), { mode: 0o600 });
  }

  async startGateway(...words) {
    this.gateway = this.start("taskmq-gateway", "--listen", `127.0.0.1:${this.port ?? 0}`, ...words);
    const ready = join(this.home, ".taskmq/gateway.endpoint");
    await eventually("the gateway listens", () => existsSync(ready) && fetch(`${readFileSync(ready, "utf8").trim()}/readyz`).then((answer) => answer.ok));
    this.url = readFileSync(ready, "utf8").trim();
    this.port = Number(new URL(this.url).port);
  }

  link() {
    return execFileSync(join(process.env.TASKMQ_BIN, "taskmq-gateway"), ["link"], { cwd: this.home, encoding: "utf8" }).trim();
  }

  get token() {
    return readFileSync(join(this.home, ".taskmq/gateway.token"), "utf8").trim();
  }

  work(queue, script, ...words) {
    return this.start("taskctl", "work", queue, "--name", `${queue}-1`, ...words, "--", "bash", "-c", script);
  }

  async kill(child) {
    const gone = new Promise((resolve) => child.once("exit", resolve));
    process.kill(child.pid, "SIGKILL");
    await gone;
  }

  end() {
    for (const child of this.children) {
      try { process.kill(-child.pid, "SIGKILL"); } catch { /* it has ended */ }
    }
    rmSync(this.home, { recursive: true, force: true, maxRetries: 5 });
  }
}

// What a browser complains of; an empty list is what is wanted. Requests that fail while a broker
// is away are no complaint.
export async function openBrowser() {
  const browser = await chromium.launch({ executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium", args: ["--no-sandbox"] });
  const complaints = [];
  const open = async (options = {}) => {
    const context = await browser.newContext({ viewport: { width: 1280, height: 800 }, ...options });
    await context.addInitScript(() => {
      globalThis.violations = [];
      addEventListener("securitypolicyviolation", (event) => globalThis.violations.push(`${event.violatedDirective}: ${event.blockedURI} ${event.sample}`));
    });
    const page = await context.newPage();
    page.setDefaultTimeout(PATIENCE_MS);
    page.on("pageerror", (error) => complaints.push(`error: ${error.message} ${error.stack}`));
    page.on("console", (message) => {
      const text = message.text();
      if (["error", "warning"].includes(message.type()) && !/Failed to load resource/.test(text)) complaints.push(text);
    });
    return page;
  };
  return { browser, open, complaints };
}
