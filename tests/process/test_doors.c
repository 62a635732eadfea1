/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Keys and doors at the start: what is open, or could have been read by others, ends it with 14. */
#include "support/cmocka_all.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "keys.h"
#include "support/daemon.h"
#include "support/timing.h"

enum { KEYS = 14, PATH_SIZE = DAEMON_PATH_MAX + 64 };

static daemon_t broker;
static char key_file[PATH_SIZE];

static int set_up (void **state)
{
    (void) state;
    daemon_init (&broker);
    broker.arguments[0] = "--listen";
    broker.arguments[1] = "tcp://127.0.0.1:0?curve";
    snprintf (key_file, sizeof key_file, "%s/server.key", broker.data);
    return 0;
}

static int tear_down (void **state)
{
    (void) state;
    unsetenv ("TASKMQ_DOOR_FAULT");
    daemon_destroy (&broker);
    return 0;
}

static void expect_refusal (const char *text)
{
    unlink (broker.log);
    daemon_spawn (&broker);
    assert_int_equal (daemon_exit_code (&broker), KEYS);
    if (!daemon_logged (&broker, text))
        fail_msg ("the log does not say: %s", text);
    assert_false (daemon_logged (&broker, "id=READY"));
}

static void test_an_open_door_ends_the_start (void **state)
{
    (void) state;
    static const struct {
        const char *fault;
        const char *said;
    } faults[] = {
        {"no-domain", "ZeroMQ does not guard it"},
        {"no-enforcement", "ZeroMQ does not guard it"},
        {"no-mechanism", "ZeroMQ does not guard it"},
        {"no-domain-untold", "id=DOOR-OPEN"},
        {"no-handler", "id=DOOR-OPEN"},
        {"lets-in", "lets a key in that nobody knows"},
    };
    broker.preload = TASKMQ_TEST_DOORS;
    for (size_t i = 0; i < sizeof faults / sizeof faults[0]; i++) {
        setenv ("TASKMQ_DOOR_FAULT", faults[i].fault, 1);
        expect_refusal (faults[i].said);
    }
    unsetenv ("TASKMQ_DOOR_FAULT");
    daemon_start (&broker);
    daemon_stop (&broker);
}

static void write_file (const char *text, mode_t mode)
{
    unlink (key_file);
    FILE *file = fopen (key_file, "w");
    assert_non_null (file);
    fputs (text, file);
    assert_int_equal (fclose (file), 0);
    assert_int_equal (chmod (key_file, mode), 0);
}

static void read_file (char *out, size_t size)
{
    FILE *file = fopen (key_file, "r");
    assert_non_null (file);
    out[fread (out, 1, size - 1, file)] = '\0';
    fclose (file);
}

static void test_the_key_is_made_once_and_for_its_user_alone (void **state)
{
    (void) state;
    char first[512];
    char second[512];
    struct stat info;
    daemon_start (&broker);
    daemon_stop (&broker);
    assert_int_equal (stat (key_file, &info), 0);
    assert_int_equal (info.st_mode & 07777, 0600);
    read_file (first, sizeof first);
    assert_non_null (strstr (first, "\ntmqsk_"));
    assert_false (daemon_logged (&broker, "tmqsk_"));
    daemon_start (&broker);
    daemon_stop (&broker);
    read_file (second, sizeof second);
    assert_string_equal (first, second);
}

static void test_a_broker_that_asks_for_no_keys_has_none (void **state)
{
    (void) state;
    broker.arguments[1] = "tcp://127.0.0.1:0";
    daemon_start (&broker);
    daemon_stop (&broker);
    assert_int_not_equal (access (key_file, F_OK), 0);
    assert_true (daemon_logged (&broker, "id=LOOPBACK-OPEN"));
}

/* Where keys are asked for, an address without them would be a way around. */
static void test_an_address_without_keys_beside_listed_keys_is_refused (void **state)
{
    (void) state;
    char path[PATH_SIZE];
    char text[256];
    char public_text[KEY_TEXT_SIZE];
    key_public_t public_key;
    key_secret_t secret;
    key_make (&public_key, &secret);
    key_text_public (public_text, &public_key);
    broker.arguments[0] = "--insecure-listen";
    broker.arguments[1] = "tcp://127.0.0.1:0";
    daemon_start (&broker);
    daemon_stop (&broker);
    assert_true (daemon_logged (&broker, "id=INSECURE"));
    snprintf (path, sizeof path, "%s/access", broker.data);
    snprintf (text, sizeof text, "ci key:%s client(*)\n", public_text);
    FILE *file = fopen (path, "w");
    assert_non_null (file);
    fputs (text, file);
    assert_int_equal (fclose (file), 0);
    assert_int_equal (chmod (path, 0600), 0);
    expect_refusal ("--insecure-listen beside an access file that lists keys");
}

static void test_a_key_that_cannot_be_trusted_is_refused (void **state)
{
    (void) state;
    char good[512];
    char twice[1100];
    char elsewhere[PATH_SIZE];
    static char large[8192];
    daemon_start (&broker);
    daemon_stop (&broker);
    read_file (good, sizeof good);
    write_file (good, 0640);
    expect_refusal ("is readable by others (mode 0640): chmod 600");
    write_file ("", 0600);
    expect_refusal ("is no key file: it needs one line");
    snprintf (twice, sizeof twice, "%s%s", good, good);
    write_file (twice, 0600);
    expect_refusal ("is no key file: it needs one line");
    memset (large, '#', sizeof large - 1);
    write_file (large, 0600);
    expect_refusal ("is over 4096 bytes");
    snprintf (twice, sizeof twice, "%s", good);
    char *letter = strstr (twice, "tmqsk_") + 20;
    *letter = *letter == 'a' ? 'b' : 'a';
    write_file (twice, 0600);
    expect_refusal ("server.key:3: ");
    snprintf (elsewhere, sizeof elsewhere, "%s/elsewhere", broker.home);
    write_file (good, 0600);
    assert_int_equal (rename (key_file, elsewhere), 0);
    assert_int_equal (symlink (elsewhere, key_file), 0);
    expect_refusal ("is a symbolic link");
    assert_false (daemon_logged (&broker, "tmqsk_"));
    assert_int_equal (unlink (key_file), 0);
    assert_int_equal (mkdir (key_file, 0700), 0);
    expect_refusal ("is no regular file");
    assert_int_equal (rmdir (key_file), 0);
}

int main (void)
{
#define TEST(name) cmocka_unit_test_setup_teardown (test_##name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST (an_open_door_ends_the_start),
        TEST (the_key_is_made_once_and_for_its_user_alone),
        TEST (a_broker_that_asks_for_no_keys_has_none),
        TEST (an_address_without_keys_beside_listed_keys_is_refused),
        TEST (a_key_that_cannot_be_trusted_is_refused),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}
