/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

#include "mcp/render.h"

#include <jansson.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/trees.h"
#include "ids.h"

/* Status. */

/* A tool that failed in a way that its caller may read. */
static bool is_tool_error (const tmq_task_t *task)
{
    return task->status == TMQ_STATUS_FAILED && (task->result_bytes > 0 || task->error_code >= 0);
}

bool render_is_error (const tmq_task_t *task)
{
    return task->status == TMQ_STATUS_CANCELLED ||
           (task->status == TMQ_STATUS_FAILED && !is_tool_error (task));
}

const char *render_status (const tmq_task_t *task, era_t era)
{
    switch (task->status) {
    case TMQ_STATUS_INPUT_REQUIRED: return "input_required";
    case TMQ_STATUS_COMPLETED: return "completed";
    case TMQ_STATUS_CANCELLED: return "cancelled";
    case TMQ_STATUS_FAILED: return era == ERA_2026 && is_tool_error (task) ? "completed" : "failed";
    default: return "working";
    }
}

static const char *message_of (const tmq_task_t *task)
{
    if (task->status_message[0] != '\0' && task->status != TMQ_STATUS_FAILED)
        return task->status_message;
    if (task->status == TMQ_STATUS_FAILED)
        return task->error_message;
    if (task->status == TMQ_STATUS_CANCELLED)
        return task->cancel_message;
    if (task->status != TMQ_STATUS_QUEUED)
        return "";
    return task->failures > 0 ? "waiting for its next attempt" : "waiting for a worker";
}

static void write_plain (json_writer_t *writer, const char *key, const char *text)
{
    json_write_key (writer, key);
    json_write_string (writer, text, strlen (text));
}

void render_task (json_writer_t *writer, const tmq_task_t *task, era_t era)
{
    char id[37];
    const char *message = message_of (task);
    tmq_id_format (&task->id, id);
    write_plain (writer, "taskId", id);
    write_plain (writer, "status", render_status (task, era));
    if (message[0] != '\0')
        write_plain (writer, "statusMessage", message);
    json_write_key (writer, "createdAt");
    json_write_time (writer, (int64_t) task->created_at);
    json_write_key (writer, "lastUpdatedAt");
    json_write_time (writer, (int64_t) task->updated_at);
    json_write_key (writer, era == ERA_2026 ? "ttlMs" : "ttl");
    if (task->expires_at > task->created_at)
        json_write_uint (writer, task->expires_at - task->created_at);
    else
        json_write_null (writer);
    json_write_key (writer, era == ERA_2026 ? "pollIntervalMs" : "pollInterval");
    json_write_uint (writer, task->poll_interval_ms);
}

/* Results. */

static const char SERVER_INFO_2026[] = META_PREFIX "serverInfo";

void render_server_info (json_writer_t *writer, const char *key)
{
    json_write_key (writer, key);
    json_write_object_begin (writer);
    write_plain (writer, "name", "taskmq-gateway");
    write_plain (writer, "version", TASKMQ_VERSION);
    json_write_object_end (writer);
}

void render_server (json_writer_t *writer)
{
    json_write_key (writer, "_meta");
    json_write_object_begin (writer);
    render_server_info (writer, SERVER_INFO_2026);
    json_write_object_end (writer);
}

/* Our members of a result: before what the worker gave. foreign: its own _meta, or NULL. */
static void write_ours (json_writer_t *writer, const tmq_task_t *task, era_t era, bool related,
                        const json_t *foreign)
{
    const char *key;
    json_t *value;
    char id[37];
    if (era == ERA_2026)
        write_plain (writer, "resultType", "complete");
    if (era == ERA_2025 && !related && foreign == NULL)
        return;
    json_write_key (writer, "_meta");
    json_write_object_begin (writer);
    if (era == ERA_2026)
        render_server_info (writer, SERVER_INFO_2026);
    if (related) {
        tmq_id_format (&task->id, id);
        json_write_key (writer, META_PREFIX "related-task");
        json_write_object_begin (writer);
        write_plain (writer, "taskId", id);
        json_write_object_end (writer);
    }
    json_object_foreach ((json_t *) foreign, key, value)
    {
        char *text = trees_text (value, JSON_COMPACT | JSON_ENCODE_ANY);
        if (text != NULL && strcmp (key, SERVER_INFO_2026) != 0 &&
            strcmp (key, META_PREFIX "related-task") != 0) {
            json_write_foreign_key (writer, key);
            json_write_raw (writer, text, strlen (text));
        }
        free (text);
    }
    json_write_object_end (writer);
}

/* The worker's own answer, as it stands where that can be. */
static void write_verbatim (json_writer_t *writer, const tmq_task_t *task, era_t era, bool related,
                            json_t *result)
{
    const bool failed = task->status == TMQ_STATUS_FAILED;
    const char *at = task->body;
    const json_t *meta = json_object_get (result, "_meta");
    json_write_key (writer, "result");
    json_write_object_begin (writer);
    write_ours (writer, task, era, related, json_is_object (meta) ? meta : NULL);
    const bool mixed = meta != NULL || failed || json_object_get (result, "resultType") != NULL;
    char *changed = NULL;
    size_t length = task->body_bytes;
    if (mixed) {
        json_object_del (result, "_meta");
        json_object_del (result, "resultType");
        if (failed)
            json_object_set_new (result, "isError", json_true ());
        at = changed = trees_text (result, JSON_COMPACT);
        length = changed != NULL ? strlen (changed) : 0;
    }
    if (json_object_size (result) > 0 && at != NULL) {
        bytes_t plain = BYTES_INIT;
        json_writer_t inner = {&plain, false};
        json_write_raw (&inner, at, length);
        if (writer->comma)
            bytes_append_byte (writer->out, ',');
        bytes_append (writer->out, plain.data + 1, plain.length - 2);
        writer->comma = true;
        bytes_free (&plain);
    }
    json_write_object_end (writer);
    free (changed);
}

static void write_base64 (json_writer_t *writer, const char *key, const void *bytes, size_t length)
{
    const size_t size = sodium_base64_encoded_len (length, sodium_base64_VARIANT_ORIGINAL);
    char *text = malloc (size);
    json_write_key (writer, key);
    if (text == NULL) {
        writer->out->failed = true;
        return;
    }
    sodium_bin2base64 (text, size, bytes, length, sodium_base64_VARIANT_ORIGINAL);
    json_write_plain (writer, text, strlen (text));
    free (text);
}

static bool is_kind (const char *type, const char *kind)
{
    return strncmp (type, kind, strlen (kind)) == 0;
}

static void write_text (json_writer_t *writer, const void *text, size_t length)
{
    write_plain (writer, "type", "text");
    json_write_key (writer, "text");
    json_write_string (writer, text, length);
}

/* One content block for bytes of that type. */
static void write_content (json_writer_t *writer, const tmq_task_t *task)
{
    const char *type = task->result_type;
    const bool is_text =
        (type[0] == '\0' || is_kind (type, "text/") || is_kind (type, "application/json")) &&
        utf8_is_valid (task->body, task->body_bytes);
    char uri[160];
    char id[37];
    json_write_object_begin (writer);
    if (is_text) {
        write_text (writer, task->body, task->body_bytes);
    } else if (is_kind (type, "image/") || is_kind (type, "audio/")) {
        write_plain (writer, "type", is_kind (type, "image/") ? "image" : "audio");
        write_base64 (writer, "data", task->body, task->body_bytes);
        write_plain (writer, "mimeType", type);
    } else {
        tmq_id_format (&task->id, id);
        snprintf (uri, sizeof uri, "taskmq://%s/tasks/%s/result", task->ns, id);
        write_plain (writer, "type", "resource");
        json_write_key (writer, "resource");
        json_write_object_begin (writer);
        write_plain (writer, "uri", uri);
        write_plain (writer, "mimeType", type[0] != '\0' ? type : "application/octet-stream");
        write_base64 (writer, "blob", task->body, task->body_bytes);
        json_write_object_end (writer);
    }
    json_write_object_end (writer);
}

/* A sentence in place of bytes. */
static void write_sentence (json_writer_t *writer, const char *text)
{
    json_write_object_begin (writer);
    write_text (writer, text, strlen (text));
    json_write_object_end (writer);
}

static void write_result (json_writer_t *writer, const tmq_task_t *task, era_t era, bool related)
{
    char text[200];
    char id[37];
    const bool is_json = is_kind (task->result_type, "application/json") &&
                         json_text_is_valid (task->body, task->body_bytes);
    json_write_key (writer, "result");
    json_write_object_begin (writer);
    write_ours (writer, task, era, related, NULL);
    json_write_key (writer, "content");
    json_write_array_begin (writer);
    if (task->result_blob.bytes > 0) {
        tmq_id_format (&task->id, id);
        snprintf (
            text, sizeof text,
            "The result has %llu bytes: GET /v1/tasks/%s/result of this server fetches it, or "
            "'taskctl result'.",
            (unsigned long long) task->result_bytes, id);
        write_sentence (writer, text);
    } else if (task->body_bytes > 0) {
        write_content (writer, task);
    } else if (task->status == TMQ_STATUS_FAILED) {
        write_sentence (writer, task->error_message);
    }
    json_write_array_end (writer);
    if (is_json && task->body_bytes > 0 &&
        (era == ERA_2026 || json_text_is_object (task->body, task->body_bytes))) {
        json_write_key (writer, "structuredContent");
        json_write_raw (writer, task->body, task->body_bytes);
    }
    if (task->status == TMQ_STATUS_FAILED) {
        json_write_key (writer, "isError");
        json_write_bool (writer, true);
    }
    json_write_object_end (writer);
}

static void write_error (json_writer_t *writer, int code, const char *message, const char *data)
{
    json_write_key (writer, "error");
    json_write_object_begin (writer);
    json_write_key (writer, "code");
    json_write_int (writer, code);
    write_plain (writer, "message", message);
    if (data != NULL && data[0] != '\0') {
        json_write_key (writer, "data");
        json_write_raw (writer, data, strlen (data));
    }
    json_write_object_end (writer);
}

/* What a tool promises of its results. */

void render_tool_error (json_writer_t *writer, const char *text, size_t length)
{
    json_write_key (writer, "content");
    json_write_array_begin (writer);
    json_write_object_begin (writer);
    write_text (writer, text, length);
    json_write_object_end (writer);
    json_write_array_end (writer);
    json_write_key (writer, "isError");
    json_write_bool (writer, true);
}

/* True if a completed task's structured content is as the schema asks; else flaws say why. The same
 * in both generations, though 2025 is shown objects only. An error promises nothing. */
static bool fits (const tmq_task_t *task, schema_t *output, const json_t *result, bytes_t *flaws)
{
    json_t *own = NULL;
    const json_t *value = json_object_get (result, "structuredContent");
    if (output == NULL || task->status != TMQ_STATUS_COMPLETED ||
        json_is_true (json_object_get (result, "isError")))
        return true;
    if (result == NULL && is_kind (task->result_type, "application/json"))
        value = own =
            json_loadb (task->body, task->body_bytes, JSON_DECODE_ANY | JSON_ALLOW_NUL, NULL);
    const bool good = value != NULL && schema_takes (output, value, flaws);
    if (value == NULL && task->result_blob.bytes > 0)
        bytes_append_format (flaws, "it has %llu bytes, which no answer holds\n",
                             (unsigned long long) task->result_bytes);
    else if (value == NULL)
        bytes_append_text (flaws, "there is no structuredContent that can be read\n");
    json_decref (own);
    return good;
}

static void write_unfit (json_writer_t *writer, const tmq_task_t *task, era_t era, bool related,
                         const bytes_t *flaws)
{
    bytes_t text = BYTES_INIT;
    bytes_append_text (&text, "The tool's result does not fit its outputSchema:\n");
    bytes_append (&text, flaws->data, flaws->length);
    json_write_key (writer, "result");
    json_write_object_begin (writer);
    write_ours (writer, task, era, related, NULL);
    render_tool_error (writer, (const char *) text.data, text.length);
    json_write_object_end (writer);
    bytes_free (&text);
}

/* Of a task that gives a result, not an error of JSON-RPC. False: the result does not fit. */
static bool write_judged (json_writer_t *writer, const tmq_task_t *task, era_t era, bool related,
                          schema_t *output)
{
    const bool is_own = strcmp (task->result_type, RESULT_TYPE) == 0 && task->body_bytes > 0;
    json_t *result = is_own ? json_loadb (task->body, task->body_bytes, 0, NULL) : NULL;
    bytes_t flaws = BYTES_INIT;
    bool good = true;
    if (is_own && !json_is_object (result))
        write_error (writer, -32603, "the worker's result is no JSON object", NULL);
    else if (!(good = fits (task, output, result, &flaws)))
        write_unfit (writer, task, era, related, &flaws);
    else if (is_own)
        write_verbatim (writer, task, era, related, result);
    else
        write_result (writer, task, era, related);
    bytes_free (&flaws);
    json_decref (result);
    return good;
}

bool render_outcome (json_writer_t *writer, const tmq_task_t *task, era_t era, bool related,
                     schema_t *output)
{
    if (task->status == TMQ_STATUS_CANCELLED)
        write_error (writer, RENDER_CODES - TMQ_CANCELLED,
                     task->cancel_message[0] != '\0' ? task->cancel_message
                                                     : "the task was cancelled",
                     NULL);
    else if (render_is_error (task))
        write_error (writer, task->error_code, task->error_message, task->error_data);
    else
        return write_judged (writer, task, era, related, output);
    return true;
}
