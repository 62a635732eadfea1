/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* What taskmq.db forgets by itself: old events, always as a prefix of their namespace and never
 * past the exporter (A52), and old tombstones. In slices, each in a transaction of the writer. */
#ifndef TASKMQ_STORE_RETENTION_H
#define TASKMQ_STORE_RETENTION_H

#include "core/data/lookup.h"
#include "store/sqlite/sql.h"

enum {
    RETENTION_STATEMENTS = 9,
    RETENTION_SLICE = 500
}; /* rows looked at in one transaction (S12) */

typedef struct forgetter {
    sqlite3 *db;
    sqlite3_stmt *statements[RETENTION_STATEMENTS];
    int64_t looked_pos;                        /* blocks up to it were looked at in this round */
    forgotten_space_t spaces[RETENTION_SLICE]; /* forgotten in this slice */
    size_t spaces_count;
} forgetter_t;

typedef struct retention_limits {
    int64_t events_before_ms; /* events committed before it are old */
    uint64_t events_bytes_max;
    uint64_t exported_pos; /* events behind it are kept whatever their age */
    int64_t tombstones_before_ms;
    uint64_t tombstones_max;
} retention_limits_t;

/* How much there is; lowered by what a slice forgets. */
typedef struct retention_totals {
    uint64_t event_bytes;
    uint64_t tombstones;
} retention_totals_t;

/* To be called when the transaction of a slice was rolled back: what it looked at still stands. */
void retention_begin_anew (forgetter_t *self);
store_code_t retention_open (forgetter_t *self, sqlite3 *db, store_error_t *error);
void retention_close (forgetter_t *self); /* before the connection; accepts an all-zero object */
/* Forgets one slice; a namespace of which nothing is left but its newest, old events goes with
 * them. *more: another one would find something. */
store_code_t retention_slice (forgetter_t *self, const retention_limits_t *limits,
                              retention_totals_t *totals, bool *more, store_error_t *error);

#endif
