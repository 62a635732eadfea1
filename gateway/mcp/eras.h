/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* What each generation asks for. */
#ifndef TASKMQ_GATEWAY_MCP_ERAS_H
#define TASKMQ_GATEWAY_MCP_ERAS_H

#include "mcp/call.h"

extern const char *const MCP_2026;
extern const char *const MCP_2025_11;
extern const char *const MCP_2025_06;

/* A request of the method that the call has. They answer. */
void modern_run (call_t *call);
void legacy_run (call_t *call);
/* The client of 2025 answers a request of ours. */
void legacy_answered (call_t *call);
/* GET and DELETE of 2025. */
void legacy_get (call_t *call);
void legacy_end (call_t *call);
/* The session of the head into the call; false: answered. */
bool legacy_session (call_t *call);

/* The version of the session has tasks. */
bool legacy_has_tasks (const call_t *call);
/* The client declared the extension; false: answered. */
bool modern_has_tasks (call_t *call);
/* The members of a DetailedTask, into an object that was begun; inbox NULL: it asks nothing. */
void modern_write_task (call_t *call, json_writer_t *writer, const tmq_task_t *task,
                        const tmq_inbox_t *inbox);

/* tools/call, and tools/list. */
void tool_call (call_t *call);
void tool_list (call_t *call);

#endif
