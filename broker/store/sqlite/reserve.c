/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* The reserve file. Nothing depends on it: a failure to make it only means that it is missing. */
#include "store/sqlite/reserve.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/base/memory.h"
#include "store/space.h"

enum {
    RESERVE_BYTES = 16 * 1024 * 1024,
    /* Taken only where so much stays free that taking it does not make the disk full again. */
    RESERVE_ROOM_BYTES = 4 * RESERVE_BYTES
};

static const char NAME[] = "reserve";

void reserve_init (reserve_t *self, const char *directory)
{
    size_t room = strlen (directory) + 1 + sizeof (NAME);
    self->directory = memory_text (directory);
    self->path = memory_alloc (room);
    snprintf (self->path, room, "%s/%s", directory, NAME);
    self->held = false;
}

void reserve_destroy (reserve_t *self)
{
    free (self->path);
    free (self->directory);
}

void reserve_begin (reserve_t *self)
{
    if (space_free_bytes (self->directory) < RESERVE_BYTES)
        reserve_release (self);
}

void reserve_take (reserve_t *self)
{
    if (self->held || space_free_bytes (self->directory) < RESERVE_ROOM_BYTES)
        return;
    int fd = open (self->path, O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600);
    if (fd < 0)
        return; /* also for a link, which may lead anywhere */
    self->held = posix_fallocate (fd, 0, RESERVE_BYTES) == 0;
    close (fd);
    if (!self->held)
        unlink (self->path);
}

void reserve_release (reserve_t *self)
{
    /* Whether or not this run made it: one from an earlier run gives its space back as well. */
    unlink (self->path);
    self->held = false;
}
