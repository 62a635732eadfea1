/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

#include "store/sqlite/retention.h"

#include <stdio.h>

#include "store/sqlite/rows.h"

enum {
    EVENTS_OLDEST,
    EVENTS_LATER,
    EVENTS_DELETE,
    TOMBSTONES_OLDEST,
    TOMBSTONES_DELETE,
    SPACE_NEEDED,
    SPACE_NAME,
    SPACE_NAMES_DELETE,
    SPACE_DELETE
};

static const char *const TEXTS[RETENTION_STATEMENTS] = {
    [EVENTS_OLDEST] = ("SELECT key, pos, count, at, length (list) FROM event"
                       " WHERE pos > ?1 ORDER BY pos LIMIT ?2"),
    [EVENTS_LATER] = "SELECT 1 FROM event WHERE key > ?1 AND key < ?2 LIMIT 1",
    [EVENTS_DELETE] = "DELETE FROM event WHERE key = ?1",
    /* Tombstones are numbered as they came, so the oldest have the smallest numbers. */
    [TOMBSTONES_OLDEST] = "SELECT age, at FROM tombstone ORDER BY age LIMIT ?1",
    [TOMBSTONES_DELETE] = "DELETE FROM tombstone WHERE age <= ?1",
    [SPACE_NEEDED] = ("SELECT 1 WHERE EXISTS (SELECT 1 FROM task WHERE ns = ?1)"
                      " OR EXISTS (SELECT 1 FROM tombstone WHERE ns = ?1)"),
    [SPACE_NAME] = "SELECT name FROM namespace WHERE id = ?1",
    [SPACE_NAMES_DELETE] = "DELETE FROM name WHERE ns = ?1",
    [SPACE_DELETE] = "DELETE FROM namespace WHERE id = ?1",
};

typedef struct block {
    int64_t key;
    int64_t pos;
    int64_t count;
    uint64_t last_pos;
    int64_t at;
    uint64_t bytes;
} block_t;

store_code_t retention_open (forgetter_t *self, sqlite3 *db, store_error_t *error)
{
    *self = (forgetter_t){.db = db};
    return sql_prepare (db, self->statements, TEXTS, RETENTION_STATEMENTS, error);
}

void retention_close (forgetter_t *self)
{
    sql_finalize (self->statements, RETENTION_STATEMENTS);
}

void retention_begin_anew (forgetter_t *self)
{
    self->looked_pos = 0;
}

static store_code_t read_oldest (forgetter_t *self, block_t blocks[RETENTION_SLICE], size_t *count,
                                 store_error_t *error)
{
    sqlite3_stmt *statement = self->statements[EVENTS_OLDEST];
    sqlite3_bind_int64 (statement, 1, self->looked_pos);
    sqlite3_bind_int (statement, 2, RETENTION_SLICE);
    int rc = sqlite3_step (statement);
    for (*count = 0; rc == SQLITE_ROW; rc = sqlite3_step (statement))
        blocks[(*count)++] = (block_t){
            .key = sqlite3_column_int64 (statement, 0),
            .pos = sqlite3_column_int64 (statement, 1),
            .count = sqlite3_column_int64 (statement, 2),
            .last_pos = (uint64_t) (sqlite3_column_int64 (statement, 1) +
                                    sqlite3_column_int64 (statement, 2) - 1),
            .at = sqlite3_column_int64 (statement, 3),
            .bytes = (uint64_t) sqlite3_column_int64 (statement, 4),
        };
    sqlite3_reset (statement);
    return rc == SQLITE_DONE ? STORE_OK : sql_fail (self->db, "events cannot be read", error);
}

static store_code_t delete_block (forgetter_t *self, const block_t *block,
                                  retention_totals_t *totals, store_error_t *error)
{
    sqlite3_bind_int64 (self->statements[EVENTS_DELETE], 1, block->key);
    store_code_t code = sql_do (self->statements[EVENTS_DELETE], "events cannot be removed", error);
    if (code == STORE_OK)
        totals->event_bytes -=
            block->bytes < totals->event_bytes ? block->bytes : totals->event_bytes;
    return code;
}

/* Whether the query finds a row. */
static store_code_t ask (forgetter_t *self, int query, bool *found, store_error_t *error)
{
    int rc = sqlite3_step (self->statements[query]);
    *found = rc == SQLITE_ROW;
    if (rc == SQLITE_ROW || rc == SQLITE_DONE)
        return STORE_OK;
    return sql_fail (self->db, "what is old cannot be read", error);
}

/* The newest block of a namespace tells its last sequence: it goes with the namespace alone. */
static store_code_t delete_space (forgetter_t *self, const block_t *block,
                                  retention_totals_t *totals, store_error_t *error)
{
    int64_t ns = EVENT_SPACE (block->key);
    bool found;
    sqlite3_bind_int64 (self->statements[SPACE_NEEDED], 1, ns);
    store_code_t code = ask (self, SPACE_NEEDED, &found, error);
    sqlite3_reset (self->statements[SPACE_NEEDED]);
    if (code != STORE_OK || found)
        return code;
    forgotten_space_t *space = &self->spaces[self->spaces_count];
    *space = (forgotten_space_t){
        .last_seq = (uint64_t) (block->key - EVENT_KEY (ns, 0) + block->count - 1)};
    sqlite3_bind_int64 (self->statements[SPACE_NAME], 1, ns);
    code = ask (self, SPACE_NAME, &found, error);
    if (code == STORE_OK && found)
        snprintf (space->name, sizeof (space->name), "%s",
                  sql_column_text (self->statements[SPACE_NAME], 0));
    sqlite3_reset (self->statements[SPACE_NAME]);
    if (code == STORE_OK)
        code = delete_block (self, block, totals, error);
    sqlite3_bind_int64 (self->statements[SPACE_NAMES_DELETE], 1, ns);
    sqlite3_bind_int64 (self->statements[SPACE_DELETE], 1, ns);
    if (code == STORE_OK)
        code = sql_do (self->statements[SPACE_NAMES_DELETE], "names cannot be removed", error);
    if (code == STORE_OK)
        code = sql_do (self->statements[SPACE_DELETE], "a namespace cannot be removed", error);
    self->spaces_count++;
    return code;
}

static store_code_t delete_old (forgetter_t *self, const block_t *block, retention_totals_t *totals,
                                store_error_t *error)
{
    bool later;
    sqlite3_bind_int64 (self->statements[EVENTS_LATER], 1, block->key);
    sqlite3_bind_int64 (self->statements[EVENTS_LATER], 2,
                        EVENT_KEY (EVENT_SPACE (block->key) + 1, 0));
    store_code_t code = ask (self, EVENTS_LATER, &later, error);
    sqlite3_reset (self->statements[EVENTS_LATER]);
    if (code != STORE_OK)
        return code;
    return later ? delete_block (self, block, totals, error)
                 : delete_space (self, block, totals, error);
}

static store_code_t forget_events (forgetter_t *self, const retention_limits_t *limits,
                                   retention_totals_t *totals, bool *more, store_error_t *error)
{
    block_t blocks[RETENTION_SLICE];
    size_t count;
    store_code_t code = read_oldest (self, blocks, &count, error);
    bool ended = count < RETENTION_SLICE;
    for (size_t i = 0; code == STORE_OK && i < count; i++) {
        bool due = blocks[i].at < limits->events_before_ms ||
                   totals->event_bytes > limits->events_bytes_max;
        if (!due || blocks[i].last_pos > limits->exported_pos) {
            ended = true;
            break;
        }
        code = delete_old (self, &blocks[i], totals, error);
        self->looked_pos = blocks[i].pos;
    }
    if (ended || code != STORE_OK)
        self->looked_pos = 0; /* the next round begins at the oldest again */
    *more = !ended;
    return code;
}

static store_code_t forget_tombstones (forgetter_t *self, const retention_limits_t *limits,
                                       retention_totals_t *totals, bool *more, store_error_t *error)
{
    sqlite3_stmt *statement = self->statements[TOMBSTONES_OLDEST];
    sqlite3_bind_int (statement, 1, RETENTION_SLICE);
    int64_t last_age = 0;
    uint64_t count = 0;
    int rc = sqlite3_step (statement);
    for (; rc == SQLITE_ROW; rc = sqlite3_step (statement)) {
        bool due = sqlite3_column_int64 (statement, 1) < limits->tombstones_before_ms ||
                   totals->tombstones - count > limits->tombstones_max;
        if (!due)
            break;
        last_age = sqlite3_column_int64 (statement, 0);
        count++;
    }
    sqlite3_reset (statement);
    *more = count == RETENTION_SLICE;
    if (rc != SQLITE_ROW && rc != SQLITE_DONE)
        return sql_fail (self->db, "tombstones cannot be read", error);
    if (count == 0)
        return STORE_OK;
    totals->tombstones -= count;
    sqlite3_bind_int64 (self->statements[TOMBSTONES_DELETE], 1, last_age);
    return sql_do (self->statements[TOMBSTONES_DELETE], "tombstones cannot be removed", error);
}

store_code_t retention_slice (forgetter_t *self, const retention_limits_t *limits,
                              retention_totals_t *totals, bool *more, store_error_t *error)
{
    self->spaces_count = 0;
    bool more_events = false;
    bool more_tombstones = false;
    store_code_t code = forget_events (self, limits, totals, &more_events, error);
    if (code == STORE_OK)
        code = forget_tombstones (self, limits, totals, &more_tombstones, error);
    *more = more_events || more_tombstones;
    return code;
}
