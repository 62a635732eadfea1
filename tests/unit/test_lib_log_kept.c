/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* What the library keeps of a program's output until the broker has taken it. */
#include <stdlib.h>
#include <string.h>

#include "parts/log_kept.h"
#include "support/cmocka_all.h"

static core_log_t *kept;

static int setup (void **state)
{
    (void) state;
    kept = core_log_new ();
    return kept == NULL;
}

static int teardown (void **state)
{
    (void) state;
    core_log_free (kept);
    return 0;
}

static void keep (const char *text)
{
    assert_true (core_log_keep (kept, TMQ_LOG_OUT, text, strlen (text)));
}

static core_log_piece_t next (bool all)
{
    core_log_piece_t piece = {0};
    assert_true (core_log_next (kept, all, &piece));
    return piece;
}

static void one_piece_is_under_way_at_a_time (void **state)
{
    (void) state;
    core_log_piece_t piece;
    assert_false (core_log_waits (kept));
    keep ("one");
    assert_true (core_log_waits (kept));
    piece = next (false);
    assert_int_equal (piece.stream, TMQ_LOG_OUT);
    assert_int_equal (piece.length, 3);
    keep ("two");
    assert_false (core_log_waits (kept));
    assert_false (core_log_next (kept, false, &piece));
    assert_true (core_log_keep (kept, TMQ_LOG_ERR, "err", 3));
    assert_int_equal (next (false).stream, TMQ_LOG_ERR);
    core_log_taken (kept, TMQ_LOG_OUT, 3);
    piece = next (false);
    assert_int_equal (piece.offset, 3);
    assert_memory_equal (piece.bytes, "two", 3);
    core_log_taken (kept, TMQ_LOG_OUT, 6);
    core_log_taken (kept, TMQ_LOG_ERR, 3);
    assert_int_equal (core_log_bytes (kept), 0);
    assert_false (core_log_next (kept, true, &piece));
}

static void what_was_under_way_is_sent_again (void **state)
{
    (void) state;
    keep ("one");
    next (false);
    keep ("two");
    core_log_unsent (kept);
    core_log_piece_t piece = next (false);
    assert_int_equal (piece.offset, 0);
    assert_int_equal (piece.length, 6);
}

/* However long the broker makes it wait: what is kept gives way, but no further piece is sent. */
static void the_newest_bytes_stay (void **state)
{
    (void) state;
    char *block = calloc (1, CORE_LOG_KEPT_MAX + 10);
    core_log_piece_t piece;
    keep ("first");
    next (false);
    for (int i = 0; i < 100; i++) {
        assert_true (core_log_keep (kept, TMQ_LOG_OUT, block, 64 * 1024));
        assert_true (core_log_bytes (kept) <= CORE_LOG_KEPT_MAX);
        assert_false (core_log_next (kept, false, &piece));
    }
    uint64_t end = 5 + 100 * 64 * 1024;
    core_log_taken (kept, TMQ_LOG_OUT, 5);
    uint64_t offset = end - CORE_LOG_KEPT_MAX;
    while (core_log_next (kept, true, &piece)) {
        assert_int_equal (piece.offset, offset);
        assert_in_range (piece.length, 1, TMQ_LOG_BYTES_MAX);
        offset += piece.length;
    }
    assert_int_equal (offset, end);
    memset (block, 'x', CORE_LOG_KEPT_MAX + 10);
    assert_true (core_log_keep (kept, TMQ_LOG_OUT, block, CORE_LOG_KEPT_MAX + 10));
    core_log_unsent (kept);
    piece = next (false);
    assert_int_equal (piece.offset, end + 10);
    assert_int_equal (piece.bytes[0], 'x');
    assert_int_equal (core_log_bytes (kept), CORE_LOG_KEPT_MAX);
    free (block);
}

static void after_the_end_nothing_is_kept (void **state)
{
    (void) state;
    core_log_piece_t piece;
    keep ("one");
    core_log_end (kept);
    keep ("two");
    assert_int_equal (core_log_bytes (kept), 0);
    assert_false (core_log_next (kept, true, &piece));
    assert_false (core_log_next (NULL, true, &piece));
    assert_int_equal (core_log_bytes (NULL), 0);
}

int main (void)
{
#define TEST(name) cmocka_unit_test_setup_teardown (name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST (one_piece_is_under_way_at_a_time),
        TEST (what_was_under_way_is_sent_again),
        TEST (the_newest_bytes_stay),
        TEST (after_the_end_nothing_is_kept),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}
