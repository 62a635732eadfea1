/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Tasks as JSON lines, whatever their texts and bodies are: one line, valid, nothing in it that
 * acts on a terminal. Two bytes of length and a message of a broker; the rest is a body. */
#include "codec.h"
#include "fuzz.h"
#include "ids.h"
#include "json.h"

/* False: there is no room for it. The bodies stay unset. */
static bool view_of (task_view_t *out, const Taskmq__Task *task, arena_t *arena)
{
    *out = (task_view_t){
        .ns = task->namespace_,
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
        .poll_interval_ms = task->poll_interval_ms,
        .attempt = task->attempt,
        .failures = task->failures,
        .max_attempts = task->max_attempts,
        .worker = task->worker,
        .meta = task->meta,
        .payload_bytes = task->payload_bytes,
        .outcome = task->outcome,
        .result_bytes = task->result_bytes,
        .result_type = task->result_type,
        .dead = task->dead,
        .version = task->version,
        .seq = task->seq,
    };
    if (task->extra != NULL) {
        extra_view_room_t *room = arena_zalloc (arena, 1, sizeof *room);
        if (room == NULL)
            return false;
        task_view_extra (out, room, task->extra);
    }
    if (task->error != NULL) {
        out->error_code = task->error->code;
        out->error_message = task->error->message;
        out->error_data = task->error->data;
    }
    if (task->progress != NULL)
        out->progress = (progress_view_t){true, task->progress->done, task->progress->total,
                                          task->progress->unit, task->progress->message};
    label_view_t *labels = arena_zalloc (arena, task->n_labels + 1, sizeof *labels);
    if (labels == NULL)
        return false;
    for (size_t i = 0; i < task->n_labels; i++)
        labels[i] = (label_view_t){task->labels[i]->key, task->labels[i]->value};
    out->labels = labels;
    out->labels_count = task->n_labels;
    return id_from_bytes (&out->id, task->task_id.data, task->task_id.len);
}

static void write_task (const task_view_t *task, bool exported)
{
    bytes_t out = BYTES_INIT;
    json_writer_t writer = {&out, false};
    task_extras_t extras = {.payload = true,
                            .exported = exported,
                            .body_bytes_max = exported ? JSON_EXPORT_BODY_BYTES_MAX : 0};
    json_write_task (&writer, task, &extras);
    HOLDS (!out.failed && json_text_is_object (out.data, out.length));
    for (size_t i = 0; i < out.length; i++)
        HOLDS (out.data[i] >= ' ' && out.data[i] != 0x7f);
    bytes_free (&out);
}

static void show (const Taskmq__Task *task, const uint8_t *body, size_t size, arena_t *arena)
{
    task_view_t view;
    if (!view_of (&view, task, arena))
        return;
    view.payload = body;
    view.payload_bytes = size;
    view.result = body;
    view.result_bytes = size;
    /* As the broker's store has them: the validator let nothing else pass. */
    if (view.meta != NULL && !json_text_is_object (view.meta, strlen (view.meta)))
        view.meta = NULL;
    if (view.error_data != NULL && !json_text_is_valid (view.error_data, strlen (view.error_data)))
        view.error_data = NULL;
    write_task (&view, false);
    write_task (&view, true);
}

int LLVMFuzzerTestOneInput (const uint8_t *data, size_t size)
{
    static arena_t *arena;
    const uint8_t *piece;
    size_t piece_size;
    codec_report_t report;
    if (arena == NULL)
        arena = arena_new (CODEC_BROKER_ARENA_BYTES);
    if (!fuzz_piece (&data, &size, &piece, &piece_size))
        return 0;
    arena_reset (arena);
    const Taskmq__BrokerMessage *message = codec_broker_message (&report, arena, piece, piece_size);
    for (size_t i = 0; message != NULL && i < message->n_replies; i++) {
        if (message->replies[i]->body_case == TASKMQ__REPLY__BODY_TASK)
            show (message->replies[i]->task, data, size, arena);
    }
    return 0;
}
