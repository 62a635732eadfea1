/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* The validator: messages, submits and bodies; every limit at, below and beyond, one bad request or
 * item beside good ones, frames that do not fit, hostile bytes. */
#include "test_proto_judge.h"

#include <stdlib.h>
#include <string.h>

#include "ids.h"
#include "request_kinds.h"

/* Envelopes and frames. */

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
    static Taskmq__Request stats_requests[TMQ_REQUESTS_MAX + 1];
    static Taskmq__Request *requests[TMQ_REQUESTS_MAX + 1];
    Taskmq__Stats stats = TASKMQ__STATS__INIT;
    for (size_t i = 0; i < TMQ_REQUESTS_MAX + 1; i++) {
        stats_requests[i] = request_of (TASKMQ__REQUEST__OP_STATS);
        stats_requests[i].request_id = bytes_of (0);
        stats_requests[i].stats = &stats;
        requests[i] = &stats_requests[i];
    }
    verdicts_t verdicts;
    assert_non_null (judge_many (&verdicts, requests, TMQ_REQUESTS_MAX, 0));
    assert_int_equal (verdicts.requests_count, TMQ_REQUESTS_MAX);
    assert_int_equal (verdicts.refused, 0);
    assert_null (judge_many (&verdicts, requests, TMQ_REQUESTS_MAX + 1, 0));
    assert_verdict (verdicts.message, TMQ_TOO_LARGE, "requests: 1025 of them, at most 1024");
}

/* What every request has. */

static void test_owners_of_requests (void **state)
{
    (void) state;
    Taskmq__Get get = TASKMQ__GET__INIT;
    Taskmq__Request request = request_of (TASKMQ__REQUEST__OP_GET);
    char name[TMQ_BEHALF_BYTES_MAX + 2];
    memset (name, 'a', sizeof (name));
    name[TMQ_BEHALF_BYTES_MAX + 1] = '\0';
    get.task_id = bytes_of (16);
    request.get = &get;
    request.owner = name;
    assert_bad (&request, TMQ_TOO_LARGE, "owner: 64 bytes, at most 63");
    name[TMQ_BEHALF_BYTES_MAX] = '\0';
    assert_good (&request);
    static const char *const BAD[] = {"a/b", "a b", "../a", "ä", "a\n", "*"};
    for (size_t i = 0; i < sizeof (BAD) / sizeof (BAD[0]); i++) {
        request.owner = (char *) BAD[i];
        assert_bad (&request, TMQ_INVALID, "owner: must match [A-Za-z0-9._-]{1,64}");
    }
    Taskmq__Heartbeat heartbeat = TASKMQ__HEARTBEAT__INIT;
    request = request_of (TASKMQ__REQUEST__OP_HEARTBEAT);
    request.heartbeat = &heartbeat;
    request.owner = (char *) "ann";
    assert_bad (&request, TMQ_INVALID, "owner: heartbeat is not made for others");

    Taskmq__List list = TASKMQ__LIST__INIT;
    Taskmq__Filter filter = TASKMQ__FILTER__INIT;
    char *owners[] = {(char *) "gw/ann"};
    request = request_of (TASKMQ__REQUEST__OP_LIST);
    request.list = &list;
    list.filter = &filter;
    filter.owners = owners;
    filter.n_owners = 1;
    assert_good (&request);
    request.owner = (char *) "ann";
    assert_bad (&request, TMQ_INVALID, "owners: not in a request for one owner");
    request.owner = (char *) "";
    owners[0] = (char *) "";
    assert_bad (&request, TMQ_INVALID, "owners: must not be empty");
}

static void test_ids_of_requests (void **state)
{
    (void) state;
    Taskmq__Cancel cancel = TASKMQ__CANCEL__INIT;
    Taskmq__Request request = request_of (TASKMQ__REQUEST__OP_CANCEL);
    cancel.task_id = bytes_of (16);
    request.cancel = &cancel;
    assert_good (&request);
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

/* Answers name their request by its id: with a 0 or a double nobody knows whose an answer is, so
 * nothing of the message is done. */
static void test_ids_that_name_no_request (void **state)
{
    (void) state;
    Taskmq__Heartbeat heartbeat = TASKMQ__HEARTBEAT__INIT;
    Taskmq__Request parts[3];
    Taskmq__Request *requests[] = {&parts[0], &parts[1], &parts[2]};
    for (size_t i = 0; i < 3; i++) {
        parts[i] = request_of (TASKMQ__REQUEST__OP_HEARTBEAT);
        parts[i].heartbeat = &heartbeat;
    }
    static const struct {
        uint64_t ids[3];
        const char *text; /* NULL: taken */
    } cases[] = {{{1, 2, 3}, NULL},
                 {{UINT64_MAX, 2, 1}, NULL},
                 {{7, 7, 8}, "id: 7 stands twice"},
                 {{7, 8, 7}, "id: 7 stands twice"},
                 {{8, 7, 8}, "id: 8 stands twice"},
                 {{1, 0, 2}, "id: must not be 0"},
                 {{0, 1, 2}, "id: must not be 0"}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        for (size_t j = 0; j < 3; j++)
            parts[j].id = cases[i].ids[j];
        verdicts_t verdicts;
        const Taskmq__ClientMessage *taken = judge_many (&verdicts, requests, 3, 0);
        assert_int_equal (taken != NULL, cases[i].text == NULL);
        if (taken == NULL)
            assert_verdict (verdicts.message, TMQ_INVALID, cases[i].text);
    }
}

static void test_unknown_and_missing_kinds (void **state)
{
    (void) state;
    Taskmq__Request request = request_of (TASKMQ__REQUEST__OP__NOT_SET);
    assert_bad (&request, TMQ_UNSUPPORTED, "not known");
    assert_null (request_kind (&request));
    assert_string_equal (request_name (&request), "unknown");
    request.op_case = TASKMQ__REQUEST__OP_WORKER_CREDIT;
    assert_string_equal (request_name (&request), "worker_credit");
}

/* Each kind that taskmq.proto knows has a row, under the member's name, and a check. */
static void test_every_kind_has_a_row (void **state)
{
    (void) state;
    const ProtobufCMessageDescriptor *type = &taskmq__request__descriptor;
    size_t rows = 0, needing = 0;
    for (unsigned i = 0; i < type->n_fields; i++) {
        const ProtobufCFieldDescriptor *member = &type->fields[i];
        if ((member->flags & PROTOBUF_C_FIELD_FLAG_ONEOF) == 0)
            continue;
        Taskmq__Request request = request_of ((Taskmq__Request__OpCase) member->id);
        const request_kind_t *kind = request_kind (&request);
        assert_non_null (kind);
        assert_string_equal (kind->name, member->name);
        needing += (kind->flags & REQUEST_NEEDS_ID) != 0;
        rows++;
        const ProtobufCMessageDescriptor *operation = member->descriptor;
        ProtobufCMessage *empty = calloc (1, operation->sizeof_message);
        assert_non_null (empty);
        operation->message_init (empty);
        request.get = (Taskmq__Get *) (void *) empty; /* they share their place */
        verdict_t verdict = judge (&request, 0);
        bool hello = request.op_case == TASKMQ__REQUEST__OP_HELLO;
        assert_true (verdict.code != TMQ_UNSUPPORTED || hello);
        free (empty);
    }
    assert_int_equal (rows, 94);
    assert_int_equal (needing, 37);
}

/* What needs an id changes something, so a broker that stops refuses it. */
static void test_flags_of_the_kinds (void **state)
{
    (void) state;
#define X(OP, NAME, FLAGS)                                                                         \
    assert_true (((FLAGS) &REQUEST_NEEDS_ID) == 0 || ((FLAGS) &REQUEST_CHANGES) != 0);
    REQUEST_KIND_MAP (X)
#undef X
}

/* Submit. */

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

static void test_extra_of_a_task (void **state)
{
    (void) state;
    Taskmq__TaskSpec task = good_task ();
    Taskmq__Extra extra = TASKMQ__EXTRA__INIT;
    task.extra = &extra;
    assert_good_task (task);
    extra.start_by = TMQ_TIME_MS_MAX;
    extra.max_runtime_ms = TMQ_TTL_MS_MAX;
    extra.trace = repeated ('~', TMQ_TRACE_BYTES_MAX);
    assert_good_task (task);
    extra.trace = repeated ('~', TMQ_TRACE_BYTES_MAX + 1);
    assert_bad_task (task, TMQ_TOO_LARGE, "trace: 513 bytes, at most 512");
    extra.trace = text_of ("a\tb");
    assert_bad_task (task, TMQ_INVALID, "trace: must be printable ASCII");
    extra.trace = text_of ("");
    uint8_t id[16] = {1};
    Taskmq__Dependency entries[TMQ_AFTER_MAX + 1];
    Taskmq__Dependency *after[TMQ_AFTER_MAX + 1];
    for (size_t i = 0; i <= TMQ_AFTER_MAX; i++) {
        taskmq__dependency__init (&entries[i]);
        entries[i].task_id = (ProtobufCBinaryData){sizeof id, id};
        after[i] = &entries[i];
    }
    extra.after = after;
    extra.n_after = TMQ_AFTER_MAX + 1;
    assert_bad_task (task, TMQ_TOO_LARGE, "after: 65 of them, at most 64");
    extra.n_after = 2;
    assert_bad_task (task, TMQ_INVALID, "after: a task stands twice");
    extra.n_after = 1;
    entries[0].policy = TMQ_AFTER_CONTINUE + 1;
    assert_bad_task (task, TMQ_INVALID, "after.policy: must be in 0..2");
    entries[0].policy = TMQ_AFTER_FAIL;
    entries[0].status = TMQ_STATUS_COMPLETED;
    assert_bad_task (task, TMQ_INVALID, "after.status: must be in 0..0");
    entries[0].status = 0;
    entries[0].task_id = task.task_id;
    assert_bad_task (task, TMQ_INVALID, "after: a task cannot depend on itself");
    extra.n_after = 0;
    extra.cancel_message = text_of ("why");
    assert_bad_task (task, TMQ_INVALID, "cancel_message: the broker's alone");
    extra.cancel_message = text_of ("");
    extra.max_runtime_ms++;
    assert_bad_task (task, TMQ_INVALID, "max_runtime_ms: must be in 0..");
    extra.max_runtime_ms = 0;
    extra.start_by++;
    assert_bad_task (task, TMQ_INVALID, "start_by: must be in 0..");
}

/* A grant becomes a word of a line: it must not become an option of it. */
static void test_grants_are_words (void **state)
{
    (void) state;
    static const struct {
        const char *grant;
        tmq_code_t code;
    } cases[] = {{"worker(default/render*)", TMQ_OK},
                 {"-", TMQ_OK},
                 {"owns=uid:0", TMQ_INVALID},
                 {"client(a) operator", TMQ_INVALID},
                 {"client(a)#", TMQ_INVALID},
                 {"client(a)\nx", TMQ_INVALID},
                 {"", TMQ_INVALID}};
    static uint8_t key[TMQ_KEY_BYTES];
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        Taskmq__KeyTrust trust = TASKMQ__KEY_TRUST__INIT;
        Taskmq__Request request = request_of (TASKMQ__REQUEST__OP_KEY_TRUST);
        Taskmq__Request *requests[] = {&request};
        char *grants[] = {text_of (cases[i].grant)};
        verdicts_t verdicts;
        trust.name = text_of ("ci");
        trust.public_key = (ProtobufCBinaryData){sizeof key, key};
        trust.grants = grants;
        trust.n_grants = 1;
        request.key_trust = &trust;
        assert_non_null (judge_many (&verdicts, requests, 1, 0));
        assert_int_equal (verdicts.requests[0].verdict.code, cases[i].code);
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

/* Bodies. */

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

/* Hostile bytes. */

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
        cmocka_unit_test (test_owners_of_requests),
        cmocka_unit_test (test_ids_of_requests),
        cmocka_unit_test (test_ids_that_name_no_request),
        cmocka_unit_test (test_unknown_and_missing_kinds),
        cmocka_unit_test (test_every_kind_has_a_row),
        cmocka_unit_test (test_flags_of_the_kinds),
        cmocka_unit_test (test_task_ids_are_uuid7),
        cmocka_unit_test (test_texts_of_a_task),
        cmocka_unit_test (test_numbers_of_a_task),
        cmocka_unit_test (test_labels_of_a_task),
        cmocka_unit_test (test_meta_of_a_task),
        cmocka_unit_test (test_extra_of_a_task),
        cmocka_unit_test (test_grants_are_words),
        cmocka_unit_test (test_number_of_tasks),
        cmocka_unit_test (test_bad_items_beside_good_ones),
        cmocka_unit_test (test_nul_in_a_name),
        cmocka_unit_test (test_bodies_must_fit_the_frame),
        cmocka_unit_test (test_a_frame_that_nobody_mentions),
        cmocka_unit_test (test_a_payload_larger_than_a_frame_is_not_there),
        cmocka_unit_test (test_damaged_messages_do_no_harm),
    };
    return cmocka_run_group_tests (tests, judge_setup, judge_teardown);
}
