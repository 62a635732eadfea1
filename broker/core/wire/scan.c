/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Packed events looked at without unpacking them: to cut lists between events and to apply
 * filters. */
#include <string.h>

#include "core/wire/scan.h"
#include "wire.h"

/* Numbers of fields in taskmq.proto. */
enum {
    LIST_EVENTS = 1,
    EVENT_SEQ = 1,
    EVENT_TASK_ID = 4,
    EVENT_QUEUE = 5,
    EVENT_SESSION = 6,
    EVENT_STATUS = 7,
    EVENT_LABELS = 14,
    EVENT_PREVIOUS_SEQ = 15,
    EVENT_OWNER = 16,
    EVENT_SUBJECT = 17,
    EVENT_NAME = 18,
    LABEL_KEY = 1,
    LABEL_VALUE = 2
};

static void take_field (scanned_t *out, const wire_field_t *field)
{
    switch (field->number) {
    case EVENT_SEQ: out->seq = field->value; break;
    case EVENT_STATUS: out->status = field->value; break;
    case EVENT_SUBJECT: out->subject = field->value; break;
    case EVENT_PREVIOUS_SEQ: out->previous_seq = field->value; break;
    case EVENT_TASK_ID: out->id = field->length == sizeof (tmq_id_t) ? field->bytes : NULL; break;
    case EVENT_QUEUE:
        out->queue = field->bytes;
        out->queue_bytes = field->length;
        break;
    case EVENT_SESSION:
        out->session = field->bytes;
        out->session_bytes = field->length;
        break;
    case EVENT_OWNER:
        out->owner = field->bytes;
        out->owner_bytes = field->length;
        break;
    case EVENT_NAME:
        out->name = field->bytes;
        out->name_bytes = field->length;
        break;
    default: break;
    }
}

bool scan_event (const uint8_t **at, const uint8_t *end, scanned_t *out)
{
    wire_field_t element;
    *out = (scanned_t){.element = *at};
    if (*at >= end || !wire_read_field (&element, at, end) || element.number != LIST_EVENTS ||
        element.bytes == NULL)
        return false;
    out->element_bytes = (size_t) (*at - out->element);
    out->event = element.bytes;
    out->event_bytes = element.length;
    const uint8_t *inner = element.bytes;
    const uint8_t *inner_end = element.bytes + element.length;
    wire_field_t field;
    while (inner < inner_end) {
        if (!wire_read_field (&field, &inner, inner_end))
            return false;
        take_field (out, &field);
    }
    return true;
}

static bool same_text (const char *text, const uint8_t *bytes, size_t length)
{
    return strlen (text) == length && (length == 0 || memcmp (text, bytes, length) == 0);
}

bool scan_has_label (const scanned_t *event, const label_t *label)
{
    const uint8_t *at = event->event;
    const uint8_t *end = at + event->event_bytes;
    wire_field_t field;
    while (at < end && wire_read_field (&field, &at, end)) {
        if (field.number != EVENT_LABELS || field.bytes == NULL)
            continue;
        const uint8_t *inner = field.bytes;
        wire_field_t part;
        bool key = false;
        bool value = label->value[0] == '\0';
        while (inner < field.bytes + field.length &&
               wire_read_field (&part, &inner, field.bytes + field.length)) {
            if (part.number == LABEL_KEY)
                key = same_text (label->key, part.bytes, part.length);
            else if (part.number == LABEL_VALUE)
                value = same_text (label->value, part.bytes, part.length);
        }
        if (key && value)
            return true;
    }
    return false;
}
