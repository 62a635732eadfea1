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

static bool is_left (const char *entry, const char *name)
{
    const size_t length = strlen (name);
    return entry[0] == '.' && strncmp (entry + 1, name, length) == 0 &&
           strncmp (entry + 1 + length, MIDDLE, strlen (MIDDLE)) == 0 &&
           strlen (entry + 1 + length) == strlen (MIDDLE RANDOM);
}

/* Somebody may be writing just now, so only what is old goes. */
static void remove_left (const char *directory, const char *name)
{
    DIR *list = opendir (directory);
    const struct dirent *entry;
    struct stat info;
    while (list != NULL && (entry = readdir (list)) != NULL)
        if (is_left (entry->d_name, name) &&
            fstatat (dirfd (list), entry->d_name, &info, AT_SYMLINK_NOFOLLOW) == 0 &&
            S_ISREG (info.st_mode) && info.st_mtime + DISK_LEFT_S < time (NULL))
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
