/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Numbers of peers: one for each connection, never used twice, forgotten in time. */
#include "support/cmocka_all.h"

#include <stdio.h>
#include <string.h>

#include "net/peers.h"

static const uint8_t key[PEERS_KEY_BYTES] = {1, 2, 3};

static peer_t seen (peers_t *peers, const char *routing_id, int fd, const char *user, int64_t now,
                    const char **identity)
{
    origin_t origin = {routing_id, strlen (routing_id), fd, user};
    seen_t found = peers_seen (peers, &origin, now);
    *identity = found.identity;
    return found.refused ? 0 : found.peer;
}

static void test_a_connection_keeps_its_number (void **state)
{
    (void) state;
    peers_t *peers = peers_new (10, key);
    const char *identity = NULL;
    peer_t first = seen (peers, "one", 7, "uid:1000", 0, &identity);
    assert_true (first != 0);
    assert_string_equal (identity, "uid:1000");
    assert_int_equal (seen (peers, "one", 7, "uid:1000", 5, &identity), first);
    peer_t second = seen (peers, "two", 8, "local", 5, &identity);
    assert_true (second != first);
    assert_string_equal (identity, "local");
    size_t length = 0;
    assert_memory_equal (peers_route (peers, second, &length), "two", 3);
    assert_int_equal (length, 3);
    assert_null (peers_route (peers, second + (1u << 16), &length));
    assert_null (peers_route (peers, 0, &length));
    peers_free (&peers);
    assert_null (peers);
}

static void test_a_taken_over_routing_id_is_another_peer (void **state)
{
    (void) state;
    peers_t *peers = peers_new (10, key);
    const char *identity = NULL;
    size_t length = 0;
    peer_t old = seen (peers, "same", 7, "uid:0", 0, &identity);
    const char *old_identity = identity;
    peer_t other_fd = seen (peers, "same", 8, "uid:0", 1, &identity);
    assert_true (other_fd != old);
    assert_int_equal (peers_gone_next (peers, INT64_MAX), old);
    assert_int_equal (peers_gone_next (peers, INT64_MAX), 0);
    assert_null (peers_route (peers, old, &length));
    /* Somebody else under the same id and the same descriptor does not become root. */
    peer_t other_user = seen (peers, "same", 8, "uid:1000", 2, &identity);
    assert_true (other_user != other_fd);
    assert_string_equal (identity, "uid:1000");
    assert_string_equal (old_identity, "uid:0"); /* still readable: a message may hold it */
    peers_forget (peers, 3);
    assert_int_equal (peers_count (peers), 1);
    assert_non_null (peers_route (peers, other_user, &length));
    peers_free (&peers);
}

static void test_the_end_of_a_connection_is_told_once (void **state)
{
    (void) state;
    peers_t *peers = peers_new (10, key);
    const char *identity = NULL;
    peer_t peer = seen (peers, "one", 7, "local", 0, &identity);
    peers_ended (peers, 6, 1);
    peers_ended (peers, 12345, 1);
    peers_ended (peers, -1, 1);
    assert_int_equal (peers_gone_next (peers, INT64_MAX), 0);
    peers_ended (peers, 7, 1);
    peers_ended (peers, 7, 1);
    assert_int_equal (peers_gone_next (peers, INT64_MAX), peer);
    assert_int_equal (peers_gone_next (peers, INT64_MAX), 0);
    /* A reused descriptor is the newcomer's. */
    peer_t next = seen (peers, "two", 7, "local", 2, &identity);
    peers_ended (peers, 7, 3);
    assert_int_equal (peers_gone_next (peers, INT64_MAX), next);
    assert_int_equal (peers_gone_next (peers, INT64_MAX), 0);
    peers_free (&peers);
}

static void test_a_late_report_is_its_own_connections (void **state)
{
    (void) state;
    peers_t *peers = peers_new (10, key);
    const char *identity = NULL;
    peer_t old = seen (peers, "old", 7, "local", 0, &identity);
    peer_t next = seen (peers, "next", 7, "local", 1, &identity);
    assert_int_equal (peers_gone_next (peers, INT64_MAX), old);
    peer_t last = seen (peers, "last", 7, "local", 2, &identity);
    assert_int_equal (peers_gone_next (peers, INT64_MAX), next);
    peers_ended (peers, 7, 3); /* of old */
    peers_ended (peers, 7, 3); /* of next */
    assert_int_equal (peers_gone_next (peers, INT64_MAX), 0);
    peers_ended (peers, 7, 4);
    assert_int_equal (peers_gone_next (peers, INT64_MAX), last);
    peers_free (&peers);
}

static void test_the_ended_and_the_silent_are_forgotten (void **state)
{
    (void) state;
    peers_t *peers = peers_new (10, key);
    const char *identity = NULL;
    size_t length = 0;
    peer_t ended = seen (peers, "ended", 7, "local", 0, &identity);
    peer_t silent = seen (peers, "silent", 8, "local", 0, &identity);
    peers_ended (peers, 7, 0);
    peers_forget (peers, PEERS_ENDED_MS);
    assert_non_null (peers_route (peers, ended, &length));
    peers_forget (peers, PEERS_ENDED_MS + 1);
    assert_null (peers_route (peers, ended, &length));
    assert_non_null (peers_route (peers, silent, &length));
    peers_forget (peers, PEERS_SILENT_MS + 1);
    assert_int_equal (peers_count (peers), 0);
    /* The place is used again, the number is not. */
    peer_t again = seen (peers, "silent", 8, "local", 0, &identity);
    assert_true (again != silent && again != ended);
    peers_free (&peers);
}

static void test_a_full_table_refuses_newcomers_only (void **state)
{
    (void) state;
    enum { LIMIT = 1000 };
    peers_t *peers = peers_new (LIMIT, key);
    const char *identity = NULL;
    peer_t numbers[LIMIT];
    char name[16];
    for (int i = 0; i < LIMIT; i++) {
        snprintf (name, sizeof (name), "peer-%d", i);
        numbers[i] = seen (peers, name, i, "local", i, &identity);
        assert_true (numbers[i] != 0);
    }
    assert_int_equal (seen (peers, "late", LIMIT, "local", LIMIT, &identity), 0);
    /* Every second one leaves; all others are still found, through all the holes. */
    for (int i = 0; i < LIMIT; i += 2)
        peers_ended (peers, i, 0);
    peers_forget (peers, PEERS_ENDED_MS + 1);
    assert_int_equal (peers_count (peers), LIMIT / 2);
    for (int i = 1; i < LIMIT; i += 2) {
        snprintf (name, sizeof (name), "peer-%d", i);
        assert_int_equal (seen (peers, name, i, "local", 0, &identity), numbers[i]);
    }
    assert_true (seen (peers, "late", LIMIT, "local", 0, &identity) != 0);
    peers_free (&peers);
}

static void test_an_ended_one_makes_room_at_once (void **state)
{
    (void) state;
    peers_t *peers = peers_new (2, key);
    const char *identity = NULL;
    size_t length = 0;
    peer_t first = seen (peers, "first", 7, "local", 0, &identity);
    peer_t second = seen (peers, "second", 8, "local", 0, &identity);
    peers_ended (peers, 8, 1);
    peers_ended (peers, 7, 2);
    assert_int_not_equal (seen (peers, "third", 9, "local", 3, &identity), 0);
    assert_null (peers_route (peers, second, &length)); /* it ended first */
    assert_non_null (peers_route (peers, first, &length));
    assert_int_not_equal (seen (peers, "fourth", 10, "local", 3, &identity), 0);
    assert_int_equal (peers_count (peers), 2);
    peers_free (&peers);
}

static void test_a_silent_one_makes_room_for_a_newcomer (void **state)
{
    (void) state;
    peers_t *peers = peers_new (2, key);
    const char *identity = NULL;
    peer_t silent = seen (peers, "silent", 7, "local", 0, &identity);
    const char *held = identity;
    peer_t lively = seen (peers, "lively", 8, "local", 0, &identity);
    assert_int_equal (seen (peers, "new", 9, "local", PEERS_CROWDED_MS, &identity), 0);
    assert_int_equal (seen (peers, "lively", 8, "local", PEERS_CROWDED_MS, &identity), lively);
    assert_int_not_equal (seen (peers, "new", 9, "local", 2 * PEERS_CROWDED_MS, &identity), 0);
    assert_int_equal (peers_gone_next (peers, INT64_MAX), silent);
    assert_string_equal (held, "local"); /* a message may still hold it */
    assert_int_equal (seen (peers, "lively", 8, "local", 2 * PEERS_CROWDED_MS, &identity), lively);
    peers_release (peers);
    peers_free (&peers);
}

/* However many come, only so many of the refused are remembered, and each can be answered. */
static void test_the_refused_are_few_and_can_be_answered (void **state)
{
    (void) state;
    peers_t *peers = peers_new (1, key);
    const char *identity = NULL;
    size_t length = 0;
    char name[16];
    seen (peers, "inside", 1, "local", 0, &identity);
    seen_t oldest = {0};
    for (int i = 0; i <= PEERS_REFUSED_MAX; i++) {
        snprintf (name, sizeof (name), "peer-%d", i);
        origin_t origin = {name, strlen (name), 10 + i, "local"};
        seen_t found = peers_seen (peers, &origin, 0);
        assert_true (found.refused);
        assert_memory_equal (peers_route (peers, found.peer, &length), name, length);
        oldest = i == 0 ? found : oldest;
    }
    assert_null (peers_route (peers, oldest.peer, &length));
    assert_int_equal (peers_count (peers), 1);
    /* There is room for one that comes again. */
    peers_ended (peers, 1, 1);
    assert_int_not_equal (seen (peers, name, 10 + PEERS_REFUSED_MAX, "local", 2, &identity), 0);
    assert_int_equal (peers_count (peers), 1);
    peers_free (&peers);
}

static void test_an_end_waits_for_last_words (void **state)
{
    (void) state;
    peers_t *peers = peers_new (10, key);
    const char *identity = NULL;
    peer_t first = seen (peers, "first", 7, "local", 0, &identity);
    peer_t second = seen (peers, "second", 8, "local", 0, &identity);
    peers_ended (peers, 7, 5);
    peers_ended (peers, 8, 6);
    assert_int_equal (peers_gone_next (peers, 4), 0);
    assert_int_equal (peers_gone_next (peers, 5), first);
    assert_int_equal (peers_gone_next (peers, 5), 0);
    assert_int_equal (peers_gone_next (peers, 6), second);
    peers_free (&peers);
}

int main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (test_a_connection_keeps_its_number),
        cmocka_unit_test (test_a_taken_over_routing_id_is_another_peer),
        cmocka_unit_test (test_the_end_of_a_connection_is_told_once),
        cmocka_unit_test (test_a_late_report_is_its_own_connections),
        cmocka_unit_test (test_the_ended_and_the_silent_are_forgotten),
        cmocka_unit_test (test_a_full_table_refuses_newcomers_only),
        cmocka_unit_test (test_an_ended_one_makes_room_at_once),
        cmocka_unit_test (test_a_silent_one_makes_room_for_a_newcomer),
        cmocka_unit_test (test_the_refused_are_few_and_can_be_answered),
        cmocka_unit_test (test_an_end_waits_for_last_words),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}
