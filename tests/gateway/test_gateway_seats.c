/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* What holders share: seats, and the filters of their streams. */
#include "support/cmocka_all.h"

#include <stdbool.h>

#include "base/seats.h"
#include "events/filters.h"
#include "link/cancels.h"

enum { SITTERS = 12 };

typedef struct sitter {
    seat_t seat;
    bool stubborn; /* does not leave its seat at once */
    const char *why;
} sitter_t;

static sitter_t sitters[SITTERS];

static void go (void *context, const char *why)
{
    sitter_t *self = context;
    self->why = why;
    if (!self->stubborn)
        seat_leave (&self->seat);
}

static sitter_t *sit (size_t number, seats_t *seats, account_t *account)
{
    sitters[number] = (sitter_t){.why = NULL};
    seat_take (&sitters[number].seat, seats, account, go, &sitters[number]);
    return &sitters[number];
}

static account_t *many (size_t first, size_t count, seats_t *seats)
{
    account_t *account = account_new ();
    assert_non_null (account);
    for (size_t i = 0; i < count; i++)
        sit (first + i, seats, account);
    return account;
}

static void leave_all (void)
{
    for (size_t i = 0; i < SITTERS; i++)
        seat_leave (&sitters[i].seat);
}

static void test_who_has_the_most_goes_first (void **state)
{
    seats_t seats = {.hold = HOLD_STREAMS};
    account_t *two = many (0, 2, &seats), *four = many (2, 4, &seats), *none = many (6, 0, &seats);
    (void) state;
    assert_int_equal (seats.count, 6);
    assert_true (seats_make_room (&seats, HOLD_STREAMS, none, 1, "because"));
    assert_string_equal (sitters[2].why, "because"); /* its first one */
    assert_int_equal (four->held[HOLD_STREAMS], 3);
    sit (6, &seats, none);
    /* Two against three: who would then have as many as the other one may not. */
    assert_false (seats_make_room (&seats, HOLD_STREAMS, two, 1, ""));
    assert_true (seats_make_room (&seats, HOLD_STREAMS, none, 1, ""));
    assert_non_null (sitters[3].why);
    assert_int_equal (seats.displaced, 2);
    leave_all ();
    assert_int_equal (seats.count, 0);
    assert_null (seats.first);
    assert_null (seats.last);
    assert_int_equal (two->held[HOLD_STREAMS] + four->held[HOLD_STREAMS], 0);
    account_release (two);
    account_release (four);
    account_release (none);
}

static void test_who_stays (void **state)
{
    seats_t seats = {.hold = HOLD_UPLOADS};
    account_t *all = many (0, 3, &seats), *none = many (3, 0, &seats);
    (void) state;
    sitters[0].seat.stays = true;
    sitters[1].stubborn = true;
    assert_false (seats_make_room (&seats, HOLD_UPLOADS, none, 1, ""));
    assert_non_null (sitters[1].why);
    assert_int_equal (seats.count, 3);
    assert_int_equal (seats.displaced, 0); /* it has not left */
    sitters[1].seat.stays = true;
    sitters[2].seat.stays = true;
    assert_null (seats_find (&seats, HOLD_UPLOADS, none, 1));
    assert_null (seats_find (&seats, HOLD_UPLOADS, all, 1));
    leave_all ();
    account_release (all);
    account_release (none);
}

/* By another measure than the seats themselves. */
static void test_bytes (void **state)
{
    seats_t seats = {.hold = HOLD_UPLOADS};
    account_t *small = many (0, 2, &seats), *large = many (2, 1, &seats),
              *none = many (3, 0, &seats);
    (void) state;
    small->held[HOLD_SPOOLED] = 10;
    large->held[HOLD_SPOOLED] = 50;
    assert_ptr_equal (seats_find (&seats, HOLD_SPOOLED, none, 20), &sitters[2].seat);
    assert_ptr_equal (seats_find (&seats, HOLD_SPOOLED, none, 49), &sitters[2].seat);
    assert_null (seats_find (&seats, HOLD_SPOOLED, none, 50));
    assert_null (seats_find (&seats, HOLD_SPOOLED, small, 40));
    assert_ptr_equal (seats_find (&seats, HOLD_UPLOADS, none, 1), &sitters[0].seat);
    leave_all ();
    account_release (small);
    account_release (large);
    account_release (none);
}

static void test_room_is_known_before_anybody_goes (void **state)
{
    seats_t seats = {.hold = HOLD_UPLOADS};
    account_t *ann = many (0, 3, &seats), *bob = many (3, 1, &seats), *cid = many (4, 0, &seats);
    (void) state;
    for (size_t i = 0; i < 4; i++)
        sitters[i].seat.holds = 10;
    sitters[0].seat.stays = true;
    ann->held[HOLD_SPOOLED] = 30;
    bob->held[HOLD_SPOOLED] = 10;
    assert_int_equal (seats_room (&seats, HOLD_SPOOLED, cid, 5), 30);
    /* Ann has 20 behind the first one that goes, and then as much as Cid would have. */
    assert_int_equal (seats_room (&seats, HOLD_SPOOLED, cid, 20), 10);
    assert_int_equal (seats_room (&seats, HOLD_SPOOLED, cid, 30), 0);
    assert_int_equal (seats_room (&seats, HOLD_SPOOLED, bob, 5), 20);
    assert_int_equal (seats.displaced, 0);
    leave_all ();
    account_release (ann);
    account_release (bob);
    account_release (cid);
}

static void test_filters (void **state)
{
    filter_use_t *all = NULL;
    account_t *ann = account_new (), *bob = account_new ();
    const int links[2] = {0, 0};
    bool full;
    (void) state;
    filter_use_t *first = filters_take (&all, ann, &links[0], "a", 2, &full);
    filter_use_t *again = filters_take (&all, ann, &links[0], "a", 2, &full);
    filter_use_t *other = filters_take (&all, ann, &links[1], "a", 2, &full);
    assert_ptr_equal (first, again);
    assert_ptr_not_equal (first, other);
    assert_int_equal (ann->held[HOLD_FILTERS], 2);
    assert_null (filters_take (&all, ann, &links[0], "b", 2, &full));
    assert_true (full);
    filter_use_t *theirs = filters_take (&all, bob, &links[0], "b", 2, &full);
    assert_non_null (theirs);
    assert_false (full);
    filters_give (&all, &first);
    assert_null (first);
    assert_int_equal (ann->held[HOLD_FILTERS], 2);
    filters_give (&all, &again);
    assert_int_equal (ann->held[HOLD_FILTERS], 1);
    filter_use_t *late = filters_take (&all, ann, &links[0], "b", 2, &full);
    assert_non_null (late);
    filters_give (&all, &late);
    filters_give (&all, &other);
    filters_give (&all, &theirs);
    filters_give (&all, &theirs);
    assert_null (all);
    assert_int_equal (ann->held[HOLD_FILTERS] + bob->held[HOLD_FILTERS], 0);
    account_release (ann);
    account_release (bob);
}

/* Of cancels that wait for the broker a principal has half. */

static int nobody_there (void *context, cancel_t *cancel)
{
    (void) context;
    (void) cancel;
    return TMQ_UNREACHABLE;
}

static int all_settled (void *context, cancel_t *cancel)
{
    (void) context;
    (void) cancel;
    return TMQ_NOT_FOUND;
}

static void test_cancels (void **state)
{
    (void) state;
    settings_t settings = {.numbers = {[SETTING_CANCELS_MAX] = 5}};
    const tmq_id_t id = {.bytes = {1}};
    account_t *accounts[] = {account_new (), account_new (), account_new ()};
    static const struct {
        size_t whose;
        bool kept;
    } turns[] = {{0, true}, {0, true}, {0, true}, {0, false}, {1, true}, {1, true}, {2, false}};
    loop_t *loop = loop_new ();
    uint64_t kept, dropped;
    for (int i = 0; i < 2; i++) {
        cancels_t *cancels =
            cancels_new (loop, &settings, "default", i == 0 ? nobody_there : all_settled, NULL);
        for (size_t k = 0; k < sizeof turns / sizeof *turns; k++)
            assert_int_equal (cancels_add (cancels, accounts[turns[k].whose], NULL, &id, "gone"),
                              i == 1 || turns[k].kept);
        cancels_count (cancels, &kept, &dropped);
        assert_int_equal (kept, i == 0 ? 5 : 0);
        assert_int_equal (dropped, i == 0 ? 2 : 0);
        assert_int_equal (accounts[0]->held[HOLD_CANCELS], i == 0 ? 3 : 0);
        cancels_free (&cancels); /* those that are left are nobody's any more */
        for (size_t k = 0; k < 3; k++) {
            assert_int_equal (accounts[k]->held[HOLD_CANCELS], 0);
            assert_int_equal (accounts[k]->references, 1);
        }
    }
    loop_free (&loop);
    for (size_t k = 0; k < 3; k++)
        account_release (accounts[k]);
}

int main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (test_who_has_the_most_goes_first),
        cmocka_unit_test (test_who_stays),
        cmocka_unit_test (test_bytes),
        cmocka_unit_test (test_room_is_known_before_anybody_goes),
        cmocka_unit_test (test_filters),
        cmocka_unit_test (test_cancels),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}
