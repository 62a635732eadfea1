/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* The reads of read_t on taskmq.db, in pages. */
#ifndef TASKMQ_STORE_READERS_H
#define TASKMQ_STORE_READERS_H

#include "store/sqlite/view.h"

store_code_t readers_open (view_t *view, const char *directory, gate_t *gate, store_error_t *error);
store_code_t readers_run (view_t *view, read_t *read, store_error_t *error);
/* Fetches the bodies that items of a READ_EXPORT lack; items that are no longer their task's newest
 * state leave: a newer one follows. */
store_code_t readers_complete (view_t *view, read_t *read, store_error_t *error);

#endif
