/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* The bodies of a message's second frame, taken one after the other. */
#ifndef TASKMQ_CLIENT_BODIES_H
#define TASKMQ_CLIENT_BODIES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct core_bodies {
    const uint8_t *data;
    size_t bytes;
    size_t used;
} core_bodies_t;

/* NULL (and false in *good) when fewer bytes are left. */
const uint8_t *core_bodies_take (core_bodies_t *self, size_t bytes, bool *good);

#endif
