/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* MCP 2026-07-28: no sessions; each request says all that there is to know. */
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/trees.h"
#include "ids.h"
#include "mcp/eras.h"
#include "mcp/follow.h"
#include "mcp/listen.h"

const char *const MCP_2026 = "2026-07-28";

/* Fields of the head repeat what the body says, so that proxies need not read it. */

/* "=?base64?…?=" or the text itself; *owned is to be freed. NULL: it is no text. */
static const char *decode_field (const char *field, char **owned)
{
    static const char prefix[] = "=?base64?";
    *owned = NULL;
    const size_t length = field != NULL ? strlen (field) : 0;
    if (length < sizeof prefix + 1 || strncmp (field, prefix, sizeof prefix - 1) != 0 ||
        strcmp (field + length - 2, "?=") != 0)
        return field;
    const size_t digits = length - (sizeof prefix - 1) - 2;
    size_t bytes = 0;
    *owned = calloc (1, digits + 1);
    const bool good =
        *owned != NULL &&
        sodium_base642bin ((uint8_t *) *owned, digits, field + sizeof prefix - 1, digits, NULL,
                           &bytes, NULL, sodium_base64_VARIANT_ORIGINAL) == 0 &&
        utf8_is_valid (*owned, bytes) && strlen (*owned) == bytes;
    return good ? *owned : NULL;
}

static bool field_is (const call_t *call, const char *name, const char *wanted)
{
    const http_request_t *request = call->exchange->request;
    char *owned;
    const char *text = decode_field (http_request_field (request, name), &owned);
    const bool good = text != NULL && wanted != NULL && strcmp (text, wanted) == 0;
    free (owned);
    return good;
}

static bool refuse_field (call_t *call, const char *name)
{
    char text[160];
    snprintf (text, sizeof text, "Header mismatch: %.100s is not what the body says", name);
    call_error (call, 400, RPC_HEADER, text, NULL);
    return false;
}

/* An argument as a field writes it. False: none that a field can have. */
static bool argument_text (char *out, size_t size, const json_t *value)
{
    if (json_is_boolean (value))
        snprintf (out, size, "%s", json_is_true (value) ? "true" : "false");
    else if (json_is_integer (value))
        snprintf (out, size, "%" JSON_INTEGER_FORMAT, json_integer_value (value));
    else if (json_is_string (value)) /* a NUL cannot stand in a field */
        return strlen (json_string_value (value)) == json_string_length (value) &&
               (size_t) snprintf (out, size, "%s", json_string_value (value)) < size;
    else
        return false;
    return true;
}

static bool judge_arguments_fields (call_t *call)
{
    char text[4096];
    const char *name = call_text (call, "name");
    const json_t *arguments = json_object_get (call->params, "arguments");
    const tool_t *tool =
        name != NULL ? tools_find (call->tools, name, call->exchange->principal->roles) : NULL;
    for (size_t i = 0; tool != NULL && i < tool->headers_count; i++) {
        const tool_header_t *header = &tool->headers[i];
        const json_t *value = json_object_get (arguments, header->property);
        const bool given = http_request_count (call->exchange->request, header->field) > 0;
        const bool good =
            value == NULL || json_is_null (value)
                ? !given
                : argument_text (text, sizeof text, value) && field_is (call, header->field, text);
        if (!good)
            return refuse_field (call, header->field);
    }
    return true;
}

static bool judge_fields (call_t *call)
{
    const bool is_tool = strcmp (call->method, "tools/call") == 0;
    const bool has_name = is_tool || strcmp (call->method, "tasks/get") == 0 ||
                          strcmp (call->method, "tasks/update") == 0 ||
                          strcmp (call->method, "tasks/cancel") == 0;
    if (!field_is (call, "mcp-method", call->method))
        return refuse_field (call, "Mcp-Method");
    if (has_name && !field_is (call, "mcp-name", call_text (call, is_tool ? "name" : "taskId")))
        return refuse_field (call, "Mcp-Name");
    return !is_tool || judge_arguments_fields (call);
}

static bool judge_meta (call_t *call)
{
    char data[160];
    const char *version = json_string_value (call_meta (call, "protocolVersion"));
    const json_t *capabilities = call_meta (call, "clientCapabilities");
    const char *level = json_string_value (call_meta (call, "logLevel"));
    if (version == NULL || !json_is_object (capabilities)) {
        call_error (call, 400, RPC_PARAMS,
                    "params._meta has no " META_PREFIX "protocolVersion, or no " META_PREFIX
                    "clientCapabilities",
                    NULL);
        return false;
    }
    if (!field_is (call, "mcp-protocol-version", version))
        return refuse_field (call, "MCP-Protocol-Version");
    if (strcmp (version, MCP_2026) != 0) {
        char *text = trees_text (call_meta (call, "protocolVersion"), JSON_ENCODE_ANY);
        snprintf (data, sizeof data, "{\"supported\":[\"%s\",\"%s\"],\"requested\":%.60s}",
                  MCP_2026, MCP_2025_11, text != NULL && strlen (text) < 60 ? text : "\"?\"");
        free (text);
        call_error (call, 400, RPC_VERSION, "Unsupported protocol version", data);
        return false;
    }
    call->capabilities = capabilities_read (capabilities);
    if (level != NULL && level_parse (level) >= 0)
        call->level = level_parse (level);
    return true;
}

/* Methods. */

static void discover (call_t *call)
{
    bytes_t out = BYTES_INIT;
    static const char capabilities[] =
        "{\"tools\":{\"listChanged\":true},\"extensions\":{\"io.modelcontextprotocol/tasks\":{}}}";
    json_writer_t writer = call_result (call, &out, NULL);
    json_write_key (&writer, "supportedVersions");
    json_write_array_begin (&writer);
    json_write_text (&writer, MCP_2026);
    json_write_text (&writer, MCP_2025_11);
    json_write_text (&writer, MCP_2025_06);
    json_write_array_end (&writer);
    json_write_key (&writer, "capabilities");
    json_write_raw (&writer, capabilities, strlen (capabilities));
    if (call->tools->instructions != NULL) {
        json_write_key (&writer, "instructions");
        json_write_text (&writer, call->tools->instructions);
    }
    json_write_key (&writer, "ttlMs");
    json_write_uint (&writer, 300000);
    json_write_key (&writer, "cacheScope");
    json_write_text (&writer, "public");
    call_finish (call, &writer);
}

static void write_requests (json_writer_t *writer, const tmq_inbox_t *inbox)
{
    json_write_key (writer, "inputRequests");
    json_write_object_begin (writer);
    for (size_t i = 0; i < inbox->count; i++) {
        json_t *request = follow_request (&inbox->questions[i]);
        char *text = trees_text (request, JSON_COMPACT);
        json_write_foreign_key (writer, inbox->questions[i].key);
        json_write_raw (writer, text != NULL ? text : "{}", text != NULL ? strlen (text) : 2);
        free (text);
        json_decref (request);
    }
    json_write_object_end (writer);
}

void modern_write_task (call_t *call, json_writer_t *writer, const tmq_task_t *task,
                        const tmq_inbox_t *inbox)
{
    const char *status = render_status (task, ERA_2026);
    render_task (writer, task, ERA_2026);
    if (strcmp (status, "completed") == 0 || strcmp (status, "failed") == 0)
        call_outcome (call, writer, task, false);
    if (inbox != NULL)
        write_requests (writer, inbox);
}

static void show_detailed (call_t *call, const tmq_task_t *task, const tmq_inbox_t *inbox)
{
    bytes_t out = BYTES_INIT;
    json_writer_t writer = call_result (call, &out, NULL);
    modern_write_task (call, &writer, task, inbox);
    call_finish (call, &writer);
}

/* The record is kept while the questions come. */
static void questions_came (call_t *call, const tmq_inbox_t *inbox)
{
    static const tmq_inbox_t none = {0};
    tmq_task_t *task = call->record;
    call->record = NULL;
    show_detailed (call, task, inbox != NULL ? inbox : &none);
    tmq_task_free (task);
}

static void got (call_t *call, const tmq_task_t *task)
{
    if (task->status != TMQ_STATUS_INPUT_REQUIRED) {
        show_detailed (call, task, NULL);
        return;
    }
    follow_keep (call);
    follow_questions (call, questions_came);
}

static void tasks_get (call_t *call)
{
    if (call_task_id (call))
        follow_get_result (call, got);
}

static void update_done (call_t *call, const tmq_task_t *task)
{
    (void) task;
    call_done (call);
}

static void update_theirs (call_t *call, const tmq_task_t *task)
{
    (void) task;
    follow_answer (call, json_object_get (call->params, "inputResponses"), update_done);
}

static void tasks_update (call_t *call)
{
    if (call_task_id (call))
        follow_get (call, update_theirs);
}

static void cancel_theirs (call_t *call, const tmq_task_t *task)
{
    static const tmq_error_t full = {
        .code = TMQ_OVERLOADED,
        .text = "as many cancels wait as 'cancels_max' allows, or half as many are yours"};
    if (tmq_status_terminal (task->status) || follow_cancel (call, "cancelled by its caller"))
        call_done (call);
    else
        call_code (call, TMQ_OVERLOADED, &full);
}

static void tasks_cancel (call_t *call)
{
    if (call_task_id (call))
        follow_get (call, cancel_theirs);
}

static const struct {
    const char *method;
    void (*run) (call_t *call);
    bool of_tasks; /* of the extension */
} methods[] = {{"server/discover", discover, false},
               {"tools/list", tool_list, false},
               {"tools/call", tool_call, false},
               {"tasks/get", tasks_get, true},
               {"tasks/update", tasks_update, true},
               {"tasks/cancel", tasks_cancel, true},
               {"subscriptions/listen", listen_begin, false}};

bool modern_has_tasks (call_t *call)
{
    if ((call->capabilities & CAPABILITY_TASKS) != 0)
        return true;
    call_error (call, 400, RPC_CAPABILITY, "Missing required client capability",
                "{\"requiredCapabilities\":{\"extensions\":{\"" META_PREFIX "tasks\":{}}}}");
    return false;
}

void modern_run (call_t *call)
{
    if (!judge_meta (call) || !judge_fields (call))
        return;
    for (size_t i = 0; i < sizeof methods / sizeof *methods; i++) {
        if (strcmp (methods[i].method, call->method) != 0)
            continue;
        if (!methods[i].of_tasks || modern_has_tasks (call))
            methods[i].run (call);
        return;
    }
    call_error (call, 404, RPC_METHOD, "Method not found", NULL);
}
