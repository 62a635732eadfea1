/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Durations, sizes, times. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <locale.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "units.h"

static void assert_duration (const char *text, int64_t wanted)
{
    char error[UNITS_ERROR_SIZE];
    int64_t ms = -1;
    if (!duration_parse (&ms, text, error))
        fail_msg ("%s", error);
    assert_int_equal (ms, wanted);
}

static void assert_no_duration (const char *text, const char *reason)
{
    char error[UNITS_ERROR_SIZE] = "";
    int64_t ms = -1;
    assert_false (duration_parse (&ms, text, error));
    assert_false (duration_parse (&ms, text, NULL));
    assert_int_equal (ms, -1);
    if (strstr (error, reason) == NULL)
        fail_msg ("\"%s\" gave: %s", text, error);
}

static void test_durations_are_read (void **state)
{
    (void) state;
    assert_duration ("0", 0);
    assert_duration ("0s", 0);
    assert_duration ("500ms", 500);
    assert_duration ("30s", 30000);
    assert_duration ("5m", 300000);
    assert_duration ("2h", 7200000);
    assert_duration ("1d", 86400000);
    assert_duration ("007s", 7000);
    assert_duration ("1h30m", 5400000);
    assert_duration ("1d2h3m4s5ms", 93784005);
    assert_duration ("1m500ms", 60500);
    assert_duration ("9223372036854775807ms", INT64_MAX);
    assert_duration ("106751991167d", INT64_C (106751991167) * 86400000);
}

static void test_bad_durations_are_refused (void **state)
{
    (void) state;
    assert_no_duration ("30", "unit is missing");
    assert_no_duration ("1", "unit is missing");
    assert_no_duration ("", "must be");
    assert_no_duration ("s", "must be");
    assert_no_duration ("-5s", "must be");
    assert_no_duration ("+5s", "must be");
    assert_no_duration (" 5s", "must be");
    assert_no_duration ("5s ", "must be");
    assert_no_duration ("5 s", "must be");
    assert_no_duration ("5S", "must be");
    assert_no_duration ("1.5h", "must be");
    assert_no_duration ("1h30", "unit is missing");
    assert_no_duration ("1h0", "unit is missing");
    assert_no_duration ("30m1h", "must be");
    assert_no_duration ("1h1h", "must be");
    assert_no_duration ("1h 30m", "must be");
    assert_no_duration ("1h-30m", "must be");
    assert_no_duration ("106751991167d9223372036854775807ms", "too large");
    assert_no_duration ("5w", "must be");
    assert_no_duration ("0x5s", "must be");
    assert_no_duration ("106751991168d", "too large");
    assert_no_duration ("9223372036854775808ms", "too large");
    assert_no_duration ("99999999999999999999999999999s", "too large");
}

static void test_durations_are_written (void **state)
{
    (void) state;
    char text[UNITS_TEXT_SIZE];
    assert_string_equal (duration_format (text, 0), "0");
    assert_string_equal (duration_format (text, 1500), "1500ms");
    assert_string_equal (duration_format (text, 90000), "90s");
    assert_string_equal (duration_format (text, 300000), "5m");
    assert_string_equal (duration_format (text, 7200000), "2h");
    assert_string_equal (duration_format (text, 86400000), "1d");
    assert_string_equal (duration_format (text, -1500), "-1500ms");
    assert_string_equal (duration_format (text, INT64_MAX), "9223372036854775807ms");
    for (int64_t ms = 1; ms < INT64_MAX / 7; ms *= 7)
        assert_duration (duration_format (text, ms), ms);
}

static void assert_no_size (const char *text, const char *reason)
{
    char error[UNITS_ERROR_SIZE] = "";
    uint64_t bytes = 42;
    assert_false (size_parse (&bytes, text, error));
    assert_int_equal (bytes, 42);
    if (strstr (error, reason) == NULL)
        fail_msg ("\"%s\" gave: %s", text, error);
}

static void test_sizes (void **state)
{
    (void) state;
    char text[UNITS_TEXT_SIZE];
    uint64_t bytes;
    assert_true (size_parse (&bytes, "0", NULL));
    assert_int_equal (bytes, 0);
    assert_true (size_parse (&bytes, "512B", NULL));
    assert_int_equal (bytes, 512);
    assert_true (size_parse (&bytes, "64K", NULL));
    assert_int_equal (bytes, 65536);
    assert_true (size_parse (&bytes, "1M", NULL));
    assert_int_equal (bytes, 1048576);
    assert_true (size_parse (&bytes, "2G", NULL));
    assert_int_equal (bytes, UINT64_C (2147483648));
    assert_no_size ("1", "unit is missing");
    assert_no_size ("1k", "must be");
    assert_no_size ("1KB", "must be");
    assert_no_size ("K", "must be");
    assert_no_size ("8589934592G", "too large");

    assert_string_equal (size_format (text, 0), "0");
    assert_string_equal (size_format (text, 1023), "1023B");
    assert_string_equal (size_format (text, 1024), "1K");
    assert_string_equal (size_format (text, 1536), "1.5K");
    assert_string_equal (size_format (text, 1048575), "1023K");
    assert_string_equal (size_format (text, 1468006), "1.3M");
    assert_string_equal (size_format (text, UINT64_C (3) << 30), "3G");
    assert_string_equal (size_format (text, UINT64_MAX), "17179869183G");
}

/* Times. */

static void assert_time (const char *text, int64_t wanted)
{
    char error[UNITS_ERROR_SIZE];
    int64_t ms = -1;
    if (!time_parse (&ms, text, error))
        fail_msg ("%s", error);
    assert_int_equal (ms, wanted);
}

static void assert_no_time (const char *text)
{
    char error[UNITS_ERROR_SIZE] = "";
    int64_t ms = -1;
    if (time_parse (&ms, text, error))
        fail_msg ("\"%s\" was taken", text);
    assert_int_equal (ms, -1);
    assert_true (error[0] != '\0');
}

static void test_times_are_read (void **state)
{
    (void) state;
    assert_time ("1970-01-01T00:00:00Z", 0);
    assert_time ("2026-11-21T21:05:00.123Z", 1795295100123);
    assert_time ("2026-11-21t21:05:00.123z", 1795295100123);
    assert_time ("2026-11-21 21:05:00.123Z", 1795295100123);
    assert_time ("2026-11-21T22:05:00.123+01:00", 1795295100123);
    assert_time ("2026-11-21T15:35:00.123-05:30", 1795295100123);
    assert_time ("2026-11-21T21:05:00.123999Z", 1795295100123);
    assert_time ("2026-11-21T21:05:00.1Z", 1795295100100);
    assert_time ("2000-02-29T00:00:00Z", 951782400000);
    assert_time ("2016-12-31T23:59:60Z", 1483228800000);
    assert_time ("9999-12-31T23:59:59.999Z", 253402300799999);
}

static void test_bad_times_are_refused (void **state)
{
    (void) state;
    const char *good = "2026-11-21T21:05:00.123Z";
    for (size_t length = 0; length < strlen (good); length++) {
        char cut[TIME_TEXT_SIZE] = "";
        memcpy (cut, good, length);
        assert_no_time (cut);
    }
    assert_no_time ("2026-11-21T21:05:00");
    assert_no_time ("2026-11-21T21:05:00.Z");
    assert_no_time ("2026-11-21T21:05:00Z ");
    assert_no_time ("2026-13-21T21:05:00Z");
    assert_no_time ("2026-00-21T21:05:00Z");
    assert_no_time ("2026-11-31T21:05:00Z");
    assert_no_time ("2026-02-29T21:05:00Z");
    assert_no_time ("1900-02-29T21:05:00Z");
    assert_no_time ("2026-11-21T24:00:00Z");
    assert_no_time ("2026-11-21T21:60:00Z");
    assert_no_time ("2026-11-21T21:05:61Z");
    assert_no_time ("2026-11-21T21:05:00+24:00");
    assert_no_time ("2026-11-21T21:05:00+0100");
    assert_no_time ("2026-11-21T21:05:00*01:00");
    assert_no_time ("1969-12-31T23:59:59Z");
    assert_no_time ("1970-01-01T00:00:00+00:01");
    assert_no_time ("9999-12-31T23:59:59-00:01");
    assert_no_time ("26-11-21T21:05:00Z");
}

static void test_times_are_written (void **state)
{
    (void) state;
    char text[TIME_TEXT_SIZE];
    assert_true (time_format (text, 0));
    assert_string_equal (text, "1970-01-01T00:00:00.000Z");
    assert_true (time_format (text, 1795295100123));
    assert_string_equal (text, "2026-11-21T21:05:00.123Z");
    assert_true (time_format (text, 253402300799999));
    assert_string_equal (text, "9999-12-31T23:59:59.999Z");
    assert_false (time_format (text, 253402300800000));
    assert_false (time_format (text, -1));
    assert_false (time_format (text, INT64_MIN));
}

/* Every day from 1970 to 2400 agrees with the C library, and comes back. */
static void test_calendar_agrees_with_the_system (void **state)
{
    (void) state;
    for (int64_t day = 0; day < 157054; day++) {
        time_t seconds = (time_t) (day * 86400 + day % 86400);
        struct tm civil;
        char wanted[TIME_TEXT_SIZE];
        char text[TIME_TEXT_SIZE];
        assert_non_null (gmtime_r (&seconds, &civil));
        assert_int_equal (strftime (wanted, sizeof wanted, "%Y-%m-%dT%H:%M:%S.007Z", &civil),
                          TIME_TEXT_SIZE - 1);
        assert_true (time_format (text, (int64_t) seconds * 1000 + 7));
        assert_string_equal (text, wanted);
        int64_t ms;
        assert_true (time_parse (&ms, text, NULL));
        assert_int_equal (ms, (int64_t) seconds * 1000 + 7);
    }
}

static void test_relative_times (void **state)
{
    (void) state;
    char text[UNITS_TEXT_SIZE];
    const int64_t now = 1795295100123;
    assert_string_equal (time_format_relative (text, now, now), "now");
    assert_string_equal (time_format_relative (text, now - 999, now), "now");
    assert_string_equal (time_format_relative (text, now - 1000, now), "1s ago");
    assert_string_equal (time_format_relative (text, now - 59999, now), "59s ago");
    assert_string_equal (time_format_relative (text, now - 180000, now), "3m ago");
    assert_string_equal (time_format_relative (text, now - 7200000, now), "2h ago");
    assert_string_equal (time_format_relative (text, now - 86400000, now), "1d ago");
    assert_string_equal (time_format_relative (text, now + 300000, now), "in 5m");
    assert_string_equal (time_format_relative (text, INT64_MIN, INT64_MAX), "213503982334d ago");
}

static void test_numbers_are_read (void **state)
{
    (void) state;
    static const char *const wrong[] = {"",      " 1",   "1 ", "-1",   "+1",  ".5",
                                        "5.",    "1,5",  "1e", "0x1",  "nan", "inf",
                                        "1e999", "1.e3", "e5", "1..2", "1e+", "infinity"};
    double number = 7;
    char error[UNITS_ERROR_SIZE];
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        assert_false (number_parse (&number, wrong[i], error));
        assert_true (number == 7 && *error);
    }
    assert_true (number_parse (&number, "0", NULL) && number == 0);
    assert_true (number_parse (&number, "0.25", NULL) && number == 0.25);
    assert_true (number_parse (&number, "1.5e-7", NULL) && number == 1.5e-7);
    assert_true (number_parse (&number, "3E2", NULL) && number == 300);
    assert_true (number_parse (&number, "18446744073709551616", NULL) && number == 0x1p64);
}

static void test_numbers_are_written (void **state)
{
    (void) state;
    static const double numbers[] = {1.0 / 3, 0.1, 1e300, 5e-324, 0x1p53, 123456.789, 1e-9};
    char text[UNITS_TEXT_SIZE];
    double again;
    assert_string_equal (number_format (text, 0, NUMBER_DIGITS_MAX), "0");
    assert_string_equal (number_format (text, 9007199254740991.0, 6), "9007199254740991");
    assert_string_equal (number_format (text, 0.25, NUMBER_DIGITS_MAX), "0.25");
    assert_string_equal (number_format (text, 0.1, NUMBER_DIGITS_MAX), "0.1");
    assert_string_equal (number_format (text, 1.0 / 3, 6), "0.333333");
    assert_string_equal (number_format (text, 1e300, NUMBER_DIGITS_MAX), "1e+300");
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        number_format (text, numbers[i], NUMBER_DIGITS_MAX);
        assert_true (number_parse (&again, text, NULL) && again == numbers[i]);
    }
}

/* A locale with a comma is not installed everywhere; then there is nothing to see. */
static void test_numbers_do_not_follow_the_locale (void **state)
{
    (void) state;
    static const char *const names[] = {"de_DE.UTF-8", "fr_FR.UTF-8", "ru_RU.UTF-8", "fa_IR"};
    char text[UNITS_TEXT_SIZE];
    double number = 0;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (setlocale (LC_NUMERIC, names[i]) == NULL)
            continue;
        assert_string_equal (number_format (text, 1234567.25, NUMBER_DIGITS_MAX), "1234567.25");
        assert_true (number_parse (&number, "0.25", NULL) && number == 0.25);
        assert_false (number_parse (&number, "0,25", NULL));
    }
    setlocale (LC_NUMERIC, "C");
}

static void test_short_durations (void **state)
{
    static const struct {
        int64_t ms;
        const char *text;
    } CASES[] = {{0, "0"},         {-5, "0"},         {800, "800ms"},       {1900, "1s"},
                 {90000, "1m30s"}, {60000, "1m"},     {86399999, "23h59m"}, {172800000, "2d"},
                 {3601000, "1h"},  {90000000, "1d1h"}};
    char text[UNITS_TEXT_SIZE];
    (void) state;
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++)
        assert_string_equal (duration_format_short (text, CASES[i].ms), CASES[i].text);
}

int main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (test_short_durations),
        cmocka_unit_test (test_durations_are_read),
        cmocka_unit_test (test_bad_durations_are_refused),
        cmocka_unit_test (test_durations_are_written),
        cmocka_unit_test (test_sizes),
        cmocka_unit_test (test_times_are_read),
        cmocka_unit_test (test_bad_times_are_refused),
        cmocka_unit_test (test_numbers_are_read),
        cmocka_unit_test (test_numbers_are_written),
        cmocka_unit_test (test_numbers_do_not_follow_the_locale),
        cmocka_unit_test (test_times_are_written),
        cmocka_unit_test (test_calendar_agrees_with_the_system),
        cmocka_unit_test (test_relative_times),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}
