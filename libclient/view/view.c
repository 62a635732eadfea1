/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

#include "view.h"

#include "types.h"

static size_t view_labels (label_view_t *out, size_t max, const tmq_label_t *labels, size_t count)
{
    const size_t shown = count < max ? count : max;
    for (size_t i = 0; i < shown; i++)
        out[i] = (label_view_t){labels[i].key, labels[i].value};
    return shown;
}

static progress_view_t view_progress (double done, double total, const char *unit,
                                      const char *message)
{
    const bool given = done > 0 || total > 0 || (unit && *unit) || (message && *message);
    return (progress_view_t){given, done, total, unit, message};
}

void view_task (task_view_t *out, view_room_t *room, const tmq_task_t *task)
{
    const size_t labels =
        view_labels (room->labels, TMQ_LABELS_MAX, task->labels, task->labels_count);
    const size_t needs = view_labels (room->needs, TMQ_NEEDS_MAX, task->needs, task->needs_count);
    const size_t after = task->after_count < TMQ_AFTER_MAX ? task->after_count : TMQ_AFTER_MAX;
    for (size_t i = 0; i < after; i++)
        room->depends_on[i] = task->after[i].id;
    *out = (task_view_t){
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
        .labels = room->labels,
        .labels_count = labels,
        .meta = task->meta,
        .trace = task->trace,
        .cancel_message = task->cancel_message,
        .depends_on = room->depends_on,
        .depends_on_count = after,
        .parent = task->parent,
        .has_parts = task->has_parts,
        .turns = task->turns,
        .fair_key = task->fair_key,
        .needs = room->needs,
        .needs_count = needs,
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

void view_event (event_view_t *out, view_room_t *room, const tmq_event_t *event, const char *cursor)
{
    *out = (event_view_t){
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
        .labels = room->labels,
        .labels_count =
            view_labels (room->labels, TMQ_LABELS_MAX, event->labels, event->labels_count),
        .cursor = cursor,
        .subject = event->subject == TMQ_SUBJECT_TASK ? TMQ_SUBJECT_NONE : event->subject,
        .name = event->name,
        .number = event->number,
    };
    if (event->has_progress)
        out->progress = (progress_view_t){true, event->progress_done, event->progress_total,
                                          event->progress_unit, event->progress_message};
}

static void write_fact (json_writer_t *writer, const tmq_fact_t *fact)
{
    json_write_foreign_key (writer, fact->name);
    if (fact->kind == TMQ_FACT_TEXT)
        json_write_text (writer, fact->text);
    else if (fact->kind == TMQ_FACT_TIME)
        json_write_time (writer, (int64_t) fact->number);
    else
        json_write_int (writer, (int64_t) fact->number);
}

void view_write_why (json_writer_t *writer, const tmq_explanation_t *why)
{
    char id[37];
    tmq_id_format (&why->id, id);
    json_write_object_begin (writer);
    json_write_key (writer, "task_id");
    json_write_text (writer, id);
    json_write_key (writer, "status");
    json_write_text (writer, tmq_status_text (why->status));
    json_write_key (writer, "phase");
    json_write_text (writer, why->phase != TMQ_PHASE_NONE ? phase_text (why->phase) : NULL);
    json_write_key (writer, "reason");
    json_write_text (writer, why->reason);
    json_write_key (writer, "sentence");
    json_write_text (writer, why->sentence);
    json_write_key (writer, "facts");
    json_write_object_begin (writer);
    for (size_t i = 0; i < why->facts_count; i++)
        write_fact (writer, &why->facts[i]);
    json_write_object_end (writer);
    json_write_key (writer, "waits_for");
    json_write_array_begin (writer);
    for (size_t i = 0; i < why->after_count; i++) {
        tmq_id_format (&why->after[i].id, id);
        json_write_text (writer, id);
    }
    json_write_array_end (writer);
    json_write_object_end (writer);
}

void view_write_question (json_writer_t *writer, const tmq_question_t *question)
{
    json_write_question (writer, &(question_view_t){.task_id = question->task_id,
                                                    .key = question->key,
                                                    .queue = question->queue,
                                                    .session = question->session,
                                                    .worker = question->worker,
                                                    .number = question->number,
                                                    .attempt = question->attempt,
                                                    .asked_at = (int64_t) question->asked_at,
                                                    .deadline = (int64_t) question->deadline,
                                                    .request = question->request,
                                                    .has_default = question->has_default,
                                                    .default_is_text = question->default_is_text,
                                                    .default_answer = question->default_answer});
}
