/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

#include "store/postgresql/pg_readers.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "core/base/memory.h"
#include "store/postgresql/pg_commit.h"
#include "store/postgresql/pg_readers_page.h"
#include "store/postgresql/pg_rows.h"
#include "timestamp.h"

enum {
    UNPACKED_MAX =
        1024 * 1024,   /* of a row: some KiB, a few hundred with all texts at their limits */
    SILENCE_MS = 5000, /* without an answer, beyond the time that a statement may take */
    PAUSE_MS = 20      /* before a page that the server gave up is done again */
};

struct pg_readers {
    pg_store_t *store;
    pthread_mutex_t lock; /* guards which desks are taken */
    pthread_cond_t given_back;
    pg_desk_t desks[PG_READERS_LINKS];
};

pg_readers_t *pg_readers_new (pg_store_t *store)
{
    pg_readers_t *self = memory_zero (1, sizeof (*self));
    self->store = store;
    pthread_mutex_init (&self->lock, NULL);
    pthread_cond_init (&self->given_back, NULL);
    for (size_t i = 0; i < PG_READERS_LINKS; i++) {
        pg_desk_t *desk = &self->desks[i];
        pg_link_init (&desk->link, &store->target, "reader", PG_READ_TEXTS, PG_READ_STATEMENTS);
        desk->link.wait_ms_max = SILENCE_MS;
        desk->arena = arena_new (UNPACKED_MAX);
        if (desk->arena == NULL)
            abort ();
    }
    return self;
}

void pg_readers_free (pg_readers_t **self_p)
{
    pg_readers_t *self = *self_p;
    *self_p = NULL;
    if (self == NULL)
        return;
    for (size_t i = 0; i < PG_READERS_LINKS; i++) {
        pg_desk_t *desk = &self->desks[i];
        pg_link_close (&desk->link);
        arena_free (desk->arena);
        for (size_t k = 0; k < PG_READERS_ARRAYS; k++)
            pg_array_free (&desk->arrays[k]);
    }
    pthread_cond_destroy (&self->given_back);
    pthread_mutex_destroy (&self->lock);
    free (self);
}

/* Desks. */

static pg_desk_t *find_free (pg_readers_t *self)
{
    for (size_t i = 0; i < PG_READERS_LINKS; i++)
        if (!self->desks[i].taken)
            return &self->desks[i];
    return NULL;
}

static pg_desk_t *desk_take (pg_readers_t *self)
{
    pg_desk_t *desk;
    pthread_mutex_lock (&self->lock);
    while ((desk = find_free (self)) == NULL)
        pthread_cond_wait (&self->given_back, &self->lock);
    desk->taken = true;
    pthread_mutex_unlock (&self->lock);
    return desk;
}

static void desk_give (pg_readers_t *self, pg_desk_t *desk)
{
    pthread_mutex_lock (&self->lock);
    desk->taken = false;
    pthread_cond_signal (&self->given_back);
    pthread_mutex_unlock (&self->lock);
}

static store_code_t set_timeout (pg_desk_t *desk, int32_t timeout_ms, store_error_t *error)
{
    char text[64];
    if (desk->timeout_ms == timeout_ms)
        return STORE_OK;
    snprintf (text, sizeof (text), "SET statement_timeout = %d", timeout_ms);
    store_code_t code = pg_link_do (&desk->link, text, error);
    desk->timeout_ms = code == STORE_OK ? timeout_ms : 0;
    desk->link.wait_ms_max = timeout_ms + SILENCE_MS;
    return code;
}

/* While the keeper finds nobody there, no reader tries for itself. */
static store_code_t desk_connect (pg_store_t *store, pg_desk_t *desk, store_error_t *error)
{
    if (pg_store_is_away (store))
        return pg_link_missing (&store->target, error);
    if (pg_link_is_open (&desk->link))
        return STORE_OK;
    desk->timeout_ms = 0;
    store_code_t code = pg_link_open (&desk->link, error);
    if (code == STORE_OK)
        code = pg_link_do (&desk->link, PG_READ_SESSION, error);
    if (code != STORE_OK)
        pg_link_close (&desk->link); /* a session without its settings reads something else */
    return code;
}

/* Pages. */

bool pg_page_is_over (const pg_page_t *self)
{
    return clock_us (CLOCK_MONOTONIC) >= self->end_us;
}

pg_params_t *pg_page_params (pg_page_t *self)
{
    pg_params_clear (&self->desk->params);
    return &self->desk->params;
}

pg_array_t *pg_page_array (pg_page_t *self, size_t which, pg_type_t type)
{
    pg_array_begin (&self->desk->arrays[which], type);
    return &self->desk->arrays[which];
}

store_code_t pg_page_run (pg_page_t *self, pg_read_statement_t statement, PGresult **out,
                          store_error_t *error)
{
    return pg_link_run (&self->desk->link, statement, &self->desk->params, out, error);
}

store_code_t pg_page_space (pg_page_t *self, const char *name, int32_t *ns, store_error_t *error)
{
    PGresult *result;
    *ns = 0;
    pg_param_text (pg_page_params (self), name);
    store_code_t code = pg_page_run (self, PG_SPACE, &result, error);
    if (code == STORE_OK && PQntuples (result) == 1)
        *ns = pg_int4 (result, 0, 0);
    PQclear (result);
    return code;
}

void pg_page_add_record (pg_page_t *self, record_t *record, bool bodies)
{
    read_t *read = self->read;
    read->records =
        memory_grow (read->records, &self->capacity, read->records_count, sizeof (record_t *));
    read->records[read->records_count++] = record;
    self->bytes += record_wire_bytes (record);
    if (bodies)
        self->bytes += buf_length (record->payload) + buf_length (record->result);
}

static pg_page_kind_t *const KINDS[] = {
    [READ_LIST] = pg_page_list,         [READ_COUNT] = pg_page_count,
    [READ_RESOLVE] = pg_page_resolve,   [READ_HISTORY] = pg_page_history,
    [READ_EVENTS] = pg_page_events,     [READ_EXPORT] = pg_page_export,
    [READ_SINCE] = pg_page_since,       [READ_ROWS] = pg_page_rows,
    [READ_STANDING] = pg_page_standing, [READ_ATTEMPTS] = pg_page_attempts,
    [READ_PICK] = pg_page_pick,         [READ_WHOLE] = pg_page_whole,
    [READ_BLOCKS] = pg_page_blocks,     [READ_LASTING] = pg_page_lasting,
};

static store_code_t walk_ranges (pg_page_t *self, const filter_t *filter, int64_t before_number,
                                 store_error_t *error)
{
    ranges_close (&self->ranges);
    pg_entries_clear (&self->entries);
    self->entries = (pg_entries_t){.page = self};
    store_code_t code = ranges_open (&self->ranges, &PG_ENTRIES_CALLS, &self->entries, filter,
                                     before_number, error);
    self->ranges.planted_bug = self->store->options.planted_bug;
    return code;
}

static store_code_t prepare_live (pg_page_t *self, store_error_t *error)
{
    static const tmq_status_t LIVE[] = {TMQ_STATUS_QUEUED, TMQ_STATUS_WORKING,
                                        TMQ_STATUS_INPUT_REQUIRED};
    self->live = (filter_t){.ns = self->read->filter.ns,
                            .scope = self->read->filter.scope,
                            .statuses = LIVE,
                            .statuses_count = sizeof (LIVE) / sizeof (LIVE[0])};
    store_code_t code = walk_ranges (self, &self->live, 0, error);
    self->ranges.lists = true;
    return code;
}

/* What the first page finds out before its work. */
static store_code_t prepare (pg_page_t *self, store_error_t *error)
{
    read_t *read = self->read;
    store_code_t code = STORE_OK;
    switch (read->kind) {
    case READ_EXPORT: export_place_begin (&self->reader->place, read->after_pos); return STORE_OK;
    case READ_ROWS:
    case READ_STANDING:
    case READ_ATTEMPTS:
    case READ_WHOLE:
    case READ_BLOCKS: return STORE_OK; /* what is asked for says whose it is */
    case READ_LIST:
    case READ_COUNT:
        code = walk_ranges (self, &read->filter, read->before_number, error);
        self->ranges.lists = read->kind == READ_LIST;
        self->ranges.vain_max = read->vain_max;
        self->ns = (int32_t) self->ranges.ns;
        return code;
    case READ_RESOLVE:
        code = prepare_live (self, error);
        self->ns = (int32_t) self->ranges.ns;
        return code;
    default: break;
    }
    code = pg_page_space (self, read->filter.ns, &self->ns, error);
    if (code != STORE_OK)
        return code;
    if (read->kind != READ_HISTORY) {
        self->done = self->ns == 0;
        return STORE_OK;
    }
    event_chain_start (&self->history, read);
    if (self->ns == 0)
        self->history.next_seq = 0;
    return STORE_OK;
}

/* A transaction sees one state from its first look on, and that is whose it is: what a successor
 * wrote is nothing of ours to tell. */
static store_code_t page_begin (const pg_page_t *self, store_error_t *error)
{
    char text[160];
    PGresult *owned;
    const pg_store_t *store = self->store;
    snprintf (text, sizeof (text),
              "BEGIN; SELECT 1 FROM fence WHERE shard = %d AND part = 'c' AND epoch = %" PRIu64,
              PG_SHARD, store->epoch);
    store_code_t code = pg_link_show (&self->desk->link, text, &owned, error);
    if (code == STORE_OK && PQntuples (owned) == 0)
        code = pg_commit_fenced (store, store->epoch, error);
    PQclear (owned);
    return code;
}

/* One transaction. */
static store_code_t page_do (pg_page_t *self, pg_page_kind_t *kind, int32_t timeout_ms,
                             store_error_t *error)
{
    pg_desk_t *desk = self->desk;
    store_code_t code = desk_connect (self->store, desk, error);
    if (code == STORE_OK)
        code = set_timeout (desk, timeout_ms, error);
    if (code == STORE_OK)
        code = page_begin (self, error);
    self->end_us = clock_us (CLOCK_MONOTONIC) + self->store->options.read_us_max;
    if (code == STORE_OK && !self->started)
        code = kind == pg_page_complete ? STORE_OK : prepare (self, error);
    if (code == STORE_OK)
        self->started = true;
    if (code == STORE_OK && !self->done)
        code = kind (self, error);
    pg_entries_end_page (&self->entries);
    PQclear (self->block);
    self->block = NULL;
    pg_link_rollback (&desk->link); /* it wrote nothing, and this cannot fail */
    return code;
}

/* How a page is tried. */
typedef struct tries {
    int32_t timeout_ms; /* of a statement */
    int64_t since_ms;   /* mono: the first one that the server gave up; 0: none */
} tries_t;

static bool are_over (const tries_t *self, const pg_store_t *store)
{
    bool ends = atomic_load (&store->base.hurries);
    int64_t most_ms = ends ? PG_READERS_TRIES_END_MS : PG_READERS_TRIES_MS;
    return clock_ms (CLOCK_MONOTONIC) - self->since_ms >= most_ms;
}

/* Of the next statement. */
static int32_t timeout_of (const tries_t *self, const pg_store_t *store)
{
    bool ends = atomic_load (&store->base.hurries);
    return ends && self->timeout_ms > PG_READERS_TRIES_END_MS ? PG_READERS_TRIES_END_MS
                                                              : self->timeout_ms;
}

static store_code_t page_run (pg_page_t *self, pg_page_kind_t *kind, tries_t *tries,
                              store_error_t *error)
{
    pg_readers_t *readers = self->store->readers;
    self->desk = desk_take (readers);
    int64_t begun_ms = clock_ms (CLOCK_MONOTONIC);
    store_code_t code = page_do (self, kind, timeout_of (tries, self->store), error);
    bool locked = code == STORE_ERROR_BUSY && self->desk->link.locked;
    desk_give (readers, self->desk);
    if (code == STORE_ERROR_AWAY)
        pg_store_lost (self->store, error);
    if (code != STORE_ERROR_BUSY)
        tries->since_ms = 0;
    else if (tries->since_ms == 0)
        tries->since_ms = begun_ms;
    if (code == STORE_ERROR_BUSY && (locked || are_over (tries, self->store)))
        code = error->code = STORE_ERROR_AWAY; /* for this read: the database is there */
    if (code == STORE_ERROR_BUSY) { /* nothing of the statement counts: once more, with patience */
        if (tries->timeout_ms < PG_READERS_TIMEOUT_MS_MAX)
            tries->timeout_ms *= 2;
        nanosleep (&(struct timespec){.tv_nsec = PAUSE_MS * 1000000}, NULL);
        return STORE_OK;
    }
    return code;
}

/* A read without an answer may be run again: what a page has put there goes. */
typedef struct questions {
    uint64_t count;
    tmq_id_t id;
} questions_t;

static store_code_t read_run (pg_page_t *self, pg_page_kind_t *kind, store_error_t *error)
{
    tries_t tries = {.timeout_ms = PG_READERS_TIMEOUT_MS};
    const questions_t questions = {self->read->count, self->read->id};
    store_code_t code = STORE_OK;
    while (code == STORE_OK && !self->done && !atomic_load (&self->read->cancelled))
        code = page_run (self, kind, &tries, error);
    if (self->read->kind == READ_HISTORY && self->started)
        event_chain_finish (&self->history, self->read);
    ranges_close (&self->ranges);
    pg_entries_clear (&self->entries);
    if (code != STORE_OK) {
        self->read->count = questions.count;
        self->read->id = questions.id;
        self->read->more = self->read->gap = false;
        self->read->next_number = 0;
    }
    if (code == STORE_ERROR_DAMAGED) {
        store_error_t damage = *error;
        (void) pg_store_go_on (self->store, code, &damage); /* it is told */
    }
    return code;
}

/* Readers. */

store_code_t pg_reader_open (store_reader_t **out, store_t *base, store_error_t *error)
{
    (void) error;
    pg_reader_t *self = memory_zero (1, sizeof (*self));
    self->base.store = base;
    *out = &self->base;
    return STORE_OK;
}

void pg_reader_close (store_reader_t *base)
{
    pg_reader_t *self = (pg_reader_t *) base;
    export_place_clear (&self->place);
    free (self);
}

store_code_t pg_reader_run (store_reader_t *base, read_t *read, store_error_t *error)
{
    pg_reader_t *self = (pg_reader_t *) base;
    pg_store_t *store = (pg_store_t *) base->store;
    pg_page_t page = {.store = store, .reader = self, .read = read};
    page.entries.page = &page;
    bool lacks;
    if (read->kind != READ_EXPORT || read->from_tables ||
        !behind_follow (store->behind, read, &lacks))
        return read_run (&page, KINDS[read->kind], error);
    export_place_clear (&self->place); /* it is not where the walk stands */
    return lacks ? read_run (&page, pg_page_complete, error) : STORE_OK;
}
