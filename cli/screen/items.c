/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

#include "screen/items.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "json.h"
#include "screen/fields.h"
#include "view.h"

bool app_wants_json (const app_t *app)
{
    return app->format == FORMAT_JSON || app->format == FORMAT_JSONL;
}

void items_begin (items_t *self, const app_t *app, bool alone)
{
    *self = (items_t){.app = app,
                      .fields = args_text (&app->args, OPT_FIELDS),
                      .alone = alone && app->format == FORMAT_JSON};
    if (app->format == FORMAT_JSON && !self->alone)
        fputs ("{\"items\":[", stdout);
}

json_writer_t *items_open (items_t *self)
{
    bytes_clear (&self->bytes);
    self->writer = (json_writer_t){&self->bytes, false};
    return &self->writer;
}

void items_close (items_t *self)
{
    const bool in_list = self->app->format == FORMAT_JSON && !self->alone;
    if (self->fields && !self->bytes.failed)
        fields_pick (&self->bytes, self->fields);
    if (self->bytes.failed)
        must_grow (NULL, SIZE_MAX, 2); /* ends the program: memory ran out */
    if (in_list)
        fputs (self->count ? ",\n" : "\n", stdout);
    fwrite (self->bytes.data, 1, self->bytes.length, stdout);
    if (!in_list)
        fputc ('\n', stdout);
    if (self->app->format == FORMAT_JSONL)
        fflush (stdout);
    self->count++;
}

void items_end (items_t *self, const char *next)
{
    if (self->app->format == FORMAT_JSON && !self->alone) {
        json_writer_t *writer = items_open (self);
        json_write_text (writer, next);
        fputs (self->count ? "\n],\"next\":" : "],\"next\":", stdout);
        fwrite (self->bytes.data, 1, self->bytes.length, stdout);
        fputs ("}\n", stdout);
    }
    bytes_free (&self->bytes);
}

/* Tasks. */

void write_task_members (json_writer_t *writer, const tmq_task_t *task, bool with_result)
{
    const task_extras_t extras = {.no_result = !with_result};
    task_view_t view;
    view_room_t room;
    view_task (&view, &room, task);
    json_write_task_members (writer, &view, &extras);
}

void items_add_task (items_t *self, const tmq_task_t *task, bool with_result)
{
    json_writer_t *writer = items_open (self);
    json_write_object_begin (writer);
    write_task_members (writer, task, with_result);
    json_write_object_end (writer);
    items_close (self);
}

/* Events. */

static void write_numbered (json_writer_t *writer, const tmq_event_t *event, const char *cursor)
{
    event_view_t view;
    view_room_t room;
    view_event (&view, &room, event, cursor);
    json_write_event (writer, &view);
}

void write_event (json_writer_t *writer, const tmq_event_t *event)
{
    write_numbered (writer, event, NULL);
}

void items_add_event (items_t *self, const tmq_event_t *event, bool other_history)
{
    json_writer_t *writer = items_open (self);
    if (event->item == TMQ_ITEM_GAP) {
        const gap_view_t gap = {event->gap_from, event->gap_to, other_history, event->cursor};
        json_write_gap (writer, &gap);
    } else if (event->item == TMQ_ITEM_SNAPSHOT) {
        task_view_t view;
        view_room_t room;
        view_task (&view, &room, event->task);
        json_write_snapshot (writer, &view, event->cursor);
    } else {
        write_numbered (writer, event, event->cursor);
    }
    items_close (self);
}
