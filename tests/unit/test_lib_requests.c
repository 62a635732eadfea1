/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* The requests of the library's core: nothing is lost, nothing is guessed. */
#include "lib_rig.h"

#include <stdlib.h>
#include <string.h>

#include "codec/records.h"

/* How requests end. */

static void never_sent_is_unreachable (void **state)
{
    (void) state;
    rig_t *rig = rig_new (NULL);
    rig_submit (rig, 1, 1000);
    rig_cut (rig);
    rig_pass (rig, 999);
    rig_no_answer (rig);
    rig_pass (rig, 1);
    core_answer_t *answer = rig_answer (rig, TMQ_OP_SUBMIT, TMQ_UNREACHABLE);
    assert_non_null (strstr (answer->completion.error->text, "tcp://127.0.0.1:1"));
    assert_int_equal (answer->completion.receipts[0].code, TMQ_UNREACHABLE);
    core_answer_free (answer);
    rig_free (rig);
}

static void sent_without_an_answer_is_unknown (void **state)
{
    (void) state;
    rig_t *rig = rig_linked (NULL);
    uint8_t request_id[16];
    rig_submit (rig, 1, 1000);
    memcpy (request_id, rig_request (rig, TASKMQ__REQUEST__OP_SUBMIT)->request_id.data, 16);
    rig_cut (rig);
    rig_pass (rig, 1000);
    core_answer_t *answer = rig_answer (rig, TMQ_OP_SUBMIT, TMQ_UNKNOWN);
    assert_memory_equal (answer->completion.error->request_id, request_id, 16);
    core_answer_free (answer);
    rig_free (rig);
}

static void a_read_without_an_answer_is_unreachable (void **state)
{
    (void) state;
    rig_t *rig = rig_linked (NULL);
    tmq_id_t id = rig_id (1);
    core_request_t *request;
    assert_int_equal (core_request_get (&request, TMQ_OP_GET, &id, NULL), TMQ_OK);
    core_start (rig->core, request, (core_target_t){NULL, NULL, NULL}, rig->now_ms + 1000,
                rig->now_ms, NULL);
    rig_request (rig, TASKMQ__REQUEST__OP_GET);
    rig_pass (rig, 1000);
    rig_answered (rig, TMQ_OP_GET, TMQ_UNREACHABLE);
    rig_free (rig);
}

/* Answers a request for stats with one queue. */
static void send_part_of_stats (rig_t *rig, uint64_t request, const char *queue, bool more)
{
    Taskmq__QueueDepth depth = TASKMQ__QUEUE_DEPTH__INIT;
    Taskmq__QueueDepth *depths[] = {&depth};
    Taskmq__StatsReport report = TASKMQ__STATS_REPORT__INIT;
    Taskmq__Reply reply = TASKMQ__REPLY__INIT;
    depth.queue = (char *) queue;
    report.n_queues = 1;
    report.queues = depths;
    reply.id = request;
    reply.more = more;
    reply.body_case = TASKMQ__REPLY__BODY_STATS;
    reply.stats = &report;
    rig_reply (rig, &reply, NULL, 0);
}

static void stats_of_many_queues_come_whole (void **state)
{
    (void) state;
    rig_t *rig = rig_linked (NULL);
    core_request_t *request;
    assert_int_equal (core_request_plain (&request, TMQ_OP_STATS, NULL), TMQ_OK);
    core_start (rig->core, request, (core_target_t){NULL, NULL, NULL}, rig->now_ms + 60000,
                rig->now_ms, NULL);
    uint64_t first = rig_request (rig, TASKMQ__REQUEST__OP_STATS)->id;
    send_part_of_stats (rig, first, "lost", true);
    rig_no_answer (rig);
    rig_cut (rig);
    rig_pass (rig, 200);
    rig_welcome (rig);
    uint64_t again = rig_request (rig, TASKMQ__REQUEST__OP_STATS)->id;
    send_part_of_stats (rig, again, "a", true);
    send_part_of_stats (rig, again, "b", true);
    rig_no_answer (rig);
    send_part_of_stats (rig, again, "c", false);
    core_answer_t *answer = rig_answer (rig, TMQ_OP_STATS, TMQ_OK);
    const tmq_stats_t *stats = answer->completion.stats;
    assert_int_equal (stats->queues_count, 3);
    assert_string_equal (stats->queues[0].queue, "a");
    assert_string_equal (stats->queues[1].queue, "b");
    assert_string_equal (stats->queues[2].queue, "c");
    core_answer_free (answer);
    rig_free (rig);
}

static void is_tried_again_until_the_deadline (tmq_code_t code)
{
    rig_t *rig = rig_linked (NULL);
    rig_submit (rig, 1, 1000);
    for (int i = 0; i < 3; i++) {
        rig_refuse (rig, rig_request (rig, TASKMQ__REQUEST__OP_SUBMIT)->id, (int) code, 200);
        rig_no_answer (rig);
        rig_pass (rig, 199);
        assert_false (rig_take (rig));
        rig_pass (rig, 42);
    }
    rig_refuse (rig, rig_request (rig, TASKMQ__REQUEST__OP_SUBMIT)->id, (int) code, 900);
    rig_pass (rig, 1000);
    core_answer_t *answer = rig_answer (rig, TMQ_OP_SUBMIT, (int) code);
    assert_int_equal (answer->completion.error->retry_after_ms, 900);
    assert_true (answer->completion.error->retriable);
    core_answer_free (answer);
    rig_free (rig);
}

static void overloaded_is_tried_again_until_the_deadline (void **state)
{
    (void) state;
    is_tried_again_until_the_deadline (TMQ_OVERLOADED);
}

static void unavailable_is_tried_again_until_the_deadline (void **state)
{
    (void) state;
    is_tried_again_until_the_deadline (TMQ_UNAVAILABLE);
}

static void overloaded_after_a_lost_link_stays_unknown (void **state)
{
    (void) state;
    rig_t *rig = rig_linked (NULL);
    rig_submit (rig, 1, 1000);
    rig_request (rig, TASKMQ__REQUEST__OP_SUBMIT);
    rig_cut (rig);
    rig_pass (rig, 200);
    rig_welcome (rig);
    rig_refuse (rig, rig_request (rig, TASKMQ__REQUEST__OP_SUBMIT)->id, TMQ_OVERLOADED, 5000);
    rig_pass (rig, 1000);
    rig_answered (rig, TMQ_OP_SUBMIT, TMQ_UNKNOWN); /* the first sending may have been done */
    rig_free (rig);
}

static void a_refusal_is_an_answer (void **state)
{
    (void) state;
    rig_t *rig = rig_linked (NULL);
    rig_submit (rig, 1, 1000);
    rig_refuse (rig, rig_request (rig, TASKMQ__REQUEST__OP_SUBMIT)->id, TMQ_STORE_FULL, 0);
    rig_answered (rig, TMQ_OP_SUBMIT, TMQ_STORE_FULL);
    rig_refuse (rig, 12345, TMQ_OK, 0); /* a reply to nobody */
    rig_no_answer (rig);
    rig_free (rig);
}

static const Taskmq__Request *begin_blob_once (rig_t *rig, int64_t deadline_ms, bool once)
{
    static uint8_t hash[TMQ_BLOB_HASH_BYTES];
    core_request_t *request;
    Taskmq__Blob blob = TASKMQ__BLOB__INIT;
    Taskmq__BlobBegin begin = TASKMQ__BLOB_BEGIN__INIT;
    blob.hash = (ProtobufCBinaryData){sizeof (hash), hash};
    blob.bytes = 1000000;
    begin.blob = &blob;
    assert_int_equal (core_request_message (&request, TMQ_OP_BLOB_BEGIN, &begin.base, NULL),
                      TMQ_OK);
    request->once = once;
    assert_int_equal (core_start (rig->core, request, (core_target_t){NULL, NULL, NULL},
                                  deadline_ms, rig->now_ms, NULL),
                      TMQ_OK);
    return rig_request (rig, TASKMQ__REQUEST__OP_BLOB_BEGIN);
}

static const Taskmq__Request *begin_blob (rig_t *rig, int64_t deadline_ms)
{
    return begin_blob_once (rig, deadline_ms, false);
}

/* A result that was worked out is not given up because there is no room for it just now. */
static void what_has_time_waits_for_room (void **state)
{
    static const int codes[] = {TMQ_LIMIT, TMQ_STORE_FULL};
    (void) state;
    for (size_t i = 0; i < 2; i++) {
        rig_t *rig = rig_linked (NULL);
        const Taskmq__Request *request = begin_blob (rig, CORE_NEVER);
        rig_refuse (rig, request->id, codes[i], 200);
        rig_no_answer (rig);
        rig_pass (rig, 241);
        rig_request (rig, TASKMQ__REQUEST__OP_BLOB_BEGIN);
        rig_no_answer (rig);
        rig_free (rig);
        rig = rig_linked (NULL);
        request = begin_blob (rig, rig->now_ms + 60000);
        rig_refuse (rig, request->id, codes[i], 1000);
        rig_answered (rig, TMQ_OP_BLOB_BEGIN, codes[i]);
        rig_free (rig);
    }
}

/* Who has other uploads does not let them wait behind one that has no place. */
static void a_refusal_is_the_answer_once (void **state)
{
    (void) state;
    for (int once = 0; once < 2; once++) {
        rig_t *rig = rig_linked (NULL);
        const Taskmq__Request *request = begin_blob_once (rig, rig->now_ms + 60000, once);
        rig_refuse (rig, request->id, TMQ_OVERLOADED, 200);
        if (once) {
            rig_answered (rig, TMQ_OP_BLOB_BEGIN, TMQ_OVERLOADED);
        } else {
            rig_no_answer (rig);
            rig_pass (rig, 241);
            rig_request (rig, TASKMQ__REQUEST__OP_BLOB_BEGIN);
        }
        rig_free (rig);
    }
}

static void drop_blob (rig_t *rig, int expected)
{
    static uint8_t hash[TMQ_BLOB_HASH_BYTES];
    core_request_t *request;
    Taskmq__Blob blob = TASKMQ__BLOB__INIT;
    Taskmq__BlobDrop drop = TASKMQ__BLOB_DROP__INIT;
    blob.hash = (ProtobufCBinaryData){sizeof (hash), hash};
    blob.bytes = 1000000;
    drop.blob = &blob;
    assert_int_equal (
        core_request_message (&request, (tmq_op_t) CORE_OP_BLOB_DROP, &drop.base, NULL), TMQ_OK);
    assert_int_equal (core_drop_blob (rig->core, request, "jo", rig->now_ms, NULL), expected);
}

/* It goes behind what was started before, and is said again when the broker has no time for it. */
static void an_upload_is_taken_back_for_nobody (void **state)
{
    static const int codes[] = {TMQ_OK, TMQ_NO_BLOB, TMQ_CONFLICT, TMQ_UNSUPPORTED, TMQ_DENIED};
    (void) state;
    for (size_t i = 0; i < sizeof codes / sizeof *codes; i++) {
        rig_t *rig = rig_linked (NULL);
        rig_submit (rig, 1, 60000);
        drop_blob (rig, TMQ_OK);
        assert_true (rig_take (rig));
        assert_int_equal (rig->message->n_requests, 2);
        assert_int_equal (rig->message->requests[0]->op_case, TASKMQ__REQUEST__OP_SUBMIT);
        const Taskmq__Request *request = rig->message->requests[1];
        assert_int_equal (request->op_case, TASKMQ__REQUEST__OP_BLOB_DROP);
        assert_string_equal (request->owner, "jo");
        rig_refuse (rig, request->id, i % 2 == 0 ? TMQ_LIMIT : TMQ_OVERLOADED, 200);
        rig_pass (rig, 241);
        request = rig_request (rig, TASKMQ__REQUEST__OP_BLOB_DROP);
        if (codes[i] == TMQ_OK)
            rig_ok (rig, request->id);
        else
            rig_refuse (rig, request->id, codes[i], 0);
        rig_no_answer (rig);
        rig_pass (rig, 60000);
        assert_null (rig_find_request (rig, TASKMQ__REQUEST__OP_BLOB_DROP));
        rig_free (rig);
    }
}

static void few_uploads_are_taken_back_at_once (void **state)
{
    (void) state;
    rig_t *rig = rig_new (NULL);
    for (int i = 0; i < 2 * TMQ_BLOB_DROPS_MAX; i++)
        drop_blob (rig, TMQ_OK); /* nobody is there to hear it */
    rig_free (rig);
    rig = rig_linked (NULL);
    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < TMQ_BLOB_DROPS_MAX; i++)
            drop_blob (rig, TMQ_OK);
        drop_blob (rig, TMQ_OUTBOX_FULL);
        rig_cut (rig); /* the next link knows nothing of them */
        rig_pass (rig, 6000);
        rig_welcome (rig);
        assert_null (rig_find_request (rig, TASKMQ__REQUEST__OP_BLOB_DROP));
    }
    rig_free (rig);
}

static void no_time_sends_nothing (void **state)
{
    (void) state;
    rig_t *rig = rig_linked (NULL);
    rig_submit (rig, 1, 0);
    rig_answered (rig, TMQ_OP_SUBMIT, TMQ_UNREACHABLE);
    assert_false (rig_take (rig));
    rig_free (rig);
}

/* Batches. */

enum { BATCH = 600 };

static void batch_start (rig_t *rig, size_t count, size_t payload_bytes)
{
    static const uint8_t payload[1000];
    tmq_submit_t *tasks = calloc (count, sizeof *tasks);
    tmq_id_t *ids = calloc (count, sizeof *ids);
    core_request_t *request;
    assert_non_null (tasks);
    assert_non_null (ids);
    for (size_t i = 0; i < count; i++) {
        tmq_submit_init (&tasks[i]);
        tasks[i].queue = "q";
        tasks[i].payload = payload;
        tasks[i].payload_bytes = payload_bytes;
        ids[i] = rig_id ((uint32_t) i);
    }
    assert_int_equal (core_request_submit_batch (&request, tasks, ids, count, NULL), TMQ_OK);
    core_start (rig->core, request, (core_target_t){NULL, NULL, NULL}, rig->now_ms + 5000,
                rig->now_ms, NULL);
    free (tasks);
    free (ids);
}

/* Answers a part; every item whose number is a multiple of `refused` gets that code. */
static void batch_answer (rig_t *rig, const Taskmq__Request *request, uint32_t refused, int code)
{
    size_t count = request->submit->n_tasks;
    Taskmq__SubmittedItem items[TMQ_SUBMIT_ITEMS_MAX];
    Taskmq__SubmittedItem *pointers[TMQ_SUBMIT_ITEMS_MAX];
    for (size_t i = 0; i < count; i++) {
        taskmq__submitted_item__init (&items[i]);
        pointers[i] = &items[i];
        const uint8_t *id = request->submit->tasks[i]->task_id.data;
        uint32_t number = (uint32_t) id[14] << 8 | id[15];
        if (refused != 0 && number % refused == 0)
            items[i].code = (uint32_t) code;
        else
            items[i].task_id = request->submit->tasks[i]->task_id;
    }
    Taskmq__Submitted submitted = TASKMQ__SUBMITTED__INIT;
    submitted.n_items = count;
    submitted.items = pointers;
    Taskmq__Reply reply = TASKMQ__REPLY__INIT;
    reply.id = request->id;
    reply.body_case = TASKMQ__REPLY__BODY_SUBMITTED;
    reply.submitted = &submitted;
    rig_reply (rig, &reply, NULL, 0);
}

static void a_batch_is_split_and_answered_item_by_item (void **state)
{
    (void) state;
    rig_t *rig = rig_linked (NULL);
    size_t tasks = 0;
    batch_start (rig, BATCH, 3);
    while (rig_take (rig))
        for (size_t i = 0; i < rig->message->n_requests; i++) {
            assert_in_range (rig->message->requests[i]->submit->n_tasks, 1, 256);
            tasks += rig->message->requests[i]->submit->n_tasks;
            batch_answer (rig, rig->message->requests[i], 7, TMQ_CONFLICT);
        }
    assert_int_equal (tasks, BATCH);
    core_answer_t *answer = rig_answer (rig, TMQ_OP_SUBMIT_BATCH, TMQ_OK);
    assert_int_equal (answer->completion.receipts_count, BATCH);
    for (uint32_t i = 0; i < BATCH; i++) {
        tmq_id_t id = rig_id (i);
        assert_int_equal (answer->completion.receipts[i].code, i % 7 == 0 ? TMQ_CONFLICT : TMQ_OK);
        assert_memory_equal (answer->completion.receipts[i].id.bytes, id.bytes, 16);
    }
    core_answer_free (answer);
    rig_free (rig);
}

static void a_batch_is_split_by_bytes (void **state)
{
    (void) state;
    rig_t *rig = rig_linked (NULL);
    batch_start (rig, BATCH, 1000);
    size_t parts = 0;
    while (rig_take (rig)) {
        parts++;
        batch_answer (rig, rig->message->requests[0], 0, TMQ_OK);
    }
    assert_int_equal (parts, 3); /* 600,000 bytes of payload in frames of 262,144 */
    rig_answered (rig, TMQ_OP_SUBMIT_BATCH, TMQ_OK);
    rig_free (rig);
}

static void overloaded_items_are_sent_again_alone (void **state)
{
    (void) state;
    rig_t *rig = rig_linked (NULL);
    uint8_t request_id[16];
    batch_start (rig, 10, 3);
    const Taskmq__Request *request = rig_request (rig, TASKMQ__REQUEST__OP_SUBMIT);
    memcpy (request_id, request->request_id.data, 16);
    batch_answer (rig, request, 3, TMQ_OVERLOADED);
    rig_no_answer (rig);
    rig_pass (rig, 200);
    request = rig_request (rig, TASKMQ__REQUEST__OP_SUBMIT);
    assert_int_equal (request->submit->n_tasks, 4); /* 0 3 6 9 */
    assert_int_equal (rig->body_bytes, 12);
    assert_memory_not_equal (request->request_id.data, request_id, 16);
    batch_answer (rig, request, 0, TMQ_OK);
    core_answer_t *answer = rig_answer (rig, TMQ_OP_SUBMIT_BATCH, TMQ_OK);
    for (size_t i = 0; i < 10; i++)
        assert_int_equal (answer->completion.receipts[i].code, TMQ_OK);
    core_answer_free (answer);
    rig_free (rig);
}

static void a_batch_without_answer_names_every_task (void **state)
{
    (void) state;
    rig_t *rig = rig_linked (NULL);
    batch_start (rig, BATCH, 3);
    assert_true (rig_take (rig));
    assert_int_equal (rig->message->n_requests, 3);
    batch_answer (rig, rig->message->requests[0], 0, TMQ_OK);
    rig_pass (rig, 5000);
    core_answer_t *answer = rig_answer (rig, TMQ_OP_SUBMIT_BATCH, TMQ_UNKNOWN);
    assert_int_equal (answer->completion.receipts[0].code, TMQ_OK);
    assert_int_equal (answer->completion.receipts[BATCH - 1].code, TMQ_UNKNOWN);
    core_answer_free (answer);
    rig_free (rig);
}

/* Bounds. */

static void four_large_replies_at_once (void **state)
{
    (void) state;
    rig_t *rig = rig_linked (NULL);
    for (uint32_t i = 0; i < 10; i++) {
        tmq_id_t id = rig_id (i);
        core_request_t *request;
        core_request_get (&request, TMQ_OP_RESULT, &id, NULL);
        core_start (rig->core, request, (core_target_t){NULL, NULL, NULL}, CORE_NEVER, rig->now_ms,
                    NULL);
    }
    rig_submit (rig, 1, 5000); /* small ones are not held back */
    assert_true (rig_take (rig));
    assert_int_equal (rig->message->n_requests, 5);
    assert_int_equal (rig->message->requests[0]->op_case, TASKMQ__REQUEST__OP_SUBMIT);
    assert_false (rig_take (rig));
    rig_refuse (rig, rig->message->requests[1]->id, TMQ_NOT_FOUND, 0);
    rig_answered (rig, TMQ_OP_RESULT, TMQ_NOT_FOUND);
    assert_true (rig_take (rig));
    assert_int_equal (rig->message->n_requests, 1);
    assert_false (rig_take (rig));
    rig_free (rig);
}

static size_t start_results (rig_t *rig, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        tmq_id_t id = rig_id (i);
        core_request_t *request;
        core_request_get (&request, TMQ_OP_RESULT, &id, NULL);
        core_start (rig->core, request, (core_target_t){NULL, NULL, NULL}, CORE_NEVER, rig->now_ms,
                    NULL);
    }
    return rig_take (rig) ? rig->message->n_requests : 0;
}

static void as_many_large_replies_as_the_option_says (void **state)
{
    (void) state;
    core_config_t config = rig_config ();
    config.reads_max = 7;
    rig_t *rig = rig_linked (&config);
    assert_int_equal (start_results (rig, 10), 7);
    assert_false (rig_take (rig));
    rig_free (rig);
}

static void a_record_alone_waits_for_no_large_reply (void **state)
{
    (void) state;
    rig_t *rig = rig_linked (NULL);
    assert_int_equal (start_results (rig, 10), 4);
    tmq_id_t id = rig_id (1);
    core_request_t *request;
    assert_int_equal (core_request_get_record (&request, &id, NULL), TMQ_OK);
    core_start (rig->core, request, (core_target_t){NULL, NULL, NULL}, CORE_NEVER, rig->now_ms,
                NULL);
    assert_true (rig_take (rig));
    assert_int_equal (rig->message->n_requests, 1);
    assert_int_equal (rig->message->requests[0]->op_case, TASKMQ__REQUEST__OP_GET);
    assert_true (rig->message->requests[0]->get->no_body);
    rig_refuse (rig, rig->message->requests[0]->id, TMQ_NOT_FOUND, 0);
    rig_answered (rig, TMQ_OP_GET, TMQ_NOT_FOUND);
    assert_false (rig_take (rig)); /* it made no room for the others */
    rig_free (rig);
}

/* … in each request of a batch, and again when it is sent again; not in what nobody does for
 * others. */
static void an_owner_travels_with_his_requests (void **state)
{
    (void) state;
    rig_t *rig = rig_linked (NULL);
    core_target_t target = {NULL, NULL, "ann"};
    tmq_submit_t tasks[TMQ_SUBMIT_ITEMS_MAX + 1];
    tmq_id_t ids[TMQ_SUBMIT_ITEMS_MAX + 1];
    core_request_t *request;
    for (uint32_t i = 0; i <= TMQ_SUBMIT_ITEMS_MAX; i++) {
        tmq_submit_init (&tasks[i]);
        tasks[i].queue = "q";
        ids[i] = rig_id (i);
    }
    assert_int_equal (
        core_request_submit_batch (&request, tasks, ids, TMQ_SUBMIT_ITEMS_MAX + 1, NULL), TMQ_OK);
    assert_int_equal (core_start (rig->core, request, target, CORE_NEVER, rig->now_ms, NULL),
                      TMQ_OK);
    size_t requests = 0;
    while (rig_take (rig))
        for (size_t i = 0; i < rig->message->n_requests; i++, requests++)
            assert_string_equal (rig->message->requests[i]->owner, "ann");
    assert_int_equal (requests, 2);
    rig_cut (rig);
    rig_pass (rig, 1000);
    rig_welcome (rig);
    for (requests = 0; rig_take (rig);)
        for (size_t i = 0; i < rig->message->n_requests; i++, requests++)
            assert_string_equal (rig->message->requests[i]->owner, "ann");
    assert_int_equal (requests, 2);
    tmq_error_t error;
    assert_int_equal (core_request_plain (&request, TMQ_OP_STATS, NULL), TMQ_OK);
    assert_int_equal (core_start (rig->core, request, target, CORE_NEVER, rig->now_ms, &error),
                      TMQ_INVALID);
    assert_non_null (strstr (error.text, "on behalf"));
    rig_free (rig);
}

static int start_ping (rig_t *rig, core_target_t target)
{
    core_request_t *request;
    assert_int_equal (core_request_plain (&request, TMQ_OP_PING, NULL), TMQ_OK);
    return core_start (rig->core, request, target, CORE_NEVER, rig->now_ms, NULL);
}

static void a_full_outbox_is_an_error_at_once (void **state)
{
    (void) state;
    core_config_t config = rig_config ();
    config.requests_max = 3;
    rig_t *rig = rig_linked (&config);
    for (int i = 0; i < 3; i++)
        assert_int_equal (start_ping (rig, (core_target_t){NULL, NULL, NULL}), TMQ_OK);
    assert_int_equal (start_ping (rig, (core_target_t){NULL, NULL, NULL}), TMQ_OUTBOX_FULL);
    assert_true (rig_take (rig));
    rig_ok (rig, rig->message->requests[0]->id);
    rig_answered (rig, TMQ_OP_PING, TMQ_OK);
    assert_int_equal (start_ping (rig, (core_target_t){NULL, NULL, NULL}), TMQ_OK);
    rig_free (rig);
}

static void untaken_completions_are_bounded (void **state)
{
    (void) state;
    core_config_t config = rig_config ();
    config.completions_max = 2;
    rig_t *rig = rig_linked (&config);
    int waiter = 0;
    for (int i = 0; i < 2; i++)
        assert_int_equal (start_ping (rig, (core_target_t){NULL, NULL, NULL}), TMQ_OK);
    assert_int_equal (start_ping (rig, (core_target_t){NULL, NULL, NULL}), TMQ_OUTBOX_FULL);
    assert_int_equal (start_ping (rig, (core_target_t){&waiter, NULL, NULL}), TMQ_OK);
    assert_true (rig_take (rig));
    for (size_t i = 0; i < 3; i++)
        rig_ok (rig, rig->message->requests[i]->id);
    /* Answered, but not taken: there is still no room for another. */
    core_answer_t *answer = core_answer_next (rig->core);
    assert_int_equal (start_ping (rig, (core_target_t){NULL, NULL, NULL}), TMQ_OUTBOX_FULL);
    core_answer_taken (rig->core, answer);
    core_answer_free (answer);
    assert_int_equal (start_ping (rig, (core_target_t){NULL, NULL, NULL}), TMQ_OK);
    rig_free (rig);
}

static void bytes_are_bounded (void **state)
{
    (void) state;
    core_config_t config = rig_config ();
    config.request_bytes_max = 4096;
    rig_t *rig = rig_linked (&config);
    tmq_submit_t submit;
    core_request_t *request;
    static const char payload[8192];
    tmq_id_t id = rig_id (1);
    tmq_submit_init (&submit);
    submit.queue = "q";
    submit.payload = payload;
    submit.payload_bytes = sizeof payload;
    assert_int_equal (core_request_submit (&request, &submit, &id, NULL), TMQ_OK);
    assert_int_equal (core_start (rig->core, request, (core_target_t){NULL, NULL, NULL}, CORE_NEVER,
                                  rig->now_ms, NULL),
                      TMQ_OUTBOX_FULL);
    rig_free (rig);
}

static void bad_input_is_refused_by_name (void **state)
{
    (void) state;
    tmq_submit_t submit;
    core_request_t *request;
    tmq_error_t error;
    tmq_id_t id = rig_id (1);
    tmq_submit_init (&submit);
    submit.queue = "no spaces";
    assert_int_equal (core_request_submit (&request, &submit, &id, &error), TMQ_INVALID);
    assert_non_null (strstr (error.text, "queue"));
    submit.queue = "q";
    submit.payload_bytes = TMQ_FRAME_BYTES_MAX + 1;
    assert_int_equal (core_request_submit (&request, &submit, &id, &error), TMQ_TOO_LARGE);
    submit.payload_bytes = 0;
    submit.method = "\xff";
    assert_int_equal (core_request_submit (&request, &submit, &id, &error), TMQ_INVALID);
    assert_non_null (strstr (error.text, "method"));
    submit.method = NULL;
    submit.priority = 256;
    assert_int_equal (core_request_submit (&request, &submit, &id, &error), TMQ_INVALID);
    submit.size = 0;
    assert_int_equal (core_request_submit (&request, &submit, &id, &error), TMQ_INVALID);
    assert_int_equal (core_request_resolve (&request, "abc", &error), TMQ_INVALID);
}

static void a_submit_keeps_nothing_of_the_caller (void **state)
{
    (void) state;
    rig_t *rig = rig_linked (NULL);
    char queue[] = "films", key[] = "part", value[] = "two", meta[] = "{}", payload[] = "reel";
    char trace[] = "00-1";
    tmq_label_t labels[] = {{key, value}};
    core_request_t *request;
    tmq_submit_t submit;
    tmq_submit_init (&submit);
    submit.id = rig_id (1);
    submit.queue = queue;
    submit.labels = labels;
    submit.labels_count = 1;
    submit.meta = meta;
    submit.payload = payload;
    submit.payload_bytes = 4;
    submit.start_by = 7000;
    submit.max_runtime_ms = 8000;
    submit.trace = trace;
    assert_int_equal (core_request_submit (&request, &submit, NULL, NULL), TMQ_OK);
    core_start (rig->core, request, (core_target_t){NULL, NULL, NULL}, CORE_NEVER, rig->now_ms,
                NULL);
    queue[0] = key[0] = value[0] = meta[0] = payload[0] = trace[0] = 'x';
    memset (labels, 0, sizeof labels);
    const Taskmq__TaskSpec *task = rig_request (rig, TASKMQ__REQUEST__OP_SUBMIT)->submit->tasks[0];
    assert_string_equal (task->queue, "films");
    assert_string_equal (task->labels[0]->key, "part");
    assert_string_equal (task->labels[0]->value, "two");
    assert_string_equal (task->meta, "{}");
    assert_int_equal (task->extra->start_by, 7000);
    assert_int_equal (task->extra->max_runtime_ms, 8000);
    assert_string_equal (task->extra->trace, "00-1");
    assert_int_equal (rig->body_bytes, 4);
    assert_memory_equal (rig->body, "reel", 4);
    rig_free (rig);
}

static void the_largest_task_fits (void **state)
{
    (void) state;
    rig_t *rig = rig_linked (NULL);
    tmq_submit_t submit;
    core_request_t *request;
    tmq_id_t id = rig_id (1);
    char *meta = malloc (TMQ_META_BYTES_MAX + 1);
    uint8_t *payload = calloc (1, TMQ_FRAME_BYTES_MAX);
    assert_non_null (meta);
    assert_non_null (payload);
    memset (meta, ' ', TMQ_META_BYTES_MAX);
    meta[0] = '{';
    meta[TMQ_META_BYTES_MAX - 1] = '}';
    meta[TMQ_META_BYTES_MAX] = '\0';
    tmq_submit_init (&submit);
    submit.queue = "q";
    submit.meta = meta;
    submit.payload = payload;
    submit.payload_bytes = TMQ_FRAME_BYTES_MAX;
    for (int i = 0; i < 2; i++) {
        assert_int_equal (core_request_submit (&request, &submit, &id, NULL), TMQ_OK);
        core_start (rig->core, request, (core_target_t){NULL, NULL, NULL}, CORE_NEVER, rig->now_ms,
                    NULL);
    }
    for (int i = 0; i < 2; i++) { /* one frame holds one of them */
        assert_int_equal (rig_request (rig, TASKMQ__REQUEST__OP_SUBMIT)->submit->n_tasks, 1);
        assert_int_equal (rig->body_bytes, TMQ_FRAME_BYTES_MAX);
    }
    free (meta);
    free (payload);
    rig_free (rig);
}

static void a_body_reaches_its_task (void **state)
{
    (void) state;
    rig_t *rig = rig_linked (NULL);
    tmq_id_t id = rig_id (1);
    core_request_t *request;
    core_request_get (&request, TMQ_OP_RESULT, &id, NULL);
    core_start (rig->core, request, (core_target_t){NULL, rig, NULL}, CORE_NEVER, rig->now_ms,
                NULL);
    Taskmq__Task task = TASKMQ__TASK__INIT;
    task.task_id = rig_bytes (&id);
    task.status = TMQ_STATUS_COMPLETED;
    task.body = 6;
    Taskmq__Task other = task;
    other.body = 2;
    Taskmq__Reply reply = TASKMQ__REPLY__INIT;
    reply.id = rig_request (rig, TASKMQ__REQUEST__OP_RESULT)->id;
    reply.body_case = TASKMQ__REPLY__BODY_TASK;
    reply.task = &task;
    Taskmq__Reply stranger = reply; /* to a request that was given up: its body is passed over */
    stranger.id = 999;
    stranger.task = &other;
    Taskmq__Reply *replies[] = {&stranger, &reply};
    Taskmq__BrokerMessage message = TASKMQ__BROKER_MESSAGE__INIT;
    message.n_replies = 2;
    message.replies = replies;
    rig_send (rig, &message, "xxresult", 8);
    core_answer_t *answer = rig_answer (rig, TMQ_OP_RESULT, TMQ_OK);
    assert_ptr_equal (answer->completion.user, rig);
    assert_int_equal (answer->completion.task->body_bytes, 6);
    assert_string_equal (answer->completion.task->body, "result");
    assert_string_equal (answer->completion.task->session, "");
    core_answer_free (answer);
    rig_free (rig);
}

/* Forgetting. */

static void start_get (rig_t *rig, uint32_t number, void *user)
{
    tmq_id_t id = rig_id (number);
    core_request_t *request;
    assert_int_equal (core_request_get (&request, TMQ_OP_GET, &id, NULL), TMQ_OK);
    assert_int_equal (core_start (rig->core, request, (core_target_t){NULL, user, NULL}, CORE_NEVER,
                                  rig->now_ms, NULL),
                      TMQ_OK);
}

static void a_forgotten_read_gives_no_answer (void **state)
{
    (void) state;
    int mine;
    int other;
    rig_t *rig = rig_linked (NULL);
    tmq_id_t id = rig_id (1);
    for (uint32_t i = 1; i <= 5; i++)
        start_get (rig, i, &mine);
    start_get (rig, 1, &other);
    rig_submit (rig, 9, CORE_NEVER); /* its user is NULL, and it changes something */
    assert_true (rig_take (rig));
    assert_int_equal (rig->message->n_requests, 5); /* four reads at a time */
    uint64_t first = rig->message->requests[1]->id;
    assert_int_equal (core_forget (rig->core, &id, &mine), 1);
    assert_int_equal (core_forget (rig->core, NULL, &mine), 4);
    assert_int_equal (core_forget (rig->core, NULL, NULL), 0);
    assert_int_equal (core_open (rig->core), 6); /* the one that was not sent is gone */
    assert_false (rig_take (rig));               /* the broker holds four answers still */
    rig_refuse (rig, first, TMQ_NOT_FOUND, 0);
    rig_no_answer (rig);
    const Taskmq__Request *request = rig_request (rig, TASKMQ__REQUEST__OP_GET);
    rig_refuse (rig, request->id, TMQ_NOT_FOUND, 0);
    core_answer_t *answer = rig_answer (rig, TMQ_OP_GET, TMQ_NOT_FOUND);
    assert_ptr_equal (answer->completion.user, &other);
    core_answer_free (answer);
    rig_free (rig);
}

static void changes_are_counted_until_they_are_answered (void **state)
{
    (void) state;
    rig_t *rig = rig_linked (NULL);
    tmq_id_t id = rig_id (1);
    rig_submit (rig, 1, CORE_NEVER);
    start_get (rig, 1, NULL);
    assert_int_equal (core_changes_open (rig->core), 1);
    assert_true (rig_take (rig));
    rig_accept (rig, rig->message->requests[0]->id, &id);
    assert_int_equal (core_changes_open (rig->core), 0);
    rig_free (rig);
}

static void a_value_of_a_list_has_no_body_whatever_the_broker_says (void **state)
{
    (void) state;
    Taskmq__Value value = TASKMQ__VALUE__INIT;
    Taskmq__Value *values[] = {&value};
    Taskmq__ValuePage page = TASKMQ__VALUE_PAGE__INIT;
    value.key = (char *) "plan";
    value.bytes = value.body = 5;
    page.n_values = 1;
    page.values = values;
    tmq_value_list_t *list = core_value_list_record (&page);
    assert_non_null (list);
    assert_int_equal (list->count, 1);
    assert_int_equal (list->values[0].length, 5);
    assert_null (list->values[0].bytes);
    tmq_value_list_free (list);
}

int main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (never_sent_is_unreachable),
        cmocka_unit_test (sent_without_an_answer_is_unknown),
        cmocka_unit_test (a_read_without_an_answer_is_unreachable),
        cmocka_unit_test (stats_of_many_queues_come_whole),
        cmocka_unit_test (overloaded_is_tried_again_until_the_deadline),
        cmocka_unit_test (unavailable_is_tried_again_until_the_deadline),
        cmocka_unit_test (overloaded_after_a_lost_link_stays_unknown),
        cmocka_unit_test (a_refusal_is_an_answer),
        cmocka_unit_test (what_has_time_waits_for_room),
        cmocka_unit_test (a_refusal_is_the_answer_once),
        cmocka_unit_test (an_upload_is_taken_back_for_nobody),
        cmocka_unit_test (few_uploads_are_taken_back_at_once),
        cmocka_unit_test (no_time_sends_nothing),
        cmocka_unit_test (a_batch_is_split_and_answered_item_by_item),
        cmocka_unit_test (a_batch_is_split_by_bytes),
        cmocka_unit_test (overloaded_items_are_sent_again_alone),
        cmocka_unit_test (a_batch_without_answer_names_every_task),
        cmocka_unit_test (four_large_replies_at_once),
        cmocka_unit_test (as_many_large_replies_as_the_option_says),
        cmocka_unit_test (a_record_alone_waits_for_no_large_reply),
        cmocka_unit_test (an_owner_travels_with_his_requests),
        cmocka_unit_test (a_full_outbox_is_an_error_at_once),
        cmocka_unit_test (untaken_completions_are_bounded),
        cmocka_unit_test (bytes_are_bounded),
        cmocka_unit_test (bad_input_is_refused_by_name),
        cmocka_unit_test (a_submit_keeps_nothing_of_the_caller),
        cmocka_unit_test (the_largest_task_fits),
        cmocka_unit_test (a_body_reaches_its_task),
        cmocka_unit_test (a_forgotten_read_gives_no_answer),
        cmocka_unit_test (a_value_of_a_list_has_no_body_whatever_the_broker_says),
        cmocka_unit_test (changes_are_counted_until_they_are_answered),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}
