/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

#include "verbs/import_line.h"

#include <inttypes.h>
#include <jansson.h>
#include <sodium.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/memory.h"
#include "ids.h"
#include "json.h"
#include "units.h"
#include "verbs/spec.h"

/* Memory, and what is wrong. */

static void *keep (import_line_t *self, void *memory)
{
    self->owned = must_grow (self->owned, self->owned_count + 1, sizeof *self->owned);
    self->owned[self->owned_count++] = memory;
    return memory;
}

static void *room (import_line_t *self, size_t count, size_t size)
{
    void *memory = keep (self, must_alloc ((count + 1) * size));
    memset (memory, 0, (count + 1) * size);
    return memory;
}

void import_line_clear (import_line_t *self)
{
    for (size_t i = 0; i < self->owned_count; i++)
        free (self->owned[i]);
    free (self->owned);
    bytes_free (&self->compact);
    self->owned = NULL;
    self->owned_count = 0;
}

__attribute__ ((format (printf, 2, 3))) static bool wrong (import_line_t *self, const char *format,
                                                           ...)
{
    va_list list;
    va_start (list, format);
    vsnprintf (self->why, sizeof self->why, format, list);
    va_end (list);
    return false;
}

/* Values. */

static bool is_null (piece_t piece)
{
    return piece.length == 4 && memcmp (piece.at, "null", 4) == 0;
}

/* False: there is none, or it is null. */
static bool find (piece_t *out, piece_t object, const char *key)
{
    return piece_member (out, object, key, strlen (key)) && !is_null (*out);
}

/* A string without its quotes and escapes; NULL: it is none. */
static char *decode (import_line_t *self, piece_t piece, size_t *length)
{
    json_t *value = *piece.at == '"' ? json_loadb (piece.at, piece.length,
                                                   JSON_DECODE_ANY | JSON_ALLOW_NUL, NULL)
                                     : NULL;
    if (!json_is_string (value)) {
        json_decref (value);
        return NULL;
    }
    *length = json_string_length (value);
    char *text = keep (self, must_alloc (*length + 1));
    memcpy (text, json_string_value (value), *length + 1);
    json_decref (value);
    return text;
}

static bool take_text (import_line_t *self, const char **out, piece_t object, const char *key)
{
    piece_t piece;
    size_t length;
    if (!find (&piece, object, key))
        return true;
    *out = decode (self, piece, &length);
    return (*out && strlen (*out) == length) || wrong (self, "%s must be a string", key);
}

/* As it stands there: for JSON that is passed on. */
static bool take_raw (import_line_t *self, const char **out, piece_t object, const char *key)
{
    piece_t piece;
    if (!find (&piece, object, key))
        return true;
    char *text = room (self, piece.length, 1);
    memcpy (text, piece.at, piece.length);
    *out = text;
    return true;
}

static bool take_number (import_line_t *self, uint64_t *out, piece_t object, const char *key,
                         uint64_t max)
{
    piece_t piece;
    char text[24] = "";
    char *end = text;
    if (!find (&piece, object, key))
        return true;
    if (piece.length < sizeof text && *piece.at >= '0' && *piece.at <= '9') {
        memcpy (text, piece.at, piece.length);
        *out = strtoull (text, &end, 10);
    }
    return (end > text && !*end && *out <= max) ||
           wrong (self, "%s must be a whole number of at most %" PRIu64, key, max);
}

static bool take_number_32 (import_line_t *self, uint32_t *out, piece_t object, const char *key)
{
    uint64_t number = *out;
    if (!take_number (self, &number, object, key, UINT32_MAX))
        return false;
    *out = (uint32_t) number;
    return true;
}

static bool take_code (import_line_t *self, int32_t *out, piece_t object)
{
    piece_t piece;
    char text[16] = "";
    char *end = text;
    long long code = 0;
    if (!find (&piece, object, "code"))
        return true;
    if (piece.length < sizeof text) {
        memcpy (text, piece.at, piece.length);
        code = strtoll (text, &end, 10);
    }
    *out = (int32_t) code;
    return (end > text && !*end && code >= INT32_MIN && code <= INT32_MAX) ||
           wrong (self, "code must be a whole number of 32 bits");
}

static bool take_amount (import_line_t *self, double *out, piece_t object, const char *key)
{
    piece_t piece;
    char text[64] = "";
    char *end = text;
    if (!find (&piece, object, key))
        return true;
    if (piece.length < sizeof text) {
        memcpy (text, piece.at, piece.length);
        *out = strtod (text, &end);
    }
    return (end > text && !*end) || wrong (self, "%s must be a number", key);
}

static bool take_bool (import_line_t *self, bool *out, piece_t object, const char *key)
{
    piece_t piece;
    if (!find (&piece, object, key))
        return true;
    *out = *piece.at == 't';
    return *piece.at == 't' || *piece.at == 'f' || wrong (self, "%s must be true or false", key);
}

static bool take_time (import_line_t *self, uint64_t *out, piece_t object, const char *key)
{
    const char *text = NULL;
    char error[UNITS_ERROR_SIZE];
    int64_t ms = 0;
    if (!take_text (self, &text, object, key))
        return false;
    if (text && !time_parse (&ms, text, error))
        return wrong (self, "%s %s", key, error);
    *out = (uint64_t) ms;
    return true;
}

static bool take_id (import_line_t *self, tmq_id_t *out, piece_t object, const char *key)
{
    const char *text = NULL;
    if (!take_text (self, &text, object, key))
        return false;
    return !text || tmq_id_parse (out, text) == TMQ_OK ||
           wrong (self, "%s must be the id of a task", key);
}

static bool take_pairs (import_line_t *self, const tmq_label_t **out, size_t *count, piece_t object,
                        const char *key, size_t max)
{
    piece_t pairs, name, value;
    const char *at = NULL;
    size_t key_length, value_length;
    if (!find (&pairs, object, key))
        return true;
    if (*pairs.at != '{')
        return wrong (self, "%s must be an object of strings", key);
    tmq_label_t *labels = room (self, max, sizeof *labels);
    while (piece_next_member (&name, &value, pairs, &at)) {
        if (*count == max)
            return wrong (self, "%s: more than %zu", key, max);
        labels[*count] =
            (tmq_label_t){decode (self, name, &key_length), decode (self, value, &value_length)};
        if (!labels[*count].key || !labels[*count].value)
            return wrong (self, "%s must be an object of strings", key);
        if (strlen (labels[*count].key) != key_length ||
            strlen (labels[*count].value) != value_length)
            return wrong (self, "%s: a NUL in '%.64s'", key, labels[*count].key);
        ++*count;
    }
    *out = labels;
    return true;
}

/* Bodies. */

static void *decode_base64 (import_line_t *self, piece_t piece, size_t *bytes)
{
    piece_t inner;
    size_t length;
    if (!piece_member (&inner, piece, "base64", 6))
        return NULL;
    const char *text = decode (self, inner, &length);
    if (!text)
        return NULL;
    uint8_t *out = room (self, length, 1);
    return sodium_base642bin (out, length + 1, text, length, NULL, bytes, NULL,
                              sodium_base64_VARIANT_ORIGINAL) == 0
               ? out
               : NULL;
}

/* Its bytes, which are `wanted`, so that it is known in which of its forms it stands there. */
static bool take_body (import_line_t *self, const void **out, size_t *bytes, const char *key,
                       const char *text_key, uint64_t wanted)
{
    piece_t piece, exact;
    *bytes = 0;
    if (!find (&piece, self->object, key)) {
        *out = "";
        return wanted == 0 || wrong (self, "%s is missing, it had %" PRIu64 " bytes", key, wanted);
    }
    if (find (&exact, self->object, text_key)) {
        *out = decode (self, exact, bytes);
        if (*out && *bytes == wanted)
            return true;
    }
    if (*piece.at == '"') {
        *out = decode (self, piece, bytes);
        if (*out && *bytes == wanted)
            return true;
    }
    *out = piece.at;
    *bytes = piece.length;
    if (*bytes == wanted)
        return true;
    *out = decode_base64 (self, piece, bytes);
    return (*out && *bytes == wanted) ||
           wrong (self, "%s has not the %" PRIu64 " bytes that %s_bytes says", key, wanted, key);
}

/* What was replaced in a body has changed its length. */
static void take_redacted_body (import_line_t *self, const void **out, size_t *bytes,
                                const char *key, const char *text_key, const char *type)
{
    piece_t piece, exact;
    *out = "";
    *bytes = 0;
    if (find (&exact, self->object, text_key) && (*out = decode (self, exact, bytes)))
        return;
    if (!find (&piece, self->object, key))
        return;
    const bool is_json = type && strncmp (type, "application/json", 16) == 0;
    *out = NULL;
    if (!is_json && *piece.at == '"')
        *out = decode (self, piece, bytes);
    else if (*piece.at == '{')
        *out = decode_base64 (self, piece, bytes);
    if (*out)
        return;
    *out = piece.at;
    *bytes = piece.length;
}

/* Where a payload or a result stands in a line, and where it goes. */
typedef struct import_part {
    const char *key;
    const char *text_key;
    const char *hash_key;
    const void **out;
    size_t *bytes;
    tmq_blob_t *blob;
    const char **type;
} import_part_t;

/* What is larger than a frame stands in no line: its hash does. */
static bool take_hash (import_line_t *self, uint8_t hash[TMQ_BLOB_HASH_BYTES], piece_t object,
                       const char *key)
{
    const char *hex = NULL;
    size_t bytes = 0;
    if (!take_text (self, &hex, object, key))
        return false;
    return (hex && strlen (hex) == 2 * TMQ_BLOB_HASH_BYTES &&
            sodium_hex2bin (hash, TMQ_BLOB_HASH_BYTES, hex, strlen (hex), NULL, &bytes, NULL) ==
                0 &&
            bytes == TMQ_BLOB_HASH_BYTES) ||
           wrong (self, "%s must be %d hexadecimal digits", key, 2 * TMQ_BLOB_HASH_BYTES);
}

static bool take_blob (import_line_t *self, tmq_blob_t *out, const char *what, const char *key,
                       uint64_t bytes)
{
    out->bytes = bytes;
    self->bodies[self->bodies_count++] = (import_body_t){what, *out};
    import_body_t *body = &self->bodies[self->bodies_count - 1];
    if (!take_hash (self, body->blob.hash, self->object, key))
        return false;
    *out = body->blob;
    return true;
}

static bool take_one_body (import_line_t *self, const import_part_t *part, uint64_t wanted)
{
    *part->bytes = 0;
    *part->out = "";
    if (wanted > TMQ_FRAME_BYTES_MAX)
        return take_blob (self, part->blob, part->key, part->hash_key, wanted);
    if (!self->redacted)
        return take_body (self, part->out, part->bytes, part->key, part->text_key, wanted);
    take_redacted_body (self, part->out, part->bytes, part->key, part->text_key, *part->type);
    return true;
}

static bool take_bodies (import_line_t *self)
{
    tmq_import_t *task = &self->task;
    uint64_t payload = 0;
    uint64_t result = 0;
    piece_t piece;
    if (!take_number (self, &payload, self->object, "payload_bytes", TMQ_BLOB_BYTES_MAX) ||
        !take_number (self, &result, self->object, "result_bytes", TMQ_BLOB_BYTES_MAX) ||
        !take_text (self, &task->result_type, self->object, "result_type") ||
        !take_bool (self, &self->redacted, self->object, "redacted"))
        return false;
    const bool ended = find (&piece, self->object, "result_bytes");
    const import_part_t of_payload = {"payload",          "payload_text",       "payload_hash",
                                      &task->payload,     &task->payload_bytes, &task->payload_blob,
                                      &task->content_type};
    const import_part_t of_result = {"result",          "result_text",       "result_hash",
                                     &task->result,     &task->result_bytes, &task->result_blob,
                                     &task->result_type};
    if (!take_one_body (self, &of_payload, payload) ||
        (ended && !take_one_body (self, &of_result, result)))
        return false;
    if (task->status == TMQ_STATUS_COMPLETED)
        task->outcome = TMQ_OUTCOME_RESULT;
    else if (task->status == TMQ_STATUS_FAILED)
        task->outcome = ended ? TMQ_OUTCOME_TOOL_ERROR : TMQ_OUTCOME_PROTOCOL_ERROR;
    return true;
}

/* The task. */

static tmq_status_t status_of (const char *text)
{
    for (unsigned i = TMQ_STATUS_QUEUED; text && i <= TMQ_STATUS_CANCELLED; i++)
        if (strcmp (text, tmq_status_text ((tmq_status_t) i)) == 0)
            return (tmq_status_t) i;
    return TMQ_STATUS_NONE;
}

static bool take_identity (import_line_t *self)
{
    tmq_import_t *task = &self->task;
    const char *status = NULL;
    uint64_t priority = 0;
    const piece_t object = self->object;
    if (!take_id (self, &task->id, object, "task_id") ||
        !take_text (self, &status, object, "status") ||
        !take_text (self, &task->queue, object, "queue") ||
        !take_text (self, &task->session, object, "session") ||
        !take_text (self, &task->status_message, object, "status_message") ||
        !take_number (self, &priority, object, "priority", UINT8_MAX) ||
        !take_text (self, &task->method, object, "method") ||
        !take_text (self, &task->content_type, object, "content_type") ||
        !take_text (self, &task->dedup_key, object, "dedup_key"))
        return false;
    task->priority = (uint8_t) priority;
    task->status = self->status = status_of (status);
    if (id_is_zero (&task->id) || !id_is_v7 (&task->id))
        return wrong (self, "task_id is missing, or no UUIDv7");
    if (!task->queue)
        return wrong (self, "queue is missing");
    return task->status != TMQ_STATUS_NONE || wrong (self, "status is missing, or is no status");
}

static bool take_times (import_line_t *self)
{
    tmq_import_t *task = &self->task;
    const piece_t object = self->object;
    return take_time (self, &task->created_at, object, "created_at") &&
           take_time (self, &task->updated_at, object, "updated_at") &&
           take_time (self, &task->started_at, object, "started_at") &&
           take_time (self, &task->finished_at, object, "finished_at") &&
           take_time (self, &task->expires_at, object, "expires_at") &&
           take_time (self, &task->not_before, object, "not_before") &&
           take_time (self, &task->start_by, object, "start_by") &&
           take_number (self, &task->ttl_ms, object, "ttl_ms", TMQ_TTL_MS_MAX) &&
           take_number (self, &task->max_runtime_ms, object, "max_runtime_ms", TMQ_TTL_MS_MAX) &&
           (task->created_at || wrong (self, "created_at is missing"));
}

static bool take_course (import_line_t *self)
{
    tmq_import_t *task = &self->task;
    const piece_t object = self->object;
    piece_t progress;
    if (find (&progress, object, "progress") &&
        (!take_amount (self, &task->progress_done, progress, "done") ||
         !take_amount (self, &task->progress_total, progress, "total") ||
         !take_text (self, &task->progress_unit, progress, "unit") ||
         !take_text (self, &task->progress_message, progress, "message")))
        return false;
    return take_number_32 (self, &task->poll_interval_ms, object, "poll_interval_ms") &&
           take_number_32 (self, &task->lease_ms, object, "lease_ms") &&
           take_number_32 (self, &task->backoff_ms, object, "backoff_ms") &&
           take_number_32 (self, &task->attempt, object, "attempt") &&
           take_number_32 (self, &task->failures, object, "failures") &&
           take_number_32 (self, &task->max_attempts, object, "max_attempts") &&
           take_number_32 (self, &task->version, object, "version") &&
           take_number_32 (self, &task->adopted_from, object, "adopted_from") &&
           take_text (self, &task->worker, object, "worker") &&
           take_bool (self, &task->dead, object, "dead");
}

static bool take_after (import_line_t *self)
{
    piece_t after, one;
    const char *at = NULL;
    if (!find (&after, self->object, "after"))
        return true;
    tmq_dependency_t *list = room (self, TMQ_AFTER_MAX, sizeof *list);
    while (piece_next (&one, after, &at)) {
        const char *policy = NULL;
        const char *status = NULL;
        if (self->task.after_count == TMQ_AFTER_MAX)
            return wrong (self, "after: more than %d", TMQ_AFTER_MAX);
        tmq_dependency_t *entry = &list[self->task.after_count++];
        if (!take_id (self, &entry->id, one, "task_id") ||
            !take_text (self, &policy, one, "policy") || !take_text (self, &status, one, "status"))
            return false;
        if (id_is_zero (&entry->id) || !policy || !after_find (&entry->policy, policy))
            return wrong (self, "after: needs task_id and policy");
        entry->status = status_of (status);
    }
    self->task.after = list;
    return true;
}

static bool take_relations (import_line_t *self)
{
    tmq_import_t *task = &self->task;
    const piece_t object = self->object;
    piece_t error;
    if (find (&error, object, "error") &&
        (!take_code (self, &task->error_code, error) ||
         !take_text (self, &task->error_message, error, "message") ||
         !take_raw (self, &task->error_data, error, "data")))
        return false;
    return take_pairs (self, &task->labels, &task->labels_count, object, "labels",
                       TMQ_LABELS_MAX) &&
           take_pairs (self, &task->needs, &task->needs_count, object, "require", TMQ_NEEDS_MAX) &&
           take_raw (self, &task->meta, object, "meta") &&
           take_text (self, &task->trace, object, "trace") &&
           take_text (self, &task->fair_key, object, "fair_key") &&
           take_text (self, &task->cancel_message, object, "cancel_message") &&
           take_id (self, &task->parent, object, "parent") &&
           take_bool (self, &task->has_parts, object, "has_parts") && take_after (self);
}

/* Attempts and turns. */

static size_t count_of (piece_t array)
{
    const char *at = NULL;
    piece_t one;
    size_t count = 0;
    while (piece_next (&one, array, &at))
        count++;
    return count;
}

static tmq_event_kind_t end_of (const char *text)
{
    static const tmq_event_kind_t ends[] = {TMQ_EVENT_RELEASED, TMQ_EVENT_ATTEMPT_FAILED,
                                            TMQ_EVENT_LEASE_LOST, TMQ_EVENT_FAILED,
                                            TMQ_EVENT_CANCELLED};
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++)
        if (strcmp (text, tmq_event_kind_text (ends[i])) == 0)
            return ends[i];
    return TMQ_EVENT_NONE;
}

/* The one that goes on does not come along, and the one that completed the task is told by the task
 * itself. */
static bool take_attempt (import_line_t *self, tmq_imported_attempt_t *out, size_t *count,
                          piece_t piece)
{
    tmq_imported_attempt_t attempt = {0};
    const char *end = NULL;
    piece_t error, kept;
    if (!take_number_32 (self, &attempt.attempt, piece, "attempt") ||
        !take_text (self, &attempt.worker, piece, "worker") ||
        !take_time (self, &attempt.started_at, piece, "started_at") ||
        !take_time (self, &attempt.ended_at, piece, "ended_at") ||
        !take_text (self, &end, piece, "end"))
        return false;
    if (find (&error, piece, "error") &&
        (!take_code (self, &attempt.error_code, error) ||
         !take_text (self, &attempt.error_message, error, "message")))
        return false;
    self->kept += find (&kept, piece, "kept");
    if (!end || strcmp (end, tmq_event_kind_text (TMQ_EVENT_COMPLETED)) == 0)
        return true;
    attempt.how = end_of (end);
    out[(*count)++] = attempt;
    return attempt.how != TMQ_EVENT_NONE || wrong (self, "attempts: '%.40s' is no end", end);
}

static bool take_attempts (import_line_t *self)
{
    piece_t attempts, one;
    const char *at = NULL;
    if (!find (&attempts, self->object, "attempts"))
        return true;
    const size_t total = count_of (attempts);
    if (total > TMQ_IMPORT_ATTEMPTS_MAX + 1)
        return wrong (self, "attempts: %zu, at most %d can be imported", total,
                      TMQ_IMPORT_ATTEMPTS_MAX);
    tmq_imported_attempt_t *list = room (self, total, sizeof *list);
    while (piece_next (&one, attempts, &at))
        if (!take_attempt (self, list, &self->task.attempts_count, one))
            return false;
    self->task.attempts = list;
    return true;
}

static tmq_file_op_t op_of (const char *text)
{
    for (tmq_file_op_t op = TMQ_FILE_OP_READ; text && op <= TMQ_FILE_OP_DELETE; op++)
        if (strcmp (text, tmq_file_op_text (op)) == 0)
            return op;
    return TMQ_FILE_OP_NONE;
}

static bool take_files (import_line_t *self, tmq_imported_turn_t *out, piece_t piece)
{
    piece_t files, one;
    const char *at = NULL;
    if (!find (&files, piece, "files"))
        return true;
    if (count_of (files) > TMQ_TURN_FILES_MAX)
        return wrong (self, "turns: a turn has more than %d files", TMQ_TURN_FILES_MAX);
    tmq_turn_file_t *list = room (self, count_of (files), sizeof *list);
    while (piece_next (&one, files, &at)) {
        const char *op = NULL;
        tmq_turn_file_t *file = &list[out->files_count++];
        if (!take_text (self, &op, one, "op") || !take_text (self, &file->path, one, "path"))
            return false;
        file->op = op_of (op);
        if (file->op == TMQ_FILE_OP_NONE || !file->path)
            return wrong (self, "turns: a file needs op and path");
    }
    out->files = list;
    return true;
}

static bool take_turn (import_line_t *self, tmq_imported_turn_t *out, piece_t piece)
{
    return take_number_32 (self, &out->attempt, piece, "attempt") &&
           take_text (self, &out->worker, piece, "worker") &&
           take_text (self, &out->agent, piece, "agent") &&
           take_text (self, &out->status, piece, "status") &&
           take_time (self, &out->started_at, piece, "started_at") &&
           take_number (self, &out->duration_ms, piece, "duration_ms", TMQ_TTL_MS_MAX) &&
           take_time (self, &out->told_at, piece, "told_at") &&
           take_bool (self, &out->superseded, piece, "superseded") &&
           take_text (self, &out->content, piece, "content") &&
           take_raw (self, &out->tool_calls, piece, "tool_calls") &&
           take_text (self, &out->tool_log, piece, "tool_log") && take_files (self, out, piece);
}

static bool take_turns (import_line_t *self)
{
    piece_t turns, one;
    const char *at = NULL;
    uint64_t told = 0;
    if (!take_number (self, &told, self->object, "turn_count", TMQ_TURNS_MAX))
        return false;
    const bool given = find (&turns, self->object, "turns");
    const size_t total = given ? count_of (turns) : 0;
    if (total != told)
        return wrong (self, "turns: %zu of %" PRIu64 " are there", total, told);
    tmq_imported_turn_t *list = room (self, total, sizeof *list);
    while (given && piece_next (&one, turns, &at))
        if (!take_turn (self, &list[self->task.turns_count++], one))
            return false;
    self->task.turns = list;
    return true;
}

/* Questions. */

/* Beside it stands whether it is a text or JSON, which may be a string, or null. */
static bool take_default (import_line_t *self, tmq_question_t *out, piece_t piece)
{
    piece_t is_text;
    out->has_default = find (&is_text, piece, "default_text");
    out->default_answer = out->has_default ? "null" : NULL;
    if (!take_bool (self, &out->default_is_text, piece, "default_text"))
        return false;
    return out->default_is_text ? take_text (self, &out->default_answer, piece, "default")
                                : take_raw (self, &out->default_answer, piece, "default");
}

static bool take_question (import_line_t *self, tmq_question_t *out, piece_t piece)
{
    return take_text (self, &out->key, piece, "key") &&
           take_text (self, &out->worker, piece, "worker") &&
           take_number_32 (self, &out->attempt, piece, "attempt") &&
           take_time (self, &out->asked_at, piece, "asked_at") &&
           take_time (self, &out->deadline, piece, "deadline") &&
           take_raw (self, &out->request, piece, "request") && take_default (self, out, piece);
}

/* Who exported it may not have seen what they ask: then the task's worker asks again. */
static bool take_questions (import_line_t *self)
{
    piece_t questions, one;
    const char *at = NULL;
    size_t count = 0;
    bool seen = true;
    if (!find (&questions, self->object, "questions"))
        return true;
    const size_t total = count_of (questions);
    if (total > TMQ_QUESTIONS_OPEN_MAX)
        return wrong (self, "questions: %zu, at most %d can be open", total,
                      TMQ_QUESTIONS_OPEN_MAX);
    tmq_question_t *list = room (self, total, sizeof *list);
    while (piece_next (&one, questions, &at)) {
        if (!take_question (self, &list[count], one))
            return false;
        seen &= list[count++].request != NULL;
    }
    if (self->status == TMQ_STATUS_INPUT_REQUIRED && seen) {
        self->task.questions = list;
        self->task.questions_count = count;
    } else {
        self->questions = count;
    }
    return true;
}

/* What stays behind, so that it can be told. */
static void count_rest (import_line_t *self)
{
    piece_t list;
    if (find (&list, self->object, "events"))
        self->events = count_of (list);
}

/* Its worker is not here: as after a lease that was given back. */
static void requeue (tmq_import_t *task)
{
    task->status = TMQ_STATUS_QUEUED;
    task->status_message = task->progress_unit = task->progress_message = NULL;
    task->progress_done = task->progress_total = 0;
    task->not_before = 0;
    const uint64_t least =
        wall_ms () + (task->ttl_ms < TMQ_RESULT_TTL_MS_MIN ? task->ttl_ms : TMQ_RESULT_TTL_MS_MIN);
    if (task->expires_at && task->expires_at < least)
        task->expires_at = least;
}

bool import_line_read (import_line_t *self, const char *line, size_t length)
{
    *self = (import_line_t){.compact = BYTES_INIT};
    json_writer_t writer = {&self->compact, false};
    tmq_import_init (&self->task);
    if (!json_text_is_object (line, length))
        return wrong (self, "it is no JSON object");
    json_write_raw (&writer, line, length);
    bytes_append_byte (&self->compact, '\0');
    if (self->compact.failed)
        must_grow (NULL, SIZE_MAX, 2);
    self->object = (piece_t){(const char *) self->compact.data, self->compact.length - 1};
    if (!take_identity (self) || !take_times (self) || !take_course (self) || !take_bodies (self) ||
        !take_relations (self) || !take_attempts (self) || !take_turns (self) ||
        !take_questions (self))
        return false;
    count_rest (self);
    if (self->status == TMQ_STATUS_WORKING ||
        (self->status == TMQ_STATUS_INPUT_REQUIRED && self->task.questions_count == 0))
        requeue (&self->task);
    return true;
}

/* Comparison. */

static bool is_same (piece_t a, piece_t b)
{
    if (a.length == b.length && memcmp (a.at, b.at, a.length) == 0)
        return true;
    json_t *left = json_loadb (a.at, a.length, JSON_DECODE_ANY | JSON_ALLOW_NUL, NULL);
    json_t *right = json_loadb (b.at, b.length, JSON_DECODE_ANY | JSON_ALLOW_NUL, NULL);
    const bool same = left && right && json_equal (left, right);
    json_decref (left);
    json_decref (right);
    return same;
}

static bool member_differs (piece_t line, piece_t other, const char *key)
{
    piece_t a, b;
    const size_t length = strlen (key);
    return piece_member (&a, line, key, length) &&
           (!piece_member (&b, other, key, length) || !is_same (a, b));
}

/* But for the successes that were kept of some, which do not come along. */
static bool attempts_differ (piece_t line, piece_t other)
{
    static const char *const keys[] = {"attempt",  "worker", "started_at",
                                       "ended_at", "end",    "error"};
    piece_t a, b, left, right;
    const char *at = NULL;
    const char *other_at = NULL;
    if (!find (&a, line, "attempts"))
        return false;
    if (!find (&b, other, "attempts") || count_of (a) != count_of (b))
        return true;
    while (piece_next (&left, a, &at) && piece_next (&right, b, &other_at))
        for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
            if (member_differs (left, right, keys[i]))
                return true;
    return false;
}

const char *import_line_differs (piece_t line, piece_t other)
{
    static const char *const keys[] = {
        "queue",          "session",      "status",       "status_message", "priority",
        "method",         "content_type", "created_at",   "started_at",     "finished_at",
        "attempt",        "failures",     "labels",       "meta",           "trace",
        "depends_on",     "parent",       "fair_key",     "require",        "turn_count",
        "payload",        "payload_hash", "result",       "result_hash",    "error",
        "cancel_message", "result_type",  "max_attempts", "turns"};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        if (member_differs (line, other, keys[i]))
            return keys[i];
    return attempts_differ (line, other) ? "attempts" : NULL;
}
