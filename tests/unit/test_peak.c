/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* The largest value of the last minute: it stays for that long, then goes. */
#include "peak.h"

#include "support/cmocka_all.h"

enum { START = 987654321 };

static void it_stays_for_a_minute_and_goes_within_two (void **state)
{
    (void) state;
    peak_t peak = {0};
    assert_int_equal (peak_get (&peak, START), 0);
    peak_add (&peak, START, 700);
    for (int64_t ms = 0; ms <= 60 * 1000; ms += 500) {
        peak_add (&peak, START + ms, 3);
        assert_int_equal (peak_get (&peak, START + ms), 700);
    }
    assert_int_equal (peak_get (&peak, START + 3 * PEAK_PART_MS), 3);
    assert_int_equal (peak_get (&peak, START + 10 * PEAK_PART_MS), 0);
}

static void the_largest_counts (void **state)
{
    (void) state;
    peak_t peak = {0};
    peak_add (&peak, START, 5);
    peak_add (&peak, START + 1, 9);
    peak_add (&peak, START + 2, 7);
    assert_int_equal (peak_get (&peak, START + 2), 9);
    peak_add (&peak, START + 100 * PEAK_PART_MS, 1);
    assert_int_equal (peak_get (&peak, START + 100 * PEAK_PART_MS), 1);
}

int main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (it_stays_for_a_minute_and_goes_within_two),
        cmocka_unit_test (the_largest_counts),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}
