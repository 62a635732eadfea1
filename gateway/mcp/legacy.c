/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* MCP 2025-11-25, and 2025-06-18, which has no tasks: a session says once what holds for all. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/trees.h"
#include "mcp/eras.h"
#include "mcp/follow.h"
#include "mcp/listen.h"
#include "timestamp.h"

const char *const MCP_2025_11 = "2025-11-25";
const char *const MCP_2025_06 = "2025-06-18";

enum { LIST_PAGE = 50 };

bool legacy_has_tasks (const call_t *call)
{
    return strcmp (call->session.version, MCP_2025_11) == 0;
}

bool legacy_session (call_t *call)
{
    const http_request_t *request = call->exchange->request;
    const char *text = http_request_field (request, "mcp-session-id");
    const char *version = http_request_field (request, "mcp-protocol-version");
    if (text == NULL) {
        call_error (call, 400, RPC_REQUEST, "Mcp-Session-Id is missing: initialize comes first",
                    NULL);
        return false;
    }
    if (!mcp_session_open (&call->session, &call->mcp->sessions, &call->mcp->service->seal, text,
                           call->exchange->principal->name, clock_ms (CLOCK_REALTIME))) {
        call_error (call, 404, RPC_NO_SESSION, "Session not found", NULL);
        return false;
    }
    if (version != NULL && strcmp (version, call->session.version) != 0) {
        call_error (call, 400, RPC_REQUEST, "MCP-Protocol-Version is not that of the session",
                    NULL);
        return false;
    }
    call->capabilities = call->session.capabilities;
    call->level = mcp_session_level (&call->mcp->sessions, &call->session);
    return true;
}

/* Methods. */

static void initialize (call_t *call)
{
    const char *wanted = call_text (call, "protocolVersion");
    const json_t *capabilities = json_object_get (call->params, "capabilities");
    const bool old = wanted != NULL && strcmp (wanted, MCP_2025_06) == 0;
    mcp_session_t *session = &call->session;
    bytes_t out = BYTES_INIT;
    mcp_session_make (session);
    snprintf (session->version, sizeof session->version, "%s", old ? MCP_2025_06 : MCP_2025_11);
    snprintf (session->principal, sizeof session->principal, "%s", call->exchange->principal->name);
    session->capabilities = capabilities_read (capabilities) & ~(unsigned) CAPABILITY_TASKS;
    if (!mcp_session_seal (session, &call->mcp->service->seal, &call->session_text,
                           clock_ms (CLOCK_REALTIME))) {
        call_error (call, 200, RPC_INTERNAL, "memory is exhausted", NULL);
        return;
    }
    json_writer_t writer = call_result (call, &out, NULL);
    json_write_key (&writer, "protocolVersion");
    json_write_text (&writer, session->version);
    json_write_key (&writer, "capabilities");
    const char *offered = "{\"tools\":{\"listChanged\":true},\"logging\":{}}";
    if (!old && call->mcp->service->anybody != NULL)
        offered = "{\"tools\":{\"listChanged\":true},\"logging\":{},\"tasks\":{\"cancel\":{},"
                  "\"requests\":{\"tools\":{\"call\":{}}}}}";
    else if (!old)
        offered =
            "{\"tools\":{\"listChanged\":true},\"logging\":{},\"tasks\":{\"list\":{},\"cancel\":{},"
            "\"requests\":{\"tools\":{\"call\":{}}}}}";
    json_write_raw (&writer, offered, strlen (offered));
    render_server_info (&writer, "serverInfo");
    if (call->tools->instructions != NULL) {
        json_write_key (&writer, "instructions");
        json_write_text (&writer, call->tools->instructions);
    }
    call_finish (call, &writer);
}

static void set_level (call_t *call)
{
    const int level = level_parse (call_text (call, "level"));
    if (level < 0) {
        call_error (call, 200, RPC_PARAMS, "params.level is none of debug to emergency", NULL);
        return;
    }
    mcp_session_set_level (&call->mcp->sessions, &call->session, call->exchange->account, level);
    call_done (call);
}

static void show_task (call_t *call, const tmq_task_t *task)
{
    bytes_t out = BYTES_INIT;
    json_writer_t writer = call_result (call, &out, NULL);
    render_task (&writer, task, ERA_2025);
    call_finish (call, &writer);
}

static void tasks_get (call_t *call)
{
    if (call_task_id (call))
        follow_get (call, show_task);
}

/* Blocks until the task has ended; its questions come on this stream meanwhile. */
static void follow_theirs (call_t *call, const tmq_task_t *task)
{
    (void) task;
    call->related = true;
    call->leaves_task = true;
    call->endless = true;
    call->wait_max_ms = FOLLOW_WAIT_MS;
    follow (call, 250);
}

static void tasks_result (call_t *call)
{
    if (call_task_id (call))
        follow_get (call, follow_theirs);
}

static void cancelled (void *context, tmq_completion_t *completion)
{
    call_t *call = context;
    if (completion->code == TMQ_OK)
        show_task (call, completion->task);
    else if (completion->code == TMQ_WRONG_STATUS)
        call_error (call, 200, RPC_PARAMS, "the task has ended and cannot be cancelled", NULL);
    else
        call_code (call, completion->code, completion->error);
}

static void cancel_theirs (call_t *call, const tmq_task_t *task)
{
    tmq_error_t error;
    const link_call_t to = {cancelled, call, &call->exchange->ticket, owner_of (call->exchange)};
    if (tmq_status_terminal (task->status)) {
        call_error (call, 200, RPC_PARAMS, "the task has ended and cannot be cancelled", NULL);
        return;
    }
    const int code =
        link_cancel (call->exchange->link, to, &call->task, "cancelled by its caller", &error);
    if (code != TMQ_OK)
        call_code (call, code, &error);
}

static void tasks_cancel (call_t *call)
{
    if (call_task_id (call))
        follow_get (call, cancel_theirs);
}

/* Lists. The page of the broker may have tasks that are no calls of tools: they are left out. */

static void list_came (void *context, tmq_completion_t *completion)
{
    call_t *call = context;
    bytes_t out = BYTES_INIT;
    bytes_t next = BYTES_INIT;
    if (completion->code != TMQ_OK) {
        if (completion->code == TMQ_BAD_CURSOR)
            call_error (call, 200, RPC_PARAMS, "Invalid cursor", NULL);
        else
            call_code (call, completion->code, completion->error);
        return;
    }
    const tmq_task_list_t *list = completion->list;
    json_writer_t writer = call_result (call, &out, NULL);
    json_write_key (&writer, "tasks");
    json_write_array_begin (&writer);
    for (size_t i = 0; i < list->count; i++) {
        if (!call_owns (call, list->tasks[i]))
            continue;
        json_write_object_begin (&writer);
        render_task (&writer, list->tasks[i], ERA_2025);
        json_write_object_end (&writer);
    }
    json_write_array_end (&writer);
    if (list->next[0] != '\0') {
        seal_close (&call->mcp->service->seal, &next, SEAL_CURSOR, list->next, strlen (list->next),
                    0);
        json_write_key (&writer, "nextCursor");
        json_write_string (&writer, next.data, next.length);
        bytes_free (&next);
    }
    call_finish (call, &writer);
}

static void tasks_list (call_t *call)
{
    tmq_list_query_t query = {.limit = LIST_PAGE};
    const tmq_label_t label = {PRINCIPAL_LABEL, call->exchange->principal->name};
    const link_call_t to = {list_came, call, &call->exchange->ticket, owner_of (call->exchange)};
    bytes_t cursor = BYTES_INIT;
    tmq_error_t error;
    const bool given = json_object_get (call->params, "cursor") != NULL;
    if (given && seal_open (&call->mcp->service->seal, &cursor, SEAL_CURSOR,
                            call_text (call, "cursor"), clock_ms (CLOCK_REALTIME)) != SEAL_GOOD) {
        call_error (call, 200, RPC_PARAMS, "Invalid cursor", NULL);
        return;
    }
    query.cursor = given ? bytes_text (&cursor) : NULL;
    query.filter.labels = &label;
    query.filter.labels_count = 1;
    const int code = link_list (call->exchange->link, to, &query, &error);
    bytes_free (&cursor);
    if (code == TMQ_BAD_CURSOR || code == TMQ_INVALID)
        call_error (call, 200, RPC_PARAMS, "Invalid cursor", NULL);
    else if (code != TMQ_OK)
        call_code (call, code, &error);
}

/* What needs no answer. */

static bool same_id (const call_t *call, const json_t *id)
{
    char *text = trees_text (id, JSON_COMPACT | JSON_ENCODE_ANY);
    const bool same = text != NULL && strlen (text) == call->id.length &&
                      memcmp (text, call->id.text, call->id.length) == 0;
    free (text);
    return same;
}

/* The client does not want the answer to a request any more. Tasks have a way of their own. */
static void notice_cancelled (call_t *call)
{
    const json_t *id = json_object_get (call->params, "requestId");
    for (call_t *other = call->mcp->calls; other != NULL; other = other->next)
        if (other != call && other->is_followed && !other->related && other->era == ERA_2025 &&
            strcmp (other->session.id, call->session.id) == 0 && same_id (other, id))
            follow_cancel (other, "cancelled by its caller");
}

static const struct {
    const char *method;
    void (*run) (call_t *call);
    bool of_tasks;
} methods[] = {{"initialize", initialize, false},      {"ping", call_done, false},
               {"logging/setLevel", set_level, false}, {"tools/list", tool_list, false},
               {"tools/call", tool_call, false},       {"tasks/get", tasks_get, true},
               {"tasks/result", tasks_result, true},   {"tasks/list", tasks_list, true},
               {"tasks/cancel", tasks_cancel, true}};

void legacy_run (call_t *call)
{
    const bool begins = strcmp (call->method, "initialize") == 0;
    if (!begins && !legacy_session (call))
        return;
    if (call->id.length == 0) {
        if (strcmp (call->method, "notifications/cancelled") == 0)
            notice_cancelled (call);
        call_empty (call, 202);
        return;
    }
    for (size_t i = 0; i < sizeof methods / sizeof *methods; i++)
        if (strcmp (methods[i].method, call->method) == 0 &&
            (!methods[i].of_tasks || legacy_has_tasks (call))) {
            methods[i].run (call);
            return;
        }
    call_error (call, 200, RPC_METHOD, "Method not found", NULL);
}

/* Answers of the client. */

/* What a sealed text says behind whose it is. NULL: it is none of this principal. */
static const char *open_seal (const call_t *call, seal_purpose_t purpose, const char *text,
                              bytes_t *plain)
{
    const char *name = call->exchange->principal->name;
    const bool good = seal_open (&call->mcp->service->seal, plain, purpose, text,
                                 clock_ms (CLOCK_REALTIME)) == SEAL_GOOD &&
                      bytes_text (plain) != NULL;
    const char *at = good ? bytes_text (plain) : "";
    const size_t length = strlen (name);
    return good && strncmp (at, name, length) == 0 && at[length] == ' ' ? at + length + 1 : NULL;
}

/* The task that such a text begins with, into the call, and what follows. False: it has none. */
static bool read_task (call_t *call, const char *text, const char **rest)
{
    char task[37];
    if (text == NULL || strlen (text) < sizeof task - 1)
        return false;
    snprintf (task, sizeof task, "%s", text);
    *rest = text + sizeof task - 1;
    return tmq_id_parse (&call->task, task) == TMQ_OK;
}

static void answer_taken (call_t *call, const tmq_task_t *task)
{
    (void) task;
    call_empty (call, 202);
}

void legacy_answered (call_t *call)
{
    const char *id = json_string_value (json_object_get (call->message, "id"));
    json_t *result = json_object_get (call->message, "result");
    bytes_t plain = BYTES_INIT;
    const char *key;
    if (!legacy_session (call))
        return;
    if (id == NULL || strncmp (id, "q.", 2) != 0 ||
        !read_task (call, open_seal (call, SEAL_MCP_QUESTION, id + 2, &plain), &key)) {
        bytes_free (&plain);
        call_empty (call, 202); /* of a request that is not ours, or is over */
        return;
    }
    json_t *answers = json_object ();
    if (json_is_object (result))
        json_object_set (answers, key, result);
    else
        json_object_set_new (answers, key, json_pack ("{s:s}", "action", "cancel"));
    bytes_free (&plain);
    follow_answer (call, answers, answer_taken);
    json_decref (answers);
}

/* GET: the stream of the session, or one that was cut goes on where it was. */

static void resume (call_t *call, const tmq_task_t *task)
{
    (void) task;
    call->leaves_task = true;
    call->endless = true;
    call->wait_max_ms = FOLLOW_WAIT_MS;
    follow (call, 0);
}

/* rest: how the call comes to its task, and its id. */
static void resume_call (call_t *call, const char *rest)
{
    call->related = rest[0] == 'r';
    call->id_owned = strdup (rest[0] != '\0' ? rest + 1 : "");
    if (call->id_owned == NULL) {
        call_error (call, 200, RPC_INTERNAL, "memory is exhausted", NULL);
        return;
    }
    call->id = (slice_t){call->id_owned, strlen (call->id_owned)};
    follow_get (call, resume);
}

void legacy_get (call_t *call)
{
    const http_request_t *request = call->exchange->request;
    const char *last = http_request_field (request, "last-event-id");
    const char *accept = http_request_field (request, "accept");
    bytes_t plain = BYTES_INIT;
    const char *rest;
    if (!legacy_session (call))
        return;
    if (accept != NULL && strstr (accept, "*/*") == NULL &&
        strstr (accept, "text/event-stream") == NULL) {
        call_error (call, 406, RPC_REQUEST, "Accept has text/event-stream", NULL);
        return;
    }
    if (last == NULL) {
        listen_session (call);
        return;
    }
    const char *text = open_seal (call, SEAL_MCP_STREAM, last, &plain);
    if (read_task (call, text, &rest))
        resume_call (call, rest);
    else if (text == NULL || !listen_session_again (call, text))
        call_error (call, 400, RPC_PARAMS, "Last-Event-ID is of no stream of this session", NULL);
    bytes_free (&plain);
}

void legacy_end (call_t *call)
{
    if (!legacy_session (call))
        return;
    mcp_session_end (&call->mcp->sessions, &call->session, call->exchange->account);
    listen_end (call);
    call_empty (call, 204);
}
