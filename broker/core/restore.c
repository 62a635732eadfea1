/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Start and restart: what the store knows comes in, live leases get a fresh term (S13); and removal
 * of what is past its time to live (S16). */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "core/engine_private.h"
#include "types.h"

void engine_boot (engine_t *self, const boot_t *boot, now_t now)
{
    self->generation = boot->generation;
    self->epoch = boot->epoch;
    /* After a reset the boot is the old one: numbers that were given are never given again. */
    if (self->last_number < boot->last_number)
        self->last_number = boot->last_number;
    if (self->last_pos < boot->last_pos)
        self->last_pos = boot->last_pos;
    absent_boot (&self->absent, boot->newest_id_ms);
    self->mono = now.mono_ms;
    if (self->wall < boot->newest_ms)
        self->wall = boot->newest_ms;
    self->away_ms = now.wall_ms - self->wall;
    if (self->wall < now.wall_ms)
        self->wall = now.wall_ms;
    wheel_init (&self->fine, FINE_MS, self->mono);
    wheel_init (&self->coarse, COARSE_MS, engine_expiry_ms (self));
}

void engine_restore_ns (engine_t *self, const char *name, uint64_t last_seq)
{
    space_t *space = space_make (self, name);
    space->last_seq = space->durable_seq = last_seq;
    if (last_seq > 0)
        self->spaces_used++;
}

/* Live tasks. */

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
    task->version = record->version;
    task->payload_bytes = record->payload_bytes;
    task->poll_interval_ms = record->poll_interval_ms;
    task->lease_ms = record->lease_ms;
    task->backoff_ms = record->backoff_ms;
    task->max_attempts = record->max_attempts;
    task->attempt = record->attempt;
    task->failures = record->failures;
    task->returns = record->returns;
    memcpy (task->digest, record->digest, sizeof (task->digest));
    task->priority = record->priority;
    task->status = (uint8_t) record->status;
    task->dead = record->dead;
    task->started = record->lease_started;
    task->payload_stored = true;
    task->result_stored = record->result_bytes > 0;
}

static bool has_detail (const record_t *record)
{
    return record->attempt > 0 || record->finished_at != 0 || record->status_message[0] != '\0';
}

static void restore_detail (engine_t *self, task_t *task, const record_t *record)
{
    detail_t *detail = task_detail (&self->slab, task);
    detail->worker = names_keep (&self->names, record->worker);
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
    detail_set_error (detail, record->error_code, record->error_message, record->error_data);
    detail->outcome = record->outcome;
    detail->result_bytes = record->result_bytes;
    detail->result_type = names_keep (&self->names, record->result_type);
}

static void restore_texts (task_t *task, const record_t *record)
{
    assert (record->labels_count <= TMQ_LABELS_MAX);
    task_texts_t texts = {.method = record->method,
                          .content_type = record->content_type,
                          .dedup_key = record->dedup_key,
                          .meta = record->meta};
    for (size_t i = 0; i < record->labels_count; i++)
        texts.labels[i] = record->labels[i];
    task_set_texts (task, &texts, record->labels_count);
}

static void restore_place (engine_t *self, task_t *task, const record_t *record)
{
    if (task->status == TMQ_STATUS_WORKING)
        task->queue->working++;
    else if (task->status == TMQ_STATUS_INPUT_REQUIRED)
        task->queue->input_required++;
    if (task->status == TMQ_STATUS_QUEUED) {
        change_place (self, task);
    } else if (record->leased) {
        worker_t *worker = worker_make (self, task->queue->space, record->worker_id);
        if (worker->name == NULL)
            worker->name = names_keep (&self->names, record->worker);
        lease_restore (self, worker, task, task->lease_ms);
    }
}

void engine_restore (engine_t *self, record_t *record)
{
    space_t *space = space_make (self, record->ns);
    task_t *task = slab_take (&self->slab);
    restore_fields (task, record);
    task->queue = queue_make (self, space, record->queue);
    task->queue->tasks++;
    task->owner = names_keep (&self->names, record->owner);
    task->session = names_keep (&self->names, record->session);
    restore_texts (task, record);
    if (has_detail (record))
        restore_detail (self, task, record);
    map_insert (&self->tasks, task_hash (self, space, task->id.bytes), task);
    if (task->has_dedup_key)
        map_insert (&self->dedup, dedup_hash (self, space, record->owner, record->dedup_key), task);
    restore_place (self, task, record);
    record_free (record);
}

/* The fresh terms. */

static void interrupt (engine_t *self, task_t *task)
{
    const char *text = task_error_text (TMQ_TASK_ERROR_INTERRUPTED);
    batch_add_attempt (self, task, TMQ_EVENT_FAILED, TMQ_TASK_ERROR_INTERRUPTED, text, NULL);
    detail_set_error (task->detail, TMQ_TASK_ERROR_INTERRUPTED, text, NULL);
    change_fail (self, task, INPUT_FAIL_FINALLY, NULL);
}

static void fresh_term (engine_t *self, task_t *task)
{
    int64_t term_ms =
        task->lease_ms < TMQ_RECOVERY_LEASE_MS_MIN ? TMQ_RECOVERY_LEASE_MS_MIN : task->lease_ms;
    bool too_long =
        self->config.recover_max_age_ms > 0 && self->away_ms > self->config.recover_max_age_ms;
    if (self->config.planted_bug == ENGINE_BUG_NO_FRESH_TERM) {
        task->started = false;
        change_lose (self, task, "planted");
    } else if (too_long && task->status == TMQ_STATUS_WORKING) {
        interrupt (self, task);
    } else {
        lease_arm (self, task, term_ms);
    }
}

void engine_ready (engine_t *self, now_t now)
{
    engine_clock (self, now);
    size_t cursor = 0;
    for (task_t *task = map_each (&self->tasks, &cursor); task != NULL;
         task = map_each (&self->tasks, &cursor))
        if (task->leased)
            fresh_term (self, task);
}

/* Removal. */

static bool is_due (const engine_t *self, const space_t *space, const record_t *record)
{
    return self->mono >= self->hold_until && record_is_expired (self, record) &&
           lookup_task (self, space, record->id.bytes) == NULL &&
           removal_note_find (self, space, record->id.bytes) == NULL;
}

void engine_due (engine_t *self, record_t **records, size_t count, now_t now)
{
    engine_clock (self, now);
    for (size_t i = 0; i < count; i++) {
        space_t *space = space_find (self, records[i]->ns);
        if (space != NULL && !self->stopping && is_due (self, space, records[i])) {
            change_remove (self, space, records[i]);
            self->open.inputs++;
        }
        record_free (records[i]);
    }
}
