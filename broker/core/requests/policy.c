/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* A link whose rights changed is closed: the library says hello again and meets the new ones. So no
 * rule here has to find everything that an old right had begun. */
#include "core/requests/policy.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/memory.h"
#include "core/requests/parting.h"
#include "core/requests/quota.h"
#include "core/tasks/blobs.h"

static bool same_rights (const access_t *a, const access_t *b)
{
    if (a->rights != b->rights || a->everywhere != b->everywhere)
        return false;
    if (a->principal == NULL || b->principal == NULL)
        return a->principal == b->principal;
    return strcmp (a->principal->name, b->principal->name) == 0 &&
           strcmp (a->principal->same, b->principal->same) == 0;
}

static void judge_link (requests_t *self, link_t *link)
{
    access_t now;
    bool allowed = access_link (&now, self->policy, name_text (link->identity), link->space->name,
                                self->base->clocks.wall_ms);
    bool same = allowed && same_rights (&link->access, &now);
    if (same) {
        access_clear (&link->access);
        access_copy (&link->access, &now);
        quota_refresh (self, link);
    }
    access_clear (&now);
    if (same || self->base->config.planted_bug == ENGINE_BUG_OLD_POLICY)
        return;
    self->base->counts.links_revoked++;
    if (allowed)
        parting_close (self, link);
    else
        parting_revoke (self, link);
}

typedef void visit_t (requests_t *self, link_t *link);

/* In a list: a walk over the map would miss some as others go. */
static void visit_links (requests_t *self, visit_t *visit)
{
    size_t count = 0;
    size_t cursor = 0;
    link_t **links = memory_alloc ((self->peers->by_peer.count + 1) * sizeof (*links));
    for (link_t *link = map_each (&self->peers->by_peer, &cursor); link != NULL;
         link = map_each (&self->peers->by_peer, &cursor))
        if (link->established)
            links[count++] = link;
    for (size_t i = 0; i < count; i++)
        visit (self, links[i]);
    free (links);
}

void policy_greet_again (requests_t *self)
{
    visit_links (self, parting_close);
}

static bool may_work (const requests_t *self, const worker_t *worker)
{
    access_t access;
    bool may = access_link (&access, self->policy, name_text (worker->identity),
                            worker->space->name, self->base->clocks.wall_ms) &&
               access_may (&access, RIGHT_WORK);
    access_clear (&access);
    return may;
}

/* Those whose link is gone, and who might come back. */
static void judge_workers (requests_t *self)
{
    size_t count = 0;
    size_t cursor = 0;
    map_t *map = &self->tasks->workers;
    worker_t **workers = memory_alloc ((map->count + 1) * sizeof (*workers));
    for (worker_t *worker = map_each (map, &cursor); worker != NULL;
         worker = map_each (map, &cursor))
        if (worker->link == NULL && worker->identity != NULL)
            workers[count++] = worker;
    for (size_t i = 0; i < count; i++)
        if (!may_work (self, workers[i]))
            parting_revoke_worker (self, workers[i]);
    free (workers);
}

/* With the first policy: of everybody who is still there. */
static void make_accounts (requests_t *self)
{
    size_t cursor = 0;
    if (self->tasks->has_accounts)
        return;
    if (accounts_begin (self->tasks))
        blobs_charge (self->tasks);
    for (link_t *link = map_each (&self->peers->by_peer, &cursor); link != NULL;
         link = map_each (&self->peers->by_peer, &cursor))
        if (link->established)
            quota_enter (self, link);
}

static void drop_accounts (requests_t *self)
{
    size_t cursor = 0;
    for (link_t *link = map_each (&self->peers->by_peer, &cursor); link != NULL;
         link = map_each (&self->peers->by_peer, &cursor))
        link->account = NULL;
    accounts_end (self->tasks);
}

static void judge_all (requests_t *self)
{
    policy_ends_judged (&self->ends, self->policy, self->base->clocks.wall_ms);
    if (self->policy == NULL)
        drop_accounts (self);
    visit_links (self, judge_link);
    judge_workers (self);
    if (self->policy != NULL)
        make_accounts (self);
}

void policy_take (requests_t *self, policy_t *policy)
{
    policy_t *before = self->policy;
    self->policy = policy_keep (policy);
    judge_all (self);
    policy_drop (before);
}

void policy_judge_ends (requests_t *self)
{
    if (policy_ends_are_due (&self->ends, self->base->clocks.wall_ms))
        judge_all (self);
}

int64_t policy_next_judgement_ms (const requests_t *self)
{
    const clocks_t *clocks = &self->base->clocks;
    if (policy_ends_are_due (&self->ends, clocks->wall_ms))
        return clocks->mono_ms;
    int64_t next_ms = self->ends.next_ms;
    return next_ms == INT64_MAX ? next_ms : clocks->mono_ms + next_ms - clocks->wall_ms;
}
