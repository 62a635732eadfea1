/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* One thread for the work that requests ask for and the loop must not wait for: reading and writing
 * files. An errand is done by the runner of its kind, one after the other, in their order. One that
 * is long is done in turns: its runner sets `again`, and it waits behind the others. */
#ifndef TASKMQ_BROKER_ERRANDS_H
#define TASKMQ_BROKER_ERRANDS_H

#include <stdbool.h>
#include <stddef.h>

#include "core/data/errand.h"

typedef struct errands errands_t;

/* Fills in the answer. Called on the errands' thread alone. */
typedef void errand_run_t (void *context, errand_t *errand);

typedef struct errand_runner {
    uint32_t op; /* the member of Request.op that it answers */
    errand_run_t *run;
    void *context; /* borrowed */
} errand_runner_t;

/* Whether who asked may still do so: it may have lost the right while its errand waited. Called on
 * the errands' thread before each errand of a client; NULL: everybody may. */
typedef struct errand_judge {
    bool (*may) (void *context, const errand_t *errand);
    void *context; /* borrowed */
} errand_judge_t;

enum { ERRANDS_QUEUE_MAX = 128, ERRANDS_OVERLOAD_MS = 200 };

/* Copies the table. An errand of a kind that is not in it is answered UNSUPPORTED, one of somebody
 * who may not ask for it any more DENIED. NULL: no thread or no descriptor can be had. */
errands_t *errands_new (const errand_runner_t *runners, size_t count, errand_judge_t judge);
/* Waits for the one under way and forgets the others, which belong to those who brought them.
 * Accepts a NULL object. */
void errands_free (errands_t **self);

/* It comes back by errands_done; beyond ERRANDS_QUEUE_MAX with OVERLOADED. One thread submits. */
void errands_submit (errands_t *self, errand_t *errand);
errand_t *errands_done (errands_t *self); /* or NULL */
int errands_fd (const errands_t *self);   /* readable while something is done */

#endif
