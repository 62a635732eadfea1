/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* The statements of the readers. Each walks one range of one index, in its order: a test looks at
 * the plan of every one. */
#ifndef TASKMQ_STORE_PG_READERS_SQL_H
#define TASKMQ_STORE_PG_READERS_SQL_H

/* The first five at the places of range_kind_t. */
typedef enum pg_read_statement {
    PG_WALK_BY_QUEUE,
    PG_WALK_BY_SESSION,
    PG_WALK_BY_LABEL,
    PG_WALK_BY_PARENT,
    PG_WALK_BY_NUMBER,
    PG_FEW_BY_QUEUE,
    PG_FEW_BY_SESSION,
    PG_FEW_BY_LABEL,
    PG_COUNT_BY_QUEUE,
    PG_COUNT_BY_NUMBER,
    PG_SPACE,
    PG_QUEUES,
    PG_BOUNDS,
    PG_CREATED,
    PG_ORDER,
    PG_RECORDS,
    PG_NEWEST_IDS,
    PG_IDS,
    PG_NEWEST_OF,
    PG_ATTEMPTS,
    PG_LASTING,
    PG_ROWS,
    PG_WHOLE_WINDOW,
    PG_WHOLE_NEXT,
    PG_WHOLE_ROWS,
    PG_EVENTS_UPTO,
    PG_EVENTS_BLOCK,
    PG_EVENTS_FROM,
    PG_EVENTS_FIRST,
    PG_POS_UPTO,
    PG_POS_AFTER,
    PG_EXPORT_NEWEST,
    PG_READ_STATEMENTS
} pg_read_statement_t;

extern const char *const PG_READ_TEXTS[PG_READ_STATEMENTS];

/* What a reader's session is set to. Which index a statement walks is decided by its text, and not
 * by what the server believes to know of the tables, which a moment ago were empty. */
extern const char PG_READ_SESSION[];

/* Columns of the walks. */
enum {
    PG_WALK_PLACE,
    PG_WALK_NUMBER,
    PG_WALK_QUEUE,
    PG_WALK_SESSION,
    PG_WALK_STATUS,
    PG_WALK_OWNER,
    PG_WALK_CREATED_AT,
    PG_WALK_LABELS
};

/* Columns of event blocks; the last two only where they are asked for. */
enum {
    PG_EVENT_FIRST_SEQ,
    PG_EVENT_COUNT,
    PG_EVENT_AT,
    PG_EVENT_POS,
    PG_EVENT_LIST,
    PG_EVENT_NS,
    PG_EVENT_NAME
};

#endif
