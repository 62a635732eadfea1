/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Rows that are not what was written: counted, and told to the store's user. Any thread. */
#ifndef TASKMQ_STORE_DAMAGE_H
#define TASKMQ_STORE_DAMAGE_H

#include <stdatomic.h>

#include "store/store.h"

typedef struct damage {
    void (*found) (void *context, const store_error_t *error); /* or NULL */
    void *context;
    atomic_uint_fast64_t count; /* reads that met damage */
} damage_t;

/* Accepts NULL. */
void damage_tell (damage_t *self, const store_error_t *error);

#endif
