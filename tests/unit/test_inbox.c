/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* The lines of the broker's inbox: order, turns, bounds, and the newcomer's room. */
#include "inbox.h"

#include <stdlib.h>
#include <string.h>

#include "support/cmocka_all.h"

enum { LINE_MESSAGES = 64, LINE_BYTES = 2 << 20, MESSAGES = 4096, BYTES = 64 << 20, GREEDY = 2000 };

static inbox_t inbox;
static size_t dropped;

static void drop (void *message)
{
    dropped++;
    free (message);
}

static int set_up (void **state)
{
    (void) state;
    inbox_limits_t limits = {LINE_MESSAGES, LINE_BYTES, MESSAGES, BYTES};
    inbox_init (&inbox, &limits, drop);
    dropped = 0;
    return 0;
}

static int tear_down (void **state)
{
    (void) state;
    inbox_clear (&inbox);
    assert_int_equal (inbox.messages, 0);
    assert_int_equal (inbox.bytes, 0);
    assert_int_equal (inbox.lines, 0);
    return 0;
}

static entry_t *put (line_t *line, const char *name, size_t bytes)
{
    return inbox_put (&inbox, line, strdup (name), bytes);
}

/* Takes the head of the line whose turn it is, and gives the turn on. */
static void next_is (const char *name)
{
    line_t *line = inbox_first (&inbox);
    assert_non_null (line);
    inbox_rotate (&inbox, line);
    assert_string_equal (inbox_head (line)->message, name);
    inbox_pop (&inbox, line);
}

static void lines_take_turns_and_keep_their_order (void **state)
{
    (void) state;
    line_t *a = inbox_open (1, "uid:1");
    line_t *b = inbox_open (2, "uid:2");
    put (a, "a1", 10);
    put (a, "a2", 10);
    put (a, "a3", 10);
    put (b, "b1", 10);
    put (b, "b2", 10);
    next_is ("a1");
    next_is ("b1");
    next_is ("a2");
    next_is ("b2");
    next_is ("a3");
    assert_null (inbox_first (&inbox));
}

static void a_message_that_is_not_finished_keeps_its_place (void **state)
{
    (void) state;
    line_t *a = inbox_open (1, "uid:1");
    line_t *b = inbox_open (2, "uid:2");
    put (a, "long", 10)->done = 7;
    put (a, "behind", 10);
    put (b, "b1", 10);
    inbox_rotate (&inbox, inbox_first (&inbox)); /* its turn ended in the middle */
    next_is ("b1");
    assert_ptr_equal (inbox_first (&inbox), a);
    assert_int_equal (inbox_head (a)->done, 7);
    next_is ("long");
    next_is ("behind");
}

static void an_empty_line_leaves_the_turn (void **state)
{
    (void) state;
    line_t *a = inbox_open (1, "uid:1");
    put (a, "a1", 10);
    assert_ptr_equal (inbox_find (&inbox, 1), a);
    assert_string_equal (a->identity, "uid:1");
    entry_t *entry = inbox_head (a);
    inbox_pop (&inbox, a);
    assert_int_equal (inbox.lines, 0);
    assert_ptr_equal (inbox_spent (&inbox), a);
    assert_null (inbox_find (&inbox, 1));
    assert_string_equal (entry->message, "a1"); /* until it is forgotten */
    inbox_close (a);
    assert_null (inbox_spent (&inbox));
    assert_int_equal (dropped, 0);
    inbox_forget (&inbox);
    assert_int_equal (dropped, 1);
}

static void a_line_is_bounded_in_messages (void **state)
{
    (void) state;
    line_t *a = inbox_open (1, "uid:1");
    for (int i = 0; i < LINE_MESSAGES; i++) {
        assert_true (inbox_has_room (&inbox, a, 10));
        put (a, "a", 10);
    }
    assert_false (inbox_has_room (&inbox, a, 10));
    inbox_pop (&inbox, a);
    assert_true (inbox_has_room (&inbox, a, 10));
}

static void a_line_is_bounded_in_bytes (void **state)
{
    (void) state;
    line_t *a = inbox_open (1, "uid:1");
    assert_true (inbox_has_room (&inbox, a, LINE_BYTES));
    put (a, "a", LINE_BYTES - 10);
    assert_true (inbox_has_room (&inbox, a, 10));
    assert_false (inbox_has_room (&inbox, a, 11));
}

static void a_line_is_greedy_when_it_is_long_and_was_served (void **state)
{
    (void) state;
    line_t *a = inbox_open (1, "uid:1");
    inbox_round (&inbox);
    for (int i = 0; i < LINE_MESSAGES / 2; i++) {
        assert_false (inbox_is_greedy (&inbox, a));
        put (a, "a", 10);
    }
    assert_true (inbox_is_greedy (&inbox, a));
    inbox_round (&inbox);
    assert_false (inbox_is_greedy (&inbox, a));
    put (a, "a", 10);
    assert_true (inbox_is_greedy (&inbox, a));
}

/* Each takes what it gets, and still there is room for one who comes later. */
static void fill (size_t greedy, size_t bytes)
{
    line_t *lines[GREEDY];
    for (size_t i = 0; i < greedy; i++) {
        lines[i] = inbox_open (i + 1, "uid:1");
        put (lines[i], "first", bytes);
    }
    bool grew = true;
    while (grew) {
        grew = false;
        for (size_t i = 0; i < greedy; i++)
            if (inbox_has_room (&inbox, lines[i], bytes)) {
                put (lines[i], "more", bytes);
                grew = true;
            }
    }
}

static void a_newcomer_finds_room (size_t greedy, size_t bytes)
{
    fill (greedy, bytes);
    assert_false (inbox_is_full (&inbox));
    line_t *newcomer = inbox_open (GREEDY + 1, "uid:2");
    assert_true (inbox_has_room (&inbox, newcomer, bytes));
    put (newcomer, "newcomer", bytes);
    assert_false (inbox_is_full (&inbox));
}

static void few_greedy_peers_leave_room (void **state)
{
    (void) state;
    a_newcomer_finds_room (33, 10);
    assert_int_equal (inbox.messages, 33 * LINE_MESSAGES + 1);
}

static void many_greedy_peers_leave_room (void **state)
{
    (void) state;
    a_newcomer_finds_room (GREEDY, 10);
}

static void greedy_peers_leave_room_in_bytes (void **state)
{
    (void) state;
    a_newcomer_finds_room (200, 300 * 1024);
}

static void it_is_full_when_newcomers_took_all_of_it (void **state)
{
    (void) state;
    for (peer_t peer = 1; peer <= MESSAGES; peer++) {
        assert_false (inbox_is_full (&inbox));
        put (inbox_open (peer, "uid:1"), "first", 10);
    }
    assert_true (inbox_is_full (&inbox));
}

#define TEST(name) cmocka_unit_test_setup_teardown (name, set_up, tear_down)

int main (void)
{
    const struct CMUnitTest tests[] = {
        TEST (lines_take_turns_and_keep_their_order),
        TEST (a_message_that_is_not_finished_keeps_its_place),
        TEST (an_empty_line_leaves_the_turn),
        TEST (a_line_is_bounded_in_messages),
        TEST (a_line_is_bounded_in_bytes),
        TEST (a_line_is_greedy_when_it_is_long_and_was_served),
        TEST (few_greedy_peers_leave_room),
        TEST (many_greedy_peers_leave_room),
        TEST (greedy_peers_leave_room_in_bytes),
        TEST (it_is_full_when_newcomers_took_all_of_it),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}
