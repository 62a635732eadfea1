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
/* The transport did not take the last message. */
void snapshot_failed (subscription_t *subscription);

#endif
