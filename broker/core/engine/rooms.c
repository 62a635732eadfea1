/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* The engine's life: its rooms are made, stopped and cleared.
 *
 * Failure policy: a peer's mistake is answered and changes nothing; our own mistakes are asserts;
 * exhausted memory ends the process. */
#include <stdlib.h>
#include <string.h>

#include "core/base/memory.h"
#include "core/engine/rooms.h"
#include "core/requests/cleanup.h"
#include "core/requests/errands.h"
#include "core/requests/log.h"
#include "core/requests/parting.h"
#include "core/requests/wait.h"

engine_t *engine_new (const engine_config_t *config)
{
    engine_t *self = memory_zero (1, sizeof (*self));
    base_init (&self->base, config);
    history_init (&self->history, &self->base);
    tasks_init (&self->tasks, &self->base, &self->history);
    sessions_init (&self->sessions, &self->base, &self->tasks, &self->reads);
    links_init (&self->peers, &self->base);
    reads_init (&self->reads, &self->base, &self->tasks, &self->peers);
    streams_init (&self->streams, &self->base, &self->history, &self->peers, &self->reads);
    match_init (&self->match, &self->base, &self->tasks, &self->peers, &self->reads);
    self->requests = (requests_t){.base = &self->base,
                                  .history = &self->history,
                                  .tasks = &self->tasks,
                                  .sessions = &self->sessions,
                                  .peers = &self->peers,
                                  .reads = &self->reads,
                                  .streams = &self->streams,
                                  .match = &self->match,
                                  .ends = POLICY_ENDS_INIT};
    cleanup_init (&self->requests.cleanup);
    list_init (&self->requests.stats);
    waits_init (&self->requests);
    list_init (&self->requests.errands);
    list_init (&self->requests.errands_given);
    list_init (&self->requests.log_pieces);
    list_init (&self->left);
    list_init (&self->left_streams);
    list_init (&self->denied);
    list_init (&self->spent);
    return self;
}

void engine_configure (engine_t *self, const engine_config_t *config)
{
    self->base.config = *config;
}

static void close_links (engine_t *self)
{
    while (self->peers.by_peer.count > 0) { /* a walk misses those that moved as others went */
        size_t cursor = 0;
        for (link_t *link = map_each (&self->peers.by_peer, &cursor); link != NULL;
             link = map_each (&self->peers.by_peer, &cursor))
            parting_close (&self->requests, link);
    }
}

/* Everything that a reset forgets, the upper rooms first. */
static void clear (engine_t *self)
{
    output_clear (self);
    close_links (self);
    wheel_clear (&self->base.fine);
    wheel_clear (&self->base.coarse);
    cleanup_reset (&self->requests.cleanup);
    waits_reset (&self->requests);
    links_reset (&self->peers);
    reads_reset (&self->reads);
    match_reset (&self->match);
    sessions_reset (&self->sessions);
    streams_reset (&self->streams);
    history_reset (&self->history);
    tasks_reset (&self->tasks);
    base_reset (&self->base);
}

void engine_free (engine_t *self)
{
    if (self == NULL)
        return;
    clear (self);
    errand_jobs_free (&self->requests);
    log_pieces_free (&self->requests);
    reads_free (&self->reads);
    links_free (&self->peers);
    tasks_free (&self->tasks);
    base_free (&self->base);
    free (self->requests.foreign);
    policy_drop (self->requests.policy);
    free (self);
}

void engine_reset (engine_t *self)
{
    clear (self);
    self->base.counts.resets++;
}

void engine_stop (engine_t *self)
{
    self->base.stopping = true;
}

void engine_set_full (engine_t *self, bool full)
{
    self->base.full = full;
}

void engine_set_counters (engine_t *self, const counter_t *counters, size_t count)
{
    free (self->requests.foreign);
    self->requests.foreign = memory_alloc (count * sizeof (*counters));
    memcpy (self->requests.foreign, counters, count * sizeof (*counters));
    self->requests.foreign_count = count;
}
