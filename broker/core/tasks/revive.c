/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Tasks that go on after their end, and changes by hand. */
#include "core/tasks/revive.h"

#include <assert.h>
#include <string.h>

#include "core/tasks/attempt.h"
#include "core/tasks/checkpoint.h"
#include "core/tasks/extras.h"
#include "core/tasks/failure.h"
#include "core/tasks/journal.h"
#include "core/tasks/lease.h"
#include "core/tasks/turns.h"
#include "types.h"

static void drop_outcome (tasks_t *self, task_t *task)
{
    detail_t *detail = task_detail (&self->slab, task);
    buf_drop (detail->result);
    detail->result = NULL;
    detail->result_bytes = 0;
    names_drop (&self->base->names, detail->result_type);
    detail->result_type = NULL;
    detail->outcome = TMQ_OUTCOME_NONE;
    failure_set (self, task, 0, NULL, NULL);
    detail_set_text (&detail->status_message, NULL);
    detail_set_text (&detail->progress_message, NULL);
    detail_set_text (&detail->progress_unit, NULL);
    detail->progress_done = detail->progress_total = 0;
    detail->started_at = detail->finished_at = 0;
}

/* It counts from now on, or from when the task may run. */
static void begin_ttl (const tasks_t *self, task_t *task)
{
    int64_t from_ms = clocks_wall_ms (&self->base->clocks, task->not_before);
    task->expires_at = task->ttl_ms == 0 ? 0 : from_ms + task->ttl_ms;
}

void revive_queue (tasks_t *self, task_t *task, task_input_t input, const cause_t *cause)
{
    drop_outcome (self, task);
    task->result_stored = false;
    task->failures = task->returns = 0;
    task->dead = false;
    task->not_before = 0;
    task->by_wall = task->due = false;
    begin_ttl (self, task);
    const Taskmq__Extra *extra = extras_of (task);
    if (extra->start_by != 0 || extra->cancel_message[0] != '\0') { /* of the first time */
        extras_edit (task)->start_by = 0;
        extra_set_text (&extras_edit (task)->cancel_message, NULL);
        extras_changed (self, task);
    }
    const unsigned planted = self->base->config.planted_bug;
    if (input == INPUT_RETRY && planted != ENGINE_BUG_CHECKPOINT_RETRIED)
        checkpoint_drop (self, task);
    if (task->leased && planted == ENGINE_BUG_RETRY_UNBLOCKED)
        lease_end (self, task);
    if (input == INPUT_RETRY)
        turns_supersede (self, task, 0);
    self->base->counts.retried++;
    self->freshened = self->open.no;
    change_apply (self, task, input, cause);
    if (!task->leased)
        change_place (self, task);
}

void adopt (tasks_t *self, task_t *task, const kept_t *kept, const buf_t *bytes,
            const cause_t *cause)
{
    detail_t *detail = task_detail (&self->slab, task);
    uint32_t attempt = kept->attempt;
    if (task->leased && !task_is_withdrawn (task))
        journal_add_attempt (self, task, TMQ_EVENT_CANCELLED, 0,
                             task_error_text (TMQ_TASK_ERROR_SUPERSEDED), NULL);
    drop_outcome (self, task);
    task->result_stored = false;
    task->dead = false;
    task->started = true;
    if (self->base->config.planted_bug != ENGINE_BUG_ADOPT_UNFENCED)
        task->attempt++; /* which nobody has */
    secrets_take (&self->base->secrets, detail->secret, sizeof (detail->secret));
    memset (detail->worker_id, 0, sizeof (detail->worker_id));
    names_drop (&self->base->names, detail->identity);
    detail->identity = NULL;
    names_drop (&self->base->names, detail->worker);
    detail->worker = names_share (kept->worker);
    detail->started_at = kept->started_at;
    detail->outcome = TMQ_OUTCOME_RESULT;
    if (kept->is_blob) {
        const Taskmq__Blob blob = kept_blob (kept);
        attempt_take_blob (self, task, &blob, name_text (kept->type));
    } else {
        attempt_take_result (self, task, buf_bytes (bytes), (uint32_t) buf_length (bytes),
                             name_text (kept->type));
    }
    extras_edit (task)->adopted_from = attempt;
    extras_changed (self, task);
    self->base->counts.adopted++;
    self->freshened = self->open.no;
    change_finish (self, task, INPUT_ADOPT, cause); /* what is kept of the task goes */
}

/* Labels. */

static bool is_named (const label_t *label, const revision_t *revision)
{
    for (size_t i = 0; i < revision->labels_count; i++)
        if (strcmp (revision->labels[i].key, label->key) == 0)
            return true;
    for (size_t i = 0; i < revision->drop_labels_count; i++)
        if (strcmp (revision->drop_labels[i], label->key) == 0)
            return true;
    return false;
}

size_t revision_labels_count (const label_t *labels, size_t count, const revision_t *revision)
{
    size_t kept = 0;
    for (size_t i = 0; i < count; i++)
        kept += !is_named (&labels[i], revision);
    return kept + revision->labels_count;
}

static void revise_labels (tasks_t *self, task_t *task, const revision_t *revision)
{
    task_texts_t texts;
    size_t count = 0;
    task_texts (task, &texts);
    for (size_t i = 0; i < task->labels_count; i++)
        if (!is_named (&texts.labels[i], revision))
            texts.labels[count++] = texts.labels[i];
    assert (count + revision->labels_count <= TMQ_LABELS_MAX);
    for (size_t i = 0; i < revision->labels_count; i++)
        texts.labels[count++] = revision->labels[i];
    self->texts_bytes -= task_texts_length (task);
    task_replace_texts (task, &texts, count);
    self->texts_bytes += task_texts_length (task);
    task->relabelled = true;
}

void revise (tasks_t *self, task_t *task, const revision_t *revision, const cause_t *cause)
{
    bool placed = task->status == TMQ_STATUS_QUEUED && !task->leased;
    if (placed)
        change_unplace (self, task);
    if (revision->priority >= 0)
        task->priority = (uint8_t) revision->priority;
    if (revision->max_attempts > 0)
        task->max_attempts = revision->max_attempts;
    if (revision->not_before >= 0) {
        task->not_before = revision->not_before;
        task->by_wall = revision->not_before > 0;
        task->due = self->base->config.planted_bug == ENGINE_BUG_START_NOT_SET;
    }
    if (revision->ttl)
        task->ttl_ms = revision->ttl_ms;
    if (revision->ttl)
        begin_ttl (self, task);
    else if (revision->not_before > 0 && task->ttl_ms > 0 &&
             task->expires_at < revision->not_before + task->ttl_ms)
        task->expires_at = revision->not_before + task->ttl_ms;
    if (revision->labels_count > 0 || revision->drop_labels_count > 0)
        revise_labels (self, task, revision);
    self->freshened = self->open.no;
    change_apply (self, task, INPUT_SET, cause);
    if (placed)
        change_place (self, task);
}
