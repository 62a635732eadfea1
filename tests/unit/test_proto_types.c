/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* The texts over the tables, and that PROTOCOL.md shows the same numbers. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "types.h"

static void test_every_status_has_a_text (void **state)
{
    (void) state;
#define X(number, NAME, text, terminal)                                                            \
    assert_string_equal (status_text (number), text);                                              \
    assert_true (status_is_known (number));                                                        \
    assert_int_equal (status_is_terminal (number), terminal);
    TMQ_STATUS_MAP (X)
#undef X
}

static void test_every_kind_has_a_text (void **state)
{
    (void) state;
#define X(number, NAME, text) assert_string_equal (event_kind_text (number), text);
    TMQ_EVENT_MAP (X)
#undef X
#define X(number, NAME, text) assert_string_equal (phase_text (number), text);
    TMQ_PHASE_MAP (X)
#undef X
#define X(number, NAME, text) assert_string_equal (subject_text (number), text);
    TMQ_SUBJECT_MAP (X)
#undef X
}

static void test_every_code_has_name_and_text (void **state)
{
    (void) state;
#define X(number, NAME, text, retriable)                                                           \
    assert_string_equal (code_name (number), #NAME);                                               \
    assert_string_equal (code_text (number), text);                                                \
    assert_int_equal (code_is_retriable (number), retriable);
    TMQ_ERROR_MAP (X)
#undef X
    assert_string_equal (code_name (TMQ_OK), "OK");
    assert_string_equal (code_text (TMQ_OK), "ok");
    assert_false (code_is_retriable (TMQ_OK));
}

static void test_numbers_of_no_table_do_no_harm (void **state)
{
    (void) state;
    const unsigned numbers[] = {0, 24, 63, 1000, UINT32_MAX};
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        assert_string_equal (status_text (numbers[i]), "?");
        assert_string_equal (phase_text (numbers[i]), "?");
        assert_string_equal (event_kind_text (numbers[i]), "?");
        assert_false (status_is_known (numbers[i]));
        assert_false (status_is_terminal (numbers[i]));
    }
    assert_string_equal (code_name (-1), "?");
    assert_string_equal (code_text (63), "?");
    assert_false (code_is_retriable (63));
}

static void test_task_errors (void **state)
{
    (void) state;
#define X(number, NAME, text)                                                                      \
    assert_string_equal (task_error_text (number), text);                                          \
    assert_true (task_error_is_reserved (number) == (number != TMQ_TASK_ERROR_TOO_LARGE));
    TMQ_TASK_ERROR_MAP (X)
#undef X
    assert_null (task_error_text (0));
    assert_true (task_error_is_reserved (-33099));
    assert_false (task_error_is_reserved (-33100));
    assert_false (task_error_is_reserved (-33000));
    assert_false (task_error_is_reserved (INT32_MIN));
}

/* The document. */

static char *read_document (void)
{
    const char *source = getenv ("TASKMQ_SOURCE");
    assert_non_null (source);
    char path[4096];
    snprintf (path, sizeof path, "%s/proto/PROTOCOL.md", source);
    FILE *file = fopen (path, "rb");
    assert_non_null (file);
    enum { SIZE = 1 << 20 };
    char *text = malloc (SIZE);
    assert_non_null (text);
    size_t length = fread (text, 1, SIZE - 1, file);
    fclose (file);
    text[length] = '\0';
    return text;
}

static void assert_row (const char *document, int number, const char *name)
{
    char row[160];
    snprintf (row, sizeof row, "\n| %d | %s |", number, name);
    if (strstr (document, row) == NULL)
        fail_msg ("PROTOCOL.md has no row%s", row);
}

static void test_document_shows_the_numbers (void **state)
{
    (void) state;
    char *document = read_document ();
#define X(number, NAME, text, terminal) assert_row (document, number, "`" text "`");
    TMQ_STATUS_MAP (X)
#undef X
#define X(number, NAME, text) assert_row (document, number, "`" text "`");
    TMQ_PHASE_MAP (X)
    TMQ_EVENT_MAP (X)
    TMQ_SUBJECT_MAP (X)
    TMQ_OUTCOME_MAP (X)
#undef X
#define X(number, NAME, text) assert_row (document, number, #NAME " | " text);
    TMQ_TASK_ERROR_MAP (X)
#undef X
#define X(number, NAME, text, retriable)                                                           \
    if (number < TMQ_UNREACHABLE)                                                                  \
        assert_row (document, number, #NAME " | " text);
    TMQ_ERROR_MAP (X)
#undef X
    free (document);
}

int main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (test_every_status_has_a_text),
        cmocka_unit_test (test_every_kind_has_a_text),
        cmocka_unit_test (test_every_code_has_name_and_text),
        cmocka_unit_test (test_numbers_of_no_table_do_no_harm),
        cmocka_unit_test (test_task_errors),
        cmocka_unit_test (test_document_shows_the_numbers),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}
