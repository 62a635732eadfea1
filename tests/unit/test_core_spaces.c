/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Namespaces: how many there may be, how fast they are made, and how they are forgotten. */
#include <string.h>

#include "core_rig.h"

enum { AT_ONCE = 3, SPACE_MS = 60000 };

static rig_t *new_rig (size_t spaces_max)
{
    engine_config_t config = ENGINE_CONFIG_INIT;
    config.spaces_max = spaces_max;
    config.spaces_at_once = AT_ONCE;
    config.space_ms = SPACE_MS;
    rig_t *rig = rig_new_with (&config);
    rig_use_request_id (1);
    return rig;
}

/* The peer submits the task in the namespace: the code of the answer. */
static unsigned submit_in (rig_t *rig, size_t peer, const char *ns, unsigned n)
{
    rig_link (rig, peer, ns);
    uint64_t request = rig_submit (rig, peer, n, "q", "");
    rig_settle (rig);
    return rig_code (rig, peer, request);
}

static const Taskmq__Reply *last_reply (const rig_t *rig, size_t peer)
{
    return rig->peers[peer].items[rig->peers[peer].count - 1].reply;
}

static void an_identity_makes_only_so_many_namespaces_at_once (void **state)
{
    (void) state;
    rig_t *rig = new_rig (100);
    rig->peers[1].identity = "uid:1";
    assert_int_equal (submit_in (rig, 0, "a", 1), TMQ_OK);
    assert_int_equal (submit_in (rig, 0, "b", 2), TMQ_OK);
    assert_int_equal (submit_in (rig, 0, "c", 3), TMQ_OK);
    assert_int_equal (submit_in (rig, 2, "d", 4), TMQ_LIMIT); /* another link of it */
    const Taskmq__Reply *refused = last_reply (rig, 2);
    assert_in_range (refused->retry_after_ms, 1, SPACE_MS);
    assert_non_null (strstr (refused->text, "3 namespaces"));
    assert_int_equal (submit_in (rig, 0, "a", 5), TMQ_OK); /* it is there already */
    assert_int_equal (submit_in (rig, 1, "d", 6), TMQ_OK); /* somebody else */
    rig_advance (rig, SPACE_MS);
    assert_int_equal (submit_in (rig, 0, "e", 7), TMQ_OK);
    assert_int_equal (submit_in (rig, 0, "f", 8), TMQ_LIMIT);
    rig_free (rig);
}

static void there_are_only_so_many_namespaces (void **state)
{
    (void) state;
    rig_t *rig = new_rig (2);
    assert_int_equal (submit_in (rig, 0, "a", 1), TMQ_OK);
    assert_int_equal (submit_in (rig, 0, "b", 2), TMQ_OK);
    assert_int_equal (submit_in (rig, 0, "c", 3), TMQ_LIMIT);
    assert_true (last_reply (rig, 0)->retry_after_ms > 0);
    assert_non_null (strstr (last_reply (rig, 0)->text, "2 namespaces"));
    rig_free (rig);
}

/* The store has forgotten what it had of the namespace up to the sequence. */
static void forget (rig_t *rig, const char *ns, uint64_t last_seq)
{
    forgotten_space_t space = {.last_seq = last_seq};
    strncpy (space.name, ns, sizeof (space.name) - 1);
    forgotten_t forgotten = {last_seq, &space, 1};
    rig->events_from = last_seq + 1;
    engine_forgotten (rig->engine, &forgotten);
    rig_settle (rig);
}

/* A namespace with one task that is over, and its two events. */
static rig_t *new_rig_with_history (void)
{
    rig_t *rig = new_rig (1);
    assert_int_equal (submit_in (rig, 0, "a", 1), TMQ_OK);
    rig_cancel (rig, 0, 1);
    rig_settle (rig);
    return rig;
}

static void what_is_forgotten_makes_room (void **state)
{
    (void) state;
    rig_t *rig = new_rig_with_history ();
    rig_goodbye (rig, 0);
    assert_int_equal (submit_in (rig, 1, "b", 2), TMQ_LIMIT);
    forget (rig, "a", 2);
    assert_int_equal (submit_in (rig, 1, "b", 2), TMQ_OK);
    rig_free (rig);
}

static void what_went_on_meanwhile_is_not_forgotten (void **state)
{
    (void) state;
    rig_t *rig = new_rig_with_history ();
    rig_submit (rig, 0, 2, "q", "");
    forget (rig, "a", 2);
    assert_int_equal (submit_in (rig, 1, "b", 3), TMQ_LIMIT);
    rig_subscribe (rig, 0, 7, 2);
    rig_settle (rig);
    assert_int_equal (rig_status (rig, 0, 2), TMQ_STATUS_QUEUED);
    rig_free (rig);
}

/* The first event that the peer was sent, or the gap's end. */
static uint64_t first_event (const rig_t *rig, size_t peer)
{
    for (size_t i = 0; i < rig->peers[peer].count; i++)
        if (rig->peers[peer].items[i].list != NULL)
            return rig->peers[peer].items[i].list->events[0]->seq;
    return 0;
}

static const Taskmq__Gap *gap_of (const rig_t *rig, size_t peer)
{
    for (size_t i = 0; i < rig->peers[peer].count; i++)
        if (rig->peers[peer].items[i].gap != NULL)
            return rig->peers[peer].items[i].gap;
    return NULL;
}

static void no_sequence_is_given_twice (void **state)
{
    (void) state;
    rig_t *rig = new_rig_with_history ();
    rig_goodbye (rig, 0);
    forget (rig, "a", 2);
    rig_link (rig, 1, "a");
    rig_settle (rig);
    rig_link (rig, 1, "a");
    uint64_t request = rig_subscribe (rig, 1, 7, 1); /* of its former life */
    rig_settle (rig);
    assert_int_equal (rig_code (rig, 1, request), TMQ_OK);
    assert_non_null (gap_of (rig, 1));
    assert_int_equal (gap_of (rig, 1)->to, 2);
    rig_submit (rig, 1, 2, "q", "");
    rig_settle (rig);
    assert_int_equal (first_event (rig, 1), 3);
    rig_free (rig);
}

static void a_new_namespace_begins_behind_those_that_went (void **state)
{
    (void) state;
    rig_t *rig = new_rig_with_history ();
    rig_goodbye (rig, 0);
    forget (rig, "a", 2);
    assert_int_equal (submit_in (rig, 1, "b", 2), TMQ_OK);
    rig_subscribe (rig, 1, 7, 0); /* all that there is: that is no gap */
    rig_settle (rig);
    assert_int_equal (first_event (rig, 1), 3);
    assert_null (gap_of (rig, 1));
    rig_free (rig);
}

static void an_id_of_a_namespace_that_came_back_is_looked_up (void **state)
{
    (void) state;
    rig_t *rig = new_rig_with_history ();
    rig_goodbye (rig, 0);
    forget (rig, "a", 2);
    rig_link (rig, 1, "a");
    size_t loads = rig->loads;
    rig_submit (rig, 1, 1, "q", "");
    assert_int_equal (rig->loads, loads + 1); /* it was there: it may be in the tables */
    rig_free (rig);
}

int main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (an_identity_makes_only_so_many_namespaces_at_once),
        cmocka_unit_test (there_are_only_so_many_namespaces),
        cmocka_unit_test (what_is_forgotten_makes_room),
        cmocka_unit_test (what_went_on_meanwhile_is_not_forgotten),
        cmocka_unit_test (no_sequence_is_given_twice),
        cmocka_unit_test (a_new_namespace_begins_behind_those_that_went),
        cmocka_unit_test (an_id_of_a_namespace_that_came_back_is_looked_up),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}
