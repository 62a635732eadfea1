/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

#include "core/requests/unavailable.h"

#include "core/reads/jobs.h"
#include "core/requests/answer.h"
#include "core/streams/subscription.h"
#include "types.h"

enum { UNAVAILABLE_RETRY_MS = 500 };

static void refuse (requests_t *self, link_t *link, uint64_t request, tmq_code_t code)
{
    bytes_mark_t mark;
    self->base->counts.unavailable++;
    reply_open (self, request, code, code_text (TMQ_UNAVAILABLE), UNAVAILABLE_RETRY_MS, false,
                &mark);
    reply_close (self, link, mark, 0, NULL);
}

tmq_code_t unavailable_code (const link_t *link)
{
    return link->knows_unavailable ? TMQ_UNAVAILABLE : TMQ_OVERLOADED;
}

void reply_unavailable (call_t *call)
{
    refuse (call->requests, call->link, call->request->id, unavailable_code (call->link));
}

void refuse_hello (call_t *call)
{
    bool knows = (call->request->hello->features & TMQ_FEATURE_UNAVAILABLE) != 0;
    refuse (call->requests, call->link, call->request->id, knows ? TMQ_UNAVAILABLE : TMQ_LIMIT);
}

/* Answers the request that the job is for, and frees it. */
static void refuse_job (requests_t *self, read_job_t *job)
{
    subscription_t *subscription = job->subscription;
    if (!job->link->dead)
        refuse (self, job->link, job->request, unavailable_code (job->link));
    if (subscription != NULL) { /* it asked where to begin */
        subscription->job = NULL;
        job->subscription = NULL;
        subscription_free (self->streams, subscription);
    }
    job_free (self->reads, job);
}

void unavailable_begins (requests_t *self)
{
    for (read_job_t *job = jobs_asked (self->reads); job != NULL; job = jobs_asked (self->reads))
        refuse_job (self, job);
}

void unavailable_read (requests_t *self, read_job_t *job)
{
    if (job->link == NULL && !job->own)
        job_free (self->reads, job); /* nobody waits any more */
    else if (job->link != NULL && job->request != 0)
        refuse_job (self, job);
    else
        job_put_back (self->reads, job);
}
