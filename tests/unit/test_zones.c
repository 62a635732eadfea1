/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Files of time zones, whole and damaged. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "support/cmocka_all.h"
#include "zones.h"

/* A file without changes of its own (as zic writes them with -b slim), with this rule. */
static size_t make_file (uint8_t *out, int32_t offset, const char *rule)
{
    enum { HEADER = 44, TYPES = 39, LETTERS = 43 };
    uint8_t header[HEADER] = "TZif2";
    header[TYPES] = 1;
    header[LETTERS] = 4;
    size_t length = 0;
    for (int block = 0; block < 2; block++) {
        memcpy (out + length, header, HEADER);
        length += HEADER;
        for (int shift = 24; shift >= 0; shift -= 8)
            out[length++] = (uint8_t) ((uint32_t) offset >> shift);
        memcpy (out + length, "\0\0TST\0", 6);
        length += 6;
    }
    return length + (size_t) sprintf ((char *) out + length, "\n%s\n", rule);
}

static void a_rule_is_followed (void **state)
{
    uint8_t file[512];
    zone_t zone;
    (void) state;
    size_t bytes = make_file (file, 3600, "CET-1CEST,M3.5.0,M10.5.0/3");
    assert_true (zone_parse (&zone, file, bytes));
    assert_int_equal (zone.first_offset, 3600);
    bool forward = false;
    for (size_t i = 0; i < zone.changes_count; i++) {
        assert_int_equal (zone.changes[i].offset, i % 2 == 0 ? 7200 : 3600);
        forward = forward || zone.changes[i].at == 1774746000; /* 2026-03-29 01:00 UTC */
    }
    assert_true (forward);
    free ((void *) zone.changes);
    /* South of the equator, with another distance and times before midnight. */
    bytes = make_file (file, 37800, "<+1030>-10:30<+11>-11,M10.1.0,M4.1.0/-1");
    assert_true (zone_parse (&zone, file, bytes));
    assert_int_equal (zone.changes[0].offset, 39600);
    free ((void *) zone.changes);
    bytes = make_file (file, 19800, "IST-5:30");
    assert_true (zone_parse (&zone, file, bytes));
    assert_int_equal (zone.changes_count, 0);
    bytes = make_file (file, 0, "A0AAA-1,J60/0,364"); /* a name of one letter */
    assert_false (zone_parse (&zone, file, bytes));
    bytes = make_file (file, 0, "AAA0BBB-1,J60/0,364");
    assert_true (zone_parse (&zone, file, bytes));
    assert_int_equal (zone.changes[0].at, 59 * 86400); /* 1 March 1970 */
    free ((void *) zone.changes);
}

static void damage_is_seen (void **state)
{
    uint8_t file[512];
    zone_t zone;
    (void) state;
    size_t bytes = make_file (file, 3600, "CET-1CEST,M3.5.0,M10.5.0/3");
    for (size_t cut = 0; cut < bytes; cut++) /* read without a look beyond: the sanitizer says */
        assert_false (zone_parse (&zone, file, cut));
    for (size_t at = 0; at < bytes; at++) {
        uint8_t before = file[at];
        file[at] = 0xff;
        if (zone_parse (&zone, file, bytes))
            free ((void *) zone.changes);
        file[at] = before;
    }
    static const char *const wrong[] = {"CET",
                                        "CET-1CEST",
                                        "CET-1CEST,M3.5.0",
                                        "CET-1CEST,M13.5.0,M10.5.0",
                                        "CET-1CEST,M3.6.0,M10.5.0",
                                        "CET-1CEST,J0,J1",
                                        "CET-999",
                                        "CET-1CEST,M3.5.0,M10.5.0x"};
    for (size_t i = 0; i < sizeof (wrong) / sizeof (wrong[0]); i++) {
        bytes = make_file (file, 3600, wrong[i]);
        assert_false (zone_parse (&zone, file, bytes));
    }
}

static void names_stay_in_the_directory (void **state)
{
    (void) state;
    zones_t *zones = zones_new (ZONES_DIRECTORY);
    static const char *const wrong[] = {
        "",
        "/etc/passwd",
        "../../../etc/passwd",
        "No/Where",
        "Europe",
        "tzdata.zi",
        "Europe//Berlin",
        "posix/Europe/Berlin",
        "Europe/Berlin/",
        "an_extremely_long_name_of_a_zone_that_nobody_would_ever_make_up_really"};
    for (size_t i = 0; i < sizeof (wrong) / sizeof (wrong[0]); i++)
        assert_null (zones_find (zones, wrong[i]));
    assert_non_null (zones_find (zones, "UTC"));
    if (access (ZONES_DIRECTORY "/Europe/Berlin", R_OK) == 0) {
        const zone_t *berlin = zones_find (zones, "Europe/Berlin");
        assert_non_null (berlin);
        assert_ptr_equal (zones_find (zones, "Europe/Berlin"), berlin);
        assert_true (berlin->changes_count > 100);
    }
    zones_free (&zones);
}

int main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (a_rule_is_followed),
        cmocka_unit_test (damage_is_seen),
        cmocka_unit_test (names_stay_in_the_directory),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}
