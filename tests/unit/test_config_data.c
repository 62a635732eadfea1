/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* The data directory: found upward, made, locked; the file of endpoints; the table of
 * exit codes. */
#include "support/cmocka_all.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "data.h"

static char home[64];
static char error[DATA_ERROR_SIZE];

static int make_home (void **state)
{
    (void) state;
    snprintf (home, sizeof (home), "/tmp/taskmq-test-XXXXXX");
    return mkdtemp (home) != NULL && chdir (home) == 0 ? 0 : -1;
}

static int remove_home (void **state)
{
    (void) state;
    char command[128];
    snprintf (command, sizeof (command), "rm -r %s", home);
    return chdir ("/") == 0 && system (command) == 0 ? 0 : -1;
}

static void make_directory (const char *path)
{
    assert_int_equal (mkdir (path, 0700), 0);
}

static void test_one_is_made_here_and_found_from_below (void **state)
{
    (void) state;
    data_t data;
    char wanted[128];
    struct stat info;
    snprintf (wanted, sizeof (wanted), "%s/.taskmq", home);
    assert_int_equal (data_open (&data, NULL, error), EXITS_OK);
    assert_true (data.made);
    assert_string_equal (data.directory, wanted);
    assert_int_equal (stat (wanted, &info), 0);
    assert_int_equal (info.st_mode & 0777, 0700);
    data_close (&data);

    make_directory ("deep");
    make_directory ("deep/deeper");
    assert_int_equal (chdir ("deep/deeper"), 0);
    assert_int_equal (data_open (&data, NULL, error), EXITS_OK);
    assert_false (data.made);
    assert_string_equal (data.directory, wanted);
    data_close (&data);
    assert_int_equal (chdir (home), 0);
}

static void test_a_named_one_is_taken_as_it_is (void **state)
{
    (void) state;
    data_t data;
    char wanted[128];
    snprintf (wanted, sizeof (wanted), "%s/named", home);
    assert_int_equal (data_open (&data, "named", error), EXITS_OK);
    assert_true (data.made);
    assert_string_equal (data.directory, wanted);
    data_close (&data);
}

static void test_the_second_owner_learns_the_first_ones_pid (void **state)
{
    (void) state;
    data_t first;
    data_t second;
    char pid[32];
    assert_int_equal (data_open (&first, "locked", error), EXITS_OK);
    assert_int_equal (data_open (&second, "locked", error), EXITS_RUNNING);
    snprintf (pid, sizeof (pid), "(pid %ld)", (long) getpid ());
    assert_non_null (strstr (error, pid));
    data_close (&first);
    assert_int_equal (data_open (&second, "locked", error), EXITS_OK);
    data_close (&second);
}

static void test_what_is_in_the_way_is_named (void **state)
{
    (void) state;
    data_t data;
    close (open ("a-file", O_CREAT | O_WRONLY, 0600));
    assert_int_equal (data_open (&data, "a-file", error), EXITS_DATA);
    assert_non_null (strstr (error, "not a directory"));
    assert_int_equal (data_open (&data, "a-file/below", error), EXITS_DATA);
    assert_non_null (strstr (error, "cannot make"));
    assert_int_equal (data_open (&data, "no/such/parent", error), EXITS_DATA);
    make_directory ("blocked");
    make_directory ("blocked/taskmq.lock");
    assert_int_equal (data_open (&data, "blocked", error), EXITS_DATA);
    assert_non_null (strstr (error, "taskmq.lock"));
    static char endless[DATA_PATH_SIZE + 10];
    memset (endless, 'x', sizeof (endless) - 1);
    assert_int_equal (data_open (&data, endless, error), EXITS_DATA);
}

static void test_a_directory_that_others_may_write_in_is_refused (void **state)
{
    (void) state;
    data_t data;
    static const mode_t modes[] = {0770, 0702, 01777};
    make_directory ("shared");
    for (size_t i = 0; i < sizeof (modes) / sizeof (modes[0]); i++) {
        assert_int_equal (chmod ("shared", modes[i]), 0);
        assert_int_equal (data_open (&data, "shared", error), EXITS_DATA);
        assert_non_null (strstr (error, "chmod go-w"));
    }
    assert_int_equal (chmod ("shared", 0755), 0);
    assert_int_equal (data_open (&data, "shared", error), EXITS_OK);
    data_close (&data);
}

static void test_somebody_elses_directory_is_taken_only_by_name (void **state)
{
    (void) state;
    data_t data;
    make_directory ("planted");
    make_directory ("planted/.taskmq");
    if (chown ("planted/.taskmq", 65534, (gid_t) -1) != 0)
        skip (); /* only root may give one away */
    assert_int_equal (chdir ("planted"), 0);
    assert_int_equal (data_open (&data, NULL, error), EXITS_DATA);
    assert_non_null (strstr (error, "belongs to uid 65534"));
    assert_int_not_equal (access (".taskmq/taskmq.lock", F_OK), 0);
    assert_int_equal (data_open (&data, ".taskmq", error), EXITS_OK);
    data_close (&data);
    assert_int_equal (chdir (home), 0);
}

/* Anybody can make /tmp/.taskmq: further up such a one is passed over, and named. */
static void test_a_planted_directory_above_is_passed_over (void **state)
{
    (void) state;
    data_t data;
    make_directory ("above");
    make_directory ("above/.taskmq");
    make_directory ("above/below");
    assert_int_equal (chmod ("above/.taskmq", 0777), 0);
    assert_int_equal (chdir ("above/below"), 0);
    assert_int_equal (data_open (&data, NULL, error), EXITS_OK);
    assert_null (strstr (data.directory, "above/.taskmq")); /* one further up, or a new one */
    assert_non_null (strstr (data.ignored, "above/.taskmq: others may write in it"));
    data_close (&data);
    make_directory (".taskmq");
    assert_int_equal (data_open (&data, NULL, error), EXITS_OK);
    assert_string_equal (data.ignored, "");
    data_close (&data);
    assert_int_equal (chdir (home), 0);
}

static void test_a_repository_ignores_it (void **state)
{
    (void) state;
    data_t data;
    char text[16] = "";
    assert_int_equal (data_open (&data, "ignored", error), EXITS_OK);
    data_close (&data);
    int fd = open ("ignored/.gitignore", O_RDWR);
    assert_int_equal (read (fd, text, sizeof (text) - 1), 2);
    assert_string_equal (text, "*\n");
    /* What somebody made of it stays. */
    assert_int_equal (ftruncate (fd, 0), 0);
    close (fd);
    assert_int_equal (data_open (&data, "ignored", error), EXITS_OK);
    data_close (&data);
    struct stat info;
    assert_int_equal (stat ("ignored/.gitignore", &info), 0);
    assert_int_equal (info.st_size, 0);
}

static void test_no_link_is_followed_for_the_endpoints (void **state)
{
    (void) state;
    data_t data;
    struct stat info;
    const char *uris[] = {"ipc:///one"};
    close (open ("victim", O_CREAT | O_WRONLY, 0600));
    assert_int_equal (data_open (&data, "linked", error), EXITS_OK);
    assert_int_equal (symlink ("../victim", "linked/endpoint.new"), 0);
    assert_int_equal (data_write_endpoints (&data, uris, 1, error), EXITS_OK);
    assert_int_equal (stat ("victim", &info), 0);
    assert_int_equal (info.st_size, 0);
    assert_int_equal (lstat ("linked/endpoint", &info), 0);
    assert_true (S_ISREG (info.st_mode));
    data_close (&data);
}

static void test_endpoints_are_replaced_as_a_whole (void **state)
{
    (void) state;
    data_t data;
    char text[256] = "";
    const char *uris[] = {"ipc:///one", "tcp://127.0.0.1:2"};
    assert_int_equal (data_open (&data, "written", error), EXITS_OK);
    for (size_t count = 2; count > 0; count--) {
        assert_int_equal (data_write_endpoints (&data, uris, count, error), EXITS_OK);
        int fd = open ("written/endpoint", O_RDONLY);
        ssize_t length = read (fd, text, sizeof (text) - 1);
        close (fd);
        text[length > 0 ? length : 0] = '\0';
        assert_string_equal (text, count == 2 ? "ipc:///one\ntcp://127.0.0.1:2\n" : "ipc:///one\n");
        assert_int_not_equal (access ("written/endpoint.new", F_OK), 0);
    }
    data_close (&data);
}

static void test_every_end_has_a_code_of_its_own (void **state)
{
    (void) state;
    static const exits_t codes[] = {
#define X(number, NAME, id, meaning) EXITS_##NAME,
        EXITS_MAP (X)
#undef X
    };
    size_t count = sizeof (codes) / sizeof (codes[0]);
    for (size_t i = 0; i < count; i++) {
        assert_true (strlen (exits_meaning (codes[i])) > 0);
        for (size_t j = 0; j < i; j++) {
            assert_true (codes[i] != codes[j]);
            assert_string_not_equal (exits_id (codes[i]), exits_id (codes[j]));
        }
    }
    assert_int_equal (exits_of_store (STORE_OK), EXITS_OK);
    assert_int_equal (exits_of_store (STORE_ERROR_FOREIGN), EXITS_FOREIGN);
    assert_int_equal (exits_of_store (STORE_ERROR_NEWER), EXITS_NEWER);
}

int main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (test_one_is_made_here_and_found_from_below),
        cmocka_unit_test (test_a_named_one_is_taken_as_it_is),
        cmocka_unit_test (test_the_second_owner_learns_the_first_ones_pid),
        cmocka_unit_test (test_what_is_in_the_way_is_named),
        cmocka_unit_test (test_a_directory_that_others_may_write_in_is_refused),
        cmocka_unit_test (test_somebody_elses_directory_is_taken_only_by_name),
        cmocka_unit_test (test_a_planted_directory_above_is_passed_over),
        cmocka_unit_test (test_a_repository_ignores_it),
        cmocka_unit_test (test_no_link_is_followed_for_the_endpoints),
        cmocka_unit_test (test_endpoints_are_replaced_as_a_whole),
        cmocka_unit_test (test_every_end_has_a_code_of_its_own),
    };
    return cmocka_run_group_tests (tests, make_home, remove_home);
}
