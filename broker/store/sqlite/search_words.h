/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* FTS5's expressions of terms. What is looked for by the beginning of a word is looked for by all
 * words of the index that begin so: FTS5 walks over the documents of words, but merges those of a
 * beginning before it gives the first, which takes seconds among a million tasks. */
#ifndef TASKMQ_STORE_SEARCH_WORDS_H
#define TASKMQ_STORE_SEARCH_WORDS_H

#include "bytes.h"
#include "store/sqlite/search_index.h"

enum {
    SEARCH_WORDS_MAX = 1000, /* that begin so; with more of them it is left to FTS5, … */
    SEARCH_WORDS_BYTES_MAX = 64 * 1024,
    SEARCH_PREFIX_MAX = 3, /* … as is a beginning of at most so many letters, which it indexes */
    SEARCH_WORDS_FEW = 8   /* with more of them documents are looked into first (search_scan.h) */
};

#define SEARCH_WORDS_TABLE                                                                         \
    "CREATE VIRTUAL TABLE temp.words USING fts5vocab ('main', 'found', 'instance')"
#define SEARCH_WORDS_FROM "SELECT term FROM temp.words WHERE term >= ?1 LIMIT 1"

/* Appends one term, or several with OR between them. words: prepared from SEARCH_WORDS_FROM; NULL:
 * beginnings are left to FTS5. */
void search_words_express (bytes_t *out, const search_term_t *term, sqlite3_stmt *words);
/* The term is the beginning of more than SEARCH_WORDS_FEW words, or of who knows how many. */
bool search_words_are_many (const search_term_t *term, sqlite3_stmt *words);

#endif
