/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* The commit batch. */
#include <stdlib.h>
#include <string.h>

#include "core/base/memory.h"
#include "core/data/batch.h"

void event_blocks_free (event_block_t *blocks, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        free ((char *) blocks[i].ns);
        buf_drop (blocks[i].list);
    }
    free (blocks);
}

attempt_t *attempt_new (const attempt_t *source)
{
    attempt_t *self = memory_alloc (sizeof (*self));
    *self = *source;
    return self;
}

/* A batch is freed on another thread than made it, which for thousands of single allocations costs
 * more than all the work on them. */
typedef struct batch_room {
    struct batch_room *next;
    size_t size;
    size_t used;
    _Alignas(record_t) uint8_t bytes[];
} batch_room_t;

enum { ROOM_BYTES_MAX = 64 * 1024, ROOM_RECORD_BYTES = sizeof (record_t) + 128 };

static batch_room_t *room_new (size_t wanted, size_t expected, batch_room_t *next)
{
    size_t size = expected < ROOM_BYTES_MAX / ROOM_RECORD_BYTES ? expected * ROOM_RECORD_BYTES
                                                                : ROOM_BYTES_MAX;
    if (size < wanted)
        size = wanted;
    batch_room_t *room = memory_alloc (sizeof (*room) + size);
    *room = (batch_room_t){.next = next, .size = size};
    return room;
}

record_t *batch_record_new (batch_t *self, const record_t *source, size_t expected)
{
    const size_t step = _Alignof(record_t);
    record_room_t room;
    record_measure (source, &room);
    size_t wanted = (room.total + step - 1) / step * step;
    if (self->rooms == NULL || self->rooms->size - self->rooms->used < wanted)
        self->rooms = room_new (wanted, expected, self->rooms);
    void *place = self->rooms->bytes + self->rooms->used;
    self->rooms->used += wanted;
    return record_place (place, source, &room);
}

static void batch_records_free (batch_t *self)
{
    for (size_t i = 0; i < self->records_count; i++) {
        if (self->rooms == NULL) {
            record_free (self->records[i]);
            continue;
        }
        buf_drop (self->records[i]->payload);
        buf_drop (self->records[i]->result);
        buf_drop (self->records[i]->extra);
    }
    free (self->records);
    while (self->rooms != NULL) {
        batch_room_t *next = self->rooms->next;
        free (self->rooms);
        self->rooms = next;
    }
}

void removal_clear (removal_t *self)
{
    free ((char *) self->ns);
    free ((char *) self->owner);
    free ((char *) self->queue);
}

void batch_free (batch_t *self)
{
    if (self == NULL)
        return;
    batch_records_free (self);
    free (self->attempts);
    for (size_t i = 0; i < self->removals_count; i++)
        removal_clear (&self->removals[i]);
    free (self->removals);
    event_blocks_free (self->blocks, self->blocks_count);
    rows_free (self->rows, self->rows_count);
    free (self);
}
