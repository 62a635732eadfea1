/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* What the writer and the readers of the index of texts share: its file and its keys. */
#ifndef TASKMQ_STORE_SEARCH_INDEX_H
#define TASKMQ_STORE_SEARCH_INDEX_H

#include "store/search.h"
#include "store/sqlite/sql.h"

/* A document's key: namespace, task, turn, so that the newest task of a namespace comes first when
 * its keys are walked downwards. */
enum { SEARCH_TURN_BITS = 11, SEARCH_NUMBER_BITS = 36, SEARCH_SPACES_MAX = 65535 };
#define SEARCH_NUMBER_MAX ((INT64_C (1) << SEARCH_NUMBER_BITS) - 1)

static inline int64_t search_key (int64_t space, int64_t number, uint32_t turn)
{
    return ((space << SEARCH_NUMBER_BITS) + number) * (INT64_C (1) << SEARCH_TURN_BITS) + turn;
}

static inline int64_t search_key_number (int64_t key)
{
    return (key >> SEARCH_TURN_BITS) & SEARCH_NUMBER_MAX;
}

static inline uint32_t search_key_turn (int64_t key)
{
    return (uint32_t) (key & ((1 << SEARCH_TURN_BITS) - 1));
}

static inline int64_t search_key_space (int64_t key)
{
    return key >> (SEARCH_TURN_BITS + SEARCH_NUMBER_BITS);
}

/* What a page of results is found by; a test asserts how SQLite goes about it. */
#define SEARCH_FIND                                                                                \
    "SELECT rowid FROM found WHERE found MATCH ?1 AND rowid <= ?2 AND rowid >= ?3"                 \
    " ORDER BY rowid DESC"

#define SEARCH_SPACE_OF "SELECT id FROM space WHERE name = ?1"

#endif
