/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* FTS5 over the texts, with their content, so that a document can be taken out and an excerpt be
 * made without the task. Beside it the sum of each document: most events of a task change nothing
 * that is found, and looking that up costs a hundredth of indexing it again. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/base/memory.h"
#include "store/checksum.h"
#include "store/sqlite/search_index.h"

enum {
    APPLICATION = 0x746d7173, /* "tmqs" */
    VERSION = 1,
    CHECKPOINT_PAGES = 2000
};

static const char SCHEMA[] =
    "CREATE TABLE place (only INTEGER PRIMARY KEY CHECK (only = 1), generation INTEGER NOT NULL,"
    " pos INTEGER NOT NULL, building INTEGER NOT NULL, built INTEGER NOT NULL) STRICT;"
    "CREATE TABLE space (id INTEGER PRIMARY KEY CHECK (id BETWEEN 1 AND 65535),"
    " name TEXT NOT NULL UNIQUE) STRICT;"
    "CREATE TABLE doc (key INTEGER PRIMARY KEY, sum INTEGER NOT NULL) STRICT;"
    /* Words as people see them: case and accents do not count. */
    "CREATE VIRTUAL TABLE found USING fts5 (a, b, c, d, e,"
    " tokenize = 'unicode61', prefix = '2 3');";

enum statement {
    BEGIN,
    COMMIT,
    SPACE_OF,
    SPACE_FREE,
    SPACE_ADD,
    SPACE_NAME,
    SPACES_DROP,
    SUM_OF,
    SUM_PUT,
    FOUND_PUT,
    FOUND_DROP,
    FIRST_OF,
    SUM_DROP,
    LAST_OF,
    WALK,
    PLACE_PUT,
    STATEMENTS
};

static const char *const TEXTS[STATEMENTS] = {
    [BEGIN] = "BEGIN IMMEDIATE",
    [COMMIT] = "COMMIT",
    [SPACE_OF] = SEARCH_SPACE_OF,
    /* The smallest number that no namespace has: they come and go. */
    [SPACE_FREE] = ("SELECT min (id) + 1 FROM (SELECT 0 AS id UNION ALL SELECT id FROM space) AS a"
                    " WHERE NOT EXISTS (SELECT 1 FROM space AS b WHERE b.id = a.id + 1)"),
    [SPACE_ADD] = "INSERT INTO space VALUES (?1, ?2)",
    [SPACE_NAME] = "SELECT name FROM space WHERE id = ?1",
    [SPACES_DROP] = ("DELETE FROM space WHERE NOT EXISTS (SELECT 1 FROM doc"
                     " WHERE key BETWEEN (id << 47) AND (id << 47) + ((1 << 47) - 1))"),
    [SUM_OF] = "SELECT sum FROM doc WHERE key = ?1",
    [SUM_PUT] = "INSERT OR REPLACE INTO doc VALUES (?1, ?2)",
    [FOUND_PUT] = "INSERT INTO found (rowid, a, b, c, d, e) VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
    [FOUND_DROP] = "DELETE FROM found WHERE rowid = ?1",
    [FIRST_OF] = "SELECT key FROM doc WHERE key BETWEEN ?1 AND ?2 LIMIT 1",
    [SUM_DROP] = "DELETE FROM doc WHERE key = ?1",
    [LAST_OF] = "SELECT max (key) FROM doc WHERE key BETWEEN ?1 AND ?2",
    [WALK] = "SELECT key FROM doc WHERE key > ?1 ORDER BY key",
    [PLACE_PUT] = "UPDATE place SET pos = ?1, building = ?2, built = ?3",
};

_Static_assert(SEARCH_NUMBER_BITS + SEARCH_TURN_BITS == 47, "SPACES_DROP has it as a number");

struct search_writer {
    sqlite3 *db;
    sqlite3_stmt *statements[STATEMENTS];
    char ns[TMQ_NAME_LENGTH_MAX + 1]; /* that was asked for last, … */
    int64_t space;                    /* … and its number; 0: not known */
};

/* Opening. */

static void remove_files (const char *directory)
{
    static const char *const names[] = {SEARCH_FILE, SEARCH_FILE "-wal", SEARCH_FILE "-shm"};
    for (size_t i = 0; i < sizeof (names) / sizeof (names[0]); i++) {
        size_t room = strlen (directory) + 1 + strlen (names[i]) + 1;
        char *path = memory_alloc (room);
        snprintf (path, room, "%s/%s", directory, names[i]);
        unlink (path);
        free (path);
    }
}

static store_code_t make (sqlite3 *db, uint64_t generation, uint64_t last_pos, store_error_t *error)
{
    char text[256];
    snprintf (text, sizeof (text),
              "INSERT INTO place VALUES (1, %lld, %lld, 1, 0);"
              "PRAGMA application_id = %d; PRAGMA user_version = %d",
              (long long) generation, (long long) last_pos, APPLICATION, VERSION);
    store_code_t code = sql_run (db, "BEGIN IMMEDIATE", error);
    if (code == STORE_OK)
        code = sql_run (db, SCHEMA, error);
    if (code == STORE_OK)
        code = sql_run (db, text, error);
    if (code == STORE_OK)
        code = sql_run (db, "COMMIT", error);
    if (code != STORE_OK)
        sql_rollback (db);
    return code;
}

/* Whose it is. *fits false: another history's, another version's, or ahead of this one. */
static store_code_t look (sqlite3 *db, uint64_t generation, uint64_t last_pos,
                          search_place_t *place, bool *fits, store_error_t *error)
{
    int64_t application = 0;
    int64_t version = 0;
    int64_t values[4] = {0};
    static const char *const texts[] = {"SELECT generation FROM place", "SELECT pos FROM place",
                                        "SELECT building FROM place", "SELECT built FROM place"};
    store_code_t code = sql_number (db, "PRAGMA application_id", &application, error);
    if (code == STORE_OK)
        code = sql_number (db, "PRAGMA user_version", &version, error);
    *fits = code == STORE_OK && application == APPLICATION && version == VERSION;
    for (size_t i = 0; *fits && code == STORE_OK && i < 4; i++)
        code = sql_number (db, texts[i], &values[i], error);
    *fits = *fits && (uint64_t) values[0] == generation && (uint64_t) values[1] <= last_pos;
    *place = (search_place_t){(uint64_t) values[1], values[2] != 0, values[3]};
    return code;
}

static store_code_t set_up (sqlite3 *db, store_error_t *error)
{
    char text[160];
    snprintf (text, sizeof (text),
              "PRAGMA synchronous = NORMAL; PRAGMA wal_autocheckpoint = %d;"
              "PRAGMA journal_size_limit = 16777216; PRAGMA cache_size = -8000;"
              "PRAGMA secure_delete = ON",
              CHECKPOINT_PAGES);
    store_code_t code = sql_pragma (db, "PRAGMA journal_mode = WAL", "wal", error);
    return code == STORE_OK ? sql_run (db, text, error) : code;
}

static store_code_t open_file (search_writer_t *self, const char *directory, store_error_t *error)
{
    store_code_t code = sql_open (&self->db, directory, SEARCH_FILE, true, error);
    return code == STORE_OK ? set_up (self->db, error) : code;
}

static store_code_t open_fitting (search_writer_t *self, const char *directory, uint64_t generation,
                                  uint64_t last_pos, search_place_t *place, store_error_t *error)
{
    bool fits = false;
    store_code_t code = open_file (self, directory, error);
    if (code == STORE_OK)
        code = look (self->db, generation, last_pos, place, &fits, error);
    if (code != STORE_OK || fits)
        return code;
    sql_close (&self->db);
    remove_files (directory);
    *place = (search_place_t){last_pos, true, 0};
    code = open_file (self, directory, error);
    return code == STORE_OK ? make (self->db, generation, last_pos, error) : code;
}

store_code_t search_writer_open (search_writer_t **out, const char *directory, uint64_t generation,
                                 uint64_t last_pos, bool anew, search_place_t *place,
                                 store_error_t *error)
{
    search_writer_t *self = memory_zero (1, sizeof (*self));
    if (anew)
        remove_files (directory);
    store_code_t code = open_fitting (self, directory, generation, last_pos, place, error);
    if (code == STORE_OK)
        code = sql_prepare (self->db, self->statements, TEXTS, STATEMENTS, error);
    if (code == STORE_OK)
        *out = self;
    else
        search_writer_close (&self);
    return code;
}

void search_writer_close (search_writer_t **self_p)
{
    search_writer_t *self = *self_p;
    if (self == NULL)
        return;
    *self_p = NULL;
    sql_finalize (self->statements, STATEMENTS);
    if (self->db != NULL)
        sql_close (&self->db);
    free (self);
}

/* Statements. */

static store_code_t run (search_writer_t *self, enum statement which, store_error_t *error)
{
    return sql_do (self->statements[which], "cannot be written", error);
}

static sqlite3_stmt *with_key (search_writer_t *self, enum statement which, int64_t key)
{
    sqlite3_bind_int64 (self->statements[which], 1, key);
    return self->statements[which];
}

/* The first column of the first row; *found false: there is none, or it is NULL. */
static store_code_t ask (search_writer_t *self, enum statement which, int64_t *value, bool *found,
                         store_error_t *error)
{
    sqlite3_stmt *statement = self->statements[which];
    store_code_t code = STORE_OK;
    int rc = sqlite3_step (statement);
    *found = rc == SQLITE_ROW && sqlite3_column_type (statement, 0) != SQLITE_NULL;
    *value = *found ? sqlite3_column_int64 (statement, 0) : 0;
    if (rc != SQLITE_ROW && rc != SQLITE_DONE)
        code = sql_fail (self->db, "cannot be read", error);
    sqlite3_reset (statement);
    return code;
}

store_code_t search_writer_begin (search_writer_t *self, store_error_t *error)
{
    return run (self, BEGIN, error);
}

store_code_t search_writer_commit (search_writer_t *self, const search_place_t *place,
                                   store_error_t *error)
{
    sqlite3_stmt *statement = with_key (self, PLACE_PUT, (int64_t) place->pos);
    sqlite3_bind_int (statement, 2, place->building);
    sqlite3_bind_int64 (statement, 3, place->built);
    store_code_t code = run (self, PLACE_PUT, error);
    return code == STORE_OK ? run (self, COMMIT, error) : code;
}

void search_writer_rollback (search_writer_t *self)
{
    for (size_t i = 0; i < STATEMENTS; i++)
        sqlite3_reset (self->statements[i]);
    sql_rollback (self->db);
    self->space = 0;
}

/* Documents. */

/* The number of the namespace; make: it gets one. *space 0: it has none, or there are too many. */
static store_code_t space_of (search_writer_t *self, const char *ns, bool make_one, int64_t *space,
                              store_error_t *error)
{
    bool found = self->space != 0 && strcmp (self->ns, ns) == 0;
    *space = self->space;
    if (found)
        return STORE_OK;
    sqlite3_bind_text (self->statements[SPACE_OF], 1, ns, -1, SQLITE_TRANSIENT);
    store_code_t code = ask (self, SPACE_OF, space, &found, error);
    if (code == STORE_OK && !found && make_one) {
        code = ask (self, SPACE_FREE, space, &found, error);
        if (code == STORE_OK && *space > SEARCH_SPACES_MAX) {
            *space = 0;
        } else if (code == STORE_OK) {
            sqlite3_stmt *add = with_key (self, SPACE_ADD, *space);
            sqlite3_bind_text (add, 2, ns, -1, SQLITE_TRANSIENT);
            code = run (self, SPACE_ADD, error);
        }
    }
    if (code == STORE_OK && *space != 0) {
        snprintf (self->ns, sizeof (self->ns), "%s", ns);
        self->space = *space;
    }
    return code;
}

static uint64_t sum_of (const search_doc_t *doc)
{
    int64_t lengths[SEARCH_TEXTS];
    uint64_t sum = 0;
    for (size_t i = 0; i < SEARCH_TEXTS; i++) {
        lengths[i] = (int64_t) doc->texts[i].length;
        if (doc->texts[i].length > 0)
            sum = checksum_add (sum, doc->texts[i].bytes, doc->texts[i].length);
    }
    return checksum_add_numbers (sum, lengths, SEARCH_TEXTS);
}

static bool is_empty (const search_doc_t *doc)
{
    size_t bytes = 0;
    for (size_t i = 0; i < SEARCH_TEXTS; i++)
        bytes += doc->texts[i].length;
    return bytes == 0;
}

static store_code_t drop (search_writer_t *self, int64_t key, store_error_t *error)
{
    with_key (self, FOUND_DROP, key);
    store_code_t code = run (self, FOUND_DROP, error);
    with_key (self, SUM_DROP, key);
    return code == STORE_OK ? run (self, SUM_DROP, error) : code;
}

static store_code_t put (search_writer_t *self, const search_doc_t *doc, int64_t key, uint64_t sum,
                         store_error_t *error)
{
    sqlite3_stmt *statement = with_key (self, FOUND_PUT, key);
    for (size_t i = 0; i < SEARCH_TEXTS; i++)
        sqlite3_bind_text (statement, (int) i + 2, doc->texts[i].bytes, (int) doc->texts[i].length,
                           SQLITE_STATIC);
    store_code_t code = run (self, FOUND_PUT, error);
    sqlite3_clear_bindings (statement);
    statement = with_key (self, SUM_PUT, key);
    sqlite3_bind_int64 (statement, 2, (int64_t) sum);
    return code == STORE_OK ? run (self, SUM_PUT, error) : code;
}

store_code_t search_writer_put (search_writer_t *self, const search_doc_t *doc,
                                store_error_t *error)
{
    int64_t space;
    int64_t old;
    bool found;
    bool empty = is_empty (doc);
    if (doc->turn > SEARCH_TURNS_MAX || doc->number > SEARCH_NUMBER_MAX)
        return STORE_OK;
    store_code_t code = space_of (self, doc->ns, !empty, &space, error);
    if (code != STORE_OK || space == 0)
        return code;
    int64_t key = search_key (space, doc->number, doc->turn);
    uint64_t sum = sum_of (doc);
    with_key (self, SUM_OF, key);
    code = ask (self, SUM_OF, &old, &found, error);
    if (code != STORE_OK || (found && !empty && (uint64_t) old == sum))
        return code;
    if (found)
        code = drop (self, key, error);
    return code != STORE_OK || empty ? code : put (self, doc, key, sum, error);
}

store_code_t search_writer_last_turn (search_writer_t *self, const char *ns, int64_t number,
                                      uint32_t *turn, store_error_t *error)
{
    int64_t space;
    int64_t key;
    bool found;
    *turn = 0;
    store_code_t code = space_of (self, ns, false, &space, error);
    if (code != STORE_OK || space == 0)
        return code;
    sqlite3_stmt *statement = with_key (self, LAST_OF, search_key (space, number, 0));
    sqlite3_bind_int64 (statement, 2, search_key (space, number, SEARCH_TURNS_MAX));
    code = ask (self, LAST_OF, &key, &found, error);
    if (found)
        *turn = search_key_turn (key);
    return code;
}

store_code_t search_writer_drop (search_writer_t *self, const char *ns, int64_t number,
                                 store_error_t *error)
{
    int64_t space;
    bool found = true;
    store_code_t code = space_of (self, ns, false, &space, error);
    while (code == STORE_OK && space != 0 && found) {
        int64_t key;
        sqlite3_stmt *statement = with_key (self, FIRST_OF, search_key (space, number, 0));
        sqlite3_bind_int64 (statement, 2, search_key (space, number, SEARCH_TURNS_MAX));
        code = ask (self, FIRST_OF, &key, &found, error);
        if (code == STORE_OK && found)
            code = drop (self, key, error);
    }
    return code;
}

store_code_t search_writer_drop_spaces (search_writer_t *self, store_error_t *error)
{
    self->space = 0;
    return run (self, SPACES_DROP, error);
}

static store_code_t name_of (search_writer_t *self, int64_t space, search_walk_t *walk,
                             store_error_t *error)
{
    sqlite3_stmt *statement = with_key (self, SPACE_NAME, space);
    store_code_t code = STORE_OK;
    int rc = sqlite3_step (statement);
    if (rc == SQLITE_ROW)
        snprintf (walk->ns, sizeof (walk->ns), "%s", sql_column_text (statement, 0));
    else
        code = rc == SQLITE_DONE
                   ? store_fail (error, STORE_ERROR_CORRUPT, SEARCH_FILE ": a namespace is missing")
                   : sql_fail (self->db, "cannot be read", error);
    sqlite3_reset (statement);
    return code;
}

store_code_t search_writer_walk (search_writer_t *self, search_walk_t *walk, store_error_t *error)
{
    sqlite3_stmt *statement = with_key (self, WALK, walk->place);
    int64_t space = 0;
    int rc = SQLITE_DONE;
    walk->count = 0;
    while (walk->count < SEARCH_WALK_MAX && (rc = sqlite3_step (statement)) == SQLITE_ROW) {
        int64_t key = sqlite3_column_int64 (statement, 0);
        int64_t number = search_key_number (key);
        if (space != 0 && search_key_space (key) != space)
            break;
        space = search_key_space (key);
        walk->place = key;
        if (walk->count == 0 || walk->numbers[walk->count - 1] != number)
            walk->numbers[walk->count++] = number;
    }
    store_code_t code = rc == SQLITE_ROW || rc == SQLITE_DONE
                            ? STORE_OK
                            : sql_fail (self->db, "cannot be read", error);
    sqlite3_reset (statement);
    return code == STORE_OK && walk->count > 0 ? name_of (self, space, walk, error) : code;
}
