/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* A read on its way, from page to page: what the readers' files share.
 *
 * A page that fails may be done again, in another transaction: so each step changes what the read
 * has only when its statement has answered. */
#ifndef TASKMQ_STORE_PG_READERS_PAGE_H
#define TASKMQ_STORE_PG_READERS_PAGE_H

#include "store/export_place.h"
#include "store/postgresql/pg_readers_sql.h"
#include "store/postgresql/pg_rows.h"
#include "store/postgresql/pg_schema.h"
#include "store/postgresql/pg_store.h"
#include "store/ranges.h"

enum {
    PG_READERS_ROWS = 64,               /* taken by a statement, when each may be large */
    PG_READERS_SMALL_ROWS = 512,        /* … of small ones: numbers, ids */
    PG_READERS_BYTES = 4 * 1024 * 1024, /* of bodies taken by a statement, but for the first one */
    PG_READERS_ARRAYS = 6
};

/* One of the shared links, with what its thread needs beside it. */
typedef struct pg_desk {
    pg_link_t link;
    int32_t timeout_ms; /* as the session has it; 0: not set yet */
    bool taken;
    arena_t *arena; /* for the row being read */
    pg_params_t params;
    pg_array_t arrays[PG_READERS_ARRAYS];
} pg_desk_t;

/* A reader: it remembers where an export stands. */
typedef struct pg_reader {
    store_reader_t base;
    export_place_t place;
    char ns[TMQ_NAME_LENGTH_MAX + 1]; /* of the block that it stands in */
} pg_reader_t;

/* The entries that ranges ask for (pg_readers_ranges.c). */
typedef struct pg_name {
    name_kind_t kind;
    const char *text; /* lent */
} pg_name_t;
typedef struct pg_segment { /* entries of a range that were fetched and not walked yet */
    const PGresult *from;
    int next;
    int end;
    int64_t asked; /* so many were asked for */
    bool whole;    /* there are no more of them */
} pg_segment_t;
typedef struct pg_entries {
    struct pg_page *page;
    pg_name_t *names; /* a queue's or session's number is its place here, from 1 on */
    size_t names_count;
    size_t names_capacity;
    PGresult *queues;
    pg_segment_t *segments; /* by range */
    size_t segments_count;
    PGresult **results; /* that segments point to, of this page */
    size_t results_count;
    size_t results_capacity;
    int64_t low;            /* that segments were fetched down to */
    const ranges_t *ranges; /* that are walked now, … */
    size_t walked;          /* … and which of them */
    const PGresult *row;    /* the entry that was given last … */
    int row_at;             /* … stands there */
    size_t *asked;          /* ranges of the newest fetch */
    uint64_t *counts;       /* of a slice, by range; NULL: not counted */
    int64_t counts_low;     /* … the slice */
    int64_t counts_high;
} pg_entries_t;

typedef struct pg_page {
    pg_store_t *store;
    pg_reader_t *reader;
    pg_desk_t *desk;
    read_t *read;
    int64_t end_us;
    int32_t ns; /* 0: not stored, so there is nothing */
    bool started;
    bool done;
    size_t capacity; /* of the array that the read fills */
    size_t bytes;
    size_t judged;   /* STANDING, PICK: so many have their answer */
    size_t resolved; /* RESOLVE: live tasks that were looked at */
    int64_t number;  /* WHOLE, LASTING: the last one that was looked at */
    filter_t live;   /* RESOLVE */
    ranges_t ranges;
    pg_entries_t entries;
    int64_t numbers[PG_READERS_SMALL_ROWS]; /* LIST, RESOLVE: found, and not read yet */
    size_t numbers_count;
    event_chain_t history;
    PGresult *block;     /* HISTORY: the newest one of this page; the next is often in it */
    store_code_t failed; /* … which failed, with *error */
    uint64_t failed_seq; /* … looking for this one */
    store_error_t *error;
    size_t kept; /* what follows is completed: items up to here stay */
} pg_page_t;

extern const range_calls_t PG_ENTRIES_CALLS;
void pg_entries_end_page (pg_entries_t *self);
void pg_entries_clear (pg_entries_t *self);

/* The page lasted long enough. */
bool pg_page_is_over (const pg_page_t *self);
/* Forgets the parameters, and returns them to be filled in. */
pg_params_t *pg_page_params (pg_page_t *self);
pg_array_t *pg_page_array (pg_page_t *self, size_t which, pg_type_t type); /* an empty one */
store_code_t pg_page_run (pg_page_t *self, pg_read_statement_t statement, PGresult **out,
                          store_error_t *error);
/* The number of a namespace; 0: it is not stored. */
store_code_t pg_page_space (pg_page_t *self, const char *name, int32_t *ns, store_error_t *error);
/* Makes a record of a row that begins with PG_ROW_BARE or PG_ROW_WHOLE. *out NULL: it is damaged,
 * which is told. */
store_code_t pg_page_read_row (pg_page_t *self, const PGresult *result, int row, bool bodies,
                               const char *ns, record_t **out, store_error_t *error);

/* A task that is to be read with its bodies. */
typedef struct pg_wanted {
    int64_t number;
    const char *ns; /* lent */
    int64_t bytes;  /* of its bodies */
} pg_wanted_t;
enum { PG_WHOLE_PLACE = PG_ROW_WHOLE_END }; /* a column of pg_page_whole_rows */
/* So many of a list, from its beginning, may be read by one statement. */
size_t pg_page_whole_count (const pg_wanted_t *list, size_t count);
/* Rows over PG_ROW_WHOLE in the order of the list, each with its place in it, from 1 on; without
 * those that are not there, or stand at another event than the one given. last_events may be
 * NULL. */
store_code_t pg_page_whole_rows (pg_page_t *self, const pg_wanted_t *list,
                                 const int64_t *last_events, size_t count, PGresult **out,
                                 store_error_t *error);
/* Appends to the read's records, and counts its bytes. */
void pg_page_add_record (pg_page_t *self, record_t *record, bool bodies);

/* Kinds: each does one page. */
typedef store_code_t pg_page_kind_t (pg_page_t *self, store_error_t *error);
pg_page_kind_t pg_page_list, pg_page_count, pg_page_resolve, pg_page_standing, pg_page_attempts,
    pg_page_pick, pg_page_whole, pg_page_lasting, pg_page_rows;
pg_page_kind_t pg_page_history, pg_page_events, pg_page_since, pg_page_blocks, pg_page_export,
    pg_page_complete;

#endif
