/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

#include "lib_rig.h"

#include <stdlib.h>
#include <string.h>

#include "validate.h"

core_config_t rig_config (void)
{
    static const char *const endpoints[] = {"tcp://127.0.0.1:1"};
    return (core_config_t){.seed = {1, 2, 3},
                           .ns = "",
                           .name = "test",
                           .endpoints = endpoints,
                           .endpoints_count = 1,
                           .requests_max = 100000,
                           .request_bytes_max = 64u << 20,
                           .completions_max = 100000,
                           .reads_max = 4,
                           .reconnect_ms_min = 100,
                           .reconnect_ms_max = 5000};
}

rig_t *rig_new (const core_config_t *config)
{
    core_config_t defaults = rig_config ();
    rig_t *rig = calloc (1, sizeof *rig);
    assert_non_null (rig);
    rig->now_ms = 1000000;
    rig->token = 7;
    rig->heartbeat_ms = TMQ_HEARTBEAT_MS;
    rig->arena = arena_new (CODEC_CLIENT_ARENA_BYTES);
    rig->core = core_new (config != NULL ? config : &defaults, rig->now_ms);
    assert_non_null (rig->core);
    core_tick (rig->core, rig->now_ms);
    return rig;
}

void rig_free (rig_t *rig)
{
    core_free (rig->core);
    arena_free (rig->arena);
    free (rig);
}

void rig_pass (rig_t *rig, int64_t ms)
{
    int64_t end_ms = rig->now_ms + ms;
    for (;;) {
        int64_t due_ms = core_next_due (rig->core);
        if (due_ms > end_ms)
            break;
        rig->now_ms = due_ms > rig->now_ms ? due_ms : rig->now_ms;
        core_tick (rig->core, rig->now_ms);
    }
    rig->now_ms = end_ms;
    core_tick (rig->core, rig->now_ms);
}

void rig_welcome (rig_t *rig)
{
    const Taskmq__Request *hello = rig_request (rig, TASKMQ__REQUEST__OP_HELLO);
    assert_int_equal (rig->message->token.len, 0);
    uint8_t token[16];
    memset (token, rig->token, sizeof token);
    Taskmq__Welcome welcome = TASKMQ__WELCOME__INIT;
    welcome.version = TMQ_PROTOCOL_VERSION;
    welcome.token = (ProtobufCBinaryData){sizeof token, token};
    welcome.namespace_ = (char *) (uintptr_t) "default";
    welcome.generation = 5;
    welcome.seq = 100;
    welcome.heartbeat_ms = rig->heartbeat_ms;
    Taskmq__Reply reply = TASKMQ__REPLY__INIT;
    reply.id = hello->id;
    reply.body_case = TASKMQ__REPLY__BODY_WELCOME;
    reply.welcome = &welcome;
    rig_reply (rig, &reply, NULL, 0);
}

rig_t *rig_linked (const core_config_t *config)
{
    rig_t *rig = rig_new (config);
    rig_welcome (rig);
    return rig;
}

void rig_cut (rig_t *rig)
{
    core_link_failed (rig->core, core_link_wanted (rig->core).connection, TMQ_UNREACHABLE,
                      "the connection ended", rig->now_ms);
}

bool rig_take (rig_t *rig)
{
    core_message_t out;
    if (!core_output (rig->core, &out, rig->now_ms))
        return false;
    assert_true (out.envelope_bytes <= TMQ_ENVELOPE_BYTES_MAX);
    assert_true (out.body_bytes <= TMQ_FRAME_BYTES_MAX);
    verdicts_t verdicts;
    arena_reset (rig->arena);
    rig->message = validate_frames (&verdicts, rig->arena, out.body_bytes > 0 ? 2 : 1, out.envelope,
                                    out.envelope_bytes, out.body_bytes);
    assert_non_null (rig->message);
    rig->body_bytes = out.body_bytes;
    if (out.body_bytes > 0)
        memcpy (rig->body, out.body, out.body_bytes);
    assert_int_equal (verdicts.message.code, TMQ_OK);
    for (size_t i = 0; i < verdicts.requests_count; i++) {
        if (verdicts.requests[i].verdict.code != TMQ_OK)
            print_error ("refused: %s\n", verdicts.requests[i].verdict.text);
        assert_int_equal (verdicts.requests[i].verdict.code, TMQ_OK);
    }
    return true;
}

const Taskmq__Request *rig_request (rig_t *rig, Taskmq__Request__OpCase op)
{
    for (;;) {
        assert_true (rig_take (rig));
        const Taskmq__Request *request = rig->message->requests[0];
        if (request->op_case != TASKMQ__REQUEST__OP_HEARTBEAT ||
            op == TASKMQ__REQUEST__OP_HEARTBEAT) {
            assert_int_equal (rig->message->n_requests, 1);
            assert_int_equal (request->op_case, op);
            return request;
        }
        rig_ok (rig, request->id);
    }
}

const Taskmq__Request *rig_find_request (rig_t *rig, Taskmq__Request__OpCase op)
{
    while (rig_take (rig))
        for (size_t i = 0; i < rig->message->n_requests; i++)
            if (rig->message->requests[i]->op_case == op)
                return rig->message->requests[i];
    return NULL;
}

void rig_send (rig_t *rig, const Taskmq__BrokerMessage *message, const void *body,
               size_t body_bytes)
{
    uint8_t *packed = malloc (taskmq__broker_message__get_packed_size (message) + 1);
    assert_non_null (packed);
    size_t bytes = taskmq__broker_message__pack (message, packed);
    core_receive (rig->core, packed, bytes, body, body_bytes, rig->now_ms);
    free (packed);
}

void rig_reply (rig_t *rig, Taskmq__Reply *reply, const void *body, size_t body_bytes)
{
    Taskmq__BrokerMessage message = TASKMQ__BROKER_MESSAGE__INIT;
    message.n_replies = 1;
    message.replies = &reply;
    rig_send (rig, &message, body, body_bytes);
}

void rig_refuse (rig_t *rig, uint64_t request, int code, uint32_t retry_after_ms)
{
    Taskmq__Reply reply = TASKMQ__REPLY__INIT;
    reply.id = request;
    reply.code = (uint32_t) code;
    reply.retry_after_ms = retry_after_ms;
    rig_reply (rig, &reply, NULL, 0);
}

void rig_ok (rig_t *rig, uint64_t request)
{
    rig_refuse (rig, request, TMQ_OK, 0);
}

core_answer_t *rig_answer (rig_t *rig, tmq_op_t op, int code)
{
    core_answer_t *answer = core_answer_next (rig->core);
    assert_non_null (answer);
    assert_int_equal (answer->completion.op, op);
    assert_int_equal (answer->completion.code, code);
    if (code != TMQ_OK)
        assert_int_equal (answer->completion.error->code, code);
    core_answer_taken (rig->core, answer);
    return answer;
}

void rig_answered (rig_t *rig, tmq_op_t op, int code)
{
    core_answer_free (rig_answer (rig, op, code));
}

void rig_no_answer (rig_t *rig)
{
    assert_null (core_answer_next (rig->core));
}

tmq_id_t rig_id (uint32_t number)
{
    tmq_id_t id = {{1, 2, 3, 4, 5, 6, 0x70, 7, 0x80, 8, 9, 10}};
    for (int i = 0; i < 4; i++)
        id.bytes[12 + i] = (uint8_t) (number >> (24 - 8 * i));
    return id;
}

ProtobufCBinaryData rig_bytes (const tmq_id_t *id)
{
    return (ProtobufCBinaryData){16, (uint8_t *) (uintptr_t) id->bytes};
}

void rig_submit (rig_t *rig, uint32_t number, int64_t timeout_ms)
{
    core_request_t *request;
    tmq_submit_t submit;
    tmq_submit_init (&submit);
    submit.id = rig_id (number);
    submit.queue = "q";
    submit.payload = "abc";
    submit.payload_bytes = 3;
    assert_int_equal (core_request_submit (&request, &submit, NULL, NULL), TMQ_OK);
    int64_t deadline_ms = timeout_ms == CORE_NEVER ? CORE_NEVER : rig->now_ms + timeout_ms;
    assert_int_equal (core_start (rig->core, request, (core_target_t){NULL, NULL, NULL},
                                  deadline_ms, rig->now_ms, NULL),
                      TMQ_OK);
}

void rig_accept (rig_t *rig, uint64_t request, const tmq_id_t *id)
{
    Taskmq__SubmittedItem item = TASKMQ__SUBMITTED_ITEM__INIT;
    Taskmq__SubmittedItem *items[] = {&item};
    item.task_id = rig_bytes (id);
    item.status = TMQ_STATUS_QUEUED;
    Taskmq__Submitted submitted = TASKMQ__SUBMITTED__INIT;
    submitted.n_items = 1;
    submitted.items = items;
    Taskmq__Reply reply = TASKMQ__REPLY__INIT;
    reply.id = request;
    reply.body_case = TASKMQ__REPLY__BODY_SUBMITTED;
    reply.submitted = &submitted;
    rig_reply (rig, &reply, NULL, 0);
}
