/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

#include "store/sqlite/forget_rows.h"

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

static const char *const TEXTS[FORGET_ROWS_STATEMENTS] = {
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

store_code_t forget_rows_open (forget_rows_t *self, sqlite3 *db, store_error_t *error)
{
    *self = (forget_rows_t){.db = db};
    return sql_prepare (db, self->statements, TEXTS, FORGET_ROWS_STATEMENTS, error);
}

void forget_rows_close (forget_rows_t *self)
{
    sql_finalize (self->statements, FORGET_ROWS_STATEMENTS);
}

static store_code_t oldest_blocks (void *context, int64_t after_pos, forget_block_t *blocks,
                                   size_t *count, store_error_t *error)
{
    forget_rows_t *self = context;
    sqlite3_stmt *statement = self->statements[EVENTS_OLDEST];
    sqlite3_bind_int64 (statement, 1, after_pos);
    sqlite3_bind_int (statement, 2, FORGET_SLICE);
    int rc = sqlite3_step (statement);
    for (*count = 0; rc == SQLITE_ROW; rc = sqlite3_step (statement)) {
        int64_t key = sqlite3_column_int64 (statement, 0);
        blocks[(*count)++] = (forget_block_t){
            .ns = EVENT_SPACE (key),
            .first_seq = (uint64_t) (key - EVENT_KEY (EVENT_SPACE (key), 0)),
            .pos = sqlite3_column_int64 (statement, 1),
            .count = sqlite3_column_int64 (statement, 2),
            .at = sqlite3_column_int64 (statement, 3),
            .bytes = (uint64_t) sqlite3_column_int64 (statement, 4),
        };
    }
    sqlite3_reset (statement);
    return rc == SQLITE_DONE ? STORE_OK : sql_fail (self->db, "events cannot be read", error);
}

/* Whether the query finds a row. */
static store_code_t ask (forget_rows_t *self, int query, bool *found, store_error_t *error)
{
    int rc = sqlite3_step (self->statements[query]);
    *found = rc == SQLITE_ROW;
    if (rc == SQLITE_ROW || rc == SQLITE_DONE)
        return STORE_OK;
    return sql_fail (self->db, "what is old cannot be read", error);
}

static store_code_t look_later (void *context, forget_block_t *block, store_error_t *error)
{
    forget_rows_t *self = context;
    sqlite3_bind_int64 (self->statements[EVENTS_LATER], 1, EVENT_KEY (block->ns, block->first_seq));
    sqlite3_bind_int64 (self->statements[EVENTS_LATER], 2, EVENT_KEY (block->ns + 1, 0));
    store_code_t code = ask (self, EVENTS_LATER, &block->later, error);
    sqlite3_reset (self->statements[EVENTS_LATER]);
    return code;
}

static store_code_t is_needed (void *context, int64_t ns, bool *needed, store_error_t *error)
{
    forget_rows_t *self = context;
    sqlite3_bind_int64 (self->statements[SPACE_NEEDED], 1, ns);
    store_code_t code = ask (self, SPACE_NEEDED, needed, error);
    sqlite3_reset (self->statements[SPACE_NEEDED]);
    return code;
}

static store_code_t remove_block (void *context, const forget_block_t *block, store_error_t *error)
{
    forget_rows_t *self = context;
    sqlite3_bind_int64 (self->statements[EVENTS_DELETE], 1,
                        EVENT_KEY (block->ns, block->first_seq));
    return sql_do (self->statements[EVENTS_DELETE], "events cannot be removed", error);
}

static store_code_t remove_space (void *context, int64_t ns, char name[TMQ_NAME_LENGTH_MAX + 1],
                                  store_error_t *error)
{
    forget_rows_t *self = context;
    bool found;
    sqlite3_bind_int64 (self->statements[SPACE_NAME], 1, ns);
    store_code_t code = ask (self, SPACE_NAME, &found, error);
    if (code == STORE_OK && found)
        snprintf (name, TMQ_NAME_LENGTH_MAX + 1, "%s",
                  sql_column_text (self->statements[SPACE_NAME], 0));
    sqlite3_reset (self->statements[SPACE_NAME]);
    sqlite3_bind_int64 (self->statements[SPACE_NAMES_DELETE], 1, ns);
    sqlite3_bind_int64 (self->statements[SPACE_DELETE], 1, ns);
    if (code == STORE_OK)
        code = sql_do (self->statements[SPACE_NAMES_DELETE], "names cannot be removed", error);
    if (code == STORE_OK)
        code = sql_do (self->statements[SPACE_DELETE], "a namespace cannot be removed", error);
    return code;
}

static store_code_t oldest_tombstones (void *context, forget_tombstone_t *list, size_t *count,
                                       store_error_t *error)
{
    forget_rows_t *self = context;
    sqlite3_stmt *statement = self->statements[TOMBSTONES_OLDEST];
    sqlite3_bind_int (statement, 1, FORGET_SLICE);
    int rc = sqlite3_step (statement);
    for (*count = 0; rc == SQLITE_ROW; rc = sqlite3_step (statement))
        list[(*count)++] = (forget_tombstone_t){sqlite3_column_int64 (statement, 0),
                                                sqlite3_column_int64 (statement, 1)};
    sqlite3_reset (statement);
    return rc == SQLITE_DONE ? STORE_OK : sql_fail (self->db, "tombstones cannot be read", error);
}

static store_code_t remove_tombstones (void *context, int64_t upto_age, store_error_t *error)
{
    forget_rows_t *self = context;
    sqlite3_bind_int64 (self->statements[TOMBSTONES_DELETE], 1, upto_age);
    return sql_do (self->statements[TOMBSTONES_DELETE], "tombstones cannot be removed", error);
}

const forget_calls_t forget_rows_calls = {
    .blocks = oldest_blocks,
    .look_later = look_later,
    .is_needed = is_needed,
    .remove_block = remove_block,
    .remove_space = remove_space,
    .tombstones = oldest_tombstones,
    .remove_tombstones = remove_tombstones,
};
