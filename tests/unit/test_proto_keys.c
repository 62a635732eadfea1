/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Keys, invitations, their texts and their files. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "ids.h"
#include "key_file.h"
#include "keys.h"

/* Made by another implementation, of the bytes 0 to 31 (and 100 to 115). */
static const char PUBLIC_TEXT[] =
    "tmqpk_aaaqeayeaudaocajbifqydiob4ibceqtcqkrmfyydenbwha5dypz6xv3je";
static const char SECRET_TEXT[] =
    "tmqsk_aaaqeayeaudaocajbifqydiob4ibceqtcqkrmfyydenbwha5dyp2rxhzce";
static const char JOIN_TEXT[] = "tmqjoin_aeaacaqdaqcqmbyibefawdanbyhraeiscmkbkfqxdamrugy4dupb6zdfm"
                                "ztwq2lknnwg23tpobyxe43cojxwwzlsfzsxqylnobwgkltdn5wtunjvgyyamigh6i";
static const char JOIN_SECRET[] =
    "7377b6ac672ea957021e831da89b24d663cb4d5b55d7378ccdd56790b3d89afd";

/* The pair of RFC 32's example, as CZMQ writes it. */
static const char CERTIFICATE[] = "#   ****  Generated on 2026-11-22 07:00:00 by CZMQ  ****\n"
                                  "metadata\n"
                                  "    name = \"tester\"\n"
                                  "curve\n"
                                  "    public-key = \"Yne@$w-vo<fVvi]a<NY6T1ed:M$fCG*[IaLV{hID\"\n"
                                  "    secret-key = \"D:)Q[IlAW!ahhC2ac:9*A}h:p?([4%wOTJ%JR%cs\"\n";

static void count_up (uint8_t *bytes, size_t count, uint8_t first)
{
    for (size_t i = 0; i < count; i++)
        bytes[i] = (uint8_t) (first + i);
}

static void assert_says (const char *error, const char *part)
{
    if (strstr (error, part) == NULL)
        fail_msg ("'%s' does not say '%s'", error, part);
}

/* Texts. */

static void test_texts_are_those_of_others (void **state)
{
    (void) state;
    char text[KEY_TEXT_SIZE], error[KEY_ERROR_SIZE];
    key_public_t public_key, read_public;
    key_secret_t secret, read_secret;
    count_up (public_key.bytes, KEY_BYTES, 0);
    count_up (secret.bytes, KEY_BYTES, 0);
    key_text_public (text, &public_key);
    assert_string_equal (text, PUBLIC_TEXT);
    key_text_secret (text, &secret);
    assert_string_equal (text, SECRET_TEXT);
    assert_true (key_parse_public (&read_public, PUBLIC_TEXT, error));
    assert_true (key_public_equal (&read_public, &public_key));
    assert_true (key_parse_secret (&read_secret, SECRET_TEXT, error));
    assert_memory_equal (read_secret.bytes, secret.bytes, KEY_BYTES);
}

static void test_every_mistyped_character_is_named (void **state)
{
    (void) state;
    char text[KEY_TEXT_SIZE], error[KEY_ERROR_SIZE], wanted[64];
    key_public_t public_key, kept;
    key_secret_t secret;
    memset (&public_key, 7, sizeof public_key);
    kept = public_key;
    for (size_t at = 6; at < KEY_TEXT_LENGTH; at++) {
        for (const char *other = "abcdefghijklmnopqrstuvwxyz234567018A _"; *other; other++) {
            strcpy (text, PUBLIC_TEXT);
            if (text[at] == *other)
                continue;
            text[at] = *other;
            assert_false (key_parse_public (&public_key, text, error));
            snprintf (wanted, sizeof wanted, "character %zu is ", at + 1);
            assert_says (error, wanted);
        }
        strcpy (text, SECRET_TEXT);
        text[at] = text[at] == 'a' ? 'b' : 'a';
        assert_false (key_parse_secret (&secret, text, error));
    }
    assert_memory_equal (&public_key, &kept, sizeof kept);
}

static void assert_no_key (const char *text, const char *part)
{
    char error[KEY_ERROR_SIZE] = "";
    key_public_t key;
    assert_false (key_parse_public (&key, text, error));
    assert_false (key_parse_public (&key, text, NULL));
    assert_says (error, part);
    assert_null (strstr (error, SECRET_TEXT + 6));
}

static void test_other_texts_are_refused (void **state)
{
    (void) state;
    char text[KEY_TEXT_SIZE + 8];
    assert_no_key ("", "a public key begins with tmqpk_");
    assert_no_key ("tmqpk", "a public key begins with tmqpk_");
    assert_no_key (SECRET_TEXT, "a public key is needed (tmqpk_…), this is a secret key");
    assert_no_key (JOIN_TEXT, "this is an invitation");
    assert_no_key ("tmqpk_", "a public key has 64 characters, this text has 6");
    snprintf (text, sizeof text, "%.63s", PUBLIC_TEXT);
    assert_no_key (text, "has 63");
    snprintf (text, sizeof text, "%sa", PUBLIC_TEXT);
    assert_no_key (text, "has 65");
    snprintf (text, sizeof text, "tmqpk_%s", SECRET_TEXT + 6); /* the check knows the kind */
    assert_no_key (text, "several characters");
    strcpy (text, PUBLIC_TEXT);
    text[10] = text[20] = 'z';
    assert_no_key (text, "several characters are wrong");
}

/* Keys. */

static void test_a_pair_belongs_together (void **state)
{
    (void) state;
    key_public_t one, other, again;
    key_secret_t one_secret, other_secret;
    key_make (&one, &one_secret);
    key_make (&other, &other_secret);
    assert_false (key_public_equal (&one, &other));
    key_public_of (&again, &one_secret);
    assert_true (key_public_equal (&one, &again));
}

static void test_keys_of_zeromq_are_read (void **state)
{
    (void) state;
    char z85[KEY_Z85_SIZE], error[KEY_ERROR_SIZE], text[sizeof CERTIFICATE];
    key_secret_t secret, plain;
    key_public_t public_key;
    assert_true (key_import (&secret, CERTIFICATE, error));
    key_z85 (z85, secret.bytes);
    assert_string_equal (z85, "D:)Q[IlAW!ahhC2ac:9*A}h:p?([4%wOTJ%JR%cs");
    key_public_of (&public_key, &secret);
    key_z85 (z85, public_key.bytes);
    assert_string_equal (z85, "Yne@$w-vo<fVvi]a<NY6T1ed:M$fCG*[IaLV{hID");
    assert_true (key_import (&plain, "D:)Q[IlAW!ahhC2ac:9*A}h:p?([4%wOTJ%JR%cs", error));
    assert_memory_equal (&plain, &secret, sizeof plain);
    assert_true (key_import (&plain, SECRET_TEXT, error));

    assert_false (key_import (&plain, "D:)Q[IlAW!ahhC2ac:9*A}h:p?([4%wOTJ%JR%c~", error));
    assert_says (error, "Z85");
    assert_false (key_import (&plain, "####################%%%%%%%%%%%%%%%%%%%%", error));
    assert_says (error, "Z85");
    strcpy (text, CERTIFICATE);
    strstr (text, "Yne@")[0] = 'Z';
    assert_false (key_import (&plain, text, error));
    assert_says (error, "does not belong");
    strstr (text, "secret-key")[0] = 'S';
    assert_false (key_import (&plain, text, error));
    assert_says (error, "_secret");
}

/* '=' is a character of Z85, too. */
static void test_a_certificate_of_any_key_is_read (void **state)
{
    (void) state;
    char z85[KEY_Z85_SIZE] = "", public_z85[KEY_Z85_SIZE], text[256], error[KEY_ERROR_SIZE];
    key_secret_t secret, imported;
    key_public_t public_key;
    while (z85[0] != '=') {
        key_make (&public_key, &secret);
        key_z85 (z85, secret.bytes);
    }
    key_z85 (public_z85, public_key.bytes);
    snprintf (text, sizeof text, "curve\n    public-key = \"%s\"\n    secret-key = \"%s\"\n",
              public_z85, z85);
    assert_true (key_import (&imported, text, error));
    assert_memory_equal (&imported, &secret, sizeof secret);
    strstr (text, public_z85)[0] = public_z85[0] == '=' ? '0' : '=';
    assert_false (key_import (&imported, text, error));
    assert_says (error, "does not belong");
}

/* Invitations. */

static void test_an_invitation_is_that_of_others (void **state)
{
    (void) state;
    char text[JOIN_TEXT_SIZE], error[KEY_ERROR_SIZE], digits[2 * KEY_BYTES + 1];
    key_public_t server, public_key, again;
    key_secret_t secret;
    join_t join, parsed;
    count_up (server.bytes, KEY_BYTES, 0);
    assert_true (join_make (&join, &server, "broker.example.com:5560", error));
    count_up (join.seed, JOIN_SEED_BYTES, 100);
    join_text (text, &join);
    assert_string_equal (text, JOIN_TEXT);
    assert_true (join_parse (&parsed, text, error));
    assert_true (key_public_equal (&parsed.server, &server));
    assert_memory_equal (parsed.seed, join.seed, JOIN_SEED_BYTES);
    assert_string_equal (parsed.place, "broker.example.com:5560");
    join_keys (&public_key, &secret, &parsed);
    hex_encode (digits, secret.bytes, KEY_BYTES);
    assert_string_equal (digits, JOIN_SECRET);
    key_public_of (&again, &secret);
    assert_true (key_public_equal (&again, &public_key));
}

static void test_a_mistyped_invitation_is_refused (void **state)
{
    (void) state;
    char text[JOIN_TEXT_SIZE], error[KEY_ERROR_SIZE], wanted[64];
    join_t join;
    for (size_t at = 8; at < strlen (JOIN_TEXT); at++) {
        strcpy (text, JOIN_TEXT);
        text[at] = text[at] == 'q' ? 'r' : 'q';
        assert_false (join_parse (&join, text, error));
        snprintf (wanted, sizeof wanted, "character %zu is wrong", at + 1);
        assert_says (error, wanted);
    }
    for (size_t length = 0; length < strlen (JOIN_TEXT); length++) {
        strcpy (text, JOIN_TEXT);
        text[length] = '\0';
        assert_false (join_parse (&join, text, error));
    }
    assert_false (join_parse (&join, PUBLIC_TEXT, error));
    assert_says (error, "an invitation is needed");
}

static void test_places (void **state)
{
    (void) state;
    static const char *const bad[] = {"",
                                      "host",
                                      ":5560",
                                      "host:",
                                      "host:0",
                                      "host:65536",
                                      "host:5a",
                                      "ho st:1",
                                      "host:1/x",
                                      "host:999999",
                                      "h\033:5560",
                                      "a:1,",
                                      ",a:1",
                                      "a:1,,b:2",
                                      "a:1,b",
                                      "a:1 b:2",
                                      "a:1,b:2,c:3,d:4,e:5"};
    char error[KEY_ERROR_SIZE], place[JOIN_PLACE_BYTES_MAX + 2], text[JOIN_TEXT_SIZE];
    key_public_t server = {{1}};
    join_t join, parsed;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        if (join_make (&join, &server, bad[i], error))
            fail_msg ("'%s' is no place", bad[i]);
        assert_says (error, "HOST:PORT");
    }
    assert_true (join_make (&join, &server, "[2001:db8::1]:5560", error));
    assert_true (join_make (&join, &server, "a:1,b:2,[::1]:3,d:4", error));
    join_text (text, &join);
    assert_true (join_parse (&parsed, text, error));
    assert_string_equal (parsed.place, "a:1,b:2,[::1]:3,d:4");
    memset (place, 'a', sizeof place);
    strcpy (place + JOIN_PLACE_BYTES_MAX - 6, ":65535");
    assert_true (join_make (&join, &server, place, error));
    join_text (text, &join);
    assert_int_equal (strlen (text) + 1, JOIN_TEXT_SIZE);
    assert_true (join_parse (&parsed, text, error));
    assert_string_equal (parsed.place, place);
    strcpy (place + JOIN_PLACE_BYTES_MAX - 5, ":65535");
    assert_false (join_make (&join, &server, place, error));
}

static void test_two_invitations_differ (void **state)
{
    (void) state;
    char error[KEY_ERROR_SIZE];
    key_public_t server = {{1}};
    join_t one, other;
    assert_true (join_make (&one, &server, "h:1", error));
    assert_true (join_make (&other, &server, "h:1", error));
    assert_memory_not_equal (one.seed, other.seed, JOIN_SEED_BYTES);
}

/* Files. */

static char directory[] = "/tmp/tmq-keys-XXXXXX";
static char path[64];

static int make_directory (void **state)
{
    (void) state;
    if (mkdtemp (directory) == NULL)
        return -1;
    snprintf (path, sizeof path, "%s/a.key", directory);
    return 0;
}

static int remove_directory (void **state)
{
    (void) state;
    unlink (path);
    return rmdir (directory); /* fails if something was left behind */
}

static void put_file (const char *text, mode_t mode)
{
    unlink (path);
    const int fd = open (path, O_WRONLY | O_CREAT | O_EXCL, 0600);
    assert_true (fd >= 0);
    assert_int_equal (write (fd, text, strlen (text)), strlen (text));
    assert_int_equal (fchmod (fd, mode), 0);
    close (fd);
}

static void assert_file_refused (int code, const char *part)
{
    char error[KEY_FILE_ERROR_SIZE] = "";
    key_secret_t secret;
    assert_int_equal (key_file_read (&secret, path, error), code);
    assert_says (error, path);
    assert_says (error, part);
    assert_null (strstr (error, SECRET_TEXT + 6));
}

static void test_a_file_is_written_and_read (void **state)
{
    (void) state;
    char error[KEY_FILE_ERROR_SIZE], text[512] = "", public_text[KEY_TEXT_SIZE];
    struct stat status;
    key_public_t public_key;
    key_secret_t secret, other, got;
    key_make (&public_key, &secret);
    key_make (&(key_public_t){{0}}, &other);
    assert_int_equal (key_file_write (path, &secret, false, error), 0);
    assert_int_equal (stat (path, &status), 0);
    assert_int_equal (status.st_mode & 07777, 0600);
    assert_int_equal (key_file_read (&got, path, error), 0);
    assert_memory_equal (&got, &secret, sizeof got);
    FILE *file = fopen (path, "r");
    assert_true (fread (text, 1, sizeof text - 1, file) > 0);
    fclose (file);
    key_text_public (public_text, &public_key);
    assert_int_equal (strncmp (text, "# made 20", 9), 0);
    assert_says (strchr (text, '\n'), public_text);

    assert_int_equal (key_file_write (path, &other, false, error), EEXIST);
    assert_says (error, "is there already");
    assert_int_equal (key_file_read (&got, path, error), 0);
    assert_memory_equal (&got, &secret, sizeof got);
    assert_int_equal (key_file_write (path, &other, true, error), 0);
    assert_int_equal (key_file_read (&got, path, error), 0);
    assert_memory_equal (&got, &other, sizeof got);
    unlink (path);
    assert_int_equal (key_file_write ("/nowhere/a.key", &other, false, error), ENOENT);
}

static void put_aside (char out[160], const char *name, int64_t age_s)
{
    snprintf (out, 160, "%s/%s", directory, name);
    const int fd = open (out, O_WRONLY | O_CREAT | O_EXCL, 0600);
    const struct timespec times[2] = {{time (NULL) - age_s, 0}, {time (NULL) - age_s, 0}};
    assert_true (fd >= 0);
    assert_int_equal (futimens (fd, times), 0);
    close (fd);
}

/* Whoever is killed while it writes leaves a file with a secret. */
static void test_what_a_killed_writer_left_goes (void **state)
{
    (void) state;
    char left[160], young[160], copy[160], other[160], error[KEY_FILE_ERROR_SIZE];
    key_secret_t secret;
    key_make (&(key_public_t){{0}}, &secret);
    put_aside (left, ".a.key.new-aB3dE9", 3600);
    put_aside (young, ".a.key.new-aB3dE8", -3600); /* somebody else is writing */
    put_aside (copy, "a.key.backup", 3600);        /* of the user */
    put_aside (other, ".ab.key.new-aB3dE9", 3600); /* of another file */
    assert_int_equal (key_file_write (path, &secret, true, error), 0);
    assert_int_equal (access (left, F_OK), -1);
    assert_int_equal (unlink (young), 0);
    assert_int_equal (unlink (copy), 0);
    assert_int_equal (unlink (other), 0);
}

static void test_a_second_word_stands_behind_the_key (void **state)
{
    (void) state;
    char rest[KEY_FILE_REST_SIZE], error[KEY_FILE_ERROR_SIZE], text[sizeof SECRET_TEXT + 2];
    key_secret_t secret, got;
    key_make (&(key_public_t){{0}}, &secret);
    assert_int_equal (key_file_write_with (path, "the next key, ", &secret, "soon", true, error),
                      0);
    assert_int_equal (key_file_read_with (&got, rest, path, error), 0);
    assert_memory_equal (&got, &secret, sizeof got);
    assert_string_equal (rest, "soon");
    snprintf (text, sizeof text, "%s\r\n", SECRET_TEXT);
    put_file (text, 0600);
    assert_int_equal (key_file_read_with (&got, rest, path, error), 0);
    assert_string_equal (rest, "");
    unlink (path);
}

static void test_a_file_that_others_may_read_is_refused (void **state)
{
    (void) state;
    char error[KEY_FILE_ERROR_SIZE], chmod_text[96];
    key_secret_t secret;
    snprintf (chmod_text, sizeof chmod_text, "(mode 0644): chmod 600 %s", path);
    put_file (SECRET_TEXT, 0644);
    assert_file_refused (EPERM, "is readable by others");
    assert_file_refused (EPERM, chmod_text);
    put_file (SECRET_TEXT, 0620);
    assert_file_refused (EPERM, "is readable by others");
    put_file (SECRET_TEXT, 0601);
    assert_file_refused (EPERM, "is readable by others");
    put_file (SECRET_TEXT, 0400);
    assert_int_equal (key_file_read (&secret, path, error), 0);
    if (geteuid () == 0) {
        assert_int_equal (chown (path, 65534, 65534), 0);
        assert_file_refused (EPERM, "belongs to uid 65534, not to you");
    }
}

static void test_what_is_no_key_file_is_refused (void **state)
{
    (void) state;
    char text[2 * sizeof SECRET_TEXT + 8];
    unlink (path);
    assert_file_refused (ENOENT, "No such file");
    assert_int_equal (symlink ("/dev/null", path), 0);
    assert_file_refused (EPERM, "symbolic link");
    unlink (path);
    assert_int_equal (mkfifo (path, 0600), 0);
    assert_file_refused (EPERM, "no regular file");
    put_file ("# nothing\n\n", 0600);
    assert_file_refused (EBADMSG, "is no key file");
    snprintf (text, sizeof text, "%s\n%s\n", SECRET_TEXT, SECRET_TEXT);
    put_file (text, 0600);
    assert_file_refused (EBADMSG, "is no key file");
    put_file (PUBLIC_TEXT, 0600);
    assert_file_refused (EBADMSG, ":1: a secret key is needed");
    snprintf (text, sizeof text, "# x\r\n  %s \r\n", SECRET_TEXT);
    text[20] ^= 1;
    put_file (text, 0600);
    assert_file_refused (EBADMSG, ":2: a secret key with a typo");
}

int main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (test_texts_are_those_of_others),
        cmocka_unit_test (test_every_mistyped_character_is_named),
        cmocka_unit_test (test_other_texts_are_refused),
        cmocka_unit_test (test_a_pair_belongs_together),
        cmocka_unit_test (test_keys_of_zeromq_are_read),
        cmocka_unit_test (test_a_certificate_of_any_key_is_read),
        cmocka_unit_test (test_an_invitation_is_that_of_others),
        cmocka_unit_test (test_a_mistyped_invitation_is_refused),
        cmocka_unit_test (test_places),
        cmocka_unit_test (test_two_invitations_differ),
        cmocka_unit_test (test_a_file_is_written_and_read),
        cmocka_unit_test (test_what_a_killed_writer_left_goes),
        cmocka_unit_test (test_a_second_word_stands_behind_the_key),
        cmocka_unit_test (test_a_file_that_others_may_read_is_refused),
        cmocka_unit_test (test_what_is_no_key_file_is_refused),
    };
    return cmocka_run_group_tests (tests, make_directory, remove_directory);
}
