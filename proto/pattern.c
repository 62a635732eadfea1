/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Thompson's machine: all states that a match may be in are kept side by side, each with where its
 * match began. Of two that meet in a state the earlier begun stays, because it covers more. The
 * list is in the order of these beginnings, as each step keeps it: so whoever comes first stays.
 *
 * Failure: memory is taken when patterns are added, and for covers; then nothing was found out. */
#include "pattern.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bytes.h"
#include "pattern_parse.h"

enum { BYTES = 256, NOWHERE = UINT16_MAX };

typedef enum state_kind { STATE_BYTE = 1, STATE_FORK, STATE_END } state_kind_t;

typedef struct state {
    uint8_t set[PATTERN_SET_BYTES]; /* of a BYTE */
    uint16_t next;                  /* NOWHERE: a FORK that is still being made */
    uint16_t other;                 /* of a FORK */
    uint8_t kind;
    uint8_t which; /* of an END */
} state_t;

typedef struct alive {
    size_t from; /* where its match began */
    uint16_t state;
} alive_t;

typedef struct list {
    alive_t *items;
    size_t count;
} list_t;

struct patterns {
    state_t *states;
    size_t states_count;
    uint16_t starts[PATTERNS_MAX];
    size_t count;
    /* What a match may begin with: for each byte the states that take it. */
    uint16_t *firsts;
    uint32_t firsts_at[BYTES + 1];
    bool is_ready;
    /* Of a search. */
    list_t now;
    list_t then;
    uint32_t *seen; /* the step in which a state was reached last */
    uint32_t step;
    uint16_t *waiting; /* forks whose ways are still to be followed */
    bytes_t covers;
};

/* Life. */

patterns_t *patterns_new (void)
{
    patterns_t *self = calloc (1, sizeof (*self));
    if (self == NULL)
        return NULL;
    self->states = calloc (PATTERN_STATES_MAX, sizeof (state_t));
    self->seen = calloc (PATTERN_STATES_MAX, sizeof (uint32_t));
    self->waiting = calloc (2 * PATTERN_STATES_MAX, sizeof (uint16_t));
    self->now.items = calloc (PATTERN_STATES_MAX, sizeof (alive_t));
    self->then.items = calloc (PATTERN_STATES_MAX, sizeof (alive_t));
    if (self->states == NULL || self->seen == NULL || self->waiting == NULL ||
        self->now.items == NULL || self->then.items == NULL)
        patterns_free (&self);
    return self;
}

void patterns_free (patterns_t **self_p)
{
    patterns_t *self = *self_p;
    if (self == NULL)
        return;
    *self_p = NULL;
    free (self->states);
    free (self->seen);
    free (self->waiting);
    free (self->now.items);
    free (self->then.items);
    free (self->firsts);
    bytes_free (&self->covers);
    free (self);
}

size_t patterns_count (const patterns_t *self)
{
    return self->count;
}

/* Making states of a tree, from its end to its beginning. */

/* NOWHERE: there are too many. */
static uint16_t add_state (patterns_t *self, state_kind_t kind, uint16_t next, uint16_t other)
{
    if (self->states_count == PATTERN_STATES_MAX)
        return NOWHERE;
    state_t *state = &self->states[self->states_count];
    memset (state, 0, sizeof (*state));
    state->kind = (uint8_t) kind;
    state->next = next;
    state->other = other;
    return (uint16_t) self->states_count++;
}

static uint16_t make (patterns_t *self, const pattern_tree_t *tree, uint16_t place, uint16_t next);

/* Least times, then as often as it likes. */
static uint16_t make_loop (patterns_t *self, const pattern_tree_t *tree, uint16_t place,
                           uint16_t next)
{
    uint16_t fork = add_state (self, STATE_FORK, NOWHERE, next);
    if (fork == NOWHERE)
        return NOWHERE;
    uint16_t body = make (self, tree, place, fork);
    self->states[fork].next = body;
    return body == NOWHERE ? NOWHERE : fork;
}

static uint16_t make_repeat (patterns_t *self, const pattern_tree_t *tree,
                             const pattern_node_t *node, uint16_t next)
{
    uint16_t end = next;
    uint16_t at = next;
    if (node->most == 0)
        at = make_loop (self, tree, node->left, next);
    for (uint16_t i = node->least; i < node->most && at != NOWHERE; i++) {
        uint16_t body = make (self, tree, node->left, at);
        at = body == NOWHERE ? NOWHERE : add_state (self, STATE_FORK, body, end);
    }
    for (uint16_t i = 0; i < node->least && at != NOWHERE; i++)
        at = make (self, tree, node->left, at);
    return at;
}

/* Where what stands at `place` begins, and goes on to `next`. */
static uint16_t make (patterns_t *self, const pattern_tree_t *tree, uint16_t place, uint16_t next)
{
    const pattern_node_t *node = &tree->nodes[place];
    if (node->kind == PATTERN_REPEAT)
        return make_repeat (self, tree, node, next);
    if (node->kind == PATTERN_BOTH) {
        uint16_t right = make (self, tree, node->right, next);
        return right == NOWHERE ? NOWHERE : make (self, tree, node->left, right);
    }
    if (node->kind == PATTERN_EITHER) {
        uint16_t left = make (self, tree, node->left, next);
        uint16_t right = left == NOWHERE ? NOWHERE : make (self, tree, node->right, next);
        return right == NOWHERE ? NOWHERE : add_state (self, STATE_FORK, left, right);
    }
    uint16_t state = add_state (self, STATE_BYTE, next, NOWHERE);
    if (state != NOWHERE)
        memcpy (self->states[state].set, node->set, PATTERN_SET_BYTES);
    return state;
}

static bool make_pattern (patterns_t *self, const pattern_tree_t *tree,
                          char error[PATTERN_ERROR_SIZE])
{
    size_t before = self->states_count;
    uint16_t end = add_state (self, STATE_END, NOWHERE, NOWHERE);
    uint16_t start = end == NOWHERE ? NOWHERE : make (self, tree, tree->root, end);
    if (start == NOWHERE) {
        self->states_count = before;
        snprintf (error, PATTERN_ERROR_SIZE,
                  "all patterns together need more than %d states; {m,n} repeats what stands "
                  "before it",
                  PATTERN_STATES_MAX);
        return false;
    }
    self->states[end].which = (uint8_t) self->count;
    self->starts[self->count++] = start;
    self->is_ready = false;
    return true;
}

bool patterns_add (patterns_t *self, const char *expression, char error[PATTERN_ERROR_SIZE])
{
    if (self->count == PATTERNS_MAX) {
        snprintf (error, PATTERN_ERROR_SIZE, "there are more than %d patterns", PATTERNS_MAX);
        return false;
    }
    pattern_tree_t *tree = malloc (sizeof (*tree));
    if (tree == NULL) {
        snprintf (error, PATTERN_ERROR_SIZE, "memory is exhausted");
        return false;
    }
    bool good = pattern_parse (tree, expression, error) && make_pattern (self, tree, error);
    free (tree);
    return good;
}

/* Searching. */

/* The state and all that it forks to are alive in this step, unless they are. `ended`: which
 * pattern has a match that ends here, or -1. */
static void follow (patterns_t *self, list_t *list, uint16_t state, size_t from, int *ended)
{
    size_t waiting = 0;
    self->waiting[waiting++] = state;
    while (waiting > 0) {
        uint16_t place = self->waiting[--waiting];
        const state_t *at = &self->states[place];
        if (self->seen[place] == self->step)
            continue;
        self->seen[place] = self->step;
        if (at->kind == STATE_FORK) {
            self->waiting[waiting++] = at->other;
            self->waiting[waiting++] = at->next;
        } else if (at->kind == STATE_END) {
            *ended = at->which;
        } else {
            list->items[list->count++] = (alive_t){from, place};
        }
    }
}

static void next_step (patterns_t *self)
{
    if (++self->step == 0) {
        memset (self->seen, 0, PATTERN_STATES_MAX * sizeof (uint32_t));
        self->step = 1;
    }
}

/* Which states take each byte first. */
static bool get_ready (patterns_t *self)
{
    list_t *list = &self->now;
    int ended = -1;
    next_step (self);
    list->count = 0;
    for (size_t i = 0; i < self->count; i++)
        follow (self, list, self->starts[i], 0, &ended);
    free (self->firsts);
    self->firsts = malloc ((BYTES * list->count + 1) * sizeof (uint16_t));
    if (self->firsts == NULL)
        return false;
    uint32_t used = 0;
    for (unsigned byte = 0; byte < BYTES; byte++) {
        self->firsts_at[byte] = used;
        for (size_t i = 0; i < list->count; i++) {
            uint16_t state = list->items[i].state;
            if (pattern_set_has (self->states[state].set, (uint8_t) byte))
                self->firsts[used++] = state;
        }
    }
    self->firsts_at[BYTES] = used;
    self->is_ready = true;
    return true;
}

/* Covers are kept apart: what a new one overlaps becomes a part of it. Ends come in order. */
static void add_cover (patterns_t *self, pattern_cover_t cover)
{
    while (self->covers.length > 0) {
        pattern_cover_t last;
        size_t before = self->covers.length - sizeof (last);
        memcpy (&last, self->covers.data + before, sizeof (last));
        if (last.to <= cover.from)
            break;
        if (last.from < cover.from) {
            cover.from = last.from;
            cover.which = last.which;
        }
        self->covers.length = before;
    }
    bytes_append (&self->covers, &cover, sizeof (cover));
}

/* Everything that is alive takes one byte; what may begin with it begins. */
static void take_byte (patterns_t *self, uint8_t byte, size_t at)
{
    int ended = -1;
    next_step (self);
    self->then.count = 0;
    for (size_t i = 0; i < self->now.count; i++) {
        const alive_t *alive = &self->now.items[i];
        const state_t *state = &self->states[alive->state];
        if (!pattern_set_has (state->set, byte))
            continue;
        follow (self, &self->then, state->next, alive->from, &ended);
        if (ended >= 0)
            add_cover (self, (pattern_cover_t){alive->from, at + 1, (unsigned) ended});
        ended = -1;
    }
    for (uint32_t i = self->firsts_at[byte]; i < self->firsts_at[byte + 1]; i++) {
        follow (self, &self->then, self->states[self->firsts[i]].next, at, &ended);
        if (ended >= 0)
            add_cover (self, (pattern_cover_t){at, at + 1, (unsigned) ended});
        ended = -1;
    }
    list_t swap = self->now;
    self->now = self->then;
    self->then = swap;
}

bool patterns_find (patterns_t *self, const void *text, size_t length,
                    const pattern_cover_t **covers, size_t *count)
{
    const uint8_t *bytes = text;
    size_t steps = 0;
    if (!self->is_ready && !get_ready (self))
        return false;
    bytes_clear (&self->covers);
    self->now.count = 0;
    for (size_t i = 0; i < length && steps <= PATTERN_STEPS_MAX; i++) {
        uint32_t firsts = self->firsts_at[bytes[i] + 1] - self->firsts_at[bytes[i]];
        if (self->now.count + firsts == 0)
            continue;
        take_byte (self, bytes[i], i);
        steps += self->now.count + self->then.count + firsts;
    }
    *covers = (const pattern_cover_t *) (const void *) self->covers.data;
    *count = self->covers.length / sizeof (**covers);
    return steps <= PATTERN_STEPS_MAX && !self->covers.failed;
}
