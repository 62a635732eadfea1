/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* How the bench ends before its time: by an error, or by a signal. Either way the servers are
 * stopped and their directories removed; of a server that failed the last lines it wrote are
 * shown first. */

#include "bench.h"

#include <errno.h>
#include <ftw.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { REMOVE_DEPTH = 16, LOG_TAIL_BYTES = 2000, EXIT_SIGNAL = 128 };

static char run_directory[BENCH_PATH_MAX]; /* empty: none to remove */
static atomic_bool ending;

/* Directories. */

static int remove_entry (const char *path, const struct stat *status, int kind, struct FTW *walk)
{
    (void) status;
    (void) kind;
    (void) walk;
    return remove (path);
}

void directory_remove (const char *path)
{
    nftw (path, remove_entry, REMOVE_DEPTH, FTW_DEPTH | FTW_PHYS);
}

/* Others may pass through, because PostgreSQL runs as a user of its own. */
const char *run_directory_make (const char *parent)
{
    char absolute[PATH_MAX];
    if (!realpath (parent, absolute))
        die ("%s: %s", parent, strerror (errno));
    char path[BENCH_PATH_MAX];
    if (snprintf (path, sizeof path, "%s/bench-XXXXXX", absolute) >= (int) sizeof path ||
        !mkdtemp (path) || chmod (path, 0711) != 0)
        die ("%s: no directory can be made there: %s", absolute, strerror (errno));
    return memcpy (run_directory, path, sizeof path);
}

void run_directory_remove (void)
{
    if (run_directory[0] != '\0')
        directory_remove (run_directory);
    run_directory[0] = '\0';
}

/* Ends. */

/* Only the first thread that wants to end the bench goes on; a server that is being stopped makes
 * others fail, which is no news. */
static void ending_begin (void)
{
    while (atomic_exchange (&ending, true))
        pause ();
}

_Noreturn static void ending_finish (int code)
{
    server_stop_all ();
    run_directory_remove ();
    fflush (NULL);
    _exit (code);
}

static void log_tail (void)
{
    char path[BENCH_PATH_MAX + 8];
    char tail[LOG_TAIL_BYTES];
    const char *directory = server_running_directory ();
    snprintf (path, sizeof path, "%s/log", directory ? directory : "");
    FILE *file = directory ? fopen (path, "r") : NULL;
    if (!file)
        return;
    if (fseek (file, -LOG_TAIL_BYTES, SEEK_END) != 0)
        rewind (file);
    size_t length = fread (tail, 1, sizeof tail, file);
    fclose (file);
    if (length > 0)
        fprintf (stderr, "the server wrote last:\n%.*s", (int) length, tail);
}

void die (const char *format, ...)
{
    ending_begin ();
    va_list arguments;
    va_start (arguments, format);
    fputs ("taskmq-bench: ", stderr);
    vfprintf (stderr, format, arguments);
    fputc ('\n', stderr);
    va_end (arguments);
    log_tail ();
    ending_finish (1);
}

void *need_memory (void *memory)
{
    if (!memory)
        die ("out of memory");
    return memory;
}

static sigset_t watched (void)
{
    sigset_t set;
    sigemptyset (&set);
    sigaddset (&set, SIGINT);
    sigaddset (&set, SIGTERM);
    sigaddset (&set, SIGHUP);
    return set;
}

static void *signal_wait (void *argument)
{
    (void) argument;
    sigset_t set = watched ();
    int number = 0;
    sigwait (&set, &number);
    ending_begin ();
    fprintf (stderr, "\ntaskmq-bench: ended by a signal (%s)\n", strsignal (number));
    ending_finish (EXIT_SIGNAL + number);
}

void signals_watch (void)
{
    sigset_t set = watched ();
    pthread_t thread;
    signal (SIGPIPE, SIG_IGN);
    if (pthread_sigmask (SIG_BLOCK, &set, NULL) != 0 ||
        pthread_create (&thread, NULL, signal_wait, NULL) != 0)
        die ("the signals cannot be watched");
    pthread_detach (thread);
}
