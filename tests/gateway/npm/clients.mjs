// This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
// If a copy of the MPL was not distributed with this file, You can obtain one at
// https://mozilla.org/MPL/2.0/.

// The official clients of both generations, unchanged: clients.mjs URL.
import assert from 'node:assert/strict';
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { createTaskSessionFromClient, resultFromTaskOutcome } from '@modelcontextprotocol/ext-tasks/client';
import { Client as OldClient } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport as OldTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { CallToolResultSchema, ElicitRequestSchema, TaskStatusNotificationSchema,
  ToolListChangedNotificationSchema } from '@modelcontextprotocol/sdk/types.js';

const url = process.argv[2];
const version = '2026-07-28';
const accepted = { action: 'accept', content: { confirm: true, name: 'Ann' } };
const text = result => result.content[0].text;

async function tryOldClient() {
  const client = new OldClient({ name: 't', version: '1' },
    { capabilities: { elicitation: {}, sampling: {}, tasks: {} } });
  client.setRequestHandler(ElicitRequestSchema, async () => accepted);
  await client.connect(new OldTransport(new URL(url)));
  const { tools } = await client.listTools();
  assert.equal(tools.find(tool => tool.name === 'slow_compute').execution.taskSupport, 'optional');
  async function run(name, args, options) {
    let last;
    const stream = client.experimental.tasks.callToolStream({ name, arguments: args },
      CallToolResultSchema, options);
    for await (const message of stream) last = message;
    return last;
  }
  const done = await run('slow_compute', { seconds: 1, label: 'v1' }, { task: { ttl: 60000 } });
  assert.equal(text(done.result), 'done v1');
  assert.equal((await run('failing_job', {})).type, 'error');
  assert.equal(text((await run('confirm_delete', { filename: 'a' })).result), 'deleted');
  const steps = [];
  const progressed = await client.callTool({ name: 'test_tool_with_progress', arguments: {} },
    undefined, { onprogress: step => steps.push(step.progress) });
  assert.equal(text(progressed), 'progressed');
  assert.ok(steps.length > 0);
  await client.close();
}

// The session of tasks of one generation; v2 brings its requests to the server by itself.
async function tryTaskSession(generation) {
  const modern = generation === 'v2';
  const client = new Client({ name: 't', version: '1' }, {
    capabilities: { elicitation: {}, sampling: {}, ...(modern ? {} : { tasks: {} }) },
    ...(modern ? { versionNegotiation: { mode: 'auto' } } : {}) });
  await client.connect(new StreamableHTTPClientTransport(new URL(url)));
  let number = 100;
  async function rawDispatch(request, options) {
    const name = request.params?.name ?? request.params?.taskId;
    const response = await fetch(url, { method: 'POST', signal: options?.signal,
      headers: { 'content-type': 'application/json',
        accept: 'application/json, text/event-stream', 'mcp-protocol-version': version,
        'mcp-method': request.method, ...(name ? { 'mcp-name': name } : {}) },
      body: JSON.stringify({ jsonrpc: '2.0', id: ++number, ...request }) });
    const message = await response.json();
    return message.error ? { kind: 'error', error: message.error }
      : { kind: 'result', result: message.result };
  }
  const framing = { protocolVersion: version, clientInfo: { name: 't', version: '1' },
    clientCapabilities: { elicitation: {} } };
  const session = createTaskSessionFromClient(client, { endpointId: 'gateway',
    ...(modern ? { rawDispatch, v2RequestFraming: framing } : {}),
    onInputRequest: async () => accepted });
  const call = async (name, args) =>
    resultFromTaskOutcome((await (await session.callTool(name, args)).settle()).outcome);
  assert.equal(text(await call('slow_compute', { seconds: 1, label: generation })),
    `done ${generation}`);
  await assert.rejects(call('protocol_error_job', {}), /internal panic/);
  assert.equal(text(await call('confirm_delete', { filename: 'x' })), 'deleted');
  assert.equal(Object.keys(JSON.parse(text(await call('multi_input', {})))).length, 2);
  await session.close();
  await client.close();
}

// Calls until it is heard: a stream of 2025 begins beside the first calls, and tells what comes then.
async function changeUntil(heard, call) {
  for (let told = false; !told;) {
    await call();
    told = await Promise.race([heard.then(() => true), new Promise(resolve => setTimeout(resolve, 300, false))]);
  }
}

async function tryOldNotifications() {
  const client = new OldClient({ name: 't', version: '1' }, { capabilities: { tasks: {} } });
  const heard = new Promise(resolve => client.setNotificationHandler(ToolListChangedNotificationSchema, resolve));
  const statuses = [];
  client.setNotificationHandler(TaskStatusNotificationSchema, note => { statuses.push(note.params.status); });
  await client.connect(new OldTransport(new URL(url)));
  await changeUntil(heard, () => client.callTool({ name: 'test_trigger_tool_change', arguments: {} }));
  await client.listTools();
  const stream = client.experimental.tasks.callToolStream({ name: 'slow_compute', arguments: { seconds: 1 } },
    CallToolResultSchema, { task: { ttl: 60000 } });
  for await (const message of stream) assert.notEqual(message.type, 'error');
  while (!statuses.includes('completed')) await new Promise(resolve => setTimeout(resolve, 20));
  await client.close();
}

async function tryListening() {
  const client = new Client({ name: 't', version: '1' }, { versionNegotiation: { mode: 'auto' } });
  const heard = new Promise(resolve => client.setNotificationHandler('notifications/tools/list_changed', resolve));
  await client.connect(new StreamableHTTPClientTransport(new URL(url)));
  const subscription = await client.listen({ toolsListChanged: true, promptsListChanged: true });
  assert.deepEqual(subscription.honoredFilter, { toolsListChanged: true });
  await client.callTool({ name: 'test_trigger_tool_change', arguments: {} });
  await heard;
  await subscription.close();
  assert.equal(await subscription.closed, 'local');
  await client.close();
}

await tryOldClient();
await tryOldNotifications();
await tryListening();
await tryTaskSession('v1');
await tryTaskSession('v2');
console.log('official clients: sdk, ext-tasks v1 and v2, notifications of both');
