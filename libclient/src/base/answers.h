/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Answers on their way to the application, in the order in which they came.
 *
 * An answer is part of what it answers (a request, a waiter, a subscription), so giving it cannot
 * fail. */
#ifndef TASKMQ_CLIENT_ANSWERS_H
#define TASKMQ_CLIENT_ANSWERS_H

#include "arena.h"
#include "taskmq.h"

#define CORE_NEVER INT64_MAX

/* Whoever is to get the answer of an operation, and whom it is for. */
typedef struct core_target {
    void *waiter;      /* a blocking call; NULL: it becomes a completion */
    void *user;        /* of the completion */
    const char *owner; /* that we act for; NULL: ourselves */
} core_target_t;

typedef struct core_answer {
    struct core_answer *next;
    struct core_answer *previous;
    void *waiter;
    tmq_completion_t completion;
    void *shared;  /* of blocking calls about what is shared: one allocation */
    bool embedded; /* part of a longer life: not freed on delivery */
    bool queued;   /* among the completions that the application has not taken */
} core_answer_t;

typedef struct core_answers {
    core_answer_t *first;
    core_answer_t *last;
} core_answers_t;

/* What stands behind a report about keys: it is freed with the arena that it lies in. */
typedef struct core_access {
    tmq_access_t report; /* first */
    arena_t *arena;
    char *join; /* the secret of it, to be wiped; NULL: none */
} core_access_t;

/* The same of a list of workers. */
typedef struct core_roster {
    tmq_worker_list_t list; /* first */
    arena_t *arena;
} core_roster_t;

void core_answers_push (core_answers_t *self, core_answer_t *answer);
/* The next one; NULL for none. It is the caller's. */
core_answer_t *core_answers_pop (core_answers_t *self);
/* Takes one that is part of something else back, if it has not been given away. */
void core_answers_withdraw (core_answers_t *self, const core_answer_t *answer);

/* Fills the answer's code and error. text NULL: the code's own. */
void core_answer_set (core_answer_t *answer, int code, const char *text, uint32_t retry_after_ms);
/* Accepts NULL. */
void core_answer_free (core_answer_t *answer);

#endif
