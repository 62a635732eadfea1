/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Subscriptions of a link: made, found, ended. */
#ifndef TASKMQ_CORE_SUBSCRIPTION_H
#define TASKMQ_CORE_SUBSCRIPTION_H

#include "core/streams/streams.h"

/* One on the link, in a namespace's events. Takes the filter. */
subscription_t *subscription_new (streams_t *self, link_t *link, event_log_t *log, uint64_t id,
                                  filter_copy_t *filter);
subscription_t *subscription_find (const streams_t *self, const link_t *link, uint64_t id);
/* A snapshot by id has grown by so much. */
void subscription_count_snapshot (streams_t *self, subscription_t *subscription, size_t bytes);
void subscription_free (streams_t *self, subscription_t *subscription);
/* All of a link's are told nothing from now on. What they hold is freed in the rounds to come. */
void subscriptions_drop_link (streams_t *self, link_t *link);
/* Frees what ended, as far as the round allows. */
void subscriptions_run (streams_t *self);
/* It holds the page that the job brought, of events or of the snapshot. */
void subscription_keep_page (subscription_t *subscription, read_job_t *job);
/* Forgets it. */
void subscription_drop_page (streams_t *self, subscription_t *subscription);
void subscription_drop_snapshot (streams_t *self, subscription_t *subscription);

#endif
