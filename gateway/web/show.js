// This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
// If a copy of the MPL was not distributed with this file, You can obtain one at
// https://mozilla.org/MPL/2.0/.

// Pieces that several views show: statuses, times, numbers, bytes, JSON, small charts.

import { dirty, h, say } from "./dom.js";
import { bytesOf, session, withNs } from "./net.js";

// A status is told by its word and its shape; the colour only helps.
const SHAPES = { queued: "○", working: "◐", input_required: "?", completed: "✓", failed: "✕", cancelled: "⊘" };
export const STATUSES = Object.keys(SHAPES);
export const word = (text) => (text ?? "").replaceAll("_", " ");
export const badge = (status, dead) =>
  h("span", { class: `badge ${status}` }, h("span", { "aria-hidden": "true" }, SHAPES[status] ?? "•"), word(status), dead && " · dead");

export const number = (value) => value == null ? "–" : Number(value).toLocaleString("en-US");
export const plural = (count, one) => `${number(count)} ${one}${count === 1 ? "" : "s"}`;

export function bytes(value) {
  if (value == null) return "–";
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let unit = 0;
  while (value >= 1024 && unit < units.length - 1) { value /= 1024; unit++; }
  return `${unit ? value.toFixed(value < 10 ? 1 : 0) : value} ${units[unit]}`;
}

export function duration(ms) {
  if (ms == null || Number.isNaN(ms)) return "–";
  if (ms < 0) return "0 s";
  if (ms < 1000) return `${Math.round(ms)} ms`;
  const s = ms / 1000;
  if (s < 10) return `${s.toFixed(1)} s`;
  if (s < 60) return `${Math.round(s)} s`;
  const pairs = [[86400, "d", 3600, "h"], [3600, "h", 60, "m"], [60, "m", 1, "s"]];
  const [big, bigName, small, smallName] = pairs.find(([seconds]) => s >= seconds);
  const rest = Math.floor((s % big) / small);
  return `${Math.floor(s / big)} ${bigName}${rest ? ` ${rest} ${smallName}` : ""}`;
}

const CLOCK_KEY = "taskmq.clock";
export const clock = { utc: localStorage.getItem(CLOCK_KEY) === "utc" };
export function toggleClock() {
  clock.utc = !clock.utc;
  localStorage.setItem(CLOCK_KEY, clock.utc ? "utc" : "local");
  dirty();
}

const pad = (value, digits = 2) => String(value).padStart(digits, "0");
export function timeText(iso, precise = false) {
  if (!iso) return "–";
  const date = new Date(iso);
  const part = (name) => clock.utc ? date[`getUTC${name}`]() : date[`get${name}`]();
  const day = `${part("FullYear")}-${pad(part("Month") + 1)}-${pad(part("Date"))}`;
  const time = `${pad(part("Hours"))}:${pad(part("Minutes"))}:${pad(part("Seconds"))}`;
  if (precise) return `${day} ${time}.${pad(date.getMilliseconds(), 3)}${clock.utc ? "Z" : ""}`;
  return Date.now() - date < 20 * 3600e3 && Date.now() >= date - 60e3 ? time : `${day} ${time.slice(0, 5)}`;
}
export const time = (iso) => iso ? h("time", { datetime: iso, title: iso }, timeText(iso)) : "–";
export const ago = (iso) => iso ? h("time", { datetime: iso, title: timeText(iso, true) }, `${duration(Date.now() - new Date(iso))} ago`) : "–";
export const shortId = (id) => `…${id.slice(-8)}`;

export async function copy(text, what = "Copied") {
  await navigator.clipboard.writeText(text).then(() => say(`${what}.`, true), () => say("The browser did not let us copy.", true));
}

// The same in a shell.
const quote = (text) => /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;
export const taskctl = (...words) => ["taskctl", ...(session.ns ? ["-n", session.ns] : []), ...words.map(String).map(quote)].join(" ");
export const curl = (path, ...options) =>
  `curl -H "Authorization: Bearer $TOKEN" ${options.map((one) => `${one} `).join("")}${quote(location.origin + withNs(path))}`;
export const shell = (...lines) => h("details", { class: "shell", key: "shell" },
  h("summary", {}, "The same in a shell"),
  lines.map((line) => h("div", { class: "line" }, h("code", { tabindex: "0" }, line),
    h("button", { class: "plain", type: "button", "aria-label": `Copy: ${line.slice(0, 40)}`, onclick: () => copy(line) }, "Copy"))));

// What a source shows while it has nothing, and what it says when it fails.
export function shown(source, view) {
  const flaw = source.problem && h("p", { class: "flaw", role: "alert" }, source.problem.message);
  if (source.data == null) return flaw || h("p", { class: "faint" }, "…");
  return [flaw, view(source.data)];
}

export const empty = (text, hint) => h("div", { class: "empty" }, h("p", {}, text), hint && h("p", { class: "faint" }, hint));

export function meter(done, total, label) {
  const share = total > 0 ? Math.min(1, done / total) : 0;
  return h("span", { class: "meter" },
    h("svg", { viewBox: "0 0 60 8", role: "img", "aria-label": `${done} of ${total}`, preserveAspectRatio: "none" },
      h("rect", { width: 60, height: 8, rx: 4, class: "track" }), h("rect", { width: Math.max(2, 60 * share), height: 8, rx: 4, class: "fill" })),
    h("span", {}, `${number(done)}/${number(total)}`, label ? ` ${label}` : ""));
}
export const progress = (p) => p?.total ? meter(p.done, p.total, p.message) : p ? [p.done ? `${number(p.done)} ` : "", p.message] : "";

export function spark(values, label, wide = 120, high = 28) {
  const most = Math.max(1e-9, ...values);
  const step = wide / Math.max(1, values.length - 1);
  const points = values.map((value, i) => `${(i * step).toFixed(1)},${(high - 2 - (value / most) * (high - 5)).toFixed(1)}`);
  return h("svg", { class: "spark", viewBox: `0 0 ${wide} ${high}`, role: "img", "aria-label": label, preserveAspectRatio: "none" },
    points.length > 1 && [h("polygon", { points: `0,${high} ${points.join(" ")} ${wide},${high}` }), h("polyline", { points: points.join(" ") })]);
}

// JSON as a tree. Long texts and lists are cut, and open by a click.
const LONG = 400;
const MANY = 100;
export function tree(value, name, depth = 0) {
  const label = name != null && h("span", { class: "key" }, `${name}: `);
  if (value === null || typeof value !== "object") {
    const text = typeof value === "string" ? JSON.stringify(value) : String(value);
    return h("div", { class: "leaf" }, label, h("span", { class: value === null ? "null" : typeof value },
      text.length > LONG ? `${text.slice(0, LONG)}… (${number(text.length)} characters)` : text));
  }
  const entries = Object.entries(value);
  const kind = Array.isArray(value) ? `[${entries.length}]` : `{${entries.length}}`;
  if (entries.length === 0) return h("div", { class: "leaf" }, label, Array.isArray(value) ? "[]" : "{}");
  return h("details", { class: "node", open: depth < 2 && entries.length <= MANY },
    h("summary", {}, label, h("span", { class: "faint" }, kind)),
    entries.slice(0, MANY).map(([key, one]) => tree(one, key, depth + 1)),
    entries.length > MANY && h("div", { class: "faint" }, `… ${number(entries.length - MANY)} more`));
}

// Foreign bytes by their type. Images are decoded by the browser; nothing else of them runs.
const TEXT_MAX = 200_000;
const BODY_MAX = 262_144; // of a payload or result that is shown; all of it is a download
const HEX_ROWS = 64;
export function hex(data) {
  const rows = [];
  for (let at = 0; at < Math.min(data.length, HEX_ROWS * 16); at += 16) {
    const row = [...data.slice(at, at + 16)];
    rows.push(`${pad(at.toString(16), 8)}  ${row.map((byte) => pad(byte.toString(16))).join(" ").padEnd(47)}  ${row.map((byte) => byte > 31 && byte < 127 ? String.fromCharCode(byte) : ".").join("")}`);
  }
  return h("pre", { tabindex: "0" }, rows.join("\n"), data.length > HEX_ROWS * 16 ? `\n… ${number(data.length - HEX_ROWS * 16)} bytes more` : "");
}

export async function readBody(path) {
  const { type, bytes: data, total } = await bytesOf(path, BODY_MAX);
  const out = { type: type.split(";")[0], data, total, text: null, json: undefined };
  try { out.text = new TextDecoder("utf-8", { fatal: true }).decode(data, { stream: data.length < total }); } catch { /* bytes */ }
  if (out.text?.includes("\0")) out.text = null;
  if (out.text !== null && data.length === total && /^\s*[[{]/.test(out.text) && out.text.length < TEXT_MAX)
    try { out.json = JSON.parse(out.text); } catch { /* a text */ }
  return out;
}

export function body(read, path, name) {
  const link = h("p", { class: "faint" }, `${read.type || "no type"}, ${bytes(read.total)} · `,
    h("a", { href: withNs(path), download: name }, "Download"), read.data.length < read.total && `. These are its first ${bytes(read.data.length)}.`);
  if (read.type.startsWith("image/") && read.type !== "image/svg+xml")
    return [link, h("img", { class: "media", src: withNs(path), alt: `The ${name} of the task` })];
  if (read.type.startsWith("audio/"))
    return [link, h("audio", { src: withNs(path), controls: true, "aria-label": `The ${name} of the task` })];
  if (read.data.length === 0) return [link, h("p", { class: "faint" }, "It is empty.")];
  if (read.json !== undefined) return [link, h("div", { class: "tree" }, tree(read.json))];
  if (read.text !== null)
    return [link, h("pre", { tabindex: "0" }, read.text.length > TEXT_MAX || read.data.length < read.total ? `${read.text.slice(0, TEXT_MAX)}\n…` : read.text)];
  return [link, hex(read.data)];
}

// A dialog that asks once more. ask() resolves to true, or to the text that was typed.
export const dialog = { now: null };
export const ask = (title, text, action, input) => new Promise((resolve) => {
  dialog.now = { title, text, action, input, resolve, from: document.activeElement };
  dirty();
});
function answerDialog(value) {
  const { resolve, from } = dialog.now;
  dialog.now = null;
  dirty();
  resolve(value);
  setTimeout(() => from?.focus?.(), 0);
}
export function showDialog() {
  const now = dialog.now;
  if (!now) return null;
  return h("div", { class: "veil", key: "dialog" }, h("form", {
    class: "dialog", role: "dialog", "aria-modal": "true", "aria-labelledby": "dialog-title",
    onsubmit(event) { event.preventDefault(); answerDialog(now.input ? this.elements.text.value : true); },
    onkeydown(event) {
      if (event.key === "Escape") { event.stopPropagation(); answerDialog(null); }
      if (event.key !== "Tab") return;
      const all = [...this.querySelectorAll("button, input")];
      const end = event.shiftKey ? all[0] : all.at(-1);
      if (document.activeElement === end) { event.preventDefault(); (event.shiftKey ? all.at(-1) : all[0]).focus(); }
    },
  }, h("h2", { id: "dialog-title" }, now.title), h("p", {}, now.text),
  now.input && h("label", {}, now.input, h("input", { name: "text", maxlength: 256, autocomplete: "off", "data-first": true })),
  h("div", { class: "row end" },
    h("button", { type: "button", onclick: () => answerDialog(null) }, "Leave it"),
    h("button", { class: "danger", "data-first": !now.input }, now.action))));
}
