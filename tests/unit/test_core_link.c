/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Links and what goes wrong with them: hello and its refusals, identities, resets with reads under
 * way, refused messages of each kind; and the rarer ends of leases and delays. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core_rig.h"

enum { WORKER = 100 };

static uint64_t hello (rig_t *rig, size_t peer, uint32_t version)
{
    Taskmq__Hello body = TASKMQ__HELLO__INIT;
    Taskmq__Request request = TASKMQ__REQUEST__INIT;
    body.version_min = body.version_max = version;
    request.op_case = TASKMQ__REQUEST__OP_HELLO;
    request.hello = &body;
    return rig_send (rig, peer, &request, NULL, 0);
}

static const Taskmq__Assignment *claimed (rig_t *rig, uint32_t lease_ms)
{
    Taskmq__TaskSpec spec = TASKMQ__TASK_SPEC__INIT;
    spec.lease_ms = lease_ms;
    rig_submit_spec (rig, 0, 1, &spec, "p");
    rig_register (rig, 1, WORKER, "q", 1);
    rig_run (rig);
    return rig_assignment (rig, 1, 0)->assignment;
}

/* Hello. */

static void a_welcome_says_where_the_client_is (void **state)
{
    rig_t *rig = *state;
    rig_submit (rig, 0, 1, "q", "");
    rig_settle (rig);
    uint64_t request = hello (rig, 4, 1);
    rig_outputs (rig);
    const Taskmq__Welcome *welcome = rig_reply (rig, 4, request)->reply->welcome;
    assert_string_equal (welcome->namespace_, "default");
    assert_string_equal (welcome->identity, "uid:0");
    assert_int_equal (welcome->generation, 77);
    assert_int_equal (welcome->epoch, 1);
    assert_int_equal (welcome->seq, 1);
    assert_int_equal (welcome->heartbeat_ms, TMQ_HEARTBEAT_MS);
    assert_int_equal (welcome->now, rig->now.wall_ms);
}

static void a_version_that_nobody_speaks_is_refused (void **state)
{
    rig_t *rig = *state;
    uint64_t request = hello (rig, 4, 2);
    rig_outputs (rig);
    assert_int_equal (rig_code (rig, 4, request), TMQ_UNSUPPORTED);
}

static void links_are_bounded_and_come_free_again (void **state)
{
    engine_config_t config = ENGINE_CONFIG_INIT;
    config.links_max = 2;
    rig_t *rig = rig_new_with (&config);
    (void) state;
    rig_link (rig, 0, "default");
    rig_link (rig, 1, "default");
    uint64_t third = hello (rig, 2, 1);
    uint64_t again = hello (rig, 1, 1); /* not one more */
    rig_outputs (rig);
    assert_int_equal (rig_code (rig, 2, third), TMQ_LIMIT);
    assert_int_equal (rig_code (rig, 1, again), TMQ_OK);
    rig_goodbye (rig, 0);
    third = hello (rig, 2, 1);
    rig_settle (rig);
    assert_int_equal (rig_code (rig, 2, third), TMQ_OK);
    rig_free (rig);
}

static void a_stopping_broker_welcomes_nobody (void **state)
{
    rig_t *rig = *state;
    engine_stop (rig->engine);
    uint64_t request = hello (rig, 4, 1);
    rig_outputs (rig);
    assert_int_equal (rig_code (rig, 4, request), TMQ_STOPPING);
}

static void a_second_hello_replaces_the_link (void **state)
{
    rig_t *rig = *state;
    rig_subscribe (rig, 0, 7, 0);
    rig_submit (rig, 0, 1, "q", "");
    rig_wait (rig, 0, 1, 1, 0);
    rig_settle (rig);
    uint8_t old[16];
    memcpy (old, rig->peers[0].token, 16);
    rig_link (rig, 0, "default");
    assert_memory_not_equal (rig->peers[0].token, old, 16);
    rig_forget (rig, 0);
    rig_cancel (rig, 1, 1);
    rig_settle (rig);
    assert_int_equal (rig->peers[0].count, 0); /* neither the event nor the wait's answer */
    memcpy (rig->peers[0].token, old, 16);
    uint64_t get = rig_get (rig, 0, 1);
    rig_settle (rig);
    assert_int_equal (rig_code (rig, 0, get), TMQ_NO_LINK);
}

static void another_identity_on_the_connection_ends_the_link (void **state)
{
    rig_t *rig = *state;
    rig->peers[0].identity = "uid:5";
    uint64_t get = rig_get (rig, 0, 1);
    rig_outputs (rig);
    assert_int_equal (rig_code (rig, 0, get), TMQ_NO_LINK);
}

/* Leases beside cancelled tasks. */

static void the_lease_of_a_cancelled_task_ends_by_itself (void **state)
{
    rig_t *rig = *state;
    claimed (rig, 1000);
    rig_cancel (rig, 0, 1);
    rig_submit (rig, 0, 2, "q", "");
    rig_settle (rig);
    assert_int_equal (rig_assignments (rig, 1), 1);
    rig_advance (rig, 1100);
    assert_int_equal (rig_status (rig, 0, 1), TMQ_STATUS_CANCELLED);
    rig_renew (rig, 1, WORKER, rig_assignment (rig, 1, 0)->assignment); /* it is heard */
    rig_settle (rig);
    assert_int_equal (rig_assignments (rig, 1), 2);
}

static void a_worker_that_leaves_gives_cancelled_ones_back_too (void **state)
{
    rig_t *rig = *state;
    claimed (rig, 0);
    rig_cancel (rig, 0, 1);
    rig_leave (rig, 1, WORKER);
    rig_settle (rig);
    assert_int_equal (rig_status (rig, 0, 1), TMQ_STATUS_CANCELLED);
    assert_int_equal (rig_task (rig, 0, 1)->seq, 4); /* submitted, claimed, cancelled, released */
}

/* Delays. */

static void a_task_that_expires_behind_its_delay_is_not_kept_waiting (void **state)
{
    rig_t *rig = *state;
    Taskmq__TaskSpec spec = TASKMQ__TASK_SPEC__INIT;
    spec.ttl_ms = 3000;
    spec.backoff_ms = 60000;
    rig_submit_spec (rig, 0, 1, &spec, "");
    rig_register (rig, 1, WORKER, "q", 1);
    rig_settle (rig);
    rig_fail (rig, 1, rig_assignment (rig, 1, 0)->assignment, 1, false);
    rig_settle (rig);
    assert_int_equal (rig_task (rig, 0, 1)->phase, TMQ_PHASE_SCHEDULED);
    rig_advance (rig, 3100);
    const Taskmq__Task *task = rig_task (rig, 0, 1);
    assert_int_equal (task->status, TMQ_STATUS_FAILED);
    assert_int_equal (task->error->code, TMQ_TASK_ERROR_EXPIRED);
}

static void a_backoff_has_a_longest_pause (void **state)
{
    rig_t *rig = *state;
    Taskmq__TaskSpec spec = TASKMQ__TASK_SPEC__INIT;
    spec.backoff_ms = TMQ_BACKOFF_MS_MAX;
    rig_submit_spec (rig, 0, 1, &spec, "");
    rig_register (rig, 1, WORKER, "q", 1);
    rig_settle (rig);
    for (unsigned attempt = 1; attempt <= 2; attempt++) {
        rig_fail (rig, 1, rig_assignment (rig, 1, attempt - 1)->assignment, 1, false);
        rig_settle (rig);
        uint64_t pause = rig_task (rig, 0, 1)->not_before - (uint64_t) rig->now.wall_ms;
        assert_in_range (pause, TMQ_BACKOFF_MS_MAX / 5 * 4, TMQ_BACKOFF_MS_MAX / 5 * 6);
        rig_advance (rig, (int64_t) pause + 100);
        rig_renew (rig, 1, WORKER, rig_assignment (rig, 1, 0)->assignment); /* it is heard */
        rig_settle (rig);
    }
    assert_int_equal (rig_assignments (rig, 1), 3);
}

static void a_clock_set_forward_brings_delays_along (void **state)
{
    rig_t *rig = *state;
    rig_submit (rig, 0, 1, "q", "");
    rig_register (rig, 1, WORKER, "q", 1);
    rig_settle (rig);
    rig_release (rig, 1, rig_assignment (rig, 1, 0)->assignment, false); /* 1 s */
    rig_settle (rig);
    rig->now.wall_ms += 10000;
    rig_settle (rig);
    assert_int_equal (rig_assignments (rig, 1), 2);
}

/* Refused messages. */

static void a_refused_gap_is_told_again (void **state)
{
    rig_t *rig = *state;
    rig_submit (rig, 0, 1, "q", "");
    rig_settle (rig);
    Taskmq__Subscribe subscribe = TASKMQ__SUBSCRIBE__INIT;
    subscribe.subscription = 7;
    subscribe.generation = 5;
    rig_subscribe_as (rig, 1, &subscribe);
    rig_commit (rig);
    rig_refuse_after (rig, 1, 1); /* the answer passes, the gap does not */
    rig_settle (rig);
    rig_heed (rig, 1);
    rig_credit (rig, 1, 7, 0);
    rig_settle (rig);
    size_t gaps = 0;
    for (size_t i = 0; i < rig->peers[1].count; i++)
        gaps += rig->peers[1].items[i].gap != NULL;
    assert_int_equal (gaps, 1);
}

static void a_refused_snapshot_is_sent_again (void **state)
{
    rig_t *rig = *state;
    for (unsigned n = 1; n <= 5; n++)
        rig_submit (rig, 0, n, "q", "");
    rig_settle (rig);
    Taskmq__Subscribe subscribe = TASKMQ__SUBSCRIBE__INIT;
    subscribe.subscription = 7;
    subscribe.snapshot = true;
    subscribe.from_now = true;
    rig_subscribe_as (rig, 1, &subscribe);
    rig_refuse_after (rig, 1, 1);
    rig_settle (rig);
    rig_heed (rig, 1);
    rig_credit (rig, 1, 7, 0);
    rig_settle (rig);
    size_t tasks = 0;
    for (size_t i = 0; i < rig->peers[1].count; i++)
        if (rig->peers[1].items[i].snapshot != NULL)
            tasks += rig->peers[1].items[i].snapshot->n_tasks;
    assert_int_equal (tasks, 5);
}

/* Resets. */

static void a_reset_forgets_reads_that_are_under_way (void **state)
{
    rig_t *rig = *state;
    rig_submit (rig, 0, 1, "q", "");
    rig_settle (rig);
    uint64_t given = rig_count (rig, 0);
    read_t *read = engine_read_next (rig->engine);
    assert_non_null (read);
    rig_submit (rig, 0, 2, "q", "");
    rig_run (rig);
    uint64_t waiting = rig_count (rig, 0); /* for the write-back */
    rig_submit (rig, 0, 3, "q", "");
    rig_fail_commit (rig);
    read->count = 1;
    engine_read_done (rig->engine, read, rig->now);
    rig_settle (rig);
    assert_null (rig_reply (rig, 0, given));
    assert_null (rig_reply (rig, 0, waiting));
    rig_link (rig, 0, "default");
    uint64_t count = rig_count (rig, 0);
    rig_settle (rig);
    assert_int_equal (rig_reply (rig, 0, count)->reply->counted->count, 2);
}

/* What did not leave before the goodbye goes with it (a leak otherwise). */
static void what_a_refused_goodbye_leaves_is_dropped (void **state)
{
    rig_t *rig = *state;
    static char payload[TMQ_FRAME_BYTES_MAX / 2 + 2];
    memset (payload, 'x', sizeof (payload) - 1);
    rig_submit (rig, 0, 1, "q", payload);
    rig_settle (rig);
    rig_forget (rig, 1);
    rig_refuse_after (rig, 1, 0);
    for (int i = 0; i < 3; i++)
        rig_payload (rig, 1, 1); /* a message each */
    rig_settle (rig);
    rig_goodbye (rig, 1);
    rig_settle (rig);
    rig_advance (rig, 1000);
    size_t refused = rig->refused;
    rig_advance (rig, 1000);
    assert_int_equal (rig->refused, refused); /* nothing is tried again */
    rig_heed (rig, 1);
    rig_settle (rig);
    assert_int_equal (rig->peers[1].count, 0);
}

/* One that never said hello has no grace, and no alarm that would end it later. */
static void what_a_stranger_leaves_unread_is_dropped (void **state)
{
    rig_t *rig = *state;
    rig_refuse_after (rig, 2, 0);
    rig_count (rig, 2);
    rig_settle (rig);
    engine_peer_gone (rig->engine, rig->peers[2].id, rig->now);
    rig_settle (rig);
    size_t refused = rig->refused;
    rig_advance (rig, 1000);
    assert_true (refused > 0);
    assert_int_equal (rig->refused, refused); /* nothing is tried again */
}

/* A commit fails while what was durable before still waits for its rows. */
static void reads_after_a_reset_wait_for_what_is_not_written (void **state)
{
    rig_t *rig = *state;
    for (unsigned again = 0; again < 2; again++) {
        rig_link (rig, 0, "default");
        rig_submit (rig, 0, 10 + again, "q", "");
        rig_run (rig);
        rig_submit (rig, 0, 20 + again, "q", "");
        uint64_t kept = rig_fail_commit_stalled (rig);
        rig_link (rig, 0, "default");
        rig_submit (rig, 0, 30, "q", "");
        rig_fail_commit_stalled (rig); /* nothing new was kept in between */
        rig_link (rig, 0, "default");
        uint64_t count = rig_count (rig, 0);
        rig_outputs (rig);
        assert_null (engine_read_next (rig->engine));
        assert_true (engine_wants_flush (rig->engine));
        engine_written (rig->engine, kept - 1);
        assert_null (engine_read_next (rig->engine));
        engine_written (rig->engine, kept); /* all that there is */
        read_t *read = engine_read_next (rig->engine);
        assert_non_null (read);
        read->count = 1;
        engine_read_done (rig->engine, read, rig->now);
        rig_settle (rig);
        assert_int_equal (rig_reply (rig, 0, count)->reply->counted->count, 1);
    }
}

static void a_read_that_failed_is_said_so (void **state)
{
    rig_t *rig = *state;
    uint64_t count = rig_count (rig, 0);
    read_t *read = engine_read_next (rig->engine);
    read->error = 2;
    snprintf (read->error_text, sizeof (read->error_text), "the disk did not answer");
    engine_read_done (rig->engine, read, rig->now);
    rig_settle (rig);
    assert_int_equal (rig_code (rig, 0, count), TMQ_INTERNAL);
    assert_string_equal (rig_reply (rig, 0, count)->reply->text, "the disk did not answer");
}

static void an_engine_may_end_with_everything_under_way (void **state)
{
    rig_t *rig = *state;
    claimed (rig, 0);
    rig_subscribe (rig, 0, 7, 0);
    rig_wait (rig, 0, 1, 1, 0);
    rig_settle (rig);
    rig_count (rig, 0);
    assert_non_null (engine_read_next (rig->engine));
    rig_submit (rig, 0, 2, "q", "");
    rig_take (rig);
    rig_get (rig, 0, 2);
    rig_submit (rig, 0, 3, "q", "");
    rig_get (rig, 9, 2); /* a peer without a link */
    assert_true (engine_pending_inputs (rig->engine) > 0);
    assert_true (engine_pending_bytes (rig->engine) > 0);
}

/* What is durable is pending no more, though it is in memory until it is written back: a write-back
 * that takes long must not be what ends the reading. */
static void what_is_durable_is_dirty_until_it_is_written (void **state)
{
    engine_config_t config = ENGINE_CONFIG_INIT;
    config.dirty_tasks_soft = 2;
    rig_t *rig = rig_new_with (&config);
    (void) state;
    rig_link (rig, 0, "default");
    rig_settle (rig);
    rig_submit (rig, 0, 1, "q", "");
    assert_true (engine_pending_bytes (rig->engine) > 0);
    rig_run (rig);
    assert_int_equal (engine_pending_inputs (rig->engine), 0);
    assert_int_equal (engine_pending_bytes (rig->engine), 0);
    assert_true (engine_dirty_bytes (rig->engine) > 0);
    assert_false (engine_wants_flush (rig->engine));
    rig_submit (rig, 0, 2, "q", "");
    rig_run (rig);
    assert_true (engine_wants_flush (rig->engine));
    rig_write (rig);
    assert_int_equal (engine_dirty_bytes (rig->engine), 0);
    assert_false (engine_wants_flush (rig->engine));
    rig_free (rig);
}

/* Stats. */

static void many_queues_come_in_several_answers (void **state)
{
    rig_t *rig = *state;
    for (unsigned n = 1; n <= 2000; n++) {
        char name[TMQ_NAME_LENGTH_MAX + 1];
        snprintf (name, sizeof (name), "queue-with-a-name-that-takes-some-room-%u", n);
        rig_submit (rig, 0, n, name, "");
    }
    rig_settle (rig);
    uint64_t request = rig_stats (rig, 0);
    rig_settle (rig);
    size_t queues = 0;
    size_t last = 0;
    for (size_t i = 0; i < rig->peers[0].count; i++) {
        const Taskmq__Reply *reply = rig->peers[0].items[i].reply;
        if (reply == NULL || reply->id != request)
            continue;
        queues += reply->stats->n_queues;
        last += !reply->more;
    }
    assert_int_equal (queues, 2000);
    assert_int_equal (last, 1);
    assert_true (rig_replies (rig, 0, request) > 1);
}

#define TEST(name) cmocka_unit_test_setup_teardown (name, rig_setup, rig_teardown)

int main (void)
{
    const struct CMUnitTest tests[] = {
        TEST (a_welcome_says_where_the_client_is),
        TEST (a_version_that_nobody_speaks_is_refused),
        cmocka_unit_test (links_are_bounded_and_come_free_again),
        TEST (a_stopping_broker_welcomes_nobody),
        TEST (a_second_hello_replaces_the_link),
        TEST (another_identity_on_the_connection_ends_the_link),
        TEST (the_lease_of_a_cancelled_task_ends_by_itself),
        TEST (a_worker_that_leaves_gives_cancelled_ones_back_too),
        TEST (a_task_that_expires_behind_its_delay_is_not_kept_waiting),
        TEST (a_backoff_has_a_longest_pause),
        TEST (a_clock_set_forward_brings_delays_along),
        TEST (a_refused_gap_is_told_again),
        TEST (a_refused_snapshot_is_sent_again),
        TEST (what_a_refused_goodbye_leaves_is_dropped),
        TEST (what_a_stranger_leaves_unread_is_dropped),
        TEST (a_reset_forgets_reads_that_are_under_way),
        TEST (reads_after_a_reset_wait_for_what_is_not_written),
        TEST (a_read_that_failed_is_said_so),
        TEST (an_engine_may_end_with_everything_under_way),
        TEST (what_is_durable_is_dirty_until_it_is_written),
        TEST (many_queues_come_in_several_answers),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}
