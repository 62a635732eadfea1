/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* What subscriptions and workers have in common: a place among the others of the client, somebody
 * who waits on it, and an answer that tells the application to look. */
#ifndef TASKMQ_CLIENT_PART_H
#define TASKMQ_CLIENT_PART_H

#include "base/answers.h"

/* The first member of its owner. */
typedef struct core_part {
    struct core_part *next;
    struct core_part *previous;
    struct core_part *next_woken;
    void *owner; /* whom core_parts_woken names */
    bool woken;
    bool notify;         /* `ready` becomes a completion … */
    core_answer_t ready; /* … when it has something; embedded */
} core_part_t;

typedef struct core_parts {
    core_part_t *first;
    core_part_t *woken;
    core_answers_t *answers;
} core_parts_t;

#define CORE_PARTS_EACH(type, self, parts)                                                         \
    for (type *self = (type *) (parts)->first; self != NULL; self = (type *) self->part.next)

void core_part_init (core_part_t *self, tmq_op_t op, bool notify, void *user);
void core_parts_add (core_parts_t *all, core_part_t *self, void *owner);
void core_parts_remove (core_parts_t *all, core_part_t *self);
/* It has something for the application. */
void core_parts_wake (core_parts_t *all, core_part_t *self);
/* One that was woken; false for none. */
bool core_parts_woken (core_parts_t *all, void **owner);

#endif
