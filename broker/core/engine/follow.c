/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* What follows from the transitions of an input in the rooms above tasks. A follower may make
 * further changes: these are further facts, and belong to the same input. */
#include "core/engine/rooms.h"
#include "core/match/dispatch.h"
#include "core/match/worker.h"
#include "core/requests/ask.h"
#include "core/requests/wait.h"
#include "core/tasks/change.h"
#include "core/tasks/dependents.h"

typedef void follow_t (requests_t *self, const fact_t *fact);

static void follow_end (requests_t *self, const fact_t *fact)
{
    dependents_follow (self->tasks, fact);
}

static follow_t *const FOLLOWERS[] = {waits_follow, follow_end, answers_follow};

void follow_facts (engine_t *self)
{
    enum { FOLLOWERS_COUNT = sizeof (FOLLOWERS) / sizeof (FOLLOWERS[0]) };
    tasks_t *tasks = &self->tasks;
    for (size_t i = 0; i < tasks->facts_count; i++) {
        fact_t fact = tasks->facts[i]; /* the list may move while it is followed */
        for (size_t k = 0; k < FOLLOWERS_COUNT; k++)
            FOLLOWERS[k](&self->requests, &fact);
    }
    tasks->facts_count = 0;
}

/* Begin and end. */

void input_begin (engine_t *self, now_t now)
{
    int64_t before_ms = base_expiry_turn_ms (&self->base);
    clocks_step_t step = clocks_advance (&self->base.clocks, now);
    if (step == CLOCKS_STEADY)
        return;
    if (step == CLOCKS_LEAPT)
        self->base.counts.clock_leaps++;
    int64_t after_ms = base_expiry_turn_ms (&self->base);
    if (step != CLOCKS_BACK)
        change_judge_delays (&self->tasks); /* they are counted on the monotonic clock */
    else if (after_ms < before_ms)
        self->base.coarse_ahead_ms += before_ms - after_ms; /* a wheel turns forward alone */
}

void input_end (engine_t *self)
{
    workers_give_back (&self->match);
    follow_facts (self);
    dispatch_run (&self->match);
    follow_facts (self); /* a task may have expired in front of its worker */
}
