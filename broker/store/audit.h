/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Reads all of a directory that no broker uses and says what is damaged; changes nothing. */
#ifndef TASKMQ_STORE_AUDIT_H
#define TASKMQ_STORE_AUDIT_H

#include <stdint.h>

#include "core/data/batch.h"
#include "core/data/row.h"
#include "store/error.h"

typedef struct store_audit {
    /* Told of each finding, in one sentence; borrowed. */
    void (*found) (void *context, const char *text);
    /* Told of each undamaged row of this kind: those of the tables, then, of the commits that wait,
     * the changes of them in their order. NULL: nobody is. */
    void (*row) (void *context, const row_t *row);
    row_kind_t row_kind;
    /* Told of each undamaged task, as `row` is of rows, and of each that a commit that waits
     * removes. NULL: nobody is. */
    void (*task) (void *context, const record_t *record);
    void (*removal) (void *context, const removal_t *removal);
    bool tasks_only; /* nothing else is read, for a second look */
    /* Told of the block that has the event at this position, of the tables or of a commit that
     * waits. NULL: nobody is. */
    void (*block) (void *context, const event_block_t *block);
    uint64_t pos;
    void *context;
    /* answers */
    uint64_t findings;
    uint64_t tasks; /* that were read */
    uint64_t blocks;
    uint64_t batches;
    uint64_t generation; /* of the history … */
    uint64_t last_pos;   /* … and its newest event, also of the commits that wait */
    int schema;          /* version of the tables */
    int upgraded; /* … to which a start brings them first, when they are of an earlier one; then
                     their tasks, and commits in journal.db, were not read. Else 0 */
} store_audit_t;

/* STORE_OK: all of it could be read, whatever was found. Otherwise a file could not be opened. */
store_code_t store_audit (store_audit_t *self, const char *directory, store_error_t *error);

#endif
