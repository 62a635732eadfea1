/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

#include "blobs/blob_files.h"

#include <errno.h>
#include <fcntl.h>
#include <sodium.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { HASH_BYTES = TMQ_BLOB_HASH_BYTES };

void blob_hex (char out[BLOB_HEX_SIZE], const uint8_t *hash)
{
    sodium_bin2hex (out, BLOB_HEX_SIZE, hash, HASH_BYTES);
}

bool blob_hash_of_hex (uint8_t *out, const char *hex)
{
    size_t length = 0;
    return strlen (hex) == BLOB_HEX_SIZE - 1 &&
           strspn (hex, "0123456789abcdef") == BLOB_HEX_SIZE - 1 &&
           sodium_hex2bin (out, HASH_BYTES, hex, BLOB_HEX_SIZE - 1, NULL, &length, NULL) == 0 &&
           length == HASH_BYTES;
}

int blob_directory_open (int at, const char *name)
{
    return openat (at, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

int blob_directory_make (int at, const char *name)
{
    int fd = blob_directory_open (at, name);
    if (fd >= 0 || errno != ENOENT)
        return fd;
    if (mkdirat (at, name, 0700) != 0 && errno != EEXIST)
        return -1;
    fd = blob_directory_open (at, name);
    int above = fd < 0 ? -1 : blob_directory_open (fd, "..");
    if (above >= 0 && fsync (above) == 0) {
        close (above);
        return fd;
    }
    int error = errno;
    if (above >= 0)
        close (above);
    if (fd >= 0)
        close (fd);
    errno = error;
    return -1;
}

DIR *blob_directory_list (int at, const char *name)
{
    int fd = blob_directory_open (at, name);
    DIR *list = fd < 0 ? NULL : fdopendir (fd);
    if (list == NULL && fd >= 0)
        close (fd);
    return list;
}

bool blob_file_find (int at, const char *name, struct stat *info)
{
    return fstatat (at, name, info, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG (info->st_mode);
}

int64_t blob_file_touched_ns (const struct stat *info)
{
    return (int64_t) info->st_mtim.tv_sec * 1000000000 + info->st_mtim.tv_nsec;
}

bool blob_file_is_still (const struct stat *info, int64_t ms)
{
    struct timespec now;
    clock_gettime (CLOCK_REALTIME, &now);
    return (int64_t) now.tv_sec - (int64_t) info->st_mtim.tv_sec >= ms / 1000;
}
