/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Three small containers of the core: things by number, things by task id, things by time.
 *
 * None owns what it holds. Failure: exhausted memory is an answer (0, false), never an abort; a
 * removal cannot fail. Not thread-safe. */
#ifndef TASKMQ_CLIENT_TABLES_H
#define TASKMQ_CLIENT_TABLES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "taskmq_types.h"

/* Numbers: made here, never used again, looked up in one step.
 * The item of number n stands in slot n modulo the capacity; a number whose slot is taken by one
 * that lives long is skipped. */
typedef struct core_slots {
    struct core_slot {
        uint64_t number;
        void *item;
    } * slots;
    size_t capacity; /* a power of two, at least twice count */
    size_t count;
    uint64_t newest;
} core_slots_t;

/* The new number of item, never 0; 0 when memory is exhausted. */
uint64_t core_slots_add (core_slots_t *self, void *item);
void *core_slots_get (const core_slots_t *self, uint64_t number); /* NULL: none */
void core_slots_remove (core_slots_t *self, uint64_t number);
void core_slots_free (core_slots_t *self);

/* Task ids: items begin with a node; several items may have the same id. */
typedef struct core_idnode {
    struct core_idnode *next; /* in the chain of its bucket */
    tmq_id_t id;
} core_idnode_t;

typedef struct core_idmap {
    core_idnode_t **buckets;
    size_t capacity; /* a power of two */
    size_t count;
} core_idmap_t;

/* False when memory is exhausted. The node's id must be set. */
bool core_idmap_add (core_idmap_t *self, core_idnode_t *node);
/* The first node of that id, and from a node the next one of the same id. */
core_idnode_t *core_idmap_get (const core_idmap_t *self, const tmq_id_t *id);
core_idnode_t *core_idmap_again (const core_idnode_t *node);
void core_idmap_remove (core_idmap_t *self, core_idnode_t *node);
void core_idmap_free (core_idmap_t *self);

/* Time: a binary heap of timers that are part of what they time. */
typedef enum core_timer_kind {
    CORE_TIMER_REQUEST = 1,
    CORE_TIMER_WAITER,
    CORE_TIMER_LEASE,
    CORE_TIMER_PUSH
} core_timer_kind_t;

typedef struct core_timer {
    int64_t at_ms;
    size_t place; /* 1 + index in the heap, 0: not set */
    core_timer_kind_t kind;
    void *item;
} core_timer_t;

typedef struct core_heap {
    core_timer_t **timers;
    size_t count;
    size_t capacity;
} core_heap_t;

/* Makes room for that many timers, so that setting one cannot fail. */
bool core_heap_reserve (core_heap_t *self, size_t count);
/* Sets the timer or moves it. at_ms INT64_MAX clears it. Room must have been reserved. */
void core_heap_set (core_heap_t *self, core_timer_t *timer, int64_t at_ms);
void core_heap_clear (core_heap_t *self, core_timer_t *timer);
/* The earliest, or NULL. */
core_timer_t *core_heap_first (const core_heap_t *self);
void core_heap_free (core_heap_t *self);

#endif
