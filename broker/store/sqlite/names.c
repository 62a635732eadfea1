/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

#include "store/sqlite/names.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/memory.h"
#include "store/checksum.h"

enum { FIND_NS, FIND, TEXT_NS, TEXT, ADD_NS, ADD };

static const char *const TEXTS[NAMES_STATEMENTS] = {
    [FIND_NS] = "SELECT id FROM namespace WHERE name = ?1",
    [FIND] = "SELECT id FROM name WHERE ns = ?2 AND kind = ?3 AND name = ?1",
    [TEXT_NS] = "SELECT name, sum FROM namespace WHERE id = ?1",
    [TEXT] = "SELECT name, sum, ns, kind FROM name WHERE id = ?1",
    [ADD_NS] = "INSERT INTO namespace (name, sum) VALUES (?1, ?4)",
    [ADD] = "INSERT INTO name (name, ns, kind, sum) VALUES (?1, ?2, ?3, ?4)",
};

/* Sessions come and go; what is remembered of them stays below some 20 MiB per connection. */
enum { ENTRIES_MAX = 100000 };

typedef struct name_entry {
    name_kind_t kind;
    int64_t ns;
    int64_t id;
    char text[];
} name_entry_t;

store_code_t names_open (name_numbers_t *self, sqlite3 *db, bool writer, store_error_t *error)
{
    *self = (name_numbers_t){.db = db, .writer = writer};
    return sql_prepare (db, self->statements, TEXTS, writer ? NAMES_STATEMENTS : ADD_NS, error);
}

void names_close (name_numbers_t *self)
{
    names_forget (self);
    sql_finalize (self->statements, NAMES_STATEMENTS);
}

void names_forget (name_numbers_t *self)
{
    for (size_t i = 0; i < self->entries_count; i++)
        free (self->entries[i]);
    free (self->entries);
    self->entries = NULL;
    self->entries_count = self->entries_capacity = 0;
    memset (self->found_last, 0, sizeof (self->found_last));
    number_map_clear (&self->by_text);
    number_map_clear (&self->by_id);
}

void names_trim (name_numbers_t *self)
{
    if (self->entries_count > ENTRIES_MAX)
        names_forget (self);
}

/* FNV-1a over the parts; never 0. */
static uint64_t hash_of (name_kind_t kind, int64_t ns, const char *text, uint64_t salt)
{
    uint64_t hash = UINT64_C (0xcbf29ce484222325) ^ salt;
    hash = (hash ^ kind) * UINT64_C (0x100000001b3);
    hash = (hash ^ (uint64_t) ns) * UINT64_C (0x100000001b3);
    for (; *text != '\0'; text++)
        hash = (hash ^ (uint8_t) *text) * UINT64_C (0x100000001b3);
    return hash == 0 ? 1 : hash;
}

/* Namespaces are numbered apart from all other names. */
static uint64_t id_key (name_kind_t kind, int64_t id)
{
    return (uint64_t) id << 1 | (kind == NAME_NAMESPACE);
}

static bool entry_is (const name_entry_t *entry, name_kind_t kind, int64_t ns, const char *text)
{
    return entry->kind == kind && entry->ns == ns && strcmp (entry->text, text) == 0;
}

/* Two texts of one hash: the second looks under the next salt. */
static const name_entry_t *cached (const name_numbers_t *self, name_kind_t kind, int64_t ns,
                                   const char *text)
{
    for (uint64_t salt = 0;; salt++) {
        const uint64_t *at = number_map_get (&self->by_text, hash_of (kind, ns, text, salt));
        if (at == NULL)
            return NULL;
        if (entry_is (self->entries[*at - 1], kind, ns, text))
            return self->entries[*at - 1];
    }
}

static const name_entry_t *remember (name_numbers_t *self, name_kind_t kind, int64_t ns, int64_t id,
                                     const char *text)
{
    size_t room = strlen (text) + 1;
    name_entry_t *entry = memory_alloc (sizeof (*entry) + room);
    entry->kind = kind;
    entry->ns = ns;
    entry->id = id;
    memcpy (entry->text, text, room);
    self->entries = memory_grow (self->entries, &self->entries_capacity, self->entries_count,
                                 sizeof (name_entry_t *));
    self->entries[self->entries_count++] = entry;
    *number_map_put (&self->by_id, id_key (kind, id), NULL) = self->entries_count;
    if (ns < 0)
        return entry; /* learnt by its number: whose it is is not known */
    uint64_t *at;
    uint64_t salt = 0;
    do /* in the place of its former self, if it was removed */
        at = number_map_put (&self->by_text, hash_of (kind, ns, text, salt++), NULL);
    while (*at != 0 && !entry_is (self->entries[*at - 1], kind, ns, text));
    *at = self->entries_count;
    return entry;
}

static void bind_name (sqlite3_stmt *statement, name_kind_t kind, int64_t ns, const char *text)
{
    sqlite3_bind_text (statement, 1, text, -1, SQLITE_STATIC);
    if (kind != NAME_NAMESPACE) {
        sqlite3_bind_int64 (statement, 2, ns);
        sqlite3_bind_int (statement, 3, (int) kind);
    }
}

uint64_t names_sum (name_kind_t kind, int64_t ns, const char *text)
{
    const int64_t numbers[] = {kind, ns};
    return checksum_add_text (checksum_add_numbers (0, numbers, 2), text);
}

store_code_t names_find (name_numbers_t *self, name_kind_t kind, int64_t ns, const char *text,
                         int64_t *id, store_error_t *error)
{
    *id = 0;
    if (text[0] == '\0')
        return STORE_OK;
    const name_entry_t *entry = self->found_last[kind];
    if (entry == NULL || !entry_is (entry, kind, ns, text))
        entry = cached (self, kind, ns, text);
    if (entry != NULL && entry->id != 0) {
        self->found_last[kind] = entry;
        *id = entry->id;
        return STORE_OK;
    }
    sqlite3_stmt *statement = self->statements[kind == NAME_NAMESPACE ? FIND_NS : FIND];
    bind_name (statement, kind, ns, text);
    int rc = sqlite3_step (statement);
    store_code_t code = STORE_OK;
    if (rc == SQLITE_ROW)
        *id = sqlite3_column_int64 (statement, 0);
    if (rc == SQLITE_ROW && (self->writer || kind <= NAME_OWNER))
        remember (self, kind, ns, *id, text);
    else if (rc != SQLITE_ROW && rc != SQLITE_DONE)
        code = sql_fail (self->db, "a name cannot be read", error);
    sqlite3_reset (statement);
    return code;
}

store_code_t names_add (name_numbers_t *self, name_kind_t kind, int64_t ns, const char *text,
                        int64_t *id, store_error_t *error)
{
    store_code_t code = names_find (self, kind, ns, text, id, error);
    if (code != STORE_OK || *id != 0 || text[0] == '\0')
        return code;
    sqlite3_stmt *statement = self->statements[kind == NAME_NAMESPACE ? ADD_NS : ADD];
    bind_name (statement, kind, ns, text);
    sqlite3_bind_int64 (statement, 4, (sqlite3_int64) names_sum (kind, ns, text));
    code = sql_do (statement, "a name cannot be written", error);
    if (code == STORE_OK)
        *id = remember (self, kind, ns, sqlite3_last_insert_rowid (self->db), text)->id;
    return code;
}

void names_removed (name_numbers_t *self, name_kind_t kind, int64_t id)
{
    const uint64_t *at = number_map_get (&self->by_id, id_key (kind, id));
    if (at != NULL)
        self->entries[*at - 1]->id = 0;
}

/* The row of TEXT_NS or TEXT is what was written, and of that kind. */
static bool is_whole (sqlite3_stmt *row, name_kind_t kind)
{
    bool is_space = kind == NAME_NAMESPACE;
    int64_t ns = is_space ? 0 : sqlite3_column_int64 (row, 2);
    int64_t stored = is_space ? NAME_NAMESPACE : sqlite3_column_int64 (row, 3);
    return stored == (int64_t) kind && (uint64_t) sqlite3_column_int64 (row, 1) ==
                                           names_sum (kind, ns, sql_column_text (row, 0));
}

store_code_t names_text (name_numbers_t *self, name_kind_t kind, int64_t id, const char **text,
                         store_error_t *error)
{
    *text = "";
    if (id == 0)
        return STORE_OK;
    const uint64_t *at = number_map_get (&self->by_id, id_key (kind, id));
    if (at != NULL) {
        *text = self->entries[*at - 1]->text;
        return STORE_OK;
    }
    sqlite3_stmt *statement = self->statements[kind == NAME_NAMESPACE ? TEXT_NS : TEXT];
    sqlite3_bind_int64 (statement, 1, id);
    int rc = sqlite3_step (statement);
    store_code_t code = STORE_OK;
    if (rc == SQLITE_ROW && is_whole (statement, kind))
        *text = remember (self, kind, -1, id, sql_column_text (statement, 0))->text;
    else if (rc == SQLITE_ROW || rc == SQLITE_DONE)
        code = store_fail (error, STORE_ERROR_CORRUPT, "%s: name %lld is %s",
                           sqlite3_db_filename (self->db, "main"), (long long) id,
                           rc == SQLITE_ROW ? "damaged" : "missing");
    else
        code = sql_fail (self->db, "a name cannot be read", error);
    sqlite3_reset (statement);
    return code;
}
