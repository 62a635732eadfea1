/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* What a start of the engine is given (store_live), whatever the tables are kept in: what they
 * have, corrected by what is durable and not in them yet. The backend tells of its rows in their
 * order. */
#ifndef TASKMQ_STORE_LIVE_H
#define TASKMQ_STORE_LIVE_H

#include "store/overlay.h"
#include "store/store.h"

typedef struct live {
    const store_live_visitor_t *visitor;
    const overlay_t *overlay; /* or NULL */
    size_t next_record;       /* in the overlay */
    size_t next_row;
} live_t;

void live_init (live_t *self, const store_live_visitor_t *visitor, const overlay_t *overlay);

/* A kind of rows that lives in memory begins; its rows in order of their keys; it has ended. The
 * visitor has a function for them. */
void live_kind (live_t *self, row_kind_t kind);
void live_row (live_t *self, const row_t *row);
void live_kind_end (live_t *self, row_kind_t kind);

/* The tables have a live task with this number. False: a newer image takes its place, so the row is
 * not wanted. */
bool live_wants (live_t *self, int64_t number);
void live_task (live_t *self, record_t *record); /* takes the record */
void live_tasks_end (live_t *self);

/* A namespace of the tables with its last sequence there. */
void live_space (live_t *self, const char *name, uint64_t last_seq);
/* Namespace `position` of the overlay, NULL behind the last one: those that the tables do not know
 * are told of by live_space, too. */
const char *live_new_space (const live_t *self, size_t position);

#endif
