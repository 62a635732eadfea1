/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Tasks with their parts, the parts of these, and so on. */
#ifndef TASKCTL_TREE_H
#define TASKCTL_TREE_H

#include <stdint.h>

#include "line/app.h"
#include "taskmq.h"

enum { TREE_TASKS_MAX = 10000 }; /* with which one command has to do */

typedef struct tree {
    tmq_id_t *ids; /* each once, parents before their parts */
    size_t count;
    tmq_id_t *sorted; /* those of the looks before */
    bool *has_parts;
} tree_t;

/* The tasks of ids, and all that were parts of them when it was looked. 0 or an exit code; to be
 * cleared in any case. */
int tree_open (tree_t *out, app_t *app, const tmq_id_t *ids, size_t count);
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
