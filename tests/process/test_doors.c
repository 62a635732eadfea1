/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Keys and doors at the start: what is open, or could have been read by others, ends it with 14. */
#include "support/cmocka_all.h"

#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
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

/* Whether a broker that crashes leaves its memory on the disk. It begins where it may write. */
static bool leaves_core (void)
{
    char here[PATH_SIZE];
    assert_non_null (getcwd (here, sizeof here));
    assert_int_equal (chdir (broker.data), 0);
    daemon_start (&broker);
    assert_int_equal (chdir (here), 0);
    int status = daemon_end (&broker, SIGSEGV);
    assert_true (WIFSIGNALED (status));
    return WCOREDUMP (status);
}

/* One without a key does, where the system lets it, so the look has something to see. */
static void test_a_broker_with_a_key_leaves_no_core (void **state)
{
    (void) state;
#ifdef __SANITIZE_ADDRESS__
    skip (); /* the sanitizer takes the signal */
#endif
    struct rlimit limit;
    struct rlimit before;
    char uri[] = "tcp://127.0.0.1:0";
    daemon_start (&broker); /* makes its directory */
    daemon_stop (&broker);
    assert_int_equal (getrlimit (RLIMIT_CORE, &before), 0);
    limit = before;
    limit.rlim_cur = limit.rlim_max;
    assert_int_equal (setrlimit (RLIMIT_CORE, &limit), 0);
    assert_false (leaves_core ());
    broker.arguments[1] = uri;
    if (!leaves_core ())
        print_message ("here nobody leaves a core: what this test saw says little\n");
    assert_int_equal (setrlimit (RLIMIT_CORE, &before), 0);
}

static size_t io_threads (void)
{
    char path[64];
    char name[32];
    size_t count = 0;
    snprintf (path, sizeof path, "/proc/%d/task", (int) broker.pid);
    DIR *threads = opendir (path);
    assert_non_null (threads);
    for (const struct dirent *entry; (entry = readdir (threads)) != NULL;) {
        char file[sizeof path + sizeof entry->d_name + 8];
        snprintf (file, sizeof file, "%s/%s/comm", path, entry->d_name);
        FILE *comm = fopen (file, "r");
        if (comm == NULL)
            continue; /* `.` and `..` */
        if (fgets (name, sizeof name, comm) != NULL)
            count += strncmp (name, "ZMQbg/IO/", 9) == 0;
        fclose (comm);
    }
    closedir (threads);
    return count;
}

/* Who speaks without keys has a thread of its own then, and is served. */
static void test_zeromq_has_as_many_threads_as_is_said (void **state)
{
    (void) state;
    setenv ("TASKMQD_BROKER_IO_THREADS", "3", 1);
    daemon_start (&broker);
    unsetenv ("TASKMQD_BROKER_IO_THREADS");
    assert_int_equal (io_threads (), 3);
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

/* A feed is a door, too. */
static void test_an_open_feed_is_told (void **state)
{
    (void) state;
    char path[PATH_SIZE];
    char line[1024];
    bool noted = false;
    broker.arguments[0] = "--feed";
    broker.arguments[1] = "default=tcp://127.0.0.1:0";
    daemon_start (&broker);
    daemon_stop (&broker);
    assert_true (daemon_logged (&broker, "id=LOOPBACK-OPEN"));
    snprintf (path, sizeof path, "%s/audit.jsonl", broker.data);
    FILE *file = fopen (path, "r");
    assert_non_null (file);
    while (fgets (line, sizeof line, file) != NULL)
        noted = noted || strstr (line, "\"detail\":\"feed/default\"") != NULL;
    fclose (file);
    assert_true (noted);
}

static bool has_mode (const char *path, mode_t mode)
{
    struct stat info;
    return stat (path, &info) == 0 && (info.st_mode & 0777) == mode;
}

/* The first access file makes a shared socket one for those whom it lists, without a restart. */
static void test_a_socket_opens_to_users_with_the_access_file (void **state)
{
    (void) state;
    char uri[PATH_SIZE];
    char path[PATH_SIZE];
    snprintf (uri, sizeof uri, "ipc://%s/shared.ipc", broker.home);
    const char *shared = uri + strlen ("ipc://");
    broker.arguments[1] = uri;
    daemon_start (&broker);
    assert_false (has_mode (shared, 0666));
    snprintf (path, sizeof path, "%s/access", broker.data);
    FILE *file = fopen (path, "w");
    assert_non_null (file);
    fprintf (file, "me uid:%u operator\n", (unsigned) geteuid ());
    assert_int_equal (fclose (file), 0);
    assert_int_equal (chmod (path, 0600), 0);
    WAIT_FOR (has_mode (shared, 0666), TIMING_PATIENCE_MS);
    daemon_stop (&broker);
    assert_int_equal (unlink (path), 0);
    /* In a new broker it is open from the start, or not at all. */
    daemon_start (&broker);
    assert_false (has_mode (shared, 0666));
    daemon_stop (&broker);
    /* Nobody comes in by loopback who is not listed there, so nothing is said of it. */
    file = fopen (path, "w");
    assert_non_null (file);
    fprintf (file, "me uid:%u operator\n", (unsigned) geteuid ());
    assert_int_equal (fclose (file), 0);
    assert_int_equal (chmod (path, 0600), 0);
    broker.arguments[1] = "tcp://127.0.0.1:0";
    unlink (broker.log);
    daemon_start (&broker);
    daemon_stop (&broker);
    assert_false (daemon_logged (&broker, "id=LOOPBACK-OPEN"));
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
        TEST (a_broker_with_a_key_leaves_no_core),
        TEST (zeromq_has_as_many_threads_as_is_said),
        TEST (the_key_is_made_once_and_for_its_user_alone),
        TEST (a_broker_that_asks_for_no_keys_has_none),
        TEST (an_open_feed_is_told),
        TEST (a_socket_opens_to_users_with_the_access_file),
        TEST (an_address_without_keys_beside_listed_keys_is_refused),
        TEST (a_key_that_cannot_be_trusted_is_refused),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}
