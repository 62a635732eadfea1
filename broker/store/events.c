/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* The few fields of taskmq.Event that the store needs, read without unpacking the events. The lists
 * were packed by the broker; damage is reported, never followed. */
#include "store/events.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/memory.h"
#include "wire.h"

/* Numbers of fields in proto/taskmq.proto. */
enum {
    LIST_EVENTS = 1,
    EVENT_SEQ = 1,
    EVENT_AT = 2,
    EVENT_TASK_ID = 4,
    EVENT_PREVIOUS_SEQ = 15,
    EVENT_SUBJECT = 17
};

event_walk_t event_walk (const uint8_t *list, size_t list_bytes)
{
    return (event_walk_t){list, list + list_bytes, false};
}

bool event_walk_next (event_walk_t *walk, packed_event_t *event)
{
    if (walk->next == walk->end)
        return false;
    wire_field_t field;
    *event = (packed_event_t){.packed = walk->next};
    if (!wire_read_field (&field, &walk->next, walk->end) || field.number != LIST_EVENTS ||
        field.bytes == NULL) {
        walk->damaged = true;
        return false;
    }
    event->packed_bytes = (size_t) (walk->next - event->packed);
    const uint8_t *next = field.bytes;
    const uint8_t *end = field.bytes + field.length;
    while (next < end) {
        if (!wire_read_field (&field, &next, end)) {
            walk->damaged = true;
            return false;
        }
        switch (field.number) {
        case EVENT_SEQ: event->seq = field.value; break;
        case EVENT_AT: event->at = (int64_t) field.value; break;
        case EVENT_PREVIOUS_SEQ: event->previous_seq = field.value; break;
        case EVENT_SUBJECT: event->subject = field.value; break;
        case EVENT_TASK_ID: event->task_id = field.length == 16 ? field.bytes : NULL; break;
        default: break;
        }
    }
    return true;
}

/* Finds one event of a list by its sequence. */
static bool event_find (const uint8_t *list, size_t list_bytes, uint64_t seq, packed_event_t *event)
{
    event_walk_t walk = event_walk (list, list_bytes);
    while (event_walk_next (&walk, event))
        if (event->seq == seq)
            return true;
    return false;
}

bool event_list_is_mixed (const buf_t *list)
{
    event_walk_t walk = event_walk (buf_bytes (list), buf_length (list));
    packed_event_t event;
    while (event_walk_next (&walk, &event))
        if (event.subject != 0)
            return true;
    return false;
}

uint64_t event_first_since (const uint8_t *list, size_t list_bytes, int64_t since_ms)
{
    event_walk_t walk = event_walk (list, list_bytes);
    packed_event_t event;
    while (event_walk_next (&walk, &event))
        if (event.at >= since_ms)
            return event.seq;
    return 0;
}

/* Histories. */

void event_chain_start (event_chain_t *self, const read_t *read)
{
    *self = (event_chain_t){.next_seq = read->last_seq,
                            .before_seq = read->before_seq,
                            .task_id = read->id,
                            .limit = read->limit};
}

static void history_add (event_chain_t *self, const packed_event_t *event)
{
    while (self->bytes_capacity - self->bytes_count < event->packed_bytes)
        self->bytes = memory_grow (self->bytes, &self->bytes_capacity, self->bytes_capacity, 1);
    memcpy (self->bytes + self->bytes_count, event->packed, event->packed_bytes);
    self->bytes_count += event->packed_bytes;
    self->ends = memory_grow (self->ends, &self->ends_capacity, self->count, sizeof (size_t));
    self->ends[self->count++] = self->bytes_count;
}

/* A page says where the one before it ends. So the next reader need not walk the chain from its
 * newest event again, which would make all pages together quadratic. */
static void history_jump (event_chain_t *self, const event_source_t *source)
{
    const uint8_t *list;
    size_t list_bytes;
    packed_event_t event;
    uint64_t seq = self->before_seq - 1;
    if (self->before_seq > 1 && seq < self->next_seq &&
        source->find (source->context, seq, &list, &list_bytes) &&
        event_find (list, list_bytes, seq, &event) && event.task_id != NULL &&
        memcmp (event.task_id, self->task_id.bytes, sizeof (self->task_id)) == 0)
        self->next_seq = seq;
}

bool event_chain_follow (event_chain_t *self, const event_source_t *source)
{
    if (!self->begun && self->next_seq != 0)
        history_jump (self, source);
    self->begun = true;
    while (self->next_seq != 0 && self->count < self->limit) {
        const uint8_t *list;
        size_t list_bytes;
        packed_event_t event;
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

void event_chain_finish (event_chain_t *self, read_t *read)
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

void event_bisect_judge (event_bisect_t *self, uint64_t middle, bool found, uint64_t first_seq,
                         uint64_t end_seq, bool is_since)
{
    if (found && is_since)
        self->high = first_seq;
    else
        self->low = found ? end_seq : middle + 1;
}
