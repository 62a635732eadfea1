/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* What a policy is for those who are here: invitations, foreign ids and namespaces, leases, and
 * what a change of it does to links. Who may do which request: test_core_rights.c. */
#include <stdio.h>
#include <string.h>

#include "ids.h"
#include "rights_stage.h"

/* An invitation is good for a key, and for nothing else. */
static void an_invitation_does_nothing_else (void **state)
{
    (void) state;
    char text[256];
    char key[KEY_TEXT_SIZE];
    key_public_t public_key = {{1}};
    rig_t *rig = stage_new (&ROLE_CASES[0]);
    take_role (rig, &ROLE_CASES[0]);
    key_text_public (key, &public_key);
    snprintf (text, sizeof (text), "invite-1 invite:%s admin(*) as=new\n", key);
    rig_access (rig, text);
    rig->peers[5].identity = "invite:invite-1";
    rig_link (rig, 5, "default");
    for (unsigned n = OWN; n <= DOOMED + SPACE; n++) {
        uint64_t requests[] = {rig_get (rig, 5, n), rig_payload (rig, 5, n), rig_cancel (rig, 5, n),
                               rig_wait (rig, 5, n, 1, 0), rig_history (rig, 5, n)};
        rig_settle (rig);
        for (size_t i = 0; i < sizeof (requests) / sizeof (requests[0]); i++)
            assert_int_equal (rig_code (rig, 5, requests[i]), TMQ_DENIED);
    }
    uint64_t requests[] = {rig_submit (rig, 5, 90, "q", ""), rig_register (rig, 5, 90, "q", 1),
                           rig_count (rig, 5), rig_subscribe (rig, 5, 1, 0)};
    uint64_t stats = rig_stats (rig, 5);
    rig_settle (rig);
    for (size_t i = 0; i < sizeof (requests) / sizeof (requests[0]); i++)
        assert_int_equal (rig_code (rig, 5, requests[i]), TMQ_DENIED);
    assert_int_equal (rig_reply (rig, 5, stats)->reply->stats->n_queues, 0);
    assert_int_equal (rig_reply (rig, 5, stats)->reply->stats->n_counters, 0);
    rig_free (rig);
}

/* Somebody else's id is in use, and no more is said: also of one that was removed. */
static void an_id_of_somebody_else_is_in_use (void **state)
{
    (void) state;
    rig_t *rig = stage_new (&ROLE_CASES[0]);
    sweep (rig);
    rig_settle (rig);
    take_role (rig, &ROLE_CASES[0]);
    static const unsigned TASKS[] = {FOREIGN, QUEUE, DONE + FOREIGN, GONE + FOREIGN};
    for (size_t i = 0; i < sizeof (TASKS) / sizeof (TASKS[0]); i++) {
        uint64_t request = rig_submit (rig, ME, TASKS[i], "q", "mine");
        rig_settle (rig);
        const Taskmq__SubmittedItem *item =
            rig_reply (rig, ME, request)->reply->submitted->items[0];
        assert_int_equal (item->code, TMQ_CONFLICT);
        assert_string_equal (item->text, "the id or key is in use");
        assert_int_equal (item->status, 0);
    }
    rig_free (rig);
}

static unsigned hello_code (rig_t *rig, size_t peer, const char *space, const char **text)
{
    Taskmq__Hello hello = TASKMQ__HELLO__INIT;
    Taskmq__Request request = TASKMQ__REQUEST__INIT;
    hello.version_min = hello.version_max = TMQ_PROTOCOL_VERSION;
    hello.namespace_ = (char *) space;
    request.op_case = TASKMQ__REQUEST__OP_HELLO;
    request.hello = &hello;
    uint64_t id = rig_send (rig, peer, &request, NULL, 0);
    rig_outputs (rig);
    *text = rig_reply (rig, peer, id)->reply->text;
    return rig_code (rig, peer, id);
}

/* A namespace without a grant is closed, whether it exists or not, and is not made by asking. */
static void a_namespace_without_a_grant_is_closed (void **state)
{
    (void) state;
    const char *text = NULL;
    rig_t *rig = stage_new (&ROLE_CASES[4]);
    take_role (rig, &ROLE_CASES[4]);
    rig->peers[5].identity = "uid:4711"; /* not listed */
    assert_int_equal (hello_code (rig, 5, "default", &text), TMQ_DENIED);
    rig->peers[5].identity = "admin";
    assert_int_equal (hello_code (rig, 5, "other", &text), TMQ_DENIED);
    assert_string_equal (text, "no access to namespace other");
    assert_int_equal (hello_code (rig, 5, "nowhere", &text), TMQ_DENIED);
    assert_string_equal (text, "no access to namespace nowhere");
    uint64_t get = rig_get (rig, 5, OWN);
    rig_settle (rig);
    assert_int_equal (rig_code (rig, 5, get), TMQ_NO_LINK);
    rig_free (rig);
}

/* Changes of the policy. */

/* What waits for a commit to leave is dropped, and so is a durable subscription. */
static void a_revoked_link_gets_nothing_more (void **state)
{
    (void) state;
    rig_t *rig = stage_new (&ROLE_CASES[1]);
    take_role (rig, &ROLE_CASES[1]);
    rig_subscribe (rig, ME, 7, 0);
    rig_wait (rig, ME, FOREIGN, 1, 0);
    rig_settle (rig);
    rig_forget (rig, ME);
    rig_cancel (rig, ELSE, FOREIGN);
    uint64_t get = rig_get (rig, ME, DONE + FOREIGN);
    rig_take (rig);
    rig_access (rig, "somebody uid:2 operator\n");
    rig_durable (rig);
    rig_settle (rig);
    assert_null (rig_reply (rig, ME, get));
    assert_int_equal (rig->peers[ME].count, 0);
    const char *text = NULL;
    assert_int_equal (hello_code (rig, ME, "default", &text), TMQ_DENIED);
    rig_free (rig);
}

/* The leases of a worker that is gone return at once, not counted as attempts that failed. */
static void leases_of_a_revoked_worker_return (void **state)
{
    (void) state;
    for (int restarted = 0; restarted < 2; restarted++) {
        rig_t *rig = stage_new (&ROLE_CASES[2]);
        if (restarted == 1) { /* the worker has not come back yet */
            rig_restart (rig);
            rig_link (rig, ELSE, "default");
        } else {
            take_role (rig, &ROLE_CASES[2]);
        }
        rig_access (rig, "somebody uid:2 operator\n");
        rig_settle (rig);
        assert_int_equal (rig_status (rig, ELSE, HELD), TMQ_STATUS_QUEUED);
        assert_int_equal (rig_task (rig, ELSE, HELD)->failures, 0);
        assert_int_equal (rig_status (rig, ELSE, STOLEN), TMQ_STATUS_INPUT_REQUIRED);
        rig_free (rig);
    }
}

/* A lease needs its secret and its holder, also after a restart. */
static void a_lease_belongs_to_its_holder (void **state)
{
    (void) state;
    rig_t *rig = stage_new (&ROLE_CASES[2]);
    rig_restart (rig);
    rig_link (rig, ELSE, "default");
    uint64_t stolen = rig_register_with (rig, ELSE, MY_WORKER, "q", 1, lease_of (rig, HELD));
    rig_settle (rig);
    assert_int_equal (rig_code (rig, ELSE, stolen), TMQ_DENIED);
    set_policy (rig, "worker", "worker(default/q)");
    rig_link (rig, ME, "default");
    uint64_t mine = rig_register_with (rig, ME, MY_WORKER, "q", 1, lease_of (rig, HELD));
    uint64_t complete = rig_complete (rig, ME, lease_of (rig, HELD), "r");
    rig_settle (rig);
    assert_int_equal (rig_code (rig, ME, mine), TMQ_OK);
    assert_int_equal (rig_code (rig, ME, complete), TMQ_OK);
    uint64_t again = rig_complete (rig, ME, lease_of (rig, HELD), "r");
    uint64_t theirs = rig_complete (rig, ELSE, lease_of (rig, HELD), "r");
    rig_settle (rig);
    assert_int_equal (rig_code (rig, ME, again), TMQ_OK);
    assert_int_equal (rig_code (rig, ELSE, theirs), TMQ_STALE_LEASE);
    rig_free (rig);
}

/* A worker whose grants were narrowed to other queues loses what it holds: others get it. */
static void a_lease_needs_the_right_in_its_queue (void **state)
{
    (void) state;
    rig_t *rig = stage_new (&ROLE_CASES[2]);
    set_policy (rig, "worker", "worker(default/other)");
    rig_link (rig, ME, "default");
    uint64_t back = rig_register_with (rig, ME, MY_WORKER, "other", 1, lease_of (rig, HELD));
    uint64_t complete = rig_complete (rig, ME, lease_of (rig, HELD), "r");
    rig_settle (rig);
    assert_int_equal (rig_code (rig, ME, back), TMQ_OK);
    assert_int_equal (rig_code (rig, ME, complete), TMQ_STALE_LEASE);
    assert_int_equal (rig_status (rig, ELSE, HELD), TMQ_STATUS_QUEUED);
    rig_free (rig);
}

/* A principal's time ends: its links with it, within the tick. */
static void a_principal_has_an_end (void **state)
{
    (void) state;
    rig_t *rig = rig_new ();
    rig->peers[ME].identity = "guest";
    rig_access (rig, "guest uid:1 reader(*) until=2023-11-14T22:14Z\n"); /* 40 s after the start */
    rig_link (rig, ME, "default");
    uint64_t early = rig_stats (rig, ME);
    rig_settle (rig);
    assert_int_equal (rig_code (rig, ME, early), TMQ_OK);
    rig_advance (rig, 39000);
    uint64_t still = rig_stats (rig, ME);
    rig_settle (rig);
    assert_int_equal (rig_code (rig, ME, still), TMQ_OK);
    rig_advance (rig, 1000);
    uint64_t late = rig_stats (rig, ME);
    rig_settle (rig);
    assert_int_equal (rig_code (rig, ME, late), TMQ_NO_LINK);
    const char *text = NULL;
    assert_int_equal (hello_code (rig, ME, "default", &text), TMQ_DENIED);
    rig_free (rig);
}

/* The clock was a day ahead, and an end seemed to be over. It comes when it comes. */
static void an_end_comes_again_when_the_clock_goes_back (void **state)
{
    (void) state;
    const int64_t day_ms = 24 * 3600 * 1000;
    rig_t *rig = rig_new ();
    const char *text = NULL;
    rig->peers[ME].identity = "guest";
    rig->now.wall_ms += day_ms;
    rig_advance (rig, 1);
    rig_access (rig, "guest uid:1 reader(*) until=2023-11-14T22:14Z\n"); /* 40 s after the start */
    assert_int_equal (hello_code (rig, ME, "default", &text), TMQ_DENIED);
    rig->now.wall_ms -= day_ms;
    rig_advance (rig, 1);
    rig_link (rig, ME, "default");
    uint64_t early = rig_stats (rig, ME);
    rig_settle (rig);
    assert_int_equal (rig_code (rig, ME, early), TMQ_OK);
    rig_advance (rig, 41000);
    uint64_t late = rig_stats (rig, ME);
    rig_settle (rig);
    assert_int_equal (rig_code (rig, ME, late), TMQ_NO_LINK);
    rig_free (rig);
}

int main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (an_invitation_does_nothing_else),
        cmocka_unit_test (an_id_of_somebody_else_is_in_use),
        cmocka_unit_test (a_namespace_without_a_grant_is_closed),
        cmocka_unit_test (a_revoked_link_gets_nothing_more),
        cmocka_unit_test (leases_of_a_revoked_worker_return),
        cmocka_unit_test (a_lease_belongs_to_its_holder),
        cmocka_unit_test (a_lease_needs_the_right_in_its_queue),
        cmocka_unit_test (a_principal_has_an_end),
        cmocka_unit_test (an_end_comes_again_when_the_clock_goes_back),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}
