/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* What ends with a link. */
#include "core/requests/parting.h"
#include "core/match/roster.h"
#include "core/match/worker.h"
#include "core/peers/link.h"
#include "core/peers/outbox.h"
#include "core/reads/jobs.h"
#include "core/requests/errands.h"
#include "core/requests/quota.h"
#include "core/requests/stats.h"
#include "core/requests/wait.h"
#include "core/streams/subscription.h"
#include "core/tasks/lease.h"
#include "core/tasks/space.h"

static const char REVOKED[] = "the worker's access was revoked";

/* It may register again on a newer link, for as long as one whose connection ended. */
static void await_worker (requests_t *self, worker_t *worker)
{
    if (self->base->config.planted_bug == ENGINE_BUG_HINT_FORGOTTEN)
        return;
    const clocks_t *clocks = &self->base->clocks;
    worker->gone_due_ms = clocks_awake_ms (clocks) + base_gone_grace_ms (self->base);
    wheel_arm (&self->base->fine, &worker->alarm,
               clocks_awake_due_ms (clocks, worker->gone_due_ms));
}

void parting_worker_alarm (requests_t *self, worker_t *worker)
{
    const clocks_t *clocks = &self->base->clocks;
    int64_t due_ms = clocks_awake_due_ms (clocks, worker->gone_due_ms);
    if (due_ms > clocks->heard_ms) { /* its registration may be unread */
        wheel_arm (&self->base->fine, &worker->alarm, clocks_look_again_ms (clocks, due_ms));
        return;
    }
    worker_drop_leases (self->match, worker, WORKER_LOSES, "the worker did not register again");
    roster_release (self->match, worker);
}

static void close_workers (requests_t *self, link_t *link, bool goodbye)
{
    for (node_t *node = list_first (&link->workers); node != NULL;
         node = list_first (&link->workers)) {
        worker_t *worker = LIST_ITEM (node, worker_t, of_link);
        worker_detach (self->match, worker);
        if (goodbye)
            worker_drop_leases (self->match, worker, WORKER_RETURNS, "the worker said goodbye");
        else
            await_worker (self, worker);
        roster_release (self->match, worker);
    }
}

static void close_reads (requests_t *self, link_t *link)
{
    subscriptions_drop_link (self->streams, link);
    waits_drop_link (self, link);
    jobs_drop_link (self->reads, link);
    stats_drop_link (self, link);
    errand_jobs_drop_link (self, link);
}

void parting_end (requests_t *self, link_t *link, bool goodbye)
{
    link_remove (self->peers, link);
    link->silenced = !goodbye;
    close_reads (self, link);
    close_workers (self, link, goodbye);
    if (!goodbye)
        outbox_drop (self->peers, link);
    if (!link->established)
        return;
    link->established = false;
    self->peers->established--;
    quota_leave (self, link);
    names_drop (&self->base->names, link->identity);
    link->identity = NULL;
    access_clear (&link->access);
    link->space->links--;
    space_release (self->tasks, link->space);
    link->space = NULL;
}

void parting_close (requests_t *self, link_t *link)
{
    parting_end (self, link, false);
    link_free_if_idle (self->peers, link);
}

void parting_revoke (requests_t *self, link_t *link)
{
    for (node_t *node = list_first (&link->workers); node != NULL;
         node = list_first (&link->workers)) {
        worker_t *worker = LIST_ITEM (node, worker_t, of_link);
        worker_detach (self->match, worker);
        worker_drop_leases (self->match, worker, WORKER_RETURNS, REVOKED);
        roster_release (self->match, worker);
    }
    parting_close (self, link);
}

void parting_revoke_worker (requests_t *self, worker_t *worker)
{
    worker_drop_leases (self->match, worker, WORKER_RETURNS, REVOKED);
    roster_release (self->match, worker);
}

/* The workers stay with it: the hint that their connection ended may have come already or come
 * later, and gives their leases back either way. */
void parting_lose (requests_t *self, link_t *link)
{
    if (!link->established) {
        parting_close (self, link);
        return;
    }
    gate_close (&link->gate, GATE_LOST);
    close_reads (self, link);
    outbox_drop (self->peers, link);
    worker_update_link (self->match, link);
}

/* Silence, or the end of the grace. A silent link has no alarm: its next message ends the silence,
 * its leases end by themselves, and its connection's end brings the hint. */
void parting_alarm (requests_t *self, link_t *link)
{
    const clocks_t *clocks = &self->base->clocks;
    bool gone = gate_is_closed (&link->gate, GATE_GONE);
    int64_t silent_ms = link->heard_ms + link_silence_ms (self->peers);
    int64_t due_ms = clocks_awake_due_ms (clocks, gone ? link->gone_due_ms : silent_ms);
    /* Heard since, or it may have sent what is still unread. */
    if (due_ms > clocks->heard_ms || link->behind) {
        wheel_arm (&self->base->fine, &link->alarm, clocks_look_again_ms (clocks, due_ms));
    } else if (gone) {
        for (node_t *node = list_first (&link->workers); node != NULL;
             node = list_first (&link->workers)) {
            worker_t *worker = LIST_ITEM (node, worker_t, of_link);
            worker_detach (self->match, worker);
            worker_drop_leases (self->match, worker, WORKER_LOSES, "the worker's connection ended");
            roster_release (self->match, worker);
        }
        parting_close (self, link);
    } else {
        gate_close (&link->gate, GATE_SILENT);
        worker_update_link (self->match, link);
    }
}
