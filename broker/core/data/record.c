/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Copies of records, each in one allocation. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/memory.h"
#include "core/data/extra.h"
#include "core/data/record.h"
#include "types.h"

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
    offsetof (record_t, holder),
    offsetof (record_t, status_message),
    offsetof (record_t, progress_unit),
    offsetof (record_t, progress_message),
    offsetof (record_t, result_type),
    offsetof (record_t, error_message),
    offsetof (record_t, error_data),
};
enum { STRINGS_COUNT = sizeof (STRINGS) / sizeof (STRINGS[0]) };

_Static_assert((int) STRINGS_COUNT == (int) RECORD_STRINGS,
               "record.h counts the strings of a record");

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

void record_measure (const record_t *source, record_room_t *out)
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
    record_room_t room;
    record_measure (self, &room);
    return NUMBERS_BYTES + room.total - sizeof (record_t) + buf_length (self->extra);
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

record_t *record_place (void *memory, const record_t *source, const record_room_t *room)
{
    record_t *self = memory;
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
    self->extra = buf_keep (source->extra);
    return self;
}

record_t *record_new (const record_t *source)
{
    record_room_t room;
    record_measure (source, &room);
    return record_place (memory_alloc (room.total), source, &room);
}

void record_free (record_t *self)
{
    if (self == NULL)
        return;
    buf_drop (self->payload);
    buf_drop (self->result);
    buf_drop (self->extra);
    free (self);
}

bool record_is_over (const record_t *self, int64_t expiry_ms)
{
    return self->status >= TMQ_STATUS_COMPLETED && !self->leased && self->expires_at != 0 &&
           self->expires_at <= expiry_ms;
}

bool record_is_lasting (const record_t *self)
{
    return self->status >= TMQ_STATUS_COMPLETED && !self->leased && self->expires_at == 0;
}

tmq_phase_t record_phase (const record_t *self, int64_t wall_ms)
{
    if (self->phase != TMQ_PHASE_NONE)
        return (tmq_phase_t) self->phase;
    if (self->status == TMQ_STATUS_QUEUED && (self->leased || extra_waits (self->extra)))
        return TMQ_PHASE_BLOCKED;
    if (self->status == TMQ_STATUS_QUEUED)
        return self->not_before > wall_ms ? TMQ_PHASE_SCHEDULED : TMQ_PHASE_READY;
    return self->status == TMQ_STATUS_WORKING ? TMQ_PHASE_LEASED : TMQ_PHASE_NONE;
}

bool record_has_label (const record_t *self, const label_t *label)
{
    for (size_t i = 0; i < self->labels_count; i++)
        if (strcmp (self->labels[i].key, label->key) == 0 &&
            strcmp (self->labels[i].value, label->value) == 0)
            return true;
    return false;
}
