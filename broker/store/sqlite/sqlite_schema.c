/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* The schema, as a new file has it. A change of it is a new number here and a step in
 * upgrade_steps.c that leads there from the one before, so both ways end in the same tables.
 *
 * A file that is not ours, newer than we know, or damaged is left exactly as it is. */
#include "store/sqlite/sqlite_schema.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum {
    APPLICATION_TABLES = 0x746d7164,  /* "tmqd" */
    APPLICATION_JOURNAL = 0x746d716a, /* "tmqj" */
    COPIES_LOOKED_AT = 100,           /* a version that is further away is no version */
    /* quick_check reads the whole file: up to this size it takes well under a second. Pages of
     * larger files are checked as they are read (cell_size_check). */
    QUICK_CHECK_BYTES_MAX = 64 * 1024 * 1024,
    /* integrity_check also compares each index with its table, which takes some times as long. */
    WHOLE_CHECK_BYTES_MAX = 16 * 1024 * 1024
};

typedef struct schema {
    const char *file;
    int application_id;
    int other_id;      /* the file's second mark, or 0 */
    const char *first; /* PRAGMA that must come before the first access */
    int oldest;        /* version that can be read */
    int newest;        /* … and that is made */
    const char *create;
} schema_t;

/* taskmq.db. Times are ms since the epoch, UTC; 0 or NULL is "not given". Names are numbers so
 * that the hot row and its indexes stay narrow. `sum` is the XXH3 of the row's other columns
 * (rows.h), of a task also of its labels; bodies, which are written once, have sums of their own.
 * The bound on a namespace's number keeps the key of its events (number << 42 | sequence)
 * positive. Bodies above the inline limit stand in table body. */
static const char TABLES_CREATE[] =
    "CREATE TABLE meta ("
    " only INTEGER PRIMARY KEY CHECK (only = 1),"
    " generation INTEGER NOT NULL, epoch INTEGER NOT NULL, written_batch INTEGER NOT NULL,"
    " last_number INTEGER NOT NULL, last_pos INTEGER NOT NULL, newest_ms INTEGER NOT NULL,"
    " tasks INTEGER NOT NULL, tombstones INTEGER NOT NULL, event_bytes INTEGER NOT NULL,"
    " clean INTEGER NOT NULL, sum INTEGER NOT NULL) STRICT;"

    "CREATE TABLE namespace ("
    " id INTEGER PRIMARY KEY AUTOINCREMENT CHECK (id < 2097152), name TEXT NOT NULL UNIQUE,"
    " sum INTEGER NOT NULL) STRICT;"

    "CREATE TABLE name (" /* kind: 1 owner, 2 queue, 3 session; a number is never given twice */
    " id INTEGER PRIMARY KEY AUTOINCREMENT, ns INTEGER NOT NULL REFERENCES namespace, kind INTEGER "
    "NOT NULL,"
    " name TEXT NOT NULL, sum INTEGER NOT NULL, UNIQUE (ns, kind, name)) STRICT;"

    "CREATE TABLE task ("
    " number INTEGER PRIMARY KEY, ns INTEGER NOT NULL, id BLOB NOT NULL, owner INTEGER NOT NULL,"
    " queue INTEGER NOT NULL, session INTEGER, status INTEGER NOT NULL,"
    " created_at INTEGER NOT NULL, expires_at INTEGER NOT NULL, leased INTEGER NOT NULL,"
    " last_event INTEGER NOT NULL, dedup_key TEXT, labels INTEGER NOT NULL,"
    " payload_bytes INTEGER NOT NULL, result_bytes INTEGER NOT NULL,"
    " rest BLOB NOT NULL," /* message Record of journal.proto, without what has columns */
    " sum INTEGER NOT NULL, parent BLOB,"
    " payload_sum INTEGER, result_sum INTEGER," /* of the bodies here */
    " payload BLOB, result BLOB) STRICT;"
    "CREATE UNIQUE INDEX task_id ON task (ns, id);"
    "CREATE INDEX task_queue ON task (queue, status);" /* ends with the rowid: number */
    "CREATE INDEX task_session ON task (session) WHERE session IS NOT NULL;"
    "CREATE INDEX task_parent ON task (ns, parent) WHERE parent IS NOT NULL;"
    "CREATE INDEX task_expiry ON task (expires_at)"
    " WHERE expires_at > 0 AND status >= 4 AND leased = 0;"
    /* What no time to live ends, and retention looks at; ends with the number. */
    "CREATE INDEX task_lasting ON task (ns) WHERE expires_at = 0 AND status >= 4 AND leased = 0;"
    "CREATE UNIQUE INDEX task_dedup ON task (ns, owner, dedup_key) WHERE dedup_key IS NOT NULL;"
    /* Cancelled tasks whose worker has not acknowledged yet: almost always empty. */
    "CREATE INDEX task_lingering ON task (leased) WHERE leased = 1 AND status >= 4;"

    "CREATE TABLE body (" /* kind: 1 payload, 2 result */
    " number INTEGER NOT NULL REFERENCES task ON DELETE CASCADE, kind INTEGER NOT NULL,"
    " sum INTEGER NOT NULL, bytes BLOB NOT NULL, PRIMARY KEY (number, kind)) STRICT;"

    "CREATE TABLE label ("
    " number INTEGER NOT NULL REFERENCES task ON DELETE CASCADE, position INTEGER NOT NULL,"
    " ns INTEGER NOT NULL, key TEXT NOT NULL, value TEXT NOT NULL, PRIMARY KEY (number, position))"
    " STRICT, WITHOUT ROWID;"
    "CREATE INDEX label_found ON label (ns, key, value, number);"

    "CREATE TABLE attempt ("
    " number INTEGER NOT NULL REFERENCES task ON DELETE CASCADE, attempt INTEGER NOT NULL,"
    " worker TEXT, started_at INTEGER NOT NULL, ended_at INTEGER NOT NULL, how INTEGER NOT NULL,"
    " error_code INTEGER NOT NULL, error_message TEXT, secret BLOB, request_id BLOB,"
    " sum INTEGER NOT NULL,"
    " PRIMARY KEY (number, attempt)) STRICT, WITHOUT ROWID;"

    "CREATE TABLE tombstone (" /* age orders the removals, so that the oldest can be forgotten */
    " age INTEGER PRIMARY KEY, ns INTEGER NOT NULL, id BLOB NOT NULL, number INTEGER NOT NULL,"
    " code INTEGER NOT NULL, at INTEGER NOT NULL, sum INTEGER NOT NULL, owner TEXT NOT NULL,"
    " queue TEXT NOT NULL, UNIQUE (ns, id)) STRICT;" /* as texts: its queue may be gone */

    "CREATE TABLE event (" /* key: namespace << 42 | first sequence; list: taskmq.EventList */
    " key INTEGER PRIMARY KEY, pos INTEGER NOT NULL, count INTEGER NOT NULL,"
    " at INTEGER NOT NULL, sum INTEGER NOT NULL, list BLOB NOT NULL) STRICT;"
    "CREATE UNIQUE INDEX event_pos ON event (pos);"

    "CREATE TABLE row (" /* kinds, keys and bodies: core/data/row.h */
    " kind INTEGER NOT NULL, key BLOB NOT NULL, sum INTEGER NOT NULL, body BLOB NOT NULL,"
    " expires_at INTEGER NOT NULL, PRIMARY KEY (kind, key)) STRICT, WITHOUT ROWID;"
    "CREATE INDEX row_expires ON row (expires_at) WHERE expires_at > 0;" /* ends with the key */

    /* Without a sum until the first start writes it: SQLite makes the generation. */
    "INSERT INTO meta VALUES (1, random () & 0x7fffffffffffffff | 1, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0)";

static const schema_t TABLES = {
    .file = SCHEMA_TABLES_FILE,
    .application_id = APPLICATION_TABLES,
    /* A write-back appends to a few pages of each tree: with pages of 4 KiB it costs a microsecond
     * more per task, for the log and the checkpoint write two headers and thrice the inner cells.
     * A file that was made with another size keeps it. */
    .first = "PRAGMA page_size = 16384; PRAGMA auto_vacuum = INCREMENTAL",
    .oldest = SCHEMA_TABLES_OLDEST,
    .newest = SCHEMA_TABLES_VERSION,
    .create = TABLES_CREATE,
};

/* journal.db. */

/* Which is read alone: one table, `journal (batch INTEGER PRIMARY KEY, body BLOB NOT NULL)`. */
static const schema_t JOURNAL = {
    .file = SCHEMA_JOURNAL_FILE,
    .application_id = APPLICATION_JOURNAL,
    .other_id = SCHEMA_JOURNAL_UNSYNCED,
    .oldest = SCHEMA_JOURNAL_OLDEST,
    .newest = SCHEMA_JOURNAL_VERSION,
};

/* Opening. */

/* How the data was before a newer version changed it, and what this version can read, if it is
 * still there: the copy from before the first step that is unknown here. */
static void name_copy (char *text, size_t size, const char *path, int known, int64_t version)
{
    const char *slash = strrchr (path, '/');
    int length = slash == NULL ? 0 : (int) (slash - path);
    for (int64_t step = known + 1; step <= version && step - known < COPIES_LOOKED_AT; step++) {
        char copy[PATH_MAX];
        snprintf (copy, sizeof (copy), "%.*s/" SCHEMA_COPY_FORMAT, length, path, (int) step);
        if (access (copy, F_OK) == 0) {
            snprintf (text, size, "; %.300s is how it was before that", copy);
            return;
        }
    }
    snprintf (text, size, "; no copy from before that is in %.*s/" SCHEMA_COPIES,
              length > 300 ? 300 : length, path);
}

static store_code_t refuse_newer (const char *path, const schema_t *schema, int64_t version,
                                  store_error_t *error)
{
    char copy[400] = "";
    if (schema == &TABLES)
        name_copy (copy, sizeof (copy), path, schema->newest, version);
    return store_fail (error, STORE_ERROR_NEWER,
                       "%s: was written by a newer version (schema %lld, known up to %d)%s", path,
                       (long long) version, schema->newest, copy);
}

/* Decides whose file this is before anything is written to it. */
static store_code_t schema_identify (sqlite3 *db, const schema_t *schema, int64_t *version,
                                     store_error_t *error)
{
    int64_t application_id = 0;
    int64_t objects = 0;
    const char *path = sqlite3_db_filename (db, "main");
    store_code_t code = sql_number (db, "PRAGMA application_id", &application_id, error);
    if (code == STORE_OK)
        code = sql_number (db, "PRAGMA user_version", version, error);
    if (code == STORE_OK)
        code = sql_number (db, "SELECT count (*) FROM sqlite_schema", &objects, error);
    if (code != STORE_OK)
        return code;
    bool empty = application_id == 0 && *version == 0 && objects == 0;
    if (!empty && application_id != schema->application_id &&
        (application_id == 0 || application_id != schema->other_id))
        return store_fail (error, STORE_ERROR_FOREIGN,
                           "%s: is a database of another application (id %#llx)", path,
                           (unsigned long long) application_id);
    if (*version > schema->newest)
        return refuse_newer (path, schema, *version, error);
    if (!empty && *version < 1)
        return store_fail (error, STORE_ERROR_CORRUPT, "%s: has no schema version", path);
    if (!empty && *version < schema->oldest)
        return store_fail (
            error, STORE_ERROR_FOREIGN,
            "%s: was written by a version in development (schema %lld, readable from "
            "%d on): move the directory away to begin anew",
            path, (long long) *version, schema->oldest);
    return STORE_OK;
}

static store_code_t schema_create (sqlite3 *db, const schema_t *schema, store_error_t *error)
{
    char identify[96];
    snprintf (identify, sizeof (identify), "PRAGMA application_id = %d; PRAGMA user_version = %d",
              schema->application_id, schema->newest);
    store_code_t code = sql_run (db, "BEGIN IMMEDIATE", error);
    if (code == STORE_OK)
        code = sql_run (db, schema->create, error);
    if (code == STORE_OK)
        code = sql_run (db, identify, error);
    if (code == STORE_OK)
        code = sql_run (db, "COMMIT", error);
    if (code != STORE_OK)
        sql_rollback (db);
    return code;
}

static store_code_t schema_check (sqlite3 *db, store_error_t *error)
{
    int64_t pages = 0;
    int64_t page_bytes = 0;
    store_code_t code = sql_number (db, "PRAGMA page_count", &pages, error);
    if (code == STORE_OK)
        code = sql_number (db, "PRAGMA page_size", &page_bytes, error);
    if (code != STORE_OK || pages > QUICK_CHECK_BYTES_MAX / (page_bytes > 0 ? page_bytes : 1))
        return code;
    store_error_t found = {STORE_OK, ""};
    bool small = pages <= WHOLE_CHECK_BYTES_MAX / page_bytes;
    code = sql_pragma (db, small ? "PRAGMA integrity_check (1)" : "PRAGMA quick_check (1)", "ok",
                       &found);
    if (code == STORE_OK)
        return STORE_OK;
    if (code == STORE_ERROR_IO && sqlite3_errcode (db) == SQLITE_OK)
        return store_fail (error, STORE_ERROR_CORRUPT, "%s", found.text); /* it found damage */
    *error = found;
    return code;
}

static store_code_t schema_set_synchronous (sqlite3 *db, store_error_t *error)
{
    store_code_t code = sql_run (db, "PRAGMA synchronous = FULL", error);
    return code == STORE_OK ? sql_pragma (db, "PRAGMA synchronous", "2", error) : code;
}

/* The settings of a writer, for a file whose version is known. */
static store_code_t schema_set_up (sqlite3 *db, int64_t version, store_error_t *error)
{
    store_code_t code = version > 0 ? schema_check (db, error) : STORE_OK;
    /* A damaged header: names would not be found, and everything would seem to be gone. */
    if (code == STORE_OK)
        code = sql_pragma (db, "PRAGMA encoding", "UTF-8", error);
    if (code == STORE_OK)
        code = sql_pragma (db, "PRAGMA journal_mode = WAL", "wal", error);
    return code == STORE_OK ? schema_set_synchronous (db, error) : code;
}

static store_code_t schema_open (sqlite3 **out, const schema_t *schema, const char *directory,
                                 int64_t *version, store_error_t *error)
{
    sqlite3 *db = NULL;
    store_code_t code = sql_open (&db, directory, schema->file, true, error);
    if (code != STORE_OK)
        return code;
    code = sql_run (db, schema->first, error);
    if (code == STORE_OK)
        code = schema_identify (db, schema, version, error);
    if (code == STORE_OK)
        code = schema_set_up (db, *version, error);
    if (code == STORE_OK)
        *out = db;
    else
        sql_close (&db);
    return code;
}

store_code_t schema_open_tables (sqlite3 **out, const store_options_t *options, bool *created,
                                 store_error_t *error)
{
    sqlite3 *db = NULL;
    int64_t version = 0;
    store_code_t code = schema_open (&db, &TABLES, options->directory, &version, error);
    if (code != STORE_OK)
        return code;
    *created = version == 0;
    if (*created)
        code = schema_create (db, &TABLES, error);
    else if (version != TABLES.newest)
        code = store_fail (error, STORE_ERROR_IO, "%s/%s: schema %lld was not upgraded",
                           options->directory, TABLES.file, (long long) version);
    if (code == STORE_OK)
        *out = db;
    else
        sql_close (&db);
    return code;
}

store_code_t schema_tables_version (const char *directory, int64_t *version, store_error_t *error)
{
    char path[PATH_MAX];
    sqlite3 *db = NULL;
    *version = 0;
    snprintf (path, sizeof (path), "%s/%s", directory, TABLES.file);
    if (access (path, F_OK) != 0)
        return STORE_OK;
    store_code_t code = sql_open (&db, directory, TABLES.file, true, error);
    if (code != STORE_OK)
        return code;
    sqlite3_db_config (db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, (int *) NULL);
    code = schema_identify (db, &TABLES, version, error);
    sql_close (&db);
    return code;
}

store_code_t schema_open_to_upgrade (sqlite3 **out, const char *directory, store_error_t *error)
{
    int64_t version = 0;
    return schema_open (out, &TABLES, directory, &version, error);
}

/* What closes it changes nothing either. */
static store_code_t schema_set_unchanged (sqlite3 *db, const schema_t *schema, int64_t *version,
                                          store_error_t *error)
{
    sqlite3_db_config (db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, (int *) NULL);
    /* Exclusive: the index of the log is kept in memory, without a file. */
    store_code_t code =
        sql_run (db, "PRAGMA locking_mode = EXCLUSIVE; PRAGMA query_only = ON", error);
    return code == STORE_OK ? schema_identify (db, schema, version, error) : code;
}

store_code_t schema_open_journal (sqlite3 **out, const char *directory, bool has_log,
                                  int64_t *version, store_error_t *error)
{
    sqlite3 *db = NULL;
    store_code_t code = has_log ? sql_open (&db, directory, JOURNAL.file, true, error)
                                : sql_open_still (&db, directory, JOURNAL.file, error);
    if (code != STORE_OK)
        return code;
    code = schema_set_unchanged (db, &JOURNAL, version, error);
    if (code == STORE_OK && *version > 0)
        code = schema_check (db, error);
    if (code == STORE_OK)
        *out = db;
    else
        sql_close (&db);
    return code;
}

store_code_t schema_open_unchanged (sqlite3 **out, const char *directory, bool tables,
                                    int64_t *version, store_error_t *error)
{
    const schema_t *schema = tables ? &TABLES : &JOURNAL;
    char path[PATH_MAX];
    sqlite3 *db = NULL;
    snprintf (path, sizeof (path), "%s/%s", directory, schema->file);
    if (access (path, F_OK) != 0)
        return store_fail (error, STORE_ERROR_CORRUPT, "%s: is missing", path);
    store_code_t code = sql_open (&db, directory, schema->file, true, error);
    if (code != STORE_OK)
        return code;
    code = schema_set_unchanged (db, schema, version, error);
    if (code == STORE_OK && *version == 0)
        code = store_fail (error, STORE_ERROR_CORRUPT, "%s: is empty", path);
    if (code == STORE_OK)
        *out = db;
    else
        sql_close (&db);
    return code;
}
