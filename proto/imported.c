/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

#include "imported.h"

#include <string.h>

#include "checks.h"
#include "decode.h"
#include "ids.h"
#include "json.h"
#include "turn_files.h"
#include "types.h"

/* Texts and times. */

static bool check_time (check_t *check, const char *member, uint64_t time)
{
    return check_range (check, member, time, 0, TMQ_TIME_MS_MAX);
}

static bool check_bytes (check_t *check, const char *member, const ProtobufCBinaryData *bytes,
                         size_t bytes_max)
{
    return bytes->len <= bytes_max ||
           check_refuse (check, TMQ_TOO_LARGE, "%s: %zu bytes, at most %zu", member, bytes->len,
                         bytes_max);
}

static bool check_plain (check_t *check, const char *member, const ProtobufCBinaryData *bytes)
{
    if (!check_bytes (check, member, bytes, TMQ_TURN_BYTES_MAX))
        return false;
    return bytes->len == 0 ||
           (utf8_is_valid (bytes->data, bytes->len) &&
            memchr (bytes->data, '\0', bytes->len) == NULL) ||
           check_refuse (check, TMQ_INVALID, "%s: must be UTF-8 without NUL", member);
}

/* The task. */

static bool check_progress (check_t *check, const Taskmq__Progress *progress)
{
    return progress == NULL ||
           (check_amount (check, "progress.done", progress->done) &&
            check_amount (check, "progress.total", progress->total) &&
            check_text (check, "progress.unit", progress->unit, TMQ_UNIT_BYTES_MAX) &&
            check_text (check, "progress.message", progress->message, TMQ_MESSAGE_BYTES_MAX));
}

static bool check_times (check_t *check, const Taskmq__Task *task)
{
    bool ended = status_is_terminal ((tmq_status_t) task->status);
    if (ended != (task->finished_at != 0))
        return check_refuse (check, TMQ_INVALID, "finished_at: exactly what has ended has one");
    return check_range (check, "created_at", task->created_at, 1, TMQ_TIME_MS_MAX) &&
           check_range (check, "updated_at", task->updated_at, task->created_at, TMQ_TIME_MS_MAX) &&
           check_time (check, "started_at", task->started_at) &&
           check_time (check, "finished_at", task->finished_at) &&
           check_time (check, "expires_at", task->expires_at) &&
           check_time (check, "not_before", task->not_before) &&
           check_range (check, "ttl_ms", task->ttl_ms, 0, TMQ_TTL_MS_MAX);
}

static bool check_counts (check_t *check, const Taskmq__Task *task)
{
    return check_range (check, "priority", task->priority, 0, UINT8_MAX) &&
           check_range (check, "max_attempts", task->max_attempts, 1, TMQ_MAX_ATTEMPTS_MAX) &&
           check_range (check, "attempt", task->attempt, 0, TMQ_IMPORT_NUMBER_MAX) &&
           check_range (check, "failures", task->failures, 0, task->attempt) &&
           check_range (check, "version", task->version, 1, TMQ_IMPORT_NUMBER_MAX);
}

static bool check_status (check_t *check, uint32_t status)
{
    return status == TMQ_STATUS_QUEUED || status == TMQ_STATUS_INPUT_REQUIRED ||
           (status <= TMQ_STATUS_CANCELLED && status_is_terminal ((tmq_status_t) status)) ||
           check_refuse (check, TMQ_INVALID,
                         "status: must be queued, input_required, completed, failed or cancelled; "
                         "nobody here holds its lease");
}

static bool fits_outcome (const Taskmq__Task *task)
{
    if (task->status == TMQ_STATUS_COMPLETED)
        return task->outcome == TMQ_OUTCOME_RESULT;
    if (task->status == TMQ_STATUS_FAILED)
        return task->outcome == TMQ_OUTCOME_TOOL_ERROR ||
               task->outcome == TMQ_OUTCOME_PROTOCOL_ERROR;
    return task->outcome == TMQ_OUTCOME_NONE;
}

static bool check_outcome (check_t *check, const Taskmq__ImportedTask *whole)
{
    const Taskmq__Task *task = whole->task;
    const Taskmq__TaskError *error = task->error;
    if (!fits_outcome (task))
        return check_refuse (check, TMQ_INVALID, "outcome: does not go with the status");
    if ((error != NULL) != (task->status == TMQ_STATUS_FAILED))
        return check_refuse (check, TMQ_INVALID, "error: exactly what has failed has one");
    if (whole->result.len > 0 && task->outcome != TMQ_OUTCOME_RESULT &&
        task->outcome != TMQ_OUTCOME_TOOL_ERROR)
        return check_refuse (check, TMQ_INVALID, "result: does not go with the outcome");
    return check_bytes (check, "payload", &whole->payload, TMQ_FRAME_BYTES_MAX) &&
           check_bytes (check, "result", &whole->result, TMQ_FRAME_BYTES_MAX) &&
           check_text (check, "result_type", task->result_type, TMQ_CONTENT_TYPE_BYTES_MAX) &&
           (error == NULL ||
            (check_text (check, "error.message", error->message, TMQ_ERROR_MESSAGE_BYTES_MAX) &&
             check_json (check, "error.data", error->data, TMQ_ERROR_DATA_BYTES_MAX, false)));
}

static bool check_task (check_t *check, const Taskmq__ImportedTask *whole)
{
    const Taskmq__Task *task = whole->task;
    if (task == NULL)
        return check_refuse (check, TMQ_INVALID, "task: is missing");
    return check_status (check, task->status) && check_name (check, "queue", task->queue) &&
           check_name_or_empty (check, "session", task->session) &&
           check_name_or_empty (check, "worker", task->worker) &&
           check_text (check, "status_message", task->status_message, TMQ_MESSAGE_BYTES_MAX) &&
           check_text (check, "method", task->method, TMQ_METHOD_BYTES_MAX) &&
           check_text (check, "content_type", task->content_type, TMQ_CONTENT_TYPE_BYTES_MAX) &&
           check_labels (check, task->labels, task->n_labels) &&
           check_json (check, "meta", task->meta, TMQ_META_BYTES_MAX, true) &&
           check_counts (check, task) && check_times (check, task) &&
           check_progress (check, task->progress) && check_outcome (check, whole) &&
           check_range (check, "backoff_ms", whole->backoff_ms, 0, TMQ_BACKOFF_MS_MAX) &&
           (whole->lease_ms == 0 ||
            check_range (check, "lease_ms", whole->lease_ms, TMQ_LEASE_MS_MIN, TMQ_LEASE_MS_MAX));
}

/* Attempts. */

static bool is_end_of_attempt (uint32_t how)
{
    return how == TMQ_EVENT_RELEASED || how == TMQ_EVENT_ATTEMPT_FAILED ||
           how == TMQ_EVENT_LEASE_LOST || how == TMQ_EVENT_FAILED || how == TMQ_EVENT_CANCELLED;
}

static bool check_attempt (check_t *check, const Taskmq__AttemptInfo *attempt, uint32_t after,
                           uint32_t newest)
{
    if (attempt->attempt <= after || attempt->attempt > newest)
        return check_refuse (check, TMQ_INVALID,
                             "attempts: their numbers must rise, up to that of the task");
    if (!is_end_of_attempt (attempt->how))
        return check_refuse (check, TMQ_INVALID, "attempts: %u is no end of an attempt",
                             attempt->how);
    return check_name_or_empty (check, "attempts.worker", attempt->worker) &&
           check_time (check, "attempts.started_at", attempt->started_at) &&
           check_time (check, "attempts.ended_at", attempt->ended_at) &&
           (attempt->error == NULL ||
            check_text (check, "attempts.error", attempt->error->message, TMQ_MESSAGE_BYTES_MAX));
}

static bool check_attempts_of (check_t *check, const Taskmq__ImportedTask *whole)
{
    uint32_t after = 0;
    if (!check_count (check, "attempts", whole->n_attempts, 0, TMQ_IMPORT_ATTEMPTS_MAX))
        return false;
    for (size_t i = 0; i < whole->n_attempts; i++) {
        if (!check_attempt (check, whole->attempts[i], after, whole->task->attempt))
            return false;
        after = whole->attempts[i]->attempt;
    }
    return true;
}

/* Late successes. */

static const Taskmq__AttemptInfo *attempt_of (const Taskmq__ImportedTask *whole, uint32_t attempt)
{
    for (size_t i = 0; i < whole->n_attempts; i++)
        if (whole->attempts[i]->attempt == attempt)
            return whole->attempts[i];
    return NULL;
}

/* An attempt that was cancelled brings nothing. */
static bool check_late (check_t *check, const Taskmq__ImportedTask *whole,
                        const Taskmq__ImportedLate *late, uint32_t after)
{
    const Taskmq__AttemptInfo *attempt = attempt_of (whole, late->attempt);
    if (late->attempt <= after || attempt == NULL || attempt->how == TMQ_EVENT_CANCELLED)
        return check_refuse (check, TMQ_INVALID,
                             "late: their numbers must rise, and be of attempts that are there and "
                             "were not cancelled");
    if (late->result_blob != NULL && late->result.len > 0)
        return check_refuse (check, TMQ_INVALID,
                             "late.result_blob: must not stand beside a result");
    return check_text (check, "late.type", late->type, TMQ_CONTENT_TYPE_BYTES_MAX) &&
           check_range (check, "late.at", late->at, 1, TMQ_TIME_MS_MAX) &&
           check_range (check, "late.until", late->until, late->at, TMQ_TIME_MS_MAX) &&
           check_bytes (check, "late.result", &late->result, TMQ_FRAME_BYTES_MAX) &&
           (late->result_blob == NULL || check_blob (check, "late.result_blob", late->result_blob));
}

static bool check_late_of (check_t *check, const Taskmq__ImportedTask *whole)
{
    uint32_t after = 0;
    uint32_t status = whole->task->status;
    if (whole->n_late > 0 && (status == TMQ_STATUS_COMPLETED || status == TMQ_STATUS_CANCELLED))
        return check_refuse (check, TMQ_INVALID,
                             "late: nothing is kept of a task that is completed or cancelled");
    if (!check_count (check, "late", whole->n_late, 0, TMQ_KEPT_TASK_MAX))
        return false;
    for (size_t i = 0; i < whole->n_late; i++) {
        if (!check_late (check, whole, whole->late[i], after))
            return false;
        after = whole->late[i]->attempt;
    }
    return true;
}

/* Artifacts. */

static bool check_artifact_bytes (check_t *check, const Taskmq__ImportedArtifact *artifact)
{
    const Taskmq__Artifact *info = artifact->info;
    Taskmq__Blob blob = TASKMQ__BLOB__INIT;
    blob.hash = info->hash;
    blob.bytes = info->bytes;
    if (info->hash.len != TMQ_BLOB_HASH_BYTES)
        return check_refuse (check, TMQ_INVALID, "artifacts.hash: must have %d bytes",
                             TMQ_BLOB_HASH_BYTES);
    if (artifact->body.len == 0 && info->bytes > 0)
        return check_uploaded (check, "artifacts", &blob);
    return check_bytes (check, "artifacts.body", &artifact->body, TMQ_FRAME_BYTES_MAX) &&
           (artifact->body.len == info->bytes ||
            check_refuse (check, TMQ_INVALID, "artifacts.body: has not the bytes that it says"));
}

static bool check_artifact_of (check_t *check, const Taskmq__ImportedTask *whole, size_t i)
{
    const Taskmq__Artifact *info = whole->artifacts[i]->info;
    if (info == NULL)
        return check_refuse (check, TMQ_INVALID, "artifacts: one has no info");
    for (size_t k = 0; k < i; k++)
        if (strcmp (whole->artifacts[k]->info->name, info->name) == 0)
            return check_refuse (check, TMQ_INVALID, "artifacts.name: each stands there once");
    if (info->uploaded)
        return check_refuse (check, TMQ_INVALID, "artifacts.uploaded: the broker's alone");
    return check_artifact_name (check, info->name) &&
           check_text (check, "artifacts.type", info->type, TMQ_CONTENT_TYPE_BYTES_MAX) &&
           check_range (check, "artifacts.attempt", info->attempt, 1, whole->task->attempt) &&
           check_range (check, "artifacts.attached_at", info->attached_at, 1, TMQ_TIME_MS_MAX) &&
           check_artifact_bytes (check, whole->artifacts[i]);
}

static bool check_artifacts_of (check_t *check, const Taskmq__ImportedTask *whole)
{
    if (!check_count (check, "artifacts", whole->n_artifacts, 0, TMQ_ARTIFACTS_MAX))
        return false;
    for (size_t i = 0; i < whole->n_artifacts; i++)
        if (!check_artifact_of (check, whole, i))
            return false;
    return true;
}

/* Turns. */

static bool check_place (check_t *check, const Taskmq__TurnInfo *info,
                         const Taskmq__TurnInfo *before, uint32_t newest)
{
    bool same = before != NULL && before->attempt == info->attempt;
    uint32_t turn = before == NULL ? 1 : before->turn + 1;
    uint32_t number = same ? before->number + 1 : 1;
    if (info->turn == turn && info->number == number && info->attempt > 0 &&
        info->attempt <= newest && (before == NULL || info->attempt >= before->attempt))
        return true;
    return check_refuse (check, TMQ_INVALID,
                         "turns: must be counted without gaps, in the order of their attempts");
}

static bool check_turn_of (check_t *check, const Taskmq__ImportedTurn *turn)
{
    const Taskmq__TurnInfo *info = turn->info;
    size_t files;
    const char *flaw = turn_files_flaw (turn->files.data, turn->files.len, &files);
    if (flaw != NULL)
        return check_refuse (check, TMQ_INVALID, "turns.%s", flaw);
    if (turn->tool_calls.len > 0 &&
        !json_text_is_valid (turn->tool_calls.data, turn->tool_calls.len))
        return check_refuse (check, TMQ_INVALID, "turns.tool_calls: must be JSON");
    return check_name_or_empty (check, "turns.worker", info->worker) &&
           check_text (check, "turns.agent", info->agent, TMQ_TURN_AGENT_BYTES_MAX) &&
           check_text (check, "turns.status", info->status, TMQ_TURN_STATUS_BYTES_MAX) &&
           check_time (check, "turns.started_at", info->started_at) &&
           check_time (check, "turns.told_at", info->told_at) &&
           check_range (check, "turns.duration_ms", info->duration_ms, 0, TMQ_TTL_MS_MAX) &&
           check_plain (check, "turns.content", &turn->content) &&
           check_plain (check, "turns.tool_calls", &turn->tool_calls) &&
           check_plain (check, "turns.tool_log", &turn->tool_log) &&
           check_bytes (check, "turns", &turn->files,
                        TMQ_FRAME_BYTES_MAX - turn->content.len - turn->tool_calls.len -
                            turn->tool_log.len);
}

static bool check_turns_of (check_t *check, const Taskmq__ImportedTask *whole)
{
    const Taskmq__TurnInfo *before = NULL;
    size_t ranges = 0;
    if (!check_count (check, "turns", whole->n_turns, 0, TMQ_TURNS_MAX))
        return false;
    for (size_t i = 0; i < whole->n_turns; i++) {
        const Taskmq__TurnInfo *info = whole->turns[i]->info;
        if (info == NULL)
            return check_refuse (check, TMQ_INVALID, "turns: one has no info");
        if (!check_place (check, info, before, whole->task->attempt) ||
            !check_turn_of (check, whole->turns[i]))
            return false;
        ranges += info->superseded && (before == NULL || !before->superseded);
        before = info;
    }
    return check_count (check, "ranges of superseded turns", ranges, 0, TMQ_TURN_RANGES_MAX);
}

/* Questions. */

static bool key_is_new (const Taskmq__ImportedTask *whole, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp (whole->questions[i]->key, whole->questions[count]->key) == 0)
            return false;
    return true;
}

static bool check_question (check_t *check, const Taskmq__Question *question, uint32_t newest)
{
    if (*question->key == '\0')
        return check_refuse (check, TMQ_INVALID, "questions.key: is missing");
    return check_text (check, "questions.key", question->key, TMQ_QUESTION_KEY_BYTES_MAX) &&
           check_asked (check, question->request) &&
           check_default (check, question->has_default, question->default_text,
                          question->default_answer) &&
           check_range (check, "questions.asked_at", question->asked_at, 1, TMQ_TIME_MS_MAX) &&
           check_range (check, "questions.deadline", question->deadline, question->asked_at,
                        question->asked_at + TMQ_TTL_MS_MAX) &&
           check_range (check, "questions.attempt", question->attempt, 1, newest) &&
           check_name_or_empty (check, "questions.worker", question->worker);
}

static bool check_questions_of (check_t *check, const Taskmq__ImportedTask *whole)
{
    bool asks = whole->task->status == TMQ_STATUS_INPUT_REQUIRED;
    if (asks != (whole->n_questions > 0))
        return check_refuse (check, TMQ_INVALID,
                             "questions: exactly what is input_required has open ones");
    if (!check_count (check, "questions", whole->n_questions, 0, TMQ_QUESTIONS_OPEN_MAX))
        return false;
    for (size_t i = 0; i < whole->n_questions; i++) {
        if (!check_question (check, whole->questions[i], whole->task->attempt))
            return false;
        if (!key_is_new (whole, i))
            return check_refuse (check, TMQ_INVALID, "questions.key: each stands there once");
    }
    return true;
}

const Taskmq__ImportedTask *imported_read (verdict_t *out, arena_t *arena, const void *bytes,
                                           size_t length)
{
    codec_report_t report;
    *out = (verdict_t){TMQ_OK, NULL};
    check_t check = {arena, out, NULL, NULL};
    const Taskmq__ImportedTask *whole = (const Taskmq__ImportedTask *) decode_message (
        &report, arena, &taskmq__imported_task__descriptor, bytes, length);
    if (whole == NULL)
        *out = (verdict_t){report.code, report.text};
    else if (report.flaws != NULL)
        check_refuse (&check, TMQ_INVALID, "%s: %s", report.flaws->field, report.flaws->text);
    else if (check_task (&check, whole) && check_attempts_of (&check, whole) &&
             check_late_of (&check, whole) && check_artifacts_of (&check, whole) &&
             check_turns_of (&check, whole))
        check_questions_of (&check, whole);
    return out->code == TMQ_OK ? whole : NULL;
}
