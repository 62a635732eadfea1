/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Who has to go when too many stand at the door, and who was let in to listen. */
#include "support/cmocka_all.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "net/door.h"
#include "net/guests.h"

enum { MUTE_MAX = 4, CROWD = 6, OTHERS = 2, ALL = CROWD + OTHERS };

static int listener;
static struct sockaddr_in address;
static int near[ALL]; /* the door's side */
static int far[ALL];

static int set_up (void **state)
{
    (void) state;
    socklen_t size = sizeof address;
    address = (struct sockaddr_in){.sin_family = AF_INET};
    address.sin_addr.s_addr = htonl (INADDR_LOOPBACK);
    listener = socket (AF_INET, SOCK_STREAM, 0);
    return bind (listener, (struct sockaddr *) &address, size) == 0 &&
                   listen (listener, ALL) == 0 &&
                   getsockname (listener, (struct sockaddr *) &address, &size) == 0
               ? 0
               : -1;
}

static int tear_down (void **state)
{
    (void) state;
    return close (listener);
}

/* A connection from 127.0.0.<host>. */
static void come (int at, unsigned host)
{
    struct sockaddr_in from = {.sin_family = AF_INET};
    from.sin_addr.s_addr = htonl (0x7f000000u | host);
    far[at] = socket (AF_INET, SOCK_STREAM, 0);
    assert_int_equal (bind (far[at], (struct sockaddr *) &from, sizeof from), 0);
    assert_int_equal (connect (far[at], (struct sockaddr *) &address, sizeof address), 0);
    near[at] = accept (listener, NULL, NULL);
    assert_true (near[at] >= 0);
}

static bool is_cut (int at)
{
    char byte;
    return recv (near[at], &byte, 1, MSG_DONTWAIT) == 0;
}

static void leave (void)
{
    for (int i = 0; i < ALL; i++) {
        close (near[i]);
        close (far[i]);
    }
}

/* Opened one millisecond after the other, the crowd first. */
static door_t *open_all (size_t mute_max)
{
    door_options_t options = {.mute_ms = 10000, .mute_max = mute_max};
    door_t *door = door_new (&options);
    for (int i = 0; i < ALL; i++) {
        come (i, i < CROWD ? 2 : 3);
        door_opened (door, near[i], i);
    }
    return door;
}

static void test_the_oldest_of_the_most_crowded_address_go (void **state)
{
    (void) state;
    door_stats_t stats;
    door_t *door = open_all (MUTE_MAX);
    assert_int_equal (door_cut_crowd (door, ALL), 0); /* within the grace */
    assert_int_equal (door_cut_crowd (door, ALL + DOOR_MUTE_GRACE_MS), ALL - MUTE_MAX);
    for (int i = 0; i < ALL; i++)
        assert_int_equal (is_cut (i), i < ALL - MUTE_MAX);
    door_stats (door, &stats);
    assert_int_equal (stats.crowd, ALL - MUTE_MAX);
    door_free (&door);
    leave ();
}

static void test_who_has_spoken_is_no_crowd (void **state)
{
    (void) state;
    door_t *door = open_all (MUTE_MAX);
    for (int i = 0; i < ALL - MUTE_MAX; i++)
        door_heard (door, near[i]);
    assert_int_equal (door_cut_crowd (door, ALL + DOOR_MUTE_GRACE_MS), 0);
    door_closed (door, near[ALL - 1]);
    door_opened (door, near[ALL - 1], ALL); /* the same descriptor, another connection */
    assert_int_equal (door_cut_crowd (door, ALL + DOOR_MUTE_GRACE_MS), 0);
    for (int i = 0; i < ALL; i++)
        assert_false (is_cut (i));
    door_free (&door);
    leave ();
}

static void test_far_too_many_have_no_grace (void **state)
{
    (void) state;
    door_t *door = open_all (1);
    assert_int_equal (door_cut_crowd (door, ALL), ALL - 1);
    for (int i = 0; i < ALL; i++)
        assert_int_equal (is_cut (i), i != ALL - 1);
    door_free (&door);
    leave ();
    door = open_all (0); /* any number */
    assert_int_equal (door_cut_crowd (door, ALL + DOOR_MUTE_GRACE_MS), 0);
    door_free (&door);
    leave ();
}

/* A descriptor that is another connection's by now is left alone. */
static void test_a_reused_descriptor_is_not_cut (void **state)
{
    (void) state;
    door_t *door = open_all (1);
    int pair[2];
    assert_int_equal (socketpair (AF_UNIX, SOCK_STREAM, 0, pair), 0);
    assert_int_equal (dup2 (pair[0], near[0]), near[0]);
    door_cut (door, near[0]);
    assert_int_equal (write (pair[1], "x", 1), 1);
    assert_false (is_cut (0));
    door_cut (door, near[1]);
    assert_true (is_cut (1));
    close (pair[0]);
    close (pair[1]);
    door_free (&door);
    leave ();
}

static bool is_friend (const void *context, const char *knock, const char *identity)
{
    (void) knock;
    return strcmp (identity, context) == 0;
}

static void test_guests_are_known_by_their_domain (void **state)
{
    (void) state;
    guests_t *guests = guests_new ();
    assert_true (guests_are (guests, "feed/a", is_friend, "friend"));
    guests_add (guests, "feed/a", "one", "friend");
    guests_add (guests, "feed/a", "two", "stranger");
    guests_add (guests, "feed/b", "one", "friend");
    assert_false (guests_are (guests, "feed/a", is_friend, "friend"));
    assert_true (guests_are (guests, "feed/b", is_friend, "friend"));
    guests_forget (guests, "feed/a");
    assert_true (guests_are (guests, "feed/a", is_friend, "friend"));
    guests_free (&guests);
    assert_null (guests);
}

/* Whom there is no room for is a stranger, until all have gone. */
static void test_more_guests_than_room_are_strangers (void **state)
{
    (void) state;
    char name[32];
    guests_t *guests = guests_new ();
    for (int again = 0; again < 2; again++)
        for (int i = 0; i < GUESTS_MAX; i++) {
            snprintf (name, sizeof name, "%d", i);
            guests_add (guests, "feed/a", name, "friend");
        }
    assert_true (guests_are (guests, "feed/a", is_friend, "friend"));
    guests_add (guests, "feed/a", "one more", "friend");
    assert_false (guests_are (guests, "feed/a", is_friend, "friend"));
    guests_forget (guests, "feed/a");
    assert_true (guests_are (guests, "feed/a", is_friend, "friend"));
    for (int i = 0; i < GUESTS_DOMAINS_MAX; i++) {
        snprintf (name, sizeof name, "feed/%d", i);
        guests_add (guests, name, "one", "friend");
    }
    assert_false (guests_are (guests, "feed/15", is_friend, "friend"));
    guests_free (&guests);
}

int main (void)
{
#define TEST(name) cmocka_unit_test_setup_teardown (test_##name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST (the_oldest_of_the_most_crowded_address_go),
        TEST (who_has_spoken_is_no_crowd),
        TEST (far_too_many_have_no_grace),
        TEST (a_reused_descriptor_is_not_cut),
        TEST (guests_are_known_by_their_domain),
        TEST (more_guests_than_room_are_strangers),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}
