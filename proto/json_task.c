/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* The one rendering of a task and of an event. Keys and their order are a stable interface: add,
 * never change. */
#include "ids.h"
#include "json.h"
#include "taskmq.pb-c.h"
#include "types.h"

#include <sodium.h>
#include <string.h>

enum { BODY_HASH_BYTES = 32 };

/* Members. Inline, for their constant keys. */

static inline void member_text (json_writer_t *writer, const char *key, const char *text)
{
    if (text == NULL || *text == '\0') {
        json_write_absent (writer, key);
        return;
    }
    json_write_key (writer, key);
    json_write_string (writer, text, strlen (text));
}

static inline void member_uint (json_writer_t *writer, const char *key, uint64_t value)
{
    if (value < 10) {
        const char digit = (char) ('0' + value);
        json_write_known (writer, key, &digit, 1);
        return;
    }
    json_write_key (writer, key);
    json_write_uint (writer, value);
}

static inline void member_bool (json_writer_t *writer, const char *key, bool value)
{
    if (value)
        json_write_known (writer, key, "true", 4);
    else
        json_write_known (writer, key, "false", 5);
}

static inline void member_uint_if (json_writer_t *writer, const char *key, bool given,
                                   uint64_t value)
{
    if (given)
        member_uint (writer, key, value);
    else
        json_write_absent (writer, key);
}

static inline void member_time (json_writer_t *writer, const char *key, int64_t ms)
{
    if (ms == 0) {
        json_write_absent (writer, key);
        return;
    }
    json_write_key (writer, key);
    json_write_time (writer, ms);
}

static void write_id (json_writer_t *writer, const tmq_id_t *id)
{
    char text[ID_TEXT_SIZE];
    id_format (id, text);
    json_write_plain (writer, text, ID_TEXT_LENGTH);
}

static inline void member_id (json_writer_t *writer, const char *key, const tmq_id_t *id)
{
    json_write_key (writer, key);
    write_id (writer, id);
}

/* JSON text as JSON. What is none (no broker of ours lets it in) is shown as a string. */
static void member_json (json_writer_t *writer, const char *key, const char *text)
{
    if (text == NULL || *text == '\0') {
        json_write_absent (writer, key);
        return;
    }
    json_write_key (writer, key);
    if (json_text_is_valid (text, strlen (text)))
        json_write_raw (writer, text, strlen (text));
    else
        json_write_string (writer, text, strlen (text));
}

static inline void member_status (json_writer_t *writer, const char *key, unsigned status)
{
    member_text (writer, key, status != TMQ_STATUS_NONE ? status_text (status) : NULL);
}

static void member_progress (json_writer_t *writer, const progress_view_t *progress)
{
    if (!progress->given) {
        json_write_absent (writer, "progress");
        return;
    }
    json_write_key (writer, "progress");
    json_write_object_begin (writer);
    json_write_key (writer, "done");
    json_write_double (writer, progress->done);
    json_write_key (writer, "total");
    if (progress->total > 0)
        json_write_double (writer, progress->total);
    else
        json_write_null (writer);
    member_text (writer, "unit", progress->unit);
    member_text (writer, "message", progress->message);
    json_write_object_end (writer);
}

static inline void member_labels (json_writer_t *writer, const char *name,
                                  const label_view_t *labels, size_t count)
{
    if (count == 0) {
        json_write_known (writer, name, "{}", 2);
        return;
    }
    json_write_key (writer, name);
    json_write_object_begin (writer);
    for (size_t i = 0; i < count; i++) {
        json_write_foreign_key (writer, labels[i].key);
        json_write_string (writer, labels[i].value, strlen (labels[i].value));
    }
    json_write_object_end (writer);
}

/* A body, or null when it is not loaded or larger than the limit. */
static void member_body (json_writer_t *writer, const char *key, const char *type,
                         const void *bytes, uint64_t length, size_t bytes_max)
{
    json_write_key (writer, key);
    bool loaded = bytes != NULL || length == 0;
    if (!loaded || (bytes_max != 0 && length > bytes_max))
        json_write_null (writer);
    else
        json_write_body (writer, type, length > 0 ? bytes : "", (size_t) length);
}

/* The hash of a body that is too large to be shown, else null. */
static void member_hash (json_writer_t *writer, const char *key, const uint8_t *blob,
                         const void *bytes, uint64_t length, size_t bytes_max)
{
    uint8_t hash[BODY_HASH_BYTES];
    char text[2 * BODY_HASH_BYTES + 1];
    if (blob == NULL && (bytes == NULL || bytes_max == 0 || length <= bytes_max)) {
        json_write_absent (writer, key);
        return;
    }
    if (blob == NULL)
        crypto_generichash (hash, sizeof hash, bytes, length, NULL, 0);
    hex_encode (text, blob != NULL ? blob : hash, sizeof hash);
    member_text (writer, key, text);
}

/* Tasks. */

static bool task_has_result (const task_view_t *task)
{
    return task->outcome == TMQ_OUTCOME_RESULT || task->outcome == TMQ_OUTCOME_TOOL_ERROR;
}

/* The place comes third in a line of tasks.jsonl: who makes the file smaller reads no further. */
static void write_identity (json_writer_t *writer, const task_view_t *task,
                            const task_extras_t *extras)
{
    member_id (writer, "task_id", &task->id);
    member_text (writer, "namespace", task->ns);
    if (extras->exported) {
        member_uint (writer, "seq", task->seq);
        member_uint (writer, "pos", extras->pos);
    }
    member_text (writer, "queue", task->queue);
    member_text (writer, "session", task->session);
    member_text (writer, "owner", task->owner);
    member_status (writer, "status", task->status);
    member_text (writer, "phase", task->phase != 0 ? phase_text (task->phase) : NULL);
    member_text (writer, "status_message", task->status_message);
    member_uint (writer, "priority", task->priority);
    member_text (writer, "method", task->method);
    member_text (writer, "content_type", task->content_type);
}

static void write_course (json_writer_t *writer, const task_view_t *task)
{
    member_time (writer, "created_at", task->created_at);
    member_time (writer, "updated_at", task->updated_at);
    member_time (writer, "started_at", task->started_at);
    member_time (writer, "finished_at", task->finished_at);
    member_time (writer, "expires_at", task->expires_at);
    member_uint_if (writer, "ttl_ms", task->ttl_ms > 0, (uint64_t) task->ttl_ms);
    member_time (writer, "not_before", task->not_before);
    member_time (writer, "start_by", task->start_by);
    member_uint_if (writer, "max_runtime_ms", task->max_runtime_ms > 0,
                    (uint64_t) task->max_runtime_ms);
    member_uint (writer, "poll_interval_ms", task->poll_interval_ms);
    member_uint (writer, "attempt", task->attempt);
    member_uint (writer, "failures", task->failures);
    member_uint (writer, "max_attempts", task->max_attempts);
    member_text (writer, "worker", task->worker);
    member_progress (writer, &task->progress);
}

static void write_error (json_writer_t *writer, const task_view_t *task)
{
    bool given =
        task->outcome == TMQ_OUTCOME_TOOL_ERROR || task->outcome == TMQ_OUTCOME_PROTOCOL_ERROR;
    if (!given) {
        json_write_absent (writer, "error");
        return;
    }
    json_write_key (writer, "error");
    json_write_object_begin (writer);
    json_write_key (writer, "code");
    json_write_int (writer, task->error_code);
    member_text (writer, "message", task->error_message);
    member_json (writer, "data", task->error_data);
    if (task->error_data_bytes > 0 && (task->error_data == NULL || *task->error_data == '\0')) {
        json_write_key (writer, "data_bytes"); /* too long for a list */
        json_write_uint (writer, task->error_data_bytes);
    }
    json_write_object_end (writer);
}

/* To other tasks, and to workers. */
static void write_relations (json_writer_t *writer, const task_view_t *task)
{
    json_write_key (writer, "depends_on");
    json_write_array_begin (writer);
    for (size_t i = 0; i < task->depends_on_count; i++)
        write_id (writer, &task->depends_on[i]);
    json_write_array_end (writer);
    if (id_is_zero (&task->parent))
        json_write_absent (writer, "parent");
    else
        member_id (writer, "parent", &task->parent);
    member_bool (writer, "has_parts", task->has_parts);
    member_text (writer, "fair_key", task->fair_key);
    member_labels (writer, "require", task->needs, task->needs_count);
    member_uint (writer, "turn_count", task->turns);
}

static void write_contents (json_writer_t *writer, const task_view_t *task, bool with_result,
                            size_t bytes_max)
{
    bool has_result = task_has_result (task);
    member_labels (writer, "labels", task->labels, task->labels_count);
    member_json (writer, "meta", task->meta);
    member_text (writer, "trace", task->trace);
    write_relations (writer, task);
    member_uint (writer, "payload_bytes", task->payload_bytes);
    if (with_result && has_result)
        member_body (writer, "result", task->result_type, task->result, task->result_bytes,
                     bytes_max);
    else if (with_result)
        json_write_absent (writer, "result");
    member_text (writer, "result_type", has_result ? task->result_type : NULL);
    member_uint_if (writer, "result_bytes", has_result, task->result_bytes);
    write_error (writer, task);
    member_text (writer, "cancel_message", task->cancel_message);
    member_bool (writer, "dead", task->dead);
    member_uint (writer, "version", task->version);
}

void json_write_question (json_writer_t *self, const question_view_t *question)
{
    char id[ID_TEXT_SIZE];
    id_format (&question->task_id, id);
    json_write_object_begin (self);
    member_text (self, "task_id", id);
    member_text (self, "key", question->key);
    member_text (self, "queue", question->queue);
    member_text (self, "session", question->session[0] == '\0' ? NULL : question->session);
    member_text (self, "worker", question->worker);
    member_uint (self, "number", question->number);
    member_uint (self, "attempt", question->attempt);
    member_time (self, "asked_at", question->asked_at);
    member_time (self, "deadline", question->deadline);
    member_json (self, "request", question->request);
    if (!question->has_default)
        member_text (self, "default", NULL);
    else if (question->default_is_text || question->default_answer[0] == '\0')
        member_text (self, "default", question->default_answer);
    else
        member_json (self, "default", question->default_answer);
    json_write_key (self, "default_text"); /* it may be JSON, also a string; null: none */
    if (question->has_default)
        json_write_bool (self, question->default_is_text);
    else
        json_write_null (self);
    json_write_object_end (self);
}

static void member_questions (json_writer_t *self, const task_extras_t *extras)
{
    if (extras->questions_count == 0)
        return;
    json_write_key (self, "questions");
    json_write_array_begin (self);
    for (size_t i = 0; i < extras->questions_count; i++)
        json_write_question (self, &extras->questions[i]);
    json_write_array_end (self);
}

void json_write_artifact_members (json_writer_t *self, const artifact_view_t *artifact)
{
    member_text (self, "name", artifact->name);
    member_text (self, "type", artifact->type);
    member_uint (self, "bytes", artifact->bytes);
    member_hash (self, "hash", artifact->hash, NULL, 0, 0);
    member_uint (self, "attempt", artifact->attempt);
    member_time (self, "attached_at", artifact->attached_at);
}

void json_write_artifact (json_writer_t *self, const artifact_view_t *artifact)
{
    json_write_object_begin (self);
    json_write_artifact_members (self, artifact);
    json_write_object_end (self);
}

static void member_artifacts (json_writer_t *self, const task_view_t *task)
{
    json_write_key (self, "artifacts");
    json_write_array_begin (self);
    for (size_t i = 0; i < task->artifacts_count; i++)
        json_write_artifact (self, &task->artifacts[i]);
    json_write_array_end (self);
}

void json_write_task_members (json_writer_t *self, const task_view_t *task,
                              const task_extras_t *extras)
{
    static const task_extras_t none;
    if (extras == NULL)
        extras = &none;
    write_identity (self, task, extras);
    write_course (self, task);
    write_contents (self, task, !extras->no_result, extras->body_bytes_max);
    if (extras->exported || extras->payload)
        member_body (self, "payload", task->content_type, task->payload, task->payload_bytes,
                     extras->body_bytes_max);
    if (extras->exported) {
        member_hash (self, "payload_hash", task->payload_blob, task->payload, task->payload_bytes,
                     extras->body_bytes_max);
        member_hash (self, "result_hash", task->result_blob, task->result, task->result_bytes,
                     extras->body_bytes_max);
    }
    if (extras->exported && task->artifacts_count > 0)
        member_artifacts (self, task);
    member_questions (self, extras);
}

void json_write_task (json_writer_t *self, const task_view_t *task, const task_extras_t *extras)
{
    json_write_object_begin (self);
    json_write_task_members (self, task, extras);
    json_write_object_end (self);
}

/* The generation in it is beyond what a number of JSON holds, so it is a text. */
static void member_cursor (json_writer_t *writer, const char *cursor)
{
    if (cursor != NULL)
        member_text (writer, "cursor", cursor);
}

void json_write_snapshot (json_writer_t *self, const task_view_t *task, const char *cursor)
{
    static const task_extras_t listed = {.no_result = true};
    json_write_object_begin (self);
    member_text (self, "kind", "snapshot");
    json_write_task_members (self, task, &listed);
    member_cursor (self, cursor);
    json_write_object_end (self);
}

/* Events. */

void json_write_event_members (json_writer_t *self, const event_view_t *event)
{
    member_text (self, "kind",
                 event->kind != TMQ_EVENT_NONE ? event_kind_text (event->kind) : "progress");
    member_text (self, "namespace", event->ns);
    member_uint_if (self, "seq", event->seq != 0, event->seq);
    member_time (self, "at", event->at);
    if (event->subject == TMQ_SUBJECT_NONE) {
        member_id (self, "task_id", &event->task_id);
    } else {
        member_text (self, "subject", subject_text (event->subject));
        member_text (self, "name", event->name);
        member_uint_if (self, "number", event->subject == TMQ_SUBJECT_ITEM, event->number);
    }
    member_text (self, "queue", event->queue);
    member_text (self, "session", event->session);
    member_text (self, "owner", event->owner);
    member_status (self, "status", event->status);
    member_status (self, "previous", event->previous);
    member_uint (self, "attempt", event->attempt);
    member_text (self, "worker", event->worker);
    member_text (self, "actor", event->actor);
    member_text (self, "message", event->message);
    if (event->kind == TMQ_EVENT_TURN) {
        member_uint (self, "turn", event->number);
        member_text (self, "agent", event->name);
    }
    if (event->kind == TMQ_EVENT_ARTIFACT) {
        member_text (self, "artifact", event->name);
        member_uint (self, "bytes", event->number);
    }
    member_progress (self, &event->progress);
    member_labels (self, "labels", event->labels, event->labels_count);
    if (event->trace != NULL && *event->trace != '\0')
        member_text (self, "trace", event->trace);
    member_cursor (self, event->cursor);
}

void json_write_event (json_writer_t *self, const event_view_t *event)
{
    json_write_object_begin (self);
    json_write_event_members (self, event);
    json_write_object_end (self);
}

void json_write_gap (json_writer_t *self, const gap_view_t *gap)
{
    json_write_object_begin (self);
    member_text (self, "kind", "gap");
    member_uint (self, "from", gap->from);
    member_uint (self, "to", gap->to);
    json_write_key (self, "other_history");
    json_write_bool (self, gap->other_history);
    member_cursor (self, gap->cursor);
    json_write_object_end (self);
}

/* From the wire. */

static bool labels_from_wire (const label_view_t **out, Taskmq__Label *const *labels, size_t count,
                              arena_t *arena)
{
    *out = NULL;
    if (count == 0)
        return true;
    label_view_t *views = arena_zalloc (arena, count, sizeof *views);
    if (views == NULL)
        return false;
    for (size_t i = 0; i < count; i++)
        views[i] = (label_view_t){labels[i]->key, labels[i]->value};
    *out = views;
    return true;
}

static progress_view_t progress_from_wire (const Taskmq__Progress *progress)
{
    if (progress == NULL)
        return (progress_view_t){0};
    return (progress_view_t){true, progress->done, progress->total, progress->unit,
                             progress->message};
}

void task_view_extra (task_view_t *out, extra_view_room_t *room, const struct Taskmq__Extra *extra)
{
    size_t after = extra->n_after < TMQ_AFTER_MAX ? extra->n_after : TMQ_AFTER_MAX;
    size_t needs = extra->n_needs < TMQ_NEEDS_MAX ? extra->n_needs : TMQ_NEEDS_MAX;
    for (size_t i = 0; i < after; i++)
        id_from_bytes (&room->depends_on[i], extra->after[i]->task_id.data,
                       extra->after[i]->task_id.len);
    for (size_t i = 0; i < needs; i++)
        room->needs[i] = (label_view_t){extra->needs[i]->key, extra->needs[i]->value};
    out->depends_on = room->depends_on;
    out->depends_on_count = after;
    out->needs = room->needs;
    out->needs_count = needs;
    out->fair_key = extra->fair_key;
    id_from_bytes (&out->parent, extra->parent.data, extra->parent.len);
    out->has_parts = extra->has_parts;
    out->turns = extra->turns;
    for (size_t i = 0; i < extra->n_artifacts && i < TMQ_ARTIFACTS_MAX; i++) {
        const Taskmq__Artifact *artifact = extra->artifacts[i];
        const bool known = artifact->hash.len == TMQ_BLOB_HASH_BYTES;
        room->artifacts[i] = (artifact_view_t){.name = artifact->name,
                                               .type = artifact->type,
                                               .bytes = artifact->bytes,
                                               .hash = known ? artifact->hash.data : NULL,
                                               .attempt = artifact->attempt,
                                               .attached_at = (int64_t) artifact->attached_at};
        out->artifacts_count = i + 1;
    }
    out->artifacts = room->artifacts;
    out->start_by = (int64_t) extra->start_by;
    out->max_runtime_ms = (int64_t) extra->max_runtime_ms;
    out->trace = extra->trace;
    out->cancel_message = extra->cancel_message;
    if (extra->payload_blob != NULL && extra->payload_blob->hash.len == TMQ_BLOB_HASH_BYTES) {
        out->payload_blob = extra->payload_blob->hash.data;
        out->payload_bytes = extra->payload_blob->bytes;
        out->payload = NULL;
    }
    if (extra->result_blob != NULL && extra->result_blob->hash.len == TMQ_BLOB_HASH_BYTES) {
        out->result_blob = extra->result_blob->hash.data;
        out->result_bytes = extra->result_blob->bytes;
        out->result = NULL;
    }
}

bool event_view_from_wire (event_view_t *out, const struct Taskmq__Event *event, const char *ns,
                           arena_t *arena)
{
    *out = (event_view_t){
        .kind = event->kind,
        .ns = ns,
        .seq = event->seq,
        .at = (int64_t) event->at,
        .queue = event->queue,
        .session = event->session,
        .owner = event->owner,
        .status = event->status,
        .previous = event->previous,
        .attempt = event->attempt,
        .worker = event->worker,
        .actor = event->actor,
        .message = event->message,
        .trace = event->trace,
        .progress = progress_from_wire (event->progress),
        .labels_count = event->n_labels,
        .subject = event->subject,
        .name = event->name,
        .number = event->number,
    };
    return (event->subject != TMQ_SUBJECT_NONE ||
            id_from_bytes (&out->task_id, event->task_id.data, event->task_id.len)) &&
           labels_from_wire (&out->labels, event->labels, event->n_labels, arena);
}
