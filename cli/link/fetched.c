/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

#include "link/fetched.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <signal.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/exit.h"
#include "disk.h"
#include "link/outfile.h"
#include "screen/output.h"
#include "units.h"

enum { MARK_BYTES = 8 }; /* of the hash, in the name */

static bool part_name (char out[PATH_MAX], const fetched_t *self)
{
    char mark[2 * MARK_BYTES + 1];
    const char *slash = strrchr (self->path, '/');
    const char *name = slash ? slash + 1 : self->path;
    sodium_bin2hex (mark, sizeof mark, self->hash, MARK_BYTES);
    return snprintf (out, PATH_MAX, "%.*s.%s.%s.part", (int) (name - self->path), self->path, name,
                     mark) < PATH_MAX;
}

/* Nobody else's, no link, and no other command is at it. */
static int open_part (const app_t *app, const char *part, int *fd)
{
    struct stat info;
    *fd = open (part, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600);
    if (*fd < 0)
        return outfile_error (app, part, errno);
    if (fstat (*fd, &info) != 0)
        return outfile_error (app, part, errno);
    if (!S_ISREG (info.st_mode) || info.st_uid != geteuid () || info.st_nlink != 1)
        return code_error (app, TMQ_CONFLICT, "remove it", "%s is not what a fetch left behind",
                           part);
    if (flock (*fd, LOCK_EX | LOCK_NB) != 0)
        return errno == EWOULDBLOCK
                   ? code_error (app, TMQ_CONFLICT, NULL, "another command is fetching %s", part)
                   : outfile_error (app, part, errno);
    return EXIT_OK;
}

static int tell (const fetched_t *self, const app_t *app, const char *path,
                 const tmq_error_t *error)
{
    const bool full = error->code == TMQ_SYSTEM && (strstr (error->text, strerror (ENOSPC)) ||
                                                    strstr (error->text, strerror (EDQUOT)));
    if (full)
        return code_error (app, TMQ_STORE_FULL, "free some space where the file is to be", "%s: %s",
                           path, error->text);
    return library_error (app, error, self->what);
}

static int explain (const fetched_t *self, const app_t *app, const char *part, int fd,
                    const tmq_error_t *error)
{
    char there[UNITS_TEXT_SIZE];
    char all[UNITS_TEXT_SIZE];
    struct stat info = {0};
    const bool there_is = fstat (fd, &info) == 0 && info.st_size > 0;
    const bool other_bytes = error->code == TMQ_NO_BLOB && (uint64_t) info.st_size >= self->bytes;
    if (there_is && !other_bytes)
        note (app, "taskctl: %s of %s are in %s: the same command goes on from there%s",
              size_format (there, (uint64_t) info.st_size), size_format (all, self->bytes), part,
              error->code == TMQ_NO_BLOB ? ", when the broker has it whole" : "");
    else
        unlink (part);
    return tell (self, app, part, error);
}

/* What is said when a signal ends the program meanwhile: a handler writes what was ready. */
static struct {
    char text[PATH_MAX + 128]; /* empty: nothing is said */
    size_t length;
    int fd; /* of the part */
    char part[PATH_MAX];
} interrupted;

static void tell_interrupted (int signal_number)
{
    struct stat info;
    if (fstat (interrupted.fd, &info) == 0 && info.st_size == 0)
        unlink (interrupted.part);
    else if (write (STDERR_FILENO, interrupted.text, interrupted.length) < 0)
        interrupted.length = 0; /* nobody reads it */
    raise (signal_number);      /* its own end, for the handler stands no more */
}

static const int ends[] = {SIGHUP, SIGINT, SIGTERM};

/* Only of what would end the program. */
static void watch_signals (const fetched_t *self, const app_t *app, const char *part, int fd)
{
    struct sigaction before;
    struct sigaction after = {.sa_handler = tell_interrupted, .sa_flags = (int) SA_RESETHAND};
    char all[UNITS_TEXT_SIZE];
    char *safe = safe_text (app, part);
    snprintf (interrupted.part, sizeof interrupted.part, "%s", part);
    snprintf (
        interrupted.text, sizeof interrupted.text,
        "taskctl: interrupted; what was fetched of %s is in %s: the same command goes on from "
        "there\n",
        size_format (all, self->bytes), safe);
    free (safe);
    interrupted.length = app->quiet ? 0 : strlen (interrupted.text);
    interrupted.fd = fd;
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++)
        if (sigaction (ends[i], NULL, &before) == 0 && before.sa_handler == SIG_DFL)
            sigaction (ends[i], &after, NULL);
}

static void watch_signals_no_more (void)
{
    struct sigaction before;
    const struct sigaction after = {.sa_handler = SIG_DFL};
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++)
        if (sigaction (ends[i], NULL, &before) == 0 && before.sa_handler == tell_interrupted)
            sigaction (ends[i], &after, NULL);
}

static int finish (const fetched_t *self, const app_t *app, const char *part, int fd)
{
    if (fsync (fd) != 0 || rename (part, self->path) != 0 || disk_sync_parent (self->path) != 0)
        return outfile_error (app, self->path, errno);
    return EXIT_OK;
}

static int save_place (const fetched_t *self, const app_t *app, int fd)
{
    uint64_t fetched;
    tmq_error_t error = {0};
    if (fd < 0)
        return outfile_error (app, self->path, errno);
    error.code = self->fetch (self->context, fd, false, &fetched, &error);
    close (fd);
    return error.code == TMQ_OK ? EXIT_OK : tell (self, app, self->path, &error);
}

int fetched_save (const fetched_t *self, const app_t *app)
{
    char part[PATH_MAX];
    char text[UNITS_TEXT_SIZE];
    uint64_t fetched = 0;
    tmq_error_t error = {0};
    int fd;
    struct stat there;
    if (!self->as_file && outfile_open_place (self->path, &fd))
        return save_place (self, app, fd);
    if (stat (self->path, &there) == 0 && S_ISDIR (there.st_mode))
        return outfile_error (app, self->path, EISDIR);
    if (!part_name (part, self))
        return outfile_error (app, self->path, ENAMETOOLONG);
    int code = open_part (app, part, &fd);
    if (!code) {
        watch_signals (self, app, part, fd);
        error.code = self->fetch (self->context, fd, true, &fetched, &error);
        watch_signals_no_more ();
        code = error.code == TMQ_OK ? finish (self, app, part, fd)
                                    : explain (self, app, part, fd, &error);
    }
    if (fd >= 0)
        close (fd);
    if (!code && fetched < self->bytes)
        detail (app, "%s: %s were there already", self->what,
                size_format (text, self->bytes - fetched));
    return code;
}
