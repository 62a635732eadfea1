/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

#include "library_support.h"

#include <stdlib.h>
#include <string.h>

#include "support/cmocka_all.h"
#include "support/timing.h"

daemon_t broker;

int set_up (void **state)
{
    (void) state;
    daemon_init_tcp (&broker);
    daemon_start (&broker);
    return 0;
}

int tear_down (void **state)
{
    (void) state;
    daemon_destroy (&broker);
    return 0;
}

tmq_client_t *client_of (const char *endpoint)
{
    tmq_client_options_t options;
    tmq_client_t *client = NULL;
    tmq_client_options_init (&options);
    options.endpoints = &endpoint;
    options.endpoints_count = 1;
    assert_int_equal (tmq_client_new (&client, &options, NULL), TMQ_OK);
    return client;
}

tmq_worker_t *worker_of (tmq_client_t *client, const char *queue, uint32_t capacity)
{
    tmq_worker_options_t options;
    tmq_worker_t *worker = NULL;
    tmq_worker_options_init (&options);
    options.queues = &queue;
    options.queues_count = 1;
    options.capacity = capacity;
    assert_int_equal (tmq_worker_new (&worker, client, &options, NULL), TMQ_OK);
    return worker;
}

tmq_id_t submit (tmq_client_t *client, const char *queue, const char *payload)
{
    tmq_submit_t task;
    tmq_receipt_t receipt;
    tmq_error_t error;
    tmq_submit_init (&task);
    task.queue = queue;
    task.payload = payload;
    task.payload_bytes = strlen (payload);
    if (tmq_submit (&receipt, client, &task, TIMING_PATIENCE_MS, &error) != TMQ_OK)
        fail_msg ("%s", error.text);
    return receipt.id;
}

void assert_result (tmq_client_t *client, const tmq_id_t *id, const char *expected)
{
    tmq_task_t *task = NULL;
    tmq_error_t error;
    if (tmq_result (&task, client, id, TIMING_PATIENCE_MS, &error) != TMQ_OK)
        fail_msg ("%s", error.text);
    assert_int_equal (task->status, TMQ_STATUS_COMPLETED);
    assert_string_equal (task->body, expected);
    tmq_task_free (task);
}

void submit_batch (tmq_client_t *client, const char *queue, tmq_id_t *ids, size_t count)
{
    tmq_submit_t *tasks = calloc (count, sizeof *tasks);
    tmq_receipt_t *receipts = calloc (count, sizeof *receipts);
    tmq_error_t error;
    assert_non_null (tasks);
    assert_non_null (receipts);
    for (size_t i = 0; i < count; i++) {
        tmq_submit_init (&tasks[i]);
        tasks[i].queue = queue;
    }
    if (tmq_submit_batch (receipts, client, tasks, count, TIMING_PATIENCE_MS, &error) != TMQ_OK)
        fail_msg ("%s", error.text);
    for (size_t i = 0; i < count; i++) {
        assert_int_equal (receipts[i].code, TMQ_OK);
        ids[i] = receipts[i].id;
    }
    free (tasks);
    free (receipts);
}
