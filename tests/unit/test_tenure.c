/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

#include "core/base/tenure.h"
#include "support/cmocka_all.h"

enum { PATIENCE = 1000 };

static void a_store_of_one_machine_changes_nothing (void **state)
{
    (void) state;
    tenure_t tenure;
    int64_t stood_ms;
    tenure_init (&tenure, PATIENCE, 0);
    assert_int_equal (tenure_look (&tenure, 5000, 0, INT64_MAX), TENURE_SAME);
    assert_false (tenure.away || tenure.shut || tenure_has_end (&tenure));
    assert_true (tenure_may_tell (&tenure, INT64_MAX - 1));
    assert_true (tenure_may_judge (&tenure, 5000, &stood_ms));
    assert_int_equal (stood_ms, 0);
    assert_int_equal (tenure_left_ms (&tenure, 5000), 0);
}

/* A store that is slow for a moment is no store that is away, unless a read says so. */
static void it_is_away_after_its_patience (void **state)
{
    (void) state;
    tenure_t tenure;
    tenure_init (&tenure, PATIENCE, 0);
    assert_int_equal (tenure_look (&tenure, 5000, PATIENCE, INT64_MAX), TENURE_SAME);
    assert_int_equal (tenure_look (&tenure, 5001, PATIENCE + 1, INT64_MAX), TENURE_AWAY);
    assert_true (tenure.away && !tenure.shut);
    assert_int_equal (tenure_look (&tenure, 5002, 1, INT64_MAX), TENURE_SAME); /* still */
    assert_int_equal (tenure_look (&tenure, 5003, 0, INT64_MAX), TENURE_BACK);
    assert_int_equal (tenure.away_since, 5001);
    assert_true (tenure_missed (&tenure, 6000));
    assert_false (tenure_missed (&tenure, 6001));
    assert_true (tenure.away);
    assert_int_equal (tenure_look (&tenure, 6002, 2, INT64_MAX), TENURE_SAME);
    assert_int_equal (tenure_look (&tenure, 6003, 0, INT64_MAX), TENURE_BACK);
}

static void nothing_is_told_or_judged_after_the_lease (void **state)
{
    (void) state;
    tenure_t tenure;
    int64_t stood_ms;
    tenure_init (&tenure, PATIENCE, 0);
    assert_int_equal (tenure_look (&tenure, 5000, 0, 8000), TENURE_SAME);
    assert_true (tenure_has_end (&tenure));
    assert_int_equal (tenure_left_ms (&tenure, 5000), 3000);
    assert_true (tenure_may_tell (&tenure, 7999));
    assert_false (tenure_may_tell (&tenure, 8000));
    assert_int_equal (tenure_left_ms (&tenure, 8000), 0);
    assert_true (tenure_may_judge (&tenure, 7999, &stood_ms));
    assert_false (tenure_may_judge (&tenure, 8100, &stood_ms));
    assert_int_equal (tenure_look (&tenure, 8100, 0, 8000), TENURE_AWAY);
    assert_true (tenure.shut && !tenure.away);
    assert_false (tenure_may_judge (&tenure, 9000, &stood_ms));
    assert_int_equal (stood_ms, 0);
    assert_int_equal (tenure_look (&tenure, 9500, 0, 12000), TENURE_BACK);
    assert_true (tenure_may_tell (&tenure, 9500));
    assert_true (tenure_may_judge (&tenure, 9500, &stood_ms));
    assert_int_equal (stood_ms, 1400); /* since it was not judged first */
    assert_true (tenure_may_judge (&tenure, 9600, &stood_ms));
    assert_int_equal (stood_ms, 0);
}

/* The machine slept since the look: the store counts that, and the clock does not. */
static void the_store_is_heard_before_an_output (void **state)
{
    (void) state;
    tenure_t tenure;
    tenure_init (&tenure, PATIENCE, 0);
    tenure_look (&tenure, 5000, 0, 8000);
    assert_true (tenure_may_tell (&tenure, 5001));
    tenure_hear (&tenure, 4000);
    assert_false (tenure_may_tell (&tenure, 5001));
}

int main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (a_store_of_one_machine_changes_nothing),
        cmocka_unit_test (it_is_away_after_its_patience),
        cmocka_unit_test (nothing_is_told_or_judged_after_the_lease),
        cmocka_unit_test (the_store_is_heard_before_an_output),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}
