/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* The thread that asks the store what is due for removal (S12). The engine decides about each.
 *
 * A pass goes through everything that is due, slice by slice. A slice is on its way until the
 * removals that were decided about it stand in the tables. SWEEPER_SLICES_MAX may be on their way
 * at once, one in each commit batch. The next pass begins when the last one has arrived, a second
 * after its beginning at the earliest. A pass ends at a slice of which the engine removes nothing:
 * it has its reasons, and asking at once again would change none of them. */
#ifndef TASKMQ_BROKER_SWEEPER_H
#define TASKMQ_BROKER_SWEEPER_H

#include "store/store.h"

enum { SWEEPER_SLICES_MAX = 16 }; /* of TMQ_SWEEP_ITEMS_MAX, a sixth of A12's limit */

typedef struct sweeper sweeper_t;

/* The store must outlive it. NULL when the thread cannot be made. */
sweeper_t *sweeper_new (store_t *store);
void sweeper_free (sweeper_t **self); /* accepts a NULL object */

/* All of these on the server's thread. */

/* Readable while a slice waits; for poll only. */
int sweeper_fd (const sweeper_t *self);
/* The slice that was found, false if there is none: it belongs to the caller. Each is followed by
 * sweeper_decided before the next is taken. */
bool sweeper_take (sweeper_t *self, due_t *out);
/* How much of the slice is removed by this batch (any number for none). */
void sweeper_decided (sweeper_t *self, size_t removed, uint64_t batch);
/* Every batch up to this one stands in the tables. */
void sweeper_written (sweeper_t *self, uint64_t batch);
/* What was not yet durable never happened: begins anew, after a while. */
void sweeper_reset (sweeper_t *self);

#endif
