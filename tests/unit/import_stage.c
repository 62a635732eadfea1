/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

#include "import_stage.h"

#include <string.h>

enum { MADE_MS = 1000 }; /* so long before the rig's clock */

void given_fill (given_t *out, const rig_t *rig, unsigned n, tmq_status_t status)
{
    uint64_t now = (uint64_t) rig->now.wall_ms;
    *out = (given_t){TASKMQ__IMPORT__INIT,
                     TASKMQ__IMPORTED_TASK__INIT,
                     TASKMQ__TASK__INIT,
                     TASKMQ__TASK_ERROR__INIT,
                     TASKMQ__EXTRA__INIT,
                     rig_id (n),
                     {1}};
    out->import.task_id = (ProtobufCBinaryData){sizeof (out->id), out->id.bytes};
    out->import.extra = &out->extra;
    out->whole.task = &out->task;
    out->whole.payload = (ProtobufCBinaryData){5, (uint8_t *) "hello"};
    out->whole.lease_ms = 45000;
    out->task.queue = (char *) "q";
    out->task.status = status;
    out->task.priority = 9;
    out->task.created_at = now - MADE_MS;
    out->task.updated_at = now - 1;
    out->task.max_attempts = 3;
    out->task.attempt = 2;
    out->task.failures = 1;
    out->task.version = 7;
    out->task.worker = (char *) "w";
    if (status == TMQ_STATUS_COMPLETED || status == TMQ_STATUS_FAILED ||
        status == TMQ_STATUS_CANCELLED)
        out->task.finished_at = now - 1;
    if (status == TMQ_STATUS_COMPLETED) {
        out->task.outcome = TMQ_OUTCOME_RESULT;
        out->task.result_type = (char *) "text/plain";
        out->whole.result = (ProtobufCBinaryData){4, (uint8_t *) "done"};
    } else if (status == TMQ_STATUS_FAILED) {
        out->task.outcome = TMQ_OUTCOME_PROTOCOL_ERROR;
        out->task.error = &out->error;
        out->error.code = 7;
        out->error.message = (char *) "broken";
    }
}

uint64_t given_send_piece (rig_t *rig, size_t peer, given_t *given, const uint8_t *bytes,
                           size_t from, size_t length, bool more)
{
    Taskmq__Request request = TASKMQ__REQUEST__INIT;
    given->import.offset = (uint32_t) from;
    given->import.bytes = (uint32_t) length;
    given->import.more = more;
    request.op_case = TASKMQ__REQUEST__OP_IMPORT;
    request.request_id = (ProtobufCBinaryData){16, given->request_id};
    request.import = &given->import;
    return rig_send (rig, peer, &request, bytes + from, length);
}

uint64_t given_send (rig_t *rig, size_t peer, given_t *given)
{
    static uint8_t packed[TMQ_FRAME_BYTES_MAX];
    size_t length = taskmq__imported_task__get_packed_size (&given->whole);
    assert_in_range (length, 1, sizeof (packed));
    taskmq__imported_task__pack (&given->whole, packed);
    return given_send_piece (rig, peer, given, packed, 0, length, false);
}

unsigned given_code (rig_t *rig, given_t *given)
{
    uint64_t request = given_send (rig, 0, given);
    rig_settle (rig);
    return rig_code (rig, 0, request);
}

const Taskmq__SubmittedItem *given_item (rig_t *rig, given_t *given)
{
    uint64_t request = given_send (rig, 0, given);
    rig_settle (rig);
    const Taskmq__Reply *reply = rig_reply (rig, 0, request)->reply;
    if (reply->code != TMQ_OK)
        fail_msg ("%u: %s", reply->code, reply->text);
    assert_int_equal (reply->body_case, TASKMQ__REPLY__BODY_SUBMITTED);
    assert_int_equal (reply->submitted->n_items, 1);
    return reply->submitted->items[0];
}

void given_upload (rig_t *rig, size_t peer, Taskmq__Blob *blob)
{
    Taskmq__BlobBegin begin = TASKMQ__BLOB_BEGIN__INIT;
    Taskmq__Request request = TASKMQ__REQUEST__INIT;
    begin.blob = blob;
    request.op_case = TASKMQ__REQUEST__OP_BLOB_BEGIN;
    request.blob_begin = &begin;
    rig_send (rig, peer, &request, NULL, 0);
    errand_t *errand = engine_errand_next (rig->engine);
    assert_non_null (errand);
    Taskmq__BlobAt at = TASKMQ__BLOB_AT__INIT;
    at.whole = errand->whole = true;
    errand_reply (errand, TASKMQ__REPLY__BODY_BLOB_AT, &at.base);
    engine_errand_done (rig->engine, errand, rig->now);
    rig_settle (rig);
}
