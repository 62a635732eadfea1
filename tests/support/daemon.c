/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

#include "support/daemon.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
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
    PORT_FIRST = 20000, /* below the ephemeral range, so that no client takes it meanwhile */
    PORT_COUNT = 12000,
    PORTS_OF_ONE = 97, /* tests side by side have neighbouring pids, and ports of their own */
    ARGV_MAX = 16
};

const char *daemon_program (const char *name)
{
    static char path[512];
    const char *directory = getenv ("TASKMQ_BIN");
    snprintf (path, sizeof path, "%s/%s", directory != NULL ? directory : "../bin", name);
    return path;
}

static bool port_is_free (int port)
{
    int fd = socket (AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons ((uint16_t) port)};
    address.sin_addr.s_addr = htonl (INADDR_LOOPBACK);
    bool is_free = bind (fd, (struct sockaddr *) &address, sizeof address) == 0;
    close (fd);
    return is_free;
}

int daemon_free_port (void)
{
    static int calls;
    for (int i = 0; i < PORT_COUNT; i++) {
        int port = PORT_FIRST + (getpid () % PORT_COUNT * PORTS_OF_ONE + calls++) % PORT_COUNT;
        if (port_is_free (port)) {
            return port;
        }
    }
    fail_msg ("no free port");
    return 0;
}

void daemon_init (daemon_t *self)
{
    memset (self, 0, sizeof *self);
    const char *parent = getenv ("TMPDIR");
    snprintf (self->home, sizeof self->home, "%s/tmq-XXXXXX", parent != NULL ? parent : "/tmp");
    if (mkdtemp (self->home) == NULL) {
        fail_msg ("cannot make %s: %s", self->home, strerror (errno));
    }
    snprintf (self->data, sizeof self->data, "%s/.taskmq", self->home);
    snprintf (self->log, sizeof self->log, "%s/log", self->home);
    snprintf (self->endpoint, sizeof self->endpoint, "ipc://%s/taskmqd.ipc", self->data);
}

void daemon_init_tcp (daemon_t *self)
{
    daemon_init (self);
    snprintf (self->endpoint, sizeof self->endpoint, "tcp://127.0.0.1:%d", daemon_free_port ());
    self->arguments[0] = "--listen";
    self->arguments[1] = self->endpoint;
}

static const char *program_of (const daemon_t *self)
{
    return self->program != NULL ? self->program : "taskmqd";
}

static void run_broker (const daemon_t *self)
{
    const char *argv[ARGV_MAX] = {program_of (self), "--data", self->data};
    size_t count = 3;
    for (size_t i = 0; i < DAEMON_ARGUMENTS_MAX && self->arguments[i] != NULL; i++) {
        argv[count++] = self->arguments[i];
    }
    prctl (PR_SET_PDEATHSIG, SIGKILL);
    int log = open (self->log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    dup2 (log, STDOUT_FILENO);
    dup2 (log, STDERR_FILENO);
    if (self->preload != NULL) {
        setenv ("LD_PRELOAD", self->preload, 1);
        /* A sanitized broker wants its runtime first, which a preloaded library cannot heed. */
        const char *options = getenv ("ASAN_OPTIONS");
        char extended[512];
        snprintf (extended, sizeof extended, "%s:verify_asan_link_order=0",
                  options != NULL ? options : "");
        setenv ("ASAN_OPTIONS", extended, 1);
    }
    execv (daemon_program (argv[0]), (char *const *) argv);
    dprintf (STDERR_FILENO, "cannot run %s: %s\n", daemon_program (argv[0]), strerror (errno));
    _exit (127);
}

void daemon_spawn (daemon_t *self)
{
    const char *program = daemon_program (program_of (self));
    if (access (program, X_OK) != 0) {
        fail_msg ("cannot run %s: %s; set TASKMQ_BIN to the directory of taskmqd", program,
                  strerror (errno));
    }
    self->pid = fork ();
    if (self->pid == 0) {
        run_broker (self);
    }
    assert_true (self->pid > 0);
}

tmq_client_t *daemon_client (const daemon_t *self)
{
    tmq_client_options_t options;
    tmq_client_options_init (&options);
    options.reconnect_ms_min = 10; /* a broker that comes back is met at once: many are killed */
    options.reconnect_ms_max = 100;
    const char *endpoints[] = {self->endpoint};
    options.endpoints = endpoints;
    options.endpoints_count = 1;
    tmq_client_t *client = NULL;
    tmq_error_t error = {0};
    if (tmq_client_new (&client, &options, &error) != TMQ_OK) {
        fail_msg ("no client for %s: %s", self->endpoint, error.text);
    }
    return client;
}

uint64_t daemon_counter (tmq_client_t *client, const char *name)
{
    tmq_stats_t *stats = NULL;
    uint64_t value = UINT64_MAX;
    assert_int_equal (tmq_stats (&stats, client, TIMING_PATIENCE_MS, NULL), TMQ_OK);
    for (size_t i = 0; i < stats->counters_count; i++)
        if (strcmp (stats->counters[i].name, name) == 0)
            value = stats->counters[i].value;
    tmq_stats_free (stats);
    return value;
}

void daemon_wait_ready (const daemon_t *self)
{
    tmq_client_t *client = daemon_client (self);
    tmq_error_t error = {0};
    if (tmq_ping (client, TIMING_PATIENCE_MS, &error) != TMQ_OK) {
        fail_msg ("taskmqd (see %s) does not answer: %s", self->log, error.text);
    }
    tmq_client_free (&client);
}

void daemon_start (daemon_t *self)
{
    daemon_spawn (self);
    daemon_wait_ready (self);
}

void daemon_signal (const daemon_t *self, int signal)
{
    assert_true (self->pid > 0);
    assert_int_equal (kill (self->pid, signal), 0);
}

static int wait_for_end (daemon_t *self)
{
    int status = 0;
    WAIT_FOR (waitpid (self->pid, &status, WNOHANG) == self->pid, TIMING_PATIENCE_MS);
    self->pid = 0;
    return status;
}

int daemon_end (daemon_t *self, int signal)
{
    daemon_signal (self, signal);
    return wait_for_end (self);
}

static int code_of (const daemon_t *self, int status)
{
    if (!WIFEXITED (status)) {
        fail_msg ("taskmqd (see %s) was ended by signal %d", self->log, WTERMSIG (status));
    }
    return WEXITSTATUS (status);
}

int daemon_exit_code (daemon_t *self)
{
    int status = wait_for_end (self);
    return code_of (self, status);
}

bool daemon_has_ended (daemon_t *self, int *code)
{
    int status;
    if (self->pid == 0 || waitpid (self->pid, &status, WNOHANG) != self->pid) {
        return false;
    }
    self->pid = 0;
    *code = code_of (self, status);
    return true;
}

void daemon_stop (daemon_t *self)
{
    daemon_signal (self, SIGTERM);
    int code = daemon_exit_code (self);
    if (code != 0) {
        fail_msg ("taskmqd (see %s) ended with %d", self->log, code);
    }
}

static int remove_one (const char *path, const struct stat *status, int kind, struct FTW *walk)
{
    (void) status;
    (void) kind;
    (void) walk;
    return remove (path);
}

void daemon_destroy (daemon_t *self)
{
    if (self->pid > 0) {
        daemon_end (self, SIGKILL);
    }
    nftw (self->home, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

bool daemon_logged (const daemon_t *self, const char *text)
{
    FILE *file = fopen (self->log, "r");
    char line[4096];
    bool found = false;
    while (file != NULL && !found && fgets (line, sizeof line, file) != NULL) {
        found = strstr (line, text) != NULL;
    }
    if (file != NULL) {
        fclose (file);
    }
    return found;
}
