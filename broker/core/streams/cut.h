/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Cutting what one message carries out of the ring or out of a page that a reader brought. */
#ifndef TASKMQ_CORE_CUT_H
#define TASKMQ_CORE_CUT_H

#include "core/streams/streams.h"

/* What one message shall carry. */
typedef struct cut {
    filter_copy_t *filter;
    uint64_t after_seq;
    uint64_t durable_seq;
    size_t budget;     /* bytes */
    bool alone;        /* the first event may be larger than the budget */
    uint64_t stop_seq; /* nothing behind it matches */
    hint_t hint;       /* nothing before it does */
    bytes_t list;      /* packed elements so far */
    buf_t *whole;      /* … or a block as it is */
    uint32_t count;
    uint64_t upto; /* everything up to it was considered */
    bool full;     /* the budget or stop_seq ended it */
} cut_t;
/* What matches from the cursor on, within the budget; NULL: nothing. cut says how far it went.
 * The ring must hold the event behind the cursor. */
buf_t *cut_from_ring (event_log_t *log, cut_t *cut);
buf_t *cut_from_page (const event_block_t *page, size_t count, cut_t *cut);

#endif
