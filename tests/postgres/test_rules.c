/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* The rules that the tables have to keep at the end of each stress test: a broker keeps them, and
 * each notices the damage that it is for. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rules.h"
#include "stage.h"
#include "support/cmocka_all.h"
#include "support/load.h"
#include "support/timing.h"

enum { TASKS = 300, LARGE = 400000, END_MS = 180000 };

/* A task that ended as completed, and one that has two attempts or more beside it. */
#define ENDED "(SELECT min (number) FROM task WHERE status = 4)"
#define TRIED "(SELECT min (number) FROM attempt WHERE attempt = 2)"

static const char *const DAMAGES[][2] = {
    {"INSERT INTO journal VALUES (0, 1, 1, '')", "1 batches that are not in the tables"},
    {"UPDATE task SET leased = true WHERE number = " ENDED, "1 tasks that have not ended"},
    {"DROP INDEX task_id; INSERT INTO task (ns, number, id, owner, queue, status, created_at,"
     " expires_at, leased, last_event, payload_bytes, result_bytes, rest) SELECT ns, -1, id, owner,"
     " queue, status, created_at, expires_at, leased, last_event, 0, 0, rest FROM task"
     " WHERE number = " ENDED,
     "1 ids with several rows"},
    {"INSERT INTO attempt SELECT ns, -1, attempt, worker, started_at, ended_at, how, error_code,"
     " error_message, secret, request_id FROM attempt LIMIT 1",
     "1 attempts without a task"},
    {"DELETE FROM attempt WHERE attempt = 1 AND number = " TRIED,
     "1 tasks whose attempts have a gap"},
    {"DELETE FROM attempt a WHERE number = " TRIED
     " AND attempt = (SELECT max (attempt) FROM attempt b WHERE b.number = a.number)",
     "1 tasks whose attempts have a gap"},
    {"INSERT INTO attempt SELECT ns, number, attempt + 50, worker, started_at, ended_at, how,"
     " error_code, error_message, secret, request_id FROM attempt LIMIT 1",
     "1 tasks whose attempts have a gap"},
    {"UPDATE label SET number = -1", "1 labels without a task"},
    {"UPDATE task SET payload = substr (payload, 2) WHERE number = " ENDED,
     "1 bodies that are not as long as they were"},
    {"UPDATE task SET result = NULL WHERE number = " ENDED,
     "1 bodies that are not as long as they were"},
    {"INSERT INTO row SELECT 0, 6, convert_to (name, 'UTF8') || '\\x00' || uuid_send"
     " (gen_random_uuid ()), '', 0 FROM namespace",
     "1 rows of a task that is not there"},
    {"UPDATE blob SET whole = false", "1 large bodies that tasks name and nobody has"},
    {"DELETE FROM blob_chunk WHERE n = (SELECT max (n) FROM blob_chunk)",
     "1 large bodies that are not whole"},
    {"INSERT INTO blob_chunk VALUES (-1, 0, 'x', '')", "1 pieces without a body"},
    {"DELETE FROM event WHERE first_seq = (SELECT min (first_seq) FROM event WHERE first_seq > 1)",
     "1 gaps between blocks of events"},
    {"DELETE FROM event WHERE first_seq = 1", "1 namespaces whose first event is not the first"},
    {"UPDATE event SET count = count + 1 WHERE first_seq = (SELECT max (first_seq) FROM event)",
     "1 blocks that have other events than they say"},
    {"UPDATE event SET list = list || list WHERE first_seq = (SELECT max (first_seq) FROM event)",
     "1 blocks that have other events than they say"},
    {"DELETE FROM task WHERE number = " ENDED, "events of a task that is not there"},
    {"UPDATE task SET status = 5 WHERE number = " ENDED,
     "1 tasks without just one event of their end"},
    {"UPDATE task SET last_event = last_event - 1 WHERE number = " ENDED,
     "1 tasks whose newest event is another one"},
};

static const char *const UNTOLD[] = {
    "DELETE FROM task WHERE number = " ENDED,
    "DELETE FROM task WHERE number = (SELECT number FROM task ORDER BY id DESC LIMIT 1)",
    "UPDATE task SET status = 5 WHERE number = " ENDED,
    "UPDATE task SET last_event = last_event + 1 WHERE number = " ENDED,
    "UPDATE task SET id = gen_random_uuid () WHERE number = " ENDED,
    "UPDATE task SET rest = '' WHERE number = " ENDED,
};

/* One more than the load makes, with a label and a large body. */
static void submit_large (tmq_client_t *client, history_t *history)
{
    static char payload[LARGE];
    static const tmq_label_t label = {"film", "dawn"};
    tmq_submit_t large;
    tmq_receipt_t receipt;
    tmq_task_t *task = NULL;
    tmq_error_t error = {0};
    char text[CHECKER_TEXT_MAX];
    tmq_submit_init (&large);
    fact_t *fact = &history->facts[history_new_task (history, &large.id, text)];
    large.queue = "large";
    large.payload = payload;
    large.payload_bytes = sizeof payload;
    large.labels = &label;
    large.labels_count = 1;
    if (tmq_submit (&receipt, client, &large, TIMING_PATIENCE_MS, &error) != TMQ_OK ||
        tmq_cancel (&task, client, &receipt.id, NULL, TIMING_PATIENCE_MS, &error) != TMQ_OK)
        fail_msg ("%s", error.text);
    fact->status = task->status;
    fact->seq = task->seq;
    tmq_task_free (task);
}

/* A broker that has done some work, and has stopped. */
static void work (stage_t *stage, load_t *load)
{
    load_options_t options = {.endpoints = {stage->broker.endpoint},
                              .submitters = 2,
                              .workers = 2,
                              .subscribers = 1,
                              .open_max = 100,
                              .tasks_max = TASKS,
                              .timeout_ms = END_MS,
                              .faulty_workers = true,
                              .cancels = true};
    daemon_start (&stage->broker);
    load_start (load, &options);
    WAIT_FOR (history_accepted_count (&load->history) >= TASKS, TIMING_PATIENCE_MS);
    load_finish (load, END_MS);
    tmq_client_t *client = daemon_client (&stage->broker);
    submit_large (client, &load->history);
    tmq_client_free (&client);
    daemon_stop (&stage->broker);
}

static void assert_holds (char *text)
{
    assert_string_equal (text, "");
    free (text);
}

static void test_each_rule_notices (void **state)
{
    (void) state;
    static load_t load;
    stage_t stage;
    stage_init (&stage, NULL);
    work (&stage, &load);
    assert_holds (rules_broken (&stage.server, ""));
    assert_holds (rules_untold (&stage.server, &load.history, ""));
    for (size_t i = 0; i < sizeof DAMAGES / sizeof DAMAGES[0]; i++) {
        char *text = rules_broken (&stage.server, DAMAGES[i][0]);
        if (strstr (text, DAMAGES[i][1]) == NULL)
            fail_msg ("%s: '%s', in place of: %s", DAMAGES[i][0], text, DAMAGES[i][1]);
        free (text);
    }
    for (size_t i = 0; i < sizeof UNTOLD / sizeof UNTOLD[0]; i++) {
        char *text = rules_untold (&stage.server, &load.history, UNTOLD[i]);
        if (text[0] == '\0')
            fail_msg ("not noticed: %s", UNTOLD[i]);
        free (text);
    }
    assert_holds (rules_broken (&stage.server, ""));
    load_clear (&load);
    stage_destroy (&stage);
}

int main (int argc, char **argv)
{
    unsigned percent = 1, seed = 1;
    stage_arguments (argc, argv, &percent, &seed);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (test_each_rule_notices),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}
