/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* The data of an error that is too long for an envelope: where it stands in an answer, and what it
 * counts for. */
#include <stdlib.h>
#include <string.h>

#include "core/tasks/journal.h"
#include "core_rig.h"

enum { SUBJECT = 1, WORKER = 100, LONG = TMQ_ERROR_DATA_BYTES_MAX };

/* A JSON string of so many bytes. */
static char *data_of (size_t bytes, char letter)
{
    char *data = malloc (bytes + 1);
    assert_non_null (data);
    memset (data, letter, bytes);
    data[0] = data[bytes - 1] = '"';
    data[bytes] = '\0';
    return data;
}

/* Fails with a result and with data, which stands in the message or behind the result. */
static uint64_t fail_with (rig_t *rig, const Taskmq__Assignment *of, bool final, const char *result,
                           const char *data)
{
    uint8_t request_id[16] = {7};
    Taskmq__Lease lease = TASKMQ__LEASE__INIT;
    Taskmq__Fail fail = TASKMQ__FAIL__INIT;
    Taskmq__Request request = TASKMQ__REQUEST__INIT;
    size_t bytes = strlen (result), data_bytes = strlen (data);
    request.op_case = TASKMQ__REQUEST__OP_FAIL;
    request.request_id = (ProtobufCBinaryData){sizeof (request_id), request_id};
    request.fail = &fail;
    lease.task_id = of->task_id;
    lease.attempt = of->attempt;
    lease.secret = of->secret;
    fail.lease = &lease;
    fail.message = (char *) "torn";
    fail.final = final;
    fail.result_bytes = (uint32_t) bytes;
    if (data_bytes > TMQ_ERROR_DATA_INLINE_MAX)
        fail.data_bytes = (uint32_t) data_bytes;
    else
        fail.data = (char *) (uintptr_t) data;
    char *frame = malloc (bytes + data_bytes + 1);
    assert_non_null (frame);
    memcpy (frame, result, bytes);
    memcpy (frame + bytes, data, data_bytes);
    uint64_t sent = rig_send (rig, 1, &request, frame, bytes + fail.data_bytes);
    free (frame);
    return sent;
}

static const Taskmq__Assignment *claim (rig_t *rig, unsigned task, const char *payload)
{
    rig_submit (rig, 0, task, "q", payload);
    rig_register (rig, 1, WORKER, "q", 10);
    rig_run (rig);
    return rig_assignment (rig, 1, rig_assignments (rig, 1) - 1)->assignment;
}

static void assert_has (rig_t *rig, uint64_t request, const char *body, const char *data)
{
    rig_run (rig);
    const rig_item_t *item = rig_reply (rig, 0, request);
    const Taskmq__Task *task = item->reply->task;
    assert_int_equal (item->reply->code, TMQ_OK);
    assert_int_equal (task->body, strlen (body));
    assert_memory_equal (item->body, body, strlen (body));
    assert_string_equal (task->error->data, "");
    assert_int_equal (task->error->data_bytes, strlen (data));
    assert_int_equal (task->error->body, strlen (data));
    assert_memory_equal (item->body + strlen (body), data, strlen (data));
}

static void assert_only_told (rig_t *rig, uint64_t request)
{
    Taskmq__Filter filter = TASKMQ__FILTER__INIT;
    rig_settle (rig);
    const Taskmq__Task *task = rig_reply (rig, 0, request)->reply->task;
    assert_int_equal (task->body, TMQ_FRAME_BYTES_MAX - 10);
    assert_int_equal (task->error->body, 0);
    assert_int_equal (task->error->data_bytes, LONG);
    request = rig_list (rig, 0, &filter, (ProtobufCBinaryData){0}, 10);
    rig_settle (rig);
    const Taskmq__TaskPage *page = rig_reply (rig, 0, request)->reply->page;
    assert_int_equal (page->n_tasks, 1);
    assert_int_equal (page->tasks[0]->error->data_bytes, LONG);
    assert_int_equal (page->tasks[0]->error->body, 0);
    assert_string_equal (page->tasks[0]->error->data, "");
}

static void long_data_stands_behind_the_body (void **state)
{
    rig_t *rig = *state;
    char *data = data_of (LONG, 'x');
    char *payload = data_of (TMQ_FRAME_BYTES_MAX - 10, 'p');
    const Taskmq__Assignment *of = claim (rig, SUBJECT, payload);
    uint64_t request = fail_with (rig, of, true, "a result", data);
    rig_run (rig);
    assert_int_equal (rig_code (rig, 1, request), TMQ_OK);
    assert_has (rig, rig_get (rig, 0, SUBJECT), "a result", data); /* from memory */
    rig_settle (rig);
    assert_has (rig, rig_get (rig, 0, SUBJECT), "a result", data); /* from the tables */
    rig_restart (rig);
    rig_link (rig, 0, "default");
    assert_has (rig, rig_get (rig, 0, SUBJECT), "a result", data);
    assert_has (rig, rig_result (rig, 0, SUBJECT), "a result", data);
    assert_only_told (rig, rig_payload (rig, 0, SUBJECT));
    free (payload);
    free (data);
}

static void short_data_stands_in_the_message (void **state)
{
    rig_t *rig = *state;
    char *data = data_of (TMQ_ERROR_DATA_INLINE_MAX, 'x');
    fail_with (rig, claim (rig, SUBJECT, "p"), true, "", data);
    rig_settle (rig);
    const Taskmq__Task *task = rig_task (rig, 0, SUBJECT);
    assert_string_equal (task->error->data, data);
    assert_int_equal (task->error->data_bytes, 0);
    assert_int_equal (task->error->body, 0);
    free (data);
}

/* It is tried again, also by a broker that was started anew, and has the data of its last error. */
static void what_is_tried_again_keeps_its_data (void **state)
{
    rig_t *rig = *state;
    char *data = data_of (LONG, 'y');
    fail_with (rig, claim (rig, SUBJECT, "p"), false, "", data);
    assert_has (rig, rig_get (rig, 0, SUBJECT), "", data);
    rig_settle (rig);
    rig_restart (rig);
    rig_link (rig, 0, "default");
    assert_has (rig, rig_get (rig, 0, SUBJECT), "", data);
    assert_int_equal (rig_status (rig, 0, SUBJECT), TMQ_STATUS_QUEUED);
    free (data);
}

static void what_is_no_json_changes_nothing (void **state)
{
    rig_t *rig = *state;
    char *data = data_of (LONG, 'x');
    const Taskmq__Assignment *of = claim (rig, SUBJECT, "p");
    data[LONG - 1] = 'x';
    uint64_t request = fail_with (rig, of, true, "", data);
    rig_run (rig);
    assert_int_equal (rig_code (rig, 1, request), TMQ_INVALID);
    assert_string_equal (rig_reply (rig, 1, request)->reply->text, "data: must be JSON");
    assert_int_equal (rig_status (rig, 0, SUBJECT), TMQ_STATUS_WORKING);
    free (data);
}

/* One has its data in memory, for a second one there is no room: it says so. When the first is
 * over, there is. */
static void data_counts_to_the_texts_of_live_tasks (void **state)
{
    engine_config_t config = ENGINE_CONFIG_INIT;
    config.live_bytes_max = LONG + LONG / 2;
    rig_t *rig = rig_new_with (&config);
    char *data = data_of (LONG, 'x');
    (void) state;
    rig_link (rig, 0, "default");
    rig_link (rig, 1, "default");
    fail_with (rig, claim (rig, SUBJECT, "p"), false, "", data);
    fail_with (rig, claim (rig, SUBJECT + 1, "p"), false, "", data);
    rig_run (rig);
    assert_has (rig, rig_get (rig, 0, SUBJECT), "", data);
    const Taskmq__Task *second = rig_task (rig, 0, SUBJECT + 1);
    assert_int_equal (second->error->data_bytes, 0);
    assert_string_equal (second->error->message, "torn [data of 65536 bytes was left out: live "
                                                 "tasks take up all their memory]");
    rig_settle (rig);
    rig_cancel (rig, 0, SUBJECT);
    rig_settle (rig);
    fail_with (rig, claim (rig, SUBJECT + 2, "p"), false, "", data);
    assert_has (rig, rig_get (rig, 0, SUBJECT + 2), "", data);
    rig_settle (rig);
    rig_restart (rig); /* it counts again */
    rig_link (rig, 0, "default");
    rig_link (rig, 1, "default");
    fail_with (rig, claim (rig, SUBJECT + 3, "p"), false, "", data);
    rig_run (rig);
    assert_int_equal (rig_task (rig, 0, SUBJECT + 3)->error->data_bytes, 0);
    free (data);
    rig_free (rig);
}

/* A hundred at once are 6.5 MB: no batch has much more than it may have. */
static void data_counts_to_a_commit_batch (void **state)
{
    enum { COUNT = 100 };
    rig_t *rig = *state;
    char *data = data_of (LONG, 'x');
    for (unsigned i = 0; i < COUNT; i++)
        rig_submit (rig, 0, SUBJECT + i, "q", "p");
    rig_register (rig, 1, WORKER, "q", COUNT);
    rig_run (rig);
    assert_int_equal (rig_assignments (rig, 1), COUNT);
    uint64_t before = rig->committed;
    for (unsigned i = 0; i < COUNT; i++)
        fail_with (rig, rig_assignment (rig, 1, i)->assignment, true, "", data);
    rig_settle (rig);
    assert_true (rig->committed > before + 1);
    for (uint64_t i = before + 1; i <= rig->committed; i++)
        assert_true (rig->batches[i]->bytes < BATCH_BYTES_MAX + 2 * LONG);
    free (data);
}

int main (void)
{
#define TEST(name) cmocka_unit_test_setup_teardown (name, rig_setup, rig_teardown)
    const struct CMUnitTest tests[] = {
        TEST (long_data_stands_behind_the_body),
        TEST (short_data_stands_in_the_message),
        TEST (what_is_tried_again_keeps_its_data),
        TEST (what_is_no_json_changes_nothing),
        cmocka_unit_test (data_counts_to_the_texts_of_live_tasks),
        TEST (data_counts_to_a_commit_batch),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}
