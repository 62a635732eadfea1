/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* The gate before the read transactions of taskmq.db (A18): the write-ahead log can be reset only
 * while nobody reads, so the store thread closes the gate for that moment. */
#ifndef TASKMQ_STORE_GATE_H
#define TASKMQ_STORE_GATE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

typedef struct gate {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    size_t readers;
    atomic_bool closed;
    unsigned forgets; /* changes while closed: what readers remember may be wrong behind it */
} gate_t;

void gate_init (gate_t *self);
void gate_destroy (gate_t *self);
/* Blocks while the gate is closed. Every read transaction stands between enter and leave. */
void gate_enter (gate_t *self);
void gate_leave (gate_t *self);
/* Somebody waits for the readers to leave: a long read ends its page now. */
bool gate_is_closed (gate_t *self);
/* Lets nobody in and waits until the last reader has left. Only one thread closes. */
void gate_close (gate_t *self);
void gate_open (gate_t *self);

#endif
