/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* A live task as a record, and a record as a live task. */
#include <assert.h>
#include <string.h>

#include "core/tasks/account.h"
#include "core/tasks/extras.h"
#include "core/tasks/failure.h"
#include "core/tasks/index.h"
#include "core/tasks/lanes.h"
#include "core/tasks/session.h"
#include "core/tasks/space.h"
#include "core/tasks/view.h"

static const char *or_empty (const char *text)
{
    return text == NULL ? "" : text;
}

static void view_detail (const detail_t *detail, record_t *out)
{
    out->status_message = or_empty (detail->status_message);
    out->started_at = detail->started_at;
    out->finished_at = detail->finished_at;
    out->worker = name_text (detail->worker);
    out->holder = name_text (detail->identity);
    memcpy (out->secret, detail->secret, sizeof (out->secret));
    memcpy (out->worker_id, detail->worker_id, sizeof (out->worker_id));
    memcpy (out->request_id, detail->request_id, sizeof (out->request_id));
    out->progress_done = detail->progress_done;
    out->progress_total = detail->progress_total;
    out->progress_unit = or_empty (detail->progress_unit);
    out->progress_message = or_empty (detail->progress_message);
    out->outcome = detail->outcome;
    out->result_bytes = detail->result_bytes;
    out->result = detail->result;
    out->result_type = name_text (detail->result_type);
    out->error_code = detail->error_code;
    out->error_message = or_empty (detail->error_message);
    out->error_data = or_empty (detail->error_data);
}

void task_view (const task_t *task, record_t *out, task_texts_t *texts)
{
    static const detail_t NOTHING;
    task_texts (task, texts);
    *out = (record_t){.number = task->number,
                      .id = task->id,
                      .ns = task->queue->space->name,
                      .owner = name_text (task->owner),
                      .queue = task->queue->name,
                      .session = session_text (task->session),
                      .method = texts->method,
                      .content_type = texts->content_type,
                      .dedup_key = texts->dedup_key,
                      .meta = texts->meta,
                      .labels = texts->labels,
                      .labels_count = task->labels_count,
                      .relabelled = task->relabelled,
                      .status = task->status,
                      .priority = task->priority,
                      .dead = task->dead,
                      .created_at = task->created_at,
                      .updated_at = task->updated_at,
                      .expires_at = task->expires_at,
                      .not_before = task->not_before,
                      .ttl_ms = task->ttl_ms,
                      .poll_interval_ms = task->poll_interval_ms,
                      .lease_ms = task->lease_ms,
                      .backoff_ms = task->backoff_ms,
                      .max_attempts = task->max_attempts,
                      .attempt = task->attempt,
                      .failures = task->failures,
                      .returns = task->returns,
                      .version = task->version,
                      .last_seq = task->last_seq,
                      .leased = task->leased,
                      .lease_started = task->started,
                      .payload_bytes = task->payload_bytes,
                      .payload = task->payload,
                      .extra = extra_packed (task->extra)};
    memcpy (out->digest, task->digest, sizeof (out->digest));
    view_detail (task->detail == NULL ? &NOTHING : task->detail, out);
}

static void restore_fields (task_t *task, const record_t *record)
{
    task->number = record->number;
    task->id = record->id;
    task->created_at = record->created_at;
    task->updated_at = record->updated_at;
    task->expires_at = record->expires_at;
    task->not_before = record->not_before;
    task->ttl_ms = record->ttl_ms;
    task->last_seq = record->last_seq;
    task->version = (uint32_t) record->version;
    task->payload_bytes = record->payload_bytes;
    task->poll_interval_ms = record->poll_interval_ms;
    task->lease_ms = record->lease_ms;
    task->backoff_ms = record->backoff_ms;
    task->max_attempts = record->max_attempts;
    task->attempt = record->attempt;
    task->failures = record->failures;
    task->returns = (uint16_t) (record->returns < RETURNS_MAX ? record->returns : RETURNS_MAX);
    memcpy (task->digest, record->digest, sizeof (task->digest));
    task->priority = record->priority;
    task->status = (uint8_t) record->status;
    task->dead = record->dead;
    task->relabelled = record->relabelled;
    task->started = record->lease_started;
    task->payload_stored = true;
    task->result_stored = record->result_bytes > 0;
}

static bool has_detail (const record_t *record)
{
    return record->attempt > 0 || record->finished_at != 0 || record->status_message[0] != '\0';
}

static void restore_detail (tasks_t *self, task_t *task, const record_t *record)
{
    detail_t *detail = task_detail (&self->slab, task);
    detail->worker = names_keep (&self->base->names, record->worker);
    detail->identity = names_keep (&self->base->names, record->holder);
    memcpy (detail->secret, record->secret, sizeof (detail->secret));
    memcpy (detail->worker_id, record->worker_id, sizeof (detail->worker_id));
    memcpy (detail->request_id, record->request_id, sizeof (detail->request_id));
    detail->started_at = record->started_at;
    detail->finished_at = record->finished_at;
    detail_set_text (&detail->status_message, record->status_message);
    detail->progress_done = record->progress_done;
    detail->progress_total = record->progress_total;
    detail_set_text (&detail->progress_unit, record->progress_unit);
    detail_set_text (&detail->progress_message, record->progress_message);
    failure_set (self, task, record->error_code, record->error_message, record->error_data);
    detail->outcome = record->outcome;
    detail->result_bytes = record->result_bytes;
    detail->result_type = names_keep (&self->base->names, record->result_type);
}

static void restore_texts (tasks_t *self, task_t *task, const record_t *record)
{
    assert (record->labels_count <= TMQ_LABELS_MAX);
    task_texts_t texts = {.method = record->method,
                          .content_type = record->content_type,
                          .dedup_key = record->dedup_key,
                          .meta = record->meta};
    for (size_t i = 0; i < record->labels_count; i++)
        texts.labels[i] = record->labels[i];
    task_set_texts (task, &texts, record->labels_count);
    self->texts_bytes += task_texts_length (task);
}

task_t *task_restore (tasks_t *self, const record_t *record)
{
    space_t *space = space_make (self, record->ns);
    task_t *task = slab_take (&self->slab);
    restore_fields (task, record);
    task->queue = queue_make (self, space, record->queue);
    task->queue->tasks++;
    task->owner = names_keep (&self->base->names, record->owner);
    session_take_back (self, task, space, record->session, record->owner);
    restore_texts (self, task, record);
    extras_take (self, task, record->extra);
    if (has_detail (record))
        restore_detail (self, task, record);
    map_insert (&self->by_id, task_hash (self, space, task->id.bytes), task);
    self->ended += task_is_terminal (task);
    if (!task_is_terminal (task)) {
        space_add_task (task);
        account_add_task (self, task);
        session_add_task (self, task);
        needs_begin (self, task);
    }
    if (task->has_dedup_key)
        map_insert (&self->by_key, task_key_hash (self, space, record->owner, record->dedup_key),
                    task);
    return task;
}

/* Phases. */

tmq_phase_t task_phase (const tasks_t *self, const task_t *task)
{
    if (task->status == TMQ_STATUS_QUEUED)
        return task->blocked || task->leased                      ? TMQ_PHASE_BLOCKED
               : task->scheduled                                  ? TMQ_PHASE_SCHEDULED
               : session_holds (task->session)                    ? TMQ_PHASE_PAUSED
               : gate_is_closed (&task->queue->gate, GATE_PAUSED) ? TMQ_PHASE_PAUSED
                                                                  : TMQ_PHASE_READY;
    if (task->status != TMQ_STATUS_WORKING)
        return TMQ_PHASE_NONE;
    /* It has run out, but a renewal may still be unread. */
    bool late = task->detail->lease_due_ms <= clocks_awake_ms (&self->base->clocks);
    return late ? TMQ_PHASE_LATE : TMQ_PHASE_LEASED;
}

/* The live task of a stored record, or NULL when memory has none, or has it in another status. */
static const task_t *live_task (const tasks_t *self, const space_t *space, const record_t *record)
{
    if (record->status >= TMQ_STATUS_COMPLETED)
        return NULL;
    const task_t *task = task_find (self, space, record->id.bytes);
    return task != NULL && task->status == record->status ? task : NULL;
}

void view_phases (const tasks_t *self, record_t *const *records, size_t count)
{
    const space_t *space = count == 0 ? NULL : space_find (self, records[0]->ns);
    for (size_t i = 0; i < count && space != NULL; i++) {
        const task_t *task = live_task (self, space, records[i]);
        if (task != NULL)
            records[i]->phase = (uint8_t) task_phase (self, task);
    }
}

void view_reports (const tasks_t *self, record_t *const *records, size_t count)
{
    const space_t *space = count == 0 ? NULL : space_find (self, records[0]->ns);
    for (size_t i = 0; i < count && space != NULL; i++) {
        record_t *record = records[i];
        const task_t *task = live_task (self, space, record);
        if (task == NULL || task->detail == NULL || task->attempt != record->attempt)
            continue;
        record->updated_at = task->updated_at;
        record->started_at = task->detail->started_at;
        record->progress_done = task->detail->progress_done;
        record->progress_total = task->detail->progress_total;
        record->progress_unit = or_empty (task->detail->progress_unit);
        record->progress_message = or_empty (task->detail->progress_message);
    }
}
