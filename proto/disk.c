/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

#include "disk.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define MIDDLE ".new-"
#define RANDOM "XXXXXX"

int disk_sync_directory (const char *directory)
{
    const int fd = open (directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return -1;
    const int result = fsync (fd);
    const int code = errno;
    close (fd);
    errno = code;
    return result;
}

/* The last part of the path, and the directory; false: it is too long. */
static bool split (char directory[PATH_MAX], const char **name, const char *path)
{
    const char *slash = strrchr (path, '/');
    *name = slash != NULL ? slash + 1 : path;
    /* Of /NAME the directory is the slash itself. */
    const size_t length = slash == NULL ? 0 : slash == path ? 1 : (size_t) (slash - path);
    if (length >= PATH_MAX) {
        errno = ENAMETOOLONG;
        return false;
    }
    memcpy (directory, path, length);
    directory[length] = '\0';
    if (length == 0)
        memcpy (directory, ".", sizeof ".");
    return true;
}

int disk_sync_parent (const char *path)
{
    char directory[PATH_MAX];
    const char *name;
    return split (directory, &name, path) ? disk_sync_directory (directory) : -1;
}

int disk_make_directory (const char *path)
{
    return mkdir (path, 0700) == 0 || errno == EEXIST ? disk_sync_parent (path) : -1;
}

/* at: NULL for behind what was written before. */
static int write_all (int fd, const char *bytes, size_t length, const uint64_t *at)
{
    for (size_t done = 0; done < length;) {
        const ssize_t wrote = at == NULL
                                  ? write (fd, bytes + done, length - done)
                                  : pwrite (fd, bytes + done, length - done, (off_t) (*at + done));
        if (wrote < 0 && errno == EINTR)
            continue;
        if (wrote == 0)
            errno = EIO;
        if (wrote <= 0)
            return -1;
        done += (size_t) wrote;
    }
    return 0;
}

int disk_write (int fd, const void *bytes, size_t length)
{
    return write_all (fd, bytes, length, NULL);
}

int disk_write_at (int fd, const void *bytes, size_t length, uint64_t at)
{
    return write_all (fd, bytes, length, &at);
}

static bool is_left (const char *entry, const char *name)
{
    const size_t length = strlen (name);
    return entry[0] == '.' && strncmp (entry + 1, name, length) == 0 &&
           strncmp (entry + 1 + length, MIDDLE, strlen (MIDDLE)) == 0 &&
           strlen (entry + 1 + length) == strlen (MIDDLE RANDOM);
}

/* Somebody may be writing just now, so only what is old goes; and of others, who have their own
 * reasons for such a name, nothing does. */
static void remove_left (const char *directory, const char *name)
{
    DIR *list = opendir (directory);
    const struct dirent *entry;
    struct stat info;
    while (list != NULL && (entry = readdir (list)) != NULL)
        if (is_left (entry->d_name, name) &&
            fstatat (dirfd (list), entry->d_name, &info, AT_SYMLINK_NOFOLLOW) == 0 &&
            S_ISREG (info.st_mode) && info.st_uid == geteuid () &&
            info.st_mtime + DISK_LEFT_S < time (NULL))
            unlinkat (dirfd (list), entry->d_name, 0);
    if (list != NULL)
        closedir (list);
}

int disk_temporary (char *out, size_t size, const char *path)
{
    char directory[PATH_MAX];
    const char *name;
    if (!split (directory, &name, path))
        return -1;
    remove_left (directory, name);
    const int length = snprintf (out, size, "%s/.%s" MIDDLE RANDOM, directory, name);
    if (length < 0 || (size_t) length >= size) {
        errno = ENAMETOOLONG;
        return -1;
    }
    return mkostemp (out, O_CLOEXEC);
}
