/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* What follows from the transitions of an input in the rooms above tasks. A follower may make
 * further changes: these are further facts, and belong to the same input. */
#include "core/engine/rooms.h"
#include "core/requests/wait.h"

typedef void follow_t (requests_t *self, const fact_t *fact);

static follow_t *const FOLLOWERS[] = {waits_follow};

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
