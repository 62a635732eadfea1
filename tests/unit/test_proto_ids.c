/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Ids, hexadecimal, names, UTF-8. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "ids.h"

/* Ids. */

static void test_id_is_made_of_time_and_randomness (void **state)
{
    (void) state;
    const uint8_t ones[ID_RANDOM_BYTES] = {255, 255, 255, 255, 255, 255, 255, 255, 255, 255};
    const uint8_t zeros[ID_RANDOM_BYTES] = {0};
    char text[ID_TEXT_SIZE];
    tmq_id_t id;
    /* The example of RFC 9562, appendix A.6: Tuesday, 22 February 2022, 14:22:22.00. */
    id_make (&id, INT64_C (0x017f22e279b0), ones);
    id_format (&id, text);
    assert_string_equal (text, "017f22e2-79b0-7fff-bfff-ffffffffffff");
    assert_true (id_is_v7 (&id));
    assert_int_equal (id_time_ms (&id), 1645557742000);
    id_make (&id, INT64_C (0x017f22e279b0), zeros);
    id_format (&id, text);
    assert_string_equal (text, "017f22e2-79b0-7000-8000-000000000000");
    assert_true (id_is_v7 (&id));
}

static void test_later_ids_are_greater (void **state)
{
    (void) state;
    const uint8_t ones[ID_RANDOM_BYTES] = {255, 255, 255, 255, 255, 255, 255, 255, 255, 255};
    const uint8_t zeros[ID_RANDOM_BYTES] = {0};
    tmq_id_t earlier, later;
    id_make (&earlier, 1000, ones);
    id_make (&later, 1001, zeros);
    assert_true (id_compare (&earlier, &later) < 0);
    assert_true (id_compare (&later, &earlier) > 0);
    assert_int_equal (id_compare (&later, &later), 0);
    assert_false (id_equal (&earlier, &later));
}

static void test_version_and_variant_are_checked (void **state)
{
    (void) state;
    tmq_id_t id;
    assert_true (id_parse (&id, "017f22e2-79b0-7cc3-98c4-dc0c0c07398f"));
    assert_true (id_is_v7 (&id));
    const char *others[] = {
        "017f22e2-79b0-4cc3-98c4-dc0c0c07398f", "017f22e2-79b0-8cc3-98c4-dc0c0c07398f",
        "017f22e2-79b0-7cc3-18c4-dc0c0c07398f", "017f22e2-79b0-7cc3-d8c4-dc0c0c07398f",
        "00000000-0000-0000-0000-000000000000", "ffffffff-ffff-ffff-ffff-ffffffffffff",
    };
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        assert_true (id_parse (&id, others[i]));
        assert_false (id_is_v7 (&id));
    }
}

static void test_id_text_goes_back_and_forth (void **state)
{
    (void) state;
    char text[ID_TEXT_SIZE];
    tmq_id_t id;
    assert_true (id_parse (&id, "017F22E2-79b0-7CC3-98c4-DC0C0C07398f"));
    id_format (&id, text);
    assert_string_equal (text, "017f22e2-79b0-7cc3-98c4-dc0c0c07398f");
    assert_false (id_is_zero (&id));
    assert_true (id_parse (&id, "00000000-0000-0000-0000-000000000000"));
    assert_true (id_is_zero (&id));
}

static void test_bad_id_texts_are_refused (void **state)
{
    (void) state;
    const char *good = "017f22e2-79b0-7cc3-98c4-dc0c0c07398f";
    tmq_id_t id = {{42}};
    for (size_t length = 0; length < ID_TEXT_LENGTH; length++) {
        char cut[ID_TEXT_SIZE] = {0};
        memcpy (cut, good, length);
        assert_false (id_parse (&id, cut));
    }
    for (size_t i = 0; i < ID_TEXT_LENGTH; i++) {
        char bad[ID_TEXT_SIZE];
        memcpy (bad, good, sizeof bad);
        bad[i] = good[i] == '-' ? '0' : '-';
        assert_false (id_parse (&id, bad));
        bad[i] = 'g';
        assert_false (id_parse (&id, bad));
        bad[i] = ' ';
        assert_false (id_parse (&id, bad));
    }
    assert_false (id_parse (&id, "017f22e2-79b0-7cc3-98c4-dc0c0c07398f0"));
    assert_false (id_parse (&id, "017f22e279b07cc398c4dc0c0c07398f"));
    assert_false (id_parse (&id, "{017f22e2-79b0-7cc3-98c4-dc0c0c07398f}"));
    assert_int_equal (id.bytes[0], 42);
}

static void test_id_from_bytes_wants_sixteen (void **state)
{
    (void) state;
    const uint8_t bytes[17] = {1, 2, 3};
    tmq_id_t id = {{9}};
    assert_false (id_from_bytes (&id, bytes, 15));
    assert_false (id_from_bytes (&id, bytes, 17));
    assert_false (id_from_bytes (&id, NULL, 0));
    assert_int_equal (id.bytes[0], 9);
    assert_true (id_from_bytes (&id, bytes, 16));
    assert_int_equal (id.bytes[1], 2);
}

static void test_suffixes (void **state)
{
    (void) state;
    char suffix[ID_SUFFIX_SIZE];
    tmq_id_t id;
    assert_true (id_parse (&id, "017f22e2-79b0-7cc3-98c4-dc0c0c07398f"));
    assert_true (id_suffix_parse (suffix, "07398F"));
    assert_string_equal (suffix, "07398f");
    assert_true (id_ends_with (&id, suffix));
    assert_true (id_suffix_parse (suffix, "98c4-dc0c0c07398f"));
    assert_true (id_ends_with (&id, suffix));
    assert_true (id_suffix_parse (suffix, "017f22e2-79b0-7cc3-98c4-dc0c0c07398f"));
    assert_true (id_ends_with (&id, suffix));
    assert_true (id_suffix_parse (suffix, "07398e"));
    assert_false (id_ends_with (&id, suffix));

    assert_false (id_suffix_parse (suffix, ""));
    assert_false (id_suffix_parse (suffix, "7398f"));
    assert_false (id_suffix_parse (suffix, "------"));
    assert_false (id_suffix_parse (suffix, "07398g"));
    assert_false (id_suffix_parse (suffix, "07398f 7"));
    assert_false (id_suffix_parse (suffix, "0017f22e2-79b0-7cc3-98c4-dc0c0c07398f"));
    assert_false (id_suffix_is_valid ("07398F"));
    assert_false (id_suffix_is_valid ("7398f"));
    assert_true (id_suffix_is_valid ("07398f"));
}

static void test_hexadecimal (void **state)
{
    (void) state;
    const uint8_t bytes[] = {0x00, 0x7f, 0x80, 0xff};
    uint8_t back[4];
    char text[9];
    hex_encode (text, bytes, sizeof bytes);
    assert_string_equal (text, "007f80ff");
    assert_true (hex_decode (back, sizeof back, "007F80Ff"));
    assert_memory_equal (back, bytes, sizeof bytes);
    assert_false (hex_decode (back, sizeof back, "007f80f"));
    assert_false (hex_decode (back, sizeof back, "007f80ff0"));
    assert_false (hex_decode (back, sizeof back, "007f80fg"));
    assert_false (hex_decode (back, sizeof back, ""));
    assert_true (hex_decode (back, 0, ""));
}

/* Text. */

static void test_names (void **state)
{
    (void) state;
    char longest[TMQ_NAME_LENGTH_MAX + 2];
    memset (longest, 'q', sizeof longest);
    longest[TMQ_NAME_LENGTH_MAX] = '\0';
    assert_true (name_is_valid (longest));
    longest[TMQ_NAME_LENGTH_MAX] = 'q';
    longest[TMQ_NAME_LENGTH_MAX + 1] = '\0';
    assert_false (name_is_valid (longest));
    assert_true (name_is_valid ("a"));
    assert_true (name_is_valid ("Az09._-"));
    assert_true (name_is_valid ("..")); /* names are never paths */
    assert_false (name_is_valid (""));
    assert_false (name_is_valid ("a b"));
    assert_false (name_is_valid ("a/b"));
    assert_false (name_is_valid ("a\n"));
    assert_false (name_is_valid ("\xc3\xa4"));
    for (int c = 1; c < 256; c++) {
        const char text[2] = {(char) c, '\0'};
        bool good = (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') ||
                    c == '.' || c == '_' || c == '-';
        assert_int_equal (name_is_valid (text), good);
    }
}

#define VALID(text) assert_true (utf8_is_valid (text, sizeof text - 1))
#define INVALID(text) assert_false (utf8_is_valid (text, sizeof text - 1))

static void test_utf8 (void **state)
{
    (void) state;
    VALID ("");
    VALID ("plain, longer than a word of eight");
    VALID ("\x01\x7f");
    VALID ("\xc2\x80 \xdf\xbf \xe0\xa0\x80 \xed\x9f\xbf \xee\x80\x80 \xef\xbf\xbf");
    VALID ("\xf0\x90\x80\x80 \xf4\x8f\xbf\xbf");
    INVALID ("\0");
    INVALID ("1234567\0");
    INVALID ("12345678\0");
    INVALID ("\x80");
    INVALID ("\xbf");
    INVALID ("\xc0\x80");         /* overlong NUL */
    INVALID ("\xc1\xbf");         /* overlong */
    INVALID ("\xe0\x9f\xbf");     /* overlong */
    INVALID ("\xf0\x8f\xbf\xbf"); /* overlong */
    INVALID ("\xed\xa0\x80");     /* surrogate */
    INVALID ("\xed\xbf\xbf");     /* surrogate */
    INVALID ("\xf4\x90\x80\x80"); /* above U+10FFFF */
    INVALID ("\xf5\x80\x80\x80");
    INVALID ("\xff");
    INVALID ("\xc3");
    INVALID ("\xe2\x82");
    INVALID ("\xf0\x9f\x92");
    INVALID ("\xc3(");
    INVALID ("12345678\xe2\x82(");
}

/* At every place of a long text, so in the word-wise part and behind it. */
static void test_utf8_finds_one_bad_byte_anywhere (void **state)
{
    (void) state;
    char text[41];
    for (size_t i = 0; i < sizeof text; i++) {
        memset (text, 'x', sizeof text);
        assert_true (utf8_is_valid (text, sizeof text));
        text[i] = '\0';
        assert_false (utf8_is_valid (text, sizeof text));
        text[i] = '\x80';
        assert_false (utf8_is_valid (text, sizeof text));
        text[i] = '\xff';
        assert_false (utf8_is_valid (text, sizeof text));
        text[i] = '\x01';
        assert_true (utf8_is_valid (text, sizeof text));
    }
}

int main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (test_id_is_made_of_time_and_randomness),
        cmocka_unit_test (test_later_ids_are_greater),
        cmocka_unit_test (test_version_and_variant_are_checked),
        cmocka_unit_test (test_id_text_goes_back_and_forth),
        cmocka_unit_test (test_bad_id_texts_are_refused),
        cmocka_unit_test (test_id_from_bytes_wants_sixteen),
        cmocka_unit_test (test_suffixes),
        cmocka_unit_test (test_hexadecimal),
        cmocka_unit_test (test_names),
        cmocka_unit_test (test_utf8),
        cmocka_unit_test (test_utf8_finds_one_bad_byte_anywhere),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}
