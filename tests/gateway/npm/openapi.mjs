// This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
// If a copy of the MPL was not distributed with this file, You can obtain one at
// https://mozilla.org/MPL/2.0/.

// /openapi.json beside the gateway that serves it: openapi.mjs URL [TOKEN]. The document is valid, every
// example is taken, and every answer is as its schema says.

import { Validator } from "@seriousme/openapi-schema-validator";
import Ajv2020 from "ajv/dist/2020.js";

const [url, token] = process.argv.slice(2);
const api = await (await fetch(`${url}/openapi.json`)).json();
const flaws = [];

const judged = await new Validator().validate(structuredClone(api));
if (!judged.valid) flaws.push(`the document: ${JSON.stringify(judged.errors)}`);

const ajv = new Ajv2020({ strict: false, validateFormats: false, allErrors: true, logger: false });
ajv.addSchema(api, "api");
const escaped = (text) => encodeURIComponent(text.replaceAll("~", "~0").replaceAll("/", "~1"));
const schemaOf = (...path) => ajv.compile({ $ref: `api#/${path.map(escaped).join("/")}` });

async function send(method, path, body, type = "application/json") {
  const headers = token ? { Authorization: `Bearer ${token}` } : {};
  if (body !== undefined) headers["Content-Type"] = type;
  return fetch(url + path, { method: method.toUpperCase(), headers, redirect: "manual", body: body === undefined ? undefined : typeof body === "string" ? body : JSON.stringify(body) });
}

// A task in each state that some route needs.
const made = async (queue) => (await (await send("post", `/v1/queues/${queue}/tasks`, "x", "text/plain")).json()).task_id;
const skipped = new Set(["/mcp", "/v1/events", "/v1/tasks/{id}/stream", "/ui/{file}"]); // streams, and what is no JSON

let tried = 0;
for (const [path, operations] of Object.entries(api.paths)) {
  for (const [method, operation] of Object.entries(operations)) {
    if (skipped.has(path) || path.startsWith("/v1/session")) continue;
    const id = path.includes("{id}") || path.includes("{suffix}") ? await made("openapi") : "";
    const at = path.replace("{id}", id).replace("{suffix}", id.slice(-12)).replace("{queue}", "openapi").replace("{type}", "busy").replace("{name}", "none");
    const content = operation.requestBody?.content ?? {};
    const body = content["application/json"];
    if (body && body.example === undefined && operation.requestBody.required) flaws.push(`${method} ${path}: no example`);
    const answer = await send(method, at, body ? body.example : Object.keys(content).length ? "x" : undefined, body ? undefined : "text/plain");
    const what = `${method} ${path}: ${answer.status}`;
    const text = await answer.text();
    const told = operation.responses[answer.status] ? String(answer.status) : "default";
    if (told === "default" && ![404, 409].includes(answer.status)) flaws.push(`${what} is not described: ${text.slice(0, 300)}`);
    const type = answer.headers.get("content-type")?.split(";")[0];
    const described = operation.responses[told]?.content;
    if (described && !described[type] && !described["*/*"]) flaws.push(`${what} is ${type}, not ${Object.keys(described)}`);
    if (described?.[type]?.schema && /json$/.test(type ?? "")) {
      const judge = schemaOf("paths", path, method, "responses", told, "content", type, "schema");
      if (!judge(JSON.parse(text))) flaws.push(`${what}: ${ajv.errorsText(judge.errors)} in ${text.slice(0, 400)}`);
    }
    tried++;
  }
}
for (const flaw of flaws) console.error(flaw);
console.log(`openapi: ${Object.keys(api.paths).length} paths, ${tried} operations tried, ${flaws.length} flaws`);
process.exitCode = flaws.length > 0 || tried < 30 ? 1 : 0;
