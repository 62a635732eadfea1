/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Following a task on behalf of a call: until it ends, asks, or the time is over. */
#ifndef TASKMQ_GATEWAY_MCP_FOLLOW_H
#define TASKMQ_GATEWAY_MCP_FOLLOW_H

#include "mcp/call.h"

/* One wait of a call that is endless. */
enum { FOLLOW_WAIT_MS = 24 * 3600000 };

/* call->task is the principal's. Progress, messages and questions are passed on. inline_ms: how
 * long the answer may stay a plain one. Answers in the end. */
void follow (call_t *call, uint32_t inline_ms);
/* Gives the record once, then done: for what needs no more than it. */
typedef void follow_fn (call_t *call, const tmq_task_t *task);
void follow_get (call_t *call, follow_fn *fn);
/* … with its bytes, if it has ended. */
void follow_get_result (call_t *call, follow_fn *fn);
/* Inside of such a function: keeps the record, as call->record. */
void follow_keep (call_t *call);
/* The open questions of the task: keys and requests. inbox NULL: it could not be asked. */
typedef void follow_questions_fn (call_t *call, const tmq_inbox_t *inbox);
void follow_questions (call_t *call, follow_questions_fn *fn);
/* Answers of the client, an object of them by their keys; then fn (call, NULL). */
void follow_answer (call_t *call, const json_t *answers, follow_fn *fn);
/* Ends the following with a handle of the task. */
void follow_handle (call_t *call);
/* The task has open questions: passes them on, or answers them by what the call brought. */
void follow_asked (call_t *call);
/* Ends a call of 2026 with questions, an object of requests by their keys. */
void follow_ask_2026 (call_t *call, const json_t *requests);
/* A question as a request of MCP. To be released. */
json_t *follow_request (const tmq_question_t *question);
/* notifications/progress for the token of the call: only what rises is told. */
void follow_tell_progress (call_t *call, double done, double total, const char *message);
/* notifications/message with the status message of an event, if the call's level asks for it. */
void follow_tell_message (call_t *call, const tmq_event_t *event);
/* Its client may leave from now on: then the task is cancelled, unless the call leaves it. */
void follow_from_now (call_t *call);
/* As link_cancel_kept. message is static. */
bool follow_cancel (call_t *call, const char *message);

#endif
