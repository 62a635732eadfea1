/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

#include "mcp/call.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/trees.h"
#include "http/sse.h"
#include "log/log.h"
#include "timestamp.h"

enum { RETRY_AFTER_MS = 1000 /* where the broker tells no time */ };

/* GET and DELETE have no method, nor has an answer to us. */
static void count_call (const call_t *self)
{
    mcp_t *mcp = self->mcp;
    if (self->method != NULL)
        mcp_numbers_request (&mcp->numbers, self->era, self->method, self->outcome);
    if (self->tool != NULL)
        mcp_numbers_call (&mcp->numbers, mcp->tools, self->tool->name, self->as_task,
                          self->tool_outcome,
                          (uint64_t) (clock_us (CLOCK_MONOTONIC) - self->exchange->began_us));
}

static void clear_call (void *state)
{
    call_t *self = state;
    count_call (self);
    link_t *link = self->exchange->link;
    if (self->next != NULL)
        self->next->before = self->before;
    *(self->before != NULL ? &self->before->next : &self->mcp->calls) = self->next;
    bytes_free (&self->session_text);
    link_forget (link, &self->wait_ticket);
    link_forget (link, &self->pause_ticket);
    flow_free (&self->news);
    if (self->listener != NULL)
        self->listener_free (&self->listener);
    tools_release (self->tools);
    json_decref (self->message);
    json_decref (self->token_owned);
    json_decref (self->sent);
    tmq_task_free (self->record);
    free (self->id_owned);
    free (self->answers);
    bytes_free (&self->owed);
    self->dead = true;
    if (!self->held)
        free (self);
}

void call_hold (call_t *self)
{
    self->held = true;
}

bool call_let_go (call_t *self)
{
    self->held = false;
    if (!self->dead)
        return true;
    free (self);
    return false;
}

call_t *call_begin (exchange_t *exchange, mcp_t *mcp)
{
    call_t *self = keep_state (exchange, sizeof *self, clear_call);
    if (self == NULL)
        return NULL;
    self->exchange = exchange;
    self->mcp = mcp;
    self->tools = tools_retain (mcp->tools);
    self->text = (slice_t){(const char *) exchange->body.data, exchange->body.length};
    self->level = 8;
    self->next = mcp->calls;
    if (mcp->calls != NULL)
        mcp->calls->before = self;
    mcp->calls = self;
    return self;
}

void call_lighten (call_t *self)
{
    if (self->message == NULL)
        return;
    if (self->id_owned == NULL && self->id.length > 0) {
        char *id = malloc (self->id.length);
        if (id == NULL)
            return;
        memcpy (id, self->id.text, self->id.length);
        self->id_owned = id;
        self->id.text = id;
    }
    snprintf (self->method_owned, sizeof self->method_owned, "%s", self->method);
    self->method = self->method_owned;
    self->token_owned = json_incref ((json_t *) self->progress_token);
    json_decref (self->message);
    self->message = NULL;
    self->params = NULL;
    self->text = (slice_t){"", 0};
    self->exchange->drop_body (self->exchange);
}

/* Messages. */

static void begin_message (const call_t *self, bytes_t *out)
{
    bytes_append_text (out, "{\"jsonrpc\":\"2.0\"");
    if (self->id.length > 0) {
        bytes_append_text (out, ",\"id\":");
        bytes_append (out, self->id.text, self->id.length);
    }
    bytes_append_byte (out, ',');
}

/* An id by which a stream of 2025 is found again: the task, and which request it answers. */
static const char *stream_id (const call_t *self, bytes_t *out)
{
    if (self->event_id != NULL)
        return self->event_id (self, out);
    bytes_t plain = BYTES_INIT;
    char task[37];
    tmq_id_format (&self->task, task);
    bytes_append_text (&plain, self->exchange->principal->name);
    bytes_append_byte (&plain, ' ');
    bytes_append_text (&plain, task);
    bytes_append_byte (&plain, self->related ? 'r' : 'c');
    bytes_append (&plain, self->id.text, self->id.length);
    const bool good = self->era == ERA_2025 && self->is_followed && !plain.failed &&
                      seal_close (&self->mcp->service->seal, out, SEAL_MCP_STREAM, plain.data,
                                  plain.length, clock_ms (CLOCK_REALTIME) + MCP_SESSION_MS);
    bytes_free (&plain);
    return good ? bytes_text (out) : NULL;
}

static void frame (const call_t *self, bytes_t *out, const bytes_t *message)
{
    bytes_t id = BYTES_INIT;
    const sse_event_t event = {.id = stream_id (self, &id),
                               .data = (const char *) message->data,
                               .data_bytes = message->length};
    sse_write (out, &event);
    bytes_free (&id);
}

/* What the client could not take before. */
static void pay (exchange_t *exchange)
{
    call_t *self = exchange->state;
    if (self->owed.length > 0 && !exchange->write (exchange, self->owed.data, self->owed.length))
        return;
    bytes_clear (&self->owed);
    if (self->ends)
        exchange->finish (exchange);
    else if (self->go_on != NULL)
        self->go_on (self);
}

bool call_stream (call_t *self)
{
    exchange_t *exchange = self->exchange;
    response_t response;
    bytes_t id = BYTES_INIT;
    if (self->streams)
        return true;
    response_init (&response, 200);
    const sse_event_t first = {.id = stream_id (self, &id), .data = ""};
    if (first.id != NULL)
        sse_write (&response.body, &first);
    sse_write_retry (&response.body, 1000);
    bytes_free (&id);
    exchange->ping = SSE_PING;
    exchange->on_room = pay;
    exchange->stream_kind = STREAM_MCP;
    if (self->abandon != NULL && !answer_has_stream (exchange))
        self->abandon (self); /* it is refused now */
    if (!answer_stream (exchange, &response))
        return false; /* it has ended: nothing of it may be touched */
    self->streams = true;
    exchange->seat.stays = self->abandon != NULL; /* nobody would hear of its task */
    return true;
}

void call_send (call_t *self, const bytes_t *message)
{
    exchange_t *exchange = self->exchange;
    bytes_t out = BYTES_INIT;
    frame (self, &out, message);
    if (self->owed.length > 0 || !exchange->write (exchange, out.data, out.length))
        bytes_append (&self->owed, out.data, out.length);
    bytes_free (&out);
}

void call_tell (call_t *self, const char *method, const bytes_t *params)
{
    bytes_t out = BYTES_INIT;
    json_writer_t writer = {&out, false};
    json_write_object_begin (&writer);
    json_write_key (&writer, "jsonrpc");
    json_write_text (&writer, "2.0");
    json_write_key (&writer, "method");
    json_write_text (&writer, method);
    json_write_key (&writer, "params");
    json_write_raw (&writer, params->data, params->length);
    json_write_object_end (&writer);
    call_send (self, &out);
    bytes_free (&out);
}

void call_notify (call_t *self, const char *method, const bytes_t *params)
{
    if (self->owed.length == 0 && call_stream (self))
        call_tell (self, method, params);
}

void call_answer (call_t *self, int status, bytes_t *outcome)
{
    exchange_t *exchange = self->exchange;
    bytes_t message = BYTES_INIT;
    response_t response;
    if (self->outcome == RPC_LEFT)
        self->outcome = RPC_ANSWERED;
    if (self->tool_outcome == TOOL_LEFT)
        self->tool_outcome = TOOL_REFUSED; /* what has no result of its task tells why */
    begin_message (self, &message);
    bytes_append (&message, outcome->data, outcome->length);
    bytes_append_byte (&message, '}');
    bytes_free (outcome);
    if (self->streams) {
        call_send (self, &message);
        bytes_free (&message);
        self->ends = true;
        if (self->owed.length == 0)
            exchange->finish (exchange);
        else if (exchange->is_last)
            exchange->cut (exchange); /* its seat is for somebody else now */
        return;
    }
    response_init (&response, status);
    response_field (&response, "Content-Type", "application/json");
    if (self->session_text.length > 0)
        response_field (&response, "Mcp-Session-Id", bytes_text (&self->session_text));
    if (self->retry_after_ms > 0)
        response_number (&response, "Retry-After", (self->retry_after_ms + 999) / 1000);
    bytes_append (&response.body, message.data, message.length);
    bytes_free (&message);
    answer (exchange, &response);
}

void call_error (call_t *self, int status, int code, const char *message, const char *data)
{
    bytes_t out = BYTES_INIT;
    json_writer_t writer = {&out, false};
    self->outcome = RPC_ERROR;
    if (code == RPC_INTERNAL)
        log_write (LOG_LEVEL_WARNING, "GATEWAY-MCP", "a request of MCP failed by our fault",
                   LOG_FIELDS (LOG_TEXT ("method", self->method != NULL ? self->method : "-"),
                               LOG_TEXT ("error", message),
                               LOG_TEXT ("request_id", self->exchange->id)));
    json_write_key (&writer, "error");
    json_write_object_begin (&writer);
    json_write_key (&writer, "code");
    json_write_int (&writer, code);
    json_write_key (&writer, "message");
    json_write_string (&writer, message, strlen (message));
    if (data != NULL) {
        json_write_key (&writer, "data");
        json_write_raw (&writer, data, strlen (data));
    }
    json_write_object_end (&writer);
    call_answer (self, status, &out);
}

static void tell_code (call_t *self, int status, int code, const tmq_error_t *error)
{
    char data[160];
    if (tmq_code_retriable (code))
        self->retry_after_ms =
            error != NULL && error->retry_after_ms > 0 ? error->retry_after_ms : RETRY_AFTER_MS;
    snprintf (data, sizeof data, "{\"code\":\"%s\",\"retriable\":%s,\"retryAfterMs\":%u}",
              tmq_code_name (code), tmq_code_retriable (code) ? "true" : "false",
              self->retry_after_ms);
    call_error (self, status, RENDER_CODES - code,
                error != NULL && error->text[0] != '\0' ? error->text : tmq_code_text (code), data);
}

void call_code (call_t *self, int code, const tmq_error_t *error)
{
    if (code == TMQ_NOT_FOUND || code == TMQ_EXPIRED || code == TMQ_PURGED)
        call_error (self, 200, RPC_PARAMS, "Task not found", NULL);
    else
        tell_code (self, 200, code, error);
}

void call_busy (call_t *self)
{
    const tmq_error_t error = {.code = TMQ_OVERLOADED,
                               .text = "all requests take as much memory as they may"};
    tell_code (self, 503, TMQ_OVERLOADED, &error);
}

void call_cut (call_t *self, int code, const tmq_error_t *error)
{
    if (self->streams && self->id.length == 0)
        self->exchange->finish (self->exchange);
    else
        call_code (self, code, error);
}

void call_empty (call_t *self, int status)
{
    response_t response;
    self->outcome = RPC_ANSWERED;
    response_init (&response, status);
    answer (self->exchange, &response);
}

json_writer_t call_result (const call_t *self, bytes_t *out, const char *type)
{
    json_writer_t writer = {out, false};
    json_write_key (&writer, "result");
    json_write_object_begin (&writer);
    if (self->era == ERA_2026) {
        json_write_key (&writer, "resultType");
        json_write_text (&writer, type != NULL ? type : "complete");
        render_server (&writer);
    }
    return writer;
}

void call_finish (call_t *self, json_writer_t *writer)
{
    json_write_object_end (writer);
    call_answer (self, 200, writer->out);
}

void call_done (call_t *self)
{
    bytes_t out = BYTES_INIT;
    json_writer_t writer = call_result (self, &out, NULL);
    call_finish (self, &writer);
}

/* Tasks. */

static const char *label_of (const tmq_task_t *task, const char *key)
{
    for (size_t i = 0; i < task->labels_count; i++)
        if (strcmp (task->labels[i].key, key) == 0)
            return task->labels[i].value;
    return "";
}

void call_outcome (call_t *self, json_writer_t *writer, const tmq_task_t *task, bool related)
{
    const char *name = label_of (task, TOOL_LABEL);
    const tool_t *tool = tools_find (self->tools, name, ~0U);
    if (render_outcome (writer, task, self->era, related, tool != NULL ? tool->output : NULL))
        return;
    mcp_numbers_unfit (&self->mcp->numbers, self->mcp->tools, name);
    if (self->tool != NULL)
        self->tool_outcome = TOOL_FAILED;
}

bool call_owns (const call_t *self, const tmq_task_t *task)
{
    return strcmp (task->method, "tools/call") == 0 &&
           strcmp (label_of (task, PRINCIPAL_LABEL), self->exchange->principal->name) == 0;
}

/* Params. */

bool call_task_id (call_t *self)
{
    const char *text = call_text (self, "taskId");
    if (text != NULL && tmq_id_parse (&self->task, text) == TMQ_OK)
        return true;
    call_error (self, 200, RPC_PARAMS, "Task not found", NULL);
    return false;
}

const char *call_text (const call_t *self, const char *name)
{
    const json_t *value = json_object_get (self->params, name);
    const char *text = json_string_value (value);
    return text != NULL && strlen (text) == json_string_length (value) ? text : NULL;
}

slice_t call_raw (const call_t *self, const char *name, char **owned)
{
    const json_t *value = json_object_get (self->params, name);
    const slice_t params = input_member (self->text, "params");
    slice_t raw = {"", 0};
    *owned = NULL;
    if (value != NULL && params.length > 0)
        raw = input_member (params, name);
    if (value != NULL && raw.length == 0) { /* its name was written with escapes */
        *owned = trees_text (value, JSON_COMPACT | JSON_ENCODE_ANY);
        raw = (slice_t){*owned, *owned != NULL ? strlen (*owned) : 0};
    }
    return raw;
}

const json_t *call_meta (const call_t *self, const char *name)
{
    char key[96];
    const json_t *meta = json_object_get (self->params, "_meta");
    if (name == NULL)
        return meta;
    snprintf (key, sizeof key, META_PREFIX "%s", name);
    return json_object_get (meta, key);
}
