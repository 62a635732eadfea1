/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* One task by its id: get, result, payload, cancel. */
#include <stdio.h>
#include <string.h>

#include "core/engine_private.h"
#include "types.h"

/* Answers. */

static void answer_task (call_t *call, const record_t *record, tmq_phase_t phase, buf_t *body)
{
    engine_t *self = call->engine;
    bytes_mark_t mark;
    bytes_t *out = reply_open (self, call->request->id, TMQ_OK, NULL, 0, false, &mark);
    pack_task (out, TASKMQ__REPLY__BODY_TASK, record, phase, (uint32_t) buf_length (body));
    reply_close (self, call->link, mark, batch_to_wait_for (self), body);
}

/* The task as a record, wherever it is; texts is what the record may point into. */
static const record_t *view (const found_t *found, record_t *out, task_texts_t *texts)
{
    if (found->record != NULL)
        return found->record;
    task_view (found->task, out, texts);
    return out;
}

static tmq_phase_t phase_of (const engine_t *self, const found_t *found)
{
    return found->task != NULL ? task_phase (found->task)
                               : record_phase (found->record, self->wall);
}

/* Finds the task of a request; false when the request was answered. */
static bool find (call_t *call, const ProtobufCBinaryData *id, found_t *out)
{
    *out = lookup_id (call->engine, call->link->space, id->data);
    if (out->task != NULL || out->record != NULL)
        return true;
    reply_code (call, out->gone, NULL);
    return false;
}

void on_get (call_t *call)
{
    found_t found;
    record_t buffer;
    task_texts_t texts;
    if (!find (call, &call->request->get->task_id, &found))
        return;
    const record_t *record = view (&found, &buffer, &texts);
    answer_task (call, record, phase_of (call->engine, &found), record->result);
}

static void answer_wrong_status (call_t *call, const char *what, tmq_status_t status)
{
    char text[128];
    snprintf (text, sizeof (text), "%s: the task is %s", what, status_text (status));
    reply_code (call, TMQ_WRONG_STATUS, text);
}

void on_result (call_t *call)
{
    found_t found;
    record_t buffer;
    task_texts_t texts;
    if (!find (call, &call->request->result->task_id, &found))
        return;
    const record_t *record = view (&found, &buffer, &texts);
    if (!status_is_terminal (record->status))
        answer_wrong_status (call, "there is no result yet", record->status);
    else
        answer_task (call, record, phase_of (call->engine, &found), record->result);
}

void on_payload (call_t *call)
{
    found_t found;
    record_t buffer;
    task_texts_t texts;
    const ProtobufCBinaryData *id = &call->request->payload->task_id;
    if (!find (call, id, &found))
        return;
    const record_t *record = view (&found, &buffer, &texts);
    buf_t *payload = record->payload;
    if (payload == NULL && record->payload_bytes > 0)
        payload = lookup_payload (call->engine, call->link->space, id->data);
    if (payload == NULL && record->payload_bytes > 0)
        reply_code (call, TMQ_INTERNAL, "the payload could not be read");
    else
        answer_task (call, record, phase_of (call->engine, &found), payload);
}

/* cancel. */

/* The worker is told at once, and again with each renewal (S7). */
static void tell_worker (engine_t *self, const task_t *task, const char *message)
{
    const worker_t *worker = task->detail->holder;
    if (worker->link == NULL)
        return;
    Taskmq__CancelNotice notice = TASKMQ__CANCEL_NOTICE__INIT;
    notice.worker_id = (ProtobufCBinaryData){sizeof (worker->id), (uint8_t *) worker->id};
    notice.task_id = (ProtobufCBinaryData){sizeof (task->id), (uint8_t *) task->id.bytes};
    notice.attempt = task->attempt;
    notice.message = (char *) message;
    bytes_clear (&self->scratch);
    bytes_append_message (&self->scratch, 3, &notice.base);
    release_item (self, worker->link, ITEM_CANCEL, batch_to_wait_for (self), &self->scratch, NULL);
}

static void cancel_task (call_t *call, task_t *task)
{
    engine_t *self = call->engine;
    const Taskmq__Cancel *request = call->request->cancel;
    cause_t cause = {name_text (call->link->identity), request->message,
                     call->request->request_id.data};
    detail_t *detail = task_detail (&self->slab, task);
    if (request->message[0] != '\0')
        detail_set_text (&detail->status_message, request->message);
    if (task->leased)
        batch_add_attempt (self, task, TMQ_EVENT_CANCELLED, 0, request->message, cause.request_id);
    self->open.inputs++;
    change_finish (self, task, INPUT_CANCEL, &cause);
    if (task->leased)
        tell_worker (self, task, request->message);
}

void on_cancel (call_t *call)
{
    found_t found;
    record_t buffer;
    task_texts_t texts;
    if (!find (call, &call->request->cancel->task_id, &found))
        return;
    tmq_status_t status = found_status (&found);
    if (status == TMQ_STATUS_COMPLETED || status == TMQ_STATUS_FAILED) {
        answer_wrong_status (call, "it cannot be cancelled", status);
        return;
    }
    if (status != TMQ_STATUS_CANCELLED)
        cancel_task (call, found.task);
    answer_task (call, view (&found, &buffer, &texts), phase_of (call->engine, &found), NULL);
}
