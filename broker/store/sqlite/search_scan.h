/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Searches that look into documents, and not into the index: for the beginning of a word that many
 * words have, which is in many documents. Among the newest ones a page of them is soon found, while
 * FTS5 would begin a walk for each of those words. Words are taken apart as the index does it.
 *
 * Used by one thread, with the reader that it belongs to. */
#ifndef TASKMQ_STORE_SEARCH_SCAN_H
#define TASKMQ_STORE_SEARCH_SCAN_H

#include "store/sqlite/search_index.h"

enum {
    SEARCH_SCAN_DOCUMENTS_MAX = 2000, /* that are looked into in vain, … */
    SEARCH_SCAN_BYTES_MAX = 1 << 20,  /* … or so many of their bytes: then the index is asked */
    SEARCH_SCAN_TOKENS = 24           /* words of an excerpt */
};

/* Documents ?2 down to ?3 with their texts; what SEARCH_FIND is without words. */
#define SEARCH_SCAN                                                                                \
    "SELECT id, c0, c1, c2, c3, c4 FROM found_content WHERE id <= ?2 AND id >= ?3 ORDER BY id "    \
    "DESC"

typedef struct search_scan search_scan_t;

store_code_t search_scan_open (search_scan_t **out, sqlite3 *db, store_error_t *error);
void search_scan_close (search_scan_t **self); /* accepts a NULL object */

/* The term is one word of letters and digits, so its bytes say what it is in the index. */
bool search_scan_takes (const search_term_t *term);
/* The row of SEARCH_SCAN where the statement stands has one of these words. Adds to *bytes what it
 * looked into. */
bool search_scan_has (search_scan_t *self, sqlite3_stmt *row, const search_term_t *terms,
                      size_t count, size_t *bytes);
/* What is around the first hit, with marks at each: as FTS5's snippet. NULL: there is none. The
 * caller frees it. Terms that are negated are passed over. */
char *search_scan_excerpt (search_scan_t *self, sqlite3_stmt *row, const search_term_t *terms,
                           size_t count);

#endif
