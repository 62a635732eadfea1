// This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
// If a copy of the MPL was not distributed with this file, You can obtain one at
// https://mozilla.org/MPL/2.0/.

// One task: why it stands where it stands, what happened, what it carries.

import { dirty, h, say } from "./dom.js";
import { answerForm } from "./form.js";
import { get, may, mayChange, mayOverview, post, query, remove, Source, withNs } from "./net.js";
import { ago, ask, badge, body, bytes, copy, curl, duration, empty, progress, readBody, shell, shown, taskctl, time, timeText, tree, word } from "./show.js";
import { took } from "./tasks.js";

const EVENTS = 200;
const LIVE = ["queued", "working", "input_required"];
const ATTEMPTS = 1000;
const LOG_TAIL = 65536;
const TABS = ["overview", "payload", "result", "artifacts", "events", "attempts", "logs", "json"];

// Spans of the task's life, from its events: waiting, each attempt, how that ended.
export function spansOf(events, now) {
  const spans = [];
  let open = null;
  const close = (at, how) => { if (open) { open.end = at; open.how = how; spans.push(open); open = null; } };
  const begin = (kind, at, more) => { open = { kind, begin: at, ...more }; };
  for (const event of events) {
    const at = +new Date(event.at);
    const { kind } = event;
    if (kind === "submitted" || kind === "retried" || kind === "resumed") { close(at, kind); begin("queued", at); }
    else if (kind === "claimed") { close(at); begin("attempt", at, { attempt: event.attempt, worker: event.worker }); }
    else if (["released", "attempt_failed", "lease_lost"].includes(kind)) { close(at, kind); begin("queued", at); }
    else if (kind === "asked") { const { attempt, worker } = open ?? {}; close(at, "asked"); begin("asks", at, { attempt, worker }); }
    else if (kind === "answered" && open?.kind === "asks") { const { attempt, worker } = open; close(at, "answered"); begin("attempt", at, { attempt, worker }); }
    else if (["completed", "failed", "cancelled", "expired"].includes(kind)) close(at, kind);
  }
  close(now, "now");
  return spans;
}

export class Task {
  constructor(params, id) {
    this.id = id;
    this.params = params;
    this.tab = TABS.includes(params.get("tab")) ? params.get("tab") : "overview";
    this.bodies = {};
    this.task = new Source(() => get(`/v1/tasks/${id}`), 300);
    this.why = new Source(() => get(`/v1/tasks/${id}/why`), 1000);
    this.events = new Source(() => this.readEvents(), 500);
    this.tries = new Source(() => get(`/v1/tasks/${id}/attempts${query({ limit: ATTEMPTS })}`), 500);
    this.attempt = 0; // whose log is shown; 0: the newest one's
    this.logs = new Source(() => this.readLogs(), 1000);
    this.artifacts = new Source(() => get(`/v1/tasks/${id}/artifacts`), 1000);
    this.inbox = mayOverview() ? new Source(() => get("/v1/inbox"), 1000) : null;
    for (const source of this.sources()) source.refresh();
    this.clock = setInterval(() => {
      if (!LIVE.includes(this.task.data?.status)) return;
      dirty();
      if (this.tab === "logs") this.logs.refresh(); // pieces of it are no events
    }, 1000);
    this.openTab(this.tab);
  }
  get title() { return `Task …${this.id.slice(-6)}`; }
  sources() { return [this.task, this.why, this.events, this.tries, this.tab === "logs" && this.logs, this.tab === "artifacts" && this.artifacts, this.inbox].filter(Boolean); }
  close() { clearInterval(this.clock); this.logs.stop(); this.artifacts.stop(); for (const source of this.sources()) source.stop(); }

  async readEvents() {
    const page = await get(`/v1/tasks/${this.id}/events${query({ limit: EVENTS })}`);
    return page;
  }

  // The end of both streams, as text.
  async readLogs() {
    const out = {};
    for (const stream of ["out", "err"]) {
      const at = (more) => get(`/v1/tasks/${this.id}/logs${query({ stream, attempt: this.attempt || undefined, ...more })}`);
      const first = await at({ limit: 1 });
      const piece = first.end > 0 ? await at({ offset: Math.max(first.offset, first.end - LOG_TAIL) }) : first;
      const data = piece.data?.base64 === undefined ? piece.data ?? "" : new TextDecoder().decode(Uint8Array.from(atob(piece.data.base64), (one) => one.charCodeAt(0)));
      out[stream] = { text: data, end: piece.end, before: piece.offset, attempt: piece.attempt };
    }
    return out;
  }

  event(event) {
    if (event.kind === "gap" || event.kind === "back") { for (const source of this.sources()) source.refresh(true); return; }
    if (event.task_id !== this.id) return;
    if (event.kind === "notice") { if (this.task.data && event.progress) this.task.data.progress = event.progress; return; }
    say(`The task is ${word(event.status)}.`);
    for (const source of this.sources()) source.refresh();
    if (["completed", "failed", "adopted"].includes(event.kind)) { delete this.bodies.result; this.openTab(this.tab); }
  }

  key() { return false; }

  choose(tab) {
    this.tab = tab;
    history.replaceState(null, "", `#/task/${this.id}${tab === "overview" ? "" : `?tab=${tab}`}`);
    this.openTab(tab);
    dirty();
  }

  openTab(tab) {
    if (tab === "logs" || tab === "artifacts") this[tab].refresh();
    if ((tab !== "payload" && tab !== "result") || this.bodies[tab]) return;
    const mine = this.bodies[tab] = { read: null, problem: null };
    readBody(`/v1/tasks/${this.id}/${tab}`).then((read) => { mine.read = read; }, (problem) => { mine.problem = problem; }).finally(dirty);
  }

  async act(name, fn, text) {
    if (text && !await ask(`${name} this task?`, text, name)) return;
    try {
      await fn();
      say(`${name}: done.`, true);
      this.flaw = null;
    } catch (problem) {
      this.flaw = problem.message;
    }
    for (const source of this.sources()) source.refresh(true);
    dirty();
  }

  async cancel() {
    const message = await ask("Cancel this task?", "Its worker is told to stop. A task that was cancelled can be retried.", "Cancel it", "Why, for its history");
    if (message !== null) this.act("Cancel", () => post(`/v1/tasks/${this.id}/cancel`, message ? { message } : {}));
  }

  buttons(task) {
    const live = LIVE.includes(task.status);
    const again = task.status === "failed" || task.status === "cancelled";
    return h("div", { class: "row" },
      mayChange() && live && h("button", { class: "danger", key: "cancel", onclick: () => this.cancel() }, "Cancel"),
      mayChange() && again && h("button", { class: "main", key: "retry", onclick: () => this.act("Retry", () => post(`/v1/tasks/${this.id}/retry`)) }, "Retry"),
      mayChange() && again && h("button", { key: "resume", title: "Goes on from where its last attempt was", onclick: () => this.act("Resume", () => post(`/v1/tasks/${this.id}/resume`)) }, "Resume"),
      may("operator") && !live && h("button", { key: "purge", onclick: () => this.act("Purge", () => remove(`/v1/tasks/${this.id}`), "Its payload, its result and its history go away for good.") }, "Purge"),
      h("button", { key: "copy", onclick: () => copy(this.id, "The id is copied") }, "Copy id"));
  }

  timeline(events, task) {
    const end = task.finished_at ? +new Date(task.finished_at) : Date.now();
    const spans = spansOf(events, end);
    if (spans.length === 0) return null;
    const from = spans[0].begin;
    const total = Math.max(1, end - from);
    const bars = spans.map((span) => {
      const what = span.kind === "queued" ? "queued" : span.kind === "asks" ? "asks" : `attempt ${span.attempt}`;
      const length = duration(span.end - span.begin);
      const text = `${what}${span.worker ? ` by ${span.worker}` : ""}: ${length}${span.how ? `, then ${word(span.how)}` : ""}`;
      // Short spans stay visible.
      return h("li", { class: `bar ${span.kind} ${span.how ?? ""}`, grow: Math.max((span.end - span.begin) / total, 0.01), title: text },
        h("span", { class: "unseen" }, text), h("span", { "aria-hidden": "true" }, `${what} · ${length}`));
    });
    return h("figure", { class: "timeline" }, h("ol", { "aria-label": "Timeline" }, bars),
      h("figcaption", { class: "faint" }, h("span", {}, timeText(events[0]?.at)), h("span", {}, `${duration(total)} in all`), h("span", {}, task.finished_at ? timeText(task.finished_at) : "now")));
  }

  overview(task) {
    const why = this.why.data;
    const questions = (this.inbox?.data?.items ?? []).filter((one) => one.task_id === this.id);
    const pairs = [
      ["Queue", h("a", { href: `#/queue/${encodeURIComponent(task.queue)}` }, task.queue)],
      ["Created", [time(task.created_at), " ", h("span", { class: "faint" }, ago(task.created_at))]],
      ["Took", took(task)],
      ["Attempt", `${task.attempt} of ${task.max_attempts}${task.failures ? `, ${task.failures} failed` : ""}`],
      ["Worker", task.worker], ["Session", task.session && h("a", { href: `#/tasks${query({ session: task.session })}` }, task.session)],
      ["Method", task.method], ["Priority", task.priority], ["Owner", task.owner],
      [task.finished_at ? "Kept until" : "Expires", [time(task.expires_at), " ", h("span", { class: "faint" }, `in ${duration(new Date(task.expires_at) - Date.now())}`)]],
      ["Not before", task.not_before && time(task.not_before)],
      ["Payload", bytes(task.payload_bytes)], ["Result", task.result_bytes == null ? null : `${bytes(task.result_bytes)} ${task.result_type ?? ""}`],
      ["Waits for", task.depends_on?.length ? task.depends_on.map((one) => { const id = one.task_id ?? one; return h("a", { class: "mono", href: `#/task/${id}` }, `…${id.slice(-8)} `); }) : null],
      ["Part of", task.parent && h("a", { class: "mono", href: `#/task/${task.parent}` }, `…${task.parent.slice(-8)}`)],
      ["Trace", task.trace && h("code", {}, task.trace.split("-")[1])],
      ["Labels", Object.entries(task.labels).length ? Object.entries(task.labels).map(([key, value]) => h("a", { class: "chip", href: `#/tasks${query({ label: `${key}:${value}` })}` }, `${key}:${value}`)) : null],
    ].filter(([, value]) => value != null && value !== "" && value !== false);
    return [
      why && LIVE.includes(task.status) && h("p", { class: "why" }, h("strong", {}, "Why: "), why.sentence, "."),
      task.error && h("p", { class: "flaw" }, h("strong", {}, `Error ${task.error.code}: `), task.error.message, task.error.data != null && h("div", { class: "tree" }, tree(task.error.data))),
      task.cancel_message && h("p", { class: "why" }, h("strong", {}, "Cancelled: "), task.cancel_message),
      task.status_message && h("p", { class: "why" }, h("strong", {}, "Says: "), task.status_message),
      task.status === "working" && task.progress && h("p", {}, progress(task.progress)),
      questions.map((question) => h("section", { class: "card", key: question.key, "aria-label": `Question ${question.key}` }, h("h2", {}, `Asks: ${question.key}`),
        mayChange() ? answerForm(question, () => this.inbox.refresh(true)) : h("div", { class: "tree" }, tree(question.request)))),
      h("dl", { class: "pairs" }, pairs.map(([name, value]) => h("div", { key: name }, h("dt", {}, name), h("dd", {}, value)))),
      task.meta != null && h("section", {}, h("h2", {}, "Meta"), h("div", { class: "tree" }, tree(task.meta))),
    ];
  }

  history({ items, before }) {
    let earlier = null;
    return [
      before != null && h("p", { class: "faint" }, `The last ${EVENTS}; earlier ones: taskctl get --events.`),
      h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Events" }, h("table", {},
        h("thead", {}, h("tr", {}, ["Time", "After", "Event", "Status", "Actor", "Message"].map((name) => h("th", { scope: "col" }, name)))),
        h("tbody", {}, items.map((event) => {
          const at = new Date(event.at);
          const after = earlier === null ? "" : `+${duration(at - earlier)}`;
          earlier = at;
          return h("tr", { key: event.seq }, h("td", { class: "mono" }, timeText(event.at, true)), h("td", { class: "faint" }, after),
            h("td", {}, word(event.kind)), h("td", {}, badge(event.status)), h("td", {}, event.worker ?? event.actor ?? "–"), h("td", { class: "wide" }, event.message ?? ""));
        })))),
    ];
  }

  attempts({ items }) {
    if (items.length === 0) return empty("No worker has had it yet.");
    return h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Attempts" }, h("table", {}, h("thead", {}, h("tr", {}, ["Try", "Worker", "Began", "Took", "Ended", "Error", "Log"].map((name) => h("th", { scope: "col" }, name)))),
      h("tbody", {}, items.map((one) => h("tr", { key: one.attempt }, h("td", {}, one.attempt), h("td", {}, one.worker || "–"), h("td", {}, time(one.started_at)),
        h("td", {}, one.started_at ? duration((one.ended_at ? new Date(one.ended_at) : Date.now()) - new Date(one.started_at)) : "–"), h("td", {}, one.end ? word(one.end) : "goes on"),
        h("td", { class: "wide" }, one.error ? h("span", { class: "bad" }, `${one.error.code}: ${one.error.message ?? ""}`) : "",
          one.kept && [" A success of ", bytes(one.kept.bytes), " came too late, and is kept until ", time(one.kept.until), ". ",
            may("operator") && h("button", { onclick: () => this.act("Adopt", () => post(`/v1/tasks/${this.id}/adopt`, { attempt: one.attempt }), "Its late success becomes the task's outcome.") }, "Adopt it")]),
        h("td", {}, h("button", { class: "plain", "aria-label": `Log of attempt ${one.attempt}`, onclick: () => { this.attempt = one.attempt; this.logs.data = null; this.choose("logs"); } }, "Log")))))));
  }

  logTab(logs) {
    const streams = [["out", "What it wrote"], ["err", "What it wrote to its error stream"]].filter(([name]) => logs[name].end > 0);
    const newest = this.tries.data?.items.at(-1)?.attempt;
    return [
      this.attempt > 0 && this.attempt !== newest && h("p", {}, `Of attempt ${this.attempt}. `, h("button", { onclick: () => { this.attempt = 0; this.logs.data = null; this.logs.refresh(true); } }, "The newest one’s")),
      streams.length === 0 ? empty("Nothing was written.", "What the programs of taskctl work write appears here by itself.")
        : streams.map(([name, title]) => h("section", { key: name }, h("h2", {}, title), logs[name].before > 0 && h("p", { class: "faint" }, `Its last ${bytes(logs[name].end - logs[name].before)} of ${bytes(logs[name].end)}; all of it: taskctl logs`), h("pre", { tabindex: "0" }, logs[name].text))),
    ];
  }

  artifactTab({ items }, task) {
    if (items.length === 0) return empty("It has no artifacts.", LIVE.includes(task.status) && "What its worker attaches appears here by itself.");
    return h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Artifacts" }, h("table", {}, h("thead", {}, h("tr", {}, ["Name", "Type", "Size", "Try", "Attached", "Bytes"].map((name) => h("th", { scope: "col" }, name)))),
      h("tbody", {}, items.map((one) => h("tr", { key: one.name }, h("td", { class: "wide" }, one.name), h("td", {}, one.type || "–"), h("td", {}, bytes(one.bytes)), h("td", {}, one.attempt), h("td", {}, time(one.attached_at)),
        h("td", {}, one.hash ? h("a", { href: withNs(`/v1/tasks/${this.id}/artifacts/${encodeURIComponent(one.name)}`), download: one.name, "aria-label": `Download ${one.name}` }, "Download") : "not for you"))))));
  }

  bodyTab(name, task) {
    const state = this.bodies[name];
    if (state?.problem)
      return state.problem.status === 409 ? empty("There is no result yet.", "It appears here by itself when the task has ended.")
        : state.problem.status === 404 && task.status !== "completed" ? empty("It ended without a result.", task.error?.message) : h("p", { class: "flaw", role: "alert" }, state.problem.message);
    return state?.read ? body(state.read, `/v1/tasks/${this.id}/${name}`, name) : h("p", { class: "faint" }, "…");
  }

  panel(task) {
    switch (this.tab) {
    case "payload": case "result": return this.bodyTab(this.tab, task);
    case "artifacts": return shown(this.artifacts, (data) => this.artifactTab(data, task));
    case "events": return shown(this.events, (data) => this.history(data));
    case "attempts": return shown(this.tries, (data) => this.attempts(data));
    case "logs": return shown(this.logs, (data) => this.logTab(data));
    case "json": return h("div", { class: "tree" }, tree(task));
    default: return this.overview(task);
    }
  }

  absent() {
    const { problem } = this.task;
    const title = problem.code === "PURGED" ? "This task was purged." : problem.code === "EXPIRED" ? "This task's time is over." : "There is no such task.";
    return [h("div", { class: "head" }, h("h1", {}, title)), h("p", { class: "mono" }, this.id), h("p", {}, problem.message), h("p", {}, h("a", { href: "#/tasks" }, "All tasks"))];
  }

  render() {
    if (this.task.problem && [404, 410].includes(this.task.problem.status)) return this.absent();
    return shown(this.task, (task) => [
      h("div", { class: "head" }, h("h1", { class: "mono id" }, task.task_id), badge(task.status, task.dead), h("span", { class: "push" }), this.buttons(task)),
      this.flaw && h("p", { class: "flaw", role: "alert" }, this.flaw),
      this.events.data && this.timeline(this.events.data.items, task),
      h("div", { class: "tabs", role: "tablist", "aria-label": "Of the task", onkeydown: (event) => {
        const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
        if (!step) return;
        this.choose(TABS[(TABS.indexOf(this.tab) + step + TABS.length) % TABS.length]);
        setTimeout(() => document.querySelector("[role=tab][aria-selected=true]")?.focus(), 150);
      } }, TABS.map((tab) => h("button", {
        key: tab, role: "tab", id: `tab-${tab}`, "aria-selected": String(tab === this.tab), "aria-controls": "panel", tabindex: tab === this.tab ? "0" : "-1", onclick: () => this.choose(tab),
      }, tab === "json" ? "JSON" : word(tab)[0].toUpperCase() + tab.slice(1)))),
      h("div", { role: "tabpanel", id: "panel", tabindex: "0", "aria-labelledby": `tab-${this.tab}`, key: `panel-${this.tab}` }, this.panel(task)),
      shell(...(this.tab === "payload" || this.tab === "result" ? [taskctl(this.tab, this.id), curl(`/v1/tasks/${this.id}/${this.tab}`)]
        : this.tab === "artifacts" ? [taskctl("artifact", "list", this.id), curl(`/v1/tasks/${this.id}/artifacts`)]
        : this.tab === "events" ? [taskctl("get", "--events", this.id), curl(`/v1/tasks/${this.id}/events`)]
          : this.tab === "attempts" ? [taskctl("get", "--attempts", this.id), curl(`/v1/tasks/${this.id}/attempts`)]
            : this.tab === "logs" ? [taskctl("logs", this.id), curl(`/v1/tasks/${this.id}/logs`)]
              : [taskctl("get", this.id), curl(`/v1/tasks/${this.id}`)])),
    ]);
  }
}
