/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Reads of events: what happened to a task, what a subscriber missed, what an export follows. */
#include <stdio.h>
#include <string.h>

#include "core/base/memory.h"
#include "store/postgresql/pg_readers_page.h"
#include "store/postgresql/pg_rows.h"

enum {
    BLOCKS_AT_ONCE = 64,
    ANY_SEQ_BITS = 62,
    STEPS_MAX = 4096 /* over events that need no look, without one at the clock */
};

/* Blocks. */

static uint64_t first_seq (const PGresult *block)
{
    return (uint64_t) pg_int8 (block, 0, PG_EVENT_FIRST_SEQ);
}

/* One after the last sequence of the block in a row. */
static uint64_t end_seq (const PGresult *block)
{
    return first_seq (block) + (uint64_t) pg_int4 (block, 0, PG_EVENT_COUNT);
}

/* The newest block of the namespace that begins at or before seq; *out NULL: there is none. */
static store_code_t block_upto (pg_page_t *self, uint64_t seq, bool list, PGresult **out,
                                store_error_t *error)
{
    pg_params_t *params = pg_page_params (self);
    pg_param_int4 (params, self->ns);
    pg_param_int8 (params, (int64_t) seq);
    store_code_t code = pg_page_run (self, list ? PG_EVENTS_BLOCK : PG_EVENTS_UPTO, out, error);
    if (code == STORE_OK && PQntuples (*out) == 0) {
        PQclear (*out);
        *out = NULL;
    }
    return code;
}

static void take_block (pg_page_t *self, const char *ns, const PGresult *result, int row)
{
    read_t *read = self->read;
    size_t bytes;
    const uint8_t *list = pg_bytes (result, row, PG_EVENT_LIST, &bytes);
    read->blocks =
        memory_grow (read->blocks, &self->capacity, read->blocks_count, sizeof (event_block_t));
    event_block_t *block = &read->blocks[read->blocks_count++];
    *block = (event_block_t){
        .ns = memory_text (ns),
        .first_seq = (uint64_t) pg_int8 (result, row, PG_EVENT_FIRST_SEQ),
        .first_pos = (uint64_t) pg_int8 (result, row, PG_EVENT_POS),
        .count = (uint32_t) pg_int4 (result, row, PG_EVENT_COUNT),
        .list = buf_new (list, bytes),
    };
    block->mixed = event_list_is_mixed (block->list);
    self->bytes += bytes;
}

/* HISTORY. */

static bool find_block (void *context, uint64_t seq, const uint8_t **list, size_t *list_bytes)
{
    pg_page_t *self = context;
    bool there =
        self->block != NULL && first_seq (self->block) <= seq && seq < end_seq (self->block);
    if (!there) {
        PQclear (self->block);
        self->block = NULL;
        self->failed = block_upto (self, seq, true, &self->block, self->error);
        self->failed_seq = seq;
        if (self->block == NULL || end_seq (self->block) <= seq)
            return false;
    }
    *list = pg_bytes (self->block, 0, PG_EVENT_LIST, list_bytes);
    return true;
}

static bool history_enough (void *context)
{
    return pg_page_is_over (context);
}

store_code_t pg_page_history (pg_page_t *self, store_error_t *error)
{
    event_source_t source = {find_block, history_enough, self};
    event_chain_t before = self->history;
    self->failed = STORE_OK;
    self->error = error;
    self->done = event_chain_follow (&self->history, &source);
    if (self->failed == STORE_OK)
        return STORE_OK;
    self->done = false; /* the chain does not end there: what it has stays, and it goes on */
    if (self->history.count == 0)
        self->history = before;
    else
        self->history.next_seq = self->failed_seq;
    return self->failed;
}

/* EVENTS. */

static store_code_t events_bounds (pg_page_t *self, store_error_t *error)
{
    PGresult *result;
    read_t *read = self->read;
    store_code_t code = block_upto (self, (UINT64_C (1) << ANY_SEQ_BITS), false, &result, error);
    if (code != STORE_OK || result == NULL)
        return code;
    read->last_seq_seen = end_seq (result) - 1;
    PQclear (result);
    pg_param_int4 (pg_page_params (self), self->ns);
    code = pg_page_run (self, PG_EVENTS_FIRST, &result, error);
    if (code == STORE_OK && PQntuples (result) == 1)
        read->first_seq = (uint64_t) pg_int8 (result, 0, 0);
    PQclear (result);
    return code;
}

/* One after the last sequence, or position, that the read has. */
static uint64_t end_of_blocks (const read_t *read, bool pos)
{
    const event_block_t *last = &read->blocks[read->blocks_count - 1];
    return (pos ? last->first_pos : last->first_seq) + last->count;
}

/* The block that has this sequence begins there; it may be one before it. */
static store_code_t begin_of (pg_page_t *self, uint64_t *seq, store_error_t *error)
{
    PGresult *result;
    store_code_t code = block_upto (self, *seq, false, &result, error);
    if (code == STORE_OK && result != NULL && end_seq (result) > *seq)
        *seq = first_seq (result);
    PQclear (result);
    return code;
}

/* Bytes that the page may still take; a limit may be larger than any number of the server. */
static int64_t room_of (const pg_page_t *self)
{
    size_t limit = self->read->limit;
    return (limit > INT64_MAX ? INT64_MAX : (int64_t) limit) - (int64_t) self->bytes;
}

/* One page, which the limit in bytes ends. */
store_code_t pg_page_events (pg_page_t *self, store_error_t *error)
{
    read_t *read = self->read;
    uint64_t from = read->after_seq + 1;
    store_code_t code = events_bounds (self, error);
    if (read->blocks_count > 0) /* the page is done again, from where it failed */
        from = end_of_blocks (read, false);
    else if (code == STORE_OK && from <= read->last_seq_seen)
        code = begin_of (self, &from, error);
    while (code == STORE_OK && from <= read->last_seq_seen && !read->more) {
        PGresult *result;
        bool none = read->blocks_count == 0;
        int64_t room = room_of (self);
        pg_params_t *params = pg_page_params (self);
        pg_param_int4 (params, self->ns);
        pg_param_int8 (params, (int64_t) from);
        pg_param_int8 (params, BLOCKS_AT_ONCE);
        pg_param_int8 (params, none && room < 1 ? 1 : room);
        code = pg_page_run (self, PG_EVENTS_FROM, &result, error);
        int rows = code == STORE_OK ? PQntuples (result) : 0;
        for (int row = 0; row < rows; row++)
            take_block (self, read->filter.ns, result, row);
        PQclear (result);
        if (code != STORE_OK || rows == 0)
            break;
        from = end_of_blocks (read, false);
        read->more =
            from <= read->last_seq_seen && (self->bytes >= read->limit || pg_page_is_over (self));
    }
    self->done = code == STORE_OK;
    return code;
}

/* Looks by halves for the first block that was committed at or after the time. */
store_code_t pg_page_since (pg_page_t *self, store_error_t *error)
{
    read_t *read = self->read;
    PGresult *block;
    uint64_t middle;
    store_code_t code = events_bounds (self, error);
    self->done = code == STORE_OK;
    if (code != STORE_OK || read->last_seq_seen == 0)
        return code;
    event_bisect_t bisect = {read->first_seq, read->last_seq_seen + 1};
    while (code == STORE_OK && event_bisect_middle (&bisect, &middle)) {
        code = block_upto (self, middle, false, &block, error);
        if (code == STORE_OK)
            event_bisect_judge (&bisect, middle, block != NULL,
                                block != NULL ? first_seq (block) : 0,
                                block != NULL ? end_seq (block) : 0,
                                block != NULL && pg_int8 (block, 0, PG_EVENT_AT) >= read->since_ms);
        PQclear (block);
    }
    if (code == STORE_OK)
        code = block_upto (self, bisect.low, true, &block, error);
    self->done = code == STORE_OK;
    if (code != STORE_OK)
        return code;
    read->seq = bisect.low - 1;
    if (block != NULL) {
        size_t bytes;
        const uint8_t *list = pg_bytes (block, 0, PG_EVENT_LIST, &bytes);
        uint64_t first = event_first_since (list, bytes, read->since_ms);
        read->seq = first != 0 ? first - 1 : end_seq (block) - 1;
    }
    PQclear (block);
    return STORE_OK;
}

/* Blocks by their positions. */

/* The newest block that begins at or before this position. */
static store_code_t block_at (pg_page_t *self, uint64_t pos, PGresult **out, store_error_t *error)
{
    pg_param_int8 (pg_page_params (self), (int64_t) pos);
    return pg_page_run (self, PG_POS_UPTO, out, error);
}

static store_code_t blocks_after (pg_page_t *self, uint64_t pos, int64_t count, int64_t bytes,
                                  PGresult **out, store_error_t *error)
{
    pg_params_t *params = pg_page_params (self);
    pg_param_int8 (params, (int64_t) pos);
    pg_param_int8 (params, count);
    pg_param_int8 (params, bytes < 1 ? 1 : bytes);
    return pg_page_run (self, PG_POS_AFTER, out, error);
}

static uint64_t end_pos (const PGresult *block, int row)
{
    return (uint64_t) pg_int8 (block, row, PG_EVENT_POS) +
           (uint64_t) pg_int4 (block, row, PG_EVENT_COUNT);
}

store_code_t pg_page_blocks (pg_page_t *self, store_error_t *error)
{
    read_t *read = self->read;
    PGresult *result;
    uint64_t next = read->after_pos + 1; /* the first position that is wanted */
    bool ended = false;
    store_code_t code = STORE_OK;
    if (read->blocks_count == 0) { /* else the page is done again, from where it failed */
        code = block_at (self, next, &result, error);
        if (code == STORE_OK && PQntuples (result) == 1 && end_pos (result, 0) > next)
            take_block (self, pg_text (result, 0, PG_EVENT_NAME), result, 0);
        PQclear (result);
    }
    if (read->blocks_count > 0)
        next = end_of_blocks (read, true);
    while (code == STORE_OK && !ended && !read->more) {
        bool enough =
            read->blocks_count > 0 && (self->bytes >= read->limit || pg_page_is_over (self));
        int64_t room = room_of (self);
        /* With enough, it is only asked whether something follows. */
        code = blocks_after (self, next - 1, enough ? 1 : BLOCKS_AT_ONCE, room, &result, error);
        int rows = code == STORE_OK ? PQntuples (result) : 0;
        ended = rows == 0;
        read->more = enough && rows > 0;
        for (int row = 0; row < rows && !enough; row++) {
            take_block (self, pg_text (result, row, PG_EVENT_NAME), result, row);
            next = end_pos (result, row);
        }
        PQclear (result);
    }
    self->done = code == STORE_OK;
    return code;
}

/* EXPORT. */

/* Enters the block of the place, or the first one behind it. *found false: there is none. */
static store_code_t enter_block (pg_page_t *self, bool *found, store_error_t *error)
{
    PGresult *result;
    export_place_t *place = &self->reader->place;
    store_code_t code = block_at (self, place->next_pos, &result, error);
    *found = code == STORE_OK && PQntuples (result) == 1 && end_pos (result, 0) > place->next_pos;
    if (code == STORE_OK && !*found) {
        PQclear (result);
        code = blocks_after (self, place->next_pos - 1, 1, 1, &result, error);
        *found = code == STORE_OK && PQntuples (result) == 1;
    }
    if (*found) {
        size_t bytes;
        const uint8_t *list = pg_bytes (result, 0, PG_EVENT_LIST, &bytes);
        export_place_enter (place, pg_int4 (result, 0, PG_EVENT_NS), first_seq (result),
                            (uint64_t) pg_int8 (result, 0, PG_EVENT_POS),
                            (uint64_t) pg_int4 (result, 0, PG_EVENT_COUNT), list, bytes);
        snprintf (self->reader->ns, sizeof (self->reader->ns), "%s",
                  pg_text (result, 0, PG_EVENT_NAME));
    }
    PQclear (result);
    return code;
}

/* Events whose tasks' rows are looked for together, in one block. */
typedef struct some {
    export_item_t items[PG_READERS_ROWS];
    tmq_id_t ids[PG_READERS_ROWS];
    pg_wanted_t found[PG_READERS_ROWS]; /* number 0: the task does not stand at it any more */
    size_t count;
    bool damaged; /* the block, behind them */
} some_t;

static void collect (export_place_t *place, some_t *some)
{
    *some = (some_t){0};
    for (size_t steps = 0;
         place->list != NULL && some->count < PG_READERS_ROWS && steps < STEPS_MAX; steps++) {
        packed_event_t event;
        export_item_t item = {0};
        export_step_t step = export_place_next (place, &event, &item.pos);
        some->damaged = step == EXPORT_DAMAGED;
        if (step != EXPORT_EVENT)
            continue;
        item.seq = event.seq;
        memcpy (some->ids[some->count].bytes, event.task_id, sizeof (tmq_id_t));
        some->items[some->count++] = item;
    }
}

static store_code_t find_newest (pg_page_t *self, some_t *some, store_error_t *error)
{
    PGresult *result;
    pg_params_t *params = pg_page_params (self);
    pg_array_t *ids = pg_page_array (self, 0, PG_UUID);
    pg_array_t *seqs = pg_page_array (self, 1, PG_INT8);
    for (size_t i = 0; i < some->count; i++) {
        pg_put_id (&ids->bytes, some->ids[i].bytes);
        pg_put_int8 (&seqs->bytes, (int64_t) some->items[i].seq);
    }
    ids->count = seqs->count = (int32_t) some->count;
    pg_param_int4 (params, (int32_t) self->reader->place.ns);
    pg_param_array (params, ids);
    pg_param_array (params, seqs);
    store_code_t code = pg_page_run (self, PG_EXPORT_NEWEST, &result, error);
    for (int row = 0; code == STORE_OK && row < PQntuples (result); row++)
        some->found[pg_int8 (result, row, 0) - 1] =
            (pg_wanted_t){pg_int8 (result, row, 1), self->reader->ns, pg_int8 (result, row, 2)};
    PQclear (result);
    return code;
}

static bool export_is_enough (const pg_page_t *self)
{
    const read_t *read = self->read;
    return read->items_count >= read->limit ||
           (read->bytes_max > 0 && self->bytes >= read->bytes_max);
}

static void add_item (pg_page_t *self, export_item_t item)
{
    read_t *read = self->read;
    read->items =
        memory_grow (read->items, &self->capacity, read->items_count, sizeof (export_item_t));
    read->items[read->items_count++] = item;
    self->bytes += record_wire_bytes (item.record) + buf_length (item.record->payload) +
                   buf_length (item.record->result);
}

/* Takes the events from *next on whose rows one statement may bring, until there is enough. */
static store_code_t export_take (pg_page_t *self, some_t *some, size_t *next, store_error_t *error)
{
    PGresult *result = NULL;
    pg_wanted_t list[PG_READERS_ROWS];
    int64_t seqs[PG_READERS_ROWS];
    size_t count = 0;
    for (size_t i = *next; i < some->count; i++)
        if (some->found[i].number != 0) {
            seqs[count] = (int64_t) some->items[i].seq;
            list[count++] = some->found[i];
        }
    size_t taken = pg_page_whole_count (list, count);
    store_code_t code =
        taken > 0 ? pg_page_whole_rows (self, list, seqs, taken, &result, error) : STORE_OK;
    size_t place = 0;
    for (int row = 0; code == STORE_OK && *next < some->count && !export_is_enough (self);
         ++*next) {
        export_item_t item = some->items[*next];
        if (some->found[*next].number == 0)
            continue;
        if (place == taken)
            break;
        if (row < PQntuples (result) &&
            pg_int8 (result, row, PG_WHOLE_PLACE) == (int64_t) place + 1)
            code =
                pg_page_read_row (self, result, row++, true, self->reader->ns, &item.record, error);
        if (code != STORE_OK)
            break;
        place++;
        if (item.record != NULL) /* else it is damaged, and the file keeps the line it has */
            add_item (self, item);
    }
    PQclear (result);
    return code;
}

/* The walk goes on at this position, in its block. */
static void step_back (export_place_t *place, uint64_t pos)
{
    bool gap = place->gap;
    export_place_clear (place);
    place->next_pos = pos;
    place->gap = gap;
}

static store_code_t export_some (pg_page_t *self, store_error_t *error)
{
    some_t some;
    size_t next = 0;
    export_place_t *place = &self->reader->place;
    uint64_t first_pos = place->first_pos;
    collect (place, &some);
    store_code_t code = some.count > 0 ? find_newest (self, &some, error) : STORE_OK;
    while (code == STORE_OK && next < some.count && !export_is_enough (self))
        code = export_take (self, &some, &next, error);
    if (next < some.count)
        step_back (place, some.items[next].pos);
    else if (code == STORE_OK && some.damaged)
        code =
            store_fail (error, STORE_ERROR_CORRUPT, "%s: the events at position %llu are damaged",
                        self->store->target.where, (unsigned long long) first_pos);
    return code;
}

store_code_t pg_page_export (pg_page_t *self, store_error_t *error)
{
    read_t *read = self->read;
    export_place_t *place = &self->reader->place;
    store_code_t code = STORE_OK;
    for (bool over = false; code == STORE_OK && !self->done && !over;) {
        if (place->list == NULL) {
            bool found = false;
            code = enter_block (self, &found, error);
            self->done = code == STORE_OK && !found;
        } else if (export_is_enough (self)) {
            self->done = read->more = true;
        } else {
            code = export_some (self, error);
        }
        over = pg_page_is_over (self);
    }
    read->upto_pos = place->next_pos - 1;
    read->gap = place->gap;
    return code;
}
