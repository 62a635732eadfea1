// This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
// If a copy of the MPL was not distributed with this file, You can obtain one at
// https://mozilla.org/MPL/2.0/.

// The frame: who is there, where to go, what the address says, the keyboard.

import { dirty, h, paintBy, patch, painted, say } from "./dom.js";
import { chooseNs, findSession, get, logIn, logOut, mayOverview, session, stream } from "./net.js";
import { clock, dialog, duration, showDialog, toggleClock } from "./show.js";
import { Task } from "./task.js";
import { Tasks } from "./tasks.js";
import { Tools } from "./tools.js";
import { Events, Overview, Questions, Queue, System, Workers } from "./views.js";

const VIEWS = { overview: Overview, tasks: Tasks, task: Task, queue: Queue, workers: Workers, questions: Questions, events: Events, tools: Tools, system: System };
const NAV = [["overview", "Overview", true], ["tasks", "Tasks"], ["workers", "Workers", true], ["questions", "Questions", true], ["events", "Events"], ["tools", "Tools"], ["system", "System", true]];
const KEYS = [["/", "search, or filter"], ["j k", "next and previous row"], ["Enter", "open the row"], ["x", "mark the row"], ["g o", "overview"], ["g t", "tasks"], ["g w", "workers"], ["g q", "questions"], ["g e", "events"], ["p", "pause the events"], ["?", "this help"], ["Esc", "close"]];
const GOES = { o: "overview", t: "tasks", w: "workers", q: "questions", e: "events", s: "system" };

const state = { view: null, name: "", at: null, help: false, flaw: null, busy: false, search: "", token: "" };

// The address.

function place() {
  const [path, query = ""] = location.hash.replace(/^#\/?/, "").split("?");
  const [name, ...rest] = path.split("/");
  return { name: VIEWS[name] ? name : mayOverview() ? "overview" : "tasks", id: rest.map(decodeURIComponent).join("/"), params: new URLSearchParams(query), text: location.hash };
}

function route() {
  if (!session.principal || location.hash.startsWith("#ticket=")) return;
  const to = place();
  state.view?.close();
  if (state.view) stream.listeners.delete(state.listener);
  state.at = to.text;
  state.name = to.name;
  state.view = new VIEWS[to.name](to.params, to.id);
  state.listener = (event) => { state.view.event(event); dirty(); };
  stream.listeners.add(state.listener);
  document.title = `${state.view.title} · taskmq`;
  scrollTo(0, 0);
  dirty();
}

function enter() {
  stream.open();
  route();
}

// The theme: the system's, or chosen.

const THEME_KEY = "taskmq.theme";
const THEMES = ["system", "light", "dark"];
const theme = () => localStorage.getItem(THEME_KEY) ?? "system";
function setTheme(name) {
  if (name === "system") localStorage.removeItem(THEME_KEY); else localStorage.setItem(THEME_KEY, name);
  document.documentElement.dataset.theme = name;
  dirty();
}

// Pieces of the frame.

async function search(text) {
  const word = text.trim();
  if (!word) return;
  if (/[:\s]/.test(word)) { location.hash = "#/tasks"; setTimeout(() => state.view.filterBy?.(word), 0); return; }
  try {
    const id = /^[0-9a-f-]{36}$/i.test(word) ? word.toLowerCase() : (await get(`/v1/resolve/${encodeURIComponent(word.replace(/^…/, ""))}`)).task_id;
    state.search = "";
    location.hash = `#/task/${id}`;
  } catch (problem) {
    // No task ends so: perhaps it is a queue.
    const queues = mayOverview() ? (await get("/v1/queues").catch(() => ({ items: [] }))).items : [];
    if (queues.some((one) => one.queue === word)) { state.search = ""; location.hash = `#/queue/${encodeURIComponent(word)}`; }
    else say(`Nothing found for “${word}”: ${problem.message}`, true), state.found = `Nothing found for “${word}”.`;
  }
  dirty();
}

const LIGHTS = { live: ["live", "Live"], connecting: ["wait", "Connecting"], away: ["away", "The broker is away"], lost: ["away", "The gateway is away"], closed: ["wait", "Not connected"] };
function light() {
  const [tone, text] = LIGHTS[stream.state];
  return h("span", { class: `light ${tone}`, role: "status", title: stream.since ? `for ${duration(Date.now() - stream.since)}` : "" }, h("i", { "aria-hidden": "true" }), text);
}

function header() {
  return h("header", { class: "top" },
    h("a", { class: "skip", href: "#main", onclick: (event) => { event.preventDefault(); document.getElementById("main").focus(); } }, "To the content"),
    h("a", { class: "brand", href: mayOverview() ? "#/overview" : "#/tasks" }, h("img", { src: "/ui/icon.svg", alt: "", width: 24, height: 24 }), "taskmq"),
    h("nav", { "aria-label": "Views" }, NAV.filter(([, , all]) => !all || mayOverview()).map(([name, title]) =>
      h("a", { key: name, href: `#/${name}`, "aria-current": state.name === name || (name === "tasks" && state.name === "task") ? "page" : null }, title))),
    h("div", { class: "tools" },
      session.namespaces.length > 1 && h("select", { "aria-label": "Namespace", onchange() { chooseNs(this.value); route(); } }, session.namespaces.map((ns) => h("option", { selected: ns === session.ns }, ns))),
      h("form", { class: "find", role: "search", onsubmit: (event) => { event.preventDefault(); state.found = null; search(state.search); } },
        h("input", { id: "search", type: "search", placeholder: "id, queue or filter", "aria-label": "Search an id, a queue, or by a filter", value: state.search, oninput() { state.search = this.value; } })),
      light(),
      h("button", { class: "plain", title: "Times in this zone, or UTC", "aria-label": `Times: ${clock.utc ? "UTC" : "local"}`, onclick: toggleClock }, clock.utc ? "UTC" : "local"),
      h("button", { class: "plain", "aria-label": `Theme: ${theme()}`, title: `Theme: ${theme()}`, onclick: () => setTheme(THEMES[(THEMES.indexOf(theme()) + 1) % 3]) }, { system: "◑", light: "☀", dark: "☾" }[theme()]),
      h("button", { class: "plain", "aria-label": "Keys", title: "Keys: ?", onclick: () => { state.help = true; dirty(); } }, "?"),
      session.by === "cookie" || session.by === "token" ? h("button", { class: "plain", title: `Logged in as ${session.principal}`, onclick: () => logOut() }, "Log out") : null));
}

const banner = () => stream.state === "away" ? h("p", { class: "banner", role: "alert" }, `The broker is away for ${duration(Date.now() - stream.since)}. Nothing is lost: what is shown is what was, and it goes on by itself.`)
  : stream.state === "lost" && stream.since && Date.now() - stream.since > 1500 ? h("p", { class: "banner", role: "alert" }, "The gateway cannot be reached. The page goes on by itself when it is back.")
    : stream.gaps > 0 && state.gaps !== stream.gaps ? h("p", { class: "banner" }, "Some events were too old to be told again. What is shown was read anew.", h("button", { onclick: () => { state.gaps = stream.gaps; dirty(); } }, "Good")) : null;

const help = () => state.help && h("div", { class: "veil", key: "help", onclick: (event) => { if (event.target === event.currentTarget) { state.help = false; dirty(); } } },
  h("div", { class: "dialog", role: "dialog", "aria-modal": "true", "aria-label": "Keys" }, h("h2", {}, "Keys"),
    h("dl", { class: "keys" }, KEYS.map(([key, text]) => h("div", {}, h("dt", {}, key.split(" ").map((one) => h("kbd", {}, one))), h("dd", {}, text)))),
    h("div", { class: "row end" }, h("button", { "data-first": true, onclick: () => { state.help = false; dirty(); } }, "Close"))));

async function submitToken(event) {
  event?.preventDefault();
  state.busy = true;
  state.flaw = null;
  dirty();
  try {
    await logIn(state.token.trim());
    state.token = "";
    enter();
  } catch (problem) {
    state.flaw = problem.message;
  }
  state.busy = false;
  dirty();
}

const login = () => h("main", { id: "main", class: "login", key: "login" }, h("form", { class: "card", onsubmit: submitToken },
  h("h1", {}, h("img", { src: "/ui/icon.svg", alt: "", width: 36, height: 36 }), "taskmq"),
  h("label", { for: "token" }, "Token"),
  h("input", { id: "token", type: "password", required: true, autocomplete: "current-password", placeholder: "tmq_…", "data-first": true, value: state.token, oninput() { state.token = this.value; } }),
  state.flaw && h("p", { class: "flaw", role: "alert" }, state.flaw),
  h("button", { class: "main", disabled: state.busy }, "Log in"),
  h("p", { class: "faint" }, "The gateway's first token is in ", h("code", {}, ".taskmq/gateway.token"), ". Or let ", h("code", {}, "taskmq-gateway link"), " print an address that needs none.")));

function renderView() {
  try {
    return state.view?.render();
  } catch (error) {
    console.error(error);
    return h("p", { class: "flaw", role: "alert" }, `This view cannot be shown: ${error.message}`);
  }
}

function paint() {
  const app = document.getElementById("app");
  const kids = !session.known ? [h("p", { class: "faint login" }, state.flaw ?? "…")]
    : !session.principal ? [login()]
      : [header(), h("main", { id: "main", tabindex: "-1", key: "main" }, banner(), state.found && h("p", { class: "flaw", role: "alert" }, state.found),
        h("div", { class: "view", key: state.at ?? "" }, renderView()))];
  patch(app, [...kids, help(), showDialog()].filter(Boolean));
  const modal = Boolean(state.help || dialog.now);
  if (modal !== state.modal || (!session.principal && session.known && !state.asked)) {
    state.modal = modal;
    state.asked = !session.principal;
    [...app.querySelectorAll("[data-first]")].at(-1)?.focus();
  }
}

// The keyboard: single letters, where nobody is typing.

let before = "";
function onKey(event) {
  if (event.ctrlKey || event.metaKey || event.altKey || !session.principal || dialog.now) return;
  const typing = event.target.matches?.("input:not([type=checkbox]), textarea, select");
  const first = before;
  before = "";
  if (event.key === "Escape") {
    if (state.help) { state.help = false; dirty(); } else if (typing) event.target.blur();
    return;
  }
  if (typing || state.help) return;
  if (event.key === "/") (document.getElementById("filter") ?? document.getElementById("search")).focus();
  else if (event.key === "?") { state.help = true; dirty(); }
  else if (first === "g" && GOES[event.key]) location.hash = `#/${GOES[event.key]}`;
  else if (event.key === "g") { before = "g"; return; }
  else if (!state.view?.key(event)) return;
  event.preventDefault();
}

async function begin() {
  setTheme(theme());
  paintBy(paint);
  document.addEventListener("keydown", onKey);
  addEventListener("hashchange", () => { state.found = null; route(); });
  const ticket = /^#ticket=(tmqt_[\w-]+)$/.exec(location.hash)?.[1];
  if (ticket) {
    history.replaceState(null, "", location.pathname); // it is good once; the address is kept without it
    state.token = ticket;
    await submitToken();
    state.token = "";
    session.known = true;
    if (session.principal) return;
    state.flaw = "That link was used, or is older than a minute.";
  }
  await findSession().catch((problem) => { state.flaw = problem.message; });
  if (session.principal) enter();
  dirty();
}

globalThis.taskmqPage = { painted, stream };
begin();
