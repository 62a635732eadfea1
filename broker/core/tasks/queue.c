/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Ready order: a bitmap of priorities, a FIFO list and a pairing heap of returned tasks
 * for each. */
#include "core/tasks/queue.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/memory.h"

/* The heap of returned tasks.
 * A pairing heap inside the tasks: `returned` is the first child, place.next the next sibling,
 * place.prev the previous sibling, or the parent for a first child. A node_t's address stands for
 * its task. */

static task_t *task_of (const node_t *node)
{
    return node == NULL ? NULL : LIST_ITEM (node, task_t, place);
}

static task_t *heap_meld (task_t *a, task_t *b)
{
    if (a == NULL)
        return b;
    if (b == NULL)
        return a;
    if (b->number < a->number) {
        task_t *swap = a;
        a = b;
        b = swap;
    }
    b->place.prev = &a->place;
    b->place.next = a->returned == NULL ? NULL : &a->returned->place;
    if (a->returned != NULL)
        a->returned->place.prev = &b->place;
    a->returned = b;
    return a;
}

/* Melds a list of siblings in two passes: pairs from left to right, the pairs from right
 * to left. */
static task_t *heap_meld_siblings (task_t *first)
{
    task_t *pairs = NULL;
    while (first != NULL) {
        task_t *second = task_of (first->place.next);
        task_t *rest = second == NULL ? NULL : task_of (second->place.next);
        first->place = (node_t){0};
        if (second != NULL)
            second->place = (node_t){0};
        task_t *pair = heap_meld (first, second);
        pair->place.next = pairs == NULL ? NULL : &pairs->place;
        pairs = pair;
        first = rest;
    }
    task_t *root = NULL;
    while (pairs != NULL) {
        task_t *rest = task_of (pairs->place.next);
        pairs->place = (node_t){0};
        root = heap_meld (root, pairs);
        pairs = rest;
    }
    return root;
}

static task_t *heap_remove (task_t *root, task_t *task)
{
    task_t *children = heap_meld_siblings (task->returned);
    task->returned = NULL;
    if (task == root)
        return children;
    task_t *before = task_of (task->place.prev);
    if (before->returned == task)
        before->returned = task_of (task->place.next);
    else
        before->place.next = task->place.next;
    if (task->place.next != NULL)
        task->place.next->prev = task->place.prev;
    task->place = (node_t){0};
    return heap_meld (root, children);
}

/* The order. */

void queue_init (queue_t *self, space_t *space, const char *name)
{
    *self = (queue_t){.space = space};
    list_init (&self->waiting);
    strncpy (self->name, name, TMQ_NAME_LENGTH_MAX);
}

enum { GROUP_BYTES = LEVEL_GROUP * sizeof (level_t) + ALLOCATION_BYTES };

void queue_clear (queue_t *self)
{
    for (size_t i = 0; i < LEVEL_GROUPS; i++) {
        queue_count (self, 0, self->groups[i] == NULL ? 0 : GROUP_BYTES);
        free (self->groups[i]);
    }
}

level_t *queue_level (queue_t *self, unsigned priority)
{
    level_t **group = &self->groups[priority / LEVEL_GROUP];
    if (*group == NULL) {
        *group = memory_zero (LEVEL_GROUP, sizeof (**group));
        queue_count (self, GROUP_BYTES, 0);
        for (size_t i = 0; i < LEVEL_GROUP; i++)
            list_init (&(*group)[i].fifo);
    }
    return &(*group)[priority % LEVEL_GROUP];
}

void level_push (level_t *self, task_t *task)
{
    assert (!task->ready);
    const node_t *last = self->fifo.prev;
    task->in_heap = last != &self->fifo && LIST_ITEM (last, task_t, place)->number > task->number;
    if (task->in_heap)
        self->returned = heap_meld (self->returned, task);
    else
        list_push_back (&self->fifo, &task->place);
    task->ready = true;
}

void level_remove (level_t *self, task_t *task)
{
    assert (task->ready);
    if (task->in_heap)
        self->returned = heap_remove (self->returned, task);
    else
        list_remove (&task->place);
    task->ready = false;
    task->in_heap = false;
}

task_t *level_first (const level_t *self)
{
    task_t *fifo = task_of (list_first (&self->fifo));
    if (self->returned == NULL)
        return fifo;
    if (fifo == NULL || self->returned->number < fifo->number)
        return self->returned;
    return fifo;
}

size_t level_peek_cold (const level_t *self, task_t **out, size_t limit)
{
    size_t found = 0;
    size_t seen = 0;
    if (self->returned != NULL && seen++ < limit && task_is_cold (self->returned))
        out[found++] = self->returned;
    for (node_t *node = self->fifo.next; node != &self->fifo && seen < limit;
         node = node->next, seen++)
        if (task_is_cold (task_of (node)))
            out[found++] = task_of (node);
    return found;
}

void queue_push (queue_t *self, task_t *task)
{
    level_push (queue_level (self, task->priority), task);
    self->ready++;
    self->used[task->priority / 64] |= UINT64_C (1) << (task->priority % 64);
}

void queue_remove (queue_t *self, task_t *task)
{
    level_t *level = queue_level (self, task->priority);
    level_remove (level, task);
    self->ready--;
    if (list_is_empty (&level->fifo) && level->returned == NULL)
        self->used[task->priority / 64] &= ~(UINT64_C (1) << (task->priority % 64));
}

task_t *queue_first (queue_t *self)
{
    if (self->ready == 0)
        return NULL;
    for (int word = 3; word >= 0; word--) {
        if (self->used[word] == 0)
            continue;
        int bit = 63 - __builtin_clzll (self->used[word]);
        return level_first (queue_level (self, (unsigned) (word * 64 + bit)));
    }
    return NULL;
}

const task_t *queue_oldest (queue_t *self)
{
    const task_t *oldest = NULL;
    for (int word = 0; word < 4; word++)
        for (uint64_t left = self->used[word]; left != 0; left &= left - 1) {
            int bit = __builtin_ctzll (left);
            const task_t *first = level_first (queue_level (self, (unsigned) (word * 64 + bit)));
            if (first != NULL && (oldest == NULL || first->number < oldest->number))
                oldest = first;
        }
    return oldest;
}

size_t queue_peek_cold (queue_t *self, task_t **out, size_t limit)
{
    size_t found = 0;
    for (int priority = 255; priority >= 0 && found < limit; priority--)
        if ((self->used[priority / 64] & (UINT64_C (1) << (priority % 64))) != 0)
            found += level_peek_cold (queue_level (self, (unsigned) priority), out + found,
                                      limit - found);
    return found;
}

size_t queue_position (const queue_t *self, const task_t *task, size_t looks)
{
    size_t position = 1;
    for (int priority = 255; priority >= task->priority && position < looks; priority--) {
        if ((self->used[priority / 64] & (UINT64_C (1) << (priority % 64))) == 0)
            continue;
        const level_t *level = &self->groups[priority / LEVEL_GROUP][priority % LEVEL_GROUP];
        if (level->returned != NULL && queue_before (level->returned, task))
            position++;
        for (const node_t *node = level->fifo.next;
             node != &level->fifo && position < looks && queue_before (task_of (node), task);
             node = node->next)
            position++;
    }
    return position;
}

bool queue_before (const task_t *a, const task_t *b)
{
    return a->priority != b->priority ? a->priority > b->priority : a->number < b->number;
}
