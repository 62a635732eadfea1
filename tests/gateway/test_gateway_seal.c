/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Sealed texts: only those of our key, for the purpose, before their end, are opened. */
#include "support/cmocka_all.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "auth/seal.h"

static const char path[] = "test_gateway_seal.key";
static const uint8_t secret[SEAL_KEY_BYTES] = "0123456789abcdef0123456789abcde";

static char *close_text (const seal_t *seal, seal_purpose_t purpose, const char *contents,
                         int64_t expires_ms)
{
    bytes_t out = BYTES_INIT;
    assert_true (seal_close (seal, &out, purpose, contents, strlen (contents), expires_ms));
    assert_non_null (bytes_text (&out));
    return (char *) out.data;
}

static seal_state_t open_text (const seal_t *seal, seal_purpose_t purpose, const char *text,
                               int64_t now_ms, const char *wanted)
{
    bytes_t out = BYTES_INIT;
    const seal_state_t state = seal_open (seal, &out, purpose, text, now_ms);
    if (state == SEAL_GOOD) {
        assert_int_equal (out.length, strlen (wanted));
        assert_memory_equal (out.data, wanted, out.length);
    } else {
        assert_int_equal (out.length, 0);
    }
    bytes_free (&out);
    return state;
}

static void test_what_was_sealed_is_opened (void **state)
{
    seal_t seal;
    (void) state;
    seal_init (&seal, secret);
    char *text = close_text (&seal, SEAL_COOKIE, "ann", 2000);
    assert_int_equal (strspn (text, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
                                    "0123456789-_"),
                      strlen (text));
    assert_int_equal (open_text (&seal, SEAL_COOKIE, text, 1999, "ann"), SEAL_GOOD);
    assert_int_equal (open_text (&seal, SEAL_COOKIE, text, 2000, "ann"), SEAL_EXPIRED);
    assert_int_equal (open_text (&seal, SEAL_MCP_SESSION, text, 1999, "ann"), SEAL_FOREIGN);
    char *again = close_text (&seal, SEAL_COOKIE, "ann", 2000);
    assert_string_not_equal (again, text);
    free (again);
    free (text);
    text = close_text (&seal, SEAL_CURSOR, "", 0);
    assert_int_equal (open_text (&seal, SEAL_CURSOR, text, INT64_MAX, ""), SEAL_GOOD);
    free (text);
}

static void test_nothing_else_is_opened (void **state)
{
    static const char *const wrong[] = {"", "x", "not base64!", "AAAA", "tmq_", "===="};
    static const char letters[] = "AQgw-_=+/ \n\xff\xfe";
    seal_t seal, other;
    (void) state;
    seal_init (&seal, secret);
    char *text = close_text (&seal, SEAL_COOKIE, "ann", 0);
    const size_t length = strlen (text);
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        assert_int_equal (open_text (&seal, SEAL_COOKIE, wrong[i], 0, ""), SEAL_FOREIGN);
    assert_int_equal (open_text (&seal, SEAL_COOKIE, NULL, 0, ""), SEAL_FOREIGN);
    /* Every character counts: also the last one, with its unused bits. */
    for (size_t i = 0; i < length; i++) {
        const char before = text[i];
        for (size_t j = 0; j < sizeof letters - 1; j++) {
            text[i] = letters[j];
            if (letters[j] != before)
                assert_int_equal (open_text (&seal, SEAL_COOKIE, text, 0, ""), SEAL_FOREIGN);
        }
        text[i] = before;
    }
    text[length - 1] = '\0';
    assert_int_equal (open_text (&seal, SEAL_COOKIE, text, 0, ""), SEAL_FOREIGN);
    free (text);
    uint8_t changed[SEAL_KEY_BYTES];
    memcpy (changed, secret, sizeof changed);
    changed[31] ^= 1;
    seal_init (&other, changed);
    text = close_text (&other, SEAL_COOKIE, "ann", 0);
    assert_int_equal (open_text (&seal, SEAL_COOKIE, text, 0, ""), SEAL_FOREIGN);
    free (text);
}

static void test_lengths (void **state)
{
    static uint8_t contents[SEAL_CONTENTS_MAX + 1];
    seal_t seal;
    bytes_t text = BYTES_INIT, back = BYTES_INIT;
    (void) state;
    seal_init (&seal, secret);
    memset (contents, 'x', sizeof contents);
    assert_false (seal_close (&seal, &text, SEAL_CURSOR, contents, sizeof contents, 0));
    assert_int_equal (text.length, 0);
    assert_true (seal_close (&seal, &text, SEAL_CURSOR, contents, SEAL_CONTENTS_MAX, 0));
    assert_int_equal (text.length, SEAL_TEXT_MAX);
    assert_int_equal (seal_open (&seal, &back, SEAL_CURSOR, bytes_text (&text), 0), SEAL_GOOD);
    assert_int_equal (back.length, SEAL_CONTENTS_MAX);
    bytes_append_byte (&text, 'A');
    assert_int_equal (seal_open (&seal, &back, SEAL_CURSOR, bytes_text (&text), 0), SEAL_FOREIGN);
    bytes_free (&text);
    bytes_free (&back);
}

static void write_file (const char *text, mode_t mode)
{
    FILE *file = fopen (path, "w");
    assert_non_null (file);
    fputs (text, file);
    fclose (file);
    assert_int_equal (chmod (path, mode), 0);
}

static void test_the_file_is_made_once (void **state)
{
    char error[KEY_FILE_ERROR_SIZE] = "";
    struct stat status;
    seal_t first, second;
    (void) state;
    unlink (path);
    if (!seal_read (&first, path, error))
        fail_msg ("%s", error);
    assert_int_equal (stat (path, &status), 0);
    assert_int_equal (status.st_mode & 07777, 0600);
    assert_true (seal_read (&second, path, error));
    char *text = close_text (&first, SEAL_COOKIE, "ann", 0);
    assert_int_equal (open_text (&second, SEAL_COOKIE, text, 0, "ann"), SEAL_GOOD);
    unlink (path);
    assert_true (seal_read (&second, path, error));
    assert_int_equal (open_text (&second, SEAL_COOKIE, text, 0, ""), SEAL_FOREIGN);
    free (text);
    unlink (path);
}

static void assert_bad_file (const char *why)
{
    char error[KEY_FILE_ERROR_SIZE] = "";
    seal_t seal;
    assert_false (seal_read (&seal, path, error));
    assert_non_null (strstr (error, path));
    if (strstr (error, why) == NULL)
        fail_msg ("'%s' does not say '%s'", error, why);
}

static void test_bad_files (void **state)
{
    char error[KEY_FILE_ERROR_SIZE] = "";
    seal_t seal;
    (void) state;
    assert_true (seal_read (&seal, path, error));
    assert_int_equal (chmod (path, 0644), 0);
    assert_bad_file ("chmod 600");
    write_file ("", 0600);
    assert_bad_file ("no key file");
    write_file ("tmqsk_abc\n", 0600);
    assert_bad_file (":1:");
    unlink (path);
    assert_int_equal (symlink ("elsewhere", path), 0);
    assert_bad_file ("symbolic link");
    unlink (path);
    assert_int_equal (mkdir (path, 0700), 0);
    assert_bad_file ("no regular file");
    rmdir (path);
    assert_false (seal_read (&seal, "no/such/directory.key", error));
}

int main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (test_what_was_sealed_is_opened),
        cmocka_unit_test (test_nothing_else_is_opened),
        cmocka_unit_test (test_lengths),
        cmocka_unit_test (test_the_file_is_made_once),
        cmocka_unit_test (test_bad_files),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}
