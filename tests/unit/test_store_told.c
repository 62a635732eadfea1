/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* What comes and goes is told of so often, and what is left out is counted. */
#include "store/told.h"
#include "support/cmocka_all.h"

enum { REASON = 7 };

static int64_t now_ms;

/* It goes and comes; lines that were told, and times that they say were left out. */
typedef struct lines {
    unsigned gone;
    unsigned there;
    uint64_t left_out;
} lines_t;

static void go (told_t *told, lines_t *lines)
{
    uint64_t left_out;
    lines->gone += told_gone (told, REASON, now_ms, &left_out);
    lines->left_out += left_out;
}

static void come (told_t *told, lines_t *lines, bool news)
{
    uint64_t left_out;
    lines->there += told_there (told, news, now_ms, &left_out);
    lines->left_out += left_out;
}

static void test_what_is_rare_is_told_each_time (void **state)
{
    (void) state;
    told_t told = {.gone = false};
    lines_t lines = {0};
    for (int i = 0; i < 100; i++, now_ms += TOLD_EACH_MS) {
        come (&told, &lines, false); /* it was there all the time */
        go (&told, &lines);
        go (&told, &lines); /* and still is */
        come (&told, &lines, false);
    }
    assert_int_equal (lines.gone, 100);
    assert_int_equal (lines.there, 100);
    assert_int_equal (lines.left_out, 0);
}

/* Ten times a second for ten minutes. Each time is told, or counted in a line that is. */
static void test_what_is_frequent_is_told_sometimes (void **state)
{
    (void) state;
    enum { TIMES = 6000, GAP_MS = 100 };
    told_t told = {.gone = false};
    lines_t lines = {0};
    for (int i = 0; i < TIMES; i++, now_ms += GAP_MS) {
        go (&told, &lines);
        come (&told, &lines, false);
    }
    const unsigned most = TOLD_BURST + TIMES * GAP_MS / TOLD_EACH_MS + 1;
    assert_in_range (lines.gone + lines.there, TOLD_BURST, 2 * most);
    now_ms += TOLD_EACH_MS;
    lines_t last = {0};
    come (&told, &last, false); /* it rests, and says what was not told */
    assert_int_equal (last.there, 1);
    assert_true (last.left_out > 0);
    come (&told, &last, false);
    assert_int_equal (last.there, 1);
    assert_int_equal (lines.gone + lines.left_out + last.left_out, TIMES);
}

/* Each new reason of one absence is told, as far as there is no end of them. */
static void test_another_reason_is_told (void **state)
{
    (void) state;
    uint64_t left_out;
    unsigned lines = 0;
    told_t told = {.gone = false};
    for (uint64_t reason = 1; reason <= 100; reason++, now_ms += TOLD_EACH_MS)
        for (int i = 0; i < 3; i++)
            lines += told_gone (&told, reason, now_ms, &left_out);
    assert_int_equal (lines, TOLD_REASONS_MAX);
    assert_true (told_there (&told, false, now_ms, &left_out));
    assert_true (told_gone (&told, 1, now_ms, &left_out));
}

/* What lasts is told late rather than never, and its end with it. */
static void test_what_lasts_is_told (void **state)
{
    (void) state;
    told_t told = {.gone = false};
    lines_t lines = {0};
    for (int i = 0; i < 2 * TOLD_BURST; i++) {
        go (&told, &lines);
        come (&told, &lines, false);
    }
    lines = (lines_t){0};
    go (&told, &lines);
    assert_int_equal (lines.gone, 0);
    now_ms += TOLD_EACH_MS;
    go (&told, &lines);
    assert_int_equal (lines.gone, 1);
    assert_int_equal (lines.left_out, TOLD_BURST);
    come (&told, &lines, false);
    assert_int_equal (lines.there, 1);
}

/* News of what was there all the time count like the rest. */
static void test_news_count (void **state)
{
    (void) state;
    told_t told = {.gone = false};
    lines_t lines = {0};
    for (int i = 0; i < 3 * TOLD_BURST; i++)
        come (&told, &lines, true);
    assert_int_equal (lines.there, TOLD_BURST);
    now_ms += TOLD_EACH_MS;
    come (&told, &lines, true);
    assert_int_equal (lines.there, TOLD_BURST + 1);
    assert_int_equal (lines.left_out, 2 * TOLD_BURST);
}

int main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (test_what_is_rare_is_told_each_time),
        cmocka_unit_test (test_what_is_frequent_is_told_sometimes),
        cmocka_unit_test (test_another_reason_is_told),
        cmocka_unit_test (test_what_lasts_is_told),
        cmocka_unit_test (test_news_count),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}
