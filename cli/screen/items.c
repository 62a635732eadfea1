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

/* Views. */

/* A view of a task, with arrays of its own. */
typedef struct shown_task {
    task_view_t view;
    label_view_t *labels;
    tmq_id_t *depends_on;
    label_view_t *needs;
} shown_task_t;

static label_view_t *view_labels (const tmq_label_t *labels, size_t count)
{
    label_view_t *out = must_alloc (count * sizeof *out);
    for (size_t i = 0; i < count; i++)
        out[i] = (label_view_t){labels[i].key, labels[i].value};
    return out;
}

static progress_view_t view_progress (double done, double total, const char *unit,
                                      const char *message)
{
    const bool given = done > 0 || total > 0 || (unit && *unit) || (message && *message);
    return (progress_view_t){given, done, total, unit, message};
}

static void shown_task_init (shown_task_t *out, const tmq_task_t *task)
{
    out->labels = view_labels (task->labels, task->labels_count);
    out->depends_on = must_alloc (task->after_count * sizeof *out->depends_on);
    for (size_t i = 0; i < task->after_count; i++)
        out->depends_on[i] = task->after[i].id;
    out->needs = view_labels (task->needs, task->needs_count);
    out->view = (task_view_t){
        .id = task->id,
        .ns = task->ns,
        .queue = task->queue,
        .session = task->session,
        .owner = task->owner,
        .status = task->status,
        .phase = task->phase,
        .status_message = task->status_message,
        .priority = task->priority,
        .method = task->method,
        .content_type = task->content_type,
        .created_at = (int64_t) task->created_at,
        .updated_at = (int64_t) task->updated_at,
        .started_at = (int64_t) task->started_at,
        .finished_at = (int64_t) task->finished_at,
        .expires_at = (int64_t) task->expires_at,
        .ttl_ms = (int64_t) task->ttl_ms,
        .not_before = (int64_t) task->not_before,
        .start_by = (int64_t) task->start_by,
        .max_runtime_ms = (int64_t) task->max_runtime_ms,
        .poll_interval_ms = task->poll_interval_ms,
        .attempt = task->attempt,
        .failures = task->failures,
        .max_attempts = task->max_attempts,
        .worker = task->worker,
        .progress = view_progress (task->progress_done, task->progress_total, task->progress_unit,
                                   task->progress_message),
        .labels = out->labels,
        .labels_count = task->labels_count,
        .meta = task->meta,
        .trace = task->trace,
        .cancel_message = task->cancel_message,
        .depends_on = out->depends_on,
        .depends_on_count = task->after_count,
        .parent = task->parent,
        .has_parts = task->has_parts,
        .turns = task->turns,
        .fair_key = task->fair_key,
        .needs = out->needs,
        .needs_count = task->needs_count,
        .payload_bytes = task->payload_bytes,
        .outcome = task->outcome,
        .result_bytes = task->result_bytes,
        .result = task->body_bytes == task->result_bytes ? task->body : NULL,
        .result_type = task->result_type,
        .error_code = task->error_code,
        .error_message = task->error_message,
        .error_data = task->error_data,
        .error_data_bytes = task->error_data_bytes,
        .dead = task->dead,
        .version = task->version,
        .seq = task->seq,
    };
}

static void shown_task_clear (shown_task_t *self)
{
    free (self->labels);
    free (self->depends_on);
    free (self->needs);
}

void write_task_members (json_writer_t *writer, const tmq_task_t *task, bool with_result)
{
    const task_extras_t extras = {.no_result = !with_result};
    shown_task_t shown;
    shown_task_init (&shown, task);
    json_write_task_members (writer, &shown.view, &extras);
    shown_task_clear (&shown);
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
    label_view_t *labels = view_labels (event->labels, event->labels_count);
    event_view_t view = {
        .kind = event->item == TMQ_ITEM_NOTICE ? TMQ_EVENT_NONE : event->kind,
        .ns = event->ns,
        .seq = event->seq,
        .at = (int64_t) event->at,
        .task_id = event->task_id,
        .queue = event->queue,
        .session = event->session,
        .owner = event->owner,
        .status = event->status,
        .previous = event->previous,
        .attempt = event->attempt,
        .worker = event->worker,
        .actor = event->actor,
        .message = event->message,
        .trace = event->trace,
        .labels = labels,
        .labels_count = event->labels_count,
        .cursor = cursor,
        .subject = event->subject == TMQ_SUBJECT_TASK ? TMQ_SUBJECT_NONE : event->subject,
        .name = event->name,
        .number = event->number,
    };
    if (event->has_progress)
        view.progress = (progress_view_t){true, event->progress_done, event->progress_total,
                                          event->progress_unit, event->progress_message};
    json_write_event (writer, &view);
    free (labels);
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
        shown_task_t shown;
        shown_task_init (&shown, event->task);
        json_write_snapshot (writer, &shown.view, event->cursor);
        shown_task_clear (&shown);
    } else {
        write_numbered (writer, event, event->cursor);
    }
    items_close (self);
}
