/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* The server that the other tests here stand on: it keeps what was committed when it is killed, and
 * does not outlive the test. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/cmocka_all.h"
#include "support/postgres.h"
#include "support/timing.h"

static void drop (char *text)
{
    free (text);
}

static void test_a_killed_server_comes_back (void **state)
{
    (void) state;
    postgres_t server;
    postgres_init_tcp (&server);
    server.settings[0] = "work_mem=1234kB";
    postgres_start (&server);
    drop (postgres_sql (&server, "CREATE TABLE kept (n int); INSERT INTO kept VALUES (7)"));
    for (int i = 0; i < 3; i++) {
        postgres_end (&server, SIGKILL);
        postgres_start (&server);
        assert_int_equal (postgres_number (&server, "SELECT n FROM kept"), 7);
    }
    char *setting = postgres_sql (&server, "SHOW work_mem");
    assert_string_equal (setting, "1234kB");
    free (setting);
    char *sync = postgres_sql (&server, "SHOW fsync");
    assert_string_equal (sync, "on");
    free (sync);
    char *role = postgres_sql (&server, "SELECT rolsuper OR rolcreatedb OR rolcreaterole FROM "
                                        "pg_roles WHERE rolname = 'taskmq'");
    assert_string_equal (role, "f");
    free (role);
    postgres_destroy (&server);
    assert_int_equal (access (server.home, F_OK), -1);
}

static bool is_gone (pid_t pid)
{
    return kill (pid, 0) != 0 && errno == ESRCH;
}

/* A child that has a server, tells its id, and is killed. */
static void test_a_server_dies_with_its_test (void **state)
{
    (void) state;
    int told[2];
    pid_t servers[1] = {0};
    assert_int_equal (pipe (told), 0);
    static postgres_t server;
    postgres_init (&server);
    pid_t test = fork ();
    if (test == 0) {
        postgres_start (&server);
        if (write (told[1], &server.pid, sizeof server.pid) > 0)
            pause ();
        _exit (1);
    }
    assert_int_equal (read (told[0], servers, sizeof servers), sizeof servers);
    assert_false (is_gone (servers[0]));
    kill (test, SIGKILL);
    waitpid (test, NULL, 0);
    WAIT_FOR (is_gone (servers[0]), TIMING_PATIENCE_MS);
    close (told[0]);
    close (told[1]);
    postgres_destroy (&server);
}

int main (void)
{
    postgres_need ();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (test_a_killed_server_comes_back),
        cmocka_unit_test (test_a_server_dies_with_its_test),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}
