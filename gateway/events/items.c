/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

#include "events/items.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "http/sse.h"
#include "view.h"

static void frame (bytes_t *out, const char *id, const char *kind, bytes_t *data)
{
    const sse_event_t event = {id, kind, bytes_text (data), data->length};
    if (event.data != NULL)
        sse_write (out, &event);
    else
        out->failed = true;
    bytes_free (data);
}

static void write_event (bytes_t *data, const tmq_event_t *event)
{
    json_writer_t writer = {data, false};
    event_view_t view;
    view_room_t room;
    view_event (&view, &room, event, event->cursor);
    json_write_event (&writer, &view);
}

/* A task that is shown in a snapshot begins the rest of it: nobody goes on behind it. */
static void write_snapshot (bytes_t *data, const tmq_event_t *event)
{
    json_writer_t writer = {data, false};
    task_view_t view;
    view_room_t room;
    view_task (&view, &room, event->task);
    json_write_snapshot (&writer, &view, NULL);
}

static void write_gap (bytes_t *data, const tmq_event_t *event, bool other_history)
{
    json_writer_t writer = {data, false};
    const gap_view_t gap = {event->gap_from, event->gap_to, other_history, event->cursor};
    json_write_gap (&writer, &gap);
}

static json_writer_t begin_word (bytes_t *data, const char *kind)
{
    json_writer_t writer = {data, false};
    json_write_object_begin (&writer);
    json_write_key (&writer, "kind");
    json_write_text (&writer, kind);
    return writer;
}

static void write_marked (bytes_t *data, const char *kind, const char *cursor)
{
    json_writer_t writer = begin_word (data, kind);
    json_write_key (&writer, "cursor");
    json_write_text (&writer, cursor);
    json_write_object_end (&writer);
}

void item_write (bytes_t *out, ring_piece_t *piece, const tmq_event_t *event, uint64_t generation)
{
    bytes_t data = BYTES_INIT;
    const bool turned = generation != 0 && event->generation != generation;
    *piece = (ring_piece_t){
        .seq = event->seq, .generation = event->generation, .flags = turned ? RING_TURN : 0};
    switch (event->item) {
    case TMQ_ITEM_EVENT:
        write_event (&data, event);
        if (tmq_status_terminal (event->status) || event->status == TMQ_STATUS_NONE)
            piece->flags |= RING_LAST;
        frame (out, event->cursor, tmq_event_kind_text (event->kind), &data);
        break;
    case TMQ_ITEM_NOTICE:
        write_event (&data, event);
        piece->flags |= RING_NOTICE;
        frame (out, NULL, "notice", &data);
        break;
    case TMQ_ITEM_SNAPSHOT:
        write_snapshot (&data, event);
        piece->flags |= RING_WORD;
        frame (out, NULL, "snapshot", &data);
        break;
    case TMQ_ITEM_SNAPSHOT_END:
        write_marked (&data, "snapshot_end", event->cursor);
        cursor_read (event->cursor, &piece->generation, &piece->seq);
        frame (out, event->cursor, "snapshot_end", &data);
        break;
    case TMQ_ITEM_GAP:
        write_gap (&data, event, turned);
        piece->seq = event->gap_to;
        frame (out, event->cursor, "gap", &data);
        break;
    case TMQ_ITEM_LIVE: break;
    }
}

void item_write_live (bytes_t *out, const char *cursor)
{
    bytes_t data = BYTES_INIT;
    write_marked (&data, "live", cursor);
    frame (out, cursor, "live", &data);
}

void item_write_broker (bytes_t *out, bool connected)
{
    bytes_t data = BYTES_INIT;
    json_writer_t writer = begin_word (&data, "broker");
    json_write_key (&writer, "connected");
    json_write_bool (&writer, connected);
    json_write_object_end (&writer);
    frame (out, NULL, "broker", &data);
}

void item_write_stop (bytes_t *out)
{
    bytes_t data = BYTES_INIT;
    json_writer_t writer = begin_word (&data, "stop");
    json_write_object_end (&writer);
    frame (out, NULL, "stop", &data);
}

void item_write_refused (bytes_t *out, int code, const char *detail)
{
    bytes_t data = BYTES_INIT;
    json_writer_t writer = begin_word (&data, "refused");
    json_write_key (&writer, "code");
    json_write_text (&writer, tmq_code_name (code));
    json_write_key (&writer, "detail");
    json_write_text (&writer, detail);
    json_write_object_end (&writer);
    frame (out, NULL, "refused", &data);
}

bool cursor_read (const char *text, uint64_t *generation, uint64_t *seq)
{
    char *end;
    if (text[0] < '0' || text[0] > '9')
        return false;
    errno = 0;
    *generation = strtoull (text, &end, 10);
    if (*end != '-' || end[1] < '0' || end[1] > '9')
        return false;
    *seq = strtoull (end + 1, &end, 10);
    return *end == '\0' && errno == 0;
}

void cursor_write (char out[48], uint64_t generation, uint64_t seq)
{
    snprintf (out, 48, "%" PRIu64 "-%" PRIu64, generation, seq);
}
