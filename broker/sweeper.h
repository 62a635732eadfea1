/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* The thread that asks the store what is due for removal (S16). The engine decides about each; the
 * next slice is looked for when the removals of the last one stand in the tables, so nothing is
 * proposed twice. Slices follow each other while there is more, else once a second. */
#ifndef TASKMQ_BROKER_SWEEPER_H
#define TASKMQ_BROKER_SWEEPER_H

#include "store/store.h"

typedef struct sweeper sweeper_t;

/* The store must outlive it. NULL when the thread cannot be made. */
sweeper_t *sweeper_new (store_t *store);
void sweeper_free (sweeper_t **self); /* accepts a NULL object */
/* Readable while a slice waits; for poll only. */
int sweeper_fd (const sweeper_t *self);
/* The slice that was found, false if there is none: array and records belong to the caller. */
bool sweeper_take (sweeper_t *self, record_t ***records, size_t *count);
/* What was decided about the slice is in the tables. */
void sweeper_continue (sweeper_t *self);

#endif
