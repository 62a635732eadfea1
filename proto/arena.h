/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* An arena: memory for one message after the other, with a budget.
 *
 * What is decoded from a peer is laid into an arena, read, and forgotten by one reset. Blocks are
 * kept over a reset, so the steady state allocates nothing. A request beyond the budget gives NULL,
 * as does exhausted memory: both are the message's problem, not the process's. */
#ifndef TASKMQ_PROTO_ARENA_H
#define TASKMQ_PROTO_ARENA_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>

typedef struct arena arena_t;

/* budget_bytes: what may be handed out for one message. NULL when memory is exhausted. */
arena_t *arena_new (size_t budget_bytes);
void arena_free (arena_t *self); /* accepts NULL */
/* Forgets everything that was handed out; keeps the blocks for what comes next (unless they have
 * become more than eight budgets). */
void arena_reset (arena_t *self);
/* The next message begins, with a budget of its own; what was handed out before it stays valid. For
 * those who keep several messages in one arena, one drain for instance. */
void arena_next_message (arena_t *self);
/* Aligned for every type, undefined contents; size 0 is allowed. NULL beyond the budget. */
void *arena_alloc (arena_t *self, size_t size);
/* As arena_alloc, zeroed, for count elements; NULL also if the product overflows. */
void *arena_zalloc (arena_t *self, size_t count, size_t size);
/* A formatted string of at most 511 bytes (longer texts are cut); NULL beyond the budget. */
const char *arena_vprintf (arena_t *self, const char *format, va_list arguments)
    __attribute__ ((format (printf, 2, 0)));
/* Bytes handed out for this message. */
size_t arena_used (const arena_t *self);

#endif
