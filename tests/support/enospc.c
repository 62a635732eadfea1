/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* A full disk without a disk: preloaded into the broker, every call that would take new space in
 * the directory TASKMQ_ENOSPC_DIR fails with ENOSPC while the file "full" exists beside it.
 *
 * Overwriting what a file already has still works, as it does on a real full disk. */
#include <dlfcn.h>
#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/types.h>
#include <unistd.h>

static bool is_full (void)
{
    const char *flag = getenv ("TASKMQ_ENOSPC_FLAG");
    return flag != NULL && access (flag, F_OK) == 0;
}

/* True if the file is one of the broker's and end lies behind what it has. */
static bool would_grow (int fd, off_t end)
{
    char link[64];
    char path[4096];
    struct stat status;
    const char *directory = getenv ("TASKMQ_ENOSPC_DIR");
    snprintf (link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t length = readlink (link, path, sizeof path - 1);
    if (directory == NULL || length <= 0) {
        return false;
    }
    path[length] = '\0';
    return strncmp (path, directory, strlen (directory)) == 0 && fstat (fd, &status) == 0 &&
           end > status.st_size;
}

static bool refuse (int fd, off_t end)
{
    int saved = errno;
    bool refused = is_full () && would_grow (fd, end);
    errno = refused ? ENOSPC : saved;
    return refused;
}

#define REAL(type, name)                                                                           \
    static type real;                                                                              \
    if (real == NULL) {                                                                            \
        *(void **) &real = dlsym (RTLD_NEXT, name);                                                \
    }

typedef ssize_t (*pwrite_t) (int, const void *, size_t, off_t);
typedef ssize_t (*write_t) (int, const void *, size_t);
typedef int (*truncate_t) (int, off_t);
typedef int (*allocate_t) (int, off_t, off_t);
typedef int (*fallocate_t) (int, int, off_t, off_t);
typedef int (*statvfs_t) (const char *, struct statvfs *);
typedef int (*fstatvfs_t) (int, struct statvfs *);

#define EXPORTED __attribute__ ((visibility ("default")))

EXPORTED ssize_t pwrite64 (int fd, const void *bytes, size_t length, off_t offset);
EXPORTED ssize_t pwrite64 (int fd, const void *bytes, size_t length, off_t offset)
{
    REAL (pwrite_t, "pwrite64")
    return refuse (fd, offset + (off_t) length) ? -1 : real (fd, bytes, length, offset);
}

EXPORTED ssize_t pwrite (int fd, const void *bytes, size_t length, off_t offset)
{
    REAL (pwrite_t, "pwrite")
    return refuse (fd, offset + (off_t) length) ? -1 : real (fd, bytes, length, offset);
}

EXPORTED ssize_t write (int fd, const void *bytes, size_t length)
{
    REAL (write_t, "write")
    struct stat status;
    bool appends = is_full () && fstat (fd, &status) == 0 && S_ISREG (status.st_mode);
    return appends && refuse (fd, status.st_size + (off_t) length) ? -1 : real (fd, bytes, length);
}

EXPORTED int ftruncate64 (int fd, off_t length);
EXPORTED int ftruncate64 (int fd, off_t length)
{
    REAL (truncate_t, "ftruncate64")
    return refuse (fd, length) ? -1 : real (fd, length);
}

EXPORTED int ftruncate (int fd, off_t length)
{
    REAL (truncate_t, "ftruncate")
    return refuse (fd, length) ? -1 : real (fd, length);
}

EXPORTED int posix_fallocate (int fd, off_t offset, off_t length)
{
    REAL (allocate_t, "posix_fallocate")
    return refuse (fd, offset + length) ? ENOSPC : real (fd, offset, length);
}

EXPORTED int posix_fallocate64 (int fd, off_t offset, off_t length);
EXPORTED int posix_fallocate64 (int fd, off_t offset, off_t length)
{
    REAL (allocate_t, "posix_fallocate64")
    return refuse (fd, offset + length) ? ENOSPC : real (fd, offset, length);
}

EXPORTED int fallocate (int fd, int mode, off_t offset, off_t length);
EXPORTED int fallocate (int fd, int mode, off_t offset, off_t length)
{
    REAL (fallocate_t, "fallocate")
    return refuse (fd, offset + length) ? -1 : real (fd, mode, offset, length);
}

static void empty (struct statvfs *out)
{
    if (is_full ()) {
        out->f_bavail = 0;
        out->f_bfree = 0;
    }
}

EXPORTED int statvfs (const char *path, struct statvfs *out)
{
    REAL (statvfs_t, "statvfs")
    int result = real (path, out);
    empty (out);
    return result;
}

EXPORTED int fstatvfs (int fd, struct statvfs *out)
{
    REAL (fstatvfs_t, "fstatvfs")
    int result = real (fd, out);
    empty (out);
    return result;
}
