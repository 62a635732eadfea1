/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

#include "mcp/mcp.h"

#include <stdlib.h>
#include <string.h>

#include "json.h"
#include "mcp/eras.h"
#include "mcp/listen.h"

/* POST. */

static bool refuse (call_t *call, int code, const char *message)
{
    call_error (call, 400, code, message, NULL);
    return false;
}

static const char *first_byte (slice_t text)
{
    size_t at = 0;
    while (at < text.length && strchr (" \t\r\n", text.text[at]) != NULL)
        at++;
    return at < text.length ? text.text + at : "";
}

/* The message into the call; false: answered. */
static bool read_message (call_t *call)
{
    char error[INPUT_ERROR_SIZE];
    if (!json_text_is_valid (call->text.text, call->text.length))
        return refuse (call, RPC_PARSE, "Parse error: the body is no JSON");
    if (*first_byte (call->text) == '[')
        return refuse (call, RPC_REQUEST, "Invalid request: a body is one message, no batch");
    call->message = input_object (call->text, error);
    if (call->message == NULL)
        return refuse (call, RPC_REQUEST, error);
    const json_t *id = json_object_get (call->message, "id");
    const char *version = json_string_value (json_object_get (call->message, "jsonrpc"));
    json_t *params = json_object_get (call->message, "params");
    if (json_is_string (id) || json_is_integer (id))
        call->id = input_member (call->text, "id");
    const bool is_long = call->id.length > CALL_ID_BYTES_MAX;
    if (is_long)
        call->id = (slice_t){"", 0};
    if (!service_has_room (call->mcp->service)) {
        json_decref (call->message);
        call->message = NULL;
        call_busy (call);
        return false;
    }
    const json_t *method = json_object_get (call->message, "method");
    call->method = json_string_value (method);
    if (call->method != NULL && strlen (call->method) != json_string_length (method))
        return refuse (call, RPC_REQUEST, "Invalid request: its method has a NUL");
    call->params = json_is_object (params) ? params : NULL;
    if (version == NULL || strcmp (version, "2.0") != 0)
        return refuse (call, RPC_REQUEST, "Invalid request: jsonrpc is \"2.0\"");
    if (is_long)
        return refuse (call, RPC_REQUEST, "Invalid request: its id has more than 1024 bytes");
    if (id != NULL && call->id.length == 0)
        return refuse (call, RPC_REQUEST, "Invalid request: id is a text or a whole number");
    if (params != NULL && call->params == NULL)
        return refuse (call, RPC_PARAMS, "Invalid params: they are an object");
    return call->method != NULL || json_object_get (call->message, "result") != NULL ||
           json_object_get (call->message, "error") != NULL ||
           refuse (call, RPC_REQUEST, "Invalid request: it has no method");
}

/* The client takes JSON and streams. */
static bool judge_accept (call_t *call)
{
    const char *accept = http_request_field (call->exchange->request, "accept");
    if (accept == NULL || strstr (accept, "*/*") != NULL)
        return true;
    if (strstr (accept, "application/json") != NULL && strstr (accept, "text/event-stream") != NULL)
        return true;
    call_error (call, 406, RPC_REQUEST, "Accept has application/json and text/event-stream, both",
                NULL);
    return false;
}

/* Which generation speaks? */
static era_t era_of (const call_t *call)
{
    const char *version = http_request_field (call->exchange->request, "mcp-protocol-version");
    if (call_meta (call, "protocolVersion") != NULL)
        return ERA_2026;
    if (call->method != NULL && strcmp (call->method, "initialize") == 0)
        return ERA_2025;
    return version != NULL && strcmp (version, MCP_2025_11) != 0 &&
                   strcmp (version, MCP_2025_06) != 0
               ? ERA_2026
               : ERA_2025;
}

static void run_post (call_t *call)
{
    if (!judge_accept (call) || !read_message (call))
        return;
    call->era = era_of (call);
    if (call->era == ERA_2025 && call->method == NULL)
        legacy_answered (call);
    else if (call->era == ERA_2025)
        legacy_run (call);
    else if (call->method == NULL)
        refuse (call, RPC_REQUEST, "Invalid request: answers travel in requests");
    else if (call->id.length == 0)
        call_empty (call, 202);
    else
        modern_run (call);
}

/* Every method of /mcp. */
static void run (void *context, exchange_t *exchange)
{
    mcp_t *self = context;
    const char *version = http_request_field (exchange->request, "mcp-protocol-version");
    const http_method_t method = exchange->request->method;
    response_t response;
    call_t *call = call_begin (exchange, self);
    if (call == NULL)
        return;
    if (method == HTTP_METHOD_POST) {
        run_post (call);
    } else if (method == HTTP_METHOD_HEAD || (version != NULL && strcmp (version, MCP_2026) == 0)) {
        response_init (&response, 405);
        response_field (&response, "Allow", "POST");
        answer (exchange, &response);
    } else if (method == HTTP_METHOD_DELETE) {
        legacy_end (call);
    } else {
        legacy_get (call);
    }
}

static void measure (void *context, bytes_t *out)
{
    const mcp_t *self = context;
    mcp_numbers_write (&self->numbers, self->tools, out);
}

mcp_t *mcp_new (service_t *service, tools_t *tools)
{
    mcp_t *self = calloc (1, sizeof *self);
    if (self == NULL) {
        tools_release (tools);
        return NULL;
    }
    self->service = service;
    self->tools = tools;
    mcp_sessions_init (&self->sessions);
    mcp_numbers_change (&self->numbers, NULL, tools);
    service->mcp = (service_mcp_t){self, run, measure};
    return self;
}

void mcp_free (mcp_t **self_p)
{
    mcp_t *self = *self_p;
    if (self == NULL)
        return;
    *self_p = NULL;
    self->service->mcp = (service_mcp_t){0};
    tools_release (self->tools);
    mcp_numbers_clear (&self->numbers);
    mcp_sessions_clear (&self->sessions);
    free (self);
}

void mcp_change (mcp_t *self, tools_t *tools)
{
    mcp_numbers_change (&self->numbers, self->tools, tools);
    tools_release (self->tools);
    self->tools = tools;
    listen_tools_changed (self);
}
