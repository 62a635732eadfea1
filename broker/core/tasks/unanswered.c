/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* An array in the order of numbers. What is answered leaves a hole; when the holes are more than
 * the questions, they are closed. So each change costs a search, and a walk meets few holes. */
#include "core/tasks/unanswered.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/memory.h"

/* The first place of a greater number. */
static size_t find (const unanswered_t *self, uint64_t after)
{
    size_t low = 0;
    size_t high = self->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (self->list[middle].number > after)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

/* Mostly behind the newest; at a start they come in the order of tasks. */
void unanswered_add (unanswered_t *self, uint64_t number, struct question *question)
{
    self->list = memory_grow (self->list, &self->capacity, self->count, sizeof (*self->list));
    size_t at = find (self, number);
    memmove (self->list + at + 1, self->list + at, (self->count - at) * sizeof (*self->list));
    self->list[at] = (unanswered_entry_t){number, question};
    self->count++;
    self->open++;
}

static void close_holes (unanswered_t *self)
{
    size_t kept = 0;
    for (size_t i = 0; i < self->count; i++)
        if (self->list[i].question != NULL)
            self->list[kept++] = self->list[i];
    self->count = kept;
}

void unanswered_remove (unanswered_t *self, uint64_t number)
{
    enum { HOLES_MIN = 64 };
    size_t at = find (self, number - 1);
    assert (at < self->count && self->list[at].number == number);
    self->list[at].question = NULL;
    self->open--;
    if (self->count - self->open > self->open + HOLES_MIN)
        close_holes (self);
}

struct question *unanswered_next (const unanswered_t *self, uint64_t after, size_t *cursor)
{
    if (*cursor == UNANSWERED_START)
        *cursor = find (self, after);
    while (*cursor < self->count) {
        struct question *question = self->list[(*cursor)++].question;
        if (question != NULL)
            return question;
    }
    return NULL;
}

void unanswered_clear (unanswered_t *self)
{
    free (self->list);
    *self = (unanswered_t){0};
}
