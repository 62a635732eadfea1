/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* The snapshot of a subscription: its tasks as they are, before its events. */
#ifndef TASKMQ_CORE_SNAPSHOT_H
#define TASKMQ_CORE_SNAPSHOT_H

#include "core/streams/streams.h"

/* Packs the next message; false when a page has to be read or credit to come first. */
bool snapshot_next (streams_t *self, subscription_t *subscription);
/* A page of it was read. */
void snapshot_take (streams_t *self, subscription_t *subscription, read_t *read);
/* The page goes, and its rest is read again when it is wanted. What was looked up by id stays: it
 * is little, and there is no place to go on from. */
void snapshot_put_back (streams_t *self, subscription_t *subscription);
/* The transport did not take the last message. */
void snapshot_failed (subscription_t *subscription);

#endif
