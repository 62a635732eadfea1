/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

#include "core/sessions/items.h"

#include <string.h>

#include "bytes.h"
#include "core/tasks/entries.h"
#include "core/tasks/journal.h"
#include "core/tasks/rows.h"
#include "wire.h"

/* Fields of the rows' bodies. */
enum { BOX_COUNT = 1, BOX_PUT = 2 };
enum {
    ITEM_NUMBER = 1,
    ITEM_AT = 2,
    ITEM_OWNER = 3,
    ITEM_SOURCE = 4,
    ITEM_TYPE = 5,
    ITEM_INTENSITY = 6,
    ITEM_BYTES = 7
};

void box_row_key (row_key_t *out, const char *ns, const char *session, const char *box)
{
    out->length = 0;
    row_key_text (out, ns);
    row_key_text (out, session);
    row_key_text (out, box);
}

void item_row_key (row_key_t *out, const char *ns, const char *session, const char *box,
                   uint64_t number)
{
    box_row_key (out, ns, session, box);
    row_key_number (out, number);
}

uint64_t item_number_of (const buf_t *row_key)
{
    size_t length = buf_length (row_key);
    uint64_t number = 0;
    for (size_t i = length < 8 ? length : length - 8; i < length; i++)
        number = number << 8 | buf_bytes (row_key)[i];
    return number;
}

bool box_unpack (box_t *out, const buf_t *body)
{
    *out = (box_t){0};
    const uint8_t *at = buf_bytes (body);
    const uint8_t *end = at + buf_length (body);
    wire_field_t field;
    while (at < end) {
        if (!wire_read_field (&field, &at, end))
            return false;
        if (field.number == BOX_COUNT)
            out->count = field.value;
        if (field.number == BOX_PUT)
            puts_take (&out->puts, BOX_PUTS_MAX, &field);
    }
    return out->count > 0;
}

bool item_unpack (item_entry_t *out, const buf_t *body)
{
    *out = (item_entry_t){0};
    const uint8_t *at = buf_bytes (body);
    const uint8_t *end = at + buf_length (body);
    wire_field_t field;
    while (at < end) {
        if (!wire_read_field (&field, &at, end))
            return false;
        switch (field.number) {
        case ITEM_NUMBER: out->number = field.value; break;
        case ITEM_AT: out->at = (int64_t) field.value; break;
        case ITEM_OWNER: wire_copy_text (out->owner, sizeof (out->owner), &field); break;
        case ITEM_SOURCE: wire_copy_text (out->source, sizeof (out->source), &field); break;
        case ITEM_TYPE: wire_copy_text (out->type, sizeof (out->type), &field); break;
        case ITEM_INTENSITY: out->intensity = (uint32_t) field.value; break;
        case ITEM_BYTES:
            out->bytes = field.bytes;
            out->length = field.length;
            break;
        default: break;
        }
    }
    return out->number != 0;
}

static buf_t *pack_item (const item_entry_t *item)
{
    bytes_t out = BYTES_INIT;
    bytes_append_uint (&out, ITEM_NUMBER, item->number);
    bytes_append_uint (&out, ITEM_AT, (uint64_t) item->at);
    bytes_append_string (&out, ITEM_OWNER, item->owner);
    bytes_append_string (&out, ITEM_SOURCE, item->source);
    bytes_append_string (&out, ITEM_TYPE, item->type);
    bytes_append_uint (&out, ITEM_INTENSITY, item->intensity);
    bytes_append_blob (&out, ITEM_BYTES, item->bytes, item->length);
    buf_t *body = buf_new (out.data, out.length);
    bytes_free (&out);
    return body;
}

static buf_t *pack_box (const box_t *box)
{
    bytes_t out = BYTES_INIT;
    bytes_append_uint (&out, BOX_COUNT, box->count);
    puts_append (&out, BOX_PUT, &box->puts);
    buf_t *body = buf_new (out.data, out.length);
    bytes_free (&out);
    return body;
}

static uint64_t tell (sessions_t *self, const box_name_t *name, tmq_event_kind_t kind,
                      const char *actor, const item_entry_t *item)
{
    event_t event = {.kind = kind,
                     .subject = TMQ_SUBJECT_ITEM,
                     .name = name->box,
                     .number = item->number,
                     .queue = "",
                     .session = name->session,
                     .worker = "",
                     .actor = actor,
                     .message = "",
                     .owner = item->owner};
    if (item->number == 0) /* it is about to get the event's own */
        event.number = name->space->log.last_seq + 1;
    history_add (self->tasks->history, &name->space->log, &event);
    return event.seq;
}

void item_put (sessions_t *self, const box_name_t *name, box_t *box, item_entry_t *item,
               const uint8_t *request_id)
{
    row_key_t key;
    item->number = 0;
    item->at = self->base->clocks.wall_ms;
    item->number = tell (self, name, TMQ_EVENT_CHANGED, item->owner, item);
    item_row_key (&key, name->space->name, name->session, name->box, item->number);
    rows_put (self->tasks, (row_t){.kind = ROW_KIND_ITEM,
                                   .key = buf_new (key.bytes, key.length),
                                   .body = pack_item (item)});
    box->count++;
    puts_remember (&box->puts, BOX_PUTS_MAX, request_id, item->number);
    name->space->entries.items++;
    name->space->entries.bytes += item->length;
    box_close (self, name, box);
}

void item_drop (sessions_t *self, const box_name_t *name, const item_entry_t *item,
                const char *actor)
{
    row_key_t key;
    tell (self, name, TMQ_EVENT_REMOVED, actor, item);
    item_row_key (&key, name->space->name, name->session, name->box, item->number);
    rows_put (self->tasks, row_make_gone (ROW_KIND_ITEM, key.bytes, key.length));
    name->space->entries.items--;
    name->space->entries.bytes -= item->length;
    entries_changed (self->tasks, name->space);
}

void item_remove (sessions_t *self, const box_name_t *name, box_t *box, const item_entry_t *item,
                  const char *actor)
{
    item_drop (self, name, item, actor);
    box->count--;
}

void box_close (sessions_t *self, const box_name_t *name, const box_t *box)
{
    row_key_t key;
    box_row_key (&key, name->space->name, name->session, name->box);
    if (box->count == 0)
        rows_put (self->tasks, row_make_gone (ROW_KIND_BOX, key.bytes, key.length));
    else
        rows_put (self->tasks, (row_t){.kind = ROW_KIND_BOX,
                                       .key = buf_new (key.bytes, key.length),
                                       .body = pack_box (box)});
    entries_changed (self->tasks, name->space);
}
