/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* A small reader of protobuf's wire format, for the few fields of taskmq.Event that the store
 * needs. The lists were packed by the broker; damage is reported, never followed. */
#include "store/events.h"

#include <stdlib.h>
#include <string.h>

#include "core/memory.h"

/* Numbers of fields in proto/taskmq.proto. */
enum { LIST_EVENTS = 1, EVENT_SEQ = 1, EVENT_AT = 2, EVENT_TASK_ID = 4, EVENT_PREVIOUS_SEQ = 15 };

enum { WIRE_VARINT = 0, WIRE_FIXED64 = 1, WIRE_BYTES = 2, WIRE_FIXED32 = 5 };

typedef struct field {
    uint64_t number;
    uint64_t value;       /* of a varint */
    const uint8_t *bytes; /* of bytes, else NULL */
    size_t length;
} field_t;

static bool read_varint (const uint8_t **next, const uint8_t *end, uint64_t *value)
{
    *value = 0;
    for (unsigned shift = 0; shift < 64 && *next < end; shift += 7) {
        uint8_t byte = *(*next)++;
        *value |= (uint64_t) (byte & 0x7f) << shift;
        if ((byte & 0x80) == 0)
            return true;
    }
    return false;
}

static bool read_field (const uint8_t **next, const uint8_t *end, field_t *field)
{
    uint64_t tag;
    uint64_t length = 0;
    if (!read_varint (next, end, &tag))
        return false;
    *field = (field_t){.number = tag >> 3};
    switch (tag & 7) {
    case WIRE_VARINT: return read_varint (next, end, &field->value);
    case WIRE_FIXED64: length = 8; break;
    case WIRE_FIXED32: length = 4; break;
    case WIRE_BYTES:
        if (!read_varint (next, end, &length))
            return false;
        break;
    default: return false;
    }
    if (length > (uint64_t) (end - *next))
        return false;
    field->bytes = *next;
    field->length = (size_t) length;
    *next += length;
    return true;
}

event_walk_t event_walk (const uint8_t *list, size_t list_bytes)
{
    return (event_walk_t){list, list + list_bytes, false};
}

bool event_walk_next (event_walk_t *walk, event_view_t *event)
{
    if (walk->next == walk->end)
        return false;
    field_t field;
    *event = (event_view_t){.packed = walk->next};
    if (!read_field (&walk->next, walk->end, &field) || field.number != LIST_EVENTS ||
        field.bytes == NULL) {
        walk->damaged = true;
        return false;
    }
    event->packed_bytes = (size_t) (walk->next - event->packed);
    const uint8_t *next = field.bytes;
    const uint8_t *end = field.bytes + field.length;
    while (next < end) {
        if (!read_field (&next, end, &field)) {
            walk->damaged = true;
            return false;
        }
        switch (field.number) {
        case EVENT_SEQ: event->seq = field.value; break;
        case EVENT_AT: event->at = (int64_t) field.value; break;
        case EVENT_PREVIOUS_SEQ: event->previous_seq = field.value; break;
        case EVENT_TASK_ID: event->task_id = field.length == 16 ? field.bytes : NULL; break;
        default: break;
        }
    }
    return true;
}

bool event_find (const uint8_t *list, size_t list_bytes, uint64_t seq, event_view_t *event)
{
    event_walk_t walk = event_walk (list, list_bytes);
    while (event_walk_next (&walk, event))
        if (event->seq == seq)
            return true;
    return false;
}

uint64_t event_first_since (const uint8_t *list, size_t list_bytes, int64_t since_ms)
{
    event_walk_t walk = event_walk (list, list_bytes);
    event_view_t event;
    while (event_walk_next (&walk, &event))
        if (event.at >= since_ms)
            return event.seq;
    return 0;
}

/* Histories. */

void history_start (history_t *self, const read_t *read)
{
    *self = (history_t){
        .next_seq = read->last_seq, .before_seq = read->before_seq, .limit = read->limit};
}

static void history_add (history_t *self, const event_view_t *event)
{
    while (self->bytes_capacity - self->bytes_count < event->packed_bytes)
        self->bytes = memory_grow (self->bytes, &self->bytes_capacity, self->bytes_capacity, 1);
    memcpy (self->bytes + self->bytes_count, event->packed, event->packed_bytes);
    self->bytes_count += event->packed_bytes;
    self->ends = memory_grow (self->ends, &self->ends_capacity, self->count, sizeof (size_t));
    self->ends[self->count++] = self->bytes_count;
}

bool history_follow (history_t *self, const event_source_t *source)
{
    while (self->next_seq != 0 && self->count < self->limit) {
        const uint8_t *list;
        size_t list_bytes;
        event_view_t event;
        if (!source->find (source->context, self->next_seq, &list, &list_bytes) ||
            !event_find (list, list_bytes, self->next_seq, &event)) {
            self->next_seq = 0; /* removed with the events of its time */
            break;
        }
        if (self->before_seq == 0 || event.seq < self->before_seq)
            history_add (self, &event);
        /* A chain only goes back; what does not is damage and must not become a loop. */
        self->next_seq = event.previous_seq < event.seq ? event.previous_seq : 0;
        if (source->enough != NULL && source->enough (source->context))
            return self->next_seq == 0 || self->count == self->limit;
    }
    return true;
}

void history_finish (history_t *self, read_t *read)
{
    read->list = buf_new_uninitialised (self->bytes_count);
    uint8_t *to = buf_mutable (read->list);
    for (size_t i = self->count; i > 0; i--) {
        size_t start = i > 1 ? self->ends[i - 2] : 0;
        size_t length = self->ends[i - 1] - start;
        memcpy (to, self->bytes + start, length);
        to += length;
    }
    read->before_seq = self->next_seq == 0 ? 0 : self->next_seq + 1;
    free (self->bytes);
    free (self->ends);
}
