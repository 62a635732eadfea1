/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Tasks with their parts, the parts of these, and so on. */
#ifndef TASKCTL_TREE_H
#define TASKCTL_TREE_H

#include <stdint.h>

#include "line/app.h"
#include "taskmq.h"

/* With how many tasks one command has to do. What grows without an end has to be stopped all the
 * same. */
enum { TREE_WAIT_MAX = 10000, TREE_CANCEL_MAX = 1000000 };

typedef struct tree {
    tmq_id_t *ids; /* each once, parents before their parts; elsewhere after each look */
    size_t count;
    size_t capacity;
    size_t max;
    tmq_id_t *sorted; /* those of the looks before */
    bool *has_parts;
} tree_t;

/* The tasks of ids, and all that were parts of them when it was looked; max: of both. 0 or an exit
 * code; to be cleared in any case. */
int tree_open (tree_t *out, app_t *app, const tmq_id_t *ids, size_t count, size_t max);
/* Looks again: what was submitted meanwhile stands behind the others. */
int tree_grow (tree_t *self, app_t *app);
void tree_clear (tree_t *self);

/* How many parts a task has, by their status; not the parts of parts. */
typedef struct parts {
    uint64_t total;
    uint64_t of[TMQ_STATUS_CANCELLED + 1];
} parts_t;
/* A code of taskmq_types.h. */
int parts_count (parts_t *out, app_t *app, const tmq_id_t *id, tmq_error_t *error);

#endif
