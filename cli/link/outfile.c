/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

#include "link/outfile.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/exit.h"
#include "disk.h"
#include "screen/output.h"

static int fail (const outfile_t *self, const app_t *app)
{
    return outfile_error (app, self->path, errno);
}

int outfile_error (const app_t *app, const char *path, int reason)
{
    const bool full = reason == ENOSPC || reason == EDQUOT;
    return code_error (app, full ? TMQ_STORE_FULL : TMQ_INTERNAL,
                       full ? "free some space where the file is to be" : NULL,
                       "cannot write %s: %s", path, strerror (reason));
}

bool outfile_open_place (const char *path, int *fd)
{
    struct stat there, own;
    if (stat (path, &there) != 0)
        return false;
    for (int i = STDOUT_FILENO; i <= STDERR_FILENO; i++) {
        if (fstat (i, &own) == 0 && own.st_dev == there.st_dev && own.st_ino == there.st_ino) {
            *fd = fcntl (i, F_DUPFD_CLOEXEC, 0);
            return true;
        }
    }
    if (S_ISREG (there.st_mode) || S_ISDIR (there.st_mode))
        return false;
    *fd = open (path, O_WRONLY | O_NOCTTY | O_CLOEXEC);
    return true;
}

static int open_part (outfile_t *self, const char *part)
{
    if (!part)
        return disk_temporary (self->part, sizeof self->part, self->path);
    if (snprintf (self->part, sizeof self->part, "%s", part) >= (int) sizeof self->part) {
        errno = ENAMETOOLONG;
        return -1;
    }
    unlink (part);
    return open (part, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
}

/* The part of the file that is being written, for who ends the program meanwhile. */
static char unfinished[PATH_MAX];

static void leave_nothing (int signal_number)
{
    unlink (unfinished);
    raise (signal_number); /* its own end, for the handler stands no more */
}

/* Only of what would end the program. */
static void watch_signals (const char *part)
{
    static const int ends[] = {SIGHUP, SIGINT, SIGTERM};
    struct sigaction before;
    struct sigaction after = {.sa_handler = leave_nothing, .sa_flags = (int) SA_RESETHAND};
    snprintf (unfinished, sizeof unfinished, "%s", part);
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++)
        if (sigaction (ends[i], NULL, &before) == 0 && before.sa_handler == SIG_DFL)
            sigaction (ends[i], &after, NULL);
}

int outfile_open (outfile_t *out, const app_t *app, const char *path, const char *part)
{
    *out = (outfile_t){.stream = stdout, .path = path};
    if (!path)
        return EXIT_OK;
    int fd;
    if (!outfile_open_place (path, &fd))
        fd = open_part (out, part);
    if (fd < 0)
        return fail (out, app);
    if (*out->part)
        watch_signals (out->part);
    out->stream = fdopen (fd, "w");
    if (out->stream)
        return EXIT_OK;
    const int code = fail (out, app);
    close (fd);
    if (*out->part)
        unlink (out->part);
    return code;
}

int outfile_close (outfile_t *self, const app_t *app, bool good, bool synced)
{
    int code = EXIT_OK;
    if (!self->path)
        return EXIT_OK;
    const bool named = *self->part != '\0';
    synced = synced && named;
    if (good && (fflush (self->stream) != 0 || (synced && fsync (fileno (self->stream)) != 0)))
        code = fail (self, app);
    if (fclose (self->stream) != 0 && good && !code)
        code = fail (self, app);
    if (!named)
        return code;
    if (good && !code &&
        (rename (self->part, self->path) != 0 || (synced && disk_sync_parent (self->path) != 0)))
        code = fail (self, app);
    if (!good || code)
        unlink (self->part);
    return code;
}
