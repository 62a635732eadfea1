/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* SIGHUP: what may change does, what may not is named, and a mistake changes nothing. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "support/cmocka_all.h"
#include "support/daemon.h"
#include "support/timing.h"

static char path[DAEMON_PATH_MAX + 16];

static void write_config (const char *text)
{
    FILE *file = fopen (path, "w");
    assert_non_null (file);
    fputs (text, file);
    fclose (file);
}

static void start (daemon_t *broker, const char *text)
{
    daemon_init (broker);
    snprintf (path, sizeof path, "%s/conf", broker->home);
    write_config (text);
    broker->arguments[0] = "-c";
    broker->arguments[1] = path;
    daemon_start (broker);
}

/* How often the log has the text. */
static size_t count_logged (const daemon_t *broker, const char *text)
{
    static char log[256 * 1024];
    size_t count = 0;
    FILE *file = fopen (broker->log, "r");
    assert_non_null (file);
    log[fread (log, 1, sizeof log - 1, file)] = '\0';
    fclose (file);
    for (const char *at = log; (at = strstr (at, text)) != NULL; at++)
        count++;
    return count;
}

/* Sends the signal and waits for one more line with the id. */
static void hang_up (daemon_t *broker, const char *id)
{
    char text[64];
    snprintf (text, sizeof text, "id=%s ", id);
    size_t before = count_logged (broker, text);
    daemon_signal (broker, SIGHUP);
    WAIT_FOR (count_logged (broker, text) > before, TIMING_PATIENCE_MS);
}

static int submit (tmq_client_t *client)
{
    tmq_receipt_t receipt = {0};
    tmq_submit_t task;
    tmq_submit_init (&task);
    task.queue = "work";
    tmq_error_t error = {0};
    return tmq_submit (&receipt, client, &task, TIMING_PATIENCE_MS, &error);
}

/* What follows on threads of their own goes by the new limit, too. */
static bool index_is_stalled (tmq_client_t *client)
{
    tmq_found_list_t *found;
    tmq_search_t search;
    tmq_error_t error = {0};
    tmq_search_init (&search);
    search.text = "word";
    assert_int_equal (tmq_search (&found, client, &search, TIMING_PATIENCE_MS, &error), TMQ_OK);
    bool stalled = strstr (found->stalled, "limits/free_space_min") != NULL;
    tmq_found_list_free (found);
    return stalled;
}

static void test_a_limit_changes_and_comes_back (void **state)
{
    (void) state;
    daemon_t broker;
    start (&broker, "log\n    level = info\n");
    tmq_client_t *client = daemon_client (&broker);
    assert_int_equal (submit (client), TMQ_OK);

    write_config ("limits\n    free_space_min = 1024G\n");
    hang_up (&broker, "RELOADED");
    assert_true (daemon_logged (&broker, "msg=\"takes effect\" key=limits/free_space_min"));
    assert_true (daemon_logged (&broker, "changed=1 later=0"));
    WAIT_FOR (submit (client) == TMQ_STORE_FULL, TIMING_PATIENCE_MS);
    WAIT_FOR (index_is_stalled (client), TIMING_PATIENCE_MS);

    write_config ("");
    hang_up (&broker, "RELOADED");
    WAIT_FOR (submit (client) == TMQ_OK, TIMING_PATIENCE_MS);
    WAIT_FOR (!index_is_stalled (client), TIMING_PATIENCE_MS);
    hang_up (&broker, "RELOADED");
    assert_true (daemon_logged (&broker, "changed=0 later=0"));
    tmq_client_free (&client);
    daemon_stop (&broker);
    daemon_destroy (&broker);
}

static void test_what_needs_a_start_is_named_and_left (void **state)
{
    (void) state;
    daemon_t broker;
    start (&broker, "");
    write_config ("store\n    readers = 3\nlog\n    format = json\n");
    daemon_signal (&broker, SIGHUP);
    WAIT_FOR (daemon_logged (&broker, "\"changed\":1,\"later\":1"), TIMING_PATIENCE_MS);
    assert_true (daemon_logged (&broker, "id=RELOAD msg=\"takes effect at the next start\" "
                                         "key=store/readers"));
    daemon_stop (&broker);
    assert_true (daemon_logged (&broker, "\"id\":\"STOPPED\""));
    daemon_destroy (&broker);
}

static void test_a_mistake_changes_nothing (void **state)
{
    (void) state;
    daemon_t broker;
    char said[DAEMON_PATH_MAX + 100];
    start (&broker, "");
    tmq_client_t *client = daemon_client (&broker);
    static const struct {
        const char *text;
        const char *reason;
    } mistakes[] = {
        {"limits\n    free_space_min = 1024G\n    lniks = 5\n", ":3: limits/lniks is no key"},
        {"limits\n    free_space_min = 1024G\nbroker\n    listen = tcp://example.org:1\n", ":4: "},
        {"limits\n    free_space_min = 10", ":2: limits/free_space_min = 10: "},
        {"limits\n\tfree_space_min = 1024G\n", ":2: a tab in column 1"},
    };
    for (size_t i = 0; i < sizeof mistakes / sizeof mistakes[0]; i++) {
        write_config (mistakes[i].text);
        hang_up (&broker, "RELOAD-REFUSED");
        snprintf (said, sizeof said, "%s%s", path, mistakes[i].reason);
        assert_true (daemon_logged (&broker, said));
    }
    assert_int_equal (unlink (path), 0);
    hang_up (&broker, "RELOAD-REFUSED");
    assert_true (daemon_logged (&broker, "cannot read"));
    assert_int_equal (count_logged (&broker, "key=limits/"), 0);
    assert_int_equal (submit (client), TMQ_OK);
    tmq_client_free (&client);
    daemon_stop (&broker);
    daemon_destroy (&broker);
}

/* The same by a request, of whoever may operate the broker. */
static void test_a_client_may_ask_for_it (void **state)
{
    (void) state;
    daemon_t broker;
    tmq_access_t *access = NULL;
    tmq_error_t error = {0};
    start (&broker, "");
    tmq_client_t *client = daemon_client (&broker);
    write_config ("limits\n    link_reads = 5\n");
    assert_int_equal (tmq_reload (&access, client, TIMING_PATIENCE_MS, &error), TMQ_OK);
    tmq_access_free (access);
    assert_true (daemon_logged (&broker, "msg=\"takes effect\" key=limits/link_reads"));
    write_config ("limits\n    link_reads = five\n");
    assert_int_equal (tmq_reload (&access, client, TIMING_PATIENCE_MS, &error), TMQ_INVALID);
    if (strstr (error.text, ":2: limits/link_reads = five: ") == NULL)
        fail_msg ("said %s", error.text);
    tmq_client_free (&client);
    daemon_stop (&broker);
    daemon_destroy (&broker);
}

/* The next datagram of the broker to the service manager. */
static void expect_state (int fd, const char *wanted)
{
    char text[200] = "";
    ssize_t length = recv (fd, text, sizeof text - 1, 0);
    assert_true (length > 0);
    if (strncmp (text, wanted, strlen (wanted)) != 0)
        fail_msg ("said %s instead of %s", text, wanted);
}

static void test_the_service_manager_is_told (void **state)
{
    (void) state;
    char name[] = "/tmp/taskmq-notify-XXXXXX";
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    struct timeval patience = {TIMING_PATIENCE_MS / 1000, 0};
    daemon_t broker;
    close (mkstemp (name));
    unlink (name);
    snprintf (address.sun_path, sizeof address.sun_path, "%s", name);
    int fd = socket (AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    assert_int_equal (bind (fd, (struct sockaddr *) &address, sizeof address), 0);
    setsockopt (fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    setenv ("NOTIFY_SOCKET", name, 1);
    start (&broker, "");
    unsetenv ("NOTIFY_SOCKET");
    expect_state (fd, "READY=1");
    hang_up (&broker, "RELOADED");
    expect_state (fd, "RELOADING=1\nMONOTONIC_USEC=");
    expect_state (fd, "READY=1");
    write_config ("x");
    hang_up (&broker, "RELOAD-REFUSED");
    expect_state (fd, "RELOADING=1\nMONOTONIC_USEC=");
    expect_state (fd, "READY=1");
    daemon_stop (&broker);
    expect_state (fd, "STOPPING=1");
    daemon_destroy (&broker);
    close (fd);
    unlink (name);
}

int main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (test_a_limit_changes_and_comes_back),
        cmocka_unit_test (test_what_needs_a_start_is_named_and_left),
        cmocka_unit_test (test_a_mistake_changes_nothing),
        cmocka_unit_test (test_a_client_may_ask_for_it),
        cmocka_unit_test (test_the_service_manager_is_told),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}
