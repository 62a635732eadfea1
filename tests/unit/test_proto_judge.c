/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Sends requests over the wire's form, as a client does, and gives the validator's verdicts. */
#include "test_proto_judge.h"

#include <string.h>

arena_t *arena;
bytes_t wire = BYTES_INIT;
uint8_t sixteen[17] = {0x01, 0x7f, 0x22, 0xe2, 0x79, 0xb0, 0x7c, 0xc3, 0x98,
                       0xc4, 0xdc, 0x0c, 0x0c, 0x07, 0x39, 0x8f, 0x00};

int judge_setup (void **state)
{
    (void) state;
    arena = arena_new (CODEC_CLIENT_ARENA_BYTES);
    return arena != NULL ? 0 : -1;
}

int judge_teardown (void **state)
{
    (void) state;
    arena_free (arena);
    bytes_free (&wire);
    return 0;
}

char *text_of (const char *text)
{
    return (char *) (uintptr_t) text;
}

ProtobufCBinaryData bytes_of (size_t length)
{
    return (ProtobufCBinaryData){length, length > 0 ? sixteen : NULL};
}

char *repeated (char c, size_t length)
{
    static char texts[8][20000];
    static unsigned next;
    char *text = texts[next++ % 8];
    assert_true (length < sizeof texts[0]);
    memset (text, c, length);
    text[length] = '\0';
    return text;
}

Taskmq__Request request_of (Taskmq__Request__OpCase op)
{
    static uint64_t newest;
    Taskmq__Request request = TASKMQ__REQUEST__INIT;
    request.id = ++newest;
    request.request_id = bytes_of (16);
    request.op_case = op;
    return request;
}

const Taskmq__ClientMessage *judge_many (verdicts_t *out, Taskmq__Request **requests, size_t count,
                                         size_t body_bytes)
{
    Taskmq__ClientMessage message = TASKMQ__CLIENT_MESSAGE__INIT;
    message.token = bytes_of (16);
    message.n_requests = count;
    message.requests = requests;
    bytes_clear (&wire);
    bytes_append_packed (&wire, &message.base);
    assert_false (wire.failed);
    arena_reset (arena);
    return validate_frames (out, arena, body_bytes > 0 ? 2 : 1, wire.data, wire.length, body_bytes);
}

verdict_t judge (Taskmq__Request *request, size_t body_bytes)
{
    verdicts_t verdicts;
    const Taskmq__ClientMessage *message = judge_many (&verdicts, &request, 1, body_bytes);
    if (message == NULL)
        fail_msg ("the whole message was refused: %s", verdicts.message.text);
    assert_int_equal (verdicts.requests_count, 1);
    assert_int_equal (verdicts.refused, verdicts.requests[0].verdict.code != TMQ_OK);
    assert_true ((verdicts.requests[0].verdict.code == TMQ_OK) ==
                 (verdicts.requests[0].verdict.text == NULL));
    return verdicts.requests[0].verdict;
}

void assert_good (Taskmq__Request *request)
{
    verdict_t verdict = judge (request, 0);
    if (verdict.code != TMQ_OK)
        fail_msg ("refused: %s", verdict.text);
}

void assert_verdict (verdict_t verdict, tmq_code_t code, const char *text)
{
    if (verdict.code != code || strstr (verdict.text, text) == NULL)
        fail_msg ("wanted %d \"%s\", got %d \"%s\"", code, text, verdict.code,
                  verdict.text != NULL ? verdict.text : "");
}

void assert_bad (Taskmq__Request *request, tmq_code_t code, const char *text)
{
    assert_verdict (judge (request, 0), code, text);
}

Taskmq__Lease good_lease (void)
{
    Taskmq__Lease lease = TASKMQ__LEASE__INIT;
    lease.task_id = bytes_of (16);
    lease.attempt = 1;
    lease.secret = bytes_of (16);
    return lease;
}
