/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* The entries of taskmq.db's indexes that ranges are walked by (store/ranges.h). */
#ifndef TASKMQ_STORE_ENTRIES_H
#define TASKMQ_STORE_ENTRIES_H

#include "store/ranges.h"
#include "store/sqlite/view.h"

/* Statements that the calls need; they stand first in the texts of the view. */
enum { ENTRIES_STATEMENTS = 15 };
extern const char *const ENTRIES_TEXTS[ENTRIES_STATEMENTS];

/* An object's address is the source of the calls. */
typedef struct entries {
    view_t *view;
    sqlite3_stmt *walk; /* the range that is being walked, … */
    range_kind_t kind;  /* … and its kind */
} entries_t;

extern const range_calls_t ENTRIES_CALLS;

/* The turns of the task of this number told what the filter asks for, if it asks. */
store_code_t entries_find_marks (view_t *view, const filter_t *filter, int64_t number, bool *has,
                                 store_error_t *error);

#endif
