/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* The limit of open files, which bounds the connections. A program of its own, because a limit that
 * was lowered cannot be raised again. */
#include <stdio.h>
#include <sys/resource.h>

#include "support/cmocka_all.h"
#include "support/daemon.h"

enum { FILES = 300, FILES_SPARE = 96 /* daemon.c */ };

static void start_with_links (daemon_t *broker, int links)
{
    static char path[DAEMON_PATH_MAX + 16];
    daemon_init (broker);
    snprintf (path, sizeof path, "%s/conf", broker->home);
    FILE *file = fopen (path, "w");
    assert_non_null (file);
    fprintf (file, "limits\n    links = %d\n", links);
    assert_int_equal (fclose (file), 0);
    broker->arguments[0] = "--config";
    broker->arguments[1] = path;
    daemon_start (broker);
}

static void limit_files (rlim_t now, rlim_t most)
{
    const struct rlimit files = {now, most};
    assert_int_equal (setrlimit (RLIMIT_NOFILE, &files), 0);
}

static void test_the_limit_of_open_files_is_raised (void **state)
{
    (void) state;
    daemon_t broker;
    limit_files (FILES / 2, FILES);
    start_with_links (&broker, FILES / 2);
    assert_false (daemon_logged (&broker, "FILES"));
    daemon_stop (&broker);
    daemon_destroy (&broker);
}

static void test_links_are_lowered_to_the_limit_of_open_files (void **state)
{
    (void) state;
    daemon_t broker;
    char links[32];
    start_with_links (&broker, FILES);
    assert_true (daemon_logged (&broker, "id=FILES"));
    snprintf (links, sizeof links, "links=%d ", FILES - FILES_SPARE - (FILES - FILES_SPARE) / 4);
    assert_true (daemon_logged (&broker, links));
    daemon_stop (&broker);
    daemon_destroy (&broker);
}

static void test_too_few_open_files_are_told (void **state)
{
    (void) state;
    daemon_t broker;
    limit_files (2 * FILES_SPARE, 2 * FILES_SPARE);
    daemon_init (&broker);
    daemon_spawn (&broker);
    assert_int_equal (daemon_exit_code (&broker), 1);
    assert_true (daemon_logged (&broker, "too few open files"));
    daemon_destroy (&broker);
}

int main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (test_the_limit_of_open_files_is_raised),
        cmocka_unit_test (test_links_are_lowered_to_the_limit_of_open_files),
        cmocka_unit_test (test_too_few_open_files_are_told),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}
