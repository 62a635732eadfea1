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

/* The strings of a record. Most are empty in most records, and an empty one needs no copy. */
static const size_t STRINGS[] = {
    offsetof (record_t, ns),
    offsetof (record_t, owner),
    offsetof (record_t, queue),
    offsetof (record_t, session),
    offsetof (record_t, method),
    offsetof (record_t, content_type),
    offsetof (record_t, dedup_key),
    offsetof (record_t, meta),
    offsetof (record_t, worker),
    offsetof (record_t, status_message),
    offsetof (record_t, progress_unit),
    offsetof (record_t, progress_message),
    offsetof (record_t, result_type),
    offsetof (record_t, error_message),
    offsetof (record_t, error_data),
};
enum { STRINGS_COUNT = sizeof (STRINGS) / sizeof (STRINGS[0]) };

/* What a copy of a record takes. */
typedef struct room {
    size_t total;
    size_t strings[STRINGS_COUNT]; /* with their NUL; 0: empty */
} room_t;

static const char *string_at (const record_t *record, size_t i)
{
    const char *text;
    memcpy (&text, (const char *) record + STRINGS[i], sizeof (text));
    return text;
}

static size_t string_room (const char *text)
{
    return text == NULL || text[0] == '\0' ? 0 : strlen (text) + 1;
}

static void record_room (const record_t *source, room_t *out)
{
    out->total = sizeof (record_t) + source->labels_count * sizeof (label_t);
    for (size_t i = 0; i < STRINGS_COUNT; i++) {
        out->strings[i] = string_room (string_at (source, i));
        out->total += out->strings[i];
    }
    for (size_t i = 0; i < source->labels_count; i++)
        out->total += string_room (source->labels[i].key) + string_room (source->labels[i].value);
}

size_t record_wire_bytes (const record_t *self)
{
    enum { NUMBERS_BYTES = 100 }; /* id, times and what else every task has */
    room_t room;
    record_room (self, &room);
    return NUMBERS_BYTES + room.total - sizeof (record_t);
}

/* Copies text to *end, moves *end behind it and returns where the copy stands. */
static const char *string_place (char **end, const char *text, size_t room)
{
    if (room == 0)
        return "";
    char *start = *end;
    memcpy (start, text, room);
    *end = start + room;
    return start;
}

static record_t *record_fill (record_t *self, const record_t *source, const room_t *room)
{
    *self = *source;
    label_t *labels = (label_t *) (self + 1);
    char *end = (char *) (labels + source->labels_count);
    for (size_t i = 0; i < STRINGS_COUNT; i++) {
        const char *copy = string_place (&end, string_at (source, i), room->strings[i]);
        memcpy ((char *) self + STRINGS[i], &copy, sizeof (copy));
    }
    for (size_t i = 0; i < source->labels_count; i++) {
        const label_t *label = &source->labels[i];
        labels[i].key = string_place (&end, label->key, string_room (label->key));
        labels[i].value = string_place (&end, label->value, string_room (label->value));
    }
    self->labels = labels;
    self->payload = buf_keep (source->payload);
    self->result = buf_keep (source->result);
    return self;
}

record_t *record_new (const record_t *source)
{
    room_t room;
    record_room (source, &room);
    return record_fill (memory_alloc (room.total), source, &room);
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

static void rows_free (row_t *rows, size_t count)
{
    for (size_t i = 0; i < count; i++)
        row_drop (&rows[i]);
    free (rows);
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
    room_t room;
    record_room (source, &room);
    size_t wanted = (room.total + step - 1) / step * step;
    if (self->rooms == NULL || self->rooms->size - self->rooms->used < wanted)
        self->rooms = room_new (wanted, expected, self->rooms);
    record_t *record = (record_t *) (void *) (self->rooms->bytes + self->rooms->used);
    self->rooms->used += wanted;
    return record_fill (record, source, &room);
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
    rows_free (self->rows, self->rows_count);
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
    rows_free (read->rows, read->rows_count);
    free (read->items);
    if (read->release != NULL)
        read->release (read->held);
    read->records = NULL;
    read->records_count = 0;
    read->list = NULL;
    read->blocks = NULL;
    read->blocks_count = 0;
    read->rows = NULL;
    read->rows_count = 0;
    read->items = NULL;
    read->items_count = 0;
    read->release = NULL;
    read->held = NULL;
}
