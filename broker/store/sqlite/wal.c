/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

#include "store/sqlite/wal.h"

#include "timestamp.h"

enum {
    FRAME_HEADER_BYTES = 24,          /* before each page */
    WAL_BYTES_MAX = 16 * 1024 * 1024, /* A18 */
    HELD_TRY_MS = 1000,               /* between two tries while somebody else reads */
};

static int committed (void *context, sqlite3 *db, const char *name, int frames)
{
    (void) db;
    (void) name;
    wal_t *self = context;
    self->bytes = (uint64_t) frames * (self->page_bytes + FRAME_HEADER_BYTES);
    return SQLITE_OK;
}

store_code_t wal_watch (wal_t *self, sqlite3 *db, gate_t *gate, uint64_t bytes_max,
                        store_error_t *error)
{
    int64_t page_bytes = 0;
    store_code_t code = sql_number (db, "PRAGMA page_size", &page_bytes, error);
    if (code != STORE_OK)
        return code;
    *self = (wal_t){
        .db = db, .gate = gate, .page_bytes = (uint64_t) page_bytes, .bytes_max = bytes_max};
    sqlite3_wal_hook (db, committed, self);
    return STORE_OK;
}

/* Somebody else's process reads. All of ours is in the log, which is synced with each commit: it
 * waits there, and grows, until he has ended. */
static store_code_t hold (wal_t *self)
{
    atomic_store (&self->held, true);
    self->held_until_ms = clock_ms (CLOCK_MONOTONIC) + HELD_TRY_MS;
    return STORE_OK;
}

bool wal_is_held (const wal_t *self)
{
    return atomic_load (&self->held);
}

store_code_t wal_checkpoint_all (wal_t *self, store_error_t *error)
{
    store_code_t code = sql_checkpoint (self->db, SQLITE_CHECKPOINT_TRUNCATE, error);
    if (code == STORE_OK)
        self->bytes = 0;
    return code == STORE_ERROR_BUSY ? hold (self) : code;
}

store_code_t wal_checkpoint (wal_t *self, store_error_t *error)
{
    /* The copying is done while readers go on; the gate is closed for what they hold back and for
     * the reset alone. */
    store_code_t code = sql_checkpoint (self->db, SQLITE_CHECKPOINT_PASSIVE, error);
    if (code != STORE_OK)
        return code;
    /* A log that was held gives its space back. */
    int mode = wal_is_held (self) ? SQLITE_CHECKPOINT_TRUNCATE : SQLITE_CHECKPOINT_RESTART;
    gate_close (self->gate);
    code = sql_checkpoint (self->db, mode, error);
    gate_open (self->gate);
    if (code == STORE_ERROR_BUSY)
        return hold (self);
    if (code == STORE_OK) {
        self->bytes = 0;
        atomic_store (&self->held, false);
    }
    return code;
}

store_code_t wal_checkpoint_if_large (wal_t *self, store_error_t *error)
{
    bool rests = wal_is_held (self) && clock_ms (CLOCK_MONOTONIC) < self->held_until_ms;
    return self->bytes < WAL_BYTES_MAX || rests ? STORE_OK : wal_checkpoint (self, error);
}

store_code_t wal_need (wal_t *self, store_error_t *error)
{
    if (!wal_is_held (self) || self->bytes < self->bytes_max)
        return STORE_OK;
    store_code_t code = wal_checkpoint_if_large (self, error);
    if (code != STORE_OK || !wal_is_held (self))
        return code;
    return store_fail (error, STORE_ERROR_FULL,
                       "%s-wal has its largest size, %d MiB: another process reads the tables and"
                       " holds it",
                       sqlite3_db_filename (self->db, "main"),
                       (int) (self->bytes_max / (1024 * 1024)));
}
