/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Page reads: those that wait and those that readers have. */
#ifndef TASKMQ_CORE_JOBS_H
#define TASKMQ_CORE_JOBS_H

#include "core/reads/reads.h"

/* The link may ask for another page; there is room for it. */
bool jobs_have_room (const reads_t *self, const link_t *link);
/* A read in the link's namespace, to be given away once the batch `need` is written back and it is
 * the link's turn. It counts among the link's open reads and is dropped at its deadline (0:
 * none). */
read_job_t *job_for_request (reads_t *self, link_t *link, const char *ns, read_kind_t kind,
                             uint64_t need, uint64_t request, uint32_t deadline_ms);
/* … for a subscription, which has one at a time. A page (any kind but READ_SINCE) waits until its
 * link may have one more. */
read_job_t *job_for_stream (reads_t *self, link_t *link, const char *ns, read_kind_t kind,
                            uint64_t need, struct subscription *subscription);
/* Whoever has the job keeps the page that it brought, and tells when it has left. */
void job_keep_page (read_job_t *job);
void jobs_page_left (reads_t *self, link_t *link);
/* Pages of the link's streams wait for those that it has to leave. */
bool jobs_pages_wait (const link_t *link);
/* It takes messages again: its streams may have pages. */
void jobs_link_heard (reads_t *self, link_t *link);
/* … of the engine's own: whoever has it handles it when it is done. */
read_job_t *job_for_engine (reads_t *self, const char *ns, read_kind_t kind, uint64_t need);
void job_free (reads_t *self, read_job_t *job);
/* Nobody wants it any more: freed, or left to the reader that has it. */
void job_drop (reads_t *self, read_job_t *job);
void jobs_drop_link (reads_t *self, link_t *link); /* … all of a link's */
/* The next one to be done, or NULL. It belongs to the caller until it is done. */
read_t *jobs_next (reads_t *self);
/* It is not finished: it goes on when the others had their turn. Not when nobody waits for it. */
void job_again (reads_t *self, read_job_t *job);
/* The store was out of reach: it is read again when that is back. Not when nobody waits for it. */
void job_put_back (reads_t *self, read_job_t *job);
/* A job of a request that no reader has, or NULL. */
read_job_t *jobs_asked (const reads_t *self);
bool jobs_want_flush (const reads_t *self);

#endif
