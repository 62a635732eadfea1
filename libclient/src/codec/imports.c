/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

#include "codec/imports.h"

#include <sodium.h>
#include <stdlib.h>
#include <string.h>

#include "base/errors.h"
#include "base/sized.h"
#include "codec/encode.h"
#include "ids.h"
#include "turn_files.h"

/* Field numbers of Import, … */
enum {
    IMPORT_TASK_ID = 1,
    IMPORT_DEDUP_KEY = 2,
    IMPORT_EXTRA = 3,
    IMPORT_OFFSET = 4,
    IMPORT_BYTES = 5,
    IMPORT_MORE = 6
};

/* … and of ImportedTask and ImportedTurn in taskmq.proto. */
enum {
    IMPORTED_TASK = 1,
    IMPORTED_LEASE_MS = 2,
    IMPORTED_BACKOFF_MS = 3,
    IMPORTED_PAYLOAD = 4,
    IMPORTED_RESULT = 5,
    IMPORTED_ATTEMPTS = 6,
    IMPORTED_TURNS = 7,
    IMPORTED_QUESTIONS = 8,
    IMPORTED_ARTIFACTS = 9,
    IMPORTED_LATE = 10
};
enum { ARTIFACT_INFO = 1, ARTIFACT_BODY = 2 };
enum { TURN_INFO = 1, TURN_CONTENT = 2, TURN_TOOL_CALLS = 3, TURN_TOOL_LOG = 4, TURN_FILES = 5 };

/* … and of Extra. */
enum {
    EXTRA_START_BY = 1,
    EXTRA_MAX_RUNTIME_MS = 2,
    EXTRA_TRACE = 3,
    EXTRA_CANCEL_MESSAGE = 4,
    EXTRA_FAIR_KEY = 10,
    EXTRA_NEEDS = 11,
    EXTRA_AFTER = 15,
    EXTRA_PARENT = 16,
    EXTRA_HAS_PARTS = 18,
    EXTRA_ADOPTED_FROM = 25,
    EXTRA_PAYLOAD_BLOB = 37,
    EXTRA_RESULT_BLOB = 38
};

static char *text_of (const char *text)
{
    return (char *) (uintptr_t) (text == NULL ? "" : text);
}

int core_import_take (tmq_import_t *out, const tmq_import_t *given, tmq_error_t *error)
{
    static const tmq_import_t defaults = {0};
    if (given == NULL)
        return core_error (error, TMQ_INVALID, "the task is NULL");
    core_sized_init (out, sizeof *out, &defaults, sizeof defaults);
    if (!core_sized_take (out, sizeof *out, given, sizeof given->size + sizeof given->id))
        return core_error (error, TMQ_INVALID, "tmq_import_init was not called");
    if (out->labels_count > TMQ_LABELS_MAX || out->needs_count > TMQ_NEEDS_MAX ||
        out->after_count > TMQ_AFTER_MAX)
        return core_error (error, TMQ_TOO_LARGE, "labels, needs, after: too many of them");
    if (out->artifacts_count > TMQ_ARTIFACTS_MAX || out->late_count > TMQ_KEPT_TASK_MAX)
        return core_error (error, TMQ_TOO_LARGE, "artifacts, late: too many of them");
    for (size_t i = 0; i < out->late_count; i++)
        if (out->late[i].result_bytes > TMQ_FRAME_BYTES_MAX)
            return core_error (error, TMQ_TOO_LARGE, "late: a result has at most %d bytes",
                               TMQ_FRAME_BYTES_MAX);
    if (out->payload_bytes > TMQ_FRAME_BYTES_MAX || out->result_bytes > TMQ_FRAME_BYTES_MAX)
        return core_error (error, TMQ_TOO_LARGE, "payload, result: at most %d bytes",
                           TMQ_FRAME_BYTES_MAX);
    return TMQ_OK;
}

/* The task. */

static void append_error (bytes_t *out, const tmq_import_t *in)
{
    Taskmq__TaskError error = TASKMQ__TASK_ERROR__INIT;
    enum { TASK_ERROR = 29 };
    if (in->status != TMQ_STATUS_FAILED)
        return;
    error.code = in->error_code;
    error.message = text_of (in->error_message);
    error.data = text_of (in->error_data);
    bytes_append_message (out, TASK_ERROR, &error.base);
}

static void append_progress (bytes_t *out, const tmq_import_t *in)
{
    Taskmq__Progress progress = TASKMQ__PROGRESS__INIT;
    enum { TASK_PROGRESS = 22 };
    progress.done = in->progress_done;
    progress.total = in->progress_total;
    progress.unit = text_of (in->progress_unit);
    progress.message = text_of (in->progress_message);
    bytes_append_message (out, TASK_PROGRESS, &progress.base);
}

static void append_labels (bytes_t *out, uint32_t field, const tmq_label_t *labels, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        bytes_mark_t mark = bytes_open (out, field);
        bytes_append_string (out, 1, text_of (labels[i].key));
        bytes_append_string (out, 2, text_of (labels[i].value));
        bytes_close (out, mark);
    }
}

static void append_task (bytes_t *out, const tmq_import_t *in)
{
    enum { TASK_LABELS = 23 };
    Taskmq__Task task = TASKMQ__TASK__INIT;
    task.queue = text_of (in->queue);
    task.session = text_of (in->session);
    task.status = (uint32_t) in->status;
    task.status_message = text_of (in->status_message);
    task.priority = in->priority;
    task.method = text_of (in->method);
    task.content_type = text_of (in->content_type);
    task.created_at = in->created_at;
    task.updated_at = in->updated_at;
    task.started_at = in->started_at;
    task.finished_at = in->finished_at;
    task.expires_at = in->expires_at;
    task.ttl_ms = in->ttl_ms;
    task.poll_interval_ms = in->poll_interval_ms;
    task.attempt = in->attempt;
    task.max_attempts = in->max_attempts;
    task.failures = in->failures;
    task.worker = text_of (in->worker);
    task.meta = text_of (in->meta);
    task.result_type = text_of (in->result_type);
    task.outcome = (uint32_t) in->outcome;
    task.dead = in->dead;
    task.version = in->version;
    task.not_before = in->not_before;
    bytes_mark_t mark = bytes_open (out, IMPORTED_TASK);
    bytes_append_packed (out, &task.base);
    append_progress (out, in);
    append_labels (out, TASK_LABELS, in->labels, in->labels_count);
    append_error (out, in);
    bytes_close (out, mark);
}

/* Attempts, turns and questions. */

static void append_attempt (bytes_t *out, const tmq_imported_attempt_t *in)
{
    Taskmq__AttemptInfo info = TASKMQ__ATTEMPT_INFO__INIT;
    Taskmq__TaskError error = TASKMQ__TASK_ERROR__INIT;
    info.attempt = in->attempt;
    info.worker = text_of (in->worker);
    info.started_at = in->started_at;
    info.ended_at = in->ended_at;
    info.how = (uint32_t) in->how;
    error.code = in->error_code;
    error.message = text_of (in->error_message);
    if (in->error_code != 0 || *error.message != '\0')
        info.error = &error;
    bytes_append_message (out, IMPORTED_ATTEMPTS, &info.base);
}

static void append_turn (bytes_t *out, const tmq_imported_turn_t *in, uint32_t turn,
                         uint32_t number)
{
    Taskmq__TurnInfo info = TASKMQ__TURN_INFO__INIT;
    bytes_t files = BYTES_INIT;
    info.turn = turn;
    info.number = number;
    info.attempt = in->attempt;
    info.worker = text_of (in->worker);
    info.agent = text_of (in->agent);
    info.status = text_of (in->status);
    info.started_at = in->started_at;
    info.duration_ms = in->duration_ms;
    info.told_at = in->told_at;
    info.superseded = in->superseded;
    for (size_t i = 0; i < in->files_count; i++)
        turn_file_append (&files, in->files[i].op, in->files[i].path);
    bytes_mark_t mark = bytes_open (out, IMPORTED_TURNS);
    bytes_append_message (out, TURN_INFO, &info.base);
    bytes_append_string (out, TURN_CONTENT, text_of (in->content));
    bytes_append_string (out, TURN_TOOL_CALLS, text_of (in->tool_calls));
    bytes_append_string (out, TURN_TOOL_LOG, text_of (in->tool_log));
    bytes_append_blob (out, TURN_FILES, files.data, files.length);
    bytes_close (out, mark);
    out->failed |= files.failed;
    bytes_free (&files);
}

static void append_question (bytes_t *out, const tmq_question_t *in)
{
    Taskmq__Question question = TASKMQ__QUESTION__INIT;
    question.key = text_of (in->key);
    question.asked_at = in->asked_at;
    question.deadline = in->deadline;
    question.request = text_of (in->request);
    question.has_default = in->has_default;
    question.default_text = in->default_is_text;
    question.default_answer = text_of (in->default_answer);
    question.attempt = in->attempt;
    question.worker = text_of (in->worker);
    bytes_append_message (out, IMPORTED_QUESTIONS, &question.base);
}

/* Of an uploaded one the hash is known; the broker compares that of bytes. */
static void append_artifact (bytes_t *out, const tmq_imported_artifact_t *in)
{
    uint8_t hash[TMQ_BLOB_HASH_BYTES];
    Taskmq__Artifact info = TASKMQ__ARTIFACT__INIT;
    const bool uploaded = in->blob.bytes > 0;
    if (uploaded)
        memcpy (hash, in->blob.hash, sizeof hash);
    else
        crypto_generichash (hash, sizeof hash, in->bytes, in->length, NULL, 0);
    info.name = text_of (in->name);
    info.type = text_of (in->type);
    info.bytes = uploaded ? in->blob.bytes : in->length;
    info.hash = (ProtobufCBinaryData){sizeof hash, hash};
    info.attempt = in->attempt;
    info.attached_at = in->attached_at;
    bytes_mark_t mark = bytes_open (out, IMPORTED_ARTIFACTS);
    bytes_append_message (out, ARTIFACT_INFO, &info.base);
    if (!uploaded)
        bytes_append_blob (out, ARTIFACT_BODY, in->bytes, in->length);
    bytes_close (out, mark);
}

static void append_late (bytes_t *out, const tmq_imported_late_t *in)
{
    Taskmq__ImportedLate late = TASKMQ__IMPORTED_LATE__INIT;
    Taskmq__Blob blob = TASKMQ__BLOB__INIT;
    late.attempt = in->attempt;
    late.type = text_of (in->type);
    late.at = in->at;
    late.until = in->until;
    blob.bytes = in->result_blob.bytes;
    blob.hash = (ProtobufCBinaryData){sizeof in->result_blob.hash,
                                      (uint8_t *) (uintptr_t) in->result_blob.hash};
    if (blob.bytes > 0)
        late.result_blob = &blob;
    else
        late.result = (ProtobufCBinaryData){in->result_bytes, (uint8_t *) (uintptr_t) in->result};
    bytes_append_message (out, IMPORTED_LATE, &late.base);
}

void core_import_pack (bytes_t *out, const tmq_import_t *task)
{
    uint32_t number = 0;
    append_task (out, task);
    bytes_append_uint (out, IMPORTED_LEASE_MS, task->lease_ms);
    bytes_append_uint (out, IMPORTED_BACKOFF_MS, task->backoff_ms);
    bytes_append_blob (out, IMPORTED_PAYLOAD, task->payload, task->payload_bytes);
    bytes_append_blob (out, IMPORTED_RESULT, task->result, task->result_bytes);
    for (size_t i = 0; i < task->attempts_count; i++)
        append_attempt (out, &task->attempts[i]);
    for (size_t i = 0; i < task->turns_count; i++) {
        bool same = i > 0 && task->turns[i].attempt == task->turns[i - 1].attempt;
        number = same ? number + 1 : 1;
        append_turn (out, &task->turns[i], (uint32_t) i + 1, number);
    }
    for (size_t i = 0; i < task->questions_count; i++)
        append_question (out, &task->questions[i]);
    for (size_t i = 0; i < task->artifacts_count; i++)
        append_artifact (out, &task->artifacts[i]);
    for (size_t i = 0; i < task->late_count; i++)
        append_late (out, &task->late[i]);
}

/* Requests. */

static void append_extra (bytes_t *out, const tmq_import_t *in)
{
    bytes_t extra = BYTES_INIT;
    bytes_append_uint (&extra, EXTRA_START_BY, in->start_by);
    bytes_append_uint (&extra, EXTRA_MAX_RUNTIME_MS, in->max_runtime_ms);
    bytes_append_string (&extra, EXTRA_TRACE, text_of (in->trace));
    bytes_append_string (&extra, EXTRA_CANCEL_MESSAGE, text_of (in->cancel_message));
    bytes_append_string (&extra, EXTRA_FAIR_KEY, text_of (in->fair_key));
    append_labels (&extra, EXTRA_NEEDS, in->needs, in->needs_count);
    for (size_t i = 0; i < in->after_count; i++) {
        bytes_mark_t mark = bytes_open (&extra, EXTRA_AFTER);
        bytes_append_blob (&extra, 1, in->after[i].id.bytes, ID_BYTES);
        bytes_append_uint (&extra, 2, (uint64_t) in->after[i].policy);
        bytes_append_uint (&extra, 3, (uint64_t) in->after[i].status);
        bytes_close (&extra, mark);
    }
    if (!id_is_zero (&in->parent))
        bytes_append_blob (&extra, EXTRA_PARENT, in->parent.bytes, ID_BYTES);
    bytes_append_uint (&extra, EXTRA_HAS_PARTS, in->has_parts);
    bytes_append_uint (&extra, EXTRA_ADOPTED_FROM, in->adopted_from);
    if (in->payload_blob.bytes > 0)
        core_encode_blob (&extra, EXTRA_PAYLOAD_BLOB, &in->payload_blob);
    if (in->result_blob.bytes > 0)
        core_encode_blob (&extra, EXTRA_RESULT_BLOB, &in->result_blob);
    bytes_append_blob (out, IMPORT_EXTRA, extra.data, extra.length);
    out->failed |= extra.failed;
    bytes_free (&extra);
}

core_group_t *core_import_group (size_t count)
{
    core_group_t *group = calloc (1, sizeof *group);
    if (group == NULL)
        return NULL;
    group->answer.completion.receipts = calloc (count, sizeof (tmq_receipt_t));
    group->answer.completion.receipts_count = count;
    group->answer.completion.op = TMQ_OP_IMPORT;
    if (group->answer.completion.receipts != NULL)
        return group;
    free (group);
    return NULL;
}

void core_import_drop (core_group_t *group)
{
    if (group->first != NULL)
        core_request_free (group->first);
    else
        core_answer_free (&group->answer);
}

static core_request_t *member_new (core_group_t *group, size_t receipt)
{
    core_request_t *member = core_request_new (TMQ_OP_IMPORT);
    if (member == NULL)
        return NULL;
    member->items = calloc (1, sizeof *member->items);
    if (member->items == NULL) {
        core_request_free (member);
        return NULL;
    }
    member->items[0].receipt = receipt;
    member->items_count = 1;
    member->group = group;
    core_request_t **end = &group->first;
    while (*end != NULL)
        end = &(*end)->next;
    *end = member;
    group->open++;
    return member;
}

bool core_import_add (core_group_t *group, const tmq_import_t *task, const bytes_t *packed,
                      size_t offset, size_t receipt)
{
    core_request_t *member = member_new (group, receipt);
    if (member == NULL)
        return false;
    bytes_t *fields = &member->fields;
    size_t left = packed->length - offset;
    size_t bytes = left < TMQ_FRAME_BYTES_MAX ? left : TMQ_FRAME_BYTES_MAX;
    group->answer.completion.receipts[receipt].id = task->id;
    bytes_mark_t mark = core_request_begin (member);
    bytes_append_blob (fields, IMPORT_TASK_ID, task->id.bytes, ID_BYTES);
    if (bytes == left) {
        bytes_append_string (fields, IMPORT_DEDUP_KEY, text_of (task->dedup_key));
        append_extra (fields, task);
    }
    bytes_append_uint (fields, IMPORT_OFFSET, offset);
    bytes_append_uint (fields, IMPORT_BYTES, bytes);
    bytes_append_uint (fields, IMPORT_MORE, bytes < left);
    bytes_close (fields, mark);
    bytes_append (&member->body, packed->data + offset, bytes);
    return !fields->failed && !member->body.failed;
}
