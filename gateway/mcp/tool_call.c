/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* tools/call: which tool, may it be called so, are the arguments good; then the task. */
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/trees.h"
#include "ids.h"
#include "mcp/eras.h"
#include "mcp/follow.h"
#include "rest/spec.h"
#include "rest/trace.h"
#include "timestamp.h"

enum { PAGE = 100, DIGEST_BYTES = 16 };

/* tools/list. */

/* Where the page begins. False: answered. */
static bool read_place (call_t *call, size_t *at)
{
    bytes_t plain = BYTES_INIT;
    *at = 0;
    if (json_object_get (call->params, "cursor") == NULL)
        return true;
    const bool good =
        seal_open (&call->mcp->service->seal, &plain, SEAL_CURSOR, call_text (call, "cursor"),
                   clock_ms (CLOCK_REALTIME)) == SEAL_GOOD &&
        bytes_text (&plain) != NULL && sscanf (bytes_text (&plain), "mcp tools %zu", at) == 1;
    bytes_free (&plain);
    if (!good)
        call_error (call, 200, RPC_PARAMS, "Invalid cursor", NULL);
    return good;
}

void tool_list (call_t *call)
{
    const tools_t *tools = call->tools;
    const unsigned roles = call->exchange->principal->roles;
    bytes_t out = BYTES_INIT;
    bytes_t next = BYTES_INIT;
    char text[32];
    size_t at;
    size_t shown = 0;
    if (!read_place (call, &at))
        return;
    json_writer_t writer = call_result (call, &out, NULL);
    json_write_key (&writer, "tools");
    json_write_array_begin (&writer);
    for (; at < tools->count && shown < PAGE; at++) {
        const tool_t *tool = &tools->list[at];
        const char *json = call->era == ERA_2025 ? tool->shown_25 : tool->shown;
        if (!tool_shows (tool, roles))
            continue;
        json_write_raw (&writer, json, strlen (json));
        shown++;
    }
    json_write_array_end (&writer);
    if (at < tools->count) {
        const int length = snprintf (text, sizeof text, "mcp tools %zu", at);
        seal_close (&call->mcp->service->seal, &next, SEAL_CURSOR, text, (size_t) length, 0);
        json_write_key (&writer, "nextCursor");
        json_write_string (&writer, next.data, next.length);
        bytes_free (&next);
    }
    if (call->era == ERA_2026) {
        json_write_key (&writer, "ttlMs");
        json_write_uint (&writer, 300000);
        json_write_key (&writer, "cacheScope");
        json_write_text (&writer, tools->private ? "private" : "public");
    }
    call_finish (call, &writer);
}

/* Conditions. Each returns false when it has answered. */

static bool find_tool (call_t *call)
{
    char text[160];
    const char *name = call_text (call, "name");
    if (name != NULL)
        call->tool = tools_find (call->tools, name, call->exchange->principal->roles);
    if (call->tool != NULL) {
        call->tool_name = call->tool->name;
        return true;
    }
    snprintf (text, sizeof text, "Unknown tool: %.100s", name != NULL ? name : "params.name");
    call_error (call, 200, RPC_PARAMS, text, NULL);
    return false;
}

/* By the present time: a body that came slowly is no call of long ago. */
static bool judge_rate (call_t *call)
{
    service_t *service = call->mcp->service;
    const uint64_t *numbers = service->settings.numbers;
    uint64_t left, wait_ms;
    if (rate_take (&call->exchange->principal->calls, numbers[SETTING_CALL_RATE],
                   numbers[SETTING_CALL_RATE_BURST], clock_us (CLOCK_MONOTONIC), &left, &wait_ms))
        return true;
    service->numbers.rate_limited++;
    const tmq_error_t error = {.code = TMQ_LIMIT,
                               .retry_after_ms = (uint32_t) wait_ms,
                               .text = "more calls of tools in a second than 'call_rate' allows"};
    call_code (call, TMQ_LIMIT, &error);
    return false;
}

static void lacks (call_t *call, const char *capabilities)
{
    char data[400];
    snprintf (data, sizeof data, "{\"requiredCapabilities\":%.340s}", capabilities);
    if (call->era == ERA_2026)
        call_error (call, 400, RPC_CAPABILITY, "Missing required client capability", data);
    else
        call_error (call, 200, RPC_PARAMS, "Missing required client capability", data);
}

/* Is it a task, and may it be one? */
static bool judge_support (call_t *call)
{
    const task_support_t support = call->tool->support;
    if (call->era == ERA_2026) {
        call->as_task = (call->capabilities & CAPABILITY_TASKS) != 0 && support != TASK_FORBIDDEN;
        if (support == TASK_REQUIRED && !call->as_task) {
            lacks (call, "{\"extensions\":{\"" META_PREFIX "tasks\":{}}}");
            return false;
        }
        return true;
    }
    call->as_task = json_object_get (call->params, "task") != NULL &&
                    strcmp (call->session.version, MCP_2025_11) == 0;
    if (call->as_task && support == TASK_FORBIDDEN) {
        call_error (call, 200, RPC_METHOD, "this tool cannot be called as a task", NULL);
        return false;
    }
    if (!call->as_task && support == TASK_REQUIRED) {
        call_error (call, 200, RPC_METHOD, "this tool can only be called as a task", NULL);
        return false;
    }
    return true;
}

static bool judge_needs (call_t *call)
{
    const char *key;
    json_t *value;
    json_object_foreach ((json_t *) call->tool->needs, key, value)
    {
        bool has = false;
        for (unsigned one = 1; one <= CAPABILITY_ROOTS; one <<= 1)
            has |= strcmp (capability_name (one), key) == 0 && (call->capabilities & one) != 0;
        if (has)
            continue;
        char *text = trees_text (call->tool->needs, JSON_COMPACT);
        lacks (call, text != NULL ? text : "{}");
        free (text);
        return false;
    }
    return true;
}

static bool judge_arguments (call_t *call, const json_t *arguments)
{
    bytes_t flaws = BYTES_INIT;
    bytes_t text = BYTES_INIT;
    bytes_t out = BYTES_INIT;
    if (schema_takes (call->tool->input, arguments, &flaws))
        return true;
    bytes_append_text (&text, "The arguments do not fit the tool's inputSchema:\n");
    bytes_append (&text, flaws.data, flaws.length);
    json_writer_t writer = call_result (call, &out, NULL);
    render_tool_error (&writer, (const char *) text.data, text.length);
    bytes_free (&flaws);
    bytes_free (&text);
    call_finish (call, &writer);
    return false;
}

/* Equal arguments of a tool have one digest, however they are written. */
static bool make_digest (call_t *call, const json_t *arguments)
{
    crypto_generichash_state state;
    uint8_t hash[DIGEST_BYTES];
    char *text = trees_text (arguments, JSON_COMPACT | JSON_SORT_KEYS);
    if (text == NULL) {
        call_error (call, 200, RPC_INTERNAL, "memory is exhausted", NULL);
        return false;
    }
    crypto_generichash_init (&state, NULL, 0, sizeof hash);
    crypto_generichash_update (&state, (const uint8_t *) call->tool->name,
                               strlen (call->tool->name) + 1);
    crypto_generichash_update (&state, (const uint8_t *) text, strlen (text));
    crypto_generichash_final (&state, hash, sizeof hash);
    hex_encode (call->digest, hash, sizeof hash);
    free (text);
    return true;
}

/* Questions and states of 2026. */

/* The task of requestState; all zero: none yet. False: answered. */
static bool read_state (call_t *call)
{
    const json_t *given = json_object_get (call->params, "requestState");
    const char *text = json_string_value (given);
    bytes_t plain = BYTES_INIT;
    char name[80];
    char task[40];
    char tool[72];
    char digest[36];
    if (given == NULL)
        return true;
    const bool good =
        text != NULL &&
        seal_open (&call->mcp->service->seal, &plain, SEAL_MCP_STATE, text,
                   clock_ms (CLOCK_REALTIME)) == SEAL_GOOD &&
        bytes_text (&plain) != NULL &&
        sscanf (bytes_text (&plain), "%79s %39s %71s %35s", name, task, tool, digest) == 4 &&
        strcmp (name, call->exchange->principal->name) == 0 &&
        strcmp (tool, call->tool->name) == 0 && strcmp (digest, call->digest) == 0 &&
        tmq_id_parse (&call->task, task) == TMQ_OK;
    bytes_free (&plain);
    if (!good)
        call_error (call, 200, RPC_PARAMS, "requestState is not valid for this call", NULL);
    return good;
}

static bool read_answers (call_t *call)
{
    const json_t *answers = json_object_get (call->params, "inputResponses");
    const char *key;
    json_t *value;
    bool good = answers == NULL || json_is_object (answers);
    json_object_foreach ((json_t *) answers, key, value)
    {
        good = good && json_is_object (value);
    }
    if (good && answers != NULL)
        call->answers = trees_text (answers, JSON_COMPACT);
    good = good && (call->answers == NULL || strlen (call->answers) <= CALL_ANSWERS_BYTES_MAX);
    if (!good)
        call_error (call, 200, RPC_PARAMS,
                    "inputResponses is an object of objects with at most 65536 bytes", NULL);
    return good;
}

/* What the tool asks before there is a task; false: answered. */
static bool ask_before (call_t *call)
{
    const json_t *answers = json_object_get (call->params, "inputResponses");
    const char *key;
    json_t *value;
    if (call->tool->asks == NULL)
        return true;
    if (call->era == ERA_2025) {
        call_error (call, 200, RPC_PARAMS,
                    "this tool asks before it begins, which clients of 2026-07-28 can answer",
                    NULL);
        return false;
    }
    json_t *requests = json_object ();
    unsigned needed = 0;
    json_object_foreach ((json_t *) call->tool->asks, key, value)
    {
        if (json_is_object (json_object_get (answers, key)))
            continue;
        json_object_set (requests, key, value);
        needed |= capability_of_method (json_string_value (json_object_get (value, "method")));
    }
    const bool open = json_object_size (requests) > 0;
    const bool can = (needed & ~call->capabilities) == 0;
    if (open && can)
        follow_ask_2026 (call, requests);
    else if (open)
        lacks (call, "{\"elicitation\":{}}");
    json_decref (requests);
    return !open;
}

/* The task. */

typedef struct task_room {
    tmq_submit_t submit;
    tmq_label_t labels[TMQ_LABELS_MAX];
    char *owned;
    char *meta;
    char dedup_key[80];
    char trace[TMQ_TRACE_BYTES_MAX + 1];
} task_room_t;

/* What the worker may want to know of the call. */
static char *make_meta (const call_t *call)
{
    const bool modern = call->era == ERA_2026;
    json_t *mcp = json_pack ("{s:s}", "protocolVersion", modern ? MCP_2026 : call->session.version);
    json_t *token = json_object_get (json_object_get (call->params, "_meta"), "progressToken");
    json_t *info = (json_t *) call_meta (call, "clientInfo");
    json_t *answers = json_object_get (call->params, "inputResponses");
    if (token != NULL)
        json_object_set (mcp, "progressToken", token);
    if (info != NULL)
        json_object_set (mcp, "clientInfo", info);
    if (answers != NULL)
        json_object_set (mcp, "inputResponses", answers);
    json_object_set_new (mcp, "tool", json_string (call->tool->name));
    json_t *can = json_array ();
    for (unsigned one = 1; one <= CAPABILITY_ROOTS; one <<= 1)
        if ((call->capabilities & one) != 0)
            json_array_append_new (can, json_string (capability_name (one)));
    json_object_set_new (mcp, "capabilities", can);
    json_t *meta = json_pack ("{s:o}", "mcp", mcp);
    char *text = trees_text (meta, JSON_COMPACT);
    json_decref (meta);
    return text;
}

static void put_label (task_room_t *room, const char *key, const char *value)
{
    room->labels[room->submit.labels_count++] = (tmq_label_t){key, value};
}

static void put_times (const call_t *call, tmq_submit_t *submit)
{
    const json_t *ttl = json_object_get (json_object_get (call->params, "task"), "ttl");
    if (call->era == ERA_2026 || !json_is_integer (ttl))
        return;
    const json_int_t ms = json_integer_value (ttl);
    const uint64_t most = call->tool->ttl_max_ms;
    submit->ttl_ms = ms < TOOL_TTL_MS_MIN   ? TOOL_TTL_MS_MIN
                     : (uint64_t) ms > most ? most
                                            : (uint64_t) ms;
}

static void put_trace (const call_t *call, task_room_t *room)
{
    const json_t *meta = json_object_get (call->params, "_meta");
    const char *parent = json_string_value (json_object_get (meta, "traceparent"));
    const char *state = json_string_value (json_object_get (meta, "tracestate"));
    room->submit.trace = trace_text (room->trace, parent, state);
    if (room->submit.trace == NULL)
        room->submit.trace = trace_of (call->exchange, room->trace);
}

static void fill_room (const call_t *call, task_room_t *room)
{
    const tool_t *tool = call->tool;
    const char *principal = call->exchange->principal->name;
    uint8_t hash[DIGEST_BYTES];
    char digits[DIGEST_BYTES * 2 + 1];
    room->submit = tool->submit;
    memcpy (room->labels, tool->labels, sizeof tool->labels);
    room->submit.labels = room->labels;
    put_label (room, PRINCIPAL_LABEL, principal);
    put_label (room, TOOL_LABEL, tool->name);
    put_label (room, "gw.gen", call->era == ERA_2026 ? "2026" : "2025");
    if (call->era == ERA_2025 && call->as_task)
        put_label (room, SESSION_LABEL, call->session.id);
    slice_t payload = tool->whole_params ? input_member (call->text, "params")
                                         : call_raw (call, "arguments", &room->owned);
    if (payload.length == 0)
        payload = (slice_t){"{}", 2};
    room->submit.payload = payload.text;
    room->submit.payload_bytes = payload.length;
    room->submit.content_type = "application/json";
    room->submit.method = "tools/call";
    room->submit.meta = room->meta = make_meta (call);
    tmq_id_make (&room->submit.id);
    put_times (call, &room->submit);
    put_trace (call, room);
    if (!tool->dedup)
        return;
    crypto_generichash (hash, sizeof hash, (const uint8_t *) principal, strlen (principal), NULL,
                        0);
    hex_encode (digits, hash, sizeof hash);
    snprintf (room->dedup_key, sizeof room->dedup_key, "mcp:%s:%.32s", digits, call->digest);
    room->submit.dedup_key = room->dedup_key;
}

/* The task is there: what the call becomes. */
static void go_on (call_t *call)
{
    const bool modern = call->era == ERA_2026;
    call->wait_max_ms = call->tool->wait_max_ms;
    if (call->as_task && (!modern || call->tool->support == TASK_REQUIRED))
        follow_handle (call);
    else
        follow (call, call->tool->inline_ms);
}

static void submitted (void *context, tmq_completion_t *completion)
{
    call_t *call = context;
    if (completion->code != TMQ_OK || completion->receipts == NULL) {
        call_code (call, completion->code, completion->error);
        return;
    }
    call->task = completion->receipts->id;
    call->made_task = !completion->receipts->existing;
    call->leaves_task |= !call->made_task; /* somebody else waits for it */
    go_on (call);
}

static void submit (call_t *call)
{
    task_room_t room = {0};
    tmq_error_t error;
    fill_room (call, &room);
    const link_call_t to = {submitted, call, &call->exchange->ticket, owner_of (call->exchange)};
    call->task = room.submit.id; /* for a client that leaves before it is there */
    follow_from_now (call);
    const int code = link_submit (call->exchange->link, to, &room.submit, &error);
    free (room.owned);
    free (room.meta);
    if (code == TMQ_OK)
        call_lighten (call);
    else
        call_code (call, code, &error);
}

/* A retry that brings answers to the task's questions. */
static void answers_given (call_t *call, const tmq_task_t *task)
{
    (void) task;
    go_on (call);
}

static void give_answers (call_t *call, const tmq_task_t *task)
{
    (void) task;
    json_t *answers = call->answers != NULL ? json_loads (call->answers, 0, NULL) : NULL;
    follow_answer (call, answers, answers_given);
    json_decref (answers);
}

void tool_call (call_t *call)
{
    const json_t *given = json_object_get (call->params, "arguments");
    const json_t *token =
        json_object_get (json_object_get (call->params, "_meta"), "progressToken");
    if (!find_tool (call) || !judge_rate (call) || !judge_support (call) || !judge_needs (call))
        return;
    if (given != NULL && !json_is_object (given)) {
        call_error (call, 200, RPC_PARAMS, "params.arguments is an object", NULL);
        return;
    }
    if (json_string_length (token) > CALL_TOKEN_BYTES_MAX) {
        call_error (call, 200, RPC_PARAMS, "params._meta.progressToken has more than 1024 bytes",
                    NULL);
        return;
    }
    if (json_is_string (token) || json_is_integer (token))
        call->progress_token = token;
    json_t *arguments = given != NULL ? json_incref ((json_t *) given) : json_object ();
    const bool good = make_digest (call, arguments) &&
                      (call->era == ERA_2025 || (read_state (call) && read_answers (call))) &&
                      judge_arguments (call, arguments) && ask_before (call);
    json_decref (arguments);
    if (!good)
        return;
    call->leaves_task = call->era == ERA_2025 || call->as_task;
    if (id_is_zero (&call->task)) {
        submit (call);
    } else {
        follow_from_now (call);
        follow_get (call, give_answers);
    }
}
