// This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
// If a copy of the MPL was not distributed with this file, You can obtain one at
// https://mozilla.org/MPL/2.0/.

// The other views: overview, a queue, workers, questions, events, the system.

import { dirty, h, say } from "./dom.js";
import { answerForm } from "./form.js";
import { bytesOf, get, may, mayChange, post, query, session, Source, stream } from "./net.js";
import { ago, ask, badge, bytes, curl, duration, empty, number, plural, shell, shortId, shown, spark, taskctl, time, timeText, tree, word } from "./show.js";
import { remark } from "./tasks.js";

const HOUR_MS = 3600e3;

export class View {
  start() { for (const source of this.sources) source.refresh(); }
  close() { for (const source of this.sources) source.stop(); clearInterval(this.clock); }
  event(event) { if (event.kind !== "notice") for (const source of this.sources) source.refresh(event.kind === "gap" || event.kind === "back"); }
  key() { return false; }
}

// What was counted of queues while the page was open: rates are differences of the broker's own
// totals, so no event can be missed. For 15 minutes, in steps of five seconds.
const STEP_MS = 5000;
const STEPS = 180;
const totals = new Map();
function count(queues) {
  const at = Math.floor(Date.now() / STEP_MS);
  for (const one of queues) {
    const key = `${session.ns} ${one.queue}`;
    if (!totals.has(key)) totals.set(key, []);
    const list = totals.get(key);
    const now = { at, submitted: one.submitted, completed: one.completed, failed: one.failed, depth: one.ready + one.scheduled + one.blocked };
    if (list.at(-1)?.at === at) list[list.length - 1] = now; else list.push(now);
    while (list[0].at < at - STEPS) list.shift();
  }
}
// Per second and step, for the last so many steps.
function rates(queue, name, steps = 24) {
  const list = totals.get(`${session.ns} ${queue}`) ?? [];
  const end = Math.floor(Date.now() / STEP_MS);
  const at = (step) => { for (let i = list.length - 1; i >= 0; i--) if (list[i].at <= step) return list[i][name]; return list[0]?.[name] ?? 0; };
  return Array.from({ length: steps }, (_, i) => Math.max(0, at(end - steps + 1 + i) - at(end - steps + i)) / (STEP_MS / 1000));
}
const depths = (queue, steps = 60) => {
  const list = totals.get(`${session.ns} ${queue}`) ?? [];
  const end = Math.floor(Date.now() / STEP_MS);
  return Array.from({ length: steps }, (_, i) => { for (let j = list.length - 1; j >= 0; j--) if (list[j].at <= end - steps + 1 + i) return list[j].depth; return list[0]?.depth ?? 0; });
};
// Of the last minute.
const rate = (queue, name) => rates(queue, name, 12).reduce((a, b) => a + b, 0) / 12;
const rateText = (value) => value === 0 ? "0" : value < 0.1 ? "<0.1" : value.toFixed(value < 10 ? 1 : 0);
const sumOf = (items, ...names) => items.reduce((sum, one) => sum + names.reduce((all, name) => all + one[name], 0), 0);
const sumRates = (items, name) => items.map((one) => rates(one.queue, name)).reduce((sum, list) => sum.map((value, i) => value + list[i]), Array(24).fill(0));

const queuesSource = () => new Source(async () => { const data = await get("/v1/queues"); count(data.items); return data; }, 1000);
const failedSince = () => ({ status: "failed", created_since: new Date(Date.now() - HOUR_MS).toISOString() });

const tile = (title, value, href, chart, tone) => h("a", { class: `tile ${tone ?? ""}`, href, key: title }, h("span", { class: "name" }, title), h("span", { class: "value" }, value), chart);

const questionList = (inbox, done) => inbox.items.map((question) => h("article", { class: "card", key: `${question.task_id} ${question.key}` },
  h("div", { class: "row" }, h("h2", {}, question.key), h("span", { class: "faint" }, "asked by ", question.worker ?? "a worker", " of ", h("a", { href: `#/task/${question.task_id}` }, `${question.queue} ${shortId(question.task_id)}`), " ", ago(question.asked_at), question.deadline && [", until ", time(question.deadline)])),
  mayChange() ? answerForm(question, done) : h("div", { class: "tree" }, tree(question.request))));

export class Overview extends View {
  title = "Overview";
  constructor() {
    super();
    this.queues = queuesSource();
    this.inbox = new Source(() => get("/v1/inbox"), 2000);
    this.failed = new Source(async () => ({
      list: (await get(`/v1/tasks${query({ ...failedSince(), limit: 8 })}`)).items,
      count: (await get(`/v1/tasks:count${query(failedSince())}`)).count,
    }), 2000);
    this.sources = [this.queues, this.inbox, this.failed];
    // Rates fall to zero by themselves when nothing happens.
    this.clock = setInterval(dirty, STEP_MS);
    this.start();
  }
  event(event) {
    if (event.kind === "notice") return;
    const all = event.kind === "gap" || event.kind === "back";
    this.queues.refresh(all);
    if (all || ["asked", "answered", "cancelled", "expired"].includes(event.kind)) this.inbox.refresh(all);
    if (all || ["failed", "retried", "resumed", "purged", "expired"].includes(event.kind)) this.failed.refresh(all);
  }
  table({ items, next }) {
    if (items.length === 0) return empty("No queue has tasks or workers.", "A queue appears with its first task: taskctl submit QUEUE");
    const columns = ["Queue", "Ready", "Later", "Blocked", "Working", "Asks", "In/s", "Done/s", "Fail/s", "Oldest", "Workers", "2 min"];
    return [h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Queues" }, h("table", { class: "numbers" },
      h("thead", {}, h("tr", {}, columns.map((name) => h("th", { scope: "col" }, name)))),
      h("tbody", {}, items.map((one) => h("tr", { key: one.queue },
        h("td", {}, h("a", { href: `#/queue/${encodeURIComponent(one.queue)}` }, one.queue), one.paused && h("span", { class: "chip" }, "paused")),
        [one.ready, one.scheduled, one.blocked, one.working, one.input_required].map((value) => h("td", { class: value ? "" : "zero" }, number(value))),
        ["submitted", "completed", "failed"].map((name) => { const value = rate(one.queue, name); return h("td", { class: value ? (name === "failed" ? "bad" : "") : "zero" }, rateText(value)); }),
        h("td", {}, one.ready ? duration(one.oldest_ready_ms) : "–"),
        h("td", { class: one.workers ? "" : one.ready ? "bad" : "zero" }, number(one.workers)),
        h("td", {}, spark(rates(one.queue, "completed"), `done per second, at most ${Math.max(...rates(one.queue, "completed")).toFixed(1)}`, 80, 20))))))),
    next && h("p", { class: "faint" }, `The first ${number(items.length)} queues; all of them: taskctl queue list`)];
  }
  render() {
    const items = this.queues.data?.items ?? [];
    const queued = sumOf(items, "ready", "scheduled", "blocked");
    const working = sumOf(items, "working");
    const asks = sumOf(items, "input_required");
    const done = sumRates(items, "completed");
    const perMinute = Math.round(items.reduce((sum, one) => sum + rate(one.queue, "completed"), 0) * 60);
    const oldest = Math.max(0, ...items.filter((one) => one.ready).map((one) => one.oldest_ready_ms));
    if (this.queues.data) say(`${plural(queued, "task")} queued, ${number(working)} working, ${plural(asks, "task")} waiting for an answer`);
    return [
      h("h1", { class: "unseen" }, "Overview"),
      h("div", { class: "tiles" },
        tile("queued", number(queued), "#/tasks?status=queued", spark(sumRates(items, "submitted"), "submitted per second")),
        tile("working", number(working), "#/tasks?status=working"),
        tile("ask for input", number(asks), "#/questions", null, asks ? "warn" : ""),
        tile("failed, last hour", number(this.failed.data?.count), "#/tasks?status=failed&since=1h", null, this.failed.data?.count ? "alert" : ""),
        tile("done a minute", number(perMinute), "#/tasks?status=completed", spark(done, "completed per second")),
        tile("oldest waits", oldest ? duration(oldest) : "–", "#/tasks?status=queued")),
      h("div", { class: "columns" },
        h("section", {}, h("h2", {}, "Queues"), shown(this.queues, (data) => this.table(data))),
        h("div", {},
          h("section", {}, h("h2", {}, "Questions", this.inbox.data?.items.length ? ` (${this.inbox.data.items.length})` : ""),
            shown(this.inbox, (data) => data.items.length === 0 ? h("p", { class: "faint" }, "Nobody waits for an answer.")
              : h("ul", { class: "list" }, data.items.slice(0, 8).map((one) => h("li", { key: `${one.task_id}${one.key}` }, h("a", { href: "#/questions" }, one.key), h("span", { class: "faint" }, ` ${one.queue} ${shortId(one.task_id)} · `, ago(one.asked_at))))))),
          h("section", {}, h("h2", {}, "Failed lately"),
            shown(this.failed, ({ list }) => list.length === 0 ? h("p", { class: "faint" }, "Nothing failed in the last hour.")
              : h("ul", { class: "list" }, list.map((task) => h("li", { key: task.task_id }, h("a", { href: `#/task/${task.task_id}` }, `${task.queue} ${shortId(task.task_id)}`), " ", remark(task)))))))),
      shell("taskctl top", taskctl("queue", "list"), curl("/v1/queues")),
    ];
  }
}

export class Queue extends View {
  constructor(params, name) {
    super();
    this.name = name;
    this.title = `Queue ${name}`;
    this.queue = new Source(async () => { const data = await get(`/v1/queues/${encodeURIComponent(name)}`); count([data]); return data; }, 1000);
    this.tasks = new Source(() => get(`/v1/tasks${query({ queue: name, limit: 20 })}`), 1000);
    this.workers = new Source(() => get("/v1/workers"), 3000);
    this.sources = [this.queue, this.tasks, this.workers];
    this.clock = setInterval(() => { dirty(); this.queue.refresh(); }, STEP_MS); // a pause is no event
    this.flaw = null;
    this.start();
  }
  async pause(one) {
    const why = one.paused ? "" : await ask(`Pause ${this.name}?`, "Nothing of it is given to workers until it goes on. What they hold goes on, and tasks may be submitted.", "Pause it", "Why, for those who wonder");
    if (why === null) return;
    const path = `/v1/queues/${encodeURIComponent(this.name)}/`;
    try {
      await (one.paused ? post(`${path}resume`) : post(`${path}pause`, why ? { why } : {}));
      say(one.paused ? "It goes on." : "It is paused.", true);
      this.flaw = null;
    } catch (problem) {
      this.flaw = problem.message;
    }
    this.queue.refresh(true);
  }
  settings(one) {
    const usual = { weight_of: "key", search: true, ttl_never: false };
    const list = Object.entries(one.settings).filter(([name, value]) => value !== null && value !== usual[name]);
    return list.length > 0 && h("section", {}, h("h2", {}, "Settings"), h("dl", { class: "pairs" }, list.map(([name, value]) => h("div", { key: name }, h("dt", {}, word(name.replace(/_ms$/, ""))),
      h("dd", {}, typeof value === "boolean" ? (value ? "yes" : "no") : /_ms$/.test(name) ? duration(value) : /bytes$/.test(name) ? bytes(value) : typeof value === "number" ? number(value) : value)))));
  }
  event(event) { if (!event.queue || event.queue === this.name) super.event(event); }
  chart(title, values, unit) {
    return h("figure", { class: "chart" }, h("figcaption", {}, title, h("strong", {}, ` ${rateText(values.at(-1))}${unit}`)), spark(values, `${title}, at most ${Math.max(...values).toFixed(1)}`, 300, 60));
  }
  render() {
    const workers = (this.workers.data?.items ?? []).filter((one) => one.queues.includes(this.name) && !one.ended_at);
    return [
      h("div", { class: "head" }, h("h1", {}, this.name), h("span", { class: "push" }),
        may("operator") && this.queue.data && h("button", { key: "pause", class: this.queue.data.paused ? "main" : null, onclick: () => this.pause(this.queue.data) }, this.queue.data.paused ? "Resume" : "Pause"),
        h("a", { class: "button", href: `#/tasks${query({ queue: this.name })}` }, "All its tasks")),
      this.flaw && h("p", { class: "flaw", role: "alert" }, this.flaw),
      shown(this.queue, (one) => [
        one.paused && h("p", { class: "banner", role: "status" }, h("span", {}, "Paused ", ago(one.paused.at), one.paused.why ? `: ${one.paused.why}` : ` by ${one.paused.by}`)),
        h("div", { class: "tiles" },
          tile("ready", number(one.ready), `#/tasks${query({ queue: this.name, status: "queued" })}`), tile("later", number(one.scheduled), `#/tasks${query({ queue: this.name, status: "queued" })}`),
          tile("blocked", number(one.blocked), `#/tasks${query({ queue: this.name, status: "queued" })}`), tile("working", number(one.working), `#/tasks${query({ queue: this.name, status: "working" })}`),
          tile("ask for input", number(one.input_required), "#/questions", null, one.input_required ? "warn" : ""), tile("oldest waits", one.ready ? duration(one.oldest_ready_ms) : "–", `#/tasks${query({ queue: this.name, status: "queued" })}`)),
        h("div", { class: "charts" }, this.chart("In, last 5 min", rates(this.name, "submitted", 60), "/s"), this.chart("Done", rates(this.name, "completed", 60), "/s"), this.chart("Failed", rates(this.name, "failed", 60), "/s"), this.chart("Waiting", depths(this.name), "")),
        h("p", { class: "faint" }, `Since its first task: ${number(one.submitted)} submitted, ${number(one.completed)} completed, ${number(one.failed)} failed, ${plural(one.attempts_failed, "attempt")} failed.`),
        this.settings(one),
      ]),
      !this.workers.problem && h("section", {}, h("h2", {}, `Workers (${workers.length})`), workers.length === 0 ? h("p", { class: "faint" }, "No worker serves it now.") : workerTable(workers)),
      h("section", {}, h("h2", {}, "Its newest tasks"), shown(this.tasks, ({ items }) => items.length === 0 ? h("p", { class: "faint" }, "It has none.")
        : h("ul", { class: "list" }, items.map((task) => h("li", { key: task.task_id }, badge(task.status, task.dead), " ", h("a", { class: "mono", href: `#/task/${task.task_id}` }, shortId(task.task_id)), " ", h("span", { class: "faint" }, ago(task.created_at)), " ", remark(task)))))),
      shell(taskctl("queue", "show", this.name), taskctl("queue", this.queue.data?.paused ? "resume" : "pause", this.name), taskctl("list", "--queue", this.name), curl(`/v1/queues/${encodeURIComponent(this.name)}`)),
    ];
  }
}

const workerTable = (items) => h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Workers" }, h("table", {},
  h("thead", {}, h("tr", {}, ["Worker", "State", "Queues", "Runs", "Done", "Failed", "Lost", "Since", "Heard", "Host"].map((name) => h("th", { scope: "col" }, name)))),
  h("tbody", {}, items.map((one) => h("tr", { key: one.worker_id }, h("td", {}, one.name || one.worker_id.slice(0, 8)), h("td", {}, h("span", { class: `state ${one.state}` }, one.state)),
    h("td", {}, one.queues.map((queue) => h("a", { class: "chip", href: `#/queue/${encodeURIComponent(queue)}` }, queue))), h("td", {}, number(one.running)),
    h("td", {}, number(one.completed)), h("td", { class: one.failed ? "bad" : "" }, number(one.failed)), h("td", {}, number(one.lost)), h("td", {}, time(one.started_at)), h("td", {}, ago(one.heard_at)), h("td", {}, `${one.host || "–"}${one.pid ? ` ${one.pid}` : ""}`))))));

export class Workers extends View {
  title = "Workers";
  constructor() {
    super();
    this.workers = new Source(() => get("/v1/workers"), 1000);
    this.sources = [this.workers];
    this.clock = setInterval(() => { dirty(); this.workers.refresh(); }, STEP_MS); // they come and go without events
    this.start();
  }
  event(event) { if (["claimed", "completed", "failed", "gap", "back"].includes(event.kind)) super.event(event); }
  render() {
    return [h("div", { class: "head" }, h("h1", {}, "Workers"), h("span", { class: "faint" }, this.workers.data ? plural(this.workers.data.items.length, "worker") : "")),
      shown(this.workers, ({ items }) => items.length === 0 ? empty("No worker is here.", "Start one: taskctl work QUEUE -- PROGRAM") : workerTable(items)),
      shell(taskctl("worker", "list"), curl("/v1/workers"))];
  }
}

export class Questions extends View {
  title = "Questions";
  constructor() {
    super();
    this.inbox = new Source(() => get("/v1/inbox"), 1000);
    this.sources = [this.inbox];
    this.start();
  }
  event(event) { if (["asked", "answered", "cancelled", "completed", "failed", "expired", "lease_lost", "gap", "back"].includes(event.kind)) super.event(event); }
  render() {
    const count = this.inbox.data?.items.length;
    if (count != null) say(`${plural(count, "question")}`);
    return [h("div", { class: "head" }, h("h1", {}, "Questions"), h("span", { class: "faint" }, count ? plural(count, "question") : "")),
      shown(this.inbox, (data) => data.items.length === 0 ? empty("Nobody waits for an answer.", "A question of a worker appears here by itself.") : questionList(data, () => { say("Answered.", true); this.inbox.refresh(true); })),
      shell(taskctl("inbox"), taskctl("answer", "TASK", "KEY", "ANSWER"), curl("/v1/inbox"))];
  }
}

const EVENTS_SHOWN = 300;
export class Events extends View {
  title = "Events";
  sources = [];
  constructor(params) {
    super();
    this.params = params;
    this.text = params.get("has") ?? "";
    this.paused = null;
  }
  event() {}
  key(event) {
    if (event.key !== "p") return false;
    this.pause();
    return true;
  }
  pause() {
    this.paused = this.paused ? null : [...stream.recent];
    dirty();
  }
  render() {
    const words = this.text.toLowerCase().split(/\s+/).filter(Boolean);
    const all = (this.paused ?? stream.recent).filter((event) => { const text = `${event.kind} ${event.queue} ${event.status} ${event.task_id} ${event.worker ?? ""} ${event.message ?? ""} ${event.actor ?? ""}`.toLowerCase(); return words.every((one) => text.includes(one)); });
    const list = all.slice(-EVENTS_SHOWN).reverse();
    return [
      h("div", { class: "head" }, h("h1", {}, "Events"), h("span", { class: "faint" }, stream.cursor ? `cursor ${stream.cursor}` : "", stream.gaps ? ` · ${plural(stream.gaps, "gap")}` : ""), h("span", { class: "push" }),
        h("button", { onclick: () => this.pause(), "aria-pressed": String(Boolean(this.paused)) }, this.paused ? "Go on" : "Pause")),
      h("div", { class: "filters row" }, h("input", { id: "filter", type: "search", "aria-label": "Filter", placeholder: "words: completed render", value: this.text,
        oninput: (event) => { this.text = event.target.value; history.replaceState(null, "", `#/events${query({ has: this.text })}`); dirty(); } })),
      list.length === 0 ? empty(stream.state === "live" ? "Nothing has happened since the page was opened." : "The stream of events is not there yet.", "Events appear by themselves. Earlier ones: taskctl watch --since 1h")
        : h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Events" }, h("table", {}, h("thead", {}, h("tr", {}, ["Time", "Event", "Queue", "Task", "Status", "Try", "By", "Message"].map((name) => h("th", { scope: "col" }, name)))),
          h("tbody", {}, list.map((event) => h("tr", { key: event.seq ?? event.cursor }, h("td", { class: "mono" }, timeText(event.at, true).slice(11)), h("td", {}, word(event.kind)), h("td", {}, event.queue), h("td", {}, event.task_id && h("a", { class: "mono", href: `#/task/${event.task_id}` }, shortId(event.task_id))), h("td", {}, event.status && badge(event.status)), h("td", {}, event.attempt || ""), h("td", {}, event.worker ?? event.actor ?? ""), h("td", { class: "wide" }, event.message ?? "")))))),
      shell(taskctl("watch", ...(stream.cursor ? ["--since", stream.cursor] : [])), curl(`/v1/events${query({ cursor: stream.cursor })}`, "-N")),
    ];
  }
}

// The gateway's own numbers, of all namespaces together.
async function readOwn() {
  const text = new TextDecoder().decode((await bytesOf("/metrics")).bytes);
  const out = { connections: 0, streams: 0, waits: 0, memory_bytes: 0 };
  for (const [, name, value] of text.matchAll(/^taskmq_gateway_(connections|streams|waits|memory_bytes)(?:\{[^}]*\})? (\d+)$/gm)) out[name] += Number(value);
  return out;
}

export class System extends View {
  title = "System";
  constructor() {
    super();
    this.stats = new Source(() => get("/v1/stats"), 2000);
    this.ready = new Source(async () => (await fetch("/readyz", { cache: "no-store" })).json(), 2000);
    this.own = may("operator") ? new Source(readOwn, 2000) : null;
    this.sources = [this.stats, this.ready, this.own].filter(Boolean);
    this.filter = "";
    this.start();
  }
  render() {
    return [h("div", { class: "head" }, h("h1", {}, "System")),
      h("dl", { class: "pairs" }, [
        ["You are", `${session.principal} (${session.roles.join(", ")})`], ["Namespaces", session.namespaces.join(", ")], ["Known by", session.by],
        ["Broker", this.ready.data ? this.ready.data.broker : "–"], ["Events", `${stream.state}, ${number(stream.count)} seen, ${plural(stream.gaps, "gap")}`], ["Cursor", stream.cursor || "–"],
        ["Generation", stream.cursor.split("-")[0] || "–"],
        ...(this.own?.data ? [["Connections", number(this.own.data.connections)], ["Streams", number(this.own.data.streams)], ["Long polls", plural(this.own.data.waits, "task")], ["Bodies held", bytes(this.own.data.memory_bytes)]] : []),
        ["Gateway", h("span", {}, h("a", { href: "/openapi.json" }, "openapi.json"), " · ", h("a", { href: "/metrics" }, "metrics"))],
      ].map(([name, value]) => h("div", { key: name }, h("dt", {}, name), h("dd", {}, value)))),
      h("section", {}, h("h2", {}, "Counters of the broker"),
        h("div", { class: "filters row" }, h("input", { id: "filter", type: "search", "aria-label": "Filter counters", placeholder: "commit", value: this.filter, oninput: (event) => { this.filter = event.target.value; dirty(); } })),
        shown(this.stats, ({ counters }) => h("div", { class: "counters" }, Object.entries(counters).filter(([name]) => name.includes(this.filter.trim())).map(([name, value]) => h("div", { key: name, class: value ? "" : "zero" }, h("span", {}, word(name)), h("strong", {}, /_bytes$/.test(name) ? bytes(value) : /_ms$/.test(name) ? duration(value) : number(value))))))),
      shell(taskctl("stats"), taskctl("doctor"), curl("/v1/stats"), curl("/metrics"))];
  }
}
