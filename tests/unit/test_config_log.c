/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Log lines: key=value and JSON, one line each, whatever stands in the texts. */
#include "support/cmocka_all.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "json.h"
#include "log/log.h"

static char text[8192];

/* What one call writes to stderr. */
static const char *logged (log_level_t level, const char *message, const log_field_t *fields)
{
    int ends[2];
    assert_int_equal (pipe (ends), 0);
    int saved = dup (STDERR_FILENO);
    dup2 (ends[1], STDERR_FILENO);
    log_write (level, "THE-ID", message, fields);
    dup2 (saved, STDERR_FILENO);
    close (saved);
    close (ends[1]);
    ssize_t length = read (ends[0], text, sizeof (text) - 1);
    close (ends[0]);
    text[length > 0 ? length : 0] = '\0';
    return text;
}

static void test_a_line_of_keys_and_values (void **state)
{
    (void) state;
    log_configure (LOG_LEVEL_INFO, false);
    const char *line =
        logged (LOG_LEVEL_INFO, "two words",
                LOG_FIELDS (LOG_TEXT ("path", "/a/b"), LOG_TEXT ("empty", ""),
                            LOG_TEXT ("odd", "a=b \"c\"\n\x1b[31m"), LOG_NUMBER ("count", -7)));
    assert_string_equal (line + strlen ("2026-11-21T22:45:00.123Z"),
                         " level=info id=THE-ID msg=\"two words\" path=/a/b empty=\"\" "
                         "odd=\"a=b \\\"c\\\"\\n\\u001b[31m\" count=-7\n");
}

static void test_a_line_of_json (void **state)
{
    (void) state;
    log_configure (LOG_LEVEL_INFO, true);
    const char *line = logged (LOG_LEVEL_ERROR, "two words",
                               LOG_FIELDS (LOG_TEXT ("odd", "\"\n\xff"), LOG_NUMBER ("count", 3)));
    assert_true (json_text_is_object (line, strlen (line)));
    assert_non_null (strstr (line, "\"level\":\"error\",\"id\":\"THE-ID\",\"msg\":\"two words\""));
    assert_non_null (strstr (line, "\"count\":3}\n"));
}

static void test_levels_below_the_least_are_silent (void **state)
{
    (void) state;
    log_level_t level;
    log_configure (LOG_LEVEL_WARNING, false);
    assert_string_equal (logged (LOG_LEVEL_INFO, "x", NULL), "");
    assert_string_not_equal (logged (LOG_LEVEL_WARNING, "x", NULL), "");
    assert_true (log_level_parse (&level, "debug"));
    assert_int_equal (level, LOG_LEVEL_DEBUG);
    assert_false (log_level_parse (&level, "DEBUG"));
}

int main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (test_a_line_of_keys_and_values),
        cmocka_unit_test (test_a_line_of_json),
        cmocka_unit_test (test_levels_below_the_least_are_silent),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}
