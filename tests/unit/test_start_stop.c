/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* The end of a process that stands in a call which does not come back. */
#include "support/cmocka_all.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "start_stop.h"

enum { NOTICE_MS = 200, NEVER_MS = 3600 * 1000 };

/* The child's part, which ends it. */
typedef void child_fn (void);

static int status_of (child_fn *child)
{
    int status = 0;
    const pid_t pid = fork ();
    assert_true (pid >= 0);
    if (pid == 0) {
        child ();
        _exit (99);
    }
    assert_int_equal (waitpid (pid, &status, 0), pid);
    assert_true (WIFEXITED (status));
    return WEXITSTATUS (status);
}

static void stand_still (start_stop_t watch)
{
    sigset_t stops;
    sigemptyset (&stops);
    sigaddset (&stops, SIGTERM);
    pthread_sigmask (SIG_BLOCK, &stops, NULL);
    if (!start_stop_begin (&watch))
        _exit (98);
    if (!watch.told)
        kill (getpid (), SIGTERM);
    for (;;)
        pause ();
}

static void stand_in_a_start (void)
{
    stand_still ((start_stop_t){.ms = NOTICE_MS});
}

static void stand_in_a_stop (void)
{
    stand_still ((start_stop_t){.told = true, .ms = NOTICE_MS});
}

static void stand_behind_a_failure (void)
{
    stand_still ((start_stop_t){.told = true, .ms = NOTICE_MS, .code = EXITS_LISTEN});
}

static void end_in_time (void)
{
    start_stop_t watch = {.told = true, .ms = NEVER_MS};
    if (!start_stop_begin (&watch) || !start_stop_begin (&watch))
        _exit (98);
    start_stop_end (&watch);
    start_stop_end (&watch);
    _exit (EXITS_FULL);
}

static void the_process_ends_with_its_code (void **state)
{
    (void) state;
    assert_int_equal (status_of (stand_in_a_start), EXITS_OK);
    assert_int_equal (status_of (stand_in_a_stop), EXITS_OK);
    assert_int_equal (status_of (stand_behind_a_failure), EXITS_LISTEN);
}

static void who_ends_in_time_goes_on (void **state)
{
    (void) state;
    assert_int_equal (status_of (end_in_time), EXITS_FULL);
}

int main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (the_process_ends_with_its_code),
        cmocka_unit_test (who_ends_in_time_goes_on),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}
