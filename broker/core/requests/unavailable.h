/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* The store is out of reach (A100): what needs it is refused, and nothing of it was done. */
#ifndef TASKMQ_CORE_UNAVAILABLE_H
#define TASKMQ_CORE_UNAVAILABLE_H

#include "core/requests/requests.h"

/* UNAVAILABLE, or OVERLOADED for a client that does not know that code. */
tmq_code_t unavailable_code (const link_t *link);
void reply_unavailable (call_t *call);
/* The answer to a hello; LIMIT for one that does not know the code, which then tries elsewhere. */
void refuse_hello (call_t *call);
/* Refuses every request that waits for a reader. */
void unavailable_begins (requests_t *self);
/* A reader found the store out of reach; takes the job. */
void unavailable_read (requests_t *self, read_job_t *job);

#endif
