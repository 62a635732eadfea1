/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

#include "core/base/beats.h"
#include "support/cmocka_all.h"

enum { LEASE = 4000 };

static void an_owner_is_valid_from_its_first_acknowledged_beat (void **state)
{
    (void) state;
    beats_t beats;
    beats_init (&beats, LEASE);
    assert_int_equal (beats_every_ms (&beats), 1000);
    assert_true (beats.valid_until == INT64_MIN);
    beats_acknowledged (&beats, 10000);
    assert_int_equal (beats.valid_until, 13500);
    beats_acknowledged (&beats, 9000); /* an answer that was overtaken takes nothing back */
    assert_int_equal (beats.valid_until, 13500);
    beats_acknowledged (&beats, 11000);
    assert_int_equal (beats.valid_until, 14500);
}

static void a_beat_that_stands_still_for_a_lease_may_be_taken_over (void **state)
{
    (void) state;
    beat_watch_t watch;
    beat_watch_init (&watch, LEASE);
    assert_false (beat_watch_saw (&watch, 3, 7, 50000));
    assert_int_equal (beat_watch_pause_ms (&watch, 100, 50000), 100);
    assert_int_equal (beat_watch_pause_ms (&watch, 100, 53930), 70); /* no look comes too late */
    assert_false (beat_watch_saw (&watch, 3, 7, 53999));
    assert_int_equal (beat_watch_pause_ms (&watch, 100, 53999), 1);
    assert_int_equal (beat_watch_pause_ms (&watch, 100, 54000), 100); /* somebody was faster */
    assert_true (beat_watch_saw (&watch, 3, 7, 54000));
    assert_false (beat_watch_saw (&watch, 3, 8, 54001)); /* it beats again */
    assert_false (beat_watch_saw (&watch, 4, 8, 58000)); /* the same beat of another owner */
    assert_false (beat_watch_saw (&watch, 4, 8, 61999));
    assert_true (beat_watch_saw (&watch, 4, 8, 62000));
}

static void a_look_without_an_answer_is_no_silence (void **state)
{
    (void) state;
    beat_watch_t watch;
    beat_watch_init (&watch, LEASE);
    assert_false (beat_watch_saw (&watch, 3, 7, 50000));
    beat_watch_missed (&watch);
    assert_false (beat_watch_saw (&watch, 3, 7, 54000));
    assert_false (beat_watch_saw (&watch, 3, 7, 57999));
    assert_true (beat_watch_saw (&watch, 3, 7, 58000));
}

/* Whatever two clocks that run within a tenth of each other show: an owner that was seen beating at
 * the very moment of its sending has ended before anybody may take over. */
static void an_owner_ends_before_its_successor_begins (void **state)
{
    (void) state;
    static const int64_t LEASES[] = {2000, 4000, 60000};
    for (size_t i = 0; i < sizeof (LEASES) / sizeof (LEASES[0]); i++) {
        beats_t beats;
        beats_init (&beats, LEASES[i]);
        beats_acknowledged (&beats, 0);
        int64_t slow_ends = beats.valid_until * 1000 / 950; /* in true time */
        int64_t quick_begins = LEASES[i] * 1000 / 1045;
        assert_true (slow_ends < quick_begins);
    }
}

int main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (an_owner_is_valid_from_its_first_acknowledged_beat),
        cmocka_unit_test (a_beat_that_stands_still_for_a_lease_may_be_taken_over),
        cmocka_unit_test (a_look_without_an_answer_is_no_silence),
        cmocka_unit_test (an_owner_ends_before_its_successor_begins),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}
