/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* A copy of another store becomes the data in an empty database. One transaction makes the tables
 * and fills them, so that no broker ever finds half of it, and a restore that was killed has left
 * nothing. Rows are written as every write-back writes them. */
#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

#include "store/postgresql/database.h"
#include "store/postgresql/pg_blobs.h"
#include "store/postgresql/pg_instance.h"
#include "store/postgresql/pg_schema.h"
#include "store/postgresql/pg_sql.h"
#include "store/postgresql/pg_writer.h"
#include "store/store.h"

enum { TASKS_AT_ONCE = 2000, BATCHES_AT_ONCE = 1000, BYTES_AT_ONCE = 8 * 1024 * 1024 };

/* Between two statements is the work of one slice, and of a slow disk. */
static const char PATIENT[] = "SET LOCAL idle_in_transaction_session_timeout = '10min'";

enum { GENERATION, STATEMENTS };
static const char *const TEXTS[STATEMENTS] = {[GENERATION] =
                                                  "SELECT generation FROM shard WHERE shard = 0"};

typedef struct filler {
    database_restore_t *restore;
    pg_link_t link;
    store_source_t *source;
    store_source_facts_t facts;
    pg_writer_t *writer;
    dirty_t dirty;
    pg_meta_t meta;
    order_t order;
    uint64_t removals;
} filler_t;

static store_code_t refuse (const pg_link_t *link, store_error_t *error)
{
    return store_fail (error, STORE_ERROR_FOREIGN,
                       "%s: schema %s is not empty: a restore needs one that is, or a name that is "
                       "free (database/schema). Nothing was changed",
                       link->target->where, link->target->schema);
}

/* Looking. */

static store_code_t has_generation (pg_link_t *link, uint64_t generation, bool *has,
                                    store_error_t *error)
{
    PGresult *result;
    store_code_t code = pg_link_use (link, TEXTS, STATEMENTS, error);
    if (code == STORE_OK)
        code = pg_link_run (link, GENERATION, NULL, &result, error);
    if (code != STORE_OK)
        return code;
    *has = PQntuples (result) == 1 && (uint64_t) pg_int8 (result, 0, 0) == generation;
    PQclear (result);
    return STORE_OK;
}

static store_code_t look (pg_link_t *link, uint64_t generation, bool *there, store_error_t *error)
{
    bool empty;
    store_code_t code = pg_schema_look (link, &empty, error);
    *there = false;
    if (code != STORE_OK || empty)
        return code;
    if (generation != 0)
        code = has_generation (link, generation, there, error);
    if (code == STORE_OK && *there)
        return STORE_OK;
    bool foreign = code == STORE_OK || code == STORE_ERROR_FOREIGN;
    return foreign ? refuse (link, error) : code; /* out of reach, and not known */
}

store_code_t database_restore_look (const database_options_t *options, uint64_t generation,
                                    bool *there, store_error_t *error)
{
    pg_target_t target;
    pg_link_t link;
    store_code_t code = pg_target_init (&target, options, error);
    *there = false;
    if (code == STORE_OK) {
        pg_link_init (&link, &target, "restore", TEXTS, STATEMENTS);
        code = pg_link_open (&link, error);
        if (code == STORE_ERROR_AWAY)
            code = pg_target_judge (&target, PG_REFUSALS_ALL, error); /* as at a first start */
        if (code == STORE_OK)
            code = pg_link_begin (&link, error);
        if (code == STORE_OK)
            code = look (&link, generation, there, error);
        pg_link_rollback (&link);
        pg_link_close (&link);
    }
    pg_target_destroy (&target);
    return code;
}

/* Filling. */

static store_code_t write_slice (filler_t *self, store_error_t *error)
{
    if (self->dirty.count == 0)
        return STORE_OK;
    dirty_sort (&self->dirty);
    store_code_t code = pg_writer_write (self->writer, &self->dirty, &self->meta, &self->order,
                                         &self->removals, error);
    dirty_free (&self->dirty);
    return code;
}

static store_code_t write_rows (filler_t *self, store_error_t *error)
{
    store_code_t code = STORE_OK;
    while (code == STORE_OK) {
        batch_t *batch;
        code = store_source_next (self->source, &batch, error);
        if (code != STORE_OK || batch == NULL)
            break;
        dirty_add (&self->dirty, batch, 0);
        if (dirty_tasks (&self->dirty) >= TASKS_AT_ONCE || self->dirty.bytes >= BYTES_AT_ONCE ||
            self->dirty.count >= BATCHES_AT_ONCE)
            code = write_slice (self, error);
    }
    return code == STORE_OK ? write_slice (self, error) : code;
}

/* What was counted, and what no row tells: numbers that were given and forgotten since. */
static store_code_t write_meta (filler_t *self, store_error_t *error)
{
    char text[256];
    const store_source_facts_t *facts = &self->facts;
    pg_meta_t *meta = &self->meta;
    meta->epoch = facts->epoch;
    meta->newest_ms = facts->newest_ms;
    if (meta->last_number < facts->last_number)
        meta->last_number = facts->last_number;
    if (meta->last_pos < facts->last_pos)
        meta->last_pos = facts->last_pos;
    store_code_t code = pg_writer_put_order (self->writer, &self->order, error);
    if (code == STORE_OK)
        code = pg_writer_put_meta (self->writer, meta, error);
    snprintf (text, sizeof (text),
              "UPDATE shard SET generation = %" PRIu64 ", epoch = %" PRIu64 " WHERE shard = %d;"
              "UPDATE fence SET epoch = %" PRIu64 " WHERE shard = %d",
              self->restore->generation, facts->epoch, (int) PG_SHARD, facts->epoch,
              (int) PG_SHARD);
    return code == STORE_OK ? pg_link_do (&self->link, text, error) : code;
}

static store_code_t write_blobs (filler_t *self, store_error_t *error)
{
    store_code_t code = STORE_OK;
    const database_restore_t *restore = self->restore;
    while (code == STORE_OK) {
        uint8_t hash[TMQ_BLOB_HASH_BYTES];
        uint64_t bytes;
        int fd = -1;
        code = restore->blob (restore->context, hash, &bytes, &fd, error);
        if (fd < 0)
            break;
        if (code == STORE_OK)
            code = pg_blobs_fill (&self->link, hash, bytes, fd, error);
        close (fd);
    }
    return code;
}

/* Blobs first: they are put while nobody's epoch is the newest. */
static store_code_t fill (filler_t *self, store_error_t *error)
{
    store_code_t code = write_blobs (self, error);
    if (code == STORE_OK)
        code = pg_link_use (&self->link, PG_SQL_TEXTS, PG_SQL_STATEMENTS, error);
    if (code == STORE_OK)
        code = write_rows (self, error);
    if (code == STORE_OK)
        code = write_meta (self, error);
    return code;
}

static store_code_t commit (filler_t *self, store_error_t *error)
{
    pg_instance_t instance;
    database_restore_t *restore = self->restore;
    store_code_t code = pg_instance_read (&instance, restore->home, error);
    if (code == STORE_OK)
        code = pg_instance_note_owned (restore->home, &self->link, error);
    if (code == STORE_OK)
        code = restore->ready (restore->context, error);
    if (code != STORE_OK)
        return code;
    code = pg_link_commit (&self->link, error);
    restore->unknown = code == STORE_ERROR_AWAY;
    restore->tasks = self->meta.tasks;
    return code;
}

static store_code_t run (filler_t *self, store_error_t *error)
{
    bool empty = false;
    store_code_t code = pg_link_open (&self->link, error);
    if (code == STORE_OK)
        code = pg_link_begin (&self->link, error);
    if (code == STORE_OK)
        code = pg_link_do (&self->link, PATIENT, error);
    if (code == STORE_OK)
        code = pg_schema_look (&self->link, &empty, error);
    if (code == STORE_OK && !empty)
        code = refuse (&self->link, error);
    if (code == STORE_OK)
        code = pg_schema_make (&self->link, error);
    if (code == STORE_OK)
        code = fill (self, error);
    return code == STORE_OK ? commit (self, error) : code;
}

store_code_t database_restore (const database_options_t *options, database_restore_t *restore,
                               store_error_t *error)
{
    pg_target_t target;
    filler_t self = {.restore = restore};
    restore->unknown = false;
    restore->tasks = 0;
    store_code_t code = pg_target_init (&target, options, error);
    pg_link_init (&self.link, &target, "restore", TEXTS, STATEMENTS);
    self.writer = pg_writer_new (&self.link);
    if (code == STORE_OK)
        code = store_source_open (&self.source, restore->directory, &self.facts, error);
    if (code == STORE_OK)
        code = run (&self, error);
    pg_link_rollback (&self.link);
    pg_link_close (&self.link);
    pg_writer_free (&self.writer);
    store_source_close (&self.source);
    dirty_free (&self.dirty);
    pg_target_destroy (&target);
    return code;
}
