// This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
// If a copy of the MPL was not distributed with this file, You can obtain one at
// https://mozilla.org/MPL/2.0/.

// A form from a JSON schema, as questions bring them: an object of texts, numbers, choices and
// yes or no. What is more than that is typed as JSON.

import { dirty, h, textOf } from "./dom.js";
import { post } from "./net.js";
import { tree } from "./show.js";

// What is not as it should be makes no form.
const isObject = (value) => value !== null && typeof value === "object" && !Array.isArray(value);
const namedChoices = (schema) => [schema.oneOf, schema.anyOf].find((list) => Array.isArray(list) && list.every(isObject));
const hasChoices = (schema) => isObject(schema) && (Array.isArray(schema.enum) || namedChoices(schema) !== undefined);
const isSimple = (schema) => isObject(schema) && (["string", "number", "integer", "boolean"].includes(schema.type) || hasChoices(schema) ||
  (schema.type === "array" && hasChoices(schema.items)));
export const isPlain = (schema) => isObject(schema) && schema.type === "object" && isObject(schema.properties) &&
  Object.values(schema.properties).every(isSimple) && (schema.required === undefined || Array.isArray(schema.required));

// {message, schema, wrap}: what a question asks, whatever its form.
export function readQuestion(question) {
  const request = question.request ?? {};
  const params = request.params ?? request;
  const isText = typeof request === "string";
  const schema = params.requestedSchema ?? params.schema;
  return {
    message: isText ? request : params.message ?? params.prompt ?? params.question ?? params.text ?? null,
    schema: isObject(schema) ? schema : null,
    elicits: request.method === "elicitation/create",
    raw: request,
  };
}

const choicesOf = (schema) => !hasChoices(schema) ? null
  : Array.isArray(schema.enum) ? schema.enum.map((value, i) => [value, schema.enumNames?.[i] ?? textOf(value)])
    : namedChoices(schema).map((one) => [one.const, one.title ?? textOf(one.const)]);
const listOf = (value) => Array.isArray(value) ? value : [];

function field(name, schema, state, required) {
  const id = `${state.id}-${name}`;
  const set = (value) => { state.values[name] = value; };
  const value = state.values[name] ?? schema.default;
  const choices = choicesOf(schema);
  const many = schema.type === "array" && choicesOf(schema.items);
  const label = h("label", { for: id }, schema.title ?? name, required && h("span", { class: "faint" }, " (needed)"));
  const note = schema.description && h("p", { class: "faint", id: `${id}-note` }, schema.description);
  const more = { id, name, required, "aria-describedby": schema.description ? `${id}-note` : null };
  if (schema.type === "boolean")
    return h("div", { class: "field check", key: name },
      h("input", { ...more, required: false, type: "checkbox", checked: Boolean(value), onchange() { set(this.checked); } }), label, note);
  if (many)
    return h("fieldset", { class: "field", key: name }, h("legend", {}, schema.title ?? name), many.map(([one, title]) =>
      h("label", { class: "check" }, h("input", {
        type: "checkbox", checked: listOf(value).includes(one),
        onchange() { set([...listOf(state.values[name] ?? schema.default).filter((other) => other !== one), ...(this.checked ? [one] : [])]); },
      }), title)), note);
  if (choices)
    return h("div", { class: "field", key: name }, label, h("select", { ...more, onchange() { set(choices[this.selectedIndex - 1]?.[0]); } },
      h("option", { value: "" }, "Choose"), choices.map(([one, title]) => h("option", { selected: one === value }, title))), note);
  if (schema.type === "number" || schema.type === "integer")
    return h("div", { class: "field", key: name }, label, h("input", {
      ...more, type: "number", step: schema.type === "integer" ? 1 : "any", min: schema.minimum, max: schema.maximum, value: value ?? "",
      oninput() { set(this.value === "" ? undefined : Number(this.value)); },
    }), note);
  const types = { email: "email", uri: "url", date: "date" };
  return h("div", { class: "field", key: name }, label, h(schema.maxLength > 200 ? "textarea" : "input", {
    ...more, type: types[schema.format] ?? "text", minlength: schema.minLength, maxlength: schema.maxLength, pattern: schema.pattern, value: value ?? "",
    oninput() { set(this.value === "" ? undefined : this.value); },
  }), note);
}

// The fields of a plain schema; state: {id, values}, where what is typed is kept.
export const formFields = (schema, state) => Object.entries(schema.properties).map(([name, one]) => field(name, one, state, schema.required?.includes(name)));

// What was typed; a box that nobody touched says no.
export function valuesOf(schema, state) {
  const values = { ...state.values };
  for (const [name, one] of Object.entries(schema.properties)) if (one.type === "boolean") values[name] = Boolean(values[name]);
  return values;
}

const forms = new Map(); // what was typed stays while the page is painted anew
const FORMS_MAX = 200;

function stateOf(question, asked) {
  const id = `q-${question.task_id.slice(-12)}-${question.key.replaceAll(/[^\w-]/g, "_")}`;
  if (!forms.has(id)) {
    if (forms.size >= FORMS_MAX) forms.delete(forms.keys().next().value);
    const values = {};
    if (isPlain(asked.schema)) for (const [name, schema] of Object.entries(asked.schema.properties)) if (schema.default !== undefined) values[name] = schema.default;
    forms.set(id, { id, values, text: "", flaw: null, busy: false });
  }
  return forms.get(id);
}

async function send(question, state, answer, done) {
  state.busy = true;
  state.flaw = null;
  dirty();
  try {
    await post(`/v1/tasks/${question.task_id}/answer`, { key: question.key, ...answer });
    forms.delete(state.id);
    done();
  } catch (problem) {
    state.flaw = problem.message;
  }
  state.busy = false;
  dirty();
}

// done: called when it was answered.
export function answerForm(question, done) {
  const asked = readQuestion(question);
  const state = stateOf(question, asked);
  const plain = isPlain(asked.schema);
  const submit = (event) => {
    event.preventDefault();
    if (plain) {
      const content = valuesOf(asked.schema, state);
      return send(question, state, { answer: asked.elicits ? { action: "accept", content } : content }, done);
    }
    let answer = { text: state.text };
    if (asked.schema || asked.elicits || /^\s*[[{"]/.test(state.text)) {
      try { answer = { answer: JSON.parse(state.text) }; } catch (error) {
        state.flaw = `This is no JSON: ${error.message}`;
        return dirty();
      }
    }
    return send(question, state, answer, done);
  };
  return h("form", { class: "answer", onsubmit: submit },
    asked.message ? h("p", { class: "asks" }, asked.message) : h("div", { class: "tree" }, tree(asked.raw)),
    plain ? formFields(asked.schema, state)
      : h("div", { class: "field" }, h("label", { for: `${state.id}-text` }, asked.schema ? "Answer, as JSON" : "Answer"),
        h("textarea", { id: `${state.id}-text`, rows: 3, value: state.text, oninput() { state.text = this.value; } })),
    state.flaw && h("p", { class: "flaw", role: "alert" }, state.flaw),
    h("div", { class: "row" },
      h("button", { class: "main", disabled: state.busy }, "Answer"),
      asked.elicits && h("button", { type: "button", disabled: state.busy, onclick: () => send(question, state, { answer: { action: "decline" } }, done) }, "Decline")));
}
