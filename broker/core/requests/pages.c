/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Page reads for requests. */
#include "core/requests/pages.h"

#include "core/requests/answer.h"
#include "core/requests/quota.h"
#include "core/requests/unavailable.h"

enum {
    READS_RETRY_MS = 100 /* a page takes a few ms */
};

/* The link has as many reads open as it may have, or all links together have. */
bool page_refused (call_t *call)
{
    requests_t *self = call->requests;
    if (self->base->away) {
        reply_unavailable (call);
        return true;
    }
    if (jobs_have_room (self->reads, call->link))
        return quota_answered (call, quota_read (self, call->link));
    const engine_config_t *config = &self->base->config;
    bool own = call->link->reads_count >= config->link_reads_max;
    char text[LIMIT_TEXT_SIZE];
    limit_text (text, own ? "open reads of a link" : "open reads of the broker",
                own ? config->link_reads_max : config->reads_max);
    reply_code_at_once (call, TMQ_LIMIT, text, READS_RETRY_MS);
    return true;
}

read_job_t *page_job (call_t *call, read_kind_t kind)
{
    return job_for_request (call->requests->reads, call->link, call->link->space->name, kind,
                            call->requests->base->durable, call->request->id,
                            call->request->deadline_ms);
}

read_job_t *page_rows (call_t *call, row_kind_t kind, const row_key_t *prefix,
                       const row_key_t *after, size_t limit)
{
    if (page_refused (call))
        return NULL;
    read_job_t *job = page_job (call, READ_ROWS);
    job->prefix = buf_new (prefix->bytes, prefix->length);
    job->after = after->length == 0 ? NULL : buf_new (after->bytes, after->length);
    job->read.row_kind = kind;
    job->read.prefix = job->prefix;
    job->read.after = job->after;
    job->read.limit = limit;
    return job;
}
