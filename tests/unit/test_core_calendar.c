/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* The calendar: what is wrong is named, and what the clocks do twice a year. That it agrees with
 * another implementation over years is tests/calendar. */
#include <stdio.h>
#include <string.h>

#include "core/base/calendar.h"
#include "support/cmocka_all.h"

/* Central European Time around the changes of 2026. */
static const zone_change_t CHANGES[] = {{1774746000, 7200}, {1792890000, 3600}};
static const zone_t BERLIN = {3600, CHANGES, 2};
static const zone_t UTC;
enum { FORWARD = 1774746000, BACK = 1792890000, HOUR = 3600, MINUTE = 60, DAY = 24 * HOUR };

static calendar_t parsed (const char *text)
{
    calendar_t calendar;
    char error[CALENDAR_ERROR_SIZE];
    if (!calendar_parse (&calendar, text, error))
        fail_msg ("%s: %s", text, error);
    return calendar;
}

static void assert_wrong (const char *text, const char *why)
{
    calendar_t calendar;
    char error[CALENDAR_ERROR_SIZE] = "";
    assert_false (calendar_parse (&calendar, text, error));
    assert_string_equal (error, why);
}

/* The occurrences after from_s, relative to base_s, are these minutes; -1 ends them. */
static void assert_due (const char *text, const zone_t *zone, int64_t from_s, int64_t base_s,
                        const int *minutes)
{
    calendar_t calendar = parsed (text);
    occurrence_t at = calendar_at (zone, from_s * 1000);
    for (; *minutes != -1; minutes++) {
        assert_true (calendar_next (&calendar, zone, 0, &at, &at));
        assert_int_equal ((at.at_ms / 1000 - base_s) / MINUTE, *minutes);
        assert_int_equal (at.at_ms % (MINUTE * 1000), 0);
    }
}

static void every_wrong_field_is_named (void **state)
{
    (void) state;
    assert_wrong ("60 * * * *", "60 is no minute (0 to 59)");
    assert_wrong ("* 24 * * *", "24 is no hour (0 to 23)");
    assert_wrong ("* * 0 * *", "0 is no day of the month (1 to 31)");
    assert_wrong ("* * 32 * *", "32 is no day of the month (1 to 31)");
    assert_wrong ("* * * 13 *", "13 is no month (1 to 12)");
    assert_wrong ("* * * jänner *", "jänner is no month (1 to 12)");
    assert_wrong ("* * * * 8", "8 is no day of the week (0 to 7)");
    assert_wrong ("5-1 * * * *", "5-1: a range of the minute begins with its lower end");
    assert_wrong ("* * * * fri-mon",
                  "fri-mon: a range of the day of the week begins with its lower end");
    assert_wrong ("5-61 * * * *", "5-61 is no minute (0 to 59)");
    assert_wrong ("1, * * * *", "1, is no minute (0 to 59)");
    assert_wrong ("*/0 * * * *", "*/0: a step is a number (1 to 59)");
    assert_wrong ("5/2 * * * *", "5/2: a step follows a star or a range");
    assert_wrong ("1x * * * *", "1x is no minute (0 to 59)");
    assert_wrong ("-1 * * * *", "-1 is no minute (0 to 59)");
    assert_wrong ("99999999999999999999 * * * *", "99999999999999999999 is no minute (0 to 59)");
    assert_wrong ("", "five fields are wanted (minute hour day month weekday), 0 are there");
    assert_wrong ("* * * *", "five fields are wanted (minute hour day month weekday), 4 are there");
    assert_wrong ("* * * * * root", "more than five fields: root");
    assert_wrong ("@ääääääääääääääääää",
                  "@äääääääääääääää is none of @hourly @daily @weekly @monthly @yearly @every");
    assert_wrong ("@never", "@never is none of @hourly @daily @weekly @monthly @yearly @every");
    assert_wrong ("@every 10", "@every wants a duration from 1s on, such as 90s");
    assert_wrong ("@every 10ms", "@every wants a duration from 1s on, such as 90s");
    assert_wrong ("@every -1s", "@every wants a duration from 1s on, such as 90s");
}

static void words_and_names_are_fields (void **state)
{
    static const char *const same[][2] = {
        {"@hourly", "0 * * * *"},       {"@daily", "0 0 * * *"},
        {"@weekly", "0 0 * * 7"},       {"@monthly", "0 0 1 * *"},
        {"@yearly", "0 0 1 jan *"},     {"1 2 3 Feb MON-wed", "1 2 3 2 1-3"},
        {" 1\t2 3 4  5 ", "1 2 3 4 5"}, {"10-20/5,59 * * * *", "10,15,20,59 * * * *"}};
    (void) state;
    for (size_t i = 0; i < sizeof (same) / sizeof (same[0]); i++) {
        calendar_t a = parsed (same[i][0]);
        calendar_t b = parsed (same[i][1]);
        assert_int_equal (a.minutes, b.minutes);
        assert_int_equal (a.hours, b.hours);
        assert_int_equal (a.days, b.days);
        assert_int_equal (a.months, b.months);
        assert_int_equal (a.weekdays, b.weekdays);
        assert_int_equal (a.either_day, b.either_day);
    }
}

static void an_hour_that_is_left_out (void **state)
{
    static const int wall[] = {-20, 0, 20, -1}; /* 01:40, 03:00 */
    static const int hourly[] = {-30, 30, 90, -1};
    (void) state;
    assert_due ("0 1 * * *", &BERLIN, FORWARD - 2 * HOUR, FORWARD,
                (const int[]){-60, 23 * 60 - 60, -1});
    assert_due ("0,30 1-4 * * *", &BERLIN, FORWARD - HOUR - 1, FORWARD,
                (const int[]){-60, -30, 0, 0, 0, 30, 60, -1});
    assert_due ("*/20 * * * *", &BERLIN, FORWARD - 40 * MINUTE, FORWARD, wall);
    assert_due ("30 * * * *", &BERLIN, FORWARD - HOUR, FORWARD, hourly);
}

static void an_hour_that_is_repeated (void **state)
{
    (void) state;
    /* 02:30 in summer time only, then the next day. */
    assert_due ("30 2 * * *", &BERLIN, BACK - 2 * HOUR, BACK, (const int[]){-30, 25 * 60 - 30, -1});
    /* From between the two on, today's is over. */
    assert_due ("30 2 * * *", &BERLIN, BACK + 10 * MINUTE, BACK, (const int[]){25 * 60 - 30, -1});
    /* By the clock on the wall it comes twice. */
    assert_due ("30 * * * *", &BERLIN, BACK - HOUR, BACK, (const int[]){-30, 30, 90, -1});
}

static void rare_days_are_found (void **state)
{
    (void) state;
    calendar_t leap = parsed ("0 0 29 2 mon");
    occurrence_t at = calendar_at (&UTC, INT64_C (1767225600000)); /* 2026 */
    leap.either_day = false;                                       /* a Monday, too */
    assert_true (calendar_next (&leap, &UTC, 0, &at, &at));
    assert_int_equal (at.at_ms / 1000, INT64_C (2340316800)); /* 2044 */
    calendar_t never = parsed ("0 0 31 2,4,6,9,11 *");
    assert_false (calendar_next (&never, &UTC, 0, &at, &at));
    calendar_t wall = parsed ("* 0 31 2 *");
    assert_false (calendar_next (&wall, &BERLIN, 0, &at, &at));
    calendar_t either = parsed ("0 0 13 * fri"); /* either is enough */
    at = calendar_at (&UTC, INT64_C (1767225600000));
    assert_true (calendar_next (&either, &UTC, 0, &at, &at));
    assert_int_equal (at.at_ms / 1000, 1767225600 + DAY); /* Friday the 2nd */
}

/* A clock that changes twice a year, for a hundred years: what comes once in decades is found
 * behind all these changes. */
static void rare_days_are_found_behind_many_changes (void **state)
{
    enum { MANY = 200 };
    zone_change_t changes[MANY];
    zone_t zone = {3600, changes, MANY};
    (void) state;
    for (int i = 0; i < MANY; i++)
        changes[i] = (zone_change_t){FORWARD + (int64_t) i * 182 * DAY, i % 2 == 0 ? 7200 : 3600};
    calendar_t leap = parsed ("* 0 29 2 */7");
    occurrence_t at = calendar_at (&zone, INT64_C (1767225600000)); /* 2026 */
    assert_true (calendar_next (&leap, &zone, 0, &at, &at));
    assert_int_equal (at.local_s, INT64_C (1961625600)); /* 2032 */
    for (int i = 0; i < 60; i++)                         /* the last of them is the next one */
        assert_true (calendar_next (&leap, &zone, 0, &at, &at));
    assert_int_equal (at.local_s, INT64_C (2845238400)); /* 2060 */
}

static void a_distance_counts_from_its_anchor (void **state)
{
    (void) state;
    calendar_t every = parsed ("@every 90s");
    occurrence_t at = calendar_at (&BERLIN, 1000);
    static const int64_t due[] = {91000, 181000, 271000};
    for (int i = 0; i < 3; i++) {
        assert_true (calendar_next (&every, &BERLIN, 1000, &at, &at));
        assert_int_equal (at.at_ms, due[i]);
    }
    at.at_ms = 1000000;
    assert_true (calendar_next (&every, &BERLIN, 1000, &at, &at));
    assert_int_equal (at.at_ms, 1081000);
    at.at_ms = -5000000; /* the clock went back before the anchor */
    assert_true (calendar_next (&every, &BERLIN, 1000, &at, &at));
    assert_int_equal (at.at_ms, 91000);
}

int main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (every_wrong_field_is_named),
        cmocka_unit_test (words_and_names_are_fields),
        cmocka_unit_test (an_hour_that_is_left_out),
        cmocka_unit_test (an_hour_that_is_repeated),
        cmocka_unit_test (rare_days_are_found),
        cmocka_unit_test (rare_days_are_found_behind_many_changes),
        cmocka_unit_test (a_distance_counts_from_its_anchor),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}
