/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* The write-ahead log of taskmq.db (A18): how large it is, when it is brought into the file, and
 * that a reader of another process may hold it. Used by the writer's thread alone, but for
 * wal_is_held. */
#ifndef TASKMQ_STORE_WAL_H
#define TASKMQ_STORE_WAL_H

#include <stdatomic.h>

#include "store/sqlite/gate.h"
#include "store/sqlite/sql.h"

typedef struct wal {
    sqlite3 *db;
    gate_t *gate;
    uint64_t page_bytes; /* of a page of the file */
    uint64_t bytes;      /* behind the last commit; 0 after a reset */
    uint64_t bytes_max;  /* while it is held */
    atomic_bool held;
    int64_t held_until_ms; /* of the monotonic clock: then it is tried again */
} wal_t;

/* Watches the log of db from now on. db and the gate are lent until db is closed; self must not
 * move. bytes_max: store_options_t's log_bytes_max. Unwatched, self may be thrown away. */
store_code_t wal_watch (wal_t *self, sqlite3 *db, gate_t *gate, uint64_t bytes_max,
                        store_error_t *error);

/* Brings the log into the file and empties it. While another process reads, the log stays, here and
 * below: that is no error, wal_is_held says so. */
store_code_t wal_checkpoint_all (wal_t *self, store_error_t *error);
/* Checkpoints it and, behind the closed gate, resets it. */
store_code_t wal_checkpoint (wal_t *self, store_error_t *error);
/* The same, when the log is past its size, and at most once a second while it is held. */
store_code_t wal_checkpoint_if_large (wal_t *self, store_error_t *error);
/* Another process reads, or did a second ago. Any thread. */
bool wal_is_held (const wal_t *self);
/* Before what is written: STORE_ERROR_FULL while the log is held and has its largest size. */
store_code_t wal_need (wal_t *self, store_error_t *error);

#endif
