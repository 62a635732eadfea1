/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Which subscriptions an event concerns. */
#ifndef TASKMQ_CORE_INTEREST_H
#define TASKMQ_CORE_INTEREST_H

#include "core/streams/streams.h"

void interest_add (streams_t *self, subscription_t *subscription); /* filter and log are set */
void interest_remove (subscription_t *subscription);
/* What lies behind after_seq became durable. Appends those whom it concerns to concerned, and those
 * that had been told everything before to moved (by subscription_t.concerned and of_interest). */
void interest_advance (streams_t *self, event_log_t *log, uint64_t after_seq, node_t *concerned,
                       node_t *moved);
/* It was told everything: the next advance, whatever it brings, starts its time for an upto. */
void interest_rest (subscription_t *subscription);
/* A task changed without an event: appends those whom it may concern, max of them at most; another
 * time the others come first. Returns how many were looked at. */
size_t interest_notice (const streams_t *self, const event_log_t *log, const record_t *record,
                        size_t max, node_t *concerned);

#endif
