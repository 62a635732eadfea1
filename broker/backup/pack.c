/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

#include "backup/pack.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/memory.h"
#include "disk.h"

enum { BUCKETS = 256, HEX_SIZE = 2 * PACK_HASH_BYTES + 1, NUMBER_BYTES = 8 };

static DIR *open_list (int at, const char *name)
{
    int fd = openat (at, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    DIR *list = fd < 0 ? NULL : fdopendir (fd);
    if (list == NULL && fd >= 0)
        close (fd);
    return list;
}

static bool read_name (uint8_t out[PACK_HASH_BYTES], unsigned bucket, const char *rest)
{
    char hex[HEX_SIZE + 1];
    size_t length = 0;
    return strlen (rest) == HEX_SIZE - 3 &&
           snprintf (hex, sizeof (hex), "%02x%.62s", bucket, rest) == HEX_SIZE - 1 &&
           sodium_hex2bin (out, PACK_HASH_BYTES, hex, HEX_SIZE - 1, NULL, &length, NULL) == 0 &&
           length == PACK_HASH_BYTES;
}

/* The same as the names of broker/blobs: two digits are the directory. */
static void name_of (char bucket[3], char rest[HEX_SIZE], const uint8_t *hash)
{
    char hex[HEX_SIZE];
    sodium_bin2hex (hex, sizeof (hex), hash, PACK_HASH_BYTES);
    memcpy (bucket, hex, 2);
    bucket[2] = '\0';
    memcpy (rest, hex + 2, HEX_SIZE - 2);
}

bool pack_list (const char *directory, pack_blob_t **out, size_t *count)
{
    size_t capacity = 0;
    *out = NULL;
    *count = 0;
    for (unsigned bucket = 0; bucket < BUCKETS; bucket++) {
        char path[4096 + 16];
        struct stat info;
        snprintf (path, sizeof (path), "%s/%02x", directory, bucket);
        DIR *list = open_list (AT_FDCWD, path);
        if (list == NULL && errno != ENOENT)
            return false;
        for (const struct dirent *file; list != NULL && (file = readdir (list)) != NULL;) {
            pack_blob_t blob;
            if (!read_name (blob.hash, bucket, file->d_name) ||
                fstatat (dirfd (list), file->d_name, &info, AT_SYMLINK_NOFOLLOW) != 0 ||
                !S_ISREG (info.st_mode))
                continue;
            blob.bytes = (uint64_t) info.st_size;
            *out = memory_grow (*out, &capacity, *count, sizeof (**out));
            (*out)[(*count)++] = blob;
        }
        if (list != NULL)
            closedir (list);
    }
    return true;
}

uint64_t pack_bytes (const pack_blob_t *blobs, size_t count)
{
    uint64_t bytes = count * PACK_HEAD_BYTES;
    for (size_t i = 0; i < count; i++)
        bytes += blobs[i].bytes;
    return bytes;
}

void pack_head (uint8_t out[PACK_HEAD_BYTES], const pack_blob_t *blob)
{
    memcpy (out, blob->hash, PACK_HASH_BYTES);
    for (int i = 0; i < NUMBER_BYTES; i++)
        out[PACK_HASH_BYTES + i] = (uint8_t) (blob->bytes >> (56 - 8 * i));
}

int pack_open (const char *directory, const pack_blob_t *blob)
{
    char path[4096 + 2 * HEX_SIZE];
    char bucket[3];
    char rest[HEX_SIZE];
    name_of (bucket, rest, blob->hash);
    snprintf (path, sizeof (path), "%s/%s/%s", directory, bucket, rest);
    return open (path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
}

/* Unpacking. */

struct unpack {
    crypto_generichash_state sum; /* first: it wants to lie well */
    int directory;
    uint8_t head[PACK_HEAD_BYTES];
    size_t head_bytes; /* read of it */
    int fd;            /* of the file under way; -1: its head is read */
    uint64_t left;     /* of its bytes */
};

unpack_t *unpack_new (int at, const char *name)
{
    unpack_t *self = aligned_alloc (_Alignof(unpack_t), sizeof (*self));
    if (self == NULL)
        abort ();
    memset (self, 0, sizeof (*self));
    self->fd = -1;
    self->directory = mkdirat (at, name, 0700) == 0 || errno == EEXIST
                          ? openat (at, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)
                          : -1;
    return self;
}

void unpack_free (unpack_t **self_p)
{
    unpack_t *self = *self_p;
    if (self == NULL)
        return;
    *self_p = NULL;
    if (self->fd >= 0)
        close (self->fd);
    if (self->directory >= 0)
        close (self->directory);
    free (self);
}

static const char *begin_file (unpack_t *self)
{
    char bucket[3];
    char rest[HEX_SIZE];
    self->left = 0;
    for (int i = 0; i < NUMBER_BYTES; i++)
        self->left = self->left << 8 | self->head[PACK_HASH_BYTES + i];
    name_of (bucket, rest, self->head);
    if (mkdirat (self->directory, bucket, 0700) != 0 && errno != EEXIST)
        return "";
    int at = openat (self->directory, bucket, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (at < 0)
        return "";
    self->fd = openat (at, rest, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    close (at);
    crypto_generichash_init (&self->sum, NULL, 0, PACK_HASH_BYTES);
    return self->fd < 0 ? "" : NULL;
}

static const char *end_file (unpack_t *self)
{
    uint8_t sum[PACK_HASH_BYTES];
    crypto_generichash_final (&self->sum, sum, sizeof (sum));
    if (memcmp (sum, self->head, sizeof (sum)) != 0)
        return "a blob is not what was backed up";
    bool good = fsync (self->fd) == 0;
    close (self->fd);
    self->fd = -1;
    self->head_bytes = 0;
    return good ? NULL : "";
}

const char *unpack_add (unpack_t *self, const uint8_t *bytes, size_t length)
{
    const char *wrong = self->directory < 0 ? "" : NULL;
    while (wrong == NULL && length > 0) {
        bool in_head = self->fd < 0;
        uint64_t wanted = in_head ? PACK_HEAD_BYTES - self->head_bytes : self->left;
        size_t taken = length < wanted ? length : (size_t) wanted;
        if (in_head) {
            memcpy (self->head + self->head_bytes, bytes, taken);
            self->head_bytes += taken;
            wrong = self->head_bytes == PACK_HEAD_BYTES ? begin_file (self) : NULL;
        } else if (disk_write (self->fd, bytes, taken) != 0) {
            wrong = "";
        } else {
            crypto_generichash_update (&self->sum, bytes, taken);
            self->left -= taken;
        }
        if (wrong == NULL && self->fd >= 0 && self->left == 0)
            wrong = end_file (self);
        bytes += taken;
        length -= taken;
    }
    return wrong;
}

const char *unpack_end (unpack_t *self)
{
    if (self->directory < 0)
        return "";
    if (self->fd >= 0 || self->head_bytes > 0)
        return "the blobs end in the middle of one";
    for (unsigned bucket = 0; bucket < BUCKETS; bucket++) {
        char name[8];
        snprintf (name, sizeof (name), "%02x", bucket);
        int fd = openat (self->directory, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        bool synced = fd < 0 || fsync (fd) == 0;
        if (fd >= 0)
            close (fd);
        if (!synced)
            return "";
    }
    return fsync (self->directory) == 0 ? NULL : "";
}

void pack_remove (int at, const char *name)
{
    DIR *buckets = open_list (at, name);
    if (buckets == NULL)
        return;
    for (const struct dirent *bucket; (bucket = readdir (buckets)) != NULL;) {
        DIR *files = bucket->d_name[0] == '.' ? NULL : open_list (dirfd (buckets), bucket->d_name);
        for (const struct dirent *file; files != NULL && (file = readdir (files)) != NULL;)
            unlinkat (dirfd (files), file->d_name, 0);
        if (files == NULL)
            continue;
        closedir (files);
        unlinkat (dirfd (buckets), bucket->d_name, AT_REMOVEDIR);
    }
    closedir (buckets);
    unlinkat (at, name, AT_REMOVEDIR);
}
