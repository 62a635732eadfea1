/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* The files of the machine. */
#include "store/journal/device.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

static int files_open (const device_t *self, const char *path, int flags)
{
    (void) self;
    return open (path, flags | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600);
}

static void files_close (const device_t *self, int fd)
{
    (void) self;
    close (fd);
}

static int files_lock (const device_t *self, int fd)
{
    (void) self;
    return flock (fd, LOCK_EX | LOCK_NB);
}

static int64_t files_size (const device_t *self, int fd)
{
    (void) self;
    struct stat status;
    return fstat (fd, &status) == 0 && S_ISREG (status.st_mode) ? (int64_t) status.st_size : -1;
}

static int files_read (const device_t *self, int fd, void *to, size_t length, uint64_t at)
{
    (void) self;
    for (size_t done = 0; done < length;) {
        ssize_t got = pread (fd, (char *) to + done, length - done, (off_t) (at + done));
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0) {
            errno = got < 0 ? errno : EIO;
            return -1;
        }
        done += (size_t) got;
    }
    return 0;
}

/* pwrite where nothing is asked of it, so that it is seen by whoever stands in for that call. */
static ssize_t write_some (int fd, const char *bytes, size_t length, uint64_t at, bool durable)
{
    if (!durable)
        return pwrite (fd, bytes, length, (off_t) at);
    struct iovec piece = {(void *) bytes, length};
    return pwritev2 (fd, &piece, 1, (off_t) at, RWF_DSYNC);
}

static int files_write (const device_t *self, int fd, const void *bytes, size_t length, uint64_t at,
                        bool durable)
{
    (void) self;
    for (size_t done = 0; done < length;) {
        ssize_t put =
            write_some (fd, (const char *) bytes + done, length - done, at + done, durable);
        if (put < 0 && errno == EINTR)
            continue;
        if (put <= 0) {
            errno = put < 0 ? errno : EIO;
            return -1;
        }
        done += (size_t) put;
    }
    return 0;
}

static int files_sync (const device_t *self, int fd)
{
    (void) self;
    return fdatasync (fd);
}

static int files_truncate (const device_t *self, int fd, uint64_t bytes)
{
    (void) self;
    return ftruncate (fd, (off_t) bytes);
}

static int files_direct (const device_t *self, int fd, bool on)
{
    (void) self;
    int flags = fcntl (fd, F_GETFL);
    if (on) /* what the start has read lies there */
        posix_fadvise (fd, 0, 0, POSIX_FADV_DONTNEED);
    return flags < 0 ? -1 : fcntl (fd, F_SETFL, on ? flags | O_DIRECT : flags & ~O_DIRECT);
}

static int files_rename (const device_t *self, const char *from, const char *to)
{
    (void) self;
    return rename (from, to);
}

static int files_remove (const device_t *self, const char *path)
{
    (void) self;
    return unlink (path);
}

static int files_sync_directory (const device_t *self, const char *path)
{
    (void) self;
    int fd = open (path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return -1;
    int result = fsync (fd);
    int saved = errno;
    close (fd);
    errno = saved;
    return result;
}

const device_t device_files = {
    .open = files_open,
    .close = files_close,
    .lock = files_lock,
    .size = files_size,
    .read = files_read,
    .write = files_write,
    .sync = files_sync,
    .truncate = files_truncate,
    .direct = files_direct,
    .rename = files_rename,
    .remove = files_remove,
    .sync_directory = files_sync_directory,
};
