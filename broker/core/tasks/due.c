/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* When something is due for a task.
 *
 * A wait is counted on one of two clocks. A backoff and a delay are durations: the monotonic clock
 * counts them, and a wall clock that is set back cannot hold them up. A time that somebody named
 * (`at`, start_by, the time to live) is a time of day: it follows the wall clock, and a leap of
 * that is believed as late as for expiry (S20). */
#include "core/tasks/due.h"

#include "core/tasks/extras.h"

static int64_t or_never (int64_t time_ms)
{
    return time_ms == 0 ? INT64_MAX : time_ms;
}

static int64_t start_by_of (const task_t *task)
{
    return or_never ((int64_t) extras_of (task)->start_by);
}

/* When a task that is still queued ends, by the time of expiry: the earlier of its time to live and
 * its start_by. INT64_MAX: never. */
static int64_t due_end_ms (const task_t *task)
{
    int64_t expires_at = or_never (task->expires_at);
    if (task->extra == NULL)
        return expires_at;
    int64_t start_by = start_by_of (task);
    return start_by < expires_at ? start_by : expires_at;
}

tmq_task_error_t due_error (const task_t *task)
{
    return start_by_of (task) < or_never (task->expires_at) ? TMQ_TASK_ERROR_START_MISSED
                                                            : TMQ_TASK_ERROR_EXPIRED;
}

bool due_is_over (const tasks_t *self, const task_t *task)
{
    int64_t now_ms = clocks_expiry_ms (&self->base->clocks);
    if (self->base->config.planted_bug == ENGINE_BUG_START_UNJUDGED)
        return or_never (task->expires_at) <= now_ms;
    return due_end_ms (task) <= now_ms;
}

bool due_has_come (const tasks_t *self, const task_t *task)
{
    const clocks_t *clocks = &self->base->clocks;
    bool planted = self->base->config.planted_bug == ENGINE_BUG_DELAY_FORGOTTEN;
    if (task->not_before == 0 || task->due || (planted && task->attempt == 0))
        return true;
    return task->not_before <= (task->by_wall ? clocks_expiry_ms (clocks) : clocks->wall_ms);
}

void due_arm_ready (tasks_t *self, task_t *task)
{
    int64_t end_ms = due_end_ms (task);
    if (end_ms != INT64_MAX)
        base_arm_expiry (self->base, &task->alarm, end_ms);
}

void due_arm_scheduled (tasks_t *self, task_t *task)
{
    const clocks_t *clocks = &self->base->clocks;
    int64_t end_ms = due_end_ms (task);
    if (task->by_wall) {
        base_arm_expiry (self->base, &task->alarm,
                         task->not_before < end_ms ? task->not_before : end_ms);
        return;
    }
    int64_t wait_ms = task->not_before - clocks->wall_ms;
    /* A pause was counted from its last change, by a clock that may have gone back since. */
    if (task->attempt > 0 && task->not_before - task->updated_at < wait_ms)
        wait_ms = task->not_before - task->updated_at;
    int64_t left_ms = end_ms == INT64_MAX ? INT64_MAX : end_ms - clocks_expiry_ms (clocks);
    /* It did not end when it should have: the wall clock stands still. The wait goes on without. */
    task->ends_first = !task->ends_first && left_ms < wait_ms;
    if (task->ends_first)
        wait_ms = left_ms;
    wheel_arm (&self->base->fine, &task->alarm, clocks->mono_ms + wait_ms);
}

void due_go_on (tasks_t *self, task_t *task)
{
    int64_t rest_ms = task->not_before - due_end_ms (task);
    task->ends_first = false;
    wheel_arm (&self->base->fine, &task->alarm,
               self->base->clocks.mono_ms + (rest_ms > 0 ? rest_ms : 0));
}

static void bound (tasks_t *self, task_t *task, int64_t left_ms)
{
    task->detail->runtime_due_ms = self->base->clocks.mono_ms + left_ms;
    if (alarm_due (&task->alarm) > task->detail->runtime_due_ms)
        wheel_arm (&self->base->fine, &task->alarm, task->detail->runtime_due_ms);
}

static int64_t bound_of (const tasks_t *self, const task_t *task)
{
    bool planted = self->base->config.planted_bug == ENGINE_BUG_RUNTIME_UNBOUNDED;
    return planted || !task->leased || task_is_withdrawn (task)
               ? 0
               : (int64_t) extras_of (task)->max_runtime_ms;
}

void due_arm_runtime (tasks_t *self, task_t *task)
{
    int64_t most_ms = bound_of (self, task);
    if (most_ms == 0)
        return;
    int64_t run_ms = clocks_expiry_ms (&self->base->clocks) - task->detail->started_at;
    bound (self, task, run_ms <= 0 ? most_ms : run_ms >= most_ms ? 0 : most_ms - run_ms);
}

void due_arm_runtime_anew (tasks_t *self, task_t *task)
{
    int64_t most_ms = bound_of (self, task);
    if (most_ms > 0 && task->started)
        bound (self, task, most_ms);
}

/* Not while a question is open, nor when it was withdrawn (S27). */
static bool is_bounded (const task_t *task)
{
    return task->status == TMQ_STATUS_WORKING;
}

int64_t due_attempt_ms (const task_t *task, int64_t lease_due_ms)
{
    int64_t runtime_due_ms = task->detail->runtime_due_ms;
    return is_bounded (task) && runtime_due_ms != 0 && runtime_due_ms < lease_due_ms
               ? runtime_due_ms
               : lease_due_ms;
}

bool due_is_overrun (const tasks_t *self, const task_t *task)
{
    int64_t due_ms = task->detail->runtime_due_ms;
    return is_bounded (task) && due_ms != 0 && due_ms <= self->base->clocks.heard_ms;
}
