/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* What tasks are found by of their turns, whatever it is kept in: marks stand behind the labels of
 * their task, each once, for the place of one is a sum of it. */
#ifndef TASKMQ_STORE_MARKS_H
#define TASKMQ_STORE_MARKS_H

#include "core/data/row.h"
#include "core/data/turn.h"

typedef struct marks {
    const char *ns; /* of the task; borrowed from the row, as the id */
    const uint8_t *id;
    turn_t turn;
    size_t next;
} marks_t;

/* False: the row is of another kind, gone or damaged, and has none. */
bool marks_open (marks_t *self, const row_t *row);
bool marks_next (marks_t *self, turn_mark_t *mark, int64_t *place);

#endif
