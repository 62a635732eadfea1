/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* A follower's pace: it rests while batches are written back, also between two of them. */
#include "store/pace.h"

#include "support/cmocka_all.h"

enum { START = 987654321, WRITE_BACK_MS = 250 };

static pace_t pace_of_test (void)
{
    return (pace_t){.share = 20, .share_late = 4, .late_ms = 60000, .rest_ms_max = 2000};
}

/* A page takes less than the time between two batches: most looks see no new one. */
static void others_work_between_two_batches_as_well (void **state)
{
    (void) state;
    pace_t pace = pace_of_test ();
    assert_false (pace_others_work (&pace, 0, START));
    for (int64_t ms = 0; ms < 10000; ms += 10)
        assert_true (pace_others_work (&pace, 1 + (uint64_t) (ms / WRITE_BACK_MS), START + ms));
    assert_false (pace_others_work (&pace, 40, START + 20000));
}

static void it_rests_in_proportion_up_to_a_limit (void **state)
{
    (void) state;
    pace_t pace = pace_of_test ();
    assert_int_equal (pace_rest_ms (&pace, 0, START), 0);
    assert_int_equal (pace_rest_ms (&pace, 10 * 1000, START), 200);
    assert_int_equal (pace_rest_ms (&pace, 1000 * 1000, START), 2000);
}

static void who_lags_for_long_rests_less_until_it_has_caught_up (void **state)
{
    (void) state;
    pace_t pace = pace_of_test ();
    pace_lags (&pace, true, START);
    pace_lags (&pace, true, START + 60000);
    assert_int_equal (pace_rest_ms (&pace, 10 * 1000, START + 60000), 200);
    assert_int_equal (pace_rest_ms (&pace, 10 * 1000, START + 60001), 40);
    pace_lags (&pace, false, START + 60002);
    pace_lags (&pace, true, START + 60003);
    assert_int_equal (pace_rest_ms (&pace, 10 * 1000, START + 60004), 200);
}

int main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (others_work_between_two_batches_as_well),
        cmocka_unit_test (it_rests_in_proportion_up_to_a_limit),
        cmocka_unit_test (who_lags_for_long_rests_less_until_it_has_caught_up),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}
