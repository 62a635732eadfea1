/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

#include "support/postgres.h"

#include <errno.h>
#include <fcntl.h>
#include <libpq-fe.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/cmocka_all.h"
#include "support/timing.h"

enum {
    SKIPPED = 77, /* what ctest counts as skipped */
    SOCKET_PATH_MAX = 107,
    DEFAULT_PORT = 5432,
    LOG_END_BYTES = 400, /* hold the last words of a server that did not start */
    ARGV_MAX = POSTGRES_SETTINGS_MAX + 8,
    PIDS_MAX = 64
};

#define SOCKET_NAME ".s.PGSQL.65535"

/* Where the environment leads libpq and a server (PGHOST, PGPORT and the like) is somebody else's:
 * before any test, since some set such a variable themselves. */
__attribute__ ((constructor)) static void forget_environment (void)
{
    char name[64];
    for (char **at = environ; *at != NULL;) {
        const int length = (int) strcspn (*at, "=");
        if (strncmp (*at, "PG", 2) != 0 || (size_t) length >= sizeof name) {
            at++;
            continue;
        }
        snprintf (name, sizeof name, "%.*s", length, *at);
        unsetenv (name); /* those behind it move up */
    }
}

/* The script. */

static _Noreturn void become_script (const char *const *arguments, const char *log)
{
    char path[512];
    const char *source = getenv ("TASKMQ_SOURCE");
    const char *argv[ARGV_MAX + 2] = {"sh", path};
    snprintf (path, sizeof path, "%s/tests/support/postgres.sh", source != NULL ? source : "../..");
    for (size_t i = 0; i < ARGV_MAX - 1 && arguments[i] != NULL; i++)
        argv[i + 2] = arguments[i];
    if (log != NULL) {
        int fd = open (log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
        dup2 (fd, STDOUT_FILENO);
        dup2 (fd, STDERR_FILENO);
    }
    prctl (PR_SET_PDEATHSIG, SIGKILL);
    unsetenv ("LD_PRELOAD");
    execv ("/bin/sh", (char *const *) argv);
    _exit (127);
}

/* Its exit code. */
static int run_script (const char *const *arguments)
{
    int status = 0;
    pid_t pid = fork ();
    if (pid == 0)
        become_script (arguments, NULL);
    assert_true (pid > 0);
    while (waitpid (pid, &status, 0) < 0)
        assert_int_equal (errno, EINTR);
    return WIFEXITED (status) ? WEXITSTATUS (status) : -1;
}

void postgres_need (void)
{
    int code = run_script ((const char *[]){"needed", NULL});
    if (code != 0)
        exit (code == SKIPPED ? SKIPPED : 1);
}

/* Life. */

static void make_home (postgres_t *self)
{
    memset (self, 0, sizeof *self);
    const char *parent = getenv ("TMPDIR");
    if (parent == NULL || strlen (parent) + sizeof "/tmq-pg-XXXXXX/" SOCKET_NAME > SOCKET_PATH_MAX)
        parent = "/tmp";
    snprintf (self->home, sizeof self->home, "%s/tmq-pg-XXXXXX", parent);
    if (mkdtemp (self->home) == NULL)
        fail_msg ("cannot make %s: %s", self->home, strerror (errno));
}

void postgres_init (postgres_t *self)
{
    make_home (self);
    assert_int_equal (run_script ((const char *[]){"make", self->home, NULL}), 0);
}

static int port_of (const postgres_t *self)
{
    return self->port != 0 ? self->port : DEFAULT_PORT;
}

void postgres_copy (postgres_t *self, const postgres_t *primary)
{
    char port[16];
    snprintf (port, sizeof port, "%d", port_of (primary));
    assert_int_equal (run_script ((const char *[]){"copy", self->home, primary->home, port, NULL}),
                      0);
}

void postgres_init_standby (postgres_t *self, const postgres_t *primary)
{
    make_home (self);
    postgres_copy (self, primary);
}

static int free_port (void)
{
    int fd = socket (AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct sockaddr_in address = {.sin_family = AF_INET};
    socklen_t size = sizeof address;
    address.sin_addr.s_addr = htonl (INADDR_LOOPBACK);
    assert_int_equal (bind (fd, (struct sockaddr *) &address, size), 0);
    assert_int_equal (getsockname (fd, (struct sockaddr *) &address, &size), 0);
    close (fd);
    return ntohs (address.sin_port);
}

void postgres_init_tcp (postgres_t *self)
{
    postgres_init (self);
    self->port = free_port ();
}

static bool is_ready (const postgres_t *self)
{
    char uri[POSTGRES_URI_SIZE];
    postgres_uri (self, "postgres", "postgres", uri);
    return PQping (uri) == PQPING_OK;
}

/* A server that was killed leaves its sessions behind for a moment, and refuses to start beside
 * them. Its last words say so. */
static bool old_sessions_live (const char *log)
{
    char end[LOG_END_BYTES + 1];
    FILE *file = fopen (log, "r");
    assert_non_null (file);
    if (fseek (file, -LOG_END_BYTES, SEEK_END) != 0)
        rewind (file);
    end[fread (end, 1, LOG_END_BYTES, file)] = '\0';
    fclose (file);
    return strstr (end, "pre-existing shared memory block") != NULL;
}

static void launch (postgres_t *self, const char *const *arguments, const char *log)
{
    self->pid = fork ();
    if (self->pid == 0)
        become_script (arguments, log);
    assert_true (self->pid > 0);
}

void postgres_start (postgres_t *self)
{
    char log[POSTGRES_PATH_MAX + 8];
    char port[32];
    const char *arguments[ARGV_MAX] = {"run", self->home};
    size_t count = 2;
    for (size_t i = 0; i < POSTGRES_SETTINGS_MAX && self->settings[i] != NULL; i++)
        arguments[count++] = self->settings[i];
    if (self->port != 0) {
        snprintf (port, sizeof port, "port=%d", self->port);
        arguments[count++] = port;
        arguments[count++] = "listen_addresses=127.0.0.1";
    }
    snprintf (log, sizeof log, "%s/log", self->home);
    launch (self, arguments, log);
    int64_t until_ms = timing_ms () + TIMING_PATIENCE_MS;
    while (!is_ready (self)) {
        bool ended = waitpid (self->pid, NULL, WNOHANG) != 0;
        if (timing_ms () > until_ms || (ended && !old_sessions_live (log)))
            fail_msg ("PostgreSQL (see %s) does not start", log);
        if (ended)
            launch (self, arguments, log);
        timing_pause (5);
    }
}

void postgres_end (postgres_t *self, int signal)
{
    char pid[24];
    snprintf (pid, sizeof pid, "%d", (int) self->pid);
    assert_true (self->pid > 0);
    if (signal == SIGKILL)
        assert_int_equal (run_script ((const char *[]){"kill", pid, NULL}), 0);
    else
        assert_int_equal (kill (self->pid, signal), 0);
    WAIT_FOR (waitpid (self->pid, NULL, WNOHANG) == self->pid, TIMING_PATIENCE_MS);
    self->pid = 0;
}

void postgres_signal (const postgres_t *self, int signal)
{
    char path[96];
    int pids[PIDS_MAX];
    size_t count = 0;
    snprintf (path, sizeof path, "/proc/%d/task/%d/children", (int) self->pid, (int) self->pid);
    FILE *file = fopen (path, "r");
    assert_non_null (file);
    kill (self->pid, signal);
    while (count < PIDS_MAX && fscanf (file, "%d", &pids[count]) == 1)
        kill (pids[count++], signal); /* one may have ended meanwhile */
    fclose (file);
    assert_true (count > 0);
}

void postgres_destroy (postgres_t *self)
{
    if (self->pid > 0)
        postgres_end (self, SIGQUIT);
    if (self->home[0] != '\0')
        assert_int_equal (run_script ((const char *[]){"remove", self->home, NULL}), 0);
    self->home[0] = '\0';
}

/* Use. */

void postgres_uri (const postgres_t *self, const char *role, const char *database,
                   char out[POSTGRES_URI_SIZE])
{
    snprintf (out, POSTGRES_URI_SIZE, "postgresql:///%s?host=%s&port=%d&user=%s", database,
              self->home, port_of (self), role);
}

void postgres_uri_tcp (int port, char out[POSTGRES_URI_SIZE])
{
    snprintf (out, POSTGRES_URI_SIZE, "postgresql://taskmq@127.0.0.1:%d/taskmq", port);
}

char *postgres_sql (const postgres_t *self, const char *sql)
{
    char uri[POSTGRES_URI_SIZE];
    postgres_uri (self, "postgres", "taskmq", uri);
    PGconn *connection = PQconnectdb (uri);
    for (int64_t until_ms = timing_ms () + TIMING_PATIENCE_MS;
         PQstatus (connection) != CONNECTION_OK && PQping (uri) != PQPING_NO_RESPONSE &&
         timing_ms () < until_ms;) { /* it starts, or mends what a kill left */
        timing_pause (5);
        PQreset (connection);
    }
    if (PQstatus (connection) != CONNECTION_OK)
        fail_msg ("%s: %s", uri, PQerrorMessage (connection));
    PGresult *result = PQexec (connection, sql);
    ExecStatusType status = PQresultStatus (result);
    if (status != PGRES_COMMAND_OK && status != PGRES_TUPLES_OK)
        fail_msg ("%s: %s", sql, PQresultErrorMessage (result));
    bool found = PQntuples (result) > 0 && PQnfields (result) > 0;
    char *value = strdup (found ? PQgetvalue (result, 0, 0) : "");
    PQclear (result);
    PQfinish (connection);
    return value;
}

long long postgres_number (const postgres_t *self, const char *sql)
{
    char *text = postgres_sql (self, sql);
    char *end;
    long long value = strtoll (text, &end, 10);
    if (end == text || *end != '\0')
        fail_msg ("%s: '%s' is no number", sql, text);
    free (text);
    return value;
}

/* One for all. */

static postgres_t shared;

static void end_shared (void)
{
    postgres_destroy (&shared);
}

const postgres_t *postgres_shared (void)
{
    if (shared.pid == 0) {
        postgres_init (&shared);
        postgres_start (&shared);
        atexit (end_shared);
    }
    return &shared;
}
