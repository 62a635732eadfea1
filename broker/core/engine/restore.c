/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Start and restart: what the store knows comes in, live leases get a fresh term (S9). */
#include "core/engine/rooms.h"
#include "core/match/roster.h"
#include "core/requests/report.h"
#include "core/tasks/asking.h"
#include "core/tasks/attempt.h"
#include "core/tasks/blobs.h"
#include "core/tasks/change.h"
#include "core/tasks/debts.h"
#include "core/tasks/dependents.h"
#include "core/tasks/due.h"
#include "core/tasks/entries.h"
#include "core/tasks/failure.h"
#include "core/tasks/journal.h"
#include "core/tasks/lanes.h"
#include "core/tasks/lease.h"
#include "core/tasks/quarantine.h"
#include "core/tasks/question.h"
#include "core/tasks/rows.h"
#include "core/tasks/schedule.h"
#include "core/tasks/session.h"
#include "core/tasks/settings.h"
#include "core/tasks/space.h"
#include "core/tasks/view.h"
#include "types.h"

void engine_boot (engine_t *self, const boot_t *boot, now_t now)
{
    history_boot (&self->history, boot);
    if (self->tasks.last_number < boot->last_number)
        self->tasks.last_number = boot->last_number;
    absent_boot (&self->tasks.absent, boot->newest_id_ms);
    if (clocks_boot (&self->base.clocks, boot->newest_ms, now) == CLOCKS_LEAPT)
        self->base.counts.clock_leaps++;
    wheel_init (&self->base.fine, FINE_MS, self->base.clocks.mono_ms);
    wheel_init (&self->base.coarse, COARSE_MS, base_expiry_turn_ms (&self->base));
}

void engine_restore_ns (engine_t *self, const char *name, uint64_t last_seq)
{
    space_t *space = space_make (&self->tasks, name);
    history_restore (&self->history, &space->log, last_seq);
}

static void restore_place (engine_t *self, task_t *task, const record_t *record)
{
    if (task->status == TMQ_STATUS_WORKING)
        task->queue->working++;
    else if (task->status == TMQ_STATUS_INPUT_REQUIRED)
        task->queue->input_required++;
    if (task->status == TMQ_STATUS_QUEUED) {
        task->queue->queued++;
        task->queue->queued_bytes += extras_payload_bytes (task);
        task->by_wall = task->attempt == 0; /* a delay has become a time of day */
    }
    if (task->status == TMQ_STATUS_QUEUED && !record->leased) {
        change_place (&self->tasks, task);
    } else if (record->leased) {
        worker_t *worker = worker_make (&self->tasks, task->queue->space, record->worker_id);
        if (worker->name == NULL)
            worker->name = names_keep (&self->base.names, record->worker);
        if (worker->identity == NULL)
            worker->identity = names_keep (&self->base.names, record->holder);
        roster_know (&self->match, worker);
        lease_hold (&self->tasks, worker, task);
        lanes_hold (&self->tasks, task);
        if (task->queue->settings != NULL)
            settings_judge (&self->tasks, task->queue);
        lease_arm (&self->tasks, task, task->lease_ms);
    }
}

void engine_restore (engine_t *self, record_t *record)
{
    task_t *task = task_restore (&self->tasks, record);
    if (!task_is_terminal (task))
        asking_restore (&self->tasks, task);
    restore_place (self, task, record);
    record_free (record);
}

/* Rows. */

/* Who takes the rows of a kind that lives in memory (core/data/row.h), before any task is there. It
 * is told later of each that is gone by its time. */
typedef void row_load_t (engine_t *self, const row_t *row);

static void load_forgotten (engine_t *self, const row_t *row)
{
    history_raise_floor (&self->history, row_number (row->body));
}

static void load_question (engine_t *self, const row_t *row)
{
    question_load (&self->tasks, row);
}

static void load_queue (engine_t *self, const row_t *row)
{
    settings_restore (&self->tasks, row);
}

static void load_schedule (engine_t *self, const row_t *row)
{
    schedule_load (&self->tasks, row);
}

static void load_session (engine_t *self, const row_t *row)
{
    session_load (&self->tasks, row);
}

static void load_entries (engine_t *self, const row_t *row)
{
    entries_load (&self->tasks, row);
}

static void load_late (engine_t *self, const row_t *row)
{
    kept_load (&self->tasks, row);
}

static void load_debt (engine_t *self, const row_t *row)
{
    debts_load (&self->tasks, row);
}

static void load_blob (engine_t *self, const row_t *row)
{
    blobs_load (&self->tasks, row);
}

static void load_blob_share (engine_t *self, const row_t *row)
{
    blobs_load_share (&self->tasks, row);
}

static void load_worker (engine_t *self, const row_t *row)
{
    roster_load (&self->match, row);
}

static row_load_t *const ROW_LOADS[ROW_KINDS_MAX] = {
    [ROW_KIND_TEST_LIVE] = NULL,
    [ROW_KIND_FORGOTTEN] = load_forgotten,
    [ROW_KIND_QUESTION] = load_question,
    [ROW_KIND_QUEUE] = load_queue,
    [ROW_KIND_SCHEDULE] = load_schedule,
    [ROW_KIND_ENTRIES] = load_entries,
    [ROW_KIND_WORKER] = load_worker,
    [ROW_KIND_SESSION] = load_session,
    [ROW_KIND_LATE] = load_late,
    [ROW_KIND_TURNS_LEFT] = load_debt,
    [ROW_KIND_BLOB] = load_blob,
    [ROW_KIND_ARTIFACTS_LEFT] = load_debt,
    [ROW_KIND_BLOB_SHARE] = load_blob_share,
};

void engine_restore_row (engine_t *self, const row_t *row)
{
    if (row_kind_name (row->kind) != NULL && ROW_LOADS[row->kind] != NULL)
        ROW_LOADS[row->kind](self, row);
}

void engine_end_row (engine_t *self, const row_t *row)
{
    const uint8_t *key = buf_bytes (row->key);
    row_t gone = row_make_gone (row->kind, key, buf_length (row->key));
    engine_restore_row (self, &gone);
    rows_put (&self->tasks, gone);
}

void engine_tell_broken (const engine_t *self,
                         void (*tell) (void *context, const char *ns, const char *name,
                                       const char *why),
                         void *context)
{
    schedules_tell_broken (&self->tasks, tell, context);
}

/* The fresh terms. */

static void interrupt (engine_t *self, task_t *task)
{
    const char *text = task_error_text (TMQ_TASK_ERROR_INTERRUPTED);
    journal_add_attempt (&self->tasks, task, TMQ_EVENT_FAILED, TMQ_TASK_ERROR_INTERRUPTED, text,
                         NULL);
    failure_set (&self->tasks, task, TMQ_TASK_ERROR_INTERRUPTED, text, NULL);
    change_fail (&self->tasks, task, INPUT_FAIL_FINALLY, NULL);
}

static void fresh_term (engine_t *self, task_t *task)
{
    int64_t term_ms =
        task->lease_ms < TMQ_RECOVERY_LEASE_MS_MIN ? TMQ_RECOVERY_LEASE_MS_MIN : task->lease_ms;
    const engine_config_t *config = &self->base.config;
    /* A renewal leaves a mark only when the last one is a quarter of that age old. */
    int64_t silent_ms = self->base.clocks.wall_ms - task->updated_at;
    bool too_long = config->recover_max_age_ms > 0 &&
                    silent_ms > config->recover_max_age_ms + report_mark_ms (config);
    if (config->planted_bug == ENGINE_BUG_NO_FRESH_TERM) {
        task->started = false;
        attempt_lose (&self->tasks, task, "planted");
    } else if (too_long && task->status == TMQ_STATUS_WORKING) {
        interrupt (self, task);
    } else {
        lease_arm (&self->tasks, task, term_ms);
        if (task->started)
            due_arm_runtime (&self->tasks, task);
    }
}

void engine_ready (engine_t *self, now_t now)
{
    input_begin (self, now);
    dependents_ready (&self->tasks);
    size_t cursor = 0;
    for (task_t *task = map_each (&self->tasks.by_id, &cursor); task != NULL;
         task = map_each (&self->tasks.by_id, &cursor)) {
        if (task->leased)
            fresh_term (self, task);
        if (task->status == TMQ_STATUS_INPUT_REQUIRED)
            asking_check (&self->tasks, task);
        journal_close_full (&self->tasks);
    }
    askings_settle (&self->tasks);
    input_end (self);
}
