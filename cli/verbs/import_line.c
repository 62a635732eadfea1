/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

#include "verbs/import_line.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/memory.h"
#include "ids.h"
#include "json.h"
#include "verbs/import_bodies.h"
#include "verbs/import_values.h"
#include "verbs/spec.h"

void import_line_clear (import_line_t *self)
{
    for (size_t i = 0; i < self->owned_count; i++)
        free (self->owned[i]);
    free (self->owned);
    bytes_free (&self->compact);
    self->owned = NULL;
    self->owned_count = 0;
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
    if (!line_id (self, &task->id, object, "task_id") ||
        !line_text (self, &status, object, "status") ||
        !line_text (self, &task->queue, object, "queue") ||
        !line_text (self, &task->session, object, "session") ||
        !line_text (self, &task->status_message, object, "status_message") ||
        !line_number (self, &priority, object, "priority", UINT8_MAX) ||
        !line_text (self, &task->method, object, "method") ||
        !line_text (self, &task->content_type, object, "content_type") ||
        !line_text (self, &task->dedup_key, object, "dedup_key"))
        return false;
    task->priority = (uint8_t) priority;
    task->status = self->status = status_of (status);
    if (id_is_zero (&task->id) || !id_is_v7 (&task->id))
        return line_wrong (self, "task_id is missing, or no UUIDv7");
    if (!task->queue)
        return line_wrong (self, "queue is missing");
    return task->status != TMQ_STATUS_NONE ||
           line_wrong (self, "status is missing, or is no status");
}

static bool take_times (import_line_t *self)
{
    tmq_import_t *task = &self->task;
    const piece_t object = self->object;
    return line_time (self, &task->created_at, object, "created_at") &&
           line_time (self, &task->updated_at, object, "updated_at") &&
           line_time (self, &task->started_at, object, "started_at") &&
           line_time (self, &task->finished_at, object, "finished_at") &&
           line_time (self, &task->expires_at, object, "expires_at") &&
           line_time (self, &task->not_before, object, "not_before") &&
           line_time (self, &task->start_by, object, "start_by") &&
           line_number (self, &task->ttl_ms, object, "ttl_ms", TMQ_TTL_MS_MAX) &&
           line_number (self, &task->max_runtime_ms, object, "max_runtime_ms", TMQ_TTL_MS_MAX) &&
           (task->created_at || line_wrong (self, "created_at is missing"));
}

static bool take_course (import_line_t *self)
{
    tmq_import_t *task = &self->task;
    const piece_t object = self->object;
    piece_t progress;
    if (!line_object (self, &progress, object, "progress"))
        return false;
    if (progress.at && (!line_amount (self, &task->progress_done, progress, "done") ||
                        !line_amount (self, &task->progress_total, progress, "total") ||
                        !line_text (self, &task->progress_unit, progress, "unit") ||
                        !line_text (self, &task->progress_message, progress, "message")))
        return line_wrong_in (self, "progress", 0);
    return line_number_32 (self, &task->poll_interval_ms, object, "poll_interval_ms") &&
           line_number_32 (self, &task->lease_ms, object, "lease_ms") &&
           line_number_32 (self, &task->backoff_ms, object, "backoff_ms") &&
           line_number_32 (self, &task->attempt, object, "attempt") &&
           line_number_32 (self, &task->failures, object, "failures") &&
           line_number_32 (self, &task->max_attempts, object, "max_attempts") &&
           line_number_32 (self, &task->version, object, "version") &&
           line_number_32 (self, &task->adopted_from, object, "adopted_from") &&
           line_text (self, &task->worker, object, "worker") &&
           line_bool (self, &task->dead, object, "dead");
}

static bool take_dependency (import_line_t *self, tmq_dependency_t *out, piece_t piece)
{
    const char *policy = NULL;
    const char *status = NULL;
    if (!line_id (self, &out->id, piece, "task_id") ||
        !line_text (self, &policy, piece, "policy") || !line_text (self, &status, piece, "status"))
        return false;
    if (id_is_zero (&out->id) || !policy || !after_find (&out->policy, policy))
        return line_wrong (self, "needs task_id and policy");
    out->status = status_of (status);
    return !status || out->status || line_wrong (self, "'%.40s' is no status", status);
}

static bool take_after (import_line_t *self)
{
    piece_t after, one;
    const char *at = NULL;
    size_t total;
    if (!line_array (self, &after, &total, self->object, "after"))
        return false;
    if (total > TMQ_AFTER_MAX)
        return line_wrong (self, "after: more than %d", TMQ_AFTER_MAX);
    tmq_dependency_t *list = line_room (self, total, sizeof *list);
    while (self->task.after_count < total && piece_next (&one, after, &at))
        if (!take_dependency (self, &list[self->task.after_count++], one))
            return line_wrong_in (self, "after", self->task.after_count);
    self->task.after = list;
    return true;
}

static bool take_relations (import_line_t *self)
{
    tmq_import_t *task = &self->task;
    const piece_t object = self->object;
    piece_t error;
    if (!line_object (self, &error, object, "error"))
        return false;
    if (error.at && (!line_code (self, &task->error_code, error) ||
                     !line_text (self, &task->error_message, error, "message") ||
                     !line_raw (self, &task->error_data, error, "data")))
        return line_wrong_in (self, "error", 0);
    return line_pairs (self, &task->labels, &task->labels_count, object, "labels",
                       TMQ_LABELS_MAX) &&
           line_pairs (self, &task->needs, &task->needs_count, object, "require", TMQ_NEEDS_MAX) &&
           line_raw (self, &task->meta, object, "meta") &&
           line_text (self, &task->trace, object, "trace") &&
           line_text (self, &task->fair_key, object, "fair_key") &&
           line_text (self, &task->cancel_message, object, "cancel_message") &&
           line_id (self, &task->parent, object, "parent") &&
           line_bool (self, &task->has_parts, object, "has_parts") && take_after (self);
}

/* Attempts and turns. */

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
    piece_t error;
    if (!line_number_32 (self, &attempt.attempt, piece, "attempt") ||
        !line_text (self, &attempt.worker, piece, "worker") ||
        !line_time (self, &attempt.started_at, piece, "started_at") ||
        !line_time (self, &attempt.ended_at, piece, "ended_at") ||
        !line_text (self, &end, piece, "end") || !line_object (self, &error, piece, "error"))
        return false;
    if (error.at && (!line_code (self, &attempt.error_code, error) ||
                     !line_text (self, &attempt.error_message, error, "message")))
        return line_wrong_in (self, "error", 0);
    if (!attempt.attempt)
        return line_wrong (self, "attempt is missing");
    if (!end || strcmp (end, tmq_event_kind_text (TMQ_EVENT_COMPLETED)) == 0)
        return true;
    attempt.how = end_of (end);
    out[(*count)++] = attempt;
    if (attempt.how == TMQ_EVENT_NONE)
        return line_wrong (self, "'%.40s' is no end of an attempt", end);
    return line_take_late (self, piece, attempt.attempt);
}

static bool take_attempts (import_line_t *self)
{
    piece_t attempts, one;
    const char *at = NULL;
    size_t total;
    if (!line_array (self, &attempts, &total, self->object, "attempts"))
        return false;
    if (total > TMQ_IMPORT_ATTEMPTS_MAX + 1)
        return line_wrong (self, "attempts: %zu, at most %d can be imported", total,
                           TMQ_IMPORT_ATTEMPTS_MAX);
    tmq_imported_attempt_t *list = line_room (self, total, sizeof *list);
    for (size_t i = 1; i <= total && piece_next (&one, attempts, &at); i++)
        if (!take_attempt (self, list, &self->task.attempts_count, one))
            return line_wrong_in (self, "attempts", i);
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

static bool take_file (import_line_t *self, tmq_turn_file_t *out, piece_t piece)
{
    const char *op = NULL;
    if (!line_text (self, &op, piece, "op") || !line_text (self, &out->path, piece, "path"))
        return false;
    out->op = op_of (op);
    return (out->op != TMQ_FILE_OP_NONE && out->path) || line_wrong (self, "needs op and path");
}

static bool take_files (import_line_t *self, tmq_imported_turn_t *out, piece_t piece)
{
    piece_t files, one;
    const char *at = NULL;
    size_t total;
    if (!line_array (self, &files, &total, piece, "files"))
        return false;
    if (total > TMQ_TURN_FILES_MAX)
        return line_wrong (self, "files: %zu, at most %d", total, TMQ_TURN_FILES_MAX);
    tmq_turn_file_t *list = line_room (self, total, sizeof *list);
    while (out->files_count < total && piece_next (&one, files, &at))
        if (!take_file (self, &list[out->files_count++], one))
            return line_wrong_in (self, "files", out->files_count);
    out->files = list;
    return true;
}

static bool take_turn (import_line_t *self, tmq_imported_turn_t *out, piece_t piece)
{
    return line_number_32 (self, &out->attempt, piece, "attempt") &&
           line_text (self, &out->worker, piece, "worker") &&
           line_text (self, &out->agent, piece, "agent") &&
           line_text (self, &out->status, piece, "status") &&
           line_time (self, &out->started_at, piece, "started_at") &&
           line_number (self, &out->duration_ms, piece, "duration_ms", TMQ_TTL_MS_MAX) &&
           line_time (self, &out->told_at, piece, "told_at") &&
           line_bool (self, &out->superseded, piece, "superseded") &&
           line_text (self, &out->content, piece, "content") &&
           line_raw (self, &out->tool_calls, piece, "tool_calls") &&
           line_text (self, &out->tool_log, piece, "tool_log") && take_files (self, out, piece);
}

static bool take_turns (import_line_t *self)
{
    piece_t turns, one;
    const char *at = NULL;
    size_t total;
    uint64_t told = 0;
    if (!line_number (self, &told, self->object, "turn_count", TMQ_TURNS_MAX) ||
        !line_array (self, &turns, &total, self->object, "turns"))
        return false;
    if (total != told)
        return line_wrong (self, "turns: %zu of %" PRIu64 " are there", total, told);
    tmq_imported_turn_t *list = line_room (self, total, sizeof *list);
    while (self->task.turns_count < total && piece_next (&one, turns, &at))
        if (!take_turn (self, &list[self->task.turns_count++], one))
            return line_wrong_in (self, "turns", self->task.turns_count);
    self->task.turns = list;
    return true;
}

/* Questions. */

/* Beside it stands whether it is a text or JSON, which may be a string, or null. */
static bool take_default (import_line_t *self, tmq_question_t *out, piece_t piece)
{
    piece_t is_text;
    out->has_default = line_find (&is_text, piece, "default_text");
    out->default_answer = out->has_default ? "null" : NULL;
    if (!line_bool (self, &out->default_is_text, piece, "default_text"))
        return false;
    return out->default_is_text ? line_text (self, &out->default_answer, piece, "default")
                                : line_raw (self, &out->default_answer, piece, "default");
}

static bool take_question (import_line_t *self, tmq_question_t *out, piece_t piece)
{
    return line_text (self, &out->key, piece, "key") &&
           line_text (self, &out->worker, piece, "worker") &&
           line_number_32 (self, &out->attempt, piece, "attempt") &&
           line_time (self, &out->asked_at, piece, "asked_at") &&
           line_time (self, &out->deadline, piece, "deadline") &&
           line_raw (self, &out->request, piece, "request") && take_default (self, out, piece);
}

/* Who exported it may not have seen what they ask: then the task's worker asks again. */
static bool take_questions (import_line_t *self)
{
    piece_t questions, one;
    const char *at = NULL;
    size_t count = 0;
    size_t total;
    bool seen = true;
    if (!line_array (self, &questions, &total, self->object, "questions"))
        return false;
    if (total > TMQ_QUESTIONS_OPEN_MAX)
        return line_wrong (self, "questions: %zu, at most %d can be open", total,
                           TMQ_QUESTIONS_OPEN_MAX);
    tmq_question_t *list = line_room (self, total, sizeof *list);
    while (count < total && piece_next (&one, questions, &at)) {
        if (!take_question (self, &list[count], one))
            return line_wrong_in (self, "questions", count + 1);
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
static bool count_rest (import_line_t *self)
{
    piece_t list;
    return line_array (self, &list, &self->events, self->object, "events");
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

/* And where it ends to be one, for a line may have been cut. */
static bool no_object (import_line_t *self, const char *line, size_t length)
{
    json_error_t error;
    json_t *value = json_loadb (line, length, JSON_DECODE_ANY | JSON_ALLOW_NUL, &error);
    if (!value)
        return line_wrong (self, "it is no JSON object: %.120s", error.text);
    json_decref (value);
    return line_wrong (self, "it is no JSON object");
}

bool import_line_read (import_line_t *self, const char *line, size_t length)
{
    *self = (import_line_t){.compact = BYTES_INIT};
    json_writer_t writer = {&self->compact, false};
    tmq_import_init (&self->task);
    if (!json_text_is_object (line, length))
        return no_object (self, line, length);
    json_write_raw (&writer, line, length);
    bytes_append_byte (&self->compact, '\0');
    if (self->compact.failed)
        must_grow (NULL, SIZE_MAX, 2);
    self->object = (piece_t){(const char *) self->compact.data, self->compact.length - 1};
    if (!take_identity (self) || !take_times (self) || !take_course (self) ||
        !line_take_bodies (self) || !take_relations (self) || !take_attempts (self) ||
        !take_turns (self) || !take_questions (self) || !line_take_artifacts (self) ||
        !count_rest (self))
        return false;
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

/* Of two arrays, member by member. */
static bool lists_differ (piece_t line, piece_t other, const char *key, const char *const *keys)
{
    piece_t a, b, left, right;
    const char *at = NULL;
    const char *other_at = NULL;
    if (!line_find (&a, line, key))
        return false;
    const bool there = line_find (&b, other, key);
    while (piece_next (&left, a, &at)) {
        if (!there || !piece_next (&right, b, &other_at))
            return true;
        for (size_t i = 0; keys[i]; i++)
            if (member_differs (left, right, keys[i]))
                return true;
    }
    return there && piece_next (&right, b, &other_at);
}

/* Successes that are kept of some come and go. */
static bool attempts_differ (piece_t line, piece_t other)
{
    static const char *const keys[] = {"attempt", "worker", "started_at", "ended_at",
                                       "end",     "error",  NULL};
    return lists_differ (line, other, "attempts", keys);
}

/* What was replaced in an artifact has changed its length and its hash. */
static bool artifacts_differ (piece_t line, piece_t other)
{
    static const char *const keys[] = {"name",  "type", "attempt", "attached_at",
                                       "bytes", "hash", NULL};
    static const char *const redacted_keys[] = {"name", "type", "attempt", "attached_at", NULL};
    piece_t redacted;
    const bool is_redacted = line_find (&redacted, line, "redacted");
    return lists_differ (line, other, "artifacts", is_redacted ? redacted_keys : keys);
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
    return attempts_differ (line, other)    ? "attempts"
           : artifacts_differ (line, other) ? "artifacts"
                                            : NULL;
}
