/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* An instant is decided once. What decides is the place that the schedule's row has reached, and
 * the row goes with the batch of the task: a batch that is lost takes both. */
#include "core/requests/fire.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/memory.h"
#include "core/requests/cancel.h"
#include "core/requests/quota.h"
#include "core/requests/submit.h"
#include "core/tasks/index.h"
#include "core/tasks/journal.h"
#include "ids.h"

enum {
    AGAIN_MS = 1000,       /* a task that the broker cannot take now, doubled each time … */
    AGAIN_DOUBLED_MAX = 6, /* … so often: about a minute */
    AT_ONCE_MAX = 16,      /* instants of a schedule in one round */
    WHY_SIZE = 160
};

void fire_event (requests_t *self, const schedule_t *schedule, tmq_event_kind_t kind,
                 const char *actor, const char *message)
{
    const Taskmq__Schedule *stored = schedule->stored;
    event_t event = {.kind = kind,
                     .subject = TMQ_SUBJECT_SCHEDULE,
                     .name = stored->name,
                     .queue = stored->task->queue,
                     .session = stored->task->session,
                     .worker = "",
                     .actor = actor == NULL ? "taskmqd" : actor,
                     .message = message,
                     .owner = name_text (schedule->owner)};
    history_add (self->history, &schedule->space->log, &event);
}

static void set_text (char **place, const char *text)
{
    if (*place != protobuf_c_empty_string)
        free (*place);
    *place = memory_text (text);
}

static void set_last_task (Taskmq__Schedule *stored, const tmq_id_t *id)
{
    if (stored->last_task.len != sizeof (*id)) {
        free (stored->last_task.data);
        stored->last_task = (ProtobufCBinaryData){sizeof (*id), memory_alloc (sizeof (*id))};
    }
    memcpy (stored->last_task.data, id->bytes, sizeof (*id));
}

/* The task of the instant before, if it has not ended; tasks that have not are in memory. */
static task_t *task_before (const requests_t *self, const schedule_t *schedule)
{
    const ProtobufCBinaryData *id = &schedule->stored->last_task;
    task_t *task =
        id->len == sizeof (tmq_id_t) ? task_find (self->tasks, schedule->space, id->data) : NULL;
    return task == NULL || task_is_terminal (task) ? NULL : task;
}

/* The instant is over, however it was decided. */
static void decided (requests_t *self, schedule_t *schedule, const occurrence_t *instant,
                     const char *why)
{
    schedule_goes_on (schedule, instant);
    schedule->refused = 0;
    set_text (&schedule->stored->last_error, why);
    self->tasks->open.inputs++;
    schedule_changed (self->tasks, schedule);
}

/* Whether the owner may submit it now. */
static bool may_submit (requests_t *self, const schedule_t *schedule, char *why)
{
    access_t access;
    const Taskmq__TaskSpec *spec = schedule->stored->task;
    bool known = access_link (&access, self->policy, name_text (schedule->owner),
                              schedule->space->name, self->base->clocks.wall_ms);
    bool may = known && access_queue (&access, spec->queue, RIGHT_SUBMIT);
    bool room = may && quota_has_room (self, schedule->owner, access.principal,
                                       schedule->stored->payload.len);
    access_clear (&access);
    if (!may)
        snprintf (why, WHY_SIZE, "its owner has no right to submit to this queue");
    else if (!room)
        snprintf (why, WHY_SIZE, "its owner has as many tasks, or bytes of them, as he may have");
    return room;
}

/* False: the broker could not take it now. */
static bool submit (requests_t *self, schedule_t *schedule, const occurrence_t *instant)
{
    char why[WHY_SIZE] = "";
    char text[ID_TEXT_SIZE];
    tmq_id_t id = schedule_task_id (schedule, instant);
    if (!may_submit (self, schedule, why)) {
        decided (self, schedule, instant, why);
        return true;
    }
    if (task_find (self->tasks, schedule->space, id.bytes) == NULL &&
        submit_scheduled (self, schedule, &id, why, sizeof (why)) == NULL) {
        set_text (&schedule->stored->last_error, why);
        if (self->base->config.planted_bug == ENGINE_BUG_INSTANT_LOST)
            decided (self, schedule, instant, why);
        return self->base->config.planted_bug == ENGINE_BUG_INSTANT_LOST;
    }
    set_last_task (schedule->stored, &id);
    schedule->stored->fired++;
    id_format (&id, text);
    decided (self, schedule, instant, "");
    fire_event (self, schedule, TMQ_EVENT_FIRED, NULL, text);
    return true;
}

/* False: it is to be tried again. */
static bool fire (requests_t *self, schedule_t *schedule, const occurrence_t *instant)
{
    Taskmq__Schedule *stored = schedule->stored;
    task_t *before = stored->overlap == OVERLAP_ALLOW ? NULL : task_before (self, schedule);
    if (before != NULL && stored->overlap == OVERLAP_SKIP) {
        stored->skipped++;
        decided (self, schedule, instant, "the task of the instant before has not ended");
        return true;
    }
    char why[WHY_SIZE] = "";
    if (before != NULL && !may_submit (self, schedule, why)) {
        decided (self, schedule, instant, why); /* what runs is not stopped for nothing */
        return true;
    }
    if (before != NULL) {
        cause_t cause = {.message = "the next instant of its schedule has come"};
        cancel_task (self, before, &cause);
    }
    return submit (self, schedule, instant);
}

/* Instants that came while nobody could decide them. */
static void make_up (const requests_t *self, schedule_t *schedule, int64_t missed_ms)
{
    size_t kept = schedule->stored->missed == MISSED_ALL   ? SCHEDULE_MISSED_MAX
                  : schedule->stored->missed == MISSED_ONE ? 1
                                                           : 0;
    schedule_leave_out (self->tasks, schedule, missed_ms, kept);
    schedule->make_up_ms = missed_ms;
}

static bool has_come (const requests_t *self, const schedule_t *schedule)
{
    return schedule->has_next && schedule->next.at_ms <= self->base->clocks.wall_ms;
}

/* It waits for the next instant. */
static bool wait_for_next (requests_t *self, schedule_t *schedule)
{
    schedule->held_ms = 0;
    schedule_arm (self->tasks, schedule);
    return false;
}

/* The clock leapt, and is not believed yet. By the clock before it nothing is decided either: if
 * the broker was away, that one is wrong. */
static bool wait_for_clock (requests_t *self, schedule_t *schedule)
{
    const clocks_t *clocks = &self->base->clocks;
    if (schedule->held_ms == 0)
        schedule->held_ms = clocks->mono_ms;
    schedule_arm_later (self->tasks, schedule, clocks->hold_until_ms - clocks->mono_ms);
    return false;
}

/* An instant up to this time was missed; one that waited for the clock was not. */
static int64_t missed_before_ms (const requests_t *self, const schedule_t *schedule)
{
    const clocks_t *clocks = &self->base->clocks;
    int64_t held_ms = schedule->held_ms == 0 ? 0 : clocks->mono_ms - schedule->held_ms;
    return clocks->wall_ms - SCHEDULE_LATE_MS - held_ms;
}

static void try_again_later (requests_t *self, schedule_t *schedule)
{
    schedule_arm_later (self->tasks, schedule, (int64_t) AGAIN_MS << schedule->refused);
    if (schedule->refused < AGAIN_DOUBLED_MAX)
        schedule->refused++;
}

/* One instant, if it has come. False: it waits for the alarm, or its turn. first: it has waited for
 * its turn already. */
static bool decide (requests_t *self, schedule_t *schedule, bool first)
{
    if (!has_come (self, schedule))
        return wait_for_next (self, schedule);
    if (clocks_are_held (&self->base->clocks))
        return wait_for_clock (self, schedule);
    int64_t missed_ms = missed_before_ms (self, schedule);
    if (schedule->next.at_ms <= missed_ms && schedule->next.at_ms > schedule->make_up_ms)
        make_up (self, schedule, missed_ms);
    if (!has_come (self, schedule))
        return wait_for_next (self, schedule);
    if (!schedule_has_turn (self->tasks, schedule, first))
        return false;
    occurrence_t instant = schedule->next;
    bool done = fire (self, schedule, &instant);
    if (!done)
        try_again_later (self, schedule);
    journal_close_full (self->tasks);
    return done;
}

void fire_alarm (requests_t *self, schedule_t *schedule)
{
    if (self->base->stopping) {
        schedule_arm_later (self->tasks, schedule, AGAIN_MS);
        return;
    }
    if (node_is_linked (&schedule->waiting))
        return;
    for (int left = AT_ONCE_MAX; left > 0 && decide (self, schedule, false); left--)
        budget_take (&self->base->round.alarms, 1);
}

void fire_turns (requests_t *self)
{
    if (self->base->stopping)
        return;
    for (schedule_t *schedule = schedule_next_turn (self->tasks); schedule != NULL;
         schedule = schedule_next_turn (self->tasks)) {
        decide (self, schedule, true);
        budget_take (&self->base->round.alarms, 1);
    }
}
