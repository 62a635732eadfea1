/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

#include "file_calls.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PATH_BYTES = 512 };

file_calls_t file_calls;

/* Of an open file as it is called now; false: it is none of those that are looked at. */
static bool path_of_fd (int fd, char path[PATH_BYTES])
{
    char link[40];
    if (file_calls.below == NULL)
        return false;
    snprintf (link, sizeof (link), "/proc/self/fd/%d", fd);
    ssize_t length = readlink (link, path, PATH_BYTES - 2);
    path[length > 0 ? length : 0] = '\0';
    char *slashed = path + (length > 0 ? length : 0);
    slashed[0] = '/'; /* the directory itself is looked at, too */
    slashed[1] = '\0';
    bool looked = strstr (path, file_calls.below) != NULL;
    slashed[0] = '\0';
    return looked && strstr (path, " (deleted)") == NULL;
}

static bool path_of_name (int at, const char *name, char path[PATH_BYTES])
{
    char directory[PATH_BYTES];
    bool looked = at != AT_FDCWD && path_of_fd (at, directory);
    if (looked)
        snprintf (path, PATH_BYTES, "%.400s/%.100s", directory, name);
    return looked;
}

static bool fails (void)
{
    unsigned long number = ++file_calls.made;
    if (file_calls.fails_at == 0 || number < file_calls.fails_at ||
        (number > file_calls.fails_at && number >= file_calls.fails_upto))
        return false;
    file_calls.failed++;
    errno = file_calls.error;
    return true;
}

static void note (const vfs_op_t *op)
{
    if (file_calls.record != NULL)
        file_calls.record (file_calls.context, op);
}

ssize_t __real_pwrite (int fd, const void *bytes, size_t length, off_t at);
ssize_t __wrap_pwrite (int fd, const void *bytes, size_t length, off_t at);
ssize_t __wrap_pwrite (int fd, const void *bytes, size_t length, off_t at)
{
    char path[PATH_BYTES];
    if (!path_of_fd (fd, path))
        return __real_pwrite (fd, bytes, length, at);
    bool failed = fails ();
    int error = errno;
    ssize_t written = __real_pwrite (fd, bytes, failed ? length / 2 : length, at);
    if (written > 0)
        note (&(vfs_op_t){.kind = VFS_WRITE,
                          .path = path,
                          .bytes = bytes,
                          .length = (uint64_t) written,
                          .offset = (uint64_t) at});
    errno = failed ? error : errno;
    return failed ? -1 : written;
}

ssize_t __wrap_pwrite64 (int fd, const void *bytes, size_t length, off_t at);
ssize_t __wrap_pwrite64 (int fd, const void *bytes, size_t length, off_t at)
{
    return __wrap_pwrite (fd, bytes, length, at);
}

int __real_ftruncate (int fd, off_t length);
int __wrap_ftruncate (int fd, off_t length);
int __wrap_ftruncate (int fd, off_t length)
{
    char path[PATH_BYTES];
    if (!path_of_fd (fd, path))
        return __real_ftruncate (fd, length);
    if (fails ())
        return -1;
    note (&(vfs_op_t){.kind = VFS_TRUNCATE, .path = path, .length = (uint64_t) length});
    return __real_ftruncate (fd, length);
}

int __wrap_ftruncate64 (int fd, off_t length);
int __wrap_ftruncate64 (int fd, off_t length)
{
    return __wrap_ftruncate (fd, length);
}

int __real_fsync (int fd);
int __wrap_fsync (int fd);
int __wrap_fsync (int fd)
{
    char path[PATH_BYTES];
    struct stat status;
    if (!path_of_fd (fd, path))
        return __real_fsync (fd);
    if (fails ())
        return -1;
    bool is_file = fstat (fd, &status) == 0 && S_ISREG (status.st_mode);
    note (&(vfs_op_t){.kind = is_file ? VFS_SYNC : VFS_SYNC_NAMES, .path = path});
    return 0;
}

/* It promises nothing for a loss of power, so none is recorded. */
int __real_sync_file_range (int fd, off_t from, off_t length, unsigned flags);
int __wrap_sync_file_range (int fd, off_t from, off_t length, unsigned flags);
int __wrap_sync_file_range (int fd, off_t from, off_t length, unsigned flags)
{
    char path[PATH_BYTES];
    if (!path_of_fd (fd, path))
        return __real_sync_file_range (fd, from, length, flags);
    return fails () ? -1 : 0;
}

static int make_file (int at, const char *name, int flags, mode_t mode,
                      int (*real) (int at, const char *name, int flags, ...))
{
    char path[PATH_BYTES];
    bool looked = (flags & O_CREAT) != 0 && path_of_name (at, name, path) &&
                  faccessat (at, name, F_OK, AT_SYMLINK_NOFOLLOW) != 0;
    if (looked && fails ())
        return -1;
    int fd = real (at, name, flags, mode);
    if (looked && fd >= 0)
        note (&(vfs_op_t){.kind = VFS_CREATE, .path = path});
    return fd;
}

#define WRAP_OPENAT(call)                                                                          \
    int __real_##call (int at, const char *name, int flags, ...);                                  \
    int __wrap_##call (int at, const char *name, int flags, ...);                                  \
    int __wrap_##call (int at, const char *name, int flags, ...)                                   \
    {                                                                                              \
        va_list arguments;                                                                         \
        va_start (arguments, flags);                                                               \
        mode_t mode = (flags & O_CREAT) != 0 ? va_arg (arguments, mode_t) : 0;                     \
        va_end (arguments);                                                                        \
        return make_file (at, name, flags, mode, __real_##call);                                   \
    }
WRAP_OPENAT (openat)
WRAP_OPENAT (openat64)

int __real_mkdirat (int at, const char *name, mode_t mode);
int __wrap_mkdirat (int at, const char *name, mode_t mode);
int __wrap_mkdirat (int at, const char *name, mode_t mode)
{
    char path[PATH_BYTES];
    if (!path_of_name (at, name, path))
        return __real_mkdirat (at, name, mode);
    if (fails ())
        return -1;
    int failed = __real_mkdirat (at, name, mode);
    if (failed == 0)
        note (&(vfs_op_t){.kind = VFS_DIRECTORY, .path = path});
    return failed;
}

int __real_unlinkat (int at, const char *name, int flags);
int __wrap_unlinkat (int at, const char *name, int flags);
int __wrap_unlinkat (int at, const char *name, int flags)
{
    char path[PATH_BYTES];
    if (!path_of_name (at, name, path))
        return __real_unlinkat (at, name, flags);
    if (fails ())
        return -1;
    int failed = __real_unlinkat (at, name, flags);
    if (failed == 0)
        note (&(vfs_op_t){.kind = VFS_DELETE, .path = path});
    return failed;
}

static int two_names (vfs_op_kind_t kind, int from, const char *old, int to, const char *name,
                      int failed)
{
    char path[PATH_BYTES];
    char target[PATH_BYTES];
    int error = errno;
    if (failed == 0 && path_of_name (from, old, path) && path_of_name (to, name, target))
        note (&(vfs_op_t){.kind = kind, .path = path, .to = target});
    errno = error;
    return failed;
}

int __real_renameat (int from, const char *old, int to, const char *name);
int __wrap_renameat (int from, const char *old, int to, const char *name);
int __wrap_renameat (int from, const char *old, int to, const char *name)
{
    char path[PATH_BYTES];
    if (path_of_name (to, name, path) && fails ())
        return -1;
    return two_names (VFS_RENAME, from, old, to, name, __real_renameat (from, old, to, name));
}

int __real_linkat (int from, const char *old, int to, const char *name, int flags);
int __wrap_linkat (int from, const char *old, int to, const char *name, int flags);
int __wrap_linkat (int from, const char *old, int to, const char *name, int flags)
{
    char path[PATH_BYTES];
    if (path_of_name (to, name, path) && fails ())
        return -1;
    return two_names (VFS_LINK, from, old, to, name, __real_linkat (from, old, to, name, flags));
}
