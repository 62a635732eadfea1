// This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
// If a copy of the MPL was not distributed with this file, You can obtain one at
// https://mozilla.org/MPL/2.0/.

// Tasks: a list by filters that stand in the address, a selection, and actions on it or on all that
// match.

import { dirty, h, say } from "./dom.js";
import { get, mayChange, mayOverview, may, post, query, remove, Source, stream } from "./net.js";
import { ask, badge, curl, duration, empty, number, plural, progress, shell, shortId, shown, STATUSES, taskctl, time, word } from "./show.js";

const PAGE = 200;
const BATCH = 200; // of a whole filter, at a time
const COLUMNS_KEY = "taskmq.columns";
const FILTERS = ["queue", "status", "label", "session", "since"];

const COLUMNS = {
  queue: ["Queue", (t) => h("a", { href: `#/queue/${encodeURIComponent(t.queue)}` }, t.queue)],
  method: ["Method", (t) => t.method ?? "–"],
  created: ["Created", (t) => time(t.created_at)],
  took: ["Took", (t) => took(t)],
  try: ["Try", (t) => `${t.attempt}/${t.max_attempts}`],
  worker: ["Worker", (t) => t.worker ?? "–"],
  progress: ["Progress", (t) => t.status === "working" ? progress(t.progress) : ""],
  remark: ["Remark", (t) => remark(t)],
  session: ["Session", (t) => t.session ?? "–"],
  labels: ["Labels", (t) => Object.entries(t.labels).map(([key, value]) => h("span", { class: "chip" }, `${key}:${value}`))],
  priority: ["Priority", (t) => t.priority],
  owner: ["Owner", (t) => t.owner],
};
const USUAL = ["queue", "created", "took", "try", "worker", "progress", "remark"];

export const took = (t) => !t.started_at ? "–" : duration((t.finished_at ? new Date(t.finished_at) : Date.now()) - new Date(t.started_at));
export const remark = (t) => t.error ? h("span", { class: "bad" }, t.error.message || `error ${t.error.code}`) : t.cancel_message || t.status_message || (t.phase && t.status === "queued" ? word(t.phase) : "");

const SPANS = { m: 60e3, h: 3600e3, d: 86400e3, w: 604800e3 };
export function sinceTime(text) {
  const match = /^(\d+)\s*([mhdw])$/.exec(text ?? "");
  if (match) return new Date(Date.now() - match[1] * SPANS[match[2]]).toISOString();
  const date = new Date(text);
  return text && !Number.isNaN(+date) ? date.toISOString() : undefined;
}

// "queue:render status:working,failed label:film=dawn since:1h" and back.
export function parseFilter(text) {
  const out = {};
  for (const part of text.trim().split(/\s+/).filter(Boolean)) {
    const colon = part.indexOf(":");
    const name = part.slice(0, colon);
    if (colon < 1 || !FILTERS.includes(name)) return { flaw: `“${part}” is none of ${FILTERS.map((one) => `${one}:…`).join(", ")}` };
    if (colon === part.length - 1) return { flaw: `“${name}:” lacks its value` };
    const values = name === "label" ? [part.slice(colon + 1).replace("=", ":")] : part.slice(colon + 1).split(",");
    const wrong = name === "status" && values.find((one) => !STATUSES.includes(one));
    if (wrong) return { flaw: `There is no status “${wrong}”: ${STATUSES.join(", ")}` };
    if (name === "since" && !sinceTime(values[0])) return { flaw: "since: is 90m, 2h, 1d or a date" };
    out[name] = [...(out[name] ?? []), ...values];
  }
  return { filter: out };
}
export const filterText = (params) => FILTERS.flatMap((name) => {
  const values = params.getAll(name);
  if (values.length === 0) return [];
  return name === "label" ? values.map((one) => `label:${one.replace(":", "=")}`) : [`${name}:${values.join(",")}`];
}).join(" ");

export const toQuery = (params) => ({
  queue: params.getAll("queue"), status: params.getAll("status"), label: params.getAll("label"),
  session: params.getAll("session"), created_since: sinceTime(params.get("since")),
});

const matches = (params, event) => ["queue", "session"].every((name) => {
  const wanted = params.getAll(name);
  return wanted.length === 0 || wanted.includes(event[name]);
}) && params.getAll("label").every((one) => {
  const colon = one.indexOf(":");
  return event.labels?.[one.slice(0, colon)] === one.slice(colon + 1);
});

const shellWords = (params) => FILTERS.flatMap((name) => params.getAll(name).flatMap((value) =>
  [`--${name}`, name === "label" ? value.replace(":", "=") : value]));

const ACTIONS = {
  cancel: { title: "Cancel", of: ["queued", "working", "input_required"], run: (id) => post(`/v1/tasks/${id}/cancel`, { message: "by the page" }) },
  retry: { title: "Retry", of: ["failed", "cancelled"], run: (id) => post(`/v1/tasks/${id}/retry`) },
  purge: { title: "Purge", of: ["completed", "failed", "cancelled"], run: (id) => remove(`/v1/tasks/${id}`), operator: true },
};

export class Tasks {
  constructor(params) {
    this.params = params;
    this.cursor = params.get("cursor") ?? "";
    this.selected = new Set();
    this.fresh = new Set(); // new tasks that wait behind a button while the reader is down the list
    this.text = filterText(params);
    this.flaw = null;
    this.busy = null;
    this.columns = (params.get("columns") ?? localStorage.getItem(COLUMNS_KEY) ?? USUAL.join(",")).split(",").filter((one) => COLUMNS[one]);
    this.list = new Source(() => get(`/v1/tasks${query({ ...toQuery(params), limit: PAGE, cursor: this.cursor })}`));
    this.count = new Source(() => get(`/v1/tasks:count${query(toQuery(params))}`), 2000);
    this.queues = mayOverview() ? new Source(() => get("/v1/queues"), 10000) : null;
    for (const source of this.sources()) source.refresh();
  }
  title = "Tasks";
  sources() { return [this.list, this.count, this.queues].filter(Boolean); }
  close() { for (const source of this.sources()) source.stop(); }

  event(event) {
    if (event.kind === "gap" || event.kind === "back") return this.reload();
    if (!event.task_id) return;
    const there = this.list.data?.items.find((task) => task.task_id === event.task_id);
    if (there && event.kind === "notice") { if (event.progress) there.progress = event.progress; return; }
    if (there) { there.status = event.status ?? there.status; there.attempt = event.attempt || there.attempt; }
    if (!there && !matches(this.params, event)) return;
    this.count.refresh();
    const reading = scrollY > 200 || this.selected.size > 0 || this.cursor;
    if (!there && reading) { if (event.kind === "submitted") this.fresh.add(event.task_id); }
    else if (there && reading && this.params.getAll("status").length === 0) this.renew(event.task_id);
    else this.list.refresh();
  }

  // One row, while the rest stays where it is.
  renew(id) {
    if ((this.renewing ??= new Set()).has(id)) return;
    this.renewing.add(id);
    setTimeout(async () => {
      this.renewing.delete(id);
      const task = await get(`/v1/tasks/${id}`).catch(() => null);
      const items = this.list.data?.items;
      const at = items?.findIndex((one) => one.task_id === id) ?? -1;
      if (task && at >= 0) items[at] = task;
      dirty();
    }, 500);
  }

  reload() {
    this.fresh.clear();
    this.list.refresh(true);
    this.count.refresh(true);
  }

  go(change) {
    const params = new URLSearchParams(this.params);
    params.delete("cursor");
    for (const [name, values] of Object.entries(change)) {
      params.delete(name);
      for (const value of [values].flat()) if (value) params.append(name, value);
    }
    location.hash = `#/tasks${params.size ? `?${params}` : ""}`;
  }

  filterBy(text) {
    const { filter, flaw } = parseFilter(text);
    this.flaw = flaw ?? null;
    if (flaw) return dirty();
    this.go(Object.fromEntries(FILTERS.map((name) => [name, filter[name] ?? []])));
  }

  async act(name, ids, whole) {
    const action = ACTIONS[name];
    let count = ids.length;
    const extra = whole ? { status: this.params.getAll("status").length ? this.params.getAll("status").filter((one) => action.of.includes(one)) : action.of } : {};
    if (whole && extra.status.length === 0) return say(`Nothing that matches can be ${name}ed.`, true);
    // A list whose answer is not cut by the clock: created_until keeps what comes meanwhile out of it.
    const until = new Date().toISOString();
    const filter = { ...toQuery(this.params), ...extra, created_until: until };
    if (whole) count = (await get(`/v1/tasks:count${query(filter)}`)).count;
    if (count === 0) return say("Nothing matches any more.", true);
    const sure = await ask(`${action.title} ${plural(count, "task")}?`,
      whole ? `All that match “${filterText(this.params) || "everything"}” and can be: ${extra.status.map(word).join(", ")}.` : "Those that are marked.", `${action.title} ${number(count)}`);
    if (!sure) return;
    this.busy = { name, done: 0, failed: 0, count, stop: false };
    const each = async (id) => {
      try { await action.run(id); } catch (problem) { this.busy.failed++; this.busy.why = problem.message; }
      this.busy.done++;
      dirty();
    };
    const some = async (list) => { for (let i = 0; i < list.length && !this.busy.stop; i += 8) await Promise.all(list.slice(i, i + 8).map(each)); };
    try {
      if (!whole) await some(ids);
      for (let cursor = ""; whole && !this.busy.stop;) {
        const page = await get(`/v1/tasks${query({ ...filter, limit: BATCH, cursor })}`);
        await some(page.items.map((task) => task.task_id));
        if (!page.next) break;
        cursor = page.next;
      }
    } catch (problem) {
      this.busy.why = problem.message;
    }
    const { done, failed, why } = this.busy;
    say(`${action.title}: ${plural(done - failed, "task")} done${failed ? `, ${failed} not: ${why}` : ""}.`, true);
    this.outcome = failed || why ? `${plural(failed, "task")} could not be: ${why}` : null;
    this.busy = null;
    this.selected.clear();
    this.reload();
    dirty();
  }

  key(event) {
    const rows = [...document.querySelectorAll("tr[data-id]")];
    if (!["j", "k", "x"].includes(event.key) || rows.length === 0) return false;
    const at = rows.indexOf(document.activeElement.closest?.("tr[data-id]"));
    if (event.key === "x") { if (at >= 0) this.mark(rows[at].dataset.id); return true; }
    const next = rows[Math.max(0, Math.min(rows.length - 1, at < 0 ? 0 : at + (event.key === "j" ? 1 : -1)))];
    next.focus();
    next.scrollIntoView({ block: "nearest" });
    return true;
  }

  mark(id) {
    if (!this.selected.delete(id)) this.selected.add(id);
    dirty();
  }

  bar() {
    const chips = STATUSES.map((status) => {
      const on = this.params.getAll("status").includes(status);
      return h("button", {
        type: "button", class: "chip", "aria-pressed": String(on),
        onclick: () => this.go({ status: on ? this.params.getAll("status").filter((one) => one !== status) : [...this.params.getAll("status"), status] }),
      }, badge(status));
    });
    const queues = this.queues?.data?.items.map((one) => one.queue) ?? [];
    return h("form", { class: "filters", onsubmit: (event) => { event.preventDefault(); this.filterBy(this.text); } },
      h("div", { class: "row grow" },
        h("input", {
          id: "filter", type: "search", "aria-label": "Filter", placeholder: "queue:render status:failed label:film=dawn since:1h", value: this.text,
          list: "filters", autocomplete: "off", spellcheck: "false", "aria-invalid": String(Boolean(this.flaw)), oninput: (event) => { this.text = event.target.value; },
        }),
        h("datalist", { id: "filters" }, [...queues.map((one) => `queue:${one}`), ...STATUSES.map((one) => `status:${one}`), "since:1h", "since:1d"].map((value) => h("option", { value }))),
        h("button", {}, "Filter"),
        this.params.size > 0 && h("a", { class: "button", href: "#/tasks" }, "Clear")),
      h("div", { class: "chips" }, chips, h("details", { class: "menu" }, h("summary", {}, "Columns"), h("div", { class: "pop" },
        Object.entries(COLUMNS).map(([name, [title]]) => h("label", { class: "check" }, h("input", {
          type: "checkbox", checked: this.columns.includes(name), onchange: () => this.toggleColumn(name),
        }), title))))),
      this.flaw && h("p", { class: "flaw", role: "alert" }, this.flaw));
  }

  toggleColumn(name) {
    this.columns = Object.keys(COLUMNS).filter((one) => this.columns.includes(one) !== (one === name));
    localStorage.setItem(COLUMNS_KEY, this.columns.join(","));
    const params = new URLSearchParams(this.params);
    params.set("columns", this.columns.join(","));
    this.params = params;
    history.replaceState(null, "", `#/tasks?${params}`);
    dirty();
  }

  actions() {
    if (!mayChange()) return null;
    const ids = [...this.selected];
    const items = this.list.data?.items ?? [];
    if (this.busy)
      return h("div", { class: "row", role: "status" }, `${ACTIONS[this.busy.name].title}: ${number(this.busy.done)} of ${number(this.busy.count)}`,
        h("button", { type: "button", onclick: () => { this.busy.stop = true; } }, "Stop"));
    const filtered = ["queue", "status", "label", "session", "since"].some((name) => this.params.has(name));
    const wanted = this.params.getAll("status");
    return h("div", { class: "row" }, Object.entries(ACTIONS).filter(([, action]) => !action.operator || may("operator")).map(([name, action]) => {
      if (ids.length > 0) {
        const able = ids.filter((id) => action.of.includes(items.find((task) => task.task_id === id)?.status));
        return able.length > 0 && h("button", { type: "button", onclick: () => this.act(name, able, false) }, `${action.title} ${number(able.length)}`);
      }
      const fits = wanted.length === 0 ? name === "cancel" : wanted.some((one) => action.of.includes(one));
      return filtered && fits && h("button", { type: "button", onclick: () => this.act(name, [], true).catch((problem) => say(problem.message, true)) }, `${action.title} all that match…`);
    }));
  }

  table({ items, next }) {
    if (items.length === 0) return empty("No task matches.", this.params.size ? "Clear the filter, or wait: new ones appear by themselves." : "Submit one, and it appears here by itself.");
    const all = items.every((task) => this.selected.has(task.task_id));
    const row = (task) => h("tr", { key: task.task_id, "data-id": task.task_id, tabindex: "-1", class: this.selected.has(task.task_id) ? "marked" : null,
      onkeydown(event) { if (event.key === "Enter" && event.target === this) location.hash = `#/task/${task.task_id}`; } },
    mayChange() && h("td", { key: "mark", class: "narrow" }, h("input", { type: "checkbox", checked: this.selected.has(task.task_id), "aria-label": `Mark ${shortId(task.task_id)}`, onchange: () => this.mark(task.task_id) })),
    h("td", { key: "id" }, h("a", { href: `#/task/${task.task_id}`, class: "mono" }, shortId(task.task_id))),
    h("td", { key: "status" }, badge(task.status, task.dead)),
    this.columns.map((name) => h("td", { key: name, "data-title": COLUMNS[name][0], class: name === "remark" ? "wide" : null }, COLUMNS[name][1](task))));
    return [
      h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Tasks" }, h("table", { class: "cards" },
        h("thead", {}, h("tr", {},
          mayChange() && h("th", { key: "mark", class: "narrow" }, h("input", { type: "checkbox", "aria-label": "Mark all on this page", checked: all, indeterminate: !all && this.selected.size > 0,
            onchange: () => { if (all) this.selected.clear(); else for (const task of items) this.selected.add(task.task_id); dirty(); } })),
          h("th", { key: "id", scope: "col" }, "Task"), h("th", { key: "status", scope: "col" }, "Status"),
          this.columns.map((name) => h("th", { key: name, scope: "col" }, COLUMNS[name][0])))),
        h("tbody", {}, items.map(row)))),
      h("div", { class: "row" }, this.cursor && h("a", { class: "button", href: `#/tasks${query({ ...Object.fromEntries(FILTERS.map((name) => [name, this.params.getAll(name)])) })}` }, "Newest"),
        next && h("a", { class: "button", href: `#/tasks?${(() => { const params = new URLSearchParams(this.params); params.set("cursor", next); return params; })()}` }, "Older")),
    ];
  }

  render() {
    const words = shellWords(this.params);
    const count = this.count.data?.count;
    if (count != null) say(`${plural(count, "task")} match`);
    return [
      h("div", { class: "head" }, h("h1", {}, "Tasks"), h("span", { class: "faint" }, count == null ? "" : `${number(count)} match`),
        this.fresh.size > 0 && h("button", { class: "main", onclick: () => { scrollTo(0, 0); this.selected.clear(); this.cursor ? this.go({}) : this.reload(); } }, `${number(this.fresh.size)} new – show`),
        h("span", { class: "push" }), this.actions()),
      this.bar(),
      this.outcome && h("p", { class: "flaw", role: "alert" }, this.outcome),
      shown(this.list, (data) => this.table(data)),
      shell(taskctl("list", ...words), curl(`/v1/tasks${query(toQuery(this.params))}`), stream.state === "live" ? taskctl("watch", ...words.filter((_, i, all) => all[i - (i % 2)] !== "--since")) : taskctl("count", ...words)),
    ];
  }
}
