/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

#include "arena.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    /* A message with one small request takes about 1 KiB, a full envelope up to 690 KiB. */
    ARENA_BLOCK_BYTES = 16 * 1024,
    /* Blocks double up to here, so that a drain of many messages takes few of them. */
    ARENA_BLOCK_BYTES_MAX = 256 * 1024,
    ARENA_BUDGETS_KEPT = 8,
    ARENA_TEXT_BYTES_MAX = 512
};

typedef struct block {
    struct block *next;
    size_t size; /* of bytes */
    _Alignas(max_align_t) uint8_t bytes[];
} block_t;

struct arena {
    size_t budget;
    size_t handed_out;
    size_t held; /* in all blocks */
    block_t *first;
    block_t *current; /* the blocks behind it are empty */
    size_t used;      /* of the current block */
};

arena_t *arena_new (size_t budget_bytes)
{
    arena_t *self = calloc (1, sizeof *self);
    if (self == NULL)
        return NULL;
    self->budget = budget_bytes;
    return self;
}

static void arena_free_blocks (arena_t *self)
{
    while (self->first != NULL) {
        block_t *next = self->first->next;
        free (self->first);
        self->first = next;
    }
    self->held = 0;
}

void arena_free (arena_t *self)
{
    if (self == NULL)
        return;
    arena_free_blocks (self);
    free (self);
}

void arena_reset (arena_t *self)
{
    /* Messages of many shapes can leave blocks that none of them fills. */
    if (self->held / ARENA_BUDGETS_KEPT > self->budget)
        arena_free_blocks (self);
    self->current = self->first;
    self->used = 0;
    arena_next_message (self);
}

void arena_next_message (arena_t *self)
{
    self->handed_out = 0;
}

/* Size of a new block that shall have room for size bytes. */
static size_t arena_block_size (const arena_t *self, size_t size)
{
    size_t wanted = self->held < ARENA_BLOCK_BYTES ? ARENA_BLOCK_BYTES : self->held;
    if (wanted > ARENA_BLOCK_BYTES_MAX)
        wanted = ARENA_BLOCK_BYTES_MAX;
    return size > wanted ? size : wanted;
}

/* Makes the next block that has room for size the current one. */
static bool arena_advance (arena_t *self, size_t size)
{
    block_t *next = self->current != NULL ? self->current->next : NULL;
    if (next == NULL || next->size < size) {
        size_t block_size = arena_block_size (self, size);
        block_t *block = malloc (sizeof *block + block_size);
        if (block == NULL)
            return false;
        block->size = block_size;
        self->held += block_size;
        block->next = next;
        if (self->current != NULL)
            self->current->next = block;
        else
            self->first = block;
        next = block;
    }
    self->current = next;
    self->used = 0;
    return true;
}

/* True if the current block, perhaps a new one, has room for size bytes. */
static bool arena_has_room (arena_t *self, size_t size)
{
    if (size > self->budget - self->handed_out)
        return false;
    if (self->current != NULL && size <= self->current->size - self->used)
        return true;
    return arena_advance (self, size);
}

void *arena_alloc (arena_t *self, size_t size)
{
    const size_t mask = _Alignof(max_align_t) - 1;
    size_t rounded = (size + mask) & ~mask;
    if (rounded < size || !arena_has_room (self, rounded))
        return NULL;
    void *result = self->current->bytes + self->used;
    self->used += rounded;
    self->handed_out += rounded;
    return result;
}

void *arena_zalloc (arena_t *self, size_t count, size_t size)
{
    size_t total;
    if (__builtin_mul_overflow (count, size, &total))
        return NULL;
    void *result = arena_alloc (self, total);
    if (result != NULL)
        memset (result, 0, total);
    return result;
}

const char *arena_vprintf (arena_t *self, const char *format, va_list arguments)
{
    char text[ARENA_TEXT_BYTES_MAX];
    int length = vsnprintf (text, sizeof text, format, arguments);
    if (length < 0)
        return NULL;
    size_t size = (size_t) length < sizeof text ? (size_t) length + 1 : sizeof text;
    char *copy = arena_alloc (self, size);
    if (copy != NULL)
        memcpy (copy, text, size);
    return copy;
}

size_t arena_used (const arena_t *self)
{
    return self->handed_out;
}
