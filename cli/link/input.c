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
#include "link/connect.h"
#include "screen/output.h"

enum { READ_STEP_BYTES = 64 * 1024 };

/* What read_large reads. */
typedef struct input {
    const char *name;
    size_t short_max; /* that is no file afterwards */
    int file;         /* that has it; -1: none yet */
    uint64_t length;
} input_t;

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

/* Appends what a stream gives, until there is more than the limit. False with errno. */
static bool copy_stream (int out, int fd, uint64_t limit, uint64_t *bytes)
{
    char *step = must_alloc (READ_STEP_BYTES);
    ssize_t n = 1;
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
    errno = reason;
    return n >= 0;
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

/* What the broker takes. 0 or an exit code. */
static int ask_limit (uint64_t *out, app_t *app)
{
    tmq_whoami_t who = {.size = sizeof who};
    const int code = app_connect (app);
    if (code)
        return code;
    tmq_client_whoami (&who, app->client);
    *out = who.blob_bytes_max;
    return 0;
}

/* A stream that turns out to be long is read no further than the broker would take it: it may have
 * no end. */
static int spool (input_t *out, app_t *app, int fd)
{
    uint64_t limit;
    out->file = spool_make ();
    if (out->file < 0 || !copy_stream (out->file, fd, out->short_max, &out->length))
        return -1;
    if (out->length <= out->short_max)
        return 0;
    const int code = ask_limit (&limit, app);
    if (code)
        return code;
    if (!copy_stream (out->file, fd, limit, &out->length))
        return -1;
    if (out->length <= limit)
        return 0;
    return code_error (app, TMQ_TOO_LARGE, BODY_LIMIT_HINT,
                       "%s has more than %ju bytes, which is all that is taken (limits/blob_bytes)",
                       out->name, (uintmax_t) limit);
}

/* 0, or the exit code of a file that the broker would not take. */
static int judge_file (const input_t *in, app_t *app)
{
    uint64_t limit;
    const int code = ask_limit (&limit, app);
    if (code || in->length <= limit)
        return code;
    return code_error (app, TMQ_TOO_LARGE, BODY_LIMIT_HINT,
                       "the file %s is too large: %ju bytes, at most %ju (limits/blob_bytes)",
                       in->name, (uintmax_t) in->length, (uintmax_t) limit);
}

int read_large (app_t *app, char **data, size_t *bytes, int *file, const char *path, size_t limit)
{
    input_t in = {
        .name = strcmp (path, "-") == 0 ? "standard input" : path, .short_max = limit, .file = -1};
    const int fd = open_given (path);
    int code = 0;
    *data = NULL;
    *bytes = 0;
    *file = -1;
    if (fd >= 0 && is_long_file (fd, limit, &in.length)) {
        in.file = fd;
        code = judge_file (&in, app);
    } else {
        code = fd < 0 ? -1 : spool (&in, app, fd);
    }
    *bytes = (size_t) in.length;
    if (code == 0 && in.length <= limit && !take_short (&in.file, data, bytes, in.length))
        code = -1;
    const int reason = errno;
    if (fd >= 0 && in.file != fd)
        close (fd);
    if (code && in.file >= 0)
        close (in.file);
    else
        *file = in.file;
    return code >= 0 ? code
                     : usage_error (app, NULL, "cannot read %s: %s", in.name, strerror (reason));
}

/* Of a file that a loop reads line by line, somebody has read before. */
bool input_is_there (void)
{
    struct stat status;
    int bytes = 0;
    if (fstat (STDIN_FILENO, &status) != 0)
        return false;
    if (S_ISREG (status.st_mode))
        return status.st_size > 0 && lseek (STDIN_FILENO, 0, SEEK_CUR) == 0;
    return S_ISFIFO (status.st_mode) && ioctl (STDIN_FILENO, FIONREAD, &bytes) == 0 && bytes > 0;
}
