/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Server processes of the bench: start, look at, stop.
 *
 * Each has a process group of its own, so that what it started and left behind is ended with it,
 * and dies with the bench even when that is killed. */

#include "bench.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <pthread.h>
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
    SERVERS_MAX = 4,    /* at a time */
    PORT_FIRST = 20000, /* below the ephemeral range, so that no client takes it meanwhile */
    PORT_LAST = 32767
};

static void nap (long ms)
{
    struct timespec pause = {ms / 1000, ms % 1000 * 1000000};
    nanosleep (&pause, NULL);
}

/* Where this program lies. */
static bool own_directory (char out[BENCH_PATH_MAX])
{
    ssize_t length = readlink ("/proc/self/exe", out, BENCH_PATH_MAX - 1);
    out[length > 0 ? length : 0] = '\0';
    char *slash = strrchr (out, '/');
    if (slash)
        *slash = '\0';
    return slash != NULL;
}

bool program_find (const char *name, char path[BENCH_PATH_MAX])
{
    char own[BENCH_PATH_MAX];
    if (own_directory (own)) {
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

/* What runs now, for whoever has to end the bench. A server is only started and stopped by one
 * thread, but may be stopped by another one at any time. */
static pthread_mutex_t running_lock = PTHREAD_MUTEX_INITIALIZER;
static server_t running[SERVERS_MAX];

static void running_add (const server_t *server)
{
    pthread_mutex_lock (&running_lock);
    size_t i = 0;
    while (i < SERVERS_MAX && running[i].pid != 0)
        i++;
    if (i < SERVERS_MAX)
        running[i] = *server;
    pthread_mutex_unlock (&running_lock);
    if (i == SERVERS_MAX)
        die ("more than %d servers at a time", SERVERS_MAX);
}

static void running_remove (pid_t pid)
{
    pthread_mutex_lock (&running_lock);
    for (size_t i = 0; i < SERVERS_MAX; i++) {
        if (running[i].pid == pid)
            running[i].pid = 0;
    }
    pthread_mutex_unlock (&running_lock);
}

const char *server_running_directory (void)
{
    for (size_t i = 0; i < SERVERS_MAX; i++) {
        if (running[i].pid != 0)
            return running[i].directory;
    }
    return NULL;
}

/* In the child, which becomes the server. */
_Noreturn static void become (const server_t *self, const char *path, char *const argv[],
                              const char *preload)
{
    sigset_t none;
    sigemptyset (&none);
    sigprocmask (SIG_SETMASK, &none, NULL);
    signal (SIGPIPE, SIG_DFL);
    setpgid (0, 0);
    prctl (PR_SET_PDEATHSIG, SIGKILL);
    char log[BENCH_PATH_MAX + 8];
    snprintf (log, sizeof log, "%s/log", self->directory);
    int output = open (log, O_WRONLY | O_CREAT | O_APPEND, 0600);
    int input = open ("/dev/null", O_RDONLY);
    if (output < 0 || input < 0 || dup2 (input, 0) < 0 || dup2 (output, 1) < 0 ||
        dup2 (output, 2) < 0 || chdir (self->directory) < 0)
        _exit (126);
    if (preload) {
        char delay[24];
        snprintf (delay, sizeof delay, "%ld", self->sync_delay_us);
        setenv ("SLOW_DISK_US", delay, 1);
        setenv ("LD_PRELOAD", preload, 1);
    }
    execv (path, argv);
    _exit (127);
}

void program_version (const char *command, char out[BENCH_VERSION_BYTES])
{
    char own[BENCH_PATH_MAX];
    char line[2 * BENCH_PATH_MAX];
    if (!own_directory (own))
        own[0] = '\0';
    snprintf (line, sizeof line, "PATH=\"%s:$PATH:/usr/local/sbin:/usr/sbin:/sbin\"; { %s; } 2>&1",
              own, command);
    FILE *pipe = popen (line, "r");
    if (!pipe || !fgets (out, BENCH_VERSION_BYTES, pipe))
        memcpy (out, "?", sizeof "?");
    if (pipe)
        pclose (pipe);
    out[strcspn (out, "\r\n")] = '\0';
}

void server_spawn (server_t *self, char *const argv[])
{
    char path[BENCH_PATH_MAX];
    char preload[BENCH_PATH_MAX];
    if (!program_find (argv[0], path))
        die ("%s is not installed", argv[0]);
    if (self->sync_delay_us > 0 && !program_find ("slow-disk.so", preload))
        die ("slow-disk.so does not lie beside this program");
    prctl (PR_SET_CHILD_SUBREAPER, 1); /* what a server leaves behind comes to us */
    pid_t pid = fork ();
    if (pid < 0)
        die ("fork: %s", strerror (errno));
    if (pid == 0)
        become (self, path, argv, self->sync_delay_us > 0 ? preload : NULL);
    setpgid (pid, pid); /* whoever comes first, parent or child */
    self->pid = pid;
    running_add (self);
}

/* Waits for the end of the server itself, at most STOP_SECONDS_MAX. */
static void await_end (pid_t pid)
{
    for (int i = 0; i < STOP_SECONDS_MAX * 100; i++) {
        if (waitpid (pid, NULL, WNOHANG) != 0)
            return;
        nap (10);
    }
}

void server_stop (server_t *self)
{
    if (self->pid <= 0)
        return;
    pid_t pid = self->pid;
    kill (pid, self->stop_signal ? self->stop_signal : SIGTERM);
    await_end (pid);
    /* It, if it did not listen, and its children. */
    kill (-pid, SIGKILL);
    while (waitpid (-pid, NULL, 0) > 0)
        ;
    running_remove (pid);
    self->pid = 0;
}

void server_stop_all (void)
{
    for (size_t i = 0; i < SERVERS_MAX; i++) {
        server_t server = running[i];
        server_stop (&server);
    }
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
            die ("the server ended at once");
        nap (10);
    }
    die ("the server does not listen on port %d", self->port);
}
