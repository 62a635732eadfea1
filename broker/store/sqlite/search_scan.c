/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

#include "store/sqlite/search_scan.h"

#include <stdlib.h>
#include <string.h>

#include "bytes.h"
#include "core/base/memory.h"

enum { COLUMNS = 5, FIRST_COLUMN = 1, TOKENS_BEFORE = 4 };

struct search_scan {
    fts5_tokenizer tokenizer;
    Fts5Tokenizer *instance;
};

/* One pass through a text. */
typedef struct pass {
    const search_term_t *terms;
    size_t count;
    size_t token;
    size_t hit;   /* the first one that is a hit; SIZE_MAX: none yet */
    size_t from;  /* tokens from here on are shown … */
    bool writing; /* … or only looked at */
    bool over;    /* there are tokens behind those that are shown */
    const char *text;
    size_t written; /* of the text */
    bytes_t out;
} pass_t;

/* The index has words in small letters. */
static bool is_word (const char *token, size_t length, const search_term_t *term)
{
    if (term->negated || length < term->length || (!term->prefix && length != term->length))
        return false;
    for (size_t i = 0; i < term->length; i++) {
        char c = term->text[i];
        if (token[i] != (c >= 'A' && c <= 'Z' ? (char) (c | 32) : c))
            return false;
    }
    return true;
}

static bool is_hit (const pass_t *self, const char *token, int length)
{
    for (size_t i = 0; i < self->count; i++)
        if (is_word (token, (size_t) length, &self->terms[i]))
            return true;
    return false;
}

static int look (void *context, int flags, const char *token, int length, int start, int end)
{
    pass_t *self = context;
    (void) flags;
    (void) start;
    (void) end;
    if (is_hit (self, token, length)) {
        self->hit = self->token;
        return SQLITE_DONE;
    }
    self->token++;
    return SQLITE_OK;
}

static int show (void *context, int flags, const char *token, int length, int start, int end)
{
    pass_t *self = context;
    (void) flags;
    size_t place = self->token++;
    if (place < self->from)
        return SQLITE_OK;
    if (place == self->from && place > 0) { /* what is in front of it is left out */
        bytes_append_text (&self->out, "…");
        self->written = (size_t) start;
    }
    if (place >= self->from + SEARCH_SCAN_TOKENS) {
        self->over = true;
        return SQLITE_DONE;
    }
    const bool hit = is_hit (self, token, length);
    bytes_append (&self->out, self->text + self->written, (size_t) start - self->written);
    if (hit)
        bytes_append_byte (&self->out, SEARCH_HIT_BEGIN);
    bytes_append (&self->out, self->text + start, (size_t) (end - start));
    if (hit)
        bytes_append_byte (&self->out, SEARCH_HIT_END);
    self->written = (size_t) end;
    return SQLITE_OK;
}

static bool run (search_scan_t *self, pass_t *pass, const char *text, size_t length,
                 int (*each) (void *, int, const char *, int, int, int))
{
    pass->token = 0;
    pass->text = text;
    int rc = self->tokenizer.xTokenize (self->instance, pass, FTS5_TOKENIZE_DOCUMENT, text,
                                        (int) length, each);
    return rc == SQLITE_OK || rc == SQLITE_DONE;
}

bool search_scan_takes (const search_term_t *term)
{
    for (size_t i = 0; i < term->length; i++) {
        char c = term->text[i];
        if (!((c >= '0' && c <= '9') || ((c | 32) >= 'a' && (c | 32) <= 'z')))
            return false;
    }
    return term->length > 0;
}

/* The text of a column, and its length in bytes. */
static const char *column (sqlite3_stmt *row, int which, size_t *length)
{
    const char *text = (const char *) sqlite3_column_text (row, FIRST_COLUMN + which);
    *length = text == NULL ? 0 : (size_t) sqlite3_column_bytes (row, FIRST_COLUMN + which);
    return text;
}

/* The first column with a hit, and where it is there; COLUMNS: none has one. */
static int find_hit (search_scan_t *self, sqlite3_stmt *row, pass_t *pass, size_t *bytes)
{
    pass->hit = SIZE_MAX;
    for (int i = 0; i < COLUMNS; i++) {
        size_t length;
        const char *text = column (row, i, &length);
        *bytes += length;
        if (length > 0 && run (self, pass, text, length, look) && pass->hit != SIZE_MAX)
            return i;
    }
    return COLUMNS;
}

bool search_scan_has (search_scan_t *self, sqlite3_stmt *row, const search_term_t *terms,
                      size_t count, size_t *bytes)
{
    pass_t pass = {.terms = terms, .count = count};
    return find_hit (self, row, &pass, bytes) < COLUMNS;
}

char *search_scan_excerpt (search_scan_t *self, sqlite3_stmt *row, const search_term_t *terms,
                           size_t count)
{
    size_t length;
    size_t bytes = 0;
    pass_t pass = {.terms = terms, .count = count, .out = BYTES_INIT};
    int which = find_hit (self, row, &pass, &bytes);
    if (which == COLUMNS)
        return NULL;
    const char *text = column (row, which, &length);
    pass.from = pass.hit >= SEARCH_SCAN_TOKENS ? pass.hit - TOKENS_BEFORE : 0;
    run (self, &pass, text, length, show);
    if (pass.over)
        bytes_append_text (&pass.out, "…");
    else
        bytes_append (&pass.out, text + pass.written, length - pass.written);
    bytes_append_byte (&pass.out, 0);
    if (pass.out.failed)
        abort (); /* out of memory, as everywhere in the broker */
    return (char *) pass.out.data;
}

/* Opening. */

static fts5_api *api_of (sqlite3 *db)
{
    fts5_api *api = NULL;
    sqlite3_stmt *statement = NULL;
    if (sqlite3_prepare_v2 (db, "SELECT fts5 (?1)", -1, &statement, NULL) == SQLITE_OK) {
        sqlite3_bind_pointer (statement, 1, &api, "fts5_api_ptr", NULL);
        sqlite3_step (statement);
    }
    sqlite3_finalize (statement);
    return api;
}

store_code_t search_scan_open (search_scan_t **out, sqlite3 *db, store_error_t *error)
{
    void *context = NULL;
    search_scan_t *self = memory_zero (1, sizeof (*self));
    fts5_api *api = api_of (db);
    if (api == NULL ||
        api->xFindTokenizer (api, "unicode61", &context, &self->tokenizer) != SQLITE_OK ||
        self->tokenizer.xCreate (context, NULL, 0, &self->instance) != SQLITE_OK) {
        free (self);
        return sql_fail (db, "cannot take words apart", error);
    }
    *out = self;
    return STORE_OK;
}

void search_scan_close (search_scan_t **self_p)
{
    search_scan_t *self = *self_p;
    if (self == NULL)
        return;
    *self_p = NULL;
    self->tokenizer.xDelete (self->instance);
    free (self);
}
