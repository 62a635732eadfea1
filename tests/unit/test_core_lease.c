/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Leases, workers and links: terms and renewals, credit, reconciliation, what counts as a failure
 * and what does not, silence, grace, restarts. */
#include <string.h>

#include "core_rig.h"

enum { WORKER = 100 };

static const Taskmq__Assignment *claimed (rig_t *rig, bool started)
{
    rig_submit (rig, 0, 1, "q", "p");
    rig_register (rig, 1, WORKER, "q", 1);
    rig_run (rig);
    const Taskmq__Assignment *assignment = rig_assignment (rig, 1, 0)->assignment;
    if (started)
        rig_started (rig, 1, assignment);
    rig_settle (rig);
    return assignment;
}

static void heartbeat (rig_t *rig, size_t peer)
{
    Taskmq__Heartbeat beat = TASKMQ__HEARTBEAT__INIT;
    Taskmq__Request request = TASKMQ__REQUEST__INIT;
    request.op_case = TASKMQ__REQUEST__OP_HEARTBEAT;
    request.heartbeat = &beat;
    rig_send (rig, peer, &request, NULL, 0);
}

/* Time goes by while these peers are alive. */
static void live (rig_t *rig, int64_t ms)
{
    for (; ms > 0; ms -= 1000) {
        heartbeat (rig, 0);
        heartbeat (rig, 1);
        rig_advance (rig, ms < 1000 ? ms : 1000);
    }
}

/* Terms. */

static void a_lease_is_late_when_it_has_run_out_unjudged (void **state)
{
    rig_t *rig = *state;
    claimed (rig, true);
    live (rig, 29000);
    assert_int_equal (rig_task (rig, 0, 1)->phase, TMQ_PHASE_LEASED);
    rig->heard_ms = rig->now.mono_ms; /* a flood: what arrives from now on waits to be read */
    live (rig, 3000);
    const Taskmq__Task *task = rig_task (rig, 0, 1);
    assert_int_equal (task->status, TMQ_STATUS_WORKING);
    assert_int_equal (task->phase, TMQ_PHASE_LATE);
    rig->heard_ms = 0;
    live (rig, 100);
    assert_int_equal (rig_status (rig, 0, 1), TMQ_STATUS_QUEUED);
}

static void a_lease_that_is_not_renewed_is_lost_and_counts (void **state)
{
    rig_t *rig = *state;
    claimed (rig, true);
    live (rig, 29000);
    assert_int_equal (rig_status (rig, 0, 1), TMQ_STATUS_WORKING);
    live (rig, 1500);
    const Taskmq__Task *task = rig_task (rig, 0, 1);
    assert_int_equal (task->status, TMQ_STATUS_QUEUED);
    assert_int_equal (task->phase, TMQ_PHASE_SCHEDULED); /* behind its backoff */
    live (rig, 2000);
    task = rig_task (rig, 0, 1);
    assert_int_equal (task->status, TMQ_STATUS_WORKING);
    assert_int_equal (task->attempt, 2);
}

static void a_renewed_lease_goes_on (void **state)
{
    rig_t *rig = *state;
    const Taskmq__Assignment *assignment = claimed (rig, true);
    for (unsigned i = 0; i < 6; i++) {
        live (rig, 20000);
        uint64_t renew = rig_renew (rig, 1, WORKER, assignment);
        rig_outputs (rig); /* a renewal is not stored and waits for nothing (A8) */
        const Taskmq__Renewed *renewed = rig_reply (rig, 1, renew)->reply->renewed;
        assert_int_equal (renewed->leases[0]->code, TMQ_OK);
        assert_int_equal (renewed->leases[0]->lease_ms, TMQ_LEASE_MS_DEFAULT);
    }
    assert_int_equal (rig_status (rig, 0, 1), TMQ_STATUS_WORKING);
}

static void a_lost_lease_is_stale_for_its_worker (void **state)
{
    rig_t *rig = *state;
    const Taskmq__Assignment *assignment = claimed (rig, true);
    live (rig, 34000);
    assert_int_equal (rig_assignments (rig, 1), 2);
    uint64_t complete = rig_complete (rig, 1, assignment, "late");
    uint64_t renew = rig_renew (rig, 1, WORKER, assignment);
    rig_settle (rig);
    assert_int_equal (rig_code (rig, 1, complete), TMQ_STALE_LEASE);
    assert_int_equal (rig_reply (rig, 1, renew)->reply->renewed->leases[0]->code, TMQ_STALE_LEASE);
    assert_int_equal (rig_status (rig, 0, 1), TMQ_STATUS_WORKING);
}

static void lost_leases_use_attempts_up (void **state)
{
    rig_t *rig = *state;
    claimed (rig, true);
    for (unsigned attempt = 1; attempt <= 3; attempt++) {
        while (rig_assignments (rig, 1) < attempt)
            live (rig, 1000);
        rig_started (rig, 1, rig_assignment (rig, 1, attempt - 1)->assignment);
        live (rig, 31000);
    }
    const Taskmq__Task *task = rig_task (rig, 0, 1);
    assert_int_equal (task->status, TMQ_STATUS_FAILED);
    assert_int_equal (task->error->code, TMQ_TASK_ERROR_LEASE_LOST);
    assert_true (task->dead);
}

static void a_lease_lost_before_it_was_started_does_not_count (void **state)
{
    rig_t *rig = *state;
    claimed (rig, false);
    live (rig, 30100);
    assert_int_equal (rig_assignments (rig, 1), 2); /* at once */
    live (rig, 30100);
    assert_int_equal (rig_assignments (rig, 1), 3);
    live (rig, 30100); /* the third in a row waits the backoff (S4) */
    assert_int_equal (rig_assignments (rig, 1), 3);
    live (rig, 2000);
    assert_int_equal (rig_assignments (rig, 1), 4);
    assert_int_equal (rig_status (rig, 0, 1), TMQ_STATUS_WORKING);
}

static void releases_count_from_the_tenth_in_a_row (void **state)
{
    rig_t *rig = *state;
    claimed (rig, true);
    for (unsigned n = 1; n <= 12; n++) {
        while (rig_assignments (rig, 1) < n)
            live (rig, 1000);
        assert_int_equal (rig_status (rig, 0, 1), TMQ_STATUS_WORKING);
        rig_use_request_id (n);
        rig_release (rig, 1, rig_assignment (rig, 1, n - 1)->assignment, true);
        rig_settle (rig);
    }
    const Taskmq__Task *task = rig_task (rig, 0, 1);
    assert_int_equal (task->status, TMQ_STATUS_FAILED); /* 10, 11 and 12 are three failures */
    assert_true (task->dead);
}

static void a_release_waits_its_delay (void **state)
{
    rig_t *rig = *state;
    rig_release (rig, 1, claimed (rig, true), false);
    rig_settle (rig);
    assert_int_equal (rig_assignments (rig, 1), 1);
    live (rig, 1100);
    assert_int_equal (rig_assignments (rig, 1), 2);
}

static void a_pause_of_the_broker_is_nobodys_fault (void **state)
{
    rig_t *rig = *state;
    claimed (rig, true);
    rig->now.mono_ms += 40000;
    rig->now.wall_ms += 40000;
    engine_tick (rig->engine, rig->now, rig->now.mono_ms, 40000);
    rig_settle (rig);
    assert_int_equal (rig_status (rig, 0, 1), TMQ_STATUS_WORKING);
    live (rig, 29000);
    assert_int_equal (rig_status (rig, 0, 1), TMQ_STATUS_WORKING);
    live (rig, 1200);
    assert_int_equal (rig_status (rig, 0, 1), TMQ_STATUS_QUEUED);
}

/* A flood: messages wait that nobody has looked at yet. The time of tasks goes on meanwhile. */
static void what_was_not_heard_is_no_silence (void **state)
{
    rig_t *rig = *state;
    Taskmq__TaskSpec spec = TASKMQ__TASK_SPEC__INIT;
    claimed (rig, true);
    spec.queue = "other";
    spec.ttl_ms = 35000;
    rig_submit_spec (rig, 0, 2, &spec, "");
    rig_settle (rig);
    rig->heard_ms = rig->now.mono_ms;
    rig_advance (rig, 40000);
    assert_int_equal (rig_status (rig, 0, 1), TMQ_STATUS_WORKING);
    assert_int_equal (rig_status (rig, 0, 2), TMQ_STATUS_FAILED);
    rig->heard_ms = rig->now.mono_ms;
    rig_advance (rig, 1000);
    assert_int_equal (rig_status (rig, 0, 1), TMQ_STATUS_QUEUED);
}

/* A renewal may be among the messages of the worker that wait; nobody else is spared by that. */
static void what_waits_to_be_applied_is_no_silence (void **state)
{
    rig_t *rig = *state;
    claimed (rig, true);
    for (size_t peer = 0; peer < 3; peer++)
        engine_set_behind (rig->engine, rig->peers[peer].id, true);
    rig_advance (rig, 40000);
    rig_advance (rig, 40000);
    assert_int_equal (rig_status (rig, 0, 1), TMQ_STATUS_WORKING);
    for (size_t peer = 0; peer < 3; peer++)
        engine_set_behind (rig->engine, rig->peers[peer].id, false);
    rig_advance (rig, 1000);
    assert_int_equal (rig_status (rig, 0, 1), TMQ_STATUS_QUEUED);
}

/* Credit and order. */

static void credit_is_absolute_and_never_exceeded (void **state)
{
    rig_t *rig = *state;
    for (unsigned n = 1; n <= 10; n++)
        rig_submit (rig, 0, n, "q", "");
    rig_register (rig, 1, WORKER, "q", 3);
    rig_settle (rig);
    assert_int_equal (rig_assignments (rig, 1), 3);
    rig_worker_credit (rig, 1, WORKER, 3, 5);
    rig_settle (rig);
    assert_int_equal (rig_assignments (rig, 1), 5);
    rig_worker_credit (rig, 1, WORKER, 5, 0);
    rig_complete (rig, 1, rig_assignment (rig, 1, 0)->assignment, "");
    rig_settle (rig);
    assert_int_equal (rig_assignments (rig, 1), 5);
    rig_worker_credit (rig, 1, WORKER, 5, 5);
    rig_settle (rig);
    assert_int_equal (rig_assignments (rig, 1), 6);
    for (unsigned n = 0; n < 6; n++)
        assert_int_equal (rig_assignment (rig, 1, n)->assignment->number, n + 1);
    uint64_t unknown = rig_worker_credit (rig, 0, 999, 0, 1);
    rig_settle (rig);
    assert_int_equal (rig_code (rig, 0, unknown), TMQ_NOT_FOUND);
}

static void workers_of_a_queue_take_turns (void **state)
{
    rig_t *rig = *state;
    rig_register (rig, 0, WORKER, "q", 10);
    rig_register (rig, 1, WORKER + 1, "q", 10);
    rig_settle (rig);
    for (unsigned n = 1; n <= 8; n++)
        rig_submit (rig, 0, n, "q", "");
    rig_settle (rig);
    assert_int_equal (rig_assignments (rig, 0), 4);
    assert_int_equal (rig_assignments (rig, 1), 4);
}

static void a_worker_of_two_queues_takes_by_priority_then_acceptance (void **state)
{
    rig_t *rig = *state;
    static const struct {
        const char *queue;
        unsigned priority;
    } TASKS[] = {{"a", 100}, {"b", 100}, {"b", 200}, {"a", 200}, {"a", 50}};
    static const unsigned ORDER[] = {3, 4, 1, 2, 5};
    for (unsigned n = 1; n <= 5; n++) {
        Taskmq__TaskSpec spec = TASKMQ__TASK_SPEC__INIT;
        spec.queue = (char *) TASKS[n - 1].queue;
        spec.priority_plus_1 = TASKS[n - 1].priority + 1;
        rig_submit_spec (rig, 0, n, &spec, "");
    }
    char *queues[] = {(char *) "a", (char *) "b"};
    rig_register_queues (rig, 1, WORKER, queues, 2, 5);
    rig_settle (rig);
    for (unsigned i = 0; i < 5; i++) {
        tmq_id_t id = rig_id (ORDER[i]);
        assert_memory_equal (rig_assignment (rig, 1, i)->assignment->task_id.data, id.bytes, 16);
    }
}

/* Registration. */

static void what_a_worker_does_not_list_goes_back (void **state)
{
    rig_t *rig = *state;
    claimed (rig, true);
    rig_register (rig, 1, WORKER, "q", 1); /* it lists nothing */
    rig_settle (rig);
    assert_int_equal (rig_assignments (rig, 1), 2);
    const Taskmq__Assignment *second = rig_assignment (rig, 1, 1)->assignment;
    assert_int_equal (second->attempt, 2);
    assert_int_equal (second->number, 2);
}

static void what_a_worker_lists_it_keeps_on_another_connection (void **state)
{
    rig_t *rig = *state;
    const Taskmq__Assignment *assignment = claimed (rig, true);
    engine_peer_gone (rig->engine, rig->peers[1].id, rig->now);
    rig_link (rig, 2, "default");
    uint64_t registered = rig_register_with (rig, 2, WORKER, "q", 1, assignment);
    rig_settle (rig);
    const Taskmq__Registered *answer = rig_reply (rig, 2, registered)->reply->registered;
    assert_int_equal (answer->n_leases, 1);
    assert_int_equal (answer->leases[0]->code, TMQ_OK);
    rig_advance (rig, 6000); /* the grace of the old connection ends: no matter */
    heartbeat (rig, 2);
    heartbeat (rig, 0);
    assert_int_equal (rig_status (rig, 0, 1), TMQ_STATUS_WORKING);
    uint64_t complete = rig_complete (rig, 2, assignment, "done");
    rig_settle (rig);
    assert_int_equal (rig_code (rig, 2, complete), TMQ_OK);
}

static void a_foreign_workers_id_is_denied (void **state)
{
    rig_t *rig = *state;
    claimed (rig, true);
    rig_access (rig, "other addr:10.0.0.7 operator\n");
    rig->peers[3].identity = "other";
    rig_link (rig, 3, "default");
    uint64_t registered = rig_register (rig, 3, WORKER, "q", 1);
    rig_settle (rig);
    assert_int_equal (rig_code (rig, 3, registered), TMQ_DENIED);
    assert_int_equal (rig_status (rig, 0, 1), TMQ_STATUS_WORKING);
}

static void another_namespace_sees_nothing (void **state)
{
    rig_t *rig = *state;
    rig_submit (rig, 0, 1, "q", "p");
    rig_settle (rig);
    rig_link (rig, 2, "other");
    uint64_t get = rig_get (rig, 2, 1);
    rig_register (rig, 2, WORKER, "q", 1);
    rig_settle (rig);
    assert_int_equal (rig_code (rig, 2, get), TMQ_NOT_FOUND);
    assert_int_equal (rig_assignments (rig, 2), 0);
}

/* Leaving, dying. */

static void a_goodbye_gives_back_at_once (void **state)
{
    rig_t *rig = *state;
    claimed (rig, true);
    uint64_t goodbye = rig_goodbye (rig, 1);
    rig_settle (rig);
    assert_int_equal (rig_code (rig, 1, goodbye), TMQ_OK);
    const Taskmq__Task *task = rig_task (rig, 0, 1);
    assert_int_equal (task->status, TMQ_STATUS_QUEUED);
    assert_int_equal (task->phase, TMQ_PHASE_READY);
    uint64_t after = rig_get (rig, 1, 1);
    rig_settle (rig);
    assert_int_equal (rig_code (rig, 1, after), TMQ_NO_LINK);
}

static void a_worker_that_leaves_gives_back_at_once (void **state)
{
    rig_t *rig = *state;
    claimed (rig, true);
    rig_leave (rig, 1, WORKER);
    rig_settle (rig);
    assert_int_equal (rig_status (rig, 0, 1), TMQ_STATUS_QUEUED);
    rig_advance (rig, 2000);
    assert_int_equal (rig_assignments (rig, 1), 1);
}

static void a_lost_connection_gives_back_after_the_grace (void **state)
{
    rig_t *rig = *state;
    claimed (rig, false);
    engine_peer_gone (rig->engine, rig->peers[1].id, rig->now);
    rig_advance (rig, 4000);
    heartbeat (rig, 0);
    assert_int_equal (rig_task (rig, 0, 1)->phase, TMQ_PHASE_LEASED);
    rig_advance (rig, 1500);
    assert_int_equal (rig_status (rig, 0, 1), TMQ_STATUS_QUEUED);
    uint64_t get = rig_get (rig, 1, 1);
    rig_settle (rig);
    assert_int_equal (rig_code (rig, 1, get), TMQ_NO_LINK);
}

/* What it said last is answered in vain, before or after the hint that it is gone. */
static void a_second_hello_without_a_register_gives_back_after_the_grace (void **state)
{
    rig_t *rig = *state;
    claimed (rig, false);
    rig_link (rig, 1, "default");
    live (rig, 4000);
    assert_int_equal (rig_status (rig, 0, 1), TMQ_STATUS_WORKING);
    engine_peer_gone (rig->engine, rig->peers[1].id, rig->now);
    live (rig, 1500);
    assert_int_equal (rig_status (rig, 0, 1), TMQ_STATUS_QUEUED);
}

static void a_second_hello_with_a_register_keeps_the_leases (void **state)
{
    rig_t *rig = *state;
    const Taskmq__Assignment *assignment = claimed (rig, true);
    rig_link (rig, 1, "default");
    live (rig, 4000);
    rig_register_with (rig, 1, WORKER, "q", 1, assignment);
    live (rig, 20000);
    assert_int_equal (rig_status (rig, 0, 1), TMQ_STATUS_WORKING);
    assert_int_equal (rig_task (rig, 0, 1)->attempt, 1);
}

static void an_answer_in_vain_does_not_hide_the_lost_connection (void **state)
{
    rig_t *rig = *state;
    for (unsigned n = 1; n <= 2; n++) {
        const Taskmq__Assignment *assignment = claimed (rig, false);
        rig->peers[1].refuse = true;
        rig_renew (rig, 1, WORKER, assignment);
        if (n == 1)
            engine_peer_gone (rig->engine, rig->peers[1].id, rig->now);
        rig_settle (rig);
        if (n == 2)
            engine_peer_gone (rig->engine, rig->peers[1].id, rig->now);
        rig_advance (rig, 4000);
        heartbeat (rig, 0);
        assert_int_equal (rig_status (rig, 0, 1), TMQ_STATUS_WORKING);
        rig_advance (rig, 1500);
        assert_int_equal (rig_status (rig, 0, 1), TMQ_STATUS_QUEUED);
        rig_teardown (state);
        rig_setup (state);
        rig = *state;
    }
}

static void any_message_ends_the_suspicion (void **state)
{
    rig_t *rig = *state;
    claimed (rig, false);
    engine_peer_gone (rig->engine, rig->peers[1].id, rig->now);
    rig_advance (rig, 3000);
    heartbeat (rig, 1);
    live (rig, 10000);
    assert_int_equal (rig_status (rig, 0, 1), TMQ_STATUS_WORKING);
}

static void a_silent_worker_gets_nothing_new_and_keeps_its_lease (void **state)
{
    rig_t *rig = *state;
    rig_register (rig, 1, WORKER, "q", 2);
    rig_submit (rig, 0, 1, "q", "");
    rig_settle (rig);
    for (unsigned i = 0; i < 7; i++) {
        rig_advance (rig, 1000);
        heartbeat (rig, 0);
    }
    rig_submit (rig, 0, 2, "q", "");
    rig_settle (rig);
    assert_int_equal (rig_assignments (rig, 1), 1);
    assert_int_equal (rig_status (rig, 0, 1), TMQ_STATUS_WORKING);
    heartbeat (rig, 1);
    rig_settle (rig);
    assert_int_equal (rig_assignments (rig, 1), 2);
}

static void an_assignment_that_cannot_be_delivered_is_queued_again (void **state)
{
    rig_t *rig = *state;
    rig_register (rig, 1, WORKER, "q", 1);
    rig_settle (rig);
    rig->peers[1].refuse = true;
    rig_submit (rig, 0, 1, "q", "");
    rig_settle (rig);
    assert_int_equal (rig_status (rig, 0, 1), TMQ_STATUS_QUEUED);
    rig->peers[1].refuse = false;
    heartbeat (rig, 1); /* it is heard again */
    rig_settle (rig);
    assert_int_equal (rig_assignments (rig, 1), 1);
    assert_int_equal (rig_task (rig, 0, 1)->attempt, 2);
}

static void a_worker_whose_lease_ran_out_gets_nothing_before_it_is_heard (void **state)
{
    rig_t *rig = *state;
    Taskmq__TaskSpec spec = TASKMQ__TASK_SPEC__INIT;
    spec.lease_ms = 1000;
    rig_submit_spec (rig, 0, 1, &spec, "");
    rig_register (rig, 1, WORKER, "q", 1);
    rig_settle (rig);
    rig_advance (rig, 3000); /* not silent yet, but it let a lease run out */
    assert_int_equal (rig_assignments (rig, 1), 1);
    assert_int_equal (rig_status (rig, 0, 1), TMQ_STATUS_QUEUED);
    heartbeat (rig, 1);
    rig_settle (rig);
    assert_int_equal (rig_assignments (rig, 1), 2);
}

static void a_register_that_comes_late_does_not_move_the_worker_back (void **state)
{
    rig_t *rig = *state;
    rig_link (rig, 2, "default");
    rig_register (rig, 2, WORKER, "q", 1);
    uint64_t late = rig_register (rig, 1, WORKER, "q", 1); /* by the older link */
    rig_submit (rig, 0, 1, "q", "");
    rig_settle (rig);
    assert_int_equal (rig_code (rig, 1, late), TMQ_NO_LINK);
    assert_int_equal (rig_assignments (rig, 2), 1);
}

/* Restarts. */

static void a_restart_gives_each_live_lease_a_fresh_term (void **state)
{
    rig_t *rig = *state;
    const Taskmq__Assignment *assignment = claimed (rig, true);
    live (rig, 29000);
    rig_restart (rig);
    rig_link (rig, 0, "default");
    rig_advance (rig, 20000);
    rig_link (rig, 1, "default");
    uint64_t registered = rig_register_with (rig, 1, WORKER, "q", 1, assignment);
    rig_settle (rig);
    assert_int_equal (rig_reply (rig, 1, registered)->reply->registered->leases[0]->code, TMQ_OK);
    uint64_t complete = rig_complete (rig, 1, assignment, "done");
    rig_settle (rig);
    assert_int_equal (rig_code (rig, 1, complete), TMQ_OK);
    assert_int_equal (rig_task (rig, 0, 1)->attempt, 1);
}

static void a_worker_that_does_not_come_back_loses_its_lease (void **state)
{
    rig_t *rig = *state;
    claimed (rig, true);
    rig_restart (rig);
    rig_link (rig, 0, "default");
    rig_advance (rig, 31000);
    assert_int_equal (rig_status (rig, 0, 1), TMQ_STATUS_QUEUED);
}

static void queued_tasks_keep_their_order_over_a_restart (void **state)
{
    rig_t *rig = *state;
    for (unsigned n = 1; n <= 5; n++)
        rig_submit (rig, 0, n, "q", "payload");
    rig_settle (rig);
    rig_restart (rig);
    rig_link (rig, 1, "default");
    rig_register (rig, 1, WORKER, "q", 5);
    rig_settle (rig);
    for (unsigned n = 0; n < 5; n++) {
        const rig_item_t *item = rig_assignment (rig, 1, n);
        tmq_id_t id = rig_id (n + 1);
        assert_memory_equal (item->assignment->task_id.data, id.bytes, 16);
        assert_int_equal (item->body_bytes, 7); /* looked up again */
    }
}

static void what_was_not_durable_never_was (void **state)
{
    rig_t *rig = *state;
    rig_submit (rig, 0, 1, "q", "p");
    rig_settle (rig);
    uint64_t submit = rig_submit (rig, 0, 2, "q", "p");
    uint64_t get = rig_get (rig, 0, 2);
    rig_fail_commit (rig);
    rig_settle (rig);
    assert_null (rig_reply (rig, 0, submit)); /* unknown */
    assert_null (rig_reply (rig, 0, get));
    uint64_t again = rig_submit (rig, 0, 2, "q", "p");
    rig_settle (rig);
    assert_int_equal (rig_code (rig, 0, again), TMQ_NO_LINK);
    rig_link (rig, 0, "default");
    rig_submit (rig, 0, 2, "q", "p");
    rig_settle (rig);
    assert_int_equal (rig_status (rig, 0, 1), TMQ_STATUS_QUEUED);
    assert_int_equal (rig_status (rig, 0, 2), TMQ_STATUS_QUEUED);
}

static void a_long_absence_interrupts_when_asked_to (void **state)
{
    engine_config_t config = ENGINE_CONFIG_INIT;
    config.recover_max_age_ms = 60000;
    rig_t *rig = rig_new_with (&config);
    (void) state;
    rig_link (rig, 0, "default");
    rig_link (rig, 1, "default");
    claimed (rig, true);
    rig->boot.newest_ms = rig->now.wall_ms;
    int64_t newest_ms = rig->now.wall_ms;
    rig->now.wall_ms += 120000;
    rig_restart_at (rig, newest_ms);
    rig_link (rig, 0, "default");
    const Taskmq__Task *task = rig_task (rig, 0, 1);
    assert_int_equal (task->status, TMQ_STATUS_FAILED);
    assert_int_equal (task->error->code, TMQ_TASK_ERROR_INTERRUPTED);
    rig_free (rig);
}

/* A lease that is renewed for so long; then the broker is away for so long. */
static const Taskmq__Task *after_an_absence (rig_t *rig, int64_t renewed_ms, int64_t silent_ms,
                                             int64_t away_ms)
{
    rig_link (rig, 0, "default");
    rig_link (rig, 1, "default");
    Taskmq__TaskSpec spec = TASKMQ__TASK_SPEC__INIT;
    spec.lease_ms = 3600 * 1000;
    rig_submit_spec (rig, 0, 1, &spec, "p");
    rig_register (rig, 1, WORKER, "q", 1);
    rig_settle (rig);
    const Taskmq__Assignment *assignment = rig_assignment (rig, 1, 0)->assignment;
    rig_started (rig, 1, assignment);
    for (int64_t ms = 0; ms < renewed_ms; ms += 10000) {
        live (rig, 10000);
        rig_renew (rig, 1, WORKER, assignment);
    }
    live (rig, silent_ms);
    rig_submit (rig, 0, 2, "other", ""); /* somebody else stores something */
    live (rig, 6000);                    /* and what may wait is stored */
    int64_t newest_ms = rig->now.wall_ms;
    rig->now.wall_ms += away_ms;
    rig_restart_at (rig, newest_ms);
    rig_link (rig, 0, "default");
    return rig_task (rig, 0, 1);
}

static void who_renewed_before_an_absence_is_spared (void **state)
{
    engine_config_t config = ENGINE_CONFIG_INIT;
    config.recover_max_age_ms = 60000;
    rig_t *rig = rig_new_with (&config);
    (void) state;
    assert_int_equal (after_an_absence (rig, 300000, 0, 30000)->status, TMQ_STATUS_WORKING);
    rig_free (rig);
}

static void who_was_silent_before_an_absence_is_interrupted (void **state)
{
    engine_config_t config = ENGINE_CONFIG_INIT;
    config.recover_max_age_ms = 60000;
    rig_t *rig = rig_new_with (&config);
    (void) state;
    const Taskmq__Task *task = after_an_absence (rig, 30000, 100000, 1000);
    assert_int_equal (task->status, TMQ_STATUS_FAILED);
    assert_int_equal (task->error->code, TMQ_TASK_ERROR_INTERRUPTED);
    rig_free (rig);
}

static void a_stopping_broker_changes_nothing_any_more (void **state)
{
    rig_t *rig = *state;
    const Taskmq__Assignment *assignment = claimed (rig, true);
    engine_stop (rig->engine);
    uint64_t submit = rig_submit (rig, 0, 2, "q", "");
    uint64_t complete = rig_complete (rig, 1, assignment, "");
    uint64_t get = rig_get (rig, 0, 1);
    rig_settle (rig);
    assert_int_equal (rig_code (rig, 0, submit), TMQ_STOPPING);
    assert_int_equal (rig_code (rig, 1, complete), TMQ_STOPPING);
    assert_int_equal (rig_code (rig, 0, get), TMQ_OK);
}

#define TEST(name) cmocka_unit_test_setup_teardown (name, rig_setup, rig_teardown)

int main (void)
{
    const struct CMUnitTest tests[] = {
        TEST (a_lease_that_is_not_renewed_is_lost_and_counts),
        TEST (a_lease_is_late_when_it_has_run_out_unjudged),
        TEST (a_renewed_lease_goes_on),
        TEST (a_lost_lease_is_stale_for_its_worker),
        TEST (lost_leases_use_attempts_up),
        TEST (a_lease_lost_before_it_was_started_does_not_count),
        TEST (releases_count_from_the_tenth_in_a_row),
        TEST (a_release_waits_its_delay),
        TEST (a_pause_of_the_broker_is_nobodys_fault),
        TEST (what_was_not_heard_is_no_silence),
        TEST (what_waits_to_be_applied_is_no_silence),
        TEST (credit_is_absolute_and_never_exceeded),
        TEST (workers_of_a_queue_take_turns),
        TEST (a_worker_of_two_queues_takes_by_priority_then_acceptance),
        TEST (what_a_worker_does_not_list_goes_back),
        TEST (what_a_worker_lists_it_keeps_on_another_connection),
        TEST (a_foreign_workers_id_is_denied),
        TEST (another_namespace_sees_nothing),
        TEST (a_goodbye_gives_back_at_once),
        TEST (a_worker_that_leaves_gives_back_at_once),
        TEST (a_lost_connection_gives_back_after_the_grace),
        TEST (a_second_hello_without_a_register_gives_back_after_the_grace),
        TEST (a_second_hello_with_a_register_keeps_the_leases),
        TEST (an_answer_in_vain_does_not_hide_the_lost_connection),
        TEST (any_message_ends_the_suspicion),
        TEST (a_silent_worker_gets_nothing_new_and_keeps_its_lease),
        TEST (an_assignment_that_cannot_be_delivered_is_queued_again),
        TEST (a_worker_whose_lease_ran_out_gets_nothing_before_it_is_heard),
        TEST (a_register_that_comes_late_does_not_move_the_worker_back),
        TEST (a_restart_gives_each_live_lease_a_fresh_term),
        TEST (a_worker_that_does_not_come_back_loses_its_lease),
        TEST (queued_tasks_keep_their_order_over_a_restart),
        TEST (what_was_not_durable_never_was),
        TEST (a_stopping_broker_changes_nothing_any_more),
        cmocka_unit_test (who_renewed_before_an_absence_is_spared),
        cmocka_unit_test (who_was_silent_before_an_absence_is_interrupted),
        cmocka_unit_test (a_long_absence_interrupts_when_asked_to),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}
