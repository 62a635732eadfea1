// This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
// If a copy of the MPL was not distributed with this file, You can obtain one at
// https://mozilla.org/MPL/2.0/.

// The tools that agents see, as MCP lists them, and a form to try each. There is none without MCP.

import { dirty, h, say } from "./dom.js";
import { formFields, isPlain, valuesOf } from "./form.js";
import { mayChange, session, Source } from "./net.js";
import { curl, empty, shell, shown, tree } from "./show.js";
import { View } from "./views.js";

const ABOUT = "io.modelcontextprotocol/";
const BASE = { Accept: "application/json, text/event-stream", "MCP-Protocol-Version": "2026-07-28" };
const message = (method, params) => ({ jsonrpc: "2.0", id: 1, method, params: { ...params, _meta: {
  [`${ABOUT}protocolVersion`]: "2026-07-28", [`${ABOUT}clientInfo`]: { name: "taskmq page", version: "1" },
  [`${ABOUT}clientCapabilities`]: { extensions: { [`${ABOUT}tasks`]: {} } } } } });

// The answer is JSON, or the last message of a stream.
async function ask(method, params, more = {}) {
  const headers = { ...BASE, "Content-Type": "application/json", "Mcp-Method": method, ...more, "X-Taskmq-Request": "1", ...(session.ns ? { "Taskmq-Namespace": session.ns } : {}) };
  const response = await fetch("/mcp", { method: "POST", cache: "no-store", headers, body: JSON.stringify(message(method, params)) });
  const text = await response.text();
  const lines = response.headers.get("content-type")?.startsWith("text/event-stream") ? text.split("\n").filter((line) => line.startsWith("data:")).map((line) => line.slice(5)) : [text];
  let told = null;
  try { told = JSON.parse(lines.filter((line) => line.trim()).at(-1)); } catch { /* no JSON */ }
  if (!told?.result) throw Object.assign(new Error(told?.error?.message ?? told?.detail ?? "This gateway offers no tools."), { status: response.status });
  return told.result;
}

// What x-mcp-header wants repeated in the head; what is not visible ASCII is wrapped.
const headed = (value) => /^[\x21-\x7e]+$/.test(value) ? value : `=?base64?${btoa(String.fromCharCode(...new TextEncoder().encode(value)))}?=`;
const headersOf = (schema, values) => Object.fromEntries(Object.entries(schema.properties ?? {})
  .filter(([name, one]) => one["x-mcp-header"] && values[name] !== undefined)
  .map(([name, one]) => [`Mcp-Param-${one["x-mcp-header"]}`, headed(String(values[name]))]));

export class Tools extends View {
  title = "Tools";
  constructor() {
    super();
    this.tools = new Source(() => ask("tools/list", {}), 5000);
    this.sources = [this.tools];
    this.tries = new Map();
    this.start();
  }
  event() {}

  tryOf(tool) {
    if (!this.tries.has(tool.name)) {
      const values = {};
      for (const [name, one] of Object.entries(tool.inputSchema.properties ?? {})) if (one.default !== undefined) values[name] = one.default;
      this.tries.set(tool.name, { id: `try-${tool.name}`, values, text: "{}", busy: false, flaw: null, result: null });
    }
    return this.tries.get(tool.name);
  }

  async call(tool, state) {
    Object.assign(state, { busy: true, flaw: null, result: null });
    dirty();
    try {
      const values = isPlain(tool.inputSchema) ? valuesOf(tool.inputSchema, state) : JSON.parse(state.text);
      state.result = await ask("tools/call", { name: tool.name, arguments: values }, { "Mcp-Name": headed(tool.name), ...headersOf(tool.inputSchema, values) });
      say("It has answered.", true);
    } catch (problem) {
      state.flaw = problem.message;
    }
    state.busy = false;
    dirty();
  }

  outcome({ result }) {
    if (result.resultType === "task") return h("p", { class: "why" }, "It goes on as a task: ", h("a", { class: "mono", href: `#/task/${result.taskId}` }, result.taskId));
    if (result.resultType === "input_required") return h("p", { class: "why" }, "It asks for input: ", h("a", { href: "#/questions" }, "answer it here"), ".");
    return h("div", { class: result.isError ? "flaw" : "" }, result.isError && h("p", {}, "The tool says that it failed."),
      (result.content ?? []).map((one) => one.type === "text" ? h("pre", { tabindex: "0" }, one.text)
        : one.type === "image" ? h("img", { class: "media", src: `data:${one.mimeType};base64,${one.data}`, alt: "What the tool made" }) : h("div", { class: "tree" }, tree(one))),
      result.structuredContent !== undefined && h("div", { class: "tree" }, tree(result.structuredContent)));
  }

  form(tool) {
    const state = this.tryOf(tool);
    return h("details", { class: "try" }, h("summary", {}, "Try it"), h("form", { class: "answer", onsubmit: (event) => { event.preventDefault(); this.call(tool, state); } },
      isPlain(tool.inputSchema) ? formFields(tool.inputSchema, state)
        : h("div", { class: "field" }, h("label", { for: `${state.id}-text` }, "Arguments, as JSON"),
          h("textarea", { id: `${state.id}-text`, rows: 4, value: state.text, oninput() { state.text = this.value; } })),
      state.flaw && h("p", { class: "flaw", role: "alert" }, state.flaw),
      h("div", { class: "row" }, h("button", { class: "main", disabled: state.busy }, state.busy ? "It works …" : `Call ${tool.name}`)),
      state.result && this.outcome(state)));
  }

  render() {
    const list = message("tools/list", {});
    return [h("div", { class: "head" }, h("h1", {}, "Tools"), h("span", { class: "faint" }, "what agents see by MCP")),
      this.tools.problem && !this.tools.data ? empty("This gateway offers no tools.", "They stand in tools.json.")
        : shown(this.tools, ({ tools }) => tools.length === 0 ? empty("There are no tools.", "They stand in tools.json.") : tools.map((tool) => h("article", { class: "card", key: tool.name },
          h("div", { class: "row" }, h("h2", { class: "mono" }, tool.name), tool.title && h("span", {}, tool.title)), h("p", {}, tool.description),
          h("details", {}, h("summary", {}, "Schema"), h("div", { class: "tree" }, tree(tool.inputSchema))),
          mayChange() && this.form(tool)))),
      shell(curl("/mcp", "-H 'Content-Type: application/json'", ...Object.entries({ ...BASE, "Mcp-Method": "tools/list" }).map(([name, value]) => `-H '${name}: ${value}'`), `-d '${JSON.stringify(list)}'`))];
  }
}
