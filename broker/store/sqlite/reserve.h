/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* The reserve (A22): a file whose only use is the space that it gives back when a write finds none,
 * so that what was accepted can still be written. */
#ifndef TASKMQ_STORE_RESERVE_H
#define TASKMQ_STORE_RESERVE_H

#include <stdbool.h>
#include <stdint.h>

typedef struct reserve {
    char *path;
    char *directory;
    bool held;
} reserve_t;

void reserve_init (reserve_t *self, const char *directory);
void reserve_destroy (reserve_t *self); /* the file stays */
/* A start on a full disk: gives back what an earlier run held, so that there is room to recover. */
void reserve_begin (reserve_t *self);
/* Makes the file when it is missing and there is ample room; else does nothing. */
void reserve_take (reserve_t *self);
/* Gives its space back. */
void reserve_release (reserve_t *self);

#endif
