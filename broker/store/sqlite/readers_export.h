/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* The walk of READ_EXPORT over the event blocks of taskmq.db (store/export_place.h). It looks at
 * the clock only after it has moved on, so it ends however short its pages are. */
#ifndef TASKMQ_STORE_READERS_EXPORT_H
#define TASKMQ_STORE_READERS_EXPORT_H

#include "store/export_place.h"
#include "store/sqlite/view.h"

/* Statements that the walk needs in its view, side by side. */
enum { EXPORT_STATEMENTS = 4 };
extern const char *const EXPORT_TEXTS[EXPORT_STATEMENTS];

/* An all-zero export_walk_t stands nowhere. */
typedef struct export_walk {
    size_t statements; /* index of the first in the view */
    export_place_t place;
    size_t capacity; /* of the items of the present read */
    size_t bytes;    /* of their records */
} export_walk_t;

/* Forgets the place. */
void export_walk_clear (export_walk_t *self);
/* Begins a read behind this position; the place stays if it is the same. */
void export_walk_begin (export_walk_t *self, uint64_t after_pos);
/* One page, inside a transaction of the view. *done: the read has what it may have, or there is
 * nothing more. */
store_code_t export_walk_page (export_walk_t *self, view_t *view, read_t *read, bool *done,
                               store_error_t *error);
/* A page of READ_BLOCKS, inside a transaction of the view; damaged blocks are told of and left out.
 */
store_code_t export_blocks_page (const export_walk_t *self, view_t *view, read_t *read,
                                 store_error_t *error);
/* Fetches the bodies that items of the read lack, in transactions of its own; items that are no
 * longer their task's newest state leave: a newer one follows. */
store_code_t export_complete (const export_walk_t *self, view_t *view, read_t *read,
                              store_error_t *error);

#endif
