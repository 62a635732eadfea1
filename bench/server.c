/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Server processes of the bench: start, look at, stop. */

#include "bench.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum {
    START_SECONDS_MAX = 30,
    STOP_SECONDS_MAX = 5,
    PORT_FIRST = 20000, /* below the ephemeral range, so that no client takes it meanwhile */
    PORT_LAST = 32767
};

static void nap (long ms)
{
    struct timespec pause = {ms / 1000, ms % 1000 * 1000000};
    nanosleep (&pause, NULL);
}

bool program_find (const char *name, char path[BENCH_PATH_MAX])
{
    char own[BENCH_PATH_MAX];
    ssize_t length = readlink ("/proc/self/exe", own, sizeof own - 1);
    if (length > 0) {
        own[length] = '\0';
        char *slash = strrchr (own, '/');
        *slash = '\0';
        if (snprintf (path, BENCH_PATH_MAX, "%s/%s", own, name) < BENCH_PATH_MAX &&
            access (path, X_OK) == 0)
            return true;
    }
    static const char *const places[] = {"/usr/local/bin", "/usr/bin", "/usr/sbin", "/sbin"};
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        if (snprintf (path, BENCH_PATH_MAX, "%s/%s", places[i], name) < BENCH_PATH_MAX &&
            access (path, X_OK) == 0)
            return true;
    }
    return false;
}

void server_spawn (server_t *self, char *const argv[])
{
    char path[BENCH_PATH_MAX];
    if (!program_find (argv[0], path))
        die ("%s is not installed", argv[0]);
    char log[BENCH_PATH_MAX + 8];
    snprintf (log, sizeof log, "%s/log", self->directory);
    pid_t pid = fork ();
    if (pid < 0)
        die ("fork: %s", strerror (errno));
    if (pid == 0) {
        prctl (PR_SET_PDEATHSIG, SIGKILL);
        int output = open (log, O_WRONLY | O_CREAT | O_APPEND, 0600);
        int input = open ("/dev/null", O_RDONLY);
        if (output < 0 || input < 0 || dup2 (input, 0) < 0 || dup2 (output, 1) < 0 ||
            dup2 (output, 2) < 0 || chdir (self->directory) < 0)
            _exit (126);
        execv (path, argv);
        _exit (127);
    }
    self->pid = pid;
}

void server_stop (server_t *self)
{
    if (self->pid <= 0)
        return;
    kill (self->pid, SIGTERM);
    for (int i = 0; i < STOP_SECONDS_MAX * 100; i++) {
        if (waitpid (self->pid, NULL, WNOHANG) != 0) {
            self->pid = 0;
            return;
        }
        nap (10);
    }
    kill (self->pid, SIGKILL);
    waitpid (self->pid, NULL, 0);
    self->pid = 0;
}

/* What /proc says of one process; false if it has gone. */
typedef struct process {
    pid_t parent;
    uint64_t ticks; /* its own CPU time and that of children that have ended */
    uint64_t pages; /* resident */
} process_t;

static bool process_read (pid_t pid, process_t *out)
{
    char path[64];
    snprintf (path, sizeof path, "/proc/%d/stat", (int) pid);
    FILE *file = fopen (path, "r");
    if (!file)
        return false;
    char line[1024];
    char *got = fgets (line, sizeof line, file);
    fclose (file);
    /* The name in parentheses may hold anything; the fields behind it are counted (proc(5)). */
    char *at = got ? strrchr (line, ')') : NULL;
    if (!at)
        return false;
    int parent;
    unsigned long times[4];
    unsigned long pages;
    int fields = sscanf (at + 2,
                         "%*c %d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu %lu %lu %*d %*d %*d "
                         "%*d %*u %*u %lu",
                         &parent, &times[0], &times[1], &times[2], &times[3], &pages);
    if (fields != 6)
        die ("%s: not understood", path);
    *out = (process_t){parent, times[0] + times[1] + times[2] + times[3], pages};
    return true;
}

static bool descends (pid_t pid, pid_t ancestor)
{
    process_t process;
    while (pid > 1 && pid != ancestor) {
        if (!process_read (pid, &process))
            return false;
        pid = process.parent;
    }
    return pid == ancestor;
}

/* Sums over the server and everything it started. */
static process_t server_sum (const server_t *self)
{
    process_t sum = {0};
    DIR *all = opendir ("/proc");
    if (!all)
        die ("/proc: %s", strerror (errno));
    for (struct dirent *entry; (entry = readdir (all));) {
        pid_t pid = (pid_t) strtol (entry->d_name, NULL, 10);
        process_t process;
        if (pid > 0 && descends (pid, self->pid) && process_read (pid, &process)) {
            sum.ticks += process.ticks;
            sum.pages += process.pages;
        }
    }
    closedir (all);
    return sum;
}

uint64_t server_cpu_us (const server_t *self)
{
    return server_sum (self).ticks * (1000000u / (uint64_t) sysconf (_SC_CLK_TCK));
}

uint64_t server_rss_bytes (const server_t *self)
{
    return server_sum (self).pages * (uint64_t) sysconf (_SC_PAGESIZE);
}

static bool port_connects (int port)
{
    int fd = socket (AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        die ("socket: %s", strerror (errno));
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons ((uint16_t) port)};
    address.sin_addr.s_addr = htonl (INADDR_LOOPBACK);
    bool connected = connect (fd, (struct sockaddr *) &address, sizeof address) == 0;
    close (fd);
    return connected;
}

static bool port_binds (int port)
{
    int fd = socket (AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        die ("socket: %s", strerror (errno));
    int on = 1;
    setsockopt (fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons ((uint16_t) port)};
    address.sin_addr.s_addr = htonl (INADDR_LOOPBACK);
    bool bound = bind (fd, (struct sockaddr *) &address, sizeof address) == 0;
    close (fd);
    return bound;
}

int server_free_port (void)
{
    static int next;
    if (next == 0)
        next = PORT_FIRST + (int) (getpid () % (PORT_LAST - PORT_FIRST));
    for (int i = 0; i < PORT_LAST - PORT_FIRST; i++) {
        next = next < PORT_LAST ? next + 1 : PORT_FIRST;
        if (port_binds (next))
            return next;
    }
    die ("no free port between %d and %d", PORT_FIRST, PORT_LAST);
}

void server_wait_port (const server_t *self)
{
    for (int i = 0; i < START_SECONDS_MAX * 100; i++) {
        if (port_connects (self->port))
            return;
        if (waitpid (self->pid, NULL, WNOHANG) != 0)
            die ("the server ended at once; see %s/log", self->directory);
        nap (10);
    }
    die ("the server does not listen on port %d; see %s/log", self->port, self->directory);
}
