/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Starts that cannot succeed end with a code of their own and one clear line; nothing
 * is deleted. */
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/cmocka_all.h"
#include "support/daemon.h"
#include "support/timing.h"

static void expect_exit (daemon_t *broker, int code, const char *text)
{
    daemon_spawn (broker);
    assert_int_equal (daemon_exit_code (broker), code);
    if (!daemon_logged (broker, text)) {
        fail_msg ("%s does not say %s", broker->log, text);
    }
    daemon_destroy (broker);
}

static void test_port_in_use (void **state)
{
    (void) state;
    daemon_t broker;
    daemon_init_tcp (&broker);
    int port = atoi (strrchr (broker.endpoint, ':') + 1);
    int fd = socket (AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons ((uint16_t) port)};
    address.sin_addr.s_addr = htonl (INADDR_LOOPBACK);
    assert_int_equal (bind (fd, (struct sockaddr *) &address, sizeof address), 0);
    assert_int_equal (listen (fd, 1), 0);
    expect_exit (&broker, 5, broker.endpoint);
    close (fd);
}

static void test_a_host_name_is_no_address (void **state)
{
    (void) state;
    daemon_t broker;
    daemon_init (&broker);
    broker.arguments[0] = "--listen";
    broker.arguments[1] = "tcp://example.org:0";
    expect_exit (&broker, 6, "example.org");
}

static void test_data_directory_is_a_file (void **state)
{
    (void) state;
    daemon_t broker;
    daemon_init (&broker);
    close (open (broker.data, O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
    expect_exit (&broker, 3, broker.data);
}

static void run_sql (const char *directory, const char *sql)
{
    char path[DAEMON_PATH_MAX + 32];
    sqlite3 *database = NULL;
    snprintf (path, sizeof path, "%s/taskmq.db", directory);
    assert_int_equal (sqlite3_open (path, &database), SQLITE_OK);
    assert_int_equal (sqlite3_exec (database, sql, NULL, NULL, NULL), SQLITE_OK);
    sqlite3_close (database);
}

static void test_database_of_another_application (void **state)
{
    (void) state;
    daemon_t broker;
    daemon_init (&broker);
    assert_int_equal (mkdir (broker.data, 0700), 0);
    run_sql (broker.data, "PRAGMA application_id = 42; CREATE TABLE other (a); "
                          "INSERT INTO other VALUES (1)");
    expect_exit (&broker, 7, "taskmq.db");
}

static void test_database_of_a_newer_version (void **state)
{
    (void) state;
    daemon_t broker;
    daemon_init (&broker);
    daemon_start (&broker);
    daemon_stop (&broker);
    run_sql (broker.data, "PRAGMA user_version = 1000");
    expect_exit (&broker, 8, "1000");
}

/* --check with a directory: its exit code and what it printed, at most size - 1 bytes. */
static int check_data (const daemon_t *broker, char *text, size_t size)
{
    char command[3 * DAEMON_PATH_MAX];
    snprintf (command, sizeof command, "%s --check --data %s 2>&1", daemon_program ("taskmqd"),
              broker->data);
    FILE *pipe = popen (command, "re");
    assert_non_null (pipe);
    size_t length = fread (text, 1, size - 1, pipe);
    text[length] = '\0';
    int status = pclose (pipe);
    assert_true (WIFEXITED (status));
    return WEXITSTATUS (status);
}

static void test_check_reads_all_and_makes_nothing (void **state)
{
    (void) state;
    char text[4096];
    daemon_t broker;
    daemon_init (&broker);
    assert_int_equal (check_data (&broker, text, sizeof text), 3);
    assert_int_not_equal (access (broker.data, F_OK), 0);
    daemon_start (&broker);
    assert_int_equal (check_data (&broker, text, sizeof text), 4);
    assert_non_null (strstr (text, "stop it"));
    daemon_stop (&broker);
    assert_int_equal (check_data (&broker, text, sizeof text), 0);
    assert_non_null (strstr (text, "no damage"));
    run_sql (broker.data, "UPDATE meta SET last_pos = last_pos + 1");
    assert_int_equal (check_data (&broker, text, sizeof text), 15);
    assert_non_null (strstr (text, "table meta is damaged"));
    assert_non_null (strstr (text, ": 1 finding\n"));
    daemon_destroy (&broker);
}

/* A socket's path may have 107 bytes; the broker finds a shorter one and tells it in `endpoint`. */
static void test_long_path (void **state)
{
    (void) state;
    daemon_t broker;
    daemon_init (&broker);
    size_t length = strlen (broker.home);
    memset (broker.data, 'd', 150);
    memcpy (broker.data, broker.home, length);
    broker.data[length] = '/';
    broker.data[150] = '\0';
    daemon_spawn (&broker);
    char path[DAEMON_PATH_MAX + 32];
    snprintf (path, sizeof path, "%s/endpoint", broker.data);
    WAIT_FOR (access (path, R_OK) == 0, TIMING_PATIENCE_MS);
    FILE *file = fopen (path, "r");
    assert_non_null (fgets (broker.endpoint, sizeof broker.endpoint, file));
    fclose (file);
    broker.endpoint[strcspn (broker.endpoint, "\n")] = '\0';
    daemon_wait_ready (&broker);
    daemon_stop (&broker);
    daemon_destroy (&broker);
}

static void test_damaged_database_is_refused_and_kept (void **state)
{
    (void) state;
    daemon_t broker;
    daemon_init (&broker);
    daemon_start (&broker);
    daemon_stop (&broker);
    char path[DAEMON_PATH_MAX + 32];
    snprintf (path, sizeof path, "%s/taskmq.db", broker.data);
    int fd = open (path, O_RDWR | O_CLOEXEC);
    uint8_t noise[2048];
    memset (noise, 0xa5, sizeof noise);
    assert_int_equal (pwrite (fd, noise, sizeof noise, 0), sizeof noise);
    struct stat before;
    assert_int_equal (fstat (fd, &before), 0);
    daemon_spawn (&broker);
    int code = daemon_exit_code (&broker);
    assert_true (code == 7 || code == 9);
    struct stat after;
    uint8_t read_back[sizeof noise];
    assert_int_equal (stat (path, &after), 0);
    assert_int_equal (after.st_ino, before.st_ino);
    assert_int_equal (after.st_size, before.st_size);
    assert_int_equal (pread (fd, read_back, sizeof read_back, 0), sizeof read_back);
    assert_memory_equal (read_back, noise, sizeof noise);
    close (fd);
    daemon_destroy (&broker);
}

/* As `git clean -fdx` does it. What is acknowledged from then on would be lost. */
static void test_database_that_is_deleted_ends_the_broker (void **state)
{
    (void) state;
    static const char *const names[] = {"taskmq.db", "journal.log"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        daemon_t broker;
        char path[DAEMON_PATH_MAX + 32];
        daemon_init (&broker);
        daemon_start (&broker);
        snprintf (path, sizeof path, "%s/%s", broker.data, names[i]);
        assert_int_equal (unlink (path), 0);
        assert_int_equal (daemon_exit_code (&broker), 10);
        assert_true (daemon_logged (&broker, "was removed under the running broker"));
        daemon_destroy (&broker);
    }
}

static void test_stop_tells_that_the_database_is_gone (void **state)
{
    (void) state;
    daemon_t broker;
    char path[DAEMON_PATH_MAX + 32];
    daemon_init (&broker);
    daemon_start (&broker);
    snprintf (path, sizeof path, "%s/taskmq.db", broker.data);
    assert_int_equal (unlink (path), 0);
    daemon_signal (&broker, SIGTERM);
    assert_int_equal (daemon_exit_code (&broker), 10);
    daemon_destroy (&broker);
}

int main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (test_port_in_use),
        cmocka_unit_test (test_a_host_name_is_no_address),
        cmocka_unit_test (test_data_directory_is_a_file),
        cmocka_unit_test (test_database_of_another_application),
        cmocka_unit_test (test_database_of_a_newer_version),
        cmocka_unit_test (test_check_reads_all_and_makes_nothing),
        cmocka_unit_test (test_long_path),
        cmocka_unit_test (test_damaged_database_is_refused_and_kept),
        cmocka_unit_test (test_database_that_is_deleted_ends_the_broker),
        cmocka_unit_test (test_stop_tells_that_the_database_is_gone),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}
