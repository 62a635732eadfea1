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
    told_left_t left;
} lines_t;

static void add (lines_t *lines, const told_left_t *left)
{
    lines->left.absences += left->absences;
    lines->left.news += left->news;
}

static void go (told_t *told, lines_t *lines)
{
    told_left_t left;
    lines->gone += told_gone (told, REASON, now_ms, &left);
    add (lines, &left);
}

static void come (told_t *told, lines_t *lines, bool news)
{
    told_left_t left;
    lines->there += told_there (told, news, now_ms, &left);
    add (lines, &left);
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
    assert_int_equal (lines.left.absences, 0);
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
    assert_true (last.left.absences > 0);
    come (&told, &last, false);
    assert_int_equal (last.there, 1);
    assert_int_equal (lines.gone + lines.left.absences + last.left.absences, TIMES);
}

/* Each new reason of one absence is told, as far as there is no end of them. */
static void test_another_reason_is_told (void **state)
{
    (void) state;
    told_left_t left;
    unsigned lines = 0;
    told_t told = {.gone = false};
    for (uint64_t reason = 1; reason <= 100; reason++, now_ms += TOLD_EACH_MS)
        for (int i = 0; i < 3; i++)
            lines += told_gone (&told, reason, now_ms, &left);
    assert_int_equal (lines, TOLD_REASONS_MAX);
    assert_true (told_there (&told, false, now_ms, &left));
    assert_true (told_gone (&told, 1, now_ms, &left));
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
    assert_int_equal (lines.left.absences, TOLD_BURST);
    come (&told, &lines, false);
    assert_int_equal (lines.there, 1);
}

/* News of what was there all the time are told as often, and are no absences. */
static void test_news_count_apart (void **state)
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
    assert_int_equal (lines.left.news, 2 * TOLD_BURST);
    assert_int_equal (lines.left.absences, 0);
}

/* News at the end of an absence that was not told: both are counted, and both are owed. */
static void test_news_of_an_end_count (void **state)
{
    (void) state;
    told_t told = {.gone = false};
    lines_t lines = {0};
    for (int i = 0; i < TOLD_BURST; i++)
        come (&told, &lines, true);
    go (&told, &lines);
    come (&told, &lines, true);
    assert_int_equal (lines.there, TOLD_BURST);
    now_ms += TOLD_EACH_MS;
    come (&told, &lines, false);
    assert_int_equal (lines.there, TOLD_BURST + 1);
    assert_int_equal (lines.left.news, 1);
    assert_int_equal (lines.left.absences, 1);
}

int main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (test_what_is_rare_is_told_each_time),
        cmocka_unit_test (test_what_is_frequent_is_told_sometimes),
        cmocka_unit_test (test_another_reason_is_told),
        cmocka_unit_test (test_what_lasts_is_told),
        cmocka_unit_test (test_news_count_apart),
        cmocka_unit_test (test_news_of_an_end_count),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}
