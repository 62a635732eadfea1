/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* The validator: every limit at, below and beyond; one bad request or item beside good ones; frames
 * and bodies that do not fit. Every message goes over the wire's form, as a client sends it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "ids.h"
#include "validate.h"

static arena_t *arena;
static bytes_t wire = BYTES_INIT;
static uint8_t sixteen[17] = {0x01, 0x7f, 0x22, 0xe2, 0x79, 0xb0, 0x7c, 0xc3, 0x98,
                              0xc4, 0xdc, 0x0c, 0x0c, 0x07, 0x39, 0x8f, 0x00};

static int setup (void **state)
{
    (void) state;
    arena = arena_new (CODEC_CLIENT_ARENA_BYTES);
    return arena != NULL ? 0 : -1;
}

static int teardown (void **state)
{
    (void) state;
    arena_free (arena);
    bytes_free (&wire);
    return 0;
}

/* Generated messages have members without const. */
static char *text_of (const char *text)
{
    return (char *) (uintptr_t) text;
}

static ProtobufCBinaryData bytes_of (size_t length)
{
    return (ProtobufCBinaryData){length, length > 0 ? sixteen : NULL};
}

/* A text of length times c; a few of them may be in use at once. */
static char *repeated (char c, size_t length)
{
    static char texts[8][20000];
    static unsigned next;
    char *text = texts[next++ % 8];
    assert_true (length < sizeof texts[0]);
    memset (text, c, length);
    text[length] = '\0';
    return text;
}

static Taskmq__Request request_of (Taskmq__Request__OpCase op)
{
    Taskmq__Request request = TASKMQ__REQUEST__INIT;
    request.id = 1;
    request.request_id = bytes_of (16);
    request.op_case = op;
    return request;
}

/* Sends requests and gives what came out. */
static const Taskmq__ClientMessage *judge_many (verdicts_t *out, Taskmq__Request **requests,
                                                size_t count, size_t body_bytes)
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

static verdict_t judge (Taskmq__Request *request, size_t body_bytes)
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

static void assert_good (Taskmq__Request *request)
{
    verdict_t verdict = judge (request, 0);
    if (verdict.code != TMQ_OK)
        fail_msg ("refused: %s", verdict.text);
}

static void assert_verdict (verdict_t verdict, tmq_code_t code, const char *text)
{
    if (verdict.code != code || strstr (verdict.text, text) == NULL)
        fail_msg ("wanted %d \"%s\", got %d \"%s\"", code, text, verdict.code,
                  verdict.text != NULL ? verdict.text : "");
}

static void assert_bad (Taskmq__Request *request, tmq_code_t code, const char *text)
{
    assert_verdict (judge (request, 0), code, text);
}

/* ---- Envelopes and frames ------------------------------------------------------------------------- */

static void assert_message_refused (size_t frames, const void *envelope, size_t envelope_bytes,
                                    size_t body_bytes, tmq_code_t code, const char *text)
{
    verdicts_t verdicts;
    arena_reset (arena);
    assert_null (validate_frames (&verdicts, arena, frames, envelope, envelope_bytes, body_bytes));
    assert_null (verdicts.requests);
    assert_verdict (verdicts.message, code, text);
}

static void test_frames (void **state)
{
    (void) state;
    const uint8_t garbage[] = {0x12, 0xff};
    static uint8_t large[TMQ_ENVELOPE_BYTES_MAX + 1];
    assert_message_refused (0, "", 0, 0, TMQ_INVALID, "one or two frames, not 0");
    assert_message_refused (3, "", 0, 0, TMQ_INVALID, "not 3");
    assert_message_refused (100, "", 0, 0, TMQ_INVALID, "not 100");
    assert_message_refused (1, garbage, sizeof garbage, 0, TMQ_INVALID, "not a protobuf message");
    assert_message_refused (1, large, sizeof large, 0, TMQ_TOO_LARGE, "65536");
    assert_message_refused (2, "", 0, TMQ_FRAME_BYTES_MAX + 1, TMQ_TOO_LARGE, "262144");
    assert_message_refused (1, "", 0, 0, TMQ_INVALID, "requests: at least 1");
}

static void test_token (void **state)
{
    (void) state;
    Taskmq__Request request = request_of (TASKMQ__REQUEST__OP_HEARTBEAT);
    Taskmq__Heartbeat heartbeat = TASKMQ__HEARTBEAT__INIT;
    Taskmq__Request *requests[] = {&request};
    Taskmq__ClientMessage message = TASKMQ__CLIENT_MESSAGE__INIT;
    request.heartbeat = &heartbeat;
    message.n_requests = 1;
    message.requests = requests;
    for (size_t length = 0; length <= 17; length++) {
        verdicts_t verdicts;
        message.token = bytes_of (length);
        bytes_clear (&wire);
        bytes_append_packed (&wire, &message.base);
        arena_reset (arena);
        const Taskmq__ClientMessage *taken =
            validate_frames (&verdicts, arena, 1, wire.data, wire.length, 0);
        assert_int_equal (taken != NULL, length == 0 || length == 16);
        if (taken == NULL)
            assert_verdict (verdicts.message, TMQ_INVALID, "token: must be 16 bytes");
    }
}

static void test_number_of_requests (void **state)
{
    (void) state;
    static Taskmq__Request request;
    static Taskmq__Request *requests[TMQ_REQUESTS_MAX + 1];
    Taskmq__Stats stats = TASKMQ__STATS__INIT;
    request = request_of (TASKMQ__REQUEST__OP_STATS);
    request.request_id = bytes_of (0);
    request.stats = &stats;
    for (size_t i = 0; i < TMQ_REQUESTS_MAX + 1; i++)
        requests[i] = &request;
    verdicts_t verdicts;
    assert_non_null (judge_many (&verdicts, requests, TMQ_REQUESTS_MAX, 0));
    assert_int_equal (verdicts.requests_count, TMQ_REQUESTS_MAX);
    assert_int_equal (verdicts.refused, 0);
    assert_null (judge_many (&verdicts, requests, TMQ_REQUESTS_MAX + 1, 0));
    assert_verdict (verdicts.message, TMQ_TOO_LARGE, "requests: 1025 of them, at most 1024");
}

/* ---- What every request has ------------------------------------------------------------------------ */

static void test_ids_of_requests (void **state)
{
    (void) state;
    Taskmq__Cancel cancel = TASKMQ__CANCEL__INIT;
    Taskmq__Request request = request_of (TASKMQ__REQUEST__OP_CANCEL);
    cancel.task_id = bytes_of (16);
    request.cancel = &cancel;
    assert_good (&request);
    request.id = 0;
    assert_bad (&request, TMQ_INVALID, "id: must not be 0");
    request.id = UINT64_MAX;
    request.request_id = bytes_of (0);
    assert_bad (&request, TMQ_INVALID, "request_id: cancel needs one");
    request.request_id = bytes_of (15);
    assert_bad (&request, TMQ_INVALID, "request_id: must be 16 bytes, not 15");
    request.request_id = bytes_of (17);
    assert_bad (&request, TMQ_INVALID, "request_id: must be 16 bytes, not 17");

    Taskmq__Get get = TASKMQ__GET__INIT;
    get.task_id = bytes_of (16);
    request = request_of (TASKMQ__REQUEST__OP_GET);
    request.get = &get;
    assert_good (&request); /* a request id where none is needed does no harm */
    request.request_id = bytes_of (0);
    assert_good (&request);
    request.request_id = bytes_of (1);
    assert_bad (&request, TMQ_INVALID, "request_id: must be 16 bytes");
}

static void test_unknown_and_missing_kinds (void **state)
{
    (void) state;
    Taskmq__Request request = request_of (TASKMQ__REQUEST__OP__NOT_SET);
    assert_bad (&request, TMQ_UNSUPPORTED, "not known");
    assert_string_equal (validate_request_name (&request), "unknown");
    assert_false (validate_request_changes (&request));
    request.op_case = TASKMQ__REQUEST__OP_WORKER_CREDIT;
    assert_string_equal (validate_request_name (&request), "worker_credit");
}

/* Each kind that taskmq.proto knows has a row, under the member's name. */
static void test_every_kind_has_a_row (void **state)
{
    (void) state;
    const ProtobufCMessageDescriptor *type = &taskmq__request__descriptor;
    size_t kinds = 0, changing = 0;
    for (unsigned i = 0; i < type->n_fields; i++) {
        if ((type->fields[i].flags & PROTOBUF_C_FIELD_FLAG_ONEOF) == 0)
            continue;
        Taskmq__Request request = TASKMQ__REQUEST__INIT;
        request.op_case = (Taskmq__Request__OpCase) type->fields[i].id;
        assert_string_equal (validate_request_name (&request), type->fields[i].name);
        changing += validate_request_changes (&request) ? 1 : 0;
        kinds++;
    }
    assert_int_equal (kinds, 27);
    assert_int_equal (changing, 7);
}

/* ---- Link ------------------------------------------------------------------------------------------- */

static void test_hello (void **state)
{
    (void) state;
    Taskmq__Hello hello = TASKMQ__HELLO__INIT;
    Taskmq__Request request = request_of (TASKMQ__REQUEST__OP_HELLO);
    request.hello = &hello;
    hello.version_min = 1;
    hello.version_max = 1;
    assert_good (&request);
    hello.version_max = UINT32_MAX;
    hello.namespace_ = text_of ("default");
    hello.client = repeated ('c', 64);
    assert_good (&request);
    hello.client = repeated ('c', 65);
    assert_bad (&request, TMQ_TOO_LARGE, "client: 65 bytes, at most 64");
    hello.client = text_of ("");
    hello.namespace_ = text_of ("de fault");
    assert_bad (&request, TMQ_INVALID, "namespace: must match [A-Za-z0-9._-]{1,64}");
    hello.namespace_ = text_of ("");
    hello.version_min = 2;
    assert_bad (&request, TMQ_UNSUPPORTED, "version 1");
    hello.version_max = 1;
    assert_bad (&request, TMQ_INVALID, "version_min");
    hello.version_min = hello.version_max = 0;
    assert_bad (&request, TMQ_INVALID, "version_max");
}

static void test_hello_is_alone (void **state)
{
    (void) state;
    Taskmq__Hello hello = TASKMQ__HELLO__INIT;
    Taskmq__Stats stats = TASKMQ__STATS__INIT;
    Taskmq__Request first = request_of (TASKMQ__REQUEST__OP_HELLO);
    Taskmq__Request second = request_of (TASKMQ__REQUEST__OP_STATS);
    Taskmq__Request *requests[] = {&first, &second};
    verdicts_t verdicts;
    hello.version_min = hello.version_max = 1;
    first.hello = &hello;
    second.stats = &stats;
    assert_non_null (judge_many (&verdicts, requests, 2, 0));
    assert_verdict (verdicts.requests[0].verdict, TMQ_INVALID, "hello: must be alone");
    assert_int_equal (verdicts.requests[1].verdict.code, TMQ_OK);
    assert_int_equal (verdicts.refused, 1);
}

/* ---- Submit ------------------------------------------------------------------------------------------ */

static Taskmq__TaskSpec good_task (void)
{
    Taskmq__TaskSpec task = TASKMQ__TASK_SPEC__INIT;
    task.task_id = bytes_of (16);
    task.queue = text_of ("hash");
    return task;
}

/* Judges one task in a submit; OK when it has no verdict of its own. */
static verdict_t judge_task (Taskmq__TaskSpec *task)
{
    Taskmq__Submit submit = TASKMQ__SUBMIT__INIT;
    Taskmq__Request request = request_of (TASKMQ__REQUEST__OP_SUBMIT);
    Taskmq__Request *requests[] = {&request};
    verdicts_t verdicts;
    submit.n_tasks = 1;
    submit.tasks = &task;
    request.submit = &submit;
    assert_non_null (judge_many (&verdicts, requests, 1, validate_payload_bytes (task)));
    assert_int_equal (verdicts.requests[0].verdict.code, TMQ_OK);
    const verdict_t *items = verdicts.requests[0].items;
    return items != NULL ? items[0] : (verdict_t){TMQ_OK, NULL};
}

static void assert_good_task (Taskmq__TaskSpec task)
{
    verdict_t verdict = judge_task (&task);
    if (verdict.code != TMQ_OK)
        fail_msg ("refused: %s", verdict.text);
}

static void assert_bad_task (Taskmq__TaskSpec task, tmq_code_t code, const char *text)
{
    assert_verdict (judge_task (&task), code, text);
}

static void test_task_ids_are_uuid7 (void **state)
{
    (void) state;
    Taskmq__TaskSpec task = good_task ();
    uint8_t other[16];
    assert_good_task (task);
    task.task_id = bytes_of (15);
    assert_bad_task (task, TMQ_INVALID, "task_id: must be the 16 bytes of a UUIDv7");
    task.task_id = bytes_of (0);
    assert_bad_task (task, TMQ_INVALID, "task_id");
    memcpy (other, sixteen, sizeof other);
    other[6] = 0x4c;
    task.task_id = (ProtobufCBinaryData){sizeof other, other};
    assert_bad_task (task, TMQ_INVALID, "task_id");
    other[6] = 0x7c;
    other[8] = 0x18;
    assert_bad_task (task, TMQ_INVALID, "task_id");
}

static void test_texts_of_a_task (void **state)
{
    (void) state;
    Taskmq__TaskSpec task = good_task ();
    task.queue = repeated ('q', 64);
    task.session = repeated ('s', 64);
    task.method = repeated ('m', 256);
    task.content_type = repeated ('t', 256);
    assert_good_task (task);
    task.dedup_key = repeated ('d', 256);
    assert_good_task (task);
    task.dedup_key = repeated ('d', 257);
    assert_bad_task (task, TMQ_TOO_LARGE, "dedup_key: 257 bytes, at most 256");
    task = good_task ();
    task.queue = text_of ("");
    assert_bad_task (task, TMQ_INVALID, "queue: must match [A-Za-z0-9._-]{1,64}");
    task.queue = repeated ('q', 65);
    assert_bad_task (task, TMQ_INVALID, "queue: must match");
    task.queue = text_of ("ha sh");
    assert_bad_task (task, TMQ_INVALID, "queue: must match");
    task = good_task ();
    task.session = text_of ("a/b");
    assert_bad_task (task, TMQ_INVALID, "session: must match");
    task = good_task ();
    task.method = repeated ('m', 257);
    assert_bad_task (task, TMQ_TOO_LARGE, "method: 257 bytes, at most 256");
    task = good_task ();
    task.content_type = repeated ('t', 257);
    assert_bad_task (task, TMQ_TOO_LARGE, "content_type: 257 bytes");
}

static void test_numbers_of_a_task (void **state)
{
    (void) state;
    Taskmq__TaskSpec task = good_task ();
    task.priority_plus_1 = 256;
    task.ttl_ms = TMQ_TTL_MS_MAX;
    task.poll_interval_ms = UINT32_MAX;
    task.max_attempts = TMQ_MAX_ATTEMPTS_MAX;
    task.backoff_ms = TMQ_BACKOFF_MS_MAX;
    task.lease_ms = TMQ_LEASE_MS_MAX;
    task.payload_bytes = TMQ_FRAME_BYTES_MAX;
    assert_good_task (task);
    task.lease_ms = TMQ_LEASE_MS_MIN;
    task.ttl_ms = 0;
    task.ttl_never = true;
    assert_good_task (task);
    task.ttl_ms = 1;
    assert_bad_task (task, TMQ_INVALID, "ttl_ms: must be 0 beside ttl_never");
    task = good_task ();
    task.ttl_ms = TMQ_TTL_MS_MAX + 1;
    assert_bad_task (task, TMQ_INVALID, "ttl_ms: must be in 0..315576000000");
    task = good_task ();
    task.priority_plus_1 = 257;
    assert_bad_task (task, TMQ_INVALID, "priority_plus_1: must be in 0..256");
    task = good_task ();
    task.max_attempts = TMQ_MAX_ATTEMPTS_MAX + 1;
    assert_bad_task (task, TMQ_INVALID, "max_attempts");
    task = good_task ();
    task.backoff_ms = TMQ_BACKOFF_MS_MAX + 1;
    assert_bad_task (task, TMQ_INVALID, "backoff_ms");
    task = good_task ();
    task.lease_ms = TMQ_LEASE_MS_MIN - 1;
    assert_bad_task (task, TMQ_INVALID, "lease_ms: must be in 1000..86400000");
    task.lease_ms = TMQ_LEASE_MS_MAX + 1;
    assert_bad_task (task, TMQ_INVALID, "lease_ms");
    task = good_task ();
    task.payload_bytes = TMQ_FRAME_BYTES_MAX + 1;
    assert_bad_task (task, TMQ_TOO_LARGE, "payload_bytes: 262145, at most 262144");
    task.payload_bytes = UINT32_MAX;
    assert_bad_task (task, TMQ_TOO_LARGE, "payload_bytes: 4294967295, at most 262144");
}

static void test_labels_of_a_task (void **state)
{
    (void) state;
    Taskmq__Label labels[TMQ_LABELS_MAX + 1];
    Taskmq__Label *pointers[TMQ_LABELS_MAX + 1];
    char keys[TMQ_LABELS_MAX + 1][2];
    for (size_t i = 0; i < TMQ_LABELS_MAX + 1; i++) {
        keys[i][0] = (char) ('a' + i);
        keys[i][1] = '\0';
        taskmq__label__init (&labels[i]);
        labels[i].key = keys[i];
        pointers[i] = &labels[i];
    }
    Taskmq__TaskSpec task = good_task ();
    task.labels = pointers;
    task.n_labels = TMQ_LABELS_MAX;
    labels[15].value = repeated ('v', 256);
    assert_good_task (task);
    task.n_labels++;
    assert_bad_task (task, TMQ_TOO_LARGE, "labels: 17 of them, at most 16");
    task.n_labels = 2;
    labels[1].value = repeated ('v', 257);
    assert_bad_task (task, TMQ_TOO_LARGE, "labels.value: 257 bytes");
    labels[1].value = text_of ("");
    labels[1].key = text_of ("");
    assert_bad_task (task, TMQ_INVALID, "labels.key: must match");
    labels[1].key = text_of ("a");
    assert_bad_task (task, TMQ_INVALID, "labels.key: \"a\" stands twice");
}

static void test_meta_of_a_task (void **state)
{
    (void) state;
    Taskmq__TaskSpec task = good_task ();
    task.meta = text_of ("{\"a\":[1,{}]}");
    assert_good_task (task);
    const char *bad[] = {"[]", "1", "{", "{}{}", "null", " "};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        task.meta = text_of (bad[i]);
        assert_bad_task (task, TMQ_INVALID, "meta: must be a JSON object");
    }
    for (size_t size = TMQ_META_BYTES_MAX; size <= TMQ_META_BYTES_MAX + 1; size++) {
        task.meta = repeated (' ', size);
        task.meta[0] = '{';
        task.meta[size - 1] = '}';
        if (size == TMQ_META_BYTES_MAX)
            assert_good_task (task);
        else
            assert_bad_task (task, TMQ_TOO_LARGE, "meta: 16385 bytes, at most 16384");
    }
}

static void test_number_of_tasks (void **state)
{
    (void) state;
    Taskmq__TaskSpec task = good_task ();
    Taskmq__TaskSpec *tasks[TMQ_SUBMIT_ITEMS_MAX + 1];
    Taskmq__Submit submit = TASKMQ__SUBMIT__INIT;
    Taskmq__Request request = request_of (TASKMQ__REQUEST__OP_SUBMIT);
    for (size_t i = 0; i < TMQ_SUBMIT_ITEMS_MAX + 1; i++)
        tasks[i] = &task;
    submit.tasks = tasks;
    request.submit = &submit;
    assert_bad (&request, TMQ_INVALID, "tasks: at least 1");
    submit.n_tasks = TMQ_SUBMIT_ITEMS_MAX;
    assert_good (&request);
    submit.n_tasks++;
    assert_bad (&request, TMQ_TOO_LARGE, "tasks: 257 of them, at most 256");
}

/* Bad items get their own verdict, also when several requests have some. */
static void test_bad_items_beside_good_ones (void **state)
{
    (void) state;
    Taskmq__TaskSpec good = good_task ();
    Taskmq__TaskSpec bad = good_task ();
    Taskmq__TaskSpec flawed = good_task ();
    good.payload_bytes = 10;
    bad.payload_bytes = 5;
    bad.queue = text_of ("");
    flawed.method = text_of ("\xc3\x28");
    Taskmq__TaskSpec *first_tasks[] = {&good, &flawed, &bad};
    Taskmq__TaskSpec *second_tasks[] = {&good, &good, &bad, &flawed};
    Taskmq__Submit first_submit = TASKMQ__SUBMIT__INIT;
    Taskmq__Submit second_submit = TASKMQ__SUBMIT__INIT;
    Taskmq__Request first = request_of (TASKMQ__REQUEST__OP_SUBMIT);
    Taskmq__Request second = request_of (TASKMQ__REQUEST__OP_SUBMIT);
    Taskmq__Request *requests[] = {&first, &second};
    first_submit.n_tasks = 3;
    first_submit.tasks = first_tasks;
    second_submit.n_tasks = 4;
    second_submit.tasks = second_tasks;
    first.submit = &first_submit;
    second.submit = &second_submit;
    verdicts_t verdicts;
    assert_non_null (judge_many (&verdicts, requests, 2, 40));
    assert_int_equal (verdicts.refused, 0);
    assert_int_equal (verdicts.requests[0].body_offset, 0);
    assert_int_equal (verdicts.requests[1].body_offset, 15);
    const verdict_t *items = verdicts.requests[0].items;
    assert_int_equal (items[0].code, TMQ_OK);
    assert_verdict (items[1], TMQ_INVALID, "method: must be UTF-8 without NUL");
    assert_verdict (items[2], TMQ_INVALID, "queue");
    items = verdicts.requests[1].items;
    assert_int_equal (items[0].code, TMQ_OK);
    assert_int_equal (items[1].code, TMQ_OK);
    assert_verdict (items[2], TMQ_INVALID, "queue");
    assert_verdict (items[3], TMQ_INVALID, "method: must be UTF-8");
}

/* A NUL inside a text is invisible after decoding; it must not cut a name to a good one. */
static void test_nul_in_a_name (void **state)
{
    (void) state;
    bytes_clear (&wire);
    bytes_append_blob (&wire, 1, sixteen, 16);
    bytes_mark_t request = bytes_open (&wire, 2);
    bytes_append_uint (&wire, 1, 9);
    bytes_append_blob (&wire, 3, sixteen, 16);
    bytes_mark_t submit = bytes_open (&wire, 20);
    bytes_mark_t task = bytes_open (&wire, 1);
    bytes_append_blob (&wire, 1, sixteen, 16);
    bytes_append_blob (&wire, 2, "hash\0evil", 9);
    bytes_close (&wire, task);
    bytes_close (&wire, submit);
    bytes_close (&wire, request);
    verdicts_t verdicts;
    arena_reset (arena);
    assert_non_null (validate_frames (&verdicts, arena, 1, wire.data, wire.length, 0));
    assert_non_null (verdicts.requests[0].items);
    assert_verdict (verdicts.requests[0].items[0], TMQ_INVALID, "queue: must be UTF-8");
}

/* ---- Bodies ------------------------------------------------------------------------------------------- */

static void test_bodies_must_fit_the_frame (void **state)
{
    (void) state;
    Taskmq__TaskSpec task = good_task ();
    Taskmq__TaskSpec *tasks[] = {&task};
    Taskmq__Submit submit = TASKMQ__SUBMIT__INIT;
    Taskmq__Stats stats = TASKMQ__STATS__INIT;
    Taskmq__Request first = request_of (TASKMQ__REQUEST__OP_SUBMIT);
    Taskmq__Request second = request_of (TASKMQ__REQUEST__OP_STATS);
    Taskmq__Request *requests[] = {&first, &second};
    verdicts_t verdicts;
    task.payload_bytes = 10;
    submit.n_tasks = 1;
    submit.tasks = tasks;
    first.submit = &submit;
    second.stats = &stats;
    const size_t lengths[] = {0, 9, 11, TMQ_FRAME_BYTES_MAX};
    for (size_t i = 0; i < sizeof lengths / sizeof lengths[0]; i++) {
        assert_non_null (judge_many (&verdicts, requests, 2, lengths[i]));
        assert_verdict (verdicts.requests[0].verdict, TMQ_INVALID,
                        "the requests mention 10 bytes, the second frame has");
        assert_int_equal (verdicts.requests[1].verdict.code, TMQ_OK);
        assert_int_equal (verdicts.refused, 1);
    }
    assert_non_null (judge_many (&verdicts, requests, 2, 10));
    assert_int_equal (verdicts.refused, 0);
}

static void test_a_frame_that_nobody_mentions (void **state)
{
    (void) state;
    Taskmq__Stats stats = TASKMQ__STATS__INIT;
    Taskmq__Request request = request_of (TASKMQ__REQUEST__OP_STATS);
    Taskmq__Request *requests[] = {&request};
    verdicts_t verdicts;
    request.stats = &stats;
    assert_null (judge_many (&verdicts, requests, 1, 1));
    assert_verdict (verdicts.message, TMQ_INVALID, "1 bytes that no request mentions");
    /* An empty second frame is none. */
    arena_reset (arena);
    assert_non_null (validate_frames (&verdicts, arena, 2, wire.data, wire.length, 0));
}

/* A task that says it has more than a frame does not shift its neighbours' bodies. */
static void test_a_payload_larger_than_a_frame_is_not_there (void **state)
{
    (void) state;
    Taskmq__TaskSpec small = good_task ();
    Taskmq__TaskSpec huge = good_task ();
    Taskmq__TaskSpec *first_tasks[] = {&huge, &small};
    Taskmq__TaskSpec *second_tasks[] = {&small};
    Taskmq__Submit first_submit = TASKMQ__SUBMIT__INIT;
    Taskmq__Submit second_submit = TASKMQ__SUBMIT__INIT;
    Taskmq__Request first = request_of (TASKMQ__REQUEST__OP_SUBMIT);
    Taskmq__Request second = request_of (TASKMQ__REQUEST__OP_SUBMIT);
    Taskmq__Request *requests[] = {&first, &second};
    verdicts_t verdicts;
    small.payload_bytes = 7;
    huge.payload_bytes = 300000;
    first_submit.n_tasks = 2;
    first_submit.tasks = first_tasks;
    second_submit.n_tasks = 1;
    second_submit.tasks = second_tasks;
    first.submit = &first_submit;
    second.submit = &second_submit;
    assert_int_equal (validate_payload_bytes (&huge), 0);
    assert_non_null (judge_many (&verdicts, requests, 2, 14));
    assert_int_equal (verdicts.refused, 0);
    assert_verdict (verdicts.requests[0].items[0], TMQ_TOO_LARGE, "262144");
    assert_int_equal (verdicts.requests[0].items[1].code, TMQ_OK);
    assert_null (verdicts.requests[1].items);
    assert_int_equal (verdicts.requests[1].body_offset, 7);
}

/* ---- Reads ------------------------------------------------------------------------------------------ */

static void test_requests_for_one_task (void **state)
{
    (void) state;
    Taskmq__Get get = TASKMQ__GET__INIT;
    const Taskmq__Request__OpCase kinds[] = {TASKMQ__REQUEST__OP_GET, TASKMQ__REQUEST__OP_RESULT,
                                             TASKMQ__REQUEST__OP_PAYLOAD};
    for (size_t i = 0; i < 3; i++) {
        Taskmq__Request request = request_of (kinds[i]);
        request.get = &get;
        get.task_id = bytes_of (16);
        assert_good (&request);
        get.task_id = bytes_of (17);
        assert_bad (&request, TMQ_INVALID, "task_id: must be 16 bytes, not 17");
        get.task_id = bytes_of (0);
        assert_bad (&request, TMQ_INVALID, "task_id: must be 16 bytes, not 0");
    }
    Taskmq__TaskEvents events = TASKMQ__TASK_EVENTS__INIT;
    Taskmq__Request request = request_of (TASKMQ__REQUEST__OP_TASK_EVENTS);
    request.task_events = &events;
    assert_bad (&request, TMQ_INVALID, "task_id");
    events.task_id = bytes_of (16);
    events.limit = 1000;
    assert_good (&request);
    events.limit = 1001;
    assert_bad (&request, TMQ_INVALID, "limit: must be in 0..1000");
}

static void test_resolve (void **state)
{
    (void) state;
    Taskmq__Resolve resolve = TASKMQ__RESOLVE__INIT;
    Taskmq__Request request = request_of (TASKMQ__REQUEST__OP_RESOLVE);
    request.resolve = &resolve;
    resolve.suffix = text_of ("07398f");
    assert_good (&request);
    resolve.suffix = repeated ('a', 32);
    assert_good (&request);
    const char *bad[] = {"", "7398f", "07398F", "07398g", "0739-8f", "' or 1=1 --"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        resolve.suffix = text_of (bad[i]);
        assert_bad (&request, TMQ_INVALID, "suffix: must be 6..32 lower-case hexadecimal digits");
    }
    resolve.suffix = repeated ('a', 33);
    assert_bad (&request, TMQ_INVALID, "suffix");
}

static void test_filters_of_list_and_count (void **state)
{
    (void) state;
    Taskmq__Filter filter = TASKMQ__FILTER__INIT;
    Taskmq__List list = TASKMQ__LIST__INIT;
    Taskmq__Count count = TASKMQ__COUNT__INIT;
    Taskmq__Request request = request_of (TASKMQ__REQUEST__OP_LIST);
    Taskmq__Request counting = request_of (TASKMQ__REQUEST__OP_COUNT);
    request.list = &list;
    counting.count = &count;
    assert_good (&request);
    assert_good (&counting);
    list.filter = count.filter = &filter;
    list.limit = 1000;
    assert_good (&request);
    list.limit = 1001;
    assert_bad (&request, TMQ_INVALID, "limit: must be in 0..1000");
    list.limit = 0;

    char *names[TMQ_FILTER_VALUES_MAX + 1];
    for (size_t i = 0; i < TMQ_FILTER_VALUES_MAX + 1; i++)
        names[i] = text_of ("name");
    filter.queues = filter.sessions = names;
    filter.n_queues = filter.n_sessions = TMQ_FILTER_VALUES_MAX;
    assert_good (&request);
    filter.n_queues++;
    assert_bad (&request, TMQ_TOO_LARGE, "queues: 65 of them, at most 64");
    filter.n_queues = 0;
    filter.n_sessions++;
    assert_bad (&counting, TMQ_TOO_LARGE, "sessions: 65 of them, at most 64");
    filter.n_sessions = 2;
    names[1] = text_of ("");
    assert_bad (&counting, TMQ_INVALID, "sessions: must match");
    filter.n_sessions = 0;
    filter.n_queues = 2;
    names[1] = text_of ("\xff");
    assert_bad (&counting, TMQ_INVALID, "queues: must be UTF-8 without NUL");
    filter.n_queues = 0;

    uint32_t statuses[TMQ_FILTER_VALUES_MAX + 1] = {1, 2, 3, 4, 5, 6};
    filter.statuses = statuses;
    filter.n_statuses = 6;
    assert_good (&request);
    filter.n_statuses = 7;
    assert_bad (&request, TMQ_INVALID, "statuses: 0 is no status");
    statuses[6] = 7;
    assert_bad (&request, TMQ_INVALID, "statuses: 7 is no status");
    filter.n_statuses = TMQ_FILTER_VALUES_MAX + 1;
    assert_bad (&request, TMQ_TOO_LARGE, "statuses: 65 of them");
    filter.n_statuses = 0;

    filter.created_until = INT64_MAX;
    assert_good (&request);
    filter.created_until++;
    assert_bad (&request, TMQ_INVALID, "created_until");
    filter.created_until = 0;
    filter.created_since = UINT64_MAX;
    assert_bad (&request, TMQ_INVALID, "created_since");
    filter.created_since = 0;

    ProtobufCBinaryData ids[] = {bytes_of (16)};
    filter.task_ids = ids;
    filter.n_task_ids = 1;
    assert_bad (&request, TMQ_UNSUPPORTED, "task_ids: only in the filter of a subscription");
    filter.n_task_ids = 0;
    Taskmq__Label label = TASKMQ__LABEL__INIT;
    Taskmq__Label *labels[] = {&label};
    label.key = text_of ("k");
    filter.labels = labels;
    filter.n_labels = 1;
    assert_bad (&counting, TMQ_UNSUPPORTED, "labels: only in the filter of a subscription");
}

static void test_wait (void **state)
{
    (void) state;
    ProtobufCBinaryData ids[TMQ_WAIT_IDS_MAX + 1];
    Taskmq__Wait wait = TASKMQ__WAIT__INIT;
    Taskmq__Request request = request_of (TASKMQ__REQUEST__OP_WAIT);
    for (size_t i = 0; i < TMQ_WAIT_IDS_MAX + 1; i++)
        ids[i] = bytes_of (16);
    request.wait = &wait;
    wait.task_ids = ids;
    assert_bad (&request, TMQ_INVALID, "task_ids: at least 1");
    wait.n_task_ids = TMQ_WAIT_IDS_MAX;
    assert_good (&request);
    wait.n_task_ids++;
    assert_bad (&request, TMQ_TOO_LARGE, "task_ids: 1001 of them, at most 1000");
    wait.n_task_ids = 3;
    ids[2] = bytes_of (8);
    assert_bad (&request, TMQ_INVALID, "task_ids: must be 16 bytes, not 8");
}

static void test_cancel (void **state)
{
    (void) state;
    Taskmq__Cancel cancel = TASKMQ__CANCEL__INIT;
    Taskmq__Request request = request_of (TASKMQ__REQUEST__OP_CANCEL);
    request.cancel = &cancel;
    assert_bad (&request, TMQ_INVALID, "task_id");
    cancel.task_id = bytes_of (16);
    cancel.message = repeated ('m', 1024);
    assert_good (&request);
    cancel.message = repeated ('m', 1025);
    assert_bad (&request, TMQ_TOO_LARGE, "message: 1025 bytes, at most 1024");
}

/* ---- Subscriptions -------------------------------------------------------------------------------------- */

static void test_subscribe (void **state)
{
    (void) state;
    Taskmq__Filter filter = TASKMQ__FILTER__INIT;
    Taskmq__Subscribe subscribe = TASKMQ__SUBSCRIBE__INIT;
    Taskmq__Request request = request_of (TASKMQ__REQUEST__OP_SUBSCRIBE);
    request.subscribe = &subscribe;
    assert_bad (&request, TMQ_INVALID, "subscription: must not be 0");
    subscribe.subscription = UINT64_MAX;
    subscribe.after_seq = 5;
    assert_good (&request);
    subscribe.since_time = 5;
    assert_bad (&request, TMQ_INVALID, "since_time: must be 0 beside after_seq");
    subscribe.after_seq = 0;
    assert_good (&request);
    subscribe.since_time = UINT64_MAX;
    assert_bad (&request, TMQ_INVALID, "since_time");
    subscribe.since_time = 0;

    subscribe.filter = &filter;
    filter.created_since = 1;
    assert_bad (&request, TMQ_INVALID, "created_since, created_until: not in a subscription");
    filter.created_since = 0;
    ProtobufCBinaryData ids[TMQ_FILTER_VALUES_MAX + 1];
    for (size_t i = 0; i < TMQ_FILTER_VALUES_MAX + 1; i++)
        ids[i] = bytes_of (16);
    filter.task_ids = ids;
    filter.n_task_ids = TMQ_FILTER_VALUES_MAX;
    assert_good (&request);
    filter.n_task_ids++;
    assert_bad (&request, TMQ_TOO_LARGE, "task_ids: 65 of them");
    filter.n_task_ids = 1;
    ids[0] = bytes_of (1);
    assert_bad (&request, TMQ_INVALID, "task_ids: must be 16 bytes");
    filter.n_task_ids = 0;
    Taskmq__Label label = TASKMQ__LABEL__INIT;
    Taskmq__Label *labels[] = {&label};
    filter.labels = labels;
    filter.n_labels = 1;
    assert_bad (&request, TMQ_INVALID, "labels.key: must match");
    label.key = text_of ("team");
    assert_good (&request);
}

static void test_credit_and_unsubscribe (void **state)
{
    (void) state;
    Taskmq__Credit credit = TASKMQ__CREDIT__INIT;
    Taskmq__Unsubscribe unsubscribe = TASKMQ__UNSUBSCRIBE__INIT;
    Taskmq__Request request = request_of (TASKMQ__REQUEST__OP_CREDIT);
    request.credit = &credit;
    assert_bad (&request, TMQ_INVALID, "subscription");
    credit.subscription = 1;
    assert_good (&request);
    request = request_of (TASKMQ__REQUEST__OP_UNSUBSCRIBE);
    request.unsubscribe = &unsubscribe;
    assert_bad (&request, TMQ_INVALID, "subscription");
    unsubscribe.subscription = 1;
    assert_good (&request);
}

/* ---- Workers ----------------------------------------------------------------------------------------------- */

static Taskmq__Lease good_lease (void)
{
    Taskmq__Lease lease = TASKMQ__LEASE__INIT;
    lease.task_id = bytes_of (16);
    lease.attempt = 1;
    lease.secret = bytes_of (16);
    return lease;
}

static void test_register (void **state)
{
    (void) state;
    char *queues[TMQ_WORKER_QUEUES_MAX + 1];
    static Taskmq__Lease *leases[TMQ_CREDIT_MAX + 1];
    Taskmq__Lease lease = good_lease ();
    Taskmq__Register worker = TASKMQ__REGISTER__INIT;
    Taskmq__Request request = request_of (TASKMQ__REQUEST__OP_REGISTER);
    for (size_t i = 0; i < TMQ_WORKER_QUEUES_MAX + 1; i++)
        queues[i] = text_of ("hash");
    for (size_t i = 0; i < TMQ_CREDIT_MAX + 1; i++)
        leases[i] = &lease;
    request.register_ = &worker;
    worker.worker_id = bytes_of (16);
    worker.name = text_of ("worker-1");
    worker.queues = queues;
    worker.n_queues = TMQ_WORKER_QUEUES_MAX;
    worker.capacity = TMQ_CREDIT_MAX;
    worker.leases = leases;
    worker.n_leases = TMQ_CREDIT_MAX;
    assert_good (&request);
    worker.n_leases++;
    assert_bad (&request, TMQ_TOO_LARGE, "leases: 1001 of them, at most 1000");
    worker.n_leases = 1;
    lease.attempt = 0;
    assert_bad (&request, TMQ_INVALID, "lease.attempt: must be in 1..4294967295");
    worker.n_leases = 0;
    worker.capacity++;
    assert_bad (&request, TMQ_INVALID, "capacity: must be in 0..1000");
    worker.capacity = 0;
    assert_good (&request);
    worker.n_queues++;
    assert_bad (&request, TMQ_TOO_LARGE, "queues: 65 of them, at most 64");
    worker.n_queues = 0;
    assert_bad (&request, TMQ_INVALID, "queues: at least 1");
    worker.n_queues = 1;
    queues[0] = text_of ("*");
    assert_bad (&request, TMQ_INVALID, "queues: must match");
    queues[0] = text_of ("hash");
    worker.name = text_of ("");
    assert_bad (&request, TMQ_INVALID, "name: must match");
    worker.name = text_of ("w");
    worker.worker_id = bytes_of (4);
    assert_bad (&request, TMQ_INVALID, "worker_id: must be 16 bytes, not 4");
}

static void test_worker_credit_renew_and_leave (void **state)
{
    (void) state;
    Taskmq__WorkerCredit credit = TASKMQ__WORKER_CREDIT__INIT;
    Taskmq__Request request = request_of (TASKMQ__REQUEST__OP_WORKER_CREDIT);
    request.worker_credit = &credit;
    assert_bad (&request, TMQ_INVALID, "worker_id");
    credit.worker_id = bytes_of (16);
    credit.capacity = TMQ_CREDIT_MAX;
    assert_good (&request);
    credit.capacity++;
    assert_bad (&request, TMQ_INVALID, "capacity");

    Taskmq__Lease lease = good_lease ();
    Taskmq__Lease *leases[] = {&lease};
    Taskmq__Renew renew = TASKMQ__RENEW__INIT;
    request = request_of (TASKMQ__REQUEST__OP_RENEW);
    request.renew = &renew;
    assert_bad (&request, TMQ_INVALID, "worker_id");
    renew.worker_id = bytes_of (16);
    assert_bad (&request, TMQ_INVALID, "leases: at least 1");
    renew.leases = leases;
    renew.n_leases = 1;
    assert_good (&request);
    lease.secret = bytes_of (0);
    assert_bad (&request, TMQ_INVALID, "lease.secret: must be 16 bytes, not 0");

    Taskmq__Leave leave = TASKMQ__LEAVE__INIT;
    request = request_of (TASKMQ__REQUEST__OP_LEAVE);
    request.leave = &leave;
    assert_bad (&request, TMQ_INVALID, "worker_id");
    leave.worker_id = bytes_of (16);
    assert_good (&request);
}

static void test_push (void **state)
{
    (void) state;
    Taskmq__Lease lease = good_lease ();
    Taskmq__Progress progress = TASKMQ__PROGRESS__INIT;
    Taskmq__Push push = TASKMQ__PUSH__INIT;
    Taskmq__Request request = request_of (TASKMQ__REQUEST__OP_PUSH);
    request.push = &push;
    assert_bad (&request, TMQ_INVALID, "lease: is missing");
    push.lease = &lease;
    assert_bad (&request, TMQ_INVALID, "status_message or progress");
    push.status_message = repeated ('s', 1024);
    assert_good (&request);
    push.status_message = repeated ('s', 1025);
    assert_bad (&request, TMQ_TOO_LARGE, "status_message: 1025 bytes");
    push.status_message = text_of ("");
    push.progress = &progress;
    assert_good (&request);
    progress.unit = repeated ('u', 32);
    progress.message = repeated ('m', 1024);
    assert_good (&request);
    progress.unit = repeated ('u', 33);
    assert_bad (&request, TMQ_TOO_LARGE, "progress.unit: 33 bytes, at most 32");
    progress.unit = text_of ("");
    progress.message = repeated ('m', 1025);
    assert_bad (&request, TMQ_TOO_LARGE, "progress.message: 1025 bytes");
}

static void test_started_and_cancel_ack (void **state)
{
    (void) state;
    Taskmq__Lease lease = good_lease ();
    Taskmq__Started started = TASKMQ__STARTED__INIT;
    Taskmq__CancelAck ack = TASKMQ__CANCEL_ACK__INIT;
    Taskmq__Request request = request_of (TASKMQ__REQUEST__OP_STARTED);
    request.started = &started;
    assert_bad (&request, TMQ_INVALID, "lease: is missing");
    started.lease = &lease;
    assert_good (&request);
    lease.task_id = bytes_of (3);
    assert_bad (&request, TMQ_INVALID, "lease.task_id: must be 16 bytes, not 3");
    request = request_of (TASKMQ__REQUEST__OP_CANCEL_ACK);
    request.cancel_ack = &ack;
    assert_bad (&request, TMQ_INVALID, "lease: is missing");
    lease = good_lease ();
    ack.lease = &lease;
    assert_good (&request);
}

static void test_complete (void **state)
{
    (void) state;
    Taskmq__Lease lease = good_lease ();
    Taskmq__Complete complete = TASKMQ__COMPLETE__INIT;
    Taskmq__Request request = request_of (TASKMQ__REQUEST__OP_COMPLETE);
    request.complete = &complete;
    assert_bad (&request, TMQ_INVALID, "lease: is missing");
    complete.lease = &lease;
    complete.result_type = repeated ('t', 256);
    assert_good (&request);
    complete.result_bytes = TMQ_FRAME_BYTES_MAX;
    assert_int_equal (judge (&request, TMQ_FRAME_BYTES_MAX).code, TMQ_OK);
    assert_bad (&request, TMQ_INVALID, "mention 262144 bytes, the second frame has 0");
    complete.result_bytes++;
    assert_bad (&request, TMQ_TOO_LARGE, "result_bytes: 262145, at most 262144");
    complete.result_bytes = 0;
    complete.result_type = repeated ('t', 257);
    assert_bad (&request, TMQ_TOO_LARGE, "result_type");
}

static void test_fail (void **state)
{
    (void) state;
    Taskmq__Lease lease = good_lease ();
    Taskmq__Fail fail = TASKMQ__FAIL__INIT;
    Taskmq__Request request = request_of (TASKMQ__REQUEST__OP_FAIL);
    request.fail = &fail;
    assert_bad (&request, TMQ_INVALID, "lease: is missing");
    fail.lease = &lease;
    fail.message = repeated ('m', 1024);
    fail.data = text_of ("[1]");
    fail.code = -33000;
    assert_good (&request);
    fail.code = -33100;
    assert_good (&request);
    fail.code = -33001;
    assert_bad (&request, TMQ_INVALID, "code: -33099..-33001 are the broker's own");
    fail.code = -33099;
    assert_bad (&request, TMQ_INVALID, "code");
    fail.code = 1;
    fail.data = text_of ("no");
    assert_bad (&request, TMQ_INVALID, "data: must be JSON");
    fail.data = repeated ('1', TMQ_ERROR_DATA_BYTES_MAX);
    assert_good (&request);
    fail.data = repeated ('1', TMQ_ERROR_DATA_BYTES_MAX + 1);
    assert_bad (&request, TMQ_TOO_LARGE, "data: 16385 bytes");
    fail.data = text_of ("");
    fail.message = repeated ('m', 1025);
    assert_bad (&request, TMQ_TOO_LARGE, "message");
    fail.message = text_of ("");
    fail.result_bytes = 3;
    assert_int_equal (judge (&request, 3).code, TMQ_OK);
    fail.result_bytes = TMQ_FRAME_BYTES_MAX + 1;
    assert_bad (&request, TMQ_TOO_LARGE, "result_bytes");
}

static void test_release (void **state)
{
    (void) state;
    Taskmq__Lease lease = good_lease ();
    Taskmq__Release release = TASKMQ__RELEASE__INIT;
    Taskmq__Request request = request_of (TASKMQ__REQUEST__OP_RELEASE);
    request.release = &release;
    assert_bad (&request, TMQ_INVALID, "lease: is missing");
    release.lease = &lease;
    release.delay_ms = TMQ_RELEASE_DELAY_MS_MAX;
    assert_good (&request);
    release.delay_ms++;
    assert_bad (&request, TMQ_INVALID, "delay_ms: must be in 0..86400000");
    release.delay_ms = 1;
    release.no_delay = true;
    assert_bad (&request, TMQ_INVALID, "delay_ms: must be 0 beside no_delay");
    release.delay_ms = 0;
    assert_good (&request);
}

/* ---- Hostile bytes -------------------------------------------------------------------------------------------- */

/* A message with several requests is cut, flipped and mixed; whatever comes out is consistent. */
static void test_damaged_messages_do_no_harm (void **state)
{
    (void) state;
    unsigned seed = 20261121;
    Taskmq__TaskSpec task = good_task ();
    Taskmq__TaskSpec *tasks[] = {&task, &task, &task};
    Taskmq__Submit submit = TASKMQ__SUBMIT__INIT;
    Taskmq__Lease lease = good_lease ();
    Taskmq__Fail fail = TASKMQ__FAIL__INIT;
    Taskmq__Request first = request_of (TASKMQ__REQUEST__OP_SUBMIT);
    Taskmq__Request second = request_of (TASKMQ__REQUEST__OP_FAIL);
    Taskmq__Request *requests[] = {&first, &second};
    verdicts_t verdicts;
    task.meta = text_of ("{\"a\":1}");
    submit.n_tasks = 3;
    submit.tasks = tasks;
    first.submit = &submit;
    fail.lease = &lease;
    fail.data = text_of ("{}");
    second.fail = &fail;
    assert_non_null (judge_many (&verdicts, requests, 2, 0));
    print_message ("seed %u\n", seed);
    uint8_t *good = malloc (wire.length);
    assert_non_null (good);
    memcpy (good, wire.data, wire.length);
    size_t taken = 0, refused = 0;
    for (int round = 0; round < 50000; round++) {
        memcpy (wire.data, good, wire.length);
        for (int i = 0; i <= round % 4; i++)
            wire.data[(size_t) rand_r (&seed) % wire.length] = (uint8_t) rand_r (&seed);
        arena_reset (arena);
        const Taskmq__ClientMessage *message =
            validate_frames (&verdicts, arena, 1, wire.data, wire.length, 0);
        assert_true ((message != NULL) == (verdicts.message.code == TMQ_OK));
        if (message == NULL) {
            assert_non_null (verdicts.message.text);
            refused++;
            continue;
        }
        size_t bad = 0;
        for (size_t i = 0; i < verdicts.requests_count; i++)
            bad += verdicts.requests[i].verdict.code != TMQ_OK ? 1 : 0;
        assert_int_equal (bad, verdicts.refused);
        taken++;
    }
    assert_true (taken > 1000 && refused > 1000);
    free (good);
}

int main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (test_frames),
        cmocka_unit_test (test_token),
        cmocka_unit_test (test_number_of_requests),
        cmocka_unit_test (test_ids_of_requests),
        cmocka_unit_test (test_unknown_and_missing_kinds),
        cmocka_unit_test (test_every_kind_has_a_row),
        cmocka_unit_test (test_hello),
        cmocka_unit_test (test_hello_is_alone),
        cmocka_unit_test (test_task_ids_are_uuid7),
        cmocka_unit_test (test_texts_of_a_task),
        cmocka_unit_test (test_numbers_of_a_task),
        cmocka_unit_test (test_labels_of_a_task),
        cmocka_unit_test (test_meta_of_a_task),
        cmocka_unit_test (test_number_of_tasks),
        cmocka_unit_test (test_bad_items_beside_good_ones),
        cmocka_unit_test (test_nul_in_a_name),
        cmocka_unit_test (test_bodies_must_fit_the_frame),
        cmocka_unit_test (test_a_frame_that_nobody_mentions),
        cmocka_unit_test (test_a_payload_larger_than_a_frame_is_not_there),
        cmocka_unit_test (test_requests_for_one_task),
        cmocka_unit_test (test_resolve),
        cmocka_unit_test (test_filters_of_list_and_count),
        cmocka_unit_test (test_wait),
        cmocka_unit_test (test_cancel),
        cmocka_unit_test (test_subscribe),
        cmocka_unit_test (test_credit_and_unsubscribe),
        cmocka_unit_test (test_register),
        cmocka_unit_test (test_worker_credit_renew_and_leave),
        cmocka_unit_test (test_push),
        cmocka_unit_test (test_started_and_cancel_ack),
        cmocka_unit_test (test_complete),
        cmocka_unit_test (test_fail),
        cmocka_unit_test (test_release),
        cmocka_unit_test (test_damaged_messages_do_no_harm),
    };
    return cmocka_run_group_tests (tests, setup, teardown);
}
