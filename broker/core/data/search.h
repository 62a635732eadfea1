/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* A search: what is looked for in texts, and what was found. Nobody's syntax reaches an index: a
 * query is taken apart here, and an index is given terms. */
#ifndef TASKMQ_CORE_SEARCH_H
#define TASKMQ_CORE_SEARCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/data/record.h"

/* Words that stand one behind the other. */
typedef struct search_term {
    const char *text; /* in the query's copy */
    size_t length;
    bool prefix;  /* the last word may go on */
    bool negated; /* must not be there */
    bool or_next; /* this one or the next one */
} search_term_t;

typedef struct search_query {
    char text[TMQ_SEARCH_BYTES_MAX + 1];
    search_term_t terms[TMQ_SEARCH_TERMS_MAX];
    size_t count;
} search_query_t;

enum { SEARCH_ERROR_SIZE = 160 };

/* Words and "phrases", each with a * behind it for a prefix, with NOT or - in front; OR between
 * two; AND may be said. Bytes that are UTF-8, at most TMQ_SEARCH_BYTES_MAX. TMQ_OK, TMQ_INVALID or
 * TMQ_TOO_LARGE (a limit, by its name), with a sentence. Pure. */
tmq_code_t search_query_parse (search_query_t *out, const char *text,
                               char error[SEARCH_ERROR_SIZE]);

/* Around each hit of an excerpt: no text that is indexed has such bytes. */
enum { SEARCH_HIT_BEGIN = 2, SEARCH_HIT_END = 3 };

/* A task that was found; which one, the record says that stands at the same place. */
typedef struct search_found {
    uint32_t turn; /* whose text it is; 0: the task's own */
    char *excerpt; /* with marks around the hits; owned */
} search_found_t;

/* What is asked beside a filter, and what is answered beside records. */
typedef struct search {
    search_query_t query;
    bool ranked;   /* the best first, not the newest */
    bool counting; /* how many there are, in read_t.count, and no records */
    /* answers */
    search_found_t *found; /* as many as there are records */
    size_t count;
    bool behind;          /* the index does not have all that was there when it was asked */
    uint64_t indexed_pos; /* … but what happened up to this event */
    bool building;        /* it is being made: tasks before some number are missing, … */
    int64_t built;        /* … of which it has those up to this one */
    char stalled[128];    /* why it does not go on; empty: it does */
    bool too_wide;        /* the read failed, since too much begins with one of the words */
} search_t;

search_t *search_new (void);
void search_clear (search_t *self); /* the answers */
void search_free (search_t *self);  /* accepts NULL */

#endif
