/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

#include "core/sessions/values.h"

#include <string.h>

#include "bytes.h"
#include "core/tasks/entries.h"
#include "core/tasks/journal.h"
#include "core/tasks/rows.h"
#include "wire.h"

/* Fields of a row's body. */
enum {
    FIELD_VERSION = 1,
    FIELD_UPDATED_AT = 2,
    FIELD_OWNER = 3,
    FIELD_ACTOR = 4,
    FIELD_PUT = 5,
    FIELD_BYTES = 6
};

void value_row_key (row_key_t *out, const char *ns, const char *session, const char *key)
{
    out->length = 0;
    row_key_text (out, ns);
    row_key_text (out, session);
    if (key != NULL)
        row_key_bytes (out, key, strlen (key));
}

const char *value_key_of (const buf_t *row_key, size_t *length)
{
    const char *begin = (const char *) buf_bytes (row_key);
    const char *end = begin + buf_length (row_key);
    for (unsigned i = 0; i < 2; i++) { /* the namespace, the session */
        const char *nul = memchr (begin, '\0', (size_t) (end - begin));
        begin = nul == NULL ? end : nul + 1;
    }
    *length = (size_t) (end - begin);
    return begin;
}

bool value_unpack (value_t *out, const buf_t *body)
{
    *out = (value_t){0};
    const uint8_t *at = buf_bytes (body);
    const uint8_t *end = at + buf_length (body);
    wire_field_t field;
    while (at < end) {
        if (!wire_read_field (&field, &at, end))
            return false;
        switch (field.number) {
        case FIELD_VERSION: out->version = field.value; break;
        case FIELD_UPDATED_AT: out->updated_at = (int64_t) field.value; break;
        case FIELD_OWNER: wire_copy_text (out->owner, sizeof (out->owner), &field); break;
        case FIELD_ACTOR: wire_copy_text (out->actor, sizeof (out->actor), &field); break;
        case FIELD_PUT: puts_take (&out->puts, VALUE_PUTS_MAX, &field); break;
        case FIELD_BYTES:
            out->bytes = field.bytes;
            out->length = field.length;
            break;
        default: break;
        }
    }
    return out->version != 0;
}

static buf_t *pack (const value_t *value)
{
    bytes_t out = BYTES_INIT;
    bytes_append_uint (&out, FIELD_VERSION, value->version);
    bytes_append_uint (&out, FIELD_UPDATED_AT, (uint64_t) value->updated_at);
    bytes_append_string (&out, FIELD_OWNER, value->owner);
    bytes_append_string (&out, FIELD_ACTOR, value->actor);
    puts_append (&out, FIELD_PUT, &value->puts);
    bytes_append_blob (&out, FIELD_BYTES, value->bytes, value->length);
    buf_t *body = buf_new (out.data, out.length);
    bytes_free (&out);
    return body;
}

static uint64_t tell (sessions_t *self, const value_name_t *name, tmq_event_kind_t kind,
                      const char *actor, const char *owner)
{
    event_t event = {.kind = kind,
                     .subject = TMQ_SUBJECT_VALUE,
                     .name = name->key,
                     .queue = "",
                     .session = name->session,
                     .worker = "",
                     .actor = actor,
                     .message = "",
                     .owner = owner};
    history_add (self->tasks->history, &name->space->log, &event);
    return event.seq;
}

void value_put (sessions_t *self, const value_name_t *name, const value_change_t *change,
                value_t *value)
{
    entries_t *entries = &name->space->entries;
    row_key_t key;
    bool is_new = value->version == 0;
    if (is_new) {
        entries->values++;
        strncpy (value->owner, change->actor, sizeof (value->owner) - 1);
    }
    entries->bytes += change->length - value->length;
    strncpy (value->actor, change->actor, sizeof (value->actor) - 1);
    value->bytes = change->bytes;
    value->length = change->length;
    value->updated_at = clocks_wall_ms (&self->base->clocks, value->updated_at);
    value->version = tell (self, name, TMQ_EVENT_CHANGED, change->actor, value->owner);
    puts_remember (&value->puts, VALUE_PUTS_MAX, change->request_id, value->version);
    value_row_key (&key, name->space->name, name->session, name->key);
    rows_put (self->tasks, (row_t){.kind = ROW_KIND_VALUE,
                                   .key = buf_new (key.bytes, key.length),
                                   .body = pack (value)});
    entries_changed (self->tasks, name->space);
}

void value_remove (sessions_t *self, const value_name_t *name, const char *actor,
                   const value_t *value)
{
    row_key_t key;
    tell (self, name, TMQ_EVENT_REMOVED, actor, value->owner);
    value_row_key (&key, name->space->name, name->session, name->key);
    rows_put (self->tasks, row_make_gone (ROW_KIND_VALUE, key.bytes, key.length));
    name->space->entries.values--;
    name->space->entries.bytes -= value->length;
    entries_changed (self->tasks, name->space);
}
