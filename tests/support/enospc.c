/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* A full disk without a disk: preloaded into the broker. While the file TASKMQ_ENOSPC_FLAG exists,
 * the files of the directory TASKMQ_ENOSPC_DIR may together not become larger than they were when
 * it appeared: a call that would take more space fails with ENOSPC.
 *
 * Overwriting what a file already has still works, and so does growing into what another file gave
 * back, as on a real full disk. */
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/types.h>
#include <unistd.h>

/* What the files of the directory take together. */
static off_t taken (void)
{
    const char *path = getenv ("TASKMQ_ENOSPC_DIR");
    DIR *directory = path != NULL ? opendir (path) : NULL;
    off_t sum = 0;
    for (struct dirent *entry; directory != NULL && (entry = readdir (directory)) != NULL;) {
        struct stat status;
        if (fstatat (dirfd (directory), entry->d_name, &status, AT_SYMLINK_NOFOLLOW) == 0 &&
            S_ISREG (status.st_mode)) {
            sum += status.st_size;
        }
    }
    if (directory != NULL) {
        closedir (directory);
    }
    return sum;
}

/* Space that is left; INT64_MAX while the disk is not full. The disk's size is what was taken when
 * it was first found full. */
static off_t space_left (void)
{
    static atomic_llong size = -1;
    const char *flag = getenv ("TASKMQ_ENOSPC_FLAG");
    if (flag == NULL || access (flag, F_OK) != 0) {
        atomic_store (&size, -1);
        return INT64_MAX;
    }
    off_t now = taken ();
    long long none = -1;
    atomic_compare_exchange_strong (&size, &none, now);
    off_t left = (off_t) atomic_load (&size) - now;
    return left > 0 ? left : 0;
}

/* How much the file would grow, if it is one of the broker's. */
static off_t growth (int fd, off_t end)
{
    char link[64];
    char path[4096];
    struct stat status;
    const char *directory = getenv ("TASKMQ_ENOSPC_DIR");
    snprintf (link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t length = readlink (link, path, sizeof path - 1);
    if (directory == NULL || length <= 0) {
        return 0;
    }
    path[length] = '\0';
    bool ours = strncmp (path, directory, strlen (directory)) == 0;
    return ours && fstat (fd, &status) == 0 && end > status.st_size ? end - status.st_size : 0;
}

static bool refuse (int fd, off_t end)
{
    int saved = errno;
    off_t left = space_left ();
    bool refused = left != INT64_MAX && growth (fd, end) > left;
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
    int saved = errno;
    bool appends = fstat (fd, &status) == 0 && S_ISREG (status.st_mode);
    errno = saved;
    return appends && refuse (fd, status.st_size + (off_t) length) ? -1 : real (fd, bytes, length);
}

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

EXPORTED int posix_fallocate64 (int fd, off_t offset, off_t length)
{
    REAL (allocate_t, "posix_fallocate64")
    return refuse (fd, offset + length) ? ENOSPC : real (fd, offset, length);
}

EXPORTED int fallocate (int fd, int mode, off_t offset, off_t length)
{
    REAL (fallocate_t, "fallocate")
    return refuse (fd, offset + length) ? -1 : real (fd, mode, offset, length);
}

static void limit (struct statvfs *out)
{
    off_t left = space_left ();
    if (left != INT64_MAX) {
        out->f_bavail = out->f_bfree = (fsblkcnt_t) left / out->f_frsize;
    }
}

EXPORTED int statvfs (const char *path, struct statvfs *out)
{
    REAL (statvfs_t, "statvfs")
    int result = real (path, out);
    limit (out);
    return result;
}

EXPORTED int fstatvfs (int fd, struct statvfs *out)
{
    REAL (fstatvfs_t, "fstatvfs")
    int result = real (fd, out);
    limit (out);
    return result;
}
