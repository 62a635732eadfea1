/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Tasks as MCP shows them. Both generations. Pure. */
#ifndef TASKMQ_GATEWAY_MCP_RENDER_H
#define TASKMQ_GATEWAY_MCP_RENDER_H

#include "json.h"
#include "mcp/schema.h"
#include "taskmq.h"

typedef enum era { ERA_2025, ERA_2026 } era_t;

#define META_PREFIX "io.modelcontextprotocol/"
/* Of a result that is an answer of MCP as it stands. */
#define RESULT_TYPE "application/vnd.mcp.result+json"

/* -(33200 + code): what the broker or the library told. */
enum { RENDER_CODES = -33200 };

/* "working", "input_required", …; in 2026 a tool that failed has completed. */
const char *render_status (const tmq_task_t *task, era_t era);
/* taskId to pollInterval, into an object that was begun. */
void render_task (json_writer_t *writer, const tmq_task_t *task, era_t era);
/* What the call gives, of an ended task with its bytes: "result":{…} or "error":{…}, into an object
 * that was begun. related: with the task's id in _meta. output: what its tool promises of a result
 * (outputSchema); NULL: nothing. False: a completed task does not keep that, and a result with
 * isError that says so stands for its own. */
bool render_outcome (json_writer_t *writer, const tmq_task_t *task, era_t era, bool related,
                     schema_t *output);
/* True if the outcome is an error of JSON-RPC. */
bool render_is_error (const tmq_task_t *task);
/* "content":[…] of one text, and isError. */
void render_tool_error (json_writer_t *writer, const char *text, size_t length);
/* Our name and version, as a member of that name. */
void render_server_info (json_writer_t *writer, const char *key);
/* "_meta":{…} of every result of 2026. */
void render_server (json_writer_t *writer);

#endif
