/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* The event is copied as a whole, and its texts get their NULs in the copy: where a text ends the
 * next field begins, whose first byte has been read when it is overwritten. */
#include "event_view.h"

#include <string.h>

#include "ids.h"
#include "taskmq_types.h"
#include "wire.h"

/* Numbers of taskmq.proto. */
enum {
    EVENT_SEQ = 1,
    EVENT_AT,
    EVENT_KIND,
    EVENT_TASK_ID,
    EVENT_QUEUE,
    EVENT_SESSION,
    EVENT_STATUS,
    EVENT_PREVIOUS,
    EVENT_ATTEMPT,
    EVENT_WORKER,
    EVENT_ACTOR,
    EVENT_MESSAGE,
    EVENT_PROGRESS,
    EVENT_LABELS,
    EVENT_PREVIOUS_SEQ,
    EVENT_OWNER,
    EVENT_SUBJECT,
    EVENT_NAME,
    EVENT_NUMBER,
    EVENT_TRACE,
    LABEL_KEY = 1,
    LABEL_VALUE = 2
};

typedef struct reader {
    event_view_t *out;
    event_view_room_t *room;
    uint8_t *text;
    uint8_t *behind; /* the last text: becomes its NUL; NULL: there is none, or it has it */
    uint32_t seen;   /* a bit for each field that may stand once */
} reader_t;

static bool next_field (reader_t *self, wire_field_t *field, const uint8_t **at, const uint8_t *end)
{
    if (!wire_read_field (field, at, end))
        return false;
    if (self->behind != NULL)
        *self->behind = '\0';
    self->behind = NULL;
    return true;
}

static bool take_text (reader_t *self, const wire_field_t *field, const char **out)
{
    if (field->type != WIRE_BYTES || !utf8_is_valid (field->bytes, field->length))
        return false;
    if (field->length == 0)
        return true;
    *out = (const char *) field->bytes;
    self->behind = self->text + (field->bytes - self->text) + field->length;
    return true;
}

static bool take_label (reader_t *self, const wire_field_t *label)
{
    const uint8_t *at = label->bytes;
    const uint8_t *end = label->bytes + label->length;
    event_view_t *out = self->out;
    uint32_t seen = 0;
    if (label->type != WIRE_BYTES || out->labels_count == TMQ_LABELS_MAX)
        return false;
    label_view_t *view = &self->room->labels[out->labels_count++];
    *view = (label_view_t){"", ""};
    while (at < end) {
        wire_field_t field;
        if (!next_field (self, &field, &at, end) || field.number > LABEL_VALUE ||
            (seen & 1u << field.number) != 0 ||
            !take_text (self, &field, field.number == LABEL_KEY ? &view->key : &view->value))
            return false;
        seen |= 1u << field.number;
    }
    return true;
}

static const char **text_of (event_view_t *out, uint32_t number)
{
    switch (number) {
    case EVENT_QUEUE: return &out->queue;
    case EVENT_SESSION: return &out->session;
    case EVENT_WORKER: return &out->worker;
    case EVENT_ACTOR: return &out->actor;
    case EVENT_MESSAGE: return &out->message;
    case EVENT_OWNER: return &out->owner;
    case EVENT_NAME: return &out->name;
    case EVENT_TRACE: return &out->trace;
    default: return NULL;
    }
}

static bool take_number (event_view_t *out, const wire_field_t *field)
{
    uint64_t value = field->value;
    if (field->type != WIRE_VARINT)
        return false;
    switch (field->number) {
    case EVENT_SEQ: out->seq = value; return true;
    case EVENT_AT: out->at = (int64_t) value; return true;
    case EVENT_KIND: out->kind = (uint32_t) value; return true;
    case EVENT_STATUS: out->status = (uint32_t) value; return true;
    case EVENT_PREVIOUS: out->previous = (uint32_t) value; return true;
    case EVENT_ATTEMPT: out->attempt = (uint32_t) value; return true;
    case EVENT_PREVIOUS_SEQ: return true;
    case EVENT_SUBJECT: out->subject = (uint32_t) value; return true;
    case EVENT_NUMBER: out->number = value; return true;
    default: return false;
    }
}

static bool take_field (reader_t *self, const wire_field_t *field)
{
    event_view_t *out = self->out;
    if (field->number == EVENT_LABELS)
        return take_label (self, field);
    if (field->number > EVENT_TRACE || (self->seen & 1u << field->number) != 0)
        return false;
    self->seen |= 1u << field->number;
    if (field->number == EVENT_TASK_ID)
        return field->type == WIRE_BYTES &&
               id_from_bytes (&out->task_id, field->bytes, field->length);
    const char **text = text_of (out, field->number);
    return text != NULL ? take_text (self, field, text) : take_number (out, field);
}

bool event_view_read (event_view_t *out, event_view_room_t *room, const void *bytes, size_t length,
                      const char *ns)
{
    static const char none[] = "";
    reader_t self = {.out = out, .room = room};
    *out = (event_view_t){.ns = ns,
                          .name = none,
                          .queue = none,
                          .session = none,
                          .owner = none,
                          .worker = none,
                          .actor = none,
                          .message = none,
                          .labels = room->labels,
                          .trace = none};
    bytes_clear (&room->text);
    self.text = bytes_reserve (&room->text, length + 1);
    if (self.text == NULL)
        return false;
    memcpy (self.text, bytes, length);
    const uint8_t *at = self.text;
    const uint8_t *end = at + length;
    while (at < end) {
        wire_field_t field;
        if (!next_field (&self, &field, &at, end) || !take_field (&self, &field))
            return false;
    }
    if (self.behind != NULL)
        *self.behind = '\0';
    return out->subject != TMQ_SUBJECT_NONE || (self.seen & 1u << EVENT_TASK_ID) != 0;
}

void event_view_room_free (event_view_room_t *self)
{
    bytes_free (&self->text);
}
