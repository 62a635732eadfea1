/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Page reads. */
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/memory.h"
#include "core/peers/link.h"
#include "core/reads/jobs.h"
#include "core/reads/loaded.h"

bool jobs_have_room (const reads_t *self, const link_t *link)
{
    const engine_config_t *config = &self->base->config;
    return link->reads_count < config->link_reads_max && self->open < config->reads_max;
}

/* Behind the other reads of its link, which takes its turn with the others. */
static void line_up (reads_t *self, read_job_t *job)
{
    link_t *link = job->link;
    list_push_back (&link->reads, &job->node);
    if (!node_is_linked (&link->reading))
        list_push_back (&self->turns, &link->reading);
}

/* Pages of streams are held until the transport takes them, so few are read at a time (A51). */

enum {
    LINK_PAGES_MAX = 16, /* of one link: about 64 KiB each as messages */
    PAGES_MAX = 128      /* of all links */
};

static bool may_have_page (const link_t *link)
{
    return link->pages < LINK_PAGES_MAX && !list_is_empty (&link->page_reads) &&
           !gate_is_closed (&link->gate, GATE_STALLED);
}

/* Gives the free places to links in turn. */
static void admit_pages (reads_t *self)
{
    while (self->pages < PAGES_MAX && !list_is_empty (&self->page_turns)) {
        node_t *turn = list_pop_front (&self->page_turns);
        link_t *link = LIST_ITEM (turn, link_t, page_turn);
        if (!may_have_page (link))
            continue;
        read_job_t *job = LIST_ITEM (list_pop_front (&link->page_reads), read_job_t, node);
        job->paged = true;
        link->pages++;
        self->pages++;
        line_up (self, job);
        if (may_have_page (link))
            list_push_back (&self->page_turns, turn);
    }
}

static void want_page (reads_t *self, link_t *link)
{
    if (!may_have_page (link))
        return;
    if (!node_is_linked (&link->page_turn))
        list_push_back (&self->page_turns, &link->page_turn);
    admit_pages (self);
}

void jobs_page_left (reads_t *self, link_t *link)
{
    link->pages--;
    self->pages--;
    want_page (self, link);
    admit_pages (self); /* another link may have waited for the place */
}

void job_keep_page (read_job_t *job)
{
    job->paged = false;
}

bool jobs_pages_wait (const link_t *link)
{
    return !list_is_empty (&link->page_reads);
}

void jobs_link_heard (reads_t *self, link_t *link)
{
    want_page (self, link);
}

static read_job_t *job_new (const char *ns, read_kind_t kind, uint64_t need)
{
    read_job_t *job = memory_zero (1, sizeof (*job));
    job->read.kind = kind;
    strncpy (job->ns, ns, sizeof (job->ns) - 1);
    job->read.filter.ns = job->ns;
    job->read.context = job;
    job->need = need;
    job->alarm.kind = ALARM_READ;
    return job;
}

static read_job_t *job_of_link (link_t *link, const char *ns, read_kind_t kind, uint64_t need)
{
    read_job_t *job = job_new (ns, kind, need);
    job->link = link;
    link->references++;
    return job;
}

read_job_t *job_for_engine (reads_t *self, const char *ns, read_kind_t kind, uint64_t need)
{
    read_job_t *job = job_new (ns, kind, need);
    job->own = true;
    list_push_back (&self->own, &job->node);
    return job;
}

read_job_t *job_for_stream (reads_t *self, link_t *link, const char *ns, read_kind_t kind,
                            uint64_t need, struct subscription *subscription)
{
    read_job_t *job = job_of_link (link, ns, kind, need);
    job->subscription = subscription;
    if (kind == READ_SINCE) {
        line_up (self, job);
        return job;
    }
    list_push_back (&link->page_reads, &job->node);
    want_page (self, link);
    return job;
}

read_job_t *job_for_request (reads_t *self, link_t *link, const char *ns, read_kind_t kind,
                             uint64_t need, uint64_t request, uint32_t deadline_ms)
{
    read_job_t *job = job_of_link (link, ns, kind, need);
    line_up (self, job);
    job->request = request;
    job->counted = true;
    link->reads_count++;
    link->searches_count += kind == READ_SEARCH;
    self->open++;
    if (deadline_ms > 0)
        wheel_arm (&self->base->fine, &job->alarm, self->base->clocks.mono_ms + deadline_ms);
    return job;
}

/* Searches wait for an index, on a thread of its own: they keep no reader from others. */
static bool takes_reader (const read_job_t *job)
{
    return job->read.kind != READ_SEARCH;
}

void job_again (reads_t *self, read_job_t *job)
{
    list_unlink (&job->node);
    job->given = false;
    self->given -= takes_reader (job);
    job->read.before_number = job->read.next_number;
    job->read.more = false; /* of the piece before; it tells for itself */
    line_up (self, job);
}

void job_put_back (reads_t *self, read_job_t *job)
{
    list_unlink (&job->node);
    job->given = false;
    self->given -= takes_reader (job);
    job->read.away = false;
    job->read.error = 0;
    job->read.error_text[0] = '\0';
    if (job->own)
        list_push_front (&self->own, &job->node);
    else
        line_up (self, job);
}

read_job_t *jobs_asked (const reads_t *self)
{
    const node_t *turns = &self->turns;
    for (const node_t *turn = turns->next; turn != turns; turn = turn->next) {
        const link_t *link = LIST_ITEM (turn, link_t, reading);
        for (node_t *node = link->reads.next; node != &link->reads; node = node->next)
            if (LIST_ITEM (node, read_job_t, node)->request != 0)
                return LIST_ITEM (node, read_job_t, node);
    }
    return NULL;
}

/* Nobody waits for it any more. */
static void leave_link (reads_t *self, read_job_t *job)
{
    link_t *link = job->link;
    if (link == NULL)
        return;
    if (job->counted) {
        link->reads_count--;
        link->searches_count -= job->read.kind == READ_SEARCH;
        self->open--;
    }
    job->link = NULL;
    job->subscription = NULL;
    if (job->paged)
        jobs_page_left (self, link);
    job->paged = false;
    if (list_is_empty (&link->reads))
        list_remove (&link->reading);
    link_unreference (self->peers, link);
}

void job_free (reads_t *self, read_job_t *job)
{
    read_clear (&job->read);
    alarm_disarm (&job->alarm);
    list_remove (&job->node);
    if (job->given)
        self->given -= takes_reader (job);
    leave_link (self, job);
    filter_free (job->filter);
    buf_drop (job->prefix);
    buf_drop (job->after);
    free (job->newest);
    free (job->turns);
    if (job->look != NULL)
        job->look_free (job->look);
    search_free (job->read.search);
    access_clear (&job->read.scope);
    free (job);
}

/* A reader has it: it stops, and brings it back. */
static void abandon (reads_t *self, read_job_t *job)
{
    atomic_store (&job->read.cancelled, true);
    job->own = false;
    alarm_disarm (&job->alarm);
    leave_link (self, job);
}

void job_drop (reads_t *self, read_job_t *job)
{
    if (job->given)
        abandon (self, job);
    else
        job_free (self, job);
}

void jobs_drop_link (reads_t *self, link_t *link)
{
    link->references++; /* the last of its reads would free it */
    node_t *lists[] = {&link->page_reads, &link->reads};
    for (size_t i = 0; i < 2; i++)
        for (node_t *node = list_pop_front (lists[i]); node != NULL;
             node = list_pop_front (lists[i]))
            job_free (self, LIST_ITEM (node, read_job_t, node));
    list_remove (&link->page_turn);
    for (node_t *node = self->jobs_given.next; node != &self->jobs_given; node = node->next) {
        read_job_t *job = LIST_ITEM (node, read_job_t, node);
        if (job->link == link)
            abandon (self, job);
    }
    link->references--;
}

/* The first of a link's reads that need not wait for the write-back, or NULL. It looks at few: what
 * waits for a batch is followed by what waits for a later one. */
static read_job_t *ready_job (const reads_t *self, const link_t *link)
{
    enum { LOOKS_MAX = 8 };
    node_t *node = link->reads.next;
    for (size_t i = 0; i < LOOKS_MAX && node != &link->reads; i++, node = node->next) {
        read_job_t *job = LIST_ITEM (node, read_job_t, node);
        if (job->need <= self->base->written)
            return job;
    }
    return NULL;
}

/* A reader gets it. */
static read_t *give (reads_t *self, read_job_t *job)
{
    list_push_back (&self->jobs_given, &job->node);
    job->given = true;
    self->given += takes_reader (job);
    self->base->counts.reads++;
    return &job->read;
}

static read_job_t *first_own (const reads_t *self)
{
    node_t *node = list_first (&self->own);
    return node == NULL ? NULL : LIST_ITEM (node, read_job_t, node);
}

read_t *jobs_next (reads_t *self)
{
    if (self->base->away || self->given >= self->base->config.given_reads_max)
        return NULL;
    read_job_t *own = first_own (self);
    if (own != NULL && own->need <= self->base->written) {
        list_unlink (&own->node);
        return give (self, own);
    }
    node_t *last = self->turns.prev;
    for (node_t *node = list_pop_front (&self->turns); node != NULL;
         node = list_pop_front (&self->turns)) {
        link_t *link = LIST_ITEM (node, link_t, reading);
        read_job_t *job = ready_job (self, link);
        if (job != NULL)
            list_unlink (&job->node);
        if (!list_is_empty (&link->reads))
            list_push_back (&self->turns, node);
        if (job != NULL)
            return give (self, job);
        if (node == last)
            return NULL;
    }
    return NULL;
}

bool jobs_want_flush (const reads_t *self)
{
    enum { LOOKS_MAX = 64 }; /* links whose turn is next; the others have theirs later */
    const read_job_t *own = first_own (self);
    if (own != NULL && own->need > self->base->written)
        return true;
    const node_t *node = self->turns.next;
    for (size_t i = 0; i < LOOKS_MAX && node != &self->turns; i++, node = node->next) {
        const link_t *link = LIST_ITEM (node, const link_t, reading);
        if (LIST_ITEM (link->reads.next, read_job_t, node)->need > self->base->written)
            return true;
    }
    return false;
}

/* Life. */

void reads_init (reads_t *self, base_t *base, tasks_t *tasks, links_t *peers)
{
    *self = (reads_t){.base = base, .tasks = tasks, .peers = peers};
    list_init (&self->turns);
    list_init (&self->own);
    list_init (&self->page_turns);
    list_init (&self->jobs_given);
}

void reads_reset (reads_t *self)
{
    loaded_clear (self);
    node_t *turns = &self->turns;
    for (node_t *node = list_pop_front (turns); node != NULL; node = list_pop_front (turns))
        jobs_drop_link (self, LIST_ITEM (node, link_t, reading));
    node_t *own = &self->own;
    for (node_t *node = list_pop_front (own); node != NULL; node = list_pop_front (own))
        job_free (self, LIST_ITEM (node, read_job_t, node));
    for (node_t *node = self->jobs_given.next; node != &self->jobs_given; node = node->next)
        abandon (self, LIST_ITEM (node, read_job_t, node));
}

void reads_free (reads_t *self)
{
    node_t *given = &self->jobs_given;
    for (node_t *node = list_pop_front (given); node != NULL; node = list_pop_front (given))
        job_free (self, LIST_ITEM (node, read_job_t, node));
}
