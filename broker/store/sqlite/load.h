/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Point reads from taskmq.db, the sweep's proposals, and the live tasks of a start. */
#ifndef TASKMQ_STORE_LOAD_H
#define TASKMQ_STORE_LOAD_H

#include "store/overlay.h"
#include "store/sqlite/view.h"

/* Tells whether a task has a change that is not written yet, so that its row says nothing. */
typedef struct load_dirty {
    bool (*has) (void *context, int64_t number);
    void *context;
} load_dirty_t;

store_code_t load_open (view_t *view, const char *directory, gate_t *gate, store_error_t *error);
enum { LOAD_KEYS_MAX = 500 }; /* in one transaction: 3 to 10 us each, larger with bodies */
/* As store_load, in transactions that end like every other (A18). */
store_code_t load_keys (view_t *view, lookup_t *keys, size_t count, store_error_t *error);
/* As store_due, without the tasks that are dirty. */
store_code_t load_due (view_t *view, const load_dirty_t *dirty, store_sweep_t *sweep,
                       store_error_t *error);
/* As store_live, with what is durable and not in the tables yet in overlay (NULL: nothing). It
 * reads in several transactions; no commit may happen meanwhile. */
store_code_t load_live (view_t *view, const overlay_t *overlay, const store_live_visitor_t *visitor,
                        store_error_t *error);

#endif
