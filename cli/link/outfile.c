/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

#include "link/outfile.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/exit.h"
#include "disk.h"
#include "screen/output.h"

static int fail (const outfile_t *self, const app_t *app)
{
    const int reason = errno;
    const bool full = reason == ENOSPC || reason == EDQUOT;
    return code_error (app, full ? TMQ_STORE_FULL : TMQ_INTERNAL,
                       full ? "free some space where the file is to be" : NULL,
                       "cannot write %s: %s", self->path, strerror (reason));
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

int outfile_open (outfile_t *out, const app_t *app, const char *path, const char *part)
{
    *out = (outfile_t){.stream = stdout, .path = path};
    if (!path)
        return EXIT_OK;
    const int fd = open_part (out, part);
    if (fd < 0)
        return fail (out, app);
    out->stream = fdopen (fd, "w");
    if (out->stream)
        return EXIT_OK;
    const int code = fail (out, app);
    close (fd);
    unlink (out->part);
    return code;
}

int outfile_close (outfile_t *self, const app_t *app, bool good, bool synced)
{
    int code = EXIT_OK;
    if (!self->path)
        return EXIT_OK;
    if (good && (fflush (self->stream) != 0 || (synced && fsync (fileno (self->stream)) != 0)))
        code = fail (self, app);
    if (fclose (self->stream) != 0 && good && !code)
        code = fail (self, app);
    if (good && !code &&
        (rename (self->part, self->path) != 0 || (synced && disk_sync_parent (self->path) != 0)))
        code = fail (self, app);
    if (!good || code)
        unlink (self->part);
    return code;
}
