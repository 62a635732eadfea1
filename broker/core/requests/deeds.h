/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* What the record of deeds is told of requests. */
#ifndef TASKMQ_CORE_DEEDS_H
#define TASKMQ_CORE_DEEDS_H

#include "core/reads/find.h"
#include "core/requests/requests.h"

/* Counts it and keeps it for the record: the answer is DENIED. */
void deny (call_t *call);
/* A principal met its quota; text says which. */
void deeds_quota (requests_t *self, const link_t *link, const char *identity, const char *text);
/* READ to ADOPT: kept if the task is somebody else's, and the right over it that of an admin or
 * operator. */
void deeds_task (call_t *call, deed_kind_t kind, const found_t *found);
/* What is set for a queue was changed. */
void deeds_queue (call_t *call, const char *queue);
/* A worker was drained. */
void deeds_worker (call_t *call, const char *worker);
/* A task with a past came into the queue. */
void deeds_import (call_t *call, const uint8_t *id, const char *queue);
/* The next one, in their order; false: none since. */
bool deeds_next (requests_t *self, deed_t *out);

#endif
