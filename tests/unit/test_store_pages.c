/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Readers of the sqlite backend: pages, turns, the pool, the gate. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "store/readers_pool.h"
#include "store/sqlite/gate.h"
#include "store_support.h"
#include "support/timing.h"

/* More than is counted at once. */
static void a_large_queue_is_counted_whole (void **state)
{
    fixture_t *f = *state;
    for (int64_t first = 1; first < 40000; first += 1000)
        fixture_submit (f, first, first + 999);
    fixture_settle (f);
    static const tmq_status_t STATUS = TMQ_STATUS_QUEUED;
    read_t all = {.kind = READ_COUNT, .filter = {.ns = "default"}};
    read_t queued = {.kind = READ_COUNT,
                     .filter = {.ns = "default", .statuses = &STATUS, .statuses_count = 1}};
    fixture_read (f, &all);
    fixture_read (f, &queued);
    assert_int_equal (all.count, 40000);
    assert_int_equal (queued.count, 40000);
}

/* A turn of a count ends after a slice of numbers, whether much was found or nothing. */
static void a_count_ends_its_turn (void **state)
{
    fixture_t *f = *state;
    for (int64_t first = 1; first < 40000; first += 1000)
        fixture_submit (f, first, first + 999);
    fixture_settle (f);
    static const char *const SESSION = "none of these";
    static const label_t LABEL = {"day", "none"};
    const filter_t filters[] = {{.ns = "default"},
                                {.ns = "default", .sessions = &SESSION, .sessions_count = 1},
                                {.ns = "default", .labels = &LABEL, .labels_count = 1}};
    for (size_t i = 0; i < sizeof (filters) / sizeof (filters[0]); i++) {
        read_t count = {.kind = READ_COUNT, .filter = filters[i], .vain_max = 1};
        int turns = 0;
        do {
            fixture_read (f, &count);
            count.before_number = count.next_number;
            turns++;
        } while (count.more);
        assert_int_equal (count.count, i == 0 ? 40000 : 0);
        assert_int_equal (turns, i == 1 ? 1 : 3); /* nobody knows the session */
    }
}

/* What would not fit the answer is not read. */
static void a_page_ends_when_it_is_long_enough (void **state)
{
    fixture_t *f = *state;
    fixture_submit (f, 1, 1000);
    fixture_settle (f);
    read_t read = {
        .kind = READ_LIST, .filter = {.ns = "default"}, .limit = 1000, .bytes_max = 10000};
    fixture_read (f, &read);
    assert_in_range (read.records_count, 10, 100);
    assert_true (read.more);
    read_clear (&read);
}

/* The pool ends with jobs in both of its queues: they are their owner's, who has lists of them. */
static void the_pool_leaves_its_jobs_to_their_owner (void **state)
{
    enum { READS = 500 };
    fixture_t *f = *state;
    readers_pool_t *pool = NULL;
    store_error_t error;
    fixture_submit (f, 1, 100);
    fixture_settle (f);
    read_t *reads = calloc (READS, sizeof (*reads)); /* one allocation: no read is one of its own */
    assert_int_equal (readers_pool_new (&pool, f->store, 1, &error), STORE_OK);
    for (int i = 0; i < READS; i++) {
        reads[i] = (read_t){.kind = READ_LIST, .filter = {.ns = "default"}, .limit = 1000};
        readers_pool_submit (pool, &reads[i]);
    }
    readers_pool_free (&pool);
    for (int i = 0; i < READS; i++)
        read_clear (&reads[i]);
    free (reads);
}

typedef struct gate_test {
    gate_t gate;
    atomic_int stage;
} gate_test_t;

static void *gate_closer (void *context)
{
    gate_test_t *test = context;
    gate_close (&test->gate);
    atomic_store (&test->stage, 1);
    while (atomic_load (&test->stage) != 2)
        timing_pause (1);
    gate_open (&test->gate);
    return NULL;
}

static void *gate_reader (void *context)
{
    gate_test_t *test = context;
    gate_enter (&test->gate);
    assert_false (gate_is_closed (&test->gate));
    gate_leave (&test->gate);
    atomic_store (&test->stage, 3);
    return NULL;
}

static void the_gate_lets_readers_out_and_nobody_in (void **state)
{
    (void) state;
    static gate_test_t test;
    pthread_t closer;
    pthread_t reader;
    gate_init (&test.gate);
    gate_enter (&test.gate);
    gate_enter (&test.gate);
    assert_int_equal (pthread_create (&closer, NULL, gate_closer, &test), 0);
    WAIT_FOR (gate_is_closed (&test.gate), TIMING_PATIENCE_MS);
    gate_leave (&test.gate);
    assert_int_equal (atomic_load (&test.stage), 0);
    gate_leave (&test.gate);
    WAIT_FOR (atomic_load (&test.stage) == 1, TIMING_PATIENCE_MS);
    assert_int_equal (pthread_create (&reader, NULL, gate_reader, &test), 0);
    timing_pause (5);
    assert_int_equal (atomic_load (&test.stage), 1);
    atomic_store (&test.stage, 2);
    WAIT_FOR (atomic_load (&test.stage) == 3, TIMING_PATIENCE_MS);
    pthread_join (closer, NULL);
    pthread_join (reader, NULL);
    gate_destroy (&test.gate);
}

#define TEST(name)                                                                                 \
    cmocka_unit_test_prestate_setup_teardown (name, fixture_setup, fixture_teardown,               \
                                              (void *) "sqlite")

int main (void)
{
    const struct CMUnitTest tests[] = {
        TEST (a_large_queue_is_counted_whole),
        TEST (a_count_ends_its_turn),
        TEST (a_page_ends_when_it_is_long_enough),
        TEST (the_pool_leaves_its_jobs_to_their_owner),
        cmocka_unit_test (the_gate_lets_readers_out_and_nobody_in),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}
