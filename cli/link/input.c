/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

#include "link/input.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/spool.h"
#include "screen/output.h"

enum { READ_STEP_BYTES = 64 * 1024 };

int read_all (const app_t *app, char **data, size_t *bytes, const char *path, size_t limit)
{
    const bool from_stdin = strcmp (path, "-") == 0;
    const int fd = from_stdin ? STDIN_FILENO : open (path, O_RDONLY | O_CLOEXEC);
    const char *name = from_stdin ? "standard input" : path;
    size_t used = 0;
    size_t room = 0;
    ssize_t n = fd < 0 ? -1 : 1;
    *data = NULL;
    while (n > 0 && used <= limit) {
        if (room - used < READ_STEP_BYTES) {
            room = 2 * room + READ_STEP_BYTES;
            *data = must_grow (*data, room + 1, 1);
        }
        do
            n = read (fd, *data + used, room - used);
        while (n < 0 && errno == EINTR);
        used += n > 0 ? (size_t) n : 0;
    }
    const int reason = errno;
    if (fd >= 0 && !from_stdin)
        close (fd);
    *bytes = used;
    if (n >= 0 && used <= limit) {
        (*data)[used] = '\0';
        return 0;
    }
    free (*data);
    *data = NULL;
    if (n < 0)
        return usage_error (app, NULL, "cannot read %s: %s", name, strerror (reason));
    return code_error (app, TMQ_TOO_LARGE, NULL, "%s has more than the limit of %zu bytes", name,
                       limit);
}

/* The file itself, if it is one, from its first byte on, and longer than that. */
static bool is_long_file (int fd, size_t limit, uint64_t *bytes)
{
    struct stat status;
    if (fstat (fd, &status) != 0 || !S_ISREG (status.st_mode) ||
        (uint64_t) status.st_size <= limit || lseek (fd, 0, SEEK_CUR) != 0)
        return false;
    *bytes = (uint64_t) status.st_size;
    return true;
}

/* A copy of what a stream gives, up to a byte more than the limit. -1 with errno. */
static int copy_stream (int fd, uint64_t limit, uint64_t *bytes)
{
    char *step = must_alloc (READ_STEP_BYTES);
    const int out = spool_make ();
    ssize_t n = out < 0 ? -1 : 1;
    *bytes = 0;
    while (n > 0 && *bytes <= limit) {
        n = read (fd, step, READ_STEP_BYTES);
        if (n < 0 && errno == EINTR)
            n = 1;
        else if (n > 0 && !spool_write (out, step, (size_t) n))
            n = -1;
        else if (n > 0)
            *bytes += (uint64_t) n;
    }
    const int reason = errno;
    free (step);
    if (n < 0 && out >= 0)
        close (out);
    errno = reason;
    return n < 0 ? -1 : out;
}

/* What was copied, if it is short. False with errno. */
static bool take_short (int *file, char **data, size_t *bytes, uint64_t length)
{
    *data = must_alloc ((size_t) length + 1);
    *bytes = (size_t) length;
    if (pread (*file, *data, *bytes, 0) != (ssize_t) length)
        return false;
    (*data)[length] = '\0';
    close (*file);
    *file = -1;
    return true;
}

static int open_given (const char *path)
{
    return strcmp (path, "-") == 0 ? fcntl (STDIN_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1)
                                   : open (path, O_RDONLY | O_CLOEXEC);
}

int read_large (const app_t *app, char **data, size_t *bytes, int *file, const char *path,
                size_t limit, uint64_t file_max)
{
    const char *name = strcmp (path, "-") == 0 ? "standard input" : path;
    const int fd = open_given (path);
    uint64_t length = 0;
    *data = NULL;
    *bytes = 0;
    *file = -1;
    if (fd >= 0 && is_long_file (fd, limit, &length)) {
        *file = fd;
    } else if (fd >= 0) {
        *file = copy_stream (fd, file_max, &length);
        const int reason = errno;
        close (fd);
        errno = reason;
    }
    if (*file < 0 || (length <= limit && !take_short (file, data, bytes, length)))
        return usage_error (app, NULL, "cannot read %s: %s", name, strerror (errno));
    if (length > file_max)
        return code_error (app, TMQ_TOO_LARGE, NULL, "%s has more than the limit of %ju bytes",
                           name, (uintmax_t) file_max);
    return 0;
}

bool input_is_piped (void)
{
    struct stat status;
    int bytes = 0;
    return fstat (STDIN_FILENO, &status) == 0 && S_ISFIFO (status.st_mode) &&
           ioctl (STDIN_FILENO, FIONREAD, &bytes) == 0 && bytes > 0;
}
