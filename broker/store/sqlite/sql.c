/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* One place for SQLite's settings and its errors. SQLITE_BUSY is never waited for: nobody else may
 * use these files, so it is an error that is told. */
#include "store/sqlite/sql.h"

#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "core/base/memory.h"

/* No space is no damage: what was tried is rolled back and may be tried again. A sync that finds
 * no space is final like every failed sync, because the next one may report success. */
static bool is_full (sqlite3 *db, int extended)
{
    if ((extended & 0xff) == SQLITE_FULL)
        return true;
    int system = sqlite3_system_errno (db);
    return extended == SQLITE_IOERR_WRITE && (system == ENOSPC || system == EDQUOT);
}

static store_code_t code_of (sqlite3 *db, int extended)
{
    if (is_full (db, extended))
        return STORE_ERROR_FULL;
    switch (extended & 0xff) {
    case SQLITE_CORRUPT: return STORE_ERROR_CORRUPT;
    case SQLITE_NOTADB: return STORE_ERROR_FOREIGN;
    case SQLITE_BUSY:
    case SQLITE_LOCKED: return STORE_ERROR_BUSY;
    case SQLITE_CANTOPEN:
    case SQLITE_PERM:
    case SQLITE_READONLY: return STORE_ERROR_ACCESS;
    default: return STORE_ERROR_IO;
    }
}

store_code_t sql_fail (sqlite3 *db, const char *doing, store_error_t *error)
{
    int extended = sqlite3_extended_errcode (db);
    store_code_t code = code_of (db, extended);
    const char *file = sqlite3_db_filename (db, "main");
    const char *reason = sqlite3_errmsg (db);
    int system = sqlite3_system_errno (db);
    if (code == STORE_ERROR_BUSY)
        reason = "another process uses it";
    else if (code == STORE_ERROR_FULL)
        reason = "no space is left";
    else if (code == STORE_ERROR_FOREIGN)
        reason = "it is not an SQLite database: another program's file, or damaged";
    bool say_system = system != 0 && (code == STORE_ERROR_ACCESS || code == STORE_ERROR_IO);
    return store_fail (error, code, "%s: %s: %s%s%s (SQLite %d)",
                       file == NULL || file[0] == '\0' ? "database" : file, doing, reason,
                       say_system ? ": " : "", say_system ? strerror (system) : "", extended);
}

static store_code_t sql_configure (sqlite3 *db, bool writer, store_error_t *error)
{
    sqlite3_extended_result_codes (db, 1);
    sqlite3_db_config (db, SQLITE_DBCONFIG_DEFENSIVE, 1, (int *) NULL);
    sqlite3_db_config (db, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, (int *) NULL);
    sqlite3_db_config (db, SQLITE_DBCONFIG_DQS_DDL, 0, (int *) NULL);
    sqlite3_db_config (db, SQLITE_DBCONFIG_DQS_DML, 0, (int *) NULL);
    sqlite3_db_config (db, SQLITE_DBCONFIG_ENABLE_FKEY, 1, (int *) NULL);
    store_code_t code = sql_run (db,
                                 "PRAGMA cell_size_check = ON; PRAGMA mmap_size = 0;"
                                 "PRAGMA secure_delete = OFF; PRAGMA wal_autocheckpoint = 0;"
                                 "PRAGMA temp_store = MEMORY",
                                 error);
    if (code == STORE_OK && !writer)
        code = sql_run (db, "PRAGMA query_only = ON", error);
    return code;
}

/* Without it every allocation of every connection takes one lock, to count bytes that nobody asks
 * for. Only the first use of SQLite can say so; where it is too late nothing is lost but time. */
static void sql_begin (void)
{
    sqlite3_config (SQLITE_CONFIG_MEMSTATUS, 0);
}

static pthread_once_t begun = PTHREAD_ONCE_INIT;

/* Whoever can put a link there could have us write to a file of somebody else. */
static bool is_link (const char *path)
{
    struct stat status;
    return lstat (path, &status) == 0 && S_ISLNK (status.st_mode);
}

store_code_t sql_open (sqlite3 **out, const char *directory, const char *name, bool writer,
                       store_error_t *error)
{
    pthread_once (&begun, sql_begin);
    size_t room = strlen (directory) + 1 + strlen (name) + 1;
    char *path = memory_alloc (room);
    snprintf (path, room, "%s/%s", directory, name);
    int flags = SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE |
                (writer ? SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE : SQLITE_OPEN_READONLY);
    sqlite3 *db = NULL;
    store_code_t code = STORE_OK;
    if (is_link (path))
        code = store_fail (error, STORE_ERROR_ACCESS,
                           "%s is a symbolic link, and none is followed here", path);
    else if (sqlite3_open_v2 (path, &db, flags, NULL) != SQLITE_OK)
        code = store_fail (error, STORE_ERROR_ACCESS, "%s: cannot be opened: %s", path,
                           db == NULL ? "no memory" : strerror (sqlite3_system_errno (db)));
    else if (writer && sqlite3_db_readonly (db, "main") != 0)
        code = store_fail (error, STORE_ERROR_ACCESS, "%s: cannot be written", path);
    else
        code = sql_configure (db, writer, error);
    if (code != STORE_OK)
        sqlite3_close (db);
    else
        *out = db;
    free (path);
    return code;
}

/* A name of a file as a part of a URI; free it. */
static char *uri_of (const char *directory, const char *name)
{
    static const char HEX[] = "0123456789abcdef";
    static const char MIDDLE[] = "/";
    static const char END[] = "?immutable=1";
    const char *const parts[] = {directory, MIDDLE, name};
    char *uri = memory_alloc (3 * (strlen (directory) + sizeof (MIDDLE) + strlen (name)) +
                              sizeof ("file:") + sizeof (END));
    char *to = stpcpy (uri, "file:");
    for (size_t i = 0; i < sizeof (parts) / sizeof (parts[0]); i++)
        for (const uint8_t *from = (const uint8_t *) parts[i]; *from != '\0'; from++)
            if (*from == '%' || *from == '?' || *from == '#') {
                *to++ = '%';
                *to++ = HEX[*from >> 4];
                *to++ = HEX[*from & 15];
            } else {
                *to++ = (char) *from;
            }
    memcpy (to, END, sizeof (END));
    return uri;
}

store_code_t sql_open_still (sqlite3 **out, const char *directory, const char *name,
                             store_error_t *error)
{
    pthread_once (&begun, sql_begin);
    char *uri = uri_of (directory, name);
    char path[PATH_MAX];
    sqlite3 *db = NULL;
    store_code_t code;
    snprintf (path, sizeof (path), "%s/%s", directory, name);
    if (is_link (path))
        code = store_fail (error, STORE_ERROR_ACCESS,
                           "%s is a symbolic link, and none is followed here", path);
    else if (sqlite3_open_v2 (uri, &db,
                              SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE | SQLITE_OPEN_READONLY |
                                  SQLITE_OPEN_URI,
                              NULL) != SQLITE_OK)
        code = store_fail (error, STORE_ERROR_ACCESS, "%s: cannot be opened: %s", path,
                           db == NULL ? "no memory" : strerror (sqlite3_system_errno (db)));
    else
        code = sql_configure (db, false, error);
    if (code != STORE_OK)
        sqlite3_close (db);
    else
        *out = db;
    free (uri);
    return code;
}

void sql_close (sqlite3 **db)
{
    sqlite3_close (*db);
    *db = NULL;
}

store_code_t sql_run (sqlite3 *db, const char *text, store_error_t *error)
{
    if (sqlite3_exec (db, text, NULL, NULL, NULL) != SQLITE_OK)
        return sql_fail (db, "cannot be set up", error);
    return STORE_OK;
}

store_code_t sql_number (sqlite3 *db, const char *text, int64_t *value, store_error_t *error)
{
    sqlite3_stmt *statement;
    store_code_t code = sql_prepare (db, &statement, &text, 1, error);
    if (code != STORE_OK)
        return code;
    int rc = sqlite3_step (statement);
    *value = rc == SQLITE_ROW ? sqlite3_column_int64 (statement, 0) : 0;
    if (rc != SQLITE_ROW && rc != SQLITE_DONE)
        code = sql_fail (db, "cannot be read", error);
    sqlite3_finalize (statement);
    return code;
}

store_code_t sql_pragma (sqlite3 *db, const char *text, const char *wanted, store_error_t *error)
{
    sqlite3_stmt *statement;
    store_code_t code = sql_prepare (db, &statement, &text, 1, error);
    if (code != STORE_OK)
        return code;
    int rc = sqlite3_step (statement);
    if (rc != SQLITE_ROW)
        code = sql_fail (db, text, error);
    else if (strcmp (sql_column_text (statement, 0), wanted) != 0)
        code = store_fail (error, STORE_ERROR_IO, "%s: %s: SQLite answered '%s'",
                           sqlite3_db_filename (db, "main"), text, sql_column_text (statement, 0));
    sqlite3_finalize (statement);
    return code;
}

store_code_t sql_checkpoint (sqlite3 *db, int mode, store_error_t *error)
{
    int rc = sqlite3_wal_checkpoint_v2 (db, NULL, mode, NULL, NULL);
    if (rc == SQLITE_OK || (rc == SQLITE_BUSY && mode == SQLITE_CHECKPOINT_PASSIVE))
        return STORE_OK;
    return sql_fail (db, "its write-ahead log cannot be checkpointed", error);
}

store_code_t sql_prepare (sqlite3 *db, sqlite3_stmt **out, const char *const *texts, size_t count,
                          store_error_t *error)
{
    for (size_t i = 0; i < count; i++)
        out[i] = NULL;
    for (size_t i = 0; i < count; i++)
        if (sqlite3_prepare_v3 (db, texts[i], -1, SQLITE_PREPARE_PERSISTENT, &out[i], NULL) !=
            SQLITE_OK) {
            store_code_t code = sql_fail (db, "cannot be read", error);
            sql_finalize (out, count);
            return code;
        }
    return STORE_OK;
}

void sql_finalize (sqlite3_stmt **statements, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        sqlite3_finalize (statements[i]);
        statements[i] = NULL;
    }
}

store_code_t sql_do (sqlite3_stmt *statement, const char *doing, store_error_t *error)
{
    int rc = sqlite3_step (statement);
    store_code_t code = STORE_OK;
    if (rc != SQLITE_DONE && rc != SQLITE_ROW)
        code = sql_fail (sqlite3_db_handle (statement), doing, error);
    sqlite3_reset (statement);
    return code;
}

void sql_rollback (sqlite3 *db)
{
    /* SQLite has already rolled back after some errors; what fails here changes nothing. */
    if (sqlite3_get_autocommit (db) == 0)
        sqlite3_exec (db, "ROLLBACK", NULL, NULL, NULL);
}

void sql_bind_text (sqlite3_stmt *statement, int index, const char *text)
{
    if (text[0] == '\0')
        sqlite3_bind_null (statement, index);
    else
        sqlite3_bind_text (statement, index, text, -1, SQLITE_STATIC);
}

store_code_t sql_bind_blob (sqlite3_stmt *statement, int index, const void *bytes, size_t length,
                            const char *doing, store_error_t *error)
{
    sqlite3 *db = sqlite3_db_handle (statement);
    int rc = sqlite3_bind_blob64 (statement, index, bytes, length, SQLITE_STATIC);
    if (rc == SQLITE_TOOBIG)
        return store_fail (error, STORE_ERROR_IO, "%s: %s: %zu bytes are more than the %d of a row",
                           sqlite3_db_filename (db, "main"), doing, length,
                           sqlite3_limit (db, SQLITE_LIMIT_LENGTH, -1));
    return rc == SQLITE_OK ? STORE_OK : sql_fail (db, doing, error);
}

void sql_bind_body (sqlite3_stmt *statement, int index, const buf_t *body)
{
    if (buf_length (body) == 0)
        sqlite3_bind_null (statement, index);
    else
        sqlite3_bind_blob (statement, index, buf_bytes (body), (int) buf_length (body),
                           SQLITE_STATIC);
}

const char *sql_column_text (sqlite3_stmt *statement, int column)
{
    const char *text = (const char *) sqlite3_column_text (statement, column);
    return text == NULL ? "" : text;
}

void sql_column_bytes (sqlite3_stmt *statement, int column, void *to, size_t size)
{
    const void *bytes = sqlite3_column_blob (statement, column);
    if (bytes != NULL && (size_t) sqlite3_column_bytes (statement, column) == size)
        memcpy (to, bytes, size);
    else
        memset (to, 0, size);
}
