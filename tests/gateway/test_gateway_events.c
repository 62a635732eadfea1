/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* What streams share: the ring of pieces, and the text that says that two filters are the same. */
#include "support/cmocka_all.h"

#include <stdlib.h>
#include <string.h>

#include "events/items.h"
#include "events/key.h"
#include "events/ring.h"

enum { PIECE = 10 };

static void add (ring_t *ring, uint64_t generation, uint64_t seq, unsigned flags)
{
    const ring_piece_t piece = {.generation = generation, .seq = seq, .flags = flags};
    char text[PIECE];
    memset (text, (int) ('a' + seq % 26), sizeof text);
    assert_true (ring_add (ring, &piece, text, sizeof text));
}

static void assert_found (const ring_t *ring, uint64_t generation, uint64_t seq, uint64_t wanted)
{
    uint64_t number;
    assert_true (ring_find (ring, generation, seq, &number));
    assert_int_equal (number, wanted);
}

static void assert_piece (const ring_t *ring, uint64_t number, uint64_t seq)
{
    const uint8_t *data;
    size_t length;
    const ring_piece_t *piece = ring_piece (ring, number, &data, &length);
    assert_non_null (piece);
    assert_int_equal (piece->seq, seq);
    assert_int_equal (length, PIECE);
    assert_int_equal (data[PIECE - 1], 'a' + seq % 26);
}

static void test_places_outlive_what_is_dropped (void **state)
{
    ring_t ring = {.count = 0};
    const uint8_t *data;
    size_t length;
    uint64_t number;
    (void) state;
    ring_begin (&ring, 7, 100);
    assert_found (&ring, 7, 100, 0);
    assert_false (ring_find (&ring, 7, 99, &number)); /* what was before it is not here */
    assert_false (ring_find (&ring, 6, 100, &number));
    for (uint64_t i = 0; i < 100; i++)
        add (&ring, 7, 102 + i * 2, 0);
    assert_found (&ring, 7, 100, 0);
    assert_found (&ring, 7, 102, 1);
    assert_found (&ring, 7, 103, 1); /* between two: the filter let that one not through */
    assert_found (&ring, 7, 300, 100);
    assert_found (&ring, 7, 999, 100);
    assert_piece (&ring, 50, 202);

    ring_trim (&ring, 400);
    assert_int_equal (ring_end (&ring), 100);
    assert_true (ring.bytes.length <= 400);
    assert_true (ring.first > 0);
    for (uint64_t i = ring.first; i < 100; i++)
        assert_piece (&ring, i, 102 + i * 2);
    assert_null (ring_piece (&ring, ring.first - 1, &data, &length));
    assert_null (ring_piece (&ring, 100, &data, &length));
    const uint64_t oldest = 102 + ring.first * 2;
    assert_found (&ring, 7, oldest - 2, ring.first);
    assert_false (ring_find (&ring, 7, oldest - 3, &number));
    add (&ring, 7, 400, 0);
    assert_piece (&ring, 100, 400);
    ring_trim (&ring, 0);
    assert_int_equal (ring.count, 0);
    assert_found (&ring, 7, 400, 101);
    ring_clear (&ring);
}

static void test_another_history (void **state)
{
    ring_t ring = {.count = 0};
    uint64_t number;
    (void) state;
    ring_begin (&ring, 7, 100);
    add (&ring, 7, 101, 0);
    add (&ring, 7, 101, RING_NOTICE);
    assert_found (&ring, 7, 101, 2);
    add (&ring, 8, 0, RING_TURN);
    add (&ring, 8, 1, 0);
    assert_false (ring_find (&ring, 7, 101, &number));
    assert_found (&ring, 8, 0, 3);
    assert_found (&ring, 8, 1, 4);
    ring_trim (&ring, PIECE * 2);
    assert_found (&ring, 8, 1, 4);
    ring_clear (&ring);
}

static void assert_same (const tmq_filter_t *left, const char *left_owner,
                         const tmq_filter_t *right, const char *right_owner, bool same)
{
    char *one = filter_key (left, left_owner);
    char *other = filter_key (right, right_owner);
    assert_non_null (one);
    assert_non_null (other);
    if ((strcmp (one, other) == 0) != same)
        fail_msg ("%s\nand\n%s", one, other);
    free (one);
    free (other);
}

static void test_filters (void **state)
{
    static const char *const ab[] = {"a", "b"};
    static const char *const ba[] = {"b", "a", "b"};
    static const tmq_label_t split[] = {{"a", "b1:c"}};
    static const tmq_label_t joined[] = {{"ab", "1:c"}};
    const tmq_filter_t none = {.queues = NULL};
    const tmq_filter_t one = {.queues = ab, .queues_count = 2};
    const tmq_filter_t other = {.queues = ba, .queues_count = 3};
    const tmq_filter_t sessions = {.sessions = ab, .sessions_count = 2};
    const tmq_filter_t first = {.labels = split, .labels_count = 1};
    const tmq_filter_t second = {.labels = joined, .labels_count = 1};
    (void) state;
    assert_same (&one, NULL, &other, NULL, true);
    assert_same (&one, NULL, &sessions, NULL, false);
    assert_same (&one, NULL, &none, NULL, false);
    assert_same (&first, NULL, &second, NULL, false);
    assert_same (&none, "ann", &none, "bob", false);
    assert_same (&none, "ann", &none, NULL, false);
    assert_same (&one, "ann", &other, "ann", true);
}

static void test_cursors (void **state)
{
    static const char *const wrong[] = {"",     "7",     "-",    "7-",   "-9",
                                        "7-9x", "7-9-1", " 7-9", "+7-9", "7-99999999999999999999"};
    uint64_t generation, seq;
    char text[48];
    (void) state;
    assert_true (cursor_read ("7-9", &generation, &seq));
    assert_int_equal (generation, 7);
    assert_int_equal (seq, 9);
    cursor_write (text, UINT64_MAX, UINT64_MAX);
    assert_true (cursor_read (text, &generation, &seq));
    assert_true (generation == UINT64_MAX && seq == UINT64_MAX);
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        if (cursor_read (wrong[i], &generation, &seq))
            fail_msg ("%s was taken", wrong[i]);
}

int main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (test_places_outlive_what_is_dropped),
        cmocka_unit_test (test_another_history),
        cmocka_unit_test (test_filters),
        cmocka_unit_test (test_cursors),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}
