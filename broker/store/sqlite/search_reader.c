/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Searches. What FTS5 is given as its query is made here of quoted words, so that nothing that
 * somebody wrote is taken for its syntax.
 *
 * The words of a query may stand in several documents of a task. So each part of the query (a word,
 * or some with OR between them) is a walk of its own over the documents, the newest first, and the
 * walks are brought to the same task again and again. A walk that is far behind begins anew at the
 * task, which FTS5 finds without a look at what is between. Of the beginning of many words the walk
 * looks into the newest documents first, and asks the index behind them (search_scan.h). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "bytes.h"
#include "core/base/memory.h"
#include "store/sqlite/search_scan.h"
#include "store/sqlite/search_words.h"
#include "timestamp.h"

enum {
    EXCERPT_BYTES_MAX = 600,
    EXCERPT_BEFORE = 120,
    EXCERPT_LOOKS_MAX = 20000, /* at documents, for the excerpts of a page */
    STEPS_TO_A_TASK = 32,      /* of a walk; then it begins anew */
    DOCUMENTS_COMPARED = 64,   /* of a task, the last ones: which has most of the words */
    PARTS_MAX = TMQ_SEARCH_TERMS_MAX + 1,
    OPERATIONS = 200 /* of SQLite, between two looks at the clock */
};

enum statement { SPACE_OF, EXCERPT, EXCERPTS, WORDS_FROM, LOOK, STATEMENTS };

/* What a walk is made of. */
enum kind { PLAIN, RANKED, SCANNED, KINDS };

static const char *const FIND[KINDS] = {
    [PLAIN] = SEARCH_FIND,
    [RANKED] = "SELECT rowid, bm25 (found) FROM found WHERE found MATCH ?1 AND rowid <= ?2"
               " AND rowid >= ?3 ORDER BY rowid DESC",
    [SCANNED] = SEARCH_SCAN,
};

#define SNIPPET "snippet (found, -1, char (2), char (3), '…', 24)"

static const char *const TEXTS[STATEMENTS] = {
    [SPACE_OF] = SEARCH_SPACE_OF,
    [EXCERPT] = "SELECT rowid, " SNIPPET " FROM found WHERE found MATCH ?1 AND rowid = ?2",
    /* The words of an excerpt are looked for in those rows alone that are wanted. */
    [EXCERPTS] = "SELECT rowid, " SNIPPET " FROM found"
                 " WHERE found MATCH ?1 AND rowid <= ?2 AND rowid >= ?3 AND wanted (rowid)"
                 " ORDER BY rowid DESC",
    [WORDS_FROM] = SEARCH_WORDS_FROM,
    [LOOK] = SEARCH_SCAN,
};

/* The walk of a part. */
typedef struct part {
    sqlite3_stmt *statement;
    int64_t key; /* of the document where it is; 0: at the end */
    double rank; /* of it */
    double best; /* of those of the task that were looked at */
    /* While it looks into documents: the statement that asks the index, with what it is to be
     * asked. */
    sqlite3_stmt *asks;
    const search_query_t *query;
    size_t from;
    size_t to;
    int64_t place;    /* documents from this one on were looked into */
    size_t documents; /* so many, … */
    size_t bytes;     /* … with so many bytes */
} part_t;

struct search_reader {
    sqlite3 *db;
    sqlite3_stmt *statements[STATEMENTS];
    sqlite3_stmt *finding[KINDS][PARTS_MAX]; /* made when they are needed */
    search_scan_t *scan;
    /* The search under way. */
    bool ranked;
    int64_t space;
    part_t parts[PARTS_MAX];
    size_t parts_count;
    part_t *without;       /* what must not be there; NULL: nothing */
    int64_t last;          /* key at which walks end */
    int64_t below;         /* tasks from it on were judged */
    bool begun;            /* the walks stand at a document */
    const int64_t *wanted; /* keys, falling */
    size_t wanted_count;
    size_t wanted_looks;
    uint32_t ms_max;
    int64_t since_ms; /* mono: the search began, later by what it spent elsewhere */
    bool limited;     /* a word of it goes on */
    bool late;
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
    search_reader_t *self = sqlite3_user_data (context);
    int64_t key = sqlite3_value_int64 (values[0]);
    if (++self->wanted_looks > EXCERPT_LOOKS_MAX) {
        sqlite3_result_error_code (context, SQLITE_INTERRUPT);
        return;
    }
    bool wanted = self->wanted_count > 0 &&
                  bsearch (&key, self->wanted, self->wanted_count, sizeof (key), falling) != NULL;
    sqlite3_result_int (context, wanted);
}

static int is_over (void *context)
{
    search_reader_t *self = context;
    self->late = self->late || (self->limited && clock_ms (CLOCK_MONOTONIC) - self->since_ms >=
                                                     (int64_t) self->ms_max);
    return self->late;
}

void search_reader_limit (search_reader_t *self, uint32_t ms)
{
    self->ms_max = ms;
    sqlite3_progress_handler (self->db, ms == 0 ? 1 : OPERATIONS, is_over, self);
}

void search_reader_spare (search_reader_t *self, int64_t ms)
{
    self->since_ms += ms;
}

bool search_reader_is_late (const search_reader_t *self)
{
    return self->late;
}

store_code_t search_reader_open (search_reader_t **out, const char *directory, store_error_t *error)
{
    search_reader_t *self = memory_zero (1, sizeof (*self));
    store_code_t code = sql_open (&self->db, directory, SEARCH_FILE, false, error);
    if (code == STORE_OK &&
        sqlite3_create_function (self->db, "wanted", 1, SQLITE_UTF8 | SQLITE_DIRECTONLY, self,
                                 is_wanted, NULL, NULL) != SQLITE_OK)
        code = sql_fail (self->db, "cannot be set up", error);
    if (code == STORE_OK) /* which is no change of the file, but would pass for one */
        code = sql_run (self->db,
                        "PRAGMA query_only = OFF; " SEARCH_WORDS_TABLE "; PRAGMA query_only = ON",
                        error);
    if (code == STORE_OK)
        code = sql_prepare (self->db, self->statements, TEXTS, STATEMENTS, error);
    if (code == STORE_OK)
        code = search_scan_open (&self->scan, self->db, error);
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
    for (int kind = 0; kind < KINDS; kind++)
        sql_finalize (self->finding[kind], PARTS_MAX);
    search_scan_close (&self->scan);
    if (self->db != NULL)
        sql_close (&self->db);
    free (self);
}

/* The expression. */

/* One of the terms from..to - 1, of those that must be there, or of those that must not. */
static void express (const search_reader_t *self, bytes_t *out, const search_query_t *query,
                     size_t from, size_t to, bool negated)
{
    /* To rank, FTS5 goes through the documents of each word: of a beginning that is one walk. */
    sqlite3_stmt *words = self->ranked ? NULL : self->statements[WORDS_FROM];
    bool any = false;
    for (size_t i = from; i < to; i++) {
        if (query->terms[i].negated != negated)
            continue;
        if (any)
            bytes_append (out, " OR ", 4);
        search_words_express (out, &query->terms[i], words);
        any = true;
    }
}

static void bind_terms (const search_reader_t *self, sqlite3_stmt *statement,
                        const search_query_t *query, size_t from, size_t to, bool negated)
{
    bytes_t expression = BYTES_INIT;
    express (self, &expression, query, from, to, negated);
    sqlite3_bind_text (statement, 1, (const char *) expression.data, (int) expression.length,
                       SQLITE_TRANSIENT);
    bytes_free (&expression);
}

/* 0: nothing of this namespace is indexed. */
static store_code_t find_space (search_reader_t *self, const char *ns, int64_t *space,
                                store_error_t *error)
{
    sqlite3_stmt *statement = self->statements[SPACE_OF];
    sqlite3_bind_text (statement, 1, ns, -1, SQLITE_TRANSIENT);
    int rc = sqlite3_step (statement);
    *space = rc == SQLITE_ROW ? sqlite3_column_int64 (statement, 0) : 0;
    sqlite3_reset (statement);
    return rc == SQLITE_ROW || rc == SQLITE_DONE ? STORE_OK
                                                 : sql_fail (self->db, "cannot be read", error);
}

/* Walks. */

/* The part has the beginning of many words, and all of it can be found by a look. */
static bool is_scanned (const search_reader_t *self, const search_query_t *query, size_t from,
                        size_t to)
{
    bool many = false;
    for (size_t i = from; i < to; i++) {
        if (!search_scan_takes (&query->terms[i]))
            return false;
        many = many || search_words_are_many (&query->terms[i], self->statements[WORDS_FROM]);
    }
    return many;
}

static store_code_t need (search_reader_t *self, enum kind kind, sqlite3_stmt **out,
                          store_error_t *error)
{
    sqlite3_stmt **statement = &self->finding[kind][self->parts_count];
    store_code_t code =
        *statement == NULL ? sql_prepare (self->db, statement, &FIND[kind], 1, error) : STORE_OK;
    *out = *statement;
    return code;
}

static store_code_t add_part (search_reader_t *self, const search_query_t *query, size_t from,
                              size_t to, bool negated, store_error_t *error)
{
    part_t part = {.query = query, .from = from, .to = to};
    sqlite3_stmt *asks;
    store_code_t code = need (self, self->ranked ? RANKED : PLAIN, &asks, error);
    if (code != STORE_OK)
        return code;
    if (!self->ranked && !negated && is_scanned (self, query, from, to)) {
        code = need (self, SCANNED, &part.statement, error);
        part.asks = asks;
    } else {
        bind_terms (self, asks, query, from, to, negated);
        part.statement = asks;
    }
    self->parts[self->parts_count] = part;
    self->parts_count += code == STORE_OK;
    return code;
}

/* What must not be there is the last one. */
static store_code_t add_parts (search_reader_t *self, const search_query_t *query,
                               store_error_t *error)
{
    store_code_t code = STORE_OK;
    bool any_negated = false;
    self->parts_count = 0;
    self->without = NULL;
    for (size_t from = 0, to; code == STORE_OK && from < query->count; from = to) {
        for (to = from; query->terms[to].or_next;)
            to++;
        to++;
        any_negated = any_negated || query->terms[from].negated;
        if (!query->terms[from].negated)
            code = add_part (self, query, from, to, false, error);
    }
    if (code != STORE_OK || !any_negated)
        return code;
    code = add_part (self, query, 0, query->count, true, error);
    if (code == STORE_OK)
        self->without = &self->parts[--self->parts_count];
    return code;
}

/* Of the tasks from..to. */
static store_code_t begin (search_reader_t *self, const char *ns, const search_query_t *query,
                           int64_t from, int64_t to, store_error_t *error)
{
    self->begun = false;
    self->below = to + 1;
    self->late = false;
    self->limited = false;
    self->since_ms = clock_ms (CLOCK_MONOTONIC);
    for (size_t i = 0; i < query->count; i++)
        self->limited = self->limited || query->terms[i].prefix;
    store_code_t code = find_space (self, ns, &self->space, error);
    if (code == STORE_OK)
        code = add_parts (self, query, error);
    size_t count = code == STORE_OK ? self->parts_count + (self->without != NULL) : 0;
    self->last = search_key (self->space, from, 0);
    for (size_t i = 0; i < count; i++)
        sqlite3_bind_int64 (self->parts[i].statement, 3, self->last);
    return code;
}

store_code_t search_reader_begin (search_reader_t *self, const char *ns,
                                  const search_query_t *query, int64_t below, bool ranked,
                                  store_error_t *error)
{
    self->ranked = ranked;
    int64_t to = below > 0 && below <= SEARCH_NUMBER_MAX ? below - 1 : SEARCH_NUMBER_MAX;
    return begin (self, ns, query, 0, to, error);
}

store_code_t search_reader_begin_task (search_reader_t *self, const char *ns,
                                       const search_query_t *query, int64_t number,
                                       store_error_t *error)
{
    self->ranked = false;
    return begin (self, ns, query, number, number, error);
}

/* The documents that were looked into are passed: the index is asked for those below. */
static void ask_index (const search_reader_t *self, part_t *part)
{
    sqlite3_reset (part->statement);
    part->statement = part->asks;
    part->asks = NULL;
    bind_terms (self, part->statement, part->query, part->from, part->to, false);
    sqlite3_bind_int64 (part->statement, 2, part->place - 1);
    sqlite3_bind_int64 (part->statement, 3, self->last);
}

/* Looks into documents until one has a word. SQLITE_OK: into as many as are looked into. */
static int look_on (const search_reader_t *self, part_t *part, size_t *looks)
{
    const search_term_t *terms = part->query->terms + part->from;
    while (part->documents < SEARCH_SCAN_DOCUMENTS_MAX && part->bytes < SEARCH_SCAN_BYTES_MAX) {
        int rc = sqlite3_step (part->statement);
        if (rc != SQLITE_ROW)
            return rc;
        *looks -= *looks > 0;
        part->documents++;
        part->place = sqlite3_column_int64 (part->statement, 0);
        if (search_scan_has (self->scan, part->statement, terms, part->to - part->from,
                             &part->bytes))
            return rc;
    }
    return SQLITE_OK;
}

static store_code_t step (const search_reader_t *self, part_t *part, size_t *looks,
                          store_error_t *error)
{
    int rc = part->asks != NULL ? look_on (self, part, looks) : SQLITE_OK;
    if (part->asks != NULL && rc == SQLITE_OK)
        ask_index (self, part);
    if (rc == SQLITE_OK) {
        rc = sqlite3_step (part->statement);
        *looks -= *looks > 0;
    }
    part->key = rc == SQLITE_ROW ? sqlite3_column_int64 (part->statement, 0) : 0;
    if (rc == SQLITE_ROW && self->ranked)
        part->rank = sqlite3_column_double (part->statement, 1);
    return rc == SQLITE_ROW || rc == SQLITE_DONE ? STORE_OK
                                                 : sql_fail (self->db, "cannot be searched", error);
}

static store_code_t begin_at (const search_reader_t *self, part_t *part, int64_t number,
                              size_t *looks, store_error_t *error)
{
    int64_t key = search_key (self->space, number, SEARCH_TURNS_MAX);
    sqlite3_reset (part->statement);
    sqlite3_bind_int64 (part->statement, 2, key);
    part->place = key + 1;
    return step (self, part, looks, error);
}

static bool is_above (const part_t *part, int64_t number)
{
    return part->key != 0 && search_key_number (part->key) > number;
}

/* The walk comes to the task, or below it; it stays above when there are no looks left. To rank
 * anew costs more than any way, and to look into documents more than a way around them. */
static store_code_t reach (const search_reader_t *self, part_t *part, int64_t number, size_t *looks,
                           store_error_t *error)
{
    store_code_t code = STORE_OK;
    for (size_t steps = 0; code == STORE_OK && *looks > 0 && is_above (part, number); steps++)
        code = (part->asks != NULL || steps == STEPS_TO_A_TASK) && !self->ranked
                   ? begin_at (self, part, number, looks, error)
                   : step (self, part, looks, error);
    return code;
}

static store_code_t begin_walks (search_reader_t *self, size_t *looks, store_error_t *error)
{
    store_code_t code = STORE_OK;
    size_t count = self->parts_count + (self->without != NULL);
    self->begun = true;
    for (size_t i = 0; code == STORE_OK && i < count; i++)
        code = begin_at (self, &self->parts[i], self->below - 1, looks, error);
    return code;
}

/* All parts come to one task below those that were judged. */
static store_code_t meet (search_reader_t *self, int64_t *number, size_t *looks, search_step_t *out,
                          store_error_t *error)
{
    size_t there = 0; /* so many parts in a row are at it */
    *number = self->below - 1;
    *out = SEARCH_STEP_FOUND;
    for (size_t i = 0; there < self->parts_count; i = (i + 1) % self->parts_count) {
        part_t *part = &self->parts[i];
        store_code_t code = reach (self, part, *number, looks, error);
        if (code != STORE_OK)
            return code;
        *out = part->key == 0 ? SEARCH_STEP_END : SEARCH_STEP_FOUND;
        if (is_above (part, *number))
            *out = SEARCH_STEP_TIRED;
        if (*out != SEARCH_STEP_FOUND)
            return STORE_OK;
        there = search_key_number (part->key) == *number ? there + 1 : 1;
        *number = search_key_number (part->key);
    }
    return STORE_OK;
}

/* The newest document of the task that a part stands at; 0: none does. */
static int64_t next_document (const search_reader_t *self, int64_t number)
{
    int64_t key = 0;
    for (size_t i = 0; i < self->parts_count; i++)
        if (self->parts[i].key > key && search_key_number (self->parts[i].key) == number)
            key = self->parts[i].key;
    return key;
}

/* Goes through the documents of a task that was found: which has most of the words. */
static store_code_t compare (search_reader_t *self, search_hit_t *out, size_t *looks,
                             store_error_t *error)
{
    size_t most = 0;
    int64_t key;
    store_code_t code = STORE_OK;
    for (size_t i = 0; i < self->parts_count; i++)
        self->parts[i].best = 0;
    for (size_t i = 0; i < DOCUMENTS_COMPARED && (key = next_document (self, out->number)) != 0;
         i++) {
        size_t has = 0;
        for (size_t k = 0; code == STORE_OK && k < self->parts_count; k++) {
            part_t *part = &self->parts[k];
            if (part->key != key)
                continue;
            has++;
            part->best = part->rank < part->best ? part->rank : part->best;
            code = step (self, part, looks, error);
        }
        if (has > most)
            out->turn = search_key_turn (key);
        most = has > most ? has : most;
    }
    for (size_t i = 0; i < self->parts_count; i++)
        out->rank += self->parts[i].best;
    return code;
}

store_code_t search_reader_next (search_reader_t *self, search_hit_t *out, size_t *looks,
                                 search_step_t *step_out, store_error_t *error)
{
    *out = (search_hit_t){0};
    *step_out = SEARCH_STEP_END;
    if (self->space == 0)
        return STORE_OK;
    if (self->begun && *looks == 0) {
        *step_out = SEARCH_STEP_TIRED;
        out->number = self->below;
        return STORE_OK;
    }
    store_code_t code = self->begun ? STORE_OK : begin_walks (self, looks, error);
    while (code == STORE_OK) {
        int64_t number;
        code = meet (self, &number, looks, step_out, error);
        if (code == STORE_OK && *step_out == SEARCH_STEP_FOUND && self->without != NULL)
            code = reach (self, self->without, number, looks, error);
        if (code != STORE_OK)
            break;
        if (*step_out == SEARCH_STEP_FOUND && self->without != NULL &&
            is_above (self->without, number))
            *step_out = SEARCH_STEP_TIRED;
        if (*step_out != SEARCH_STEP_FOUND) {
            out->number = number + 1;
            break;
        }
        self->below = number;
        out->number = number;
        if (self->without == NULL || self->without->key == 0 ||
            search_key_number (self->without->key) != number)
            return compare (self, out, looks, error);
    }
    return code;
}

void search_reader_end (search_reader_t *self)
{
    for (size_t i = 0; i < self->parts_count + (self->without != NULL); i++)
        sqlite3_reset (self->parts[i].statement);
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

static bool has_prefix (const search_query_t *query)
{
    for (size_t i = 0; i < query->count; i++)
        if (query->terms[i].prefix && !query->terms[i].negated)
            return true;
    return false;
}

/* One after the other: nothing between them is looked at. */
static int take_each (search_reader_t *self, const int64_t *keys, size_t count, char **out)
{
    int rc = SQLITE_DONE;
    sqlite3_stmt *statement = self->statements[EXCERPT];
    for (size_t i = 0; i < count && rc == SQLITE_DONE; i++) {
        sqlite3_bind_int64 (statement, 2, keys[i]);
        rc = sqlite3_step (statement);
        if (rc == SQLITE_ROW) {
            out[i] = shorten (sql_column_text (statement, 1));
            rc = SQLITE_DONE;
        }
        sqlite3_reset (statement);
    }
    return rc;
}

/* The words of a prefix are gathered once for all of them. */
static int take_between (search_reader_t *self, const int64_t *keys, size_t count, char **out)
{
    int rc;
    sqlite3_stmt *statement = self->statements[EXCERPTS];
    self->wanted = keys;
    self->wanted_count = count;
    self->wanted_looks = 0;
    sqlite3_bind_int64 (statement, 2, keys[0]);
    sqlite3_bind_int64 (statement, 3, keys[count - 1]);
    while ((rc = sqlite3_step (statement)) == SQLITE_ROW)
        keep (keys, count, sqlite3_column_int64 (statement, 0), sql_column_text (statement, 1),
              out);
    sqlite3_reset (statement);
    self->wanted_count = 0;
    return rc == SQLITE_INTERRUPT ? SQLITE_DONE : rc;
}

/* Each excerpt can be made by a look at its document alone. */
static bool is_looked_at (const search_query_t *query)
{
    for (size_t i = 0; i < query->count; i++)
        if (!query->terms[i].negated && !search_scan_takes (&query->terms[i]))
            return false;
    return has_prefix (query);
}

static int take_by_look (search_reader_t *self, const search_query_t *query, const int64_t *keys,
                         size_t count, char **out)
{
    int rc = SQLITE_DONE;
    sqlite3_stmt *statement = self->statements[LOOK];
    for (size_t i = 0; i < count && rc == SQLITE_DONE; i++) {
        sqlite3_bind_int64 (statement, 2, keys[i]);
        sqlite3_bind_int64 (statement, 3, keys[i]);
        rc = sqlite3_step (statement);
        if (rc == SQLITE_ROW) {
            char *text = search_scan_excerpt (self->scan, statement, query->terms, query->count);
            out[i] = text == NULL ? NULL : shorten (text);
            free (text);
            rc = SQLITE_DONE;
        }
        sqlite3_reset (statement);
    }
    return rc;
}

/* Looked up whatever the time: it is one row, and who has it knows whose the documents are. */
static store_code_t find_space_late (search_reader_t *self, const char *ns, int64_t *space,
                                     store_error_t *error)
{
    bool limited = self->limited;
    self->late = false;
    self->limited = false;
    store_code_t code = find_space (self, ns, space, error);
    self->limited = limited;
    return code;
}

static int take_from_index (search_reader_t *self, const search_query_t *query, const int64_t *keys,
                            size_t count, char **out)
{
    bool together = has_prefix (query);
    bind_terms (self, self->statements[together ? EXCERPTS : EXCERPT], query, 0, query->count,
                false);
    return together ? take_between (self, keys, count, out) : take_each (self, keys, count, out);
}

store_code_t search_reader_excerpts (search_reader_t *self, const char *ns,
                                     const search_query_t *query, const search_hit_t *hits,
                                     size_t count, char **out, store_error_t *error)
{
    int64_t space;
    store_code_t code = find_space_late (self, ns, &space, error);
    if (code != STORE_OK || space == 0 || count == 0)
        return code;
    int64_t *keys = memory_alloc (count * sizeof (*keys));
    for (size_t i = 0; i < count; i++)
        keys[i] = search_key (space, hits[i].number, hits[i].turn);
    int rc = is_looked_at (query) ? take_by_look (self, query, keys, count, out)
                                  : take_from_index (self, query, keys, count, out);
    if (rc != SQLITE_DONE && !self->late) /* what was found is worth more than its excerpts */
        code = sql_fail (self->db, "cannot be searched", error);
    free (keys);
    return code;
}
