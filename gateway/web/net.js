// This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
// If a copy of the MPL was not distributed with this file, You can obtain one at
// https://mozilla.org/MPL/2.0/.

// The way to the gateway: requests by the session's cookie, and one stream of events.

import { dirty } from "./dom.js";

export const session = { known: false, principal: null, roles: [], namespaces: [], ns: "" };

export const may = (...roles) => roles.some((role) => session.roles.includes(role));
export const mayOverview = () => may("observer", "operator");
export const mayChange = () => may("operator", "client");

export class Problem extends Error {
  constructor(status, body) {
    super(body?.detail || body?.title || `The gateway answered ${status}.`);
    this.status = status;
    this.code = body?.code ?? null;
    this.type = body?.type ?? "";
  }
}

async function send(method, path, body, more) {
  const headers = { "X-Taskmq-Request": "1", ...more };
  if (session.ns) headers["Taskmq-Namespace"] = session.ns;
  if (body !== undefined) headers["Content-Type"] = "application/json";
  let response;
  try {
    response = await fetch(path, {
      method, headers, cache: "no-store", credentials: "same-origin",
      body: body === undefined ? undefined : JSON.stringify(body),
    });
  } catch {
    throw new Problem(0, { detail: "The gateway cannot be reached." });
  }
  if (!response.ok) {
    const told = await response.json().catch(() => null);
    if (response.status === 401 && session.principal) forget();
    throw new Problem(response.status, told);
  }
  return response;
}

export const get = async (path) => (await send("GET", path)).json();
export const post = async (path, body) => (await send("POST", path, body)).json();
export const remove = (path) => send("DELETE", path);
// At most the first so many bytes, and how many there are.
export const bytesOf = async (path, most) => {
  const response = await send("GET", path, undefined, most && { Range: `bytes=0-${most - 1}` });
  const bytes = new Uint8Array(await response.arrayBuffer());
  const total = /\/(\d+)$/.exec(response.headers.get("content-range") ?? "");
  return { type: response.headers.get("content-type") ?? "", bytes, total: total ? Number(total[1]) : bytes.length };
};

export const query = (params) => {
  const out = new URLSearchParams();
  for (const [name, value] of Object.entries(params))
    for (const one of [value].flat()) if (one !== undefined && one !== null && one !== "") out.append(name, one);
  const text = out.toString();
  return text ? `?${text}` : "";
};

// For what cannot say a field: a link, an image.
export const withNs = (path) => session.ns ? `${path}${path.includes("?") ? "&" : "?"}namespace=${encodeURIComponent(session.ns)}` : path;

// The session.

const NS_KEY = "taskmq.namespace";

function take(told) {
  Object.assign(session, told, { known: true });
  const kept = localStorage.getItem(NS_KEY);
  session.ns = told.namespaces.length < 2 ? "" : told.namespaces.includes(kept) ? kept : told.namespaces[0];
}

export function forget() {
  stream.close();
  Object.assign(session, { known: true, principal: null, roles: [], namespaces: [], ns: "" });
  dirty();
}

export async function findSession() {
  try {
    take(await (await send("GET", "/v1/session")).json());
  } catch (problem) {
    forget();
    if (problem.status !== 401) throw problem;
  }
}

export async function logIn(token) {
  take(await (await send("POST", "/v1/session", undefined, { Authorization: `Bearer ${token}` })).json());
}

export async function logOut() {
  await remove("/v1/session").catch(() => {});
  forget();
}

export function chooseNs(ns) {
  localStorage.setItem(NS_KEY, ns);
  session.ns = ns;
  stream.cursor = "";
  stream.close();
  stream.open();
}

// Events. The stream goes on from its cursor after anything: a tab that slept, a gateway or a
// broker that was killed. Where it could not, it says that there is a gap.

const RECENT_MAX = 1000;
const RETRY_MS = 2000;
const KINDS = ["submitted", "claimed", "released", "attempt_failed", "lease_lost", "asked", "answered",
  "completed", "failed", "cancelled", "cancel_acknowledged", "retried", "resumed", "adopted", "changed",
  "expired", "purged", "late", "removed", "fired", "turn", "imported", "artifact"];

export const stream = {
  state: "closed", // connecting, live, away (the broker), closed, lost (the gateway)
  cursor: "", gaps: 0, count: 0, since: 0, recent: [], listeners: new Set(),
  source: null, timer: 0,

  open() {
    if (this.source || !session.principal || document.hidden) return;
    clearTimeout(this.timer);
    const source = new EventSource(withNs(`/v1/events${query({ cursor: this.cursor, notices: "1" })}`));
    this.source = source;
    this.state = "connecting";
    const on = (kind, fn) => source.addEventListener(kind, (event) => {
      if (event.lastEventId) this.cursor = event.lastEventId;
      let data = null;
      try { data = JSON.parse(event.data); } catch { /* a kind without data */ }
      fn(data, kind);
      dirty();
    });
    const live = () => this.become("live");
    source.onopen = live;
    for (const kind of KINDS) on(kind, (data) => this.take(data));
    on("message", (data) => this.take(data));
    on("notice", (data) => this.tell({ ...data, kind: "notice" }));
    on("live", live);
    on("snapshot", () => {});
    on("snapshot_end", () => {});
    on("gap", () => { this.gaps++; this.tell({ kind: "gap" }); });
    on("broker", (data) => this.become(data?.connected ? "live" : "away"));
    source.onerror = () => {
      this.become("lost");
      if (source.readyState !== EventSource.CLOSED) return;
      // The answer was no stream: perhaps the session is over, or the cursor belongs elsewhere.
      this.close("lost");
      this.cursor = "";
      this.timer = setTimeout(() => findSession().catch(() => {}).then(() => this.open()), RETRY_MS);
    };
  },

  become(state) {
    const was = this.state;
    if (was === state) return;
    this.state = state;
    this.since = Date.now();
    if (state === "live" && was !== "connecting") this.tell({ kind: "back" });
    dirty();
  },

  take(event) {
    if (!event) return;
    this.count++;
    this.recent.push(event);
    if (this.recent.length > RECENT_MAX) this.recent.splice(0, this.recent.length - RECENT_MAX);
    this.tell(event);
  },

  tell(event) {
    for (const listener of this.listeners) listener(event);
  },

  close(state = "closed") {
    clearTimeout(this.timer);
    this.source?.close();
    this.source = null;
    this.state = state;
  },
};

document.addEventListener("visibilitychange", () => {
  if (document.hidden) stream.close();
  else stream.open();
});

// What a view shows of the gateway: asked for when it is opened and after events, one request at a
// time and not more often than every `gap` milliseconds. What was there stays while it is asked anew.
export class Source {
  constructor(fetcher, gap = 1000) {
    Object.assign(this, { fetcher, gap, data: null, problem: null, busy: false, again: false, at: -Infinity, timer: 0, gone: false });
  }

  refresh(now = false) {
    if (this.gone) return;
    if (this.busy) { this.again = true; return; }
    const wait = now ? 0 : this.at + this.gap - performance.now();
    clearTimeout(this.timer);
    if (wait > 0) { this.timer = setTimeout(() => this.refresh(), wait); return; }
    if (document.hidden) { this.again = true; return; }
    this.run();
  }

  async run() {
    this.busy = true;
    this.again = false;
    this.at = performance.now();
    try {
      const data = await this.fetcher();
      if (!this.gone) { this.data = data; this.problem = null; }
    } catch (problem) {
      this.problem = problem;
    }
    this.busy = false;
    dirty();
    if (this.again) this.refresh();
    else if (this.problem && [0, 503, 429].includes(this.problem.status)) this.timer = setTimeout(() => this.refresh(), RETRY_MS);
  }

  stop() {
    this.gone = true;
    clearTimeout(this.timer);
  }
}
