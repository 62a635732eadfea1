/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

#include "store/postgresql/pg_tables.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "core/base/memory.h"
#include "ids.h"
#include "store/journal/journal_codec.h"
#include "store/postgresql/pg_commit.h"
#include "store/postgresql/pg_forget.h"
#include "store/postgresql/pg_schema.h"
#include "store/postgresql/pg_sql.h"
#include "store/postgresql/pg_writer.h"

enum { AGAIN_MS = 200 /* between two tries while the database is out of reach, or gave up */ };

struct pg_tables {
    pg_store_t *store;
    pg_link_t link;
    pg_writer_t *writer;
    uint64_t epoch;
    pg_meta_t stored; /* as committed */
    pg_meta_t meta;   /* with the changes of the open transaction */
    order_t stored_order;
    order_t order;
    bool order_known;  /* its row is there */
    uint64_t removals; /* as committed … */
    uint64_t removing; /* … and of the newest transaction */
    pg_forget_t forget_rows;
    forget_t forget;
    forgotten_t forgotten;
};

/* What one transaction does. */
typedef struct work {
    store_code_t (*run) (pg_tables_t *self, void *context, store_error_t *error);
    /* Before the commit; may be NULL. */
    void (*before) (pg_tables_t *self, void *context);
    void *context;
    uint64_t batch; /* if `written` says so, it landed; 0: it may be done twice */
} work_t;

pg_tables_t *pg_tables_new (pg_store_t *store)
{
    pg_tables_t *self = memory_zero (1, sizeof (*self));
    self->store = store;
    pg_link_init (&self->link, &store->target, "write-back", PG_SQL_TEXTS, PG_SQL_STATEMENTS);
    self->link.ends = &store->ends;
    self->writer = pg_writer_new (&self->link);
    pg_forget_init (&self->forget_rows, &self->link);
    forget_init (&self->forget, &pg_forget_calls, &self->forget_rows);
    return self;
}

void pg_tables_free (pg_tables_t **self_p)
{
    pg_tables_t *self = *self_p;
    if (self == NULL)
        return;
    *self_p = NULL;
    pg_link_close (&self->link);
    pg_writer_free (&self->writer);
    pg_forget_destroy (&self->forget_rows);
    free (self);
}

const pg_meta_t *pg_tables_meta (const pg_tables_t *self)
{
    return &self->stored;
}

uint64_t pg_tables_removals (const pg_tables_t *self)
{
    return self->removals;
}

/* Transactions. */

static void put_shard (const pg_tables_t *self, pg_params_t *params)
{
    pg_params_clear (params);
    pg_param_int2 (params, PG_SHARD);
    pg_param_int8 (params, (int64_t) self->epoch);
}

static store_code_t fenced (const pg_tables_t *self, store_error_t *error)
{
    return pg_commit_fenced (self->store, self->epoch, error);
}

static store_code_t read_written (pg_tables_t *self, store_error_t *error)
{
    PGresult *row;
    pg_params_t params;
    put_shard (self, &params);
    params.count = 1;
    store_code_t code = pg_link_run (&self->link, PG_SQL_WRITTEN_READ, &params, &row, error);
    if (code == STORE_OK && PQntuples (row) == 1)
        self->stored = (pg_meta_t){
            .epoch = (uint64_t) pg_int8 (row, 0, 0),
            .batch = (uint64_t) pg_int8 (row, 0, 1),
            .last_number = pg_int8 (row, 0, 2),
            .last_pos = (uint64_t) pg_int8 (row, 0, 3),
            .newest_ms = pg_int8 (row, 0, 4),
            .tasks = (uint64_t) pg_int8 (row, 0, 5),
            .tombstones = (uint64_t) pg_int8 (row, 0, 6),
            .event_bytes = (uint64_t) pg_int8 (row, 0, 7),
        };
    else if (code == STORE_OK)
        code = store_fail (error, STORE_ERROR_CORRUPT, "%s: table %s.written is empty",
                           self->store->target.where, self->store->target.schema);
    PQclear (row);
    return code;
}

static bool is_before (const pg_meta_t *a, const pg_meta_t *b)
{
    return a->epoch < b->epoch || (a->epoch == b->epoch && a->batch < b->batch);
}

static store_code_t begin (pg_tables_t *self, store_error_t *error)
{
    PGresult *row = NULL;
    pg_params_t params;
    put_shard (self, &params);
    store_code_t code = pg_link_begin (&self->link, error);
    if (code == STORE_OK)
        code = pg_link_run (&self->link, PG_SQL_FENCE, &params, &row, error);
    if (code == STORE_OK && PQntuples (row) == 0)
        code = fenced (self, error);
    PQclear (row);
    return code;
}

/* Of an epoch before ours nothing was acknowledged here: its journal is read again. */
static store_code_t judge_lost (pg_tables_t *self, store_error_t *error)
{
    pg_there_t there;
    const pg_whole_t known = pg_whole_known (self->store);
    store_code_t code =
        pg_whole_look (&self->link, PG_SQL_NEWEST, self->epoch, &known, &there, error);
    if (code != STORE_OK)
        return code;
    return pg_commit_judge (&self->link, self->store, self->epoch, &known, &there, error);
}

/* On a new connection, and behind the lock of the fence: the session before may have been
 * committing just now. What was written once and is not now is in memory no more, so what is
 * written next would stand for it. */
static store_code_t look_behind (pg_tables_t *self, store_error_t *error)
{
    const pg_meta_t known = self->stored;
    store_code_t code = read_written (self, error);
    if (code != STORE_OK || !is_before (&self->stored, &known))
        return code;
    code = judge_lost (self, error);
    if (code != STORE_OK)
        self->stored = known; /* without a verdict it is judged again */
    return code;
}

static store_code_t write_order (pg_tables_t *self, store_error_t *error)
{
    const order_t *order = &self->order;
    const order_t *stored = &self->stored_order;
    if (self->order_known && order->first == stored->first && order->last == stored->last)
        return STORE_OK;
    return pg_writer_put_order (self->writer, order, error);
}

static store_code_t commit (pg_tables_t *self, store_error_t *error)
{
    store_code_t code = write_order (self, error);
    if (code == STORE_OK)
        code = pg_writer_put_meta (self->writer, &self->meta, error);
    return code == STORE_OK ? pg_link_commit (&self->link, error) : code;
}

static void committed (pg_tables_t *self)
{
    self->stored = self->meta;
    self->stored_order = self->order;
    self->order_known = true;
    self->removals += self->removing;
    self->removing = 0;
    pg_forget_committed (&self->forget_rows);
}

static void undo (pg_tables_t *self)
{
    pg_link_rollback (&self->link);
    pg_writer_forget_spaces (self->writer);
    forget_begin_anew (&self->forget);
    pg_forget_begin (&self->forget_rows);
}

/* It counts from now on, unless its server is over. */
static store_code_t acknowledge (pg_tables_t *self, store_error_t *error)
{
    const bool ours = self->meta.epoch == self->epoch;
    return pg_whole_add (self->store, &self->link, 0, ours ? self->meta.batch + 1 : 0, error);
}

static store_code_t try_once (pg_tables_t *self, const work_t *work, store_error_t *error)
{
    bool fresh = !pg_link_is_open (&self->link);
    store_code_t code = fresh ? pg_link_open (&self->link, error) : STORE_OK;
    if (code == STORE_OK)
        code = begin (self, error);
    if (code == STORE_OK && fresh)
        code = look_behind (self, error);
    if (code != STORE_OK) {
        if (fresh)
            pg_link_close (&self->link); /* so that it is looked behind again */
        return code;
    }
    const bool landed = fresh && work->batch != 0 && self->stored.epoch == self->epoch &&
                        self->stored.batch >= work->batch;
    if (fresh)
        pg_store_found (self->store, NULL);
    self->meta = self->stored;
    if (landed) {
        pg_link_rollback (&self->link); /* of a transaction that only looked */
        return acknowledge (self, error);
    }
    self->order = self->stored_order;
    self->removing = 0; /* not of one that landed and lost its answer */
    code = work->run (self, work->context, error);
    if (code == STORE_OK && work->before != NULL)
        work->before (self, work->context);
    if (code == STORE_OK)
        code = commit (self, error);
    return code == STORE_OK ? acknowledge (self, error) : code;
}

static void pause_ms (int64_t ms)
{
    nanosleep (&(struct timespec){ms / 1000, ms % 1000 * 1000000}, NULL);
}

/* Until it is known what became of it. */
static store_code_t run (pg_tables_t *self, const work_t *work, store_error_t *error)
{
    while (true) {
        store_code_t code = try_once (self, work, error);
        if (code == STORE_OK) {
            committed (self);
            return STORE_OK;
        }
        undo (self);
        if (code == STORE_ERROR_AWAY)
            pg_store_lost (self->store, error);
        if (code != STORE_ERROR_AWAY && code != STORE_ERROR_BUSY)
            return code;
        if (atomic_load (&self->store->impatient))
            return error->code = STORE_ERROR_AWAY; /* also what the server gave up */
        pause_ms (AGAIN_MS);
    }
}

static store_code_t delete_journal (pg_tables_t *self, uint64_t from_epoch, uint64_t from_batch,
                                    store_error_t *error)
{
    pg_params_t params;
    pg_params_clear (&params);
    pg_param_int2 (&params, PG_SHARD);
    pg_param_int8 (&params, (int64_t) from_epoch);
    pg_param_int8 (&params, (int64_t) from_batch);
    pg_param_int8 (&params, (int64_t) self->meta.epoch);
    pg_param_int8 (&params, (int64_t) self->meta.batch);
    return pg_link_run (&self->link, PG_SQL_JOURNAL_DELETE, &params, NULL, error);
}

/* Write-backs. */

static store_code_t write_dirty (pg_tables_t *self, void *context, store_error_t *error)
{
    const dirty_t *dirty = context;
    store_code_t code =
        pg_writer_write (self->writer, dirty, &self->meta, &self->order, &self->removing, error);
    self->meta.batch = dirty->batches[dirty->count - 1]->no;
    return code == STORE_OK ? delete_journal (self, self->epoch, self->stored.batch, error) : code;
}

store_code_t pg_tables_write (pg_tables_t *self, const dirty_t *dirty, store_error_t *error)
{
    const work_t work = {.run = write_dirty,
                         .context = (void *) dirty,
                         .batch = dirty->batches[dirty->count - 1]->no};
    return run (self, &work, error);
}

/* Recovery. */

typedef struct recovery {
    uint64_t epoch;
    uint64_t batches;
    uint64_t last; /* batch that was read last */
    dirty_t dirty;
} recovery_t;

static store_code_t read_order (pg_tables_t *self, store_error_t *error)
{
    PGresult *row;
    pg_params_t params;
    size_t length;
    pg_params_clear (&params);
    pg_param_int2 (&params, PG_SHARD);
    pg_param_int2 (&params, ROW_KIND_ORDER);
    pg_param_bytes (&params, ORDER_KEY, sizeof (ORDER_KEY));
    store_code_t code = pg_link_run (&self->link, PG_SQL_ROW_READ, &params, &row, error);
    if (code != STORE_OK)
        return code;
    self->order = (order_t){0};
    self->order_known = PQntuples (row) == 1;
    if (self->order_known) {
        const uint8_t *body = pg_bytes (row, 0, 0, &length);
        self->order_known = order_unpack (&self->order, body, length);
    }
    PQclear (row);
    code = pg_link_run (&self->link, PG_SQL_NEWEST_TASK, NULL, &row, error);
    if (code == STORE_OK && PQntuples (row) == 1 && pg_int8 (row, 0, 1) > self->order.high)
        self->order.high = pg_int8 (row, 0, 1);
    PQclear (row);
    return code;
}

static store_code_t flush_recovered (pg_tables_t *self, recovery_t *recovery, store_error_t *error)
{
    if (recovery->dirty.count == 0)
        return STORE_OK;
    dirty_sort (&recovery->dirty);
    store_code_t code = pg_writer_write (self->writer, &recovery->dirty, &self->meta, &self->order,
                                         &self->removing, error);
    dirty_free (&recovery->dirty);
    return code;
}

/* One row of the journal: a commit. Each batch says which one stood before it. */
static store_code_t take_commit (pg_tables_t *self, recovery_t *recovery, const PGresult *row,
                                 store_error_t *error)
{
    size_t length;
    size_t place = 0;
    uint64_t epoch = (uint64_t) pg_int8 (row, 0, 0);
    const uint8_t *body = pg_bytes (row, 0, 2, &length);
    while (true) {
        batch_t *batch;
        journal_head_t head;
        store_code_t code = pg_commit_unpack (body, length, &place, &head, &batch, error);
        if (code != STORE_OK || batch == NULL)
            return code;
        if (epoch != self->stored.epoch || head.epoch != epoch || head.previous != recovery->last) {
            store_fail (error, STORE_ERROR_CORRUPT,
                        "%s: the journal has batch %llu of epoch %llu behind %llu, where batch "
                        "%llu of epoch %llu is the newest in the tables: a commit is missing",
                        self->store->target.where, (unsigned long long) batch->no,
                        (unsigned long long) epoch, (unsigned long long) head.previous,
                        (unsigned long long) recovery->last,
                        (unsigned long long) self->stored.epoch);
            batch_free (batch);
            return error->code;
        }
        recovery->last = batch->no;
        recovery->batches++;
        dirty_add (&recovery->dirty, batch, 0);
    }
}

static store_code_t next_commit (pg_tables_t *self, recovery_t *recovery, PGresult **row,
                                 store_error_t *error)
{
    pg_params_t params;
    pg_params_clear (&params);
    pg_param_int2 (&params, PG_SHARD);
    pg_param_int8 (&params, (int64_t) self->stored.epoch);
    pg_param_int8 (&params, (int64_t) recovery->last);
    store_code_t code = pg_link_run (&self->link, PG_SQL_JOURNAL_READ, &params, row, error);
    if (code == STORE_OK && PQntuples (*row) == 0) {
        PQclear (*row);
        *row = NULL;
    }
    return code;
}

static store_code_t replay (pg_tables_t *self, void *context, store_error_t *error)
{
    recovery_t *recovery = context;
    PGresult *row = NULL;
    dirty_free (&recovery->dirty); /* of a try before this one */
    recovery->batches = 0;
    store_code_t code = read_written (self, error);
    self->meta = self->stored;
    recovery->last = self->stored.batch;
    if (code == STORE_OK)
        code = read_order (self, error);
    while (code == STORE_OK) {
        code = next_commit (self, recovery, &row, error);
        if (code != STORE_OK || row == NULL)
            break;
        code = take_commit (self, recovery, row, error);
        PQclear (row);
        bool much = dirty_tasks (&recovery->dirty) >= self->store->options.dirty_tasks_max ||
                    recovery->dirty.bytes >= STORE_COMMIT_BYTES_MAX;
        if (code == STORE_OK && much)
            code = flush_recovered (self, recovery, error);
    }
    if (code == STORE_OK)
        code = flush_recovered (self, recovery, error);
    self->meta.epoch = recovery->epoch;
    self->meta.batch = 0;
    return code == STORE_OK ? delete_journal (self, 0, 0, error) : code;
}

store_code_t pg_tables_recover (pg_tables_t *self, uint64_t epoch, uint64_t *batches,
                                store_error_t *error)
{
    recovery_t recovery = {.epoch = epoch};
    const work_t work = {.run = replay, .context = &recovery};
    self->epoch = epoch;
    store_code_t code = run (self, &work, error);
    *batches = recovery.batches;
    dirty_free (&recovery.dirty);
    return code;
}

store_code_t pg_tables_newest_id (pg_tables_t *self, int64_t *ms, store_error_t *error)
{
    PGresult *row;
    tmq_id_t id;
    *ms = 0;
    store_code_t code = pg_link_run (&self->link, PG_SQL_NEWEST_ID, NULL, &row, error);
    if (code == STORE_OK && PQntuples (row) == 1) {
        pg_fixed (row, 0, 0, id.bytes, sizeof (id.bytes));
        *ms = id_time_ms (&id);
    }
    PQclear (row);
    return code;
}

/* Forgetting. */

typedef struct slice {
    const forget_limits_t *limits;
    bool more;
    void (*forgets) (void *context, const forgotten_t *forgotten);
    void *context;
} slice_t;

static store_code_t raise_floor (pg_tables_t *self, store_error_t *error)
{
    PGresult *found;
    pg_params_t params;
    pg_params_clear (&params);
    pg_param_int2 (&params, PG_SHARD);
    pg_param_int2 (&params, ROW_KIND_FORGOTTEN);
    pg_param_bytes (&params, FORGET_FLOOR_KEY, sizeof (FORGET_FLOOR_KEY));
    store_code_t code = pg_link_run (&self->link, PG_SQL_ROW_READ, &params, &found, error);
    if (code != STORE_OK)
        return code;
    buf_t *body = PQntuples (found) == 1 ? pg_body (found, 0, 0) : NULL;
    self->forgotten.upto_seq = row_number (body);
    buf_drop (body);
    PQclear (found);
    row_t row = forget_raise_floor (&self->forgotten);
    code = pg_writer_put_row (self->writer, &row, error);
    row_drop (&row);
    return code;
}

static store_code_t run_slice (pg_tables_t *self, void *context, store_error_t *error)
{
    slice_t *work = context;
    pg_meta_t *meta = &self->meta;
    forget_totals_t totals = {meta->event_bytes, meta->tombstones};
    self->forgotten = (forgotten_t){0};
    pg_forget_begin (&self->forget_rows);
    store_code_t code = forget_slice (&self->forget, work->limits, &totals, &work->more, error);
    if (code == STORE_OK)
        code = pg_forget_flush (&self->forget_rows, error);
    meta->event_bytes = totals.event_bytes;
    meta->tombstones = totals.tombstones;
    if (code != STORE_OK || self->forget.spaces_count == 0)
        return code;
    self->forgotten =
        (forgotten_t){.list = self->forget.spaces, .count = self->forget.spaces_count};
    pg_writer_forget_spaces (self->writer);
    return raise_floor (self, error);
}

static void tell_forgets (pg_tables_t *self, void *context)
{
    const slice_t *work = context;
    if (self->forgotten.count > 0)
        work->forgets (work->context, &self->forgotten);
}

store_code_t pg_tables_forget (pg_tables_t *self, const forget_limits_t *limits,
                               void (*forgets) (void *context, const forgotten_t *forgotten),
                               void *context, const forgotten_t **out, bool *more,
                               store_error_t *error)
{
    slice_t slice = {.limits = limits, .forgets = forgets, .context = context};
    const work_t work = {.run = run_slice, .before = tell_forgets, .context = &slice};
    store_code_t code = run (self, &work, error);
    *out = &self->forgotten;
    *more = code == STORE_OK && slice.more;
    return code;
}
