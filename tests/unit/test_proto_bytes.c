/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* The arena and the byte buffer that messages are written into. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "codec.h"
#include "ids.h"
#include "validate.h"
#include "wire.h"

/* Generated messages have members without const. */
static char *text_of (const char *text)
{
    return (char *) (uintptr_t) text;
}

/* Arena. */

static void test_arena_aligns_and_keeps_to_its_budget (void **state)
{
    (void) state;
    arena_t *arena = arena_new (10000);
    uint8_t *first = arena_alloc (arena, 1);
    uint8_t *second = arena_alloc (arena, 1);
    assert_non_null (first);
    assert_non_null (second);
    assert_int_equal ((uintptr_t) second % _Alignof(max_align_t), 0);
    assert_int_equal (second - first, _Alignof(max_align_t));
    assert_non_null (arena_alloc (arena, 0));
    assert_null (arena_alloc (arena, 10000));
    assert_null (arena_alloc (arena, SIZE_MAX));
    assert_null (arena_alloc (arena, SIZE_MAX - 7));
    assert_null (arena_zalloc (arena, SIZE_MAX / 2, 4));
    assert_non_null (arena_alloc (arena, 5000));
    arena_reset (arena);
    assert_int_equal (arena_used (arena), 0);
    assert_ptr_equal (arena_alloc (arena, 9000), first);
    arena_free (arena);
    arena_free (NULL);
}

static void test_arena_next_message_keeps_the_earlier_ones (void **state)
{
    (void) state;
    enum { PART_BYTES = 90000 };
    arena_t *arena = arena_new (100000);
    char *kept[50];
    for (size_t i = 0; i < 50; i++) {
        arena_next_message (arena);
        kept[i] = arena_alloc (arena, PART_BYTES);
        assert_non_null (kept[i]);
        memset (kept[i], (int) i, PART_BYTES);
        assert_null (arena_alloc (arena, 20000));
    }
    for (size_t i = 0; i < 50; i++) {
        assert_int_equal (kept[i][0], i);
        assert_int_equal (kept[i][PART_BYTES - 1], i);
    }
    arena_free (arena);
}

/* Sizes of all kinds, again and again: what was handed out never overlaps. */
static void test_arena_of_many_shapes (void **state)
{
    (void) state;
    unsigned seed = 4711;
    arena_t *arena = arena_new (1 << 20);
    for (int round = 0; round < 200; round++) {
        uint8_t *parts[64];
        size_t sizes[64];
        for (size_t i = 0; i < 64; i++) {
            sizes[i] = (size_t) rand_r (&seed) % (rand_r (&seed) % 8 == 0 ? 40000 : 300);
            parts[i] = arena_alloc (arena, sizes[i]);
            if (parts[i] != NULL)
                memset (parts[i], (int) i, sizes[i]);
        }
        for (size_t i = 0; i < 64; i++) {
            for (size_t k = 0; parts[i] != NULL && k < sizes[i]; k++)
                assert_int_equal (parts[i][k], i);
        }
        arena_reset (arena);
    }
    arena_free (arena);
}

__attribute__ ((format (printf, 2, 3))) static const char *text_in (arena_t *arena,
                                                                    const char *format, ...)
{
    va_list arguments;
    va_start (arguments, format);
    const char *text = arena_vprintf (arena, format, arguments);
    va_end (arguments);
    return text;
}

static void test_arena_texts (void **state)
{
    (void) state;
    arena_t *arena = arena_new (1024);
    assert_string_equal (text_in (arena, "%s: %d", "queue", 64), "queue: 64");
    const char *cut = text_in (arena, "%600d", 1);
    assert_int_equal (strlen (cut), 511);
    assert_null (text_in (arena, "%600d", 1));
    arena_free (arena);
}

/* Bytes. */

/* What the append functions write is what protobuf-c reads. */
static void test_appended_fields_are_read_back (void **state)
{
    (void) state;
    bytes_t bytes = BYTES_INIT;
    const uint8_t secret[16] = {1, 2, 3};
    bytes_mark_t reply = bytes_open (&bytes, 1);
    bytes_append_uint (&bytes, 1, UINT64_MAX);
    bytes_append_uint (&bytes, 2, 300);
    bytes_append_string (&bytes, 3, "text");
    bytes_append_string (&bytes, 3, NULL);
    bytes_append_uint (&bytes, 4, 0);
    bytes_mark_t task = bytes_open (&bytes, 12);
    bytes_append_blob (&bytes, 1, secret, sizeof secret);
    bytes_mark_t error = bytes_open (&bytes, 29);
    bytes_append_sint (&bytes, 1, INT32_MIN);
    bytes_close (&bytes, error);
    bytes_close (&bytes, task);
    bytes_close (&bytes, reply);
    assert_false (bytes.failed);

    arena_t *arena = arena_new (CODEC_BROKER_ARENA_BYTES);
    codec_report_t report;
    const Taskmq__BrokerMessage *message =
        codec_broker_message (&report, arena, bytes.data, bytes.length);
    assert_non_null (message);
    assert_int_equal (message->n_replies, 1);
    const Taskmq__Reply *read = message->replies[0];
    assert_true (read->id == UINT64_MAX);
    assert_int_equal (read->code, 300);
    assert_string_equal (read->text, "text");
    assert_int_equal (read->body_case, TASKMQ__REPLY__BODY_TASK);
    assert_int_equal (read->task->task_id.len, 16);
    assert_int_equal (read->task->error->code, INT32_MIN);
    arena_free (arena);
    bytes_free (&bytes);
}

/* The plainest way to write a varint, after protobuf's description of its encoding. */
static size_t plain_varint (uint8_t out[10], uint64_t value)
{
    size_t size = 0;
    do {
        out[size++] = (uint8_t) ((value & 0x7f) | (value > 0x7f ? 0x80 : 0));
        value >>= 7;
    } while (value != 0);
    return size;
}

static void check_varint (uint64_t value)
{
    uint8_t plain[10];
    uint64_t back;
    size_t size = plain_varint (plain, value);
    bytes_t bytes = BYTES_INIT;
    bytes_append_varint (&bytes, value);
    assert_int_equal (bytes.length, size);
    assert_memory_equal (bytes.data, plain, size);
    /* As the last thing before the end, cut short, and with something behind it. */
    uint8_t *exact = malloc (size);
    assert_non_null (exact);
    memcpy (exact, plain, size);
    const uint8_t *at = exact;
    assert_true (wire_read_varint (&back, &at, exact + size));
    assert_int_equal (back, value);
    assert_ptr_equal (at, exact + size);
    at = exact;
    assert_false (wire_read_varint (&back, &at, exact + size - 1));
    free (exact);
    bytes_append (&bytes, "\xff\xff\xff\xff\xff\xff\xff\xff", 8);
    at = bytes.data;
    assert_true (wire_read_varint (&back, &at, bytes.data + bytes.length));
    assert_int_equal (back, value);
    assert_ptr_equal (at, bytes.data + size);
    bytes_free (&bytes);
}

static void test_varints_of_every_size (void **state)
{
    (void) state;
    check_varint (0);
    for (unsigned bit = 0; bit < 64; bit++) {
        uint64_t power = UINT64_C (1) << bit;
        check_varint (power);
        check_varint (power - 1);
        check_varint (power | 1);
        check_varint (power | UINT64_C (0x123456789abcdef) >> (63 - bit));
    }
    check_varint (UINT64_MAX);
}

/* Lengths around the sizes of a varint, nested twice. */
static void test_open_and_close_move_what_is_inside (void **state)
{
    (void) state;
    const size_t lengths[] = {0, 1, 124, 125, 126, 127, 128, 16379, 16380, 16383, 16384, 20000};
    char text[20001];
    for (size_t i = 0; i < sizeof lengths / sizeof lengths[0]; i++) {
        memset (text, 'x', sizeof text);
        text[lengths[i]] = '\0';
        bytes_t bytes = BYTES_INIT;
        bytes_mark_t reply = bytes_open (&bytes, 1);
        bytes_mark_t task = bytes_open (&bytes, 12);
        bytes_append_string (&bytes, 24, text);
        bytes_close (&bytes, task);
        bytes_append_uint (&bytes, 1, 7);
        bytes_close (&bytes, reply);
        arena_t *arena = arena_new (CODEC_BROKER_ARENA_BYTES);
        codec_report_t report;
        const Taskmq__BrokerMessage *message =
            codec_broker_message (&report, arena, bytes.data, bytes.length);
        assert_non_null (message);
        assert_string_equal (message->replies[0]->task->meta, text);
        assert_int_equal (message->replies[0]->id, 7);
        arena_free (arena);
        bytes_free (&bytes);
    }
}

static void test_appended_messages_follow_each_other (void **state)
{
    (void) state;
    bytes_t bytes = BYTES_INIT;
    Taskmq__Event event = TASKMQ__EVENT__INIT;
    event.seq = 1234567;
    event.message = text_of ("some text, to have a length");
    bytes_append_message (&bytes, 1, &event.base);
    bytes_append_message (&bytes, 1, &event.base);
    arena_t *arena = arena_new (CODEC_BROKER_ARENA_BYTES);
    codec_report_t report;
    const Taskmq__EventList *list = codec_event_list (&report, arena, bytes.data, bytes.length);
    assert_non_null (list);
    assert_int_equal (list->n_events, 2);
    assert_int_equal (list->events[1]->seq, 1234567);
    arena_free (arena);
    bytes_clear (&bytes);
    bytes_append_packed (&bytes, &event.base);
    assert_int_equal (bytes.length, protobuf_c_message_get_packed_size (&event.base));
    bytes_free (&bytes);
}

static void test_formatted_text_of_any_length (void **state)
{
    char long_text[3000];
    bytes_t bytes = BYTES_INIT;
    (void) state;
    memset (long_text, 'x', sizeof long_text - 1);
    long_text[sizeof long_text - 1] = '\0';
    bytes_append_text (&bytes, "a");
    bytes_append_format (&bytes, "%d-%s", 7, "b");
    assert_string_equal (bytes_text (&bytes), "a7-b");
    bytes_append_format (&bytes, "%s!", long_text);
    assert_int_equal (bytes.length, 4 + sizeof long_text);
    assert_int_equal (bytes.data[bytes.length - 1], '!');
    bytes_append_format (&bytes, "%s", "");
    assert_int_equal (bytes.length, 4 + sizeof long_text);
    bytes_free (&bytes);
}

static void test_a_failed_buffer_takes_no_more (void **state)
{
    (void) state;
    bytes_t bytes = BYTES_INIT;
    bytes_append_text (&bytes, "abc");
    assert_null (bytes_reserve (&bytes, SIZE_MAX));
    assert_true (bytes.failed);
    bytes_append_byte (&bytes, 'd');
    bytes_append_format (&bytes, "%d", 1);
    bytes_append_element (&bytes, 1, "e", 1);
    bytes_close (&bytes, bytes_open (&bytes, 1));
    assert_null (bytes_text (&bytes));
    assert_int_equal (bytes.length, 3);
    bytes_clear (&bytes);
    assert_false (bytes.failed);
    bytes_append_byte (&bytes, 'd');
    assert_string_equal (bytes_text (&bytes), "d");
    bytes_free (&bytes);
}

int main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (test_arena_aligns_and_keeps_to_its_budget),
        cmocka_unit_test (test_arena_next_message_keeps_the_earlier_ones),
        cmocka_unit_test (test_arena_of_many_shapes),
        cmocka_unit_test (test_arena_texts),
        cmocka_unit_test (test_appended_fields_are_read_back),
        cmocka_unit_test (test_varints_of_every_size),
        cmocka_unit_test (test_open_and_close_move_what_is_inside),
        cmocka_unit_test (test_appended_messages_follow_each_other),
        cmocka_unit_test (test_formatted_text_of_any_length),
        cmocka_unit_test (test_a_failed_buffer_takes_no_more),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}
