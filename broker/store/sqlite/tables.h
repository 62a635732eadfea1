/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* The writer of taskmq.db (A10, A17): the one connection that writes and checkpoints it. Used by
 * one thread, at first the opening one, then the store thread. */
#ifndef TASKMQ_STORE_TABLES_H
#define TASKMQ_STORE_TABLES_H

#include "store/dirty.h"
#include "store/sqlite/copy.h"
#include "store/sqlite/forget_rows.h"
#include "store/sqlite/gate.h"
#include "store/sqlite/order_row.h"
#include "store/sqlite/sql.h"

typedef struct tables tables_t;

/* The one row of table meta. */
typedef struct tables_meta {
    uint64_t generation;
    uint64_t epoch;
    uint64_t written_batch; /* of that epoch */
    int64_t last_number;
    uint64_t last_pos;
    int64_t newest_ms;
    uint64_t tasks;
    uint64_t tombstones;
    uint64_t event_bytes; /* of the packed events */
    bool clean;           /* closed with an empty journal */
    order_t order;        /* in a row of its own */
} tables_meta_t;

/* The gate is closed around the reset of the log; NULL is not allowed. */
store_code_t tables_open (tables_t **out, const store_options_t *options, gate_t *gate,
                          store_error_t *error);
/* Closes without writing. Accepts NULL. */
void tables_free (tables_t **self);
const tables_meta_t *tables_meta (const tables_t *self);
/* Removals written since it was opened; one whose transaction failed counts each time. */
uint64_t tables_removals (const tables_t *self);
/* The newest id, by the time that it begins with, of a task or a tombstone; zero for none. */
store_code_t tables_newest_id (tables_t *self, tmq_id_t *out, store_error_t *error);

/* One transaction: begin, any number of writes, commit. After a failure nothing of it is kept. */
store_code_t tables_begin (tables_t *self, store_error_t *error);
/* Writes the latest image of each dirty task and the latest rows (both are sorted), and the
 * batches' events, attempts and removals. */
store_code_t tables_write (tables_t *self, const dirty_t *dirty, store_error_t *error);
/* A new start: the next epoch, no batch written yet, not clean. */
void tables_start_epoch (tables_t *self);
/* They have all that was committed: nobody needs the journal. */
void tables_set_clean (tables_t *self, bool clean);
/* Forgets one slice of what is old, by forget_slice. */
store_code_t tables_forget (tables_t *self, const forget_limits_t *limits, bool *more,
                            store_error_t *error);
/* What the open transaction has forgotten of namespaces; the list is lent until the next one. If
 * there are any, it is committed behind the closed gate, and what readers remember is void. */
const forgotten_t *tables_forgotten (const tables_t *self);
/* Durable when it returns STORE_OK. STORE_ERROR_FENCED: another start took over. */
store_code_t tables_commit (tables_t *self, store_error_t *error);
void tables_rollback (tables_t *self);

/* Looks at the structure of the whole file. */
store_code_t tables_quick_check (tables_t *self, store_error_t *error);
/* In the open transaction: another generation, and as if closed with an empty journal. */
store_code_t tables_begin_history (tables_t *self, store_error_t *error);

/* Begins a copy (copy.h) of what is committed, and of what will be until it is done. */
store_code_t tables_copy (tables_t *self, copy_t *out, const char *path, store_error_t *error);

/* Brings the log into the file and empties it. While another process reads, the log stays, here and
 * below: that is no error, tables_are_held says so. */
store_code_t tables_checkpoint_all (tables_t *self, store_error_t *error);
/* When the log is past its size: checkpoints it and, behind the closed gate, resets it. */
store_code_t tables_checkpoint_if_large (tables_t *self, store_error_t *error);
/* Another process reads, or did a second ago. Any thread. */
bool tables_are_held (const tables_t *self);
/* Before what is written: STORE_ERROR_FULL while the log is held and has its largest size. */
store_code_t tables_need_log (tables_t *self, store_error_t *error);

/* Gives 1 MiB of free pages back to the file system, if more than a sixth of the file is free and
 * at least 1 MiB; *more: there may be more to give. The next rows fill what is left. To be called
 * when nothing else is to be done. */
store_code_t tables_shrink (tables_t *self, bool *more, store_error_t *error);

typedef struct tables_space {
    uint64_t file_bytes; /* as the file will be when the log is in it */
    uint64_t free_bytes; /* of them */
} tables_space_t;
store_code_t tables_space (tables_t *self, tables_space_t *out, store_error_t *error);
/* Gives 1 MiB of free pages back, or what there is of them. The file has no more than it needs once
 * free_bytes is 0 in the answer, which is how it stands behind the step. */
store_code_t tables_vacuum (tables_t *self, tables_space_t *out, store_error_t *error);

#endif
