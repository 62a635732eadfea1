/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

#include "core/tasks/entries.h"

#include <string.h>

#include "bytes.h"
#include "core/base/memory.h"
#include "core/tasks/puts.h"
#include "core/tasks/rows.h"
#include "core/tasks/space.h"
#include "wire.h"

enum {
    FIELD_VALUES = 1,
    FIELD_ITEMS = 2,
    FIELD_BYTES = 3,
    FIELD_REMOVED = 4,
    FIELD_TURN_BYTES = 5,
    FIELD_ARTIFACT_BYTES = 6
};

static puts_t *removed_of (space_t *space)
{
    if (space->entries.removed == NULL)
        space->entries.removed = memory_zero (1, sizeof (puts_t));
    return space->entries.removed;
}

uint64_t entries_removed_by (const space_t *space, const uint8_t *request_id)
{
    const puts_t *removed = space->entries.removed;
    return removed == NULL ? 0 : puts_find (removed, request_id);
}

void entries_note_removal (tasks_t *self, space_t *space, const uint8_t *request_id,
                           uint64_t number)
{
    puts_remember (removed_of (space), PUTS_MAX, request_id, number);
    entries_changed (self, space);
}

void entries_changed (tasks_t *self, space_t *space)
{
    if (!node_is_linked (&space->counted))
        list_push_back (&self->counted_spaces, &space->counted);
}

void entries_close (tasks_t *self)
{
    bytes_t body = BYTES_INIT;
    for (node_t *node = list_pop_front (&self->counted_spaces); node != NULL;
         node = list_pop_front (&self->counted_spaces)) {
        const space_t *space = LIST_ITEM (node, const space_t, counted);
        bytes_clear (&body);
        bytes_append_uint (&body, FIELD_VALUES, space->entries.values);
        bytes_append_uint (&body, FIELD_ITEMS, space->entries.items);
        bytes_append_uint (&body, FIELD_BYTES, space->entries.bytes);
        bytes_append_uint (&body, FIELD_TURN_BYTES, space->entries.turn_bytes);
        bytes_append_uint (&body, FIELD_ARTIFACT_BYTES, space->entries.artifact_bytes);
        if (space->entries.removed != NULL)
            puts_append (&body, FIELD_REMOVED, space->entries.removed);
        rows_put (self, row_make (ROW_KIND_ENTRIES, space->name, strlen (space->name) + 1,
                                  body.data, body.length));
    }
    bytes_free (&body);
}

void entries_load (tasks_t *self, const row_t *row)
{
    const uint8_t *at = buf_bytes (row->body);
    const uint8_t *end = at + buf_length (row->body);
    wire_field_t field;
    space_t *space = space_make (self, (const char *) buf_bytes (row->key));
    while (at < end && wire_read_field (&field, &at, end)) {
        switch (field.number) {
        case FIELD_VALUES: space->entries.values = field.value; break;
        case FIELD_ITEMS: space->entries.items = field.value; break;
        case FIELD_BYTES: space->entries.bytes = field.value; break;
        case FIELD_TURN_BYTES: space->entries.turn_bytes = field.value; break;
        case FIELD_ARTIFACT_BYTES: space->entries.artifact_bytes = field.value; break;
        case FIELD_REMOVED: puts_take (removed_of (space), PUTS_MAX, &field); break;
        default: break;
        }
    }
}
