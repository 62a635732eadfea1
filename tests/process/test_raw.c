/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Clients that keep no rule: the broker answers what it can, and lives on, as does the link. */
#include <stdlib.h>
#include <string.h>

#include "support/cmocka_all.h"
#include "support/daemon.h"
#include "support/raw.h"
#include "support/timing.h"

enum { GARBAGE_ROUNDS = 500 };

static daemon_t broker;

static int set_up (void **state)
{
    (void) state;
    daemon_init_tcp (&broker);
    daemon_start (&broker);
    return 0;
}

static int tear_down (void **state)
{
    (void) state;
    daemon_stop (&broker);
    daemon_destroy (&broker);
    return 0;
}

/* The link that was there before still is. */
static void assert_link_lives (raw_t *raw)
{
    Taskmq__Heartbeat heartbeat = TASKMQ__HEARTBEAT__INIT;
    Taskmq__Request request = TASKMQ__REQUEST__INIT;
    request.op_case = TASKMQ__REQUEST__OP_HEARTBEAT;
    request.heartbeat = &heartbeat;
    assert_int_equal (raw_request (raw, &request, NULL, 0), TMQ_OK);
}

static void test_garbage_is_refused (void **state)
{
    (void) state;
    raw_t raw;
    unsigned seed = 4711;
    raw_open (&raw, broker.endpoint);
    raw_hello (&raw);
    const void *frames[] = {"\xff\xff\xff\xff garbage"};
    const size_t sizes[] = {12};
    raw_send (&raw, frames, sizes, 1);
    assert_int_equal (raw_refusal (&raw), TMQ_INVALID);
    for (int i = 0; i < GARBAGE_ROUNDS; i++) {
        uint8_t noise[300];
        size_t length = (size_t) rand_r (&seed) % sizeof noise;
        for (size_t k = 0; k < length; k++) {
            noise[k] = (uint8_t) rand_r (&seed);
        }
        const void *some[] = {noise, noise};
        const size_t lengths[] = {length, length / 2};
        raw_send (&raw, some, lengths, 1 + (size_t) (i % 2));
    }
    assert_link_lives (&raw);
    raw_close (&raw);
}

static void refuse_frames (size_t count)
{
    raw_t raw;
    const void *frames[100];
    size_t sizes[100];
    for (size_t i = 0; i < count; i++) {
        frames[i] = "x";
        sizes[i] = 1;
    }
    raw_open (&raw, broker.endpoint);
    raw_hello (&raw);
    raw_send (&raw, frames, sizes, count);
    assert_int_equal (raw_refusal (&raw), TMQ_INVALID);
    assert_link_lives (&raw);
    raw_close (&raw);
}

static void test_three_frames_are_refused (void **state)
{
    (void) state;
    refuse_frames (3);
}

static void test_hundred_frames_are_refused (void **state)
{
    (void) state;
    refuse_frames (100);
}

static void test_too_large_envelope_is_refused (void **state)
{
    (void) state;
    raw_t raw;
    static uint8_t large[TMQ_ENVELOPE_BYTES_MAX + 1];
    const void *frames[] = {large};
    const size_t sizes[] = {sizeof large};
    raw_open (&raw, broker.endpoint);
    raw_hello (&raw);
    raw_send (&raw, frames, sizes, 1);
    assert_int_equal (raw_refusal (&raw), TMQ_TOO_LARGE);
    assert_link_lives (&raw);
    raw_close (&raw);
}

/* A frame above the limit ends the connection; a new one works. */
static void test_huge_frame_does_no_harm (void **state)
{
    (void) state;
    raw_t raw;
    size_t size = 16u << 20;
    uint8_t *huge = calloc (1, size);
    const void *frames[] = {huge};
    const size_t sizes[] = {size};
    raw_open (&raw, broker.endpoint);
    raw_hello (&raw);
    raw_send (&raw, frames, sizes, 1);
    free (huge);
    raw_close (&raw);
    raw_open (&raw, broker.endpoint);
    raw_hello (&raw);
    raw_close (&raw);
}

static void test_without_hello_there_is_no_link (void **state)
{
    (void) state;
    raw_t raw;
    Taskmq__Stats stats = TASKMQ__STATS__INIT;
    Taskmq__Request request = TASKMQ__REQUEST__INIT;
    request.op_case = TASKMQ__REQUEST__OP_STATS;
    request.stats = &stats;
    raw_open (&raw, broker.endpoint);
    assert_int_equal (raw_request (&raw, &request, NULL, 0), TMQ_NO_LINK);
    memset (raw.token, 7, sizeof raw.token);
    assert_int_equal (raw_request (&raw, &request, NULL, 0), TMQ_NO_LINK);
    raw_close (&raw);
}

/* The token belongs to its connection. */
static void test_foreign_token_is_no_link (void **state)
{
    (void) state;
    raw_t one;
    raw_t other;
    Taskmq__Stats stats = TASKMQ__STATS__INIT;
    Taskmq__Request request = TASKMQ__REQUEST__INIT;
    request.op_case = TASKMQ__REQUEST__OP_STATS;
    request.stats = &stats;
    raw_open (&one, broker.endpoint);
    raw_hello (&one);
    raw_open (&other, broker.endpoint);
    raw_hello (&other);
    memcpy (other.token, one.token, sizeof other.token);
    assert_int_equal (raw_request (&other, &request, NULL, 0), TMQ_NO_LINK);
    assert_link_lives (&one);
    raw_close (&other);
    raw_close (&one);
}

static void test_declared_payload_beyond_the_frame_is_too_large (void **state)
{
    (void) state;
    raw_t raw;
    tmq_id_t id;
    uint8_t request_id[16] = {1};
    Taskmq__TaskSpec task = TASKMQ__TASK_SPEC__INIT;
    Taskmq__TaskSpec *tasks[] = {&task};
    Taskmq__Submit submit = TASKMQ__SUBMIT__INIT;
    Taskmq__Request request = TASKMQ__REQUEST__INIT;
    tmq_id_make (&id);
    task.task_id.data = id.bytes;
    task.task_id.len = sizeof id.bytes;
    task.queue = "work";
    task.payload_bytes = 10;
    submit.tasks = tasks;
    submit.n_tasks = 1;
    request.request_id.data = request_id;
    request.request_id.len = sizeof request_id;
    request.op_case = TASKMQ__REQUEST__OP_SUBMIT;
    request.submit = &submit;
    raw_open (&raw, broker.endpoint);
    raw_hello (&raw);
    assert_int_equal (raw_request (&raw, &request, "0123456789", 10), TMQ_OK);
    /* Ten bytes are declared, nine come. */
    assert_int_not_equal (raw_request (&raw, &request, "012345678", 9), TMQ_OK);
    assert_link_lives (&raw);
    raw_close (&raw);
}

int main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (test_garbage_is_refused),
        cmocka_unit_test (test_three_frames_are_refused),
        cmocka_unit_test (test_hundred_frames_are_refused),
        cmocka_unit_test (test_too_large_envelope_is_refused),
        cmocka_unit_test (test_huge_frame_does_no_harm),
        cmocka_unit_test (test_without_hello_there_is_no_link),
        cmocka_unit_test (test_foreign_token_is_no_link),
        cmocka_unit_test (test_declared_payload_beyond_the_frame_is_too_large),
    };
    return cmocka_run_group_tests (tests, set_up, tear_down);
}
