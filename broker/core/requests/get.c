/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* One task by its id: get, result, payload. */
#include <stdio.h>

#include "core/base/memory.h"
#include "core/requests/answer.h"
#include "core/requests/deeds.h"
#include "core/requests/get.h"
#include "core/tasks/journal.h"
#include "core/tasks/view.h"
#include "core/wire/pack.h"
#include "types.h"

/* Answers. */

/* The body, and behind it the long data of the error, if both fit into a frame: beside a result
 * they do, beside a payload perhaps not. */
static buf_t *with_data (const record_t *record, bool none, buf_t *body)
{
    size_t data = none ? 0 : pack_long_data (record);
    if (data == 0 || buf_length (body) + data > TMQ_FRAME_BYTES_MAX)
        return buf_keep (body);
    bytes_t whole = BYTES_INIT;
    bytes_append (&whole, buf_bytes (body), buf_length (body));
    bytes_append (&whole, record->error_data, data);
    buf_t *frame = buf_new (whole.data, whole.length);
    bytes_free (&whole);
    return frame;
}

static void answer_record (call_t *call, const record_t *record, tmq_phase_t phase, buf_t *body)
{
    requests_t *self = call->requests;
    bytes_mark_t mark;
    bytes_t *out = reply_open (self, call->request->id, TMQ_OK, NULL, 0, false, &mark);
    bool bare = !call->bodies;
    if (bare)
        body = NULL;
    buf_t *frame = with_data (record, bare || call->no_body, body);
    const pack_bodies_t bodies = {(uint32_t) buf_length (body),
                                  (uint32_t) (buf_length (frame) - buf_length (body))};
    pack_task (out, TASKMQ__REPLY__BODY_TASK, record, phase, bare, bodies);
    reply_close (self, call->link, mark, journal_batch (self->tasks), frame);
    buf_drop (frame);
}

void get_answer (call_t *call, const found_t *found, buf_t *body)
{
    if (body != NULL && call->bodies)
        deeds_task (call, DEED_READ, found);
    if (found->record != NULL) {
        tmq_phase_t phase = record_phase (found->record, call->requests->base->clocks.wall_ms);
        answer_record (call, found->record, phase, body);
        return;
    }
    record_t view;
    task_texts_t texts MEMORY_FILLED_BEFORE_READ;
    task_view (found->task, &view, &texts);
    answer_record (call, &view, task_phase (call->requests->tasks, found->task), body);
}

void get_answer_wrong_status (call_t *call, const char *what, tmq_status_t status)
{
    char text[128];
    snprintf (text, sizeof (text), "%s: the task is %s", what, status_text (status));
    reply_code (call, TMQ_WRONG_STATUS, text);
}

bool get_find (call_t *call, const ProtobufCBinaryData *id, unsigned rights, found_t *out)
{
    *out = find_id (call->requests->reads, call->link, id->data, rights);
    if (out->task != NULL || out->record != NULL) {
        call->bodies =
            access_sees (&call->link->access, out->queue, out->owner, out->holder, RIGHT_BODY);
        return true;
    }
    reply_gone (call, out);
    return false;
}

/* One that came back to memory after its end has its result in the tables alone. */
static buf_t *result_of (const call_t *call, const found_t *found)
{
    if (found->record != NULL)
        return found->record->result;
    const detail_t *detail = found->task->detail;
    if (detail == NULL || detail->result != NULL || detail->result_bytes == 0)
        return detail == NULL ? NULL : detail->result;
    return find_result (call->requests->reads, call->link->space, found->task->id.bytes);
}

/* Requests. */

void on_get (call_t *call)
{
    found_t found;
    const Taskmq__Get *request = call->request->get;
    if (!get_find (call, &request->task_id, RIGHT_READ | RIGHT_OBSERVE, &found))
        return;
    call->no_body = request->no_body;
    get_answer (call, &found, request->no_body ? NULL : result_of (call, &found));
}

void on_result (call_t *call)
{
    found_t found;
    if (!get_find (call, &call->request->result->task_id, RIGHT_BODY, &found))
        return;
    tmq_status_t status = found_status (&found);
    if (!status_is_terminal (status))
        get_answer_wrong_status (call, "there is no result yet", status);
    else
        get_answer (call, &found, result_of (call, &found));
}

void on_payload (call_t *call)
{
    const ProtobufCBinaryData *id = &call->request->payload->task_id;
    found_t found;
    if (!get_find (call, id, RIGHT_BODY, &found))
        return;
    bool live = found.task != NULL;
    uint32_t bytes = live ? found.task->payload_bytes : found.record->payload_bytes;
    buf_t *payload = live ? found.task->payload : found.record->payload;
    if (payload == NULL && bytes > 0)
        payload = find_payload (call->requests->reads, call->link->space, id->data);
    if (payload == NULL && bytes > 0)
        reply_code (call, TMQ_INTERNAL, "the payload could not be read");
    else
        get_answer (call, &found, payload);
}
