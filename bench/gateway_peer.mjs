// This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
// If a copy of the MPL was not distributed with this file, You can obtain one at
// https://mozilla.org/MPL/2.0/.

// What the gateway is measured beside: the official server of MCP in TypeScript, with the task store
// that it brings, in memory. gateway_peer.mjs PORT; it runs where the packages of tests/gateway/npm are.

import { randomUUID } from "node:crypto";
import http from "node:http";
import { InMemoryTaskMessageQueue, InMemoryTaskStore } from "@modelcontextprotocol/sdk/experimental/tasks/stores/in-memory.js";
import { McpServer } from "@modelcontextprotocol/sdk/server/mcp.js";
import { StreamableHTTPServerTransport } from "@modelcontextprotocol/sdk/server/streamableHttp.js";
import { z } from "zod";

const taskStore = new InMemoryTaskStore();
const sessions = new Map();

function makeServer() {
  const server = new McpServer({ name: "peer", version: "1" }, {
    capabilities: { tasks: { list: {}, cancel: {}, requests: { tools: { call: {} } } } },
    taskStore, taskMessageQueue: new InMemoryTaskMessageQueue(),
  });
  server.registerTool("echo", { description: "gives back", inputSchema: { name: z.string() } },
    async () => ({ content: [{ type: "text", text: "done" }] }));
  server.experimental.tasks.registerToolTask("job", {
    description: "takes its time", inputSchema: { name: z.string() }, execution: { taskSupport: "optional" },
  }, {
    createTask: async (_, { taskStore: store, taskRequestedTtl }) => ({ task: await store.createTask({ ttl: taskRequestedTtl, pollInterval: 100 }) }),
    getTask: async (_, { taskId, taskStore: store }) => store.getTask(taskId),
    getTaskResult: async (_, { taskId, taskStore: store }) => store.getTaskResult(taskId),
  });
  return server;
}

http.createServer(async (request, response) => {
  let text = "";
  for await (const piece of request) text += piece;
  let transport = sessions.get(request.headers["mcp-session-id"]);
  if (!transport) {
    transport = new StreamableHTTPServerTransport({ sessionIdGenerator: randomUUID, enableJsonResponse: true, onsessioninitialized: (id) => sessions.set(id, transport) });
    await makeServer().connect(transport);
  }
  await transport.handleRequest(request, response, text ? JSON.parse(text) : undefined);
}).listen(Number(process.argv[2]), "127.0.0.1");
