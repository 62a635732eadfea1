/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Page reads. */
#include <stdlib.h>
#include <string.h>

#include "core/base/memory.h"
#include "core/peers/link.h"
#include "core/reads/jobs.h"
#include "core/reads/loaded.h"

read_job_t *job_new (reads_t *self, link_t *link, const char *ns, read_kind_t kind, uint64_t need)
{
    read_job_t *job = memory_zero (1, sizeof (*job));
    job->read.kind = kind;
    strncpy (job->ns, ns, sizeof (job->ns) - 1);
    job->read.filter.ns = job->ns;
    job->read.context = job;
    job->need = need;
    job->link = link;
    link->references++;
    list_push_back (&self->jobs, &job->node);
    return job;
}

void job_free (reads_t *self, read_job_t *job)
{
    read_clear (&job->read);
    list_remove (&job->node);
    if (job->link != NULL)
        link_unreference (self->peers, job->link);
    free (job->filter);
    free (job);
}

read_t *jobs_next (reads_t *self)
{
    for (node_t *node = self->jobs.next; node != &self->jobs; node = node->next) {
        read_job_t *job = LIST_ITEM (node, read_job_t, node);
        if (job->need > self->base->written)
            continue;
        list_remove (node);
        list_push_back (&self->jobs_given, node);
        self->base->counts.reads++;
        return &job->read;
    }
    return NULL;
}

bool jobs_want_flush (const reads_t *self)
{
    for (node_t *node = self->jobs.next; node != &self->jobs; node = node->next)
        if (LIST_ITEM (node, read_job_t, node)->need > self->base->written)
            return true;
    return false;
}

/* Life. */

void reads_init (reads_t *self, base_t *base, tasks_t *tasks, links_t *peers)
{
    *self = (reads_t){.base = base, .tasks = tasks, .peers = peers};
    list_init (&self->jobs);
    list_init (&self->jobs_given);
}

void reads_reset (reads_t *self)
{
    loaded_clear (self);
    for (node_t *node = list_first (&self->jobs); node != NULL; node = list_first (&self->jobs))
        job_free (self, LIST_ITEM (node, read_job_t, node));
    for (node_t *node = self->jobs_given.next; node != &self->jobs_given; node = node->next) {
        read_job_t *job = LIST_ITEM (node, read_job_t, node);
        if (job->link != NULL)
            link_unreference (self->peers, job->link);
        job->link = NULL;
        job->subscription = NULL;
    }
}

void reads_free (reads_t *self)
{
    for (node_t *node = list_first (&self->jobs_given); node != NULL;
         node = list_first (&self->jobs_given))
        job_free (self, LIST_ITEM (node, read_job_t, node));
}
