/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Jobs for other threads: a line of what is to be done, and one of what is done, with an eventfd as
 * its wake-up (A18). The jobs belong to those who brought them, all the time. */
#ifndef TASKMQ_STORE_HANDOVER_H
#define TASKMQ_STORE_HANDOVER_H

#include <stdbool.h>
#include <stddef.h>

typedef struct handover handover_t;

handover_t *handover_new (void); /* NULL: no descriptor is left */
/* Once no thread uses it any more. Accepts a NULL object. */
void handover_free (handover_t **self);

/* The asker. */
void handover_submit (handover_t *self, void *job);
size_t handover_waiting (handover_t *self);
void *handover_done (handover_t *self); /* NULL: none yet */
/* Readable (level-triggered) while something is done; for poll only. */
int handover_fd (const handover_t *self);
/* Nothing more is begun: handover_next gives NULL to every thread. */
void handover_stop (handover_t *self);

/* A thread that works. */
void *handover_next (handover_t *self); /* waits; NULL: it is to end */
void handover_finish (handover_t *self, void *job);

#endif
