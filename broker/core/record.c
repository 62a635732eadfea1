/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Bodies, images of tasks, commit batches and the answers of reads: how they are made and freed.
 * Exhausted memory ends the process with a clear line: what was applied could not be kept. */
#include "core/record.h"

#include <assert.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "core/lookup.h"
#include "core/memory.h"

struct buf {
    atomic_size_t references;
    size_t length;
    uint8_t bytes[];
};

static const uint8_t NO_BYTES[1] = {0};

buf_t *buf_new_uninitialised (size_t length)
{
    buf_t *self = memory_alloc (sizeof (*self) + length);
    atomic_init (&self->references, 1);
    self->length = length;
    return self;
}

buf_t *buf_new (const void *bytes, size_t length)
{
    buf_t *self = buf_new_uninitialised (length);
    if (length > 0)
        memcpy (self->bytes, bytes, length);
    return self;
}

uint8_t *buf_mutable (buf_t *self)
{
    assert (atomic_load_explicit (&self->references, memory_order_relaxed) == 1);
    return self->bytes;
}

buf_t *buf_keep (buf_t *self)
{
    if (self != NULL)
        atomic_fetch_add_explicit (&self->references, 1, memory_order_relaxed);
    return self;
}

void buf_drop (buf_t *self)
{
    if (self == NULL)
        return;
    if (atomic_fetch_sub_explicit (&self->references, 1, memory_order_acq_rel) == 1)
        free (self);
}

const uint8_t *buf_bytes (const buf_t *self)
{
    return self == NULL ? NO_BYTES : self->bytes;
}

size_t buf_length (const buf_t *self)
{
    return self == NULL ? 0 : self->length;
}

/* Tasks. */

static size_t string_room (const char *text)
{
    return text == NULL ? 1 : strlen (text) + 1;
}

static size_t record_room (const record_t *source)
{
    size_t room = sizeof (record_t) + source->labels_count * sizeof (label_t);
    const char *const strings[] = {
        source->ns,
        source->owner,
        source->queue,
        source->session,
        source->method,
        source->content_type,
        source->dedup_key,
        source->meta,
        source->worker,
        source->status_message,
        source->progress_unit,
        source->progress_message,
        source->result_type,
        source->error_message,
        source->error_data,
    };
    for (size_t i = 0; i < sizeof (strings) / sizeof (strings[0]); i++)
        room += string_room (strings[i]);
    for (size_t i = 0; i < source->labels_count; i++)
        room += string_room (source->labels[i].key) + string_room (source->labels[i].value);
    return room;
}

/* Copies text to *end, moves *end behind it and returns where the copy stands. */
static const char *string_place (char **end, const char *text)
{
    char *start = *end;
    size_t room = string_room (text);
    if (text == NULL)
        *start = '\0';
    else
        memcpy (start, text, room);
    *end = start + room;
    return start;
}

static record_t *record_fill (record_t *self, const record_t *source)
{
    *self = *source;
    label_t *labels = (label_t *) (self + 1);
    char *end = (char *) (labels + source->labels_count);
    self->ns = string_place (&end, source->ns);
    self->owner = string_place (&end, source->owner);
    self->queue = string_place (&end, source->queue);
    self->session = string_place (&end, source->session);
    self->method = string_place (&end, source->method);
    self->content_type = string_place (&end, source->content_type);
    self->dedup_key = string_place (&end, source->dedup_key);
    self->meta = string_place (&end, source->meta);
    self->worker = string_place (&end, source->worker);
    self->status_message = string_place (&end, source->status_message);
    self->progress_unit = string_place (&end, source->progress_unit);
    self->progress_message = string_place (&end, source->progress_message);
    self->result_type = string_place (&end, source->result_type);
    self->error_message = string_place (&end, source->error_message);
    self->error_data = string_place (&end, source->error_data);
    for (size_t i = 0; i < source->labels_count; i++) {
        labels[i].key = string_place (&end, source->labels[i].key);
        labels[i].value = string_place (&end, source->labels[i].value);
    }
    self->labels = labels;
    self->payload = buf_keep (source->payload);
    self->result = buf_keep (source->result);
    return self;
}

record_t *record_new (const record_t *source)
{
    return record_fill (memory_alloc (record_room (source)), source);
}

void record_free (record_t *self)
{
    if (self == NULL)
        return;
    buf_drop (self->payload);
    buf_drop (self->result);
    free (self);
}

tmq_phase_t record_phase (const record_t *self, int64_t wall_ms)
{
    if (self->status == TMQ_STATUS_QUEUED)
        return self->not_before > wall_ms ? TMQ_PHASE_SCHEDULED : TMQ_PHASE_READY;
    return self->status == TMQ_STATUS_WORKING ? TMQ_PHASE_LEASED : TMQ_PHASE_NONE;
}

/* The commit batch and reads. */

/* The names of blocks and removals are the batch's own copies. */
static void blocks_free (event_block_t *blocks, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        free ((char *) blocks[i].ns);
        buf_drop (blocks[i].list);
    }
    free (blocks);
}

/* A batch is freed on another thread than made it, which for thousands of single allocations costs
 * more than all the work on them. */
typedef struct record_room {
    struct record_room *next;
    size_t size;
    size_t used;
    _Alignas(record_t) uint8_t bytes[];
} record_room_t;

enum { ROOM_BYTES_MAX = 64 * 1024, ROOM_RECORD_BYTES = sizeof (record_t) + 128 };

static record_room_t *room_new (size_t wanted, size_t expected, record_room_t *next)
{
    size_t size = expected < ROOM_BYTES_MAX / ROOM_RECORD_BYTES ? expected * ROOM_RECORD_BYTES
                                                                : ROOM_BYTES_MAX;
    if (size < wanted)
        size = wanted;
    record_room_t *room = memory_alloc (sizeof (*room) + size);
    *room = (record_room_t){.next = next, .size = size};
    return room;
}

record_t *batch_record_new (batch_t *self, const record_t *source, size_t expected)
{
    const size_t step = _Alignof(record_t);
    size_t wanted = (record_room (source) + step - 1) / step * step;
    if (self->rooms == NULL || self->rooms->size - self->rooms->used < wanted)
        self->rooms = room_new (wanted, expected, self->rooms);
    record_t *record = (record_t *) (void *) (self->rooms->bytes + self->rooms->used);
    self->rooms->used += wanted;
    return record_fill (record, source);
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
    }
    free (self->records);
    while (self->rooms != NULL) {
        record_room_t *next = self->rooms->next;
        free (self->rooms);
        self->rooms = next;
    }
}

void batch_free (batch_t *self)
{
    if (self == NULL)
        return;
    batch_records_free (self);
    free (self->attempts);
    for (size_t i = 0; i < self->removals_count; i++)
        free ((char *) self->removals[i].ns);
    free (self->removals);
    blocks_free (self->blocks, self->blocks_count);
    free (self);
}

static void records_free (record_t **records, size_t count)
{
    for (size_t i = 0; i < count; i++)
        record_free (records[i]);
    free (records);
}

void read_clear (read_t *read)
{
    records_free (read->records, read->records_count);
    buf_drop (read->list);
    blocks_free (read->blocks, read->blocks_count);
    for (size_t i = 0; read->release == NULL && i < read->items_count; i++)
        record_free (read->items[i].record);
    free (read->items);
    if (read->release != NULL)
        read->release (read->held);
    read->records = NULL;
    read->records_count = 0;
    read->list = NULL;
    read->blocks = NULL;
    read->blocks_count = 0;
    read->items = NULL;
    read->items_count = 0;
    read->release = NULL;
    read->held = NULL;
}
