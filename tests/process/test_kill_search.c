/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* kill -9 of the broker while it indexes, and while it builds a new index: after each start
 * searches find everything that was acknowledged, and nothing that is gone.
 *
 *     test_kill_search [--kills N]      CI: 4 kills */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/cmocka_all.h"
#include "support/daemon.h"
#include "support/timing.h"

enum { KILLS = 4, ROUND = 300, BATCH = 100 };

static size_t kills = KILLS;

static void submit (tmq_client_t *client, size_t from, size_t count)
{
    tmq_submit_t tasks[BATCH];
    tmq_receipt_t receipts[BATCH];
    char texts[BATCH][64];
    tmq_error_t error = {0};
    for (size_t i = 0; i < count; i++) {
        tmq_submit_init (&tasks[i]);
        tmq_id_make (&tasks[i].id);
        tasks[i].queue = "q";
        snprintf (texts[i], sizeof texts[i], "everyone number%zu", from + i);
        tasks[i].payload = texts[i];
        tasks[i].payload_bytes = strlen (texts[i]);
    }
    if (tmq_submit_batch (receipts, client, tasks, count, TIMING_PATIENCE_MS, &error) != TMQ_OK)
        fail_msg ("%s", error.text);
}

/* How many tasks have the words; SIZE_MAX: the index lags or is being built. */
static size_t count_found (tmq_client_t *client, const char *text)
{
    tmq_found_list_t *page = NULL;
    tmq_found_list_t *last = NULL;
    tmq_error_t error = {0};
    tmq_search_t search;
    size_t count = 0;
    bool whole = true;
    bool more = true;
    tmq_search_init (&search);
    search.text = text;
    search.limit = 1000;
    while (more) {
        if (tmq_search (&page, client, &search, TIMING_PATIENCE_MS, &error) != TMQ_OK)
            fail_msg ("%s", error.text);
        count += page->tasks->count;
        whole = whole && !page->behind && !page->building && *page->stalled == '\0';
        search.cursor = page->tasks->next;
        more = *page->tasks->next != '\0';
        tmq_found_list_free (last);
        last = page;
    }
    tmq_found_list_free (last);
    return whole ? count : SIZE_MAX;
}

static void test_kills_take_nothing_from_the_index (void **state)
{
    (void) state;
    daemon_t broker;
    size_t tasks = 0;
    tmq_error_t error = {0};
    daemon_init (&broker);
    daemon_start (&broker);
    tmq_client_t *client = daemon_client (&broker);
    for (size_t kill = 0; kill < kills; kill++) {
        for (size_t i = 0; i < ROUND / BATCH; i++, tasks += BATCH)
            submit (client, tasks, BATCH);
        if (kill % 2 == 1) /* in the middle of a new index */
            assert_int_equal (tmq_search_reindex (client, TIMING_PATIENCE_MS, &error), TMQ_OK);
        /* Whatever it is at: it differs from round to round. */
        timing_pause ((uint32_t) (kill * 7919 % 40));
        daemon_end (&broker, SIGKILL);
        daemon_start (&broker);
        WAIT_FOR (count_found (client, "everyone") == tasks, TIMING_PATIENCE_MS);
        char one[64];
        snprintf (one, sizeof one, "number%zu", tasks - 1);
        WAIT_FOR (count_found (client, one) == 1, TIMING_PATIENCE_MS);
    }
    tmq_client_free (&client);
    daemon_stop (&broker);
    daemon_destroy (&broker);
}

/* What was acknowledged before a search is found by it, or the answer says that it lags. */
static void test_a_search_knows_what_was_before_it (void **state)
{
    (void) state;
    daemon_t broker;
    daemon_init (&broker);
    daemon_start (&broker);
    tmq_client_t *client = daemon_client (&broker);
    WAIT_FOR (count_found (client, "nothing") == 0, TIMING_PATIENCE_MS); /* it is built */
    for (size_t i = 0; i < 20; i++) {
        submit (client, i, 1);
        size_t count = count_found (client, "everyone");
        assert_true (count == SIZE_MAX || count == i + 1);
    }
    WAIT_FOR (count_found (client, "everyone") == 20, TIMING_PATIENCE_MS);
    tmq_client_free (&client);
    daemon_stop (&broker);
    daemon_destroy (&broker);
}

/* A file that is no index: work goes on, searches say so, and a new index heals it. */
static void test_a_damaged_index_takes_searches_alone (void **state)
{
    (void) state;
    daemon_t broker;
    char path[DAEMON_PATH_MAX + 64];
    tmq_found_list_t *page = NULL;
    tmq_error_t error = {0};
    tmq_search_t search;
    daemon_init (&broker);
    daemon_start (&broker);
    tmq_client_t *client = daemon_client (&broker);
    submit (client, 0, 10);
    WAIT_FOR (count_found (client, "everyone") == 10, TIMING_PATIENCE_MS);
    daemon_stop (&broker);
    snprintf (path, sizeof path, "%s/search.db", broker.data);
    FILE *file = fopen (path, "w");
    assert_non_null (file);
    fputs ("no database at all", file);
    fclose (file);
    daemon_start (&broker);
    submit (client, 10, 10);
    tmq_search_init (&search);
    search.text = "everyone";
    assert_int_equal (tmq_search (&page, client, &search, TIMING_PATIENCE_MS, &error),
                      TMQ_INTERNAL);
    assert_non_null (strstr (error.text, "reindex"));
    assert_int_equal (tmq_search_reindex (client, TIMING_PATIENCE_MS, &error), TMQ_OK);
    WAIT_FOR (tmq_search (&page, client, &search, TIMING_PATIENCE_MS, NULL) == TMQ_OK,
              TIMING_PATIENCE_MS);
    tmq_found_list_free (page);
    WAIT_FOR (count_found (client, "everyone") == 20, TIMING_PATIENCE_MS);
    tmq_client_free (&client);
    daemon_stop (&broker);
    daemon_destroy (&broker);
}

static bool is_stalled (tmq_client_t *client, size_t expected)
{
    tmq_found_list_t *page = NULL;
    tmq_search_t search;
    tmq_search_init (&search);
    search.text = "everyone";
    assert_int_equal (tmq_search (&page, client, &search, TIMING_PATIENCE_MS, NULL), TMQ_OK);
    assert_int_equal (page->tasks->count, expected);
    bool stalled = *page->stalled != '\0';
    tmq_found_list_free (page);
    return stalled;
}

/* On a full disk searches find what is in the index, and say that it does not go on. */
static void test_a_full_disk_takes_what_is_new_alone (void **state)
{
    (void) state;
    daemon_t broker;
    char flag[DAEMON_PATH_MAX + 64];
    daemon_init (&broker);
    snprintf (flag, sizeof flag, "%s/full", broker.home);
    setenv ("TASKMQ_ENOSPC_FLAG", flag, 1);
    setenv ("TASKMQ_ENOSPC_DIR", broker.data, 1);
    broker.preload = TASKMQ_TEST_ENOSPC;
    daemon_start (&broker);
    tmq_client_t *client = daemon_client (&broker);
    submit (client, 0, 10);
    WAIT_FOR (count_found (client, "everyone") == 10, TIMING_PATIENCE_MS);
    FILE *file = fopen (flag, "w");
    assert_non_null (file);
    fclose (file);
    WAIT_FOR (is_stalled (client, 10), TIMING_PATIENCE_MS);
    assert_int_equal (remove (flag), 0);
    WAIT_FOR (count_found (client, "everyone") == 10, TIMING_PATIENCE_MS); /* it goes on */
    tmq_client_free (&client);
    daemon_stop (&broker);
    daemon_destroy (&broker);
}

int main (int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (test_kills_take_nothing_from_the_index),
        cmocka_unit_test (test_a_search_knows_what_was_before_it),
        cmocka_unit_test (test_a_damaged_index_takes_searches_alone),
        cmocka_unit_test (test_a_full_disk_takes_what_is_new_alone),
    };
    if (argc == 3 && strcmp (argv[1], "--kills") == 0)
        kills = strtoul (argv[2], NULL, 10);
    return cmocka_run_group_tests (tests, NULL, NULL);
}
