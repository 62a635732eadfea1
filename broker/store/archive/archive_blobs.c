/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

#include "store/archive/archive_blobs.h"

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
#include "taskmq_types.h"

enum { PATH_SIZE = 4096 + 160, CHUNK_BYTES = 256 * 1024, BUCKETS = 256 };

/* A file beside, until it has its name. */
static const char BESIDE[] = ".new";

static void hex_of (char out[ARCHIVE_HEX_SIZE], const uint8_t *hash)
{
    sodium_bin2hex (out, ARCHIVE_HEX_SIZE, hash, TMQ_BLOB_HASH_BYTES);
}

static bool hash_of (uint8_t out[TMQ_BLOB_HASH_BYTES], const char *hex)
{
    size_t length = 0;
    return strlen (hex) == ARCHIVE_HEX_SIZE - 1 &&
           sodium_hex2bin (out, TMQ_BLOB_HASH_BYTES, hex, ARCHIVE_HEX_SIZE - 1, NULL, &length,
                           NULL) == 0 &&
           length == TMQ_BLOB_HASH_BYTES;
}

void archive_blob_keep (const char *blobs, const char *spool, const uint8_t *hash)
{
    char hex[ARCHIVE_HEX_SIZE];
    char from[PATH_SIZE];
    char to[PATH_SIZE];
    struct stat waits;
    hex_of (hex, hash);
    snprintf (from, sizeof (from), "%s/%.2s/%s", blobs, hex, hex + 2);
    snprintf (to, sizeof (to), "%s/" ARCHIVE_BLOBS "/%s", spool, hex);
    if (link (from, to) == 0)
        return;
    if (errno == EEXIST && (stat (to, &waits) != 0 || waits.st_size > 0))
        return;
    /* The sign of one that was not there then. */
    if (errno == EEXIST && unlink (to) == 0 && link (from, to) == 0)
        return;
    /* An empty file stands for one that is not there. */
    int fd = open (to, O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd >= 0)
        close (fd);
}

static DIR *open_waiting (const char *spool)
{
    char path[PATH_SIZE];
    snprintf (path, sizeof (path), "%s/" ARCHIVE_BLOBS, spool);
    return opendir (path);
}

void archive_blobs_forget (const char *spool)
{
    uint8_t hash[TMQ_BLOB_HASH_BYTES];
    DIR *waiting = open_waiting (spool);
    if (waiting == NULL)
        return;
    for (const struct dirent *entry; (entry = readdir (waiting)) != NULL;)
        if (hash_of (hash, entry->d_name))
            unlinkat (dirfd (waiting), entry->d_name, 0);
    closedir (waiting);
}

/* Copying. */

/* Reads all of a file, and writes it to another one unless that is -1. *read_ok false: it was the
 * reading that failed. */
static bool pass (int from, int to, uint8_t hash[TMQ_BLOB_HASH_BYTES], bool *read_ok)
{
    crypto_generichash_state state;
    char *chunk = memory_alloc (CHUNK_BYTES);
    bool good = true;
    *read_ok = true;
    crypto_generichash_init (&state, NULL, 0, TMQ_BLOB_HASH_BYTES);
    while (good) {
        ssize_t got = read (from, chunk, CHUNK_BYTES);
        if (got < 0 && errno == EINTR)
            continue;
        if (got == 0)
            break;
        *read_ok = good = got > 0;
        if (good)
            crypto_generichash_update (&state, (const unsigned char *) chunk, (size_t) got);
        if (good && to >= 0)
            good = disk_write (to, chunk, (size_t) got) == 0;
    }
    crypto_generichash_final (&state, hash, TMQ_BLOB_HASH_BYTES);
    int error = errno;
    free (chunk);
    errno = error;
    return good;
}

/* EBADMSG: what was read is not what its name says. *read_ok as with pass. */
static bool copy (int from, const char *path, const uint8_t *hash, bool *read_ok)
{
    uint8_t found[TMQ_BLOB_HASH_BYTES];
    char beside[PATH_SIZE];
    *read_ok = true;
    snprintf (beside, sizeof (beside), "%s%s", path, BESIDE);
    int to = open (beside, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (to < 0)
        return false;
    bool good = pass (from, to, found, read_ok);
    if (good && memcmp (found, hash, TMQ_BLOB_HASH_BYTES) != 0) {
        good = false;
        errno = EBADMSG;
    }
    good = good && fsync (to) == 0 && rename (beside, path) == 0;
    int error = errno;
    close (to);
    if (!good)
        unlink (beside);
    errno = error;
    return good;
}

/* Carrying. */

/* The one that waits, which may be the empty sign of one that was gone. *read_ok false: it is
 * there, and could not be read. */
static bool carry_file (int from, const char *hex, const char *directory, bool *read_ok)
{
    uint8_t hash[TMQ_BLOB_HASH_BYTES];
    char path[PATH_SIZE];
    char bucket[PATH_SIZE];
    struct stat source;
    struct stat there;
    snprintf (path, sizeof (path), "%s/" ARCHIVE_BLOBS, directory);
    snprintf (bucket, sizeof (bucket), "%s/" ARCHIVE_BLOBS "/%.2s", directory, hex);
    if (fstat (from, &source) != 0 || disk_make_directory (path) != 0 ||
        disk_make_directory (bucket) != 0)
        return false;
    snprintf (path, sizeof (path), "%s/" ARCHIVE_BLOBS "/%.2s/%s", directory, hex, hex + 2);
    bool has = stat (path, &there) == 0;
    if (has && (source.st_size == 0 || there.st_size == source.st_size))
        return utimensat (AT_FDCWD, path, NULL, 0) == 0 && /* it is named again */
               disk_sync_directory (bucket) == 0;
    if (source.st_size == 0) {
        errno = EBADMSG;
        return false;
    }
    return hash_of (hash, hex) && copy (from, path, hash, read_ok) &&
           disk_sync_directory (bucket) == 0;
}

static bool carry (int waiting, const char *hex, const char *directory, bool *read_ok)
{
    int from = openat (waiting, hex, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    *read_ok = from >= 0 || errno == ENOENT;
    if (from < 0)
        return *read_ok; /* given up meanwhile */
    bool good = carry_file (from, hex, directory, read_ok);
    int error = errno;
    close (from);
    errno = error;
    return good;
}

/* What became of one that waits. False: the archive fails. */
static bool note (archive_blobs_report_t *out, bool good, bool read_ok, const char *hex,
                  bool *stays)
{
    *stays = false;
    if (good) {
        out->carried++;
    } else if (!read_ok) {
        *stays = true;
        out->error = errno;
        out->unreadable++;
        snprintf (out->unread, sizeof (out->unread), "%.64s", hex);
    } else if (errno == EBADMSG) {
        out->damaged++;
        snprintf (out->example, sizeof (out->example), "%.64s", hex);
    } else {
        return false;
    }
    return true;
}

static bool unread_has (const archive_unread_t *self, const uint8_t *hash)
{
    for (size_t i = 0; i < self->count; i++)
        if (memcmp (self->hashes[i], hash, TMQ_BLOB_HASH_BYTES) == 0)
            return true;
    return false;
}

static void unread_add (archive_unread_t *self, const uint8_t *hash)
{
    if (self->count < ARCHIVE_UNREAD_MAX)
        memcpy (self->hashes[self->count++], hash, TMQ_BLOB_HASH_BYTES);
}

bool archive_blobs_carry (const char *spool, const char *directory, archive_unread_t *unread,
                          archive_blobs_report_t *out)
{
    uint8_t hash[TMQ_BLOB_HASH_BYTES];
    *out = (archive_blobs_report_t){.carried = 0};
    DIR *waiting = open_waiting (spool);
    if (waiting == NULL)
        return true;
    bool good = true;
    for (const struct dirent *entry; good && (entry = readdir (waiting)) != NULL;) {
        if (!hash_of (hash, entry->d_name))
            continue;
        bool read_ok;
        bool stays;
        if (unread_has (unread, hash)) {
            out->unreadable++;
            continue;
        }
        good = carry (dirfd (waiting), entry->d_name, directory, &read_ok);
        good = note (out, good, read_ok, entry->d_name, &stays);
        if (good && stays)
            unread_add (unread, hash);
        else if (good)
            unlinkat (dirfd (waiting), entry->d_name, 0);
    }
    int error = errno;
    closedir (waiting);
    errno = error;
    return good;
}

void archive_blobs_expire (const char *directory, int64_t before_ms)
{
    for (unsigned bucket = 0; bucket < BUCKETS; bucket++) {
        char path[PATH_SIZE];
        struct stat info;
        snprintf (path, sizeof (path), "%s/" ARCHIVE_BLOBS "/%02x", directory, bucket);
        DIR *files = opendir (path);
        for (const struct dirent *file; files != NULL && (file = readdir (files)) != NULL;)
            if (fstatat (dirfd (files), file->d_name, &info, AT_SYMLINK_NOFOLLOW) == 0 &&
                S_ISREG (info.st_mode) && (int64_t) info.st_mtim.tv_sec * 1000 < before_ms)
                unlinkat (dirfd (files), file->d_name, 0);
        if (files != NULL)
            closedir (files);
    }
}

bool archive_blob_fetch (const char *directory, const uint8_t *hash, const char *path,
                         bool *read_ok)
{
    char hex[ARCHIVE_HEX_SIZE];
    char name[PATH_SIZE];
    hex_of (hex, hash);
    snprintf (name, sizeof (name), "%s/" ARCHIVE_BLOBS "/%.2s/%s", directory, hex, hex + 2);
    int from = open (name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    *read_ok = from >= 0 || errno == ENOENT;
    if (from < 0)
        return false;
    bool good = copy (from, path, hash, read_ok);
    int error = errno;
    close (from);
    errno = error;
    return good;
}
