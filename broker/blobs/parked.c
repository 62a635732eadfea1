/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

#include "blobs/parked.h"

#include <assert.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/memory.h"

void parked_init (parked_t *self)
{
    *self = (parked_t){0};
}

void parked_clear (parked_t *self)
{
    free (self->files);
    parked_init (self);
}

void parked_add (parked_t *self, const char *name, uint64_t bytes, int64_t since_ms)
{
    assert (self->count < PARKED_MAX);
    self->files = memory_grow (self->files, &self->capacity, self->count, sizeof (*self->files));
    parked_file_t *file = &self->files[self->count++];
    *file = (parked_file_t){.bytes = bytes, .since_ms = since_ms};
    snprintf (file->name, sizeof (file->name), "%s", name);
}

void parked_drop (parked_t *self, const char *name)
{
    for (size_t i = 0; i < self->count; i++) {
        if (strcmp (self->files[i].name, name) == 0) {
            self->files[i] = self->files[--self->count];
            return;
        }
    }
}

static bool is_beside (const parked_file_t *file, const char *name)
{
    return strncmp (file->name, name, PARKED_OWNER_LENGTH) == 0 && strcmp (file->name, name) != 0;
}

uint64_t parked_beside (const parked_t *self, const char *name)
{
    uint64_t bytes = 0;
    for (size_t i = 0; i < self->count; i++)
        if (is_beside (&self->files[i], name))
            bytes += self->files[i].bytes;
    return bytes;
}

const parked_file_t *parked_oldest (parked_t *self, const char *name, int64_t mono_ms,
                                    int64_t still_ms)
{
    const parked_file_t *oldest = NULL;
    for (size_t i = 0; i < self->count; i++) {
        parked_file_t *file = &self->files[i];
        if (file->since_ms == PARKED_UNKNOWN && still_ms > 0)
            file->since_ms = mono_ms;
        if ((name == NULL || is_beside (file, name)) &&
            (still_ms == 0 || mono_ms - file->since_ms >= still_ms) &&
            (oldest == NULL || file->since_ms < oldest->since_ms))
            oldest = file;
    }
    return oldest;
}
