/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Reads a packed taskmq.Event into a view without a message in between: what the events of a broker
 * have, in one pass and one copy. It is a shorter way, never another opinion: of what it does not
 * take, codec_event_list says what it is worth. */
#ifndef TASKMQ_PROTO_EVENT_VIEW_H
#define TASKMQ_PROTO_EVENT_VIEW_H

#include "bytes.h"
#include "json.h"

/* What a view borrows from; all zero at first. */
typedef struct event_view_room {
    bytes_t text;
    label_view_t labels[TMQ_LABELS_MAX];
} event_view_room_t;

/* bytes: of the event itself, without a tag. ns and room must outlive the view. False: it is
 * damaged, of another version, or has progress; or memory is exhausted. */
bool event_view_read (event_view_t *out, event_view_room_t *room, const void *bytes, size_t length,
                      const char *ns);
void event_view_room_free (event_view_room_t *self);

#endif
