/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

#include "store/sqlite/readers_export.h"

#include <string.h>

#include "core/base/memory.h"

enum { BLOCK_UPTO, BLOCK_AFTER, ROW_NEWEST, ROW_STILL };

#define BLOCK_COLUMNS "SELECT " ROW_EVENTS_COLUMNS " FROM event "

const char *const EXPORT_TEXTS[EXPORT_STATEMENTS] = {
    [BLOCK_UPTO] = BLOCK_COLUMNS "WHERE pos <= ?1 ORDER BY pos DESC LIMIT 1",
    [BLOCK_AFTER] = BLOCK_COLUMNS "WHERE pos > ?1 ORDER BY pos",
    [ROW_NEWEST] = "SELECT " ROW_COLUMNS " FROM task"
                   " WHERE ns = ?1 AND id = ?2 AND last_event = ?3",
    [ROW_STILL] = "SELECT " ROW_COLUMNS " FROM task WHERE number = ?1 AND last_event = ?2",
};

enum { STEPS_BETWEEN_LOOKS = 4 }; /* at the clock: some steps read a row, some take nanoseconds */

static sqlite3_stmt *statement_of (const export_walk_t *self, view_t *view, size_t index)
{
    return view_statement (view, self->statements + index);
}

/* The place. */

void export_walk_clear (export_walk_t *self)
{
    export_place_clear (&self->place);
}

void export_walk_begin (export_walk_t *self, uint64_t after_pos)
{
    self->capacity = self->bytes = 0;
    export_place_begin (&self->place, after_pos);
}

static void enter_block (export_walk_t *self, sqlite3_stmt *row)
{
    int64_t key = sqlite3_column_int64 (row, ROW_EVENTS_KEY);
    int64_t ns = EVENT_SPACE (key);
    const void *list = sqlite3_column_blob (row, ROW_EVENTS_LIST);
    export_place_enter (&self->place, ns, (uint64_t) (key - EVENT_KEY (ns, 0)),
                        (uint64_t) sqlite3_column_int64 (row, ROW_EVENTS_POS),
                        (uint64_t) sqlite3_column_int64 (row, ROW_EVENTS_COUNT), list,
                        (size_t) sqlite3_column_bytes (row, ROW_EVENTS_LIST));
}

/* A damaged block is told of and passed over. */
static bool is_readable (view_t *view, sqlite3_stmt *row, store_error_t *error)
{
    if (row_check_events (row, error) == STORE_OK)
        return true;
    damage_tell (view->damage, error);
    return false;
}

/* Enters the block of next_pos, or the first one behind it. *found false: there is none. */
static store_code_t find_block (export_walk_t *self, view_t *view, bool *found,
                                store_error_t *error)
{
    sqlite3_stmt *statement = statement_of (self, view, BLOCK_UPTO);
    sqlite3_bind_int64 (statement, 1, (sqlite3_int64) self->place.next_pos);
    store_code_t code = view_step (view, statement, found, error);
    if (code == STORE_OK && *found)
        *found = (uint64_t) (sqlite3_column_int64 (statement, ROW_EVENTS_POS) +
                             sqlite3_column_int64 (statement, ROW_EVENTS_COUNT)) >
                     self->place.next_pos &&
                 is_readable (view, statement, error);
    if (code == STORE_OK && !*found) {
        statement = statement_of (self, view, BLOCK_AFTER);
        sqlite3_bind_int64 (statement, 1, (sqlite3_int64) self->place.next_pos);
        do
            code = view_step (view, statement, found, error);
        while (code == STORE_OK && *found && !is_readable (view, statement, error));
    }
    if (code == STORE_OK && *found)
        enter_block (self, statement);
    return code;
}

/* Walking. */

static store_code_t add_item (export_walk_t *self, view_t *view, read_t *read, export_item_t item,
                              sqlite3_stmt *row, store_error_t *error)
{
    store_code_t code = view_record (view, row, true, &item.record, error);
    if (code != STORE_OK)
        return view_go_on (view, code, error); /* the file keeps the line it has */
    read->items =
        memory_grow (read->items, &self->capacity, read->items_count, sizeof (export_item_t));
    read->items[read->items_count++] = item;
    self->bytes += record_wire_bytes (item.record) + buf_length (item.record->payload) +
                   buf_length (item.record->result);
    return STORE_OK;
}

/* The next event of the block, whose row is looked for if it may be its task's newest. */
static store_code_t next_event (export_walk_t *self, view_t *view, read_t *read,
                                store_error_t *error)
{
    packed_event_t event;
    export_item_t item = {0};
    export_step_t step = export_place_next (&self->place, &event, &item.pos);
    if (step == EXPORT_DAMAGED)
        return store_fail (
            error, STORE_ERROR_CORRUPT, "%s: the events at position %llu are damaged",
            sqlite3_db_filename (view->db, "main"), (unsigned long long) self->place.first_pos);
    if (step != EXPORT_EVENT)
        return STORE_OK;
    bool row;
    item.seq = event.seq;
    sqlite3_stmt *statement = statement_of (self, view, ROW_NEWEST);
    sqlite3_bind_int64 (statement, 1, self->place.ns);
    sqlite3_bind_blob (statement, 2, event.task_id, sizeof (tmq_id_t), SQLITE_STATIC);
    sqlite3_bind_int64 (statement, 3, (sqlite3_int64) event.seq);
    store_code_t code = view_step (view, statement, &row, error);
    if (code != STORE_OK || !row) /* a newer event follows, or the task was removed */
        return view_go_on (view, code, error);
    return add_item (self, view, read, item, statement, error);
}

static bool is_enough (const export_walk_t *self, const read_t *read)
{
    return read->items_count >= read->limit ||
           (read->bytes_max > 0 && self->bytes >= read->bytes_max);
}

store_code_t export_walk_page (export_walk_t *self, view_t *view, read_t *read, bool *done,
                               store_error_t *error)
{
    store_code_t code = STORE_OK;
    bool over = false;
    for (size_t steps = 1; code == STORE_OK && !*done && !over; steps++) {
        if (self->place.list == NULL) {
            bool found = false;
            code = find_block (self, view, &found, error);
            *done = !found;
        } else if (is_enough (self, read)) {
            *done = read->more = true;
        } else {
            code = next_event (self, view, read, error);
        }
        over = steps % STEPS_BETWEEN_LOOKS == 0 && view_is_over (view);
    }
    read->upto_pos = self->place.next_pos - 1;
    read->gap = self->place.gap;
    return code;
}

/* Blocks as they are. */

/* One whose namespace has a damaged name is told of and left out, too. */
static store_code_t take_block (view_t *view, read_t *read, size_t *capacity, sqlite3_stmt *row,
                                store_error_t *error)
{
    const char *ns;
    int64_t key = sqlite3_column_int64 (row, ROW_EVENTS_KEY);
    store_code_t code = names_text (&view->names, NAME_NAMESPACE, key >> 42, &ns, error);
    if (code != STORE_OK)
        return view_go_on (view, code, error);
    const void *list = sqlite3_column_blob (row, ROW_EVENTS_LIST);
    event_block_t block = {
        .ns = memory_text (ns),
        .first_seq = (uint64_t) (key - EVENT_KEY (key >> 42, 0)),
        .first_pos = (uint64_t) sqlite3_column_int64 (row, ROW_EVENTS_POS),
        .count = (uint32_t) sqlite3_column_int64 (row, ROW_EVENTS_COUNT),
        .list = buf_new (list, (size_t) sqlite3_column_bytes (row, ROW_EVENTS_LIST)),
    };
    read->blocks = memory_grow (read->blocks, capacity, read->blocks_count, sizeof (event_block_t));
    read->blocks[read->blocks_count++] = block;
    return STORE_OK;
}

/* The first block that has something behind after_pos: *pos is before it. */
static store_code_t before_first (const export_walk_t *self, view_t *view, uint64_t after_pos,
                                  int64_t *pos, store_error_t *error)
{
    bool row;
    sqlite3_stmt *statement = statement_of (self, view, BLOCK_UPTO);
    sqlite3_bind_int64 (statement, 1, (sqlite3_int64) after_pos + 1);
    store_code_t code = view_step (view, statement, &row, error);
    *pos = (int64_t) after_pos;
    if (code == STORE_OK && row) {
        int64_t first = sqlite3_column_int64 (statement, ROW_EVENTS_POS);
        int64_t end = first + sqlite3_column_int64 (statement, ROW_EVENTS_COUNT);
        *pos = end > (int64_t) after_pos + 1 ? first - 1 : (int64_t) after_pos;
    }
    sqlite3_reset (statement);
    return code;
}

store_code_t export_blocks_page (const export_walk_t *self, view_t *view, read_t *read,
                                 store_error_t *error)
{
    size_t capacity = 0;
    size_t bytes = 0;
    int64_t pos;
    bool row = true;
    store_code_t code = before_first (self, view, read->after_pos, &pos, error);
    sqlite3_stmt *statement = statement_of (self, view, BLOCK_AFTER);
    sqlite3_bind_int64 (statement, 1, pos);
    while (code == STORE_OK && row && !read->more) {
        code = view_step (view, statement, &row, error);
        if (code != STORE_OK || !row)
            break;
        bool enough = read->blocks_count > 0 && (bytes >= read->limit || view_is_over (view));
        if (enough)
            read->more = true;
        else if (is_readable (view, statement, error)) {
            code = take_block (view, read, &capacity, statement, error);
            bytes += (size_t) sqlite3_column_bytes (statement, ROW_EVENTS_LIST);
        }
    }
    sqlite3_reset (statement);
    if (code != STORE_ERROR_CORRUPT || read->blocks_count == 0)
        return code;
    read->more = true; /* the next page begins with what cannot be read */
    return view_go_on (view, code, error);
}

/* Bodies. */

static bool is_whole (const record_t *record)
{
    return (record->payload != NULL || record->payload_bytes == 0) &&
           (record->result != NULL || record->result_bytes == 0);
}

/* *still: the row stands at the same event, and the record has its bodies now. */
static store_code_t complete (const export_walk_t *self, view_t *view, record_t *record,
                              bool *still, store_error_t *error)
{
    sqlite3_stmt *statement = statement_of (self, view, ROW_STILL);
    sqlite3_bind_int64 (statement, 1, record->number);
    sqlite3_bind_int64 (statement, 2, (sqlite3_int64) record->last_seq);
    store_code_t code = view_step (view, statement, still, error);
    if (code != STORE_OK || !*still)
        return view_go_on (view, code, error);
    record_t *row;
    code = view_record (view, statement, true, &row, error);
    *still = code == STORE_OK;
    if (code != STORE_OK)
        return view_go_on (view, code, error);
    buf_drop (record->payload);
    buf_drop (record->result);
    record->payload = buf_keep (row->payload);
    record->result = buf_keep (row->result);
    record_free (row);
    return STORE_OK;
}

/* One transaction from item *next on; the items that stay are moved to *kept. */
static store_code_t complete_page (const export_walk_t *self, view_t *view, read_t *read,
                                   size_t *next, size_t *kept, store_error_t *error)
{
    bool began = false;
    bool over = false;
    store_code_t code = STORE_OK;
    while (code == STORE_OK && *next < read->items_count && !over) {
        bool stays = true;
        export_item_t item = read->items[*next];
        if (!is_whole (item.record)) {
            if (!began)
                code = view_begin (view, error);
            began = began || code == STORE_OK;
            if (code == STORE_OK)
                code = complete (self, view, item.record, &stays, error);
            over = view_is_over (view);
        }
        if (stays)
            read->items[(*kept)++] = item;
        (*next)++;
    }
    if (began)
        view_end (view);
    return code;
}

store_code_t export_complete (const export_walk_t *self, view_t *view, read_t *read,
                              store_error_t *error)
{
    size_t next = 0;
    size_t kept = 0;
    store_code_t code = STORE_OK;
    names_trim (&view->names);
    while (code == STORE_OK && next < read->items_count)
        code = complete_page (self, view, read, &next, &kept, error);
    read->items_count = kept;
    return code;
}
