/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Searches. What FTS5 is given as its query is made here of quoted words, so that nothing that
 * somebody wrote is taken for its syntax. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bytes.h"
#include "core/base/memory.h"
#include "store/sqlite/search_index.h"

enum { EXCERPT_BYTES_MAX = 600, EXCERPT_BEFORE = 120 };

enum statement { SPACE_OF, FIND, FIND_RANKED, EXCERPTS, STATEMENTS };

static const char *const TEXTS[STATEMENTS] = {
    [SPACE_OF] = SEARCH_SPACE_OF,
    [FIND] = SEARCH_FIND,
    [FIND_RANKED] = "SELECT rowid, bm25 (found) FROM found WHERE found MATCH ?1 AND rowid <= ?2"
                    " AND rowid >= ?3 ORDER BY rowid DESC",
    /* The words of an excerpt are looked for in those rows alone that are wanted. */
    [EXCERPTS] = "SELECT rowid, snippet (found, -1, char (2), char (3), '…', 24) FROM found"
                 " WHERE found MATCH ?1 AND rowid <= ?2 AND rowid >= ?3 AND wanted (rowid)"
                 " ORDER BY rowid DESC",
};

struct search_reader {
    sqlite3 *db;
    sqlite3_stmt *statements[STATEMENTS];
    enum statement finding;
    const int64_t *wanted; /* keys, falling */
    size_t wanted_count;
};

/* Opening. */

static int falling (const void *a, const void *b)
{
    int64_t left = *(const int64_t *) a;
    int64_t right = *(const int64_t *) b;
    return (left < right) - (left > right);
}

static void is_wanted (sqlite3_context *context, int count, sqlite3_value **values)
{
    (void) count;
    const search_reader_t *self = sqlite3_user_data (context);
    int64_t key = sqlite3_value_int64 (values[0]);
    bool wanted = self->wanted_count > 0 &&
                  bsearch (&key, self->wanted, self->wanted_count, sizeof (key), falling) != NULL;
    sqlite3_result_int (context, wanted);
}

store_code_t search_reader_open (search_reader_t **out, const char *directory, store_error_t *error)
{
    search_reader_t *self = memory_zero (1, sizeof (*self));
    store_code_t code = sql_open (&self->db, directory, SEARCH_FILE, false, error);
    if (code == STORE_OK &&
        sqlite3_create_function (self->db, "wanted", 1, SQLITE_UTF8 | SQLITE_DIRECTONLY, self,
                                 is_wanted, NULL, NULL) != SQLITE_OK)
        code = sql_fail (self->db, "cannot be set up", error);
    if (code == STORE_OK)
        code = sql_prepare (self->db, self->statements, TEXTS, STATEMENTS, error);
    if (code == STORE_OK)
        *out = self;
    else
        search_reader_close (&self);
    return code;
}

void search_reader_close (search_reader_t **self_p)
{
    search_reader_t *self = *self_p;
    if (self == NULL)
        return;
    *self_p = NULL;
    sql_finalize (self->statements, STATEMENTS);
    if (self->db != NULL)
        sql_close (&self->db);
    free (self);
}

/* The expression. */

static void add_term (bytes_t *out, const search_term_t *term)
{
    bytes_append (out, "\"", 1);
    for (size_t i = 0; i < term->length; i++)
        bytes_append (out, term->text[i] == '"' ? "\"\"" : &term->text[i],
                      term->text[i] == '"' ? 2 : 1);
    bytes_append (out, term->prefix ? "\"*" : "\"", term->prefix ? 2 : 1);
}

static void add_text (bytes_t *out, const char *text)
{
    bytes_append (out, text, strlen (text));
}

/* (all that must be there) NOT (any of the others) */
static void express (bytes_t *out, const search_query_t *query)
{
    for (int negated = 0; negated < 2; negated++) {
        bool any = false;
        bool in_or = false;
        for (size_t i = 0; i < query->count; i++) {
            const search_term_t *term = &query->terms[i];
            if (term->negated != (negated == 1))
                continue;
            if (!any)
                add_text (out, negated ? " NOT (" : "(");
            else if (!in_or)
                add_text (out, negated ? " OR " : " AND ");
            else
                add_text (out, " OR ");
            if (!in_or && term->or_next)
                add_text (out, "(");
            add_term (out, term);
            if (in_or && !term->or_next)
                add_text (out, ")");
            in_or = term->or_next;
            any = true;
        }
        if (any)
            add_text (out, ")");
    }
}

/* Binds expression and bounds. *space 0: nothing of this namespace is indexed. */
static store_code_t bind (search_reader_t *self, enum statement which, const char *ns,
                          const search_query_t *query, int64_t *space, store_error_t *error)
{
    bytes_t expression = BYTES_INIT;
    sqlite3_stmt *statement = self->statements[SPACE_OF];
    sqlite3_bind_text (statement, 1, ns, -1, SQLITE_TRANSIENT);
    int rc = sqlite3_step (statement);
    *space = rc == SQLITE_ROW ? sqlite3_column_int64 (statement, 0) : 0;
    sqlite3_reset (statement);
    if (rc != SQLITE_ROW && rc != SQLITE_DONE)
        return sql_fail (self->db, "cannot be read", error);
    express (&expression, query);
    sqlite3_bind_text (self->statements[which], 1, (const char *) expression.data,
                       (int) expression.length, SQLITE_TRANSIENT);
    bytes_free (&expression);
    return STORE_OK;
}

/* Finding. */

store_code_t search_reader_begin (search_reader_t *self, const char *ns,
                                  const search_query_t *query, int64_t below, bool ranked,
                                  store_error_t *error)
{
    int64_t space;
    self->finding = ranked ? FIND_RANKED : FIND;
    store_code_t code = bind (self, self->finding, ns, query, &space, error);
    int64_t first = search_key (space, 0, 0);
    int64_t last = below > 0 && below <= SEARCH_NUMBER_MAX
                       ? search_key (space, below, 0) - 1
                       : search_key (space, SEARCH_NUMBER_MAX, SEARCH_TURNS_MAX);
    sqlite3_bind_int64 (self->statements[self->finding], 2, space == 0 ? 0 : last);
    sqlite3_bind_int64 (self->statements[self->finding], 3, space == 0 ? 1 : first);
    return code;
}

store_code_t search_reader_begin_task (search_reader_t *self, const char *ns,
                                       const search_query_t *query, int64_t number,
                                       store_error_t *error)
{
    int64_t space;
    sqlite3_stmt *statement = self->statements[self->finding = FIND];
    store_code_t code = bind (self, FIND, ns, query, &space, error);
    sqlite3_bind_int64 (statement, 2,
                        space == 0 ? 0 : search_key (space, number, SEARCH_TURNS_MAX));
    sqlite3_bind_int64 (statement, 3, space == 0 ? 1 : search_key (space, number, 0));
    return code;
}

store_code_t search_reader_next (search_reader_t *self, search_hit_t *out, bool *found,
                                 store_error_t *error)
{
    sqlite3_stmt *statement = self->statements[self->finding];
    int rc = sqlite3_step (statement);
    *found = rc == SQLITE_ROW;
    if (rc == SQLITE_DONE)
        return STORE_OK;
    if (rc != SQLITE_ROW)
        return sql_fail (self->db, "cannot be searched", error);
    int64_t key = sqlite3_column_int64 (statement, 0);
    *out = (search_hit_t){search_key_number (key), search_key_turn (key),
                          self->finding == FIND_RANKED ? sqlite3_column_double (statement, 1) : 0};
    return STORE_OK;
}

void search_reader_end (search_reader_t *self)
{
    sqlite3_reset (self->statements[self->finding]);
}

/* Excerpts. */

static bool is_inside (char c)
{
    return ((unsigned char) c & 0xc0) == 0x80;
}

/* Where words are long, an excerpt is: what is around its first hit stays. */
static char *shorten (const char *text)
{
    size_t length = strlen (text);
    const char *hit = strchr (text, SEARCH_HIT_BEGIN);
    size_t from = hit != NULL && hit - text > EXCERPT_BEFORE && length > EXCERPT_BYTES_MAX
                      ? (size_t) (hit - text) - EXCERPT_BEFORE
                      : 0;
    while (is_inside (text[from]))
        from++;
    size_t take = length - from;
    if (take > EXCERPT_BYTES_MAX)
        for (take = EXCERPT_BYTES_MAX; take > 0 && is_inside (text[from + take]);)
            take--;
    char *out = memory_alloc (take + 2);
    memcpy (out, text + from, take);
    out[take] = '\0';
    const char *begin = strrchr (out, SEARCH_HIT_BEGIN);
    if (begin != NULL && strchr (begin, SEARCH_HIT_END) == NULL) {
        out[take] = SEARCH_HIT_END;
        out[take + 1] = '\0';
    }
    return out;
}

static void keep (const int64_t *keys, size_t count, int64_t key, const char *text, char **out)
{
    for (size_t i = 0; i < count; i++)
        if (keys[i] == key && out[i] == NULL)
            out[i] = shorten (text);
}

store_code_t search_reader_excerpts (search_reader_t *self, const char *ns,
                                     const search_query_t *query, const search_hit_t *hits,
                                     size_t count, char **out, store_error_t *error)
{
    int64_t space;
    sqlite3_stmt *statement = self->statements[EXCERPTS];
    store_code_t code = bind (self, EXCERPTS, ns, query, &space, error);
    if (code != STORE_OK || space == 0 || count == 0)
        return code;
    int64_t *keys = memory_alloc (count * sizeof (*keys));
    for (size_t i = 0; i < count; i++)
        keys[i] = search_key (space, hits[i].number, hits[i].turn);
    self->wanted = keys;
    self->wanted_count = count;
    sqlite3_bind_int64 (statement, 2, keys[0]);
    sqlite3_bind_int64 (statement, 3, keys[count - 1]);
    int rc;
    while ((rc = sqlite3_step (statement)) == SQLITE_ROW)
        keep (keys, count, sqlite3_column_int64 (statement, 0), sql_column_text (statement, 1),
              out);
    if (rc != SQLITE_DONE)
        code = sql_fail (self->db, "cannot be searched", error);
    sqlite3_reset (statement);
    self->wanted_count = 0;
    free (keys);
    return code;
}
