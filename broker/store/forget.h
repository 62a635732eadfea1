/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* What a store forgets by itself, whatever it stands on: old events, always as a prefix of their
 * namespace and never past the exporter (A52), and old tombstones. In slices, each in a transaction
 * of the backend's, which finds and removes by the calls below. */
#ifndef TASKMQ_STORE_FORGET_H
#define TASKMQ_STORE_FORGET_H

#include "core/data/lookup.h"
#include "store/error.h"

enum { FORGET_SLICE = 500 }; /* rows looked at in one transaction (S12) */

/* A block of events. */
typedef struct forget_block {
    int64_t ns; /* number of the namespace */
    uint64_t first_seq;
    int64_t pos;
    int64_t count;
    int64_t at;
    uint64_t bytes;
    bool later; /* its namespace has newer ones; only if the backend knows it at once */
} forget_block_t;

typedef struct forget_tombstone {
    int64_t age; /* rises with the removals */
    int64_t at;
} forget_tombstone_t;

typedef struct forget_calls {
    /* The oldest blocks behind a position, at most FORGET_SLICE of them. */
    store_code_t (*blocks) (void *context, int64_t after_pos, forget_block_t *blocks, size_t *count,
                            store_error_t *error);
    /* Fills block->later; NULL: `blocks` does. */
    store_code_t (*look_later) (void *context, forget_block_t *block, store_error_t *error);
    /* The namespace has tasks or tombstones. */
    store_code_t (*is_needed) (void *context, int64_t ns, bool *needed, store_error_t *error);
    store_code_t (*remove_block) (void *context, const forget_block_t *block, store_error_t *error);
    /* Removes the namespace with its names; its last block is removed apart. */
    store_code_t (*remove_space) (void *context, int64_t ns, char name[TMQ_NAME_LENGTH_MAX + 1],
                                  store_error_t *error);
    /* The oldest tombstones, at most FORGET_SLICE. */
    store_code_t (*tombstones) (void *context, forget_tombstone_t *list, size_t *count,
                                store_error_t *error);
    store_code_t (*remove_tombstones) (void *context, int64_t upto_age, store_error_t *error);
} forget_calls_t;

typedef struct forget {
    const forget_calls_t *calls;
    void *context;
    int64_t looked_pos;                     /* blocks up to it were looked at in this round */
    forgotten_space_t spaces[FORGET_SLICE]; /* forgotten in this slice */
    size_t spaces_count;
} forget_t;

typedef struct forget_limits {
    int64_t events_before_ms; /* events committed before it are old */
    uint64_t events_bytes_max;
    uint64_t exported_pos; /* events behind it are kept whatever their age */
    int64_t tombstones_before_ms;
    uint64_t tombstones_max;
} forget_limits_t;

/* How much there is; lowered by what a slice forgets. */
typedef struct forget_totals {
    uint64_t event_bytes;
    uint64_t tombstones;
} forget_totals_t;

void forget_init (forget_t *self, const forget_calls_t *calls, void *context);
/* To be called when the transaction of a slice was rolled back: what it looked at still stands. */
void forget_begin_anew (forget_t *self);
/* Forgets one slice; a namespace of which nothing is left but its newest, old events goes with
 * them. *more: another one would find something. */
store_code_t forget_slice (forget_t *self, const forget_limits_t *limits, forget_totals_t *totals,
                           bool *more, store_error_t *error);

/* The one row that tells where new namespaces begin: of ROW_KIND_FORGOTTEN, with this key. */
extern const char FORGET_FLOOR_KEY[4];
/* Raises upto_seq, which that row says (row_number), by the list, and makes the row anew. */
row_t forget_raise_floor (forgotten_t *forgotten);

#endif
