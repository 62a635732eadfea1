/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

#include "blobs/depot.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sodium.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>

#include "core/base/memory.h"

enum {
    HASH_BYTES = TMQ_BLOB_HASH_BYTES,
    HEX_SIZE = 2 * HASH_BYTES + 1,
    PIECE_BYTES = 256 * 1024, /* that are read at once */
    NAME_SIZE = HEX_SIZE + 8
};

static const char UPLOADS[] = "uploads";
static const char SECOND[] = ".new"; /* ending of a second name on its way to its place */

/* An upload under way. */
typedef struct upload {
    char name[HEX_SIZE]; /* of its file */
    uint8_t owner[16];   /* hash of the identity */
    uint8_t hash[HASH_BYTES];
    uint64_t bytes;
    uint64_t offset;
    int64_t used_ms;
    crypto_generichash_state sum;
} upload_t;

struct depot {
    int directory;
    int uploads_at; /* the directory of them */
    depot_limits_t limits;
    depot_stats_t stats;
    upload_t *uploads;
    size_t uploads_count;
    unsigned bucket; /* of the next look; DEPOT_BUCKETS: the uploads */
    size_t passed;   /* that the looks before it have brought of this bucket */
    uint8_t piece[PIECE_BYTES];
};

static void hex_of (char out[HEX_SIZE], const uint8_t *hash)
{
    sodium_bin2hex (out, HEX_SIZE, hash, HASH_BYTES);
}

static bool hash_of_hex (uint8_t *out, const char *hex)
{
    size_t length = 0;
    return strlen (hex) == HEX_SIZE - 1 && strspn (hex, "0123456789abcdef") == HEX_SIZE - 1 &&
           sodium_hex2bin (out, HASH_BYTES, hex, HEX_SIZE - 1, NULL, &length, NULL) == 0 &&
           length == HASH_BYTES;
}

/* Words. */

__attribute__ ((format (printf, 3, 4))) static void refuse (depot_word_t *out, tmq_code_t code,
                                                            const char *format, ...)
{
    va_list arguments;
    va_start (arguments, format);
    vsnprintf (out->text, sizeof (out->text), format, arguments);
    va_end (arguments);
    out->code = code;
    out->retry_after_ms =
        code == TMQ_LIMIT || code == TMQ_STORE_FULL || code == TMQ_OVERLOADED ? DEPOT_RETRY_MS : 0;
}

static void refuse_error (depot_t *self, depot_word_t *out, const char *what, int error)
{
    self->stats.errors++;
    bool full = error == ENOSPC || error == EDQUOT;
    refuse (out, full ? TMQ_STORE_FULL : TMQ_INTERNAL, "%s: %s", what, strerror (error));
}

/* Directories and files. */

static int open_directory (int at, const char *name)
{
    return openat (at, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

/* -1 with errno. One that was made is on the disk before anything is in it. */
static int make_directory (int at, const char *name)
{
    int fd = open_directory (at, name);
    if (fd >= 0 || errno != ENOENT)
        return fd;
    if (mkdirat (at, name, 0700) != 0 && errno != EEXIST)
        return -1;
    fd = open_directory (at, name);
    int above = fd < 0 ? -1 : open_directory (fd, "..");
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

static int open_bucket (const depot_t *self, const char *hex, bool make)
{
    const char name[] = {hex[0], hex[1], '\0'};
    return make ? make_directory (self->directory, name) : open_directory (self->directory, name);
}

static int64_t touched_ns (const struct stat *info)
{
    return (int64_t) info->st_mtim.tv_sec * 1000000000 + info->st_mtim.tv_nsec;
}

static bool is_still (const struct stat *info)
{
    struct timespec now;
    clock_gettime (CLOCK_REALTIME, &now);
    return (int64_t) now.tv_sec - (int64_t) info->st_mtim.tv_sec >= DEPOT_IDLE_MS / 1000;
}

static bool find (int at, const char *name, struct stat *info)
{
    return fstatat (at, name, info, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG (info->st_mode);
}

/* Whether this file is the blob's; it is touched then, so that it stays. */
static bool keep_blob (const depot_t *self, const uint8_t *hash, int fd, const struct stat *file)
{
    char hex[HEX_SIZE];
    struct stat info;
    hex_of (hex, hash);
    int bucket = open_bucket (self, hex, false);
    if (bucket < 0)
        return false;
    /* A crash may have come between its name and the sync of that. */
    bool there = find (bucket, hex + 2, &info) && info.st_dev == file->st_dev &&
                 info.st_ino == file->st_ino && futimens (fd, NULL) == 0 && fsync (fd) == 0 &&
                 fsync (bucket) == 0 && fsync (self->directory) == 0;
    close (bucket);
    return there;
}

/* Adds what a file has from the offset on. 0 or an errno. */
static int sum_file (depot_t *self, int fd, uint64_t *offset, uint64_t bytes,
                     crypto_generichash_state *sum)
{
    while (*offset < bytes) {
        uint64_t left = bytes - *offset;
        ssize_t got = pread (fd, self->piece, left < PIECE_BYTES ? (size_t) left : PIECE_BYTES,
                             (off_t) *offset);
        if (got < 0)
            return errno;
        if (got == 0)
            break;
        crypto_generichash_update (sum, self->piece, (size_t) got);
        *offset += (uint64_t) got;
    }
    return 0;
}

static bool sum_is (const crypto_generichash_state *sum, const uint8_t *hash)
{
    uint8_t got[HASH_BYTES];
    crypto_generichash_state state = *sum; /* the end changes it */
    crypto_generichash_final (&state, got, HASH_BYTES);
    return memcmp (got, hash, HASH_BYTES) == 0;
}

/* Its bytes are read again, because they may have been damaged since they were compared: who brings
 * them once more must heal the blob then, and not hear that it is there. */
static bool has_blob (depot_t *self, const depot_upload_t *of, const char *name)
{
    struct stat info;
    uint64_t offset = 0;
    crypto_generichash_state sum;
    int fd = openat (self->uploads_at, name, O_RDWR | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return false;
    crypto_generichash_init (&sum, NULL, 0, HASH_BYTES);
    bool has = fstat (fd, &info) == 0 && S_ISREG (info.st_mode) && info.st_nlink > 1 &&
               (uint64_t) info.st_size == of->bytes &&
               sum_file (self, fd, &offset, of->bytes, &sum) == 0 && offset == of->bytes &&
               sum_is (&sum, of->hash) && keep_blob (self, of->hash, fd, &info);
    close (fd);
    return has;
}

/* Uploads in memory. */

static upload_t *upload_find (depot_t *self, const char *name)
{
    for (size_t i = 0; i < self->uploads_count; i++)
        if (strcmp (self->uploads[i].name, name) == 0)
            return &self->uploads[i];
    return NULL;
}

static void upload_forget (depot_t *self, upload_t *upload)
{
    self->stats.bytes -= upload->bytes;
    self->stats.uploads--;
    *upload = self->uploads[--self->uploads_count];
}

static void name_of (char out[HEX_SIZE], const depot_upload_t *of)
{
    uint8_t name[HASH_BYTES];
    crypto_generichash_state state;
    crypto_generichash_init (&state, NULL, 0, HASH_BYTES);
    crypto_generichash_update (&state, (const uint8_t *) of->identity, strlen (of->identity) + 1);
    crypto_generichash_update (&state, (const uint8_t *) of->ns, strlen (of->ns) + 1);
    crypto_generichash_update (&state, of->hash, HASH_BYTES);
    crypto_generichash_final (&state, name, HASH_BYTES);
    hex_of (out, name);
}

static size_t count_of (const depot_t *self, const uint8_t *owner)
{
    size_t count = 0;
    for (size_t i = 0; i < self->uploads_count; i++)
        count += memcmp (self->uploads[i].owner, owner, sizeof (self->uploads[i].owner)) == 0;
    return count;
}

static bool disk_has_room (depot_t *self, uint64_t bytes, depot_word_t *out)
{
    struct statvfs space;
    if (self->stats.bytes + bytes > self->limits.disk_bytes) {
        refuse (out, TMQ_LIMIT, "at most %" PRIu64 " bytes of blobs (limits/blobs_disk)",
                self->limits.disk_bytes);
        return false;
    }
    if (fstatvfs (self->directory, &space) != 0 ||
        (uint64_t) space.f_bavail * space.f_frsize >= self->limits.free_bytes_min + bytes)
        return true;
    refuse (out, TMQ_STORE_FULL, "the disk has no room for %" PRIu64 " bytes", bytes);
    return false;
}

static upload_t *upload_new (depot_t *self, const depot_upload_t *of, const char *name,
                             depot_word_t *out)
{
    upload_t made = {.bytes = of->bytes};
    crypto_generichash (made.owner, sizeof (made.owner), (const uint8_t *) of->identity,
                        strlen (of->identity), NULL, 0);
    if (!disk_has_room (self, of->bytes, out))
        return NULL;
    if (self->uploads_count == DEPOT_UPLOADS_MAX) {
        refuse (out, TMQ_OVERLOADED, "%d uploads are under way", DEPOT_UPLOADS_MAX);
        return NULL;
    }
    if (count_of (self, made.owner) >= DEPOT_UPLOADS_OF_ONE_MAX) {
        refuse (out, TMQ_LIMIT, "you have %d uploads under way, as many as you may have",
                DEPOT_UPLOADS_OF_ONE_MAX);
        return NULL;
    }
    memcpy (made.name, name, sizeof (made.name));
    memcpy (made.hash, of->hash, HASH_BYTES);
    crypto_generichash_init (&made.sum, NULL, 0, HASH_BYTES);
    self->uploads[self->uploads_count] = made;
    self->stats.bytes += of->bytes;
    self->stats.uploads++;
    return &self->uploads[self->uploads_count++];
}

/* A file of another length, or one that a blob has for its own, is no beginning of this upload. */
static void drop_other (const depot_t *self, const upload_t *upload)
{
    struct stat info;
    if (!find (self->uploads_at, upload->name, &info))
        return;
    uint64_t size = (uint64_t) info.st_size;
    if (size > upload->bytes || (info.st_nlink > 1 && size != upload->bytes))
        unlinkat (self->uploads_at, upload->name, 0);
}

/* What a former run has left of it. 0 or an errno. */
static int sum_again (depot_t *self, upload_t *upload)
{
    drop_other (self, upload);
    int fd = openat (self->uploads_at, upload->name, O_RDWR | O_NOFOLLOW | O_CLOEXEC);
    int error = fd < 0 && errno != ENOENT ? errno : 0;
    if (fd >= 0) {
        error = sum_file (self, fd, &upload->offset, upload->bytes, &upload->sum);
        close (fd);
    }
    if (error == 0 && upload->offset == upload->bytes && !sum_is (&upload->sum, upload->hash)) {
        unlinkat (self->uploads_at, upload->name, 0); /* torn or damaged: from the first byte */
        upload->offset = 0;
        crypto_generichash_init (&upload->sum, NULL, 0, HASH_BYTES);
    }
    return error;
}

/* The end of an upload. */

static bool is_intact (depot_t *self, const upload_t *upload, int bucket, const char *rest)
{
    uint64_t offset = 0;
    crypto_generichash_state sum;
    int fd = openat (bucket, rest, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return false;
    crypto_generichash_init (&sum, NULL, 0, HASH_BYTES);
    bool intact = sum_file (self, fd, &offset, upload->bytes, &sum) == 0 &&
                  offset == upload->bytes && sum_is (&sum, upload->hash);
    close (fd);
    return intact;
}

/* The directory of buckets, too: a crash may have come before it knew this one for certain. */
static int sync_names (const depot_t *self, int bucket)
{
    return fsync (bucket) == 0 && fsync (self->directory) == 0 && fsync (self->uploads_at) == 0
               ? 0
               : errno;
}

/* Somebody else brought the same bytes before: one copy is enough, and gets this first name, too.
 */
static int share (const depot_t *self, const upload_t *upload, int bucket, const char *rest,
                  const char *second)
{
    if (linkat (bucket, rest, self->uploads_at, second, 0) != 0 ||
        utimensat (bucket, rest, NULL, AT_SYMLINK_NOFOLLOW) != 0 ||
        renameat (self->uploads_at, second, self->uploads_at, upload->name) != 0)
        return errno;
    unlinkat (self->uploads_at, second, 0); /* of a name for the same file rename leaves both */
    return sync_names (self, bucket);
}

/* The second name. The first one stays, as the proof of who had the bytes. */
static int publish (depot_t *self, const upload_t *upload, int bucket, const char *rest)
{
    char second[NAME_SIZE];
    struct stat before;
    bool was_there = find (bucket, rest, &before);
    snprintf (second, sizeof (second), "%s%s", upload->name, SECOND);
    if (unlinkat (self->uploads_at, second, 0) != 0 && errno != ENOENT)
        return errno;
    if (was_there && (uint64_t) before.st_size == upload->bytes &&
        is_intact (self, upload, bucket, rest))
        return share (self, upload, bucket, rest, second);
    if (linkat (self->uploads_at, upload->name, self->uploads_at, second, 0) != 0)
        return errno;
    if (renameat (self->uploads_at, second, bucket, rest) != 0)
        return errno;
    unlinkat (self->uploads_at, second, 0); /* of a name for the same file rename leaves both */
    if (was_there)
        self->stats.bytes -= (uint64_t) before.st_size;
    self->stats.blobs += !was_there;
    self->stats.bytes += upload->bytes;
    return sync_names (self, bucket);
}

static int sync_upload (const depot_t *self, const char *name)
{
    int error = 0;
    int fd = openat (self->uploads_at, name, O_RDWR | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0 || fsync (fd) != 0 || futimens (fd, NULL) != 0)
        error = errno;
    if (fd >= 0)
        close (fd);
    return error;
}

static int finish (depot_t *self, const upload_t *upload)
{
    char hex[HEX_SIZE];
    hex_of (hex, upload->hash);
    int bucket = open_bucket (self, hex, true);
    if (bucket < 0)
        return errno;
    int error = publish (self, upload, bucket, hex + 2);
    close (bucket);
    return error;
}

/* Nothing of it stays: what it has are not the bytes of the hash, or not for certain. */
static void discard (depot_t *self, upload_t *upload)
{
    unlinkat (self->uploads_at, upload->name, 0);
    upload_forget (self, upload);
}

static void end_if_whole (depot_t *self, upload_t *upload, depot_word_t *out)
{
    out->offset = upload->offset;
    if (upload->offset < upload->bytes)
        return;
    if (!sum_is (&upload->sum, upload->hash)) {
        refuse (out, TMQ_CONFLICT, "the bytes are not those of the hash; the upload begins again");
        discard (self, upload);
        return;
    }
    /* A failed sync is told once: the next one would say that all is well, and it need not be. */
    int error = sync_upload (self, upload->name);
    if (error != 0) {
        refuse_error (self, out, "the blob cannot be kept", error);
        discard (self, upload);
        return;
    }
    error = finish (self, upload);
    if (error != 0) {
        refuse_error (self, out, "the blob cannot be kept", error);
        return;
    }
    out->whole = true;
    upload_forget (self, upload);
}

/* Requests. */

void depot_begin (depot_t *self, const depot_upload_t *of, int64_t mono_ms, depot_word_t *out)
{
    char name[HEX_SIZE];
    *out = (depot_word_t){.code = TMQ_OK};
    if (of->bytes > self->limits.blob_bytes) {
        refuse (out, TMQ_TOO_LARGE, "%" PRIu64 " bytes, at most %" PRIu64 " (limits/blob_bytes)",
                of->bytes, self->limits.blob_bytes);
        return;
    }
    name_of (name, of);
    upload_t *upload = upload_find (self, name);
    if (upload != NULL && upload->bytes != of->bytes) {
        discard (self, upload);
        upload = NULL;
    }
    if (upload == NULL && has_blob (self, of, name)) {
        out->offset = of->bytes;
        out->whole = true;
        return;
    }
    if (upload == NULL) {
        upload = upload_new (self, of, name, out);
        if (upload == NULL)
            return;
        int error = sum_again (self, upload);
        if (error != 0) {
            refuse_error (self, out, "the upload cannot be read again", error);
            discard (self, upload);
            return;
        }
    }
    upload->used_ms = mono_ms;
    end_if_whole (self, upload, out);
}

static int append (const depot_t *self, const upload_t *upload, const uint8_t *bytes, size_t length)
{
    int error = 0;
    size_t done = 0;
    int fd =
        openat (self->uploads_at, upload->name, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0)
        return errno;
    while (error == 0 && done < length) {
        ssize_t wrote = pwrite (fd, bytes + done, length - done, (off_t) (upload->offset + done));
        if (wrote <= 0)
            error = wrote < 0 ? errno : EIO;
        else
            done += (size_t) wrote;
    }
    close (fd);
    return error;
}

void depot_chunk (depot_t *self, const depot_upload_t *of, uint64_t offset, const uint8_t *bytes,
                  size_t length, int64_t mono_ms, depot_word_t *out)
{
    char name[HEX_SIZE];
    *out = (depot_word_t){.code = TMQ_OK};
    name_of (name, of);
    upload_t *upload = upload_find (self, name);
    if (upload == NULL) {
        refuse (out, TMQ_NO_BLOB, "there is no such upload; it is to be begun");
        return;
    }
    upload->used_ms = mono_ms;
    if (offset > upload->bytes || length > upload->bytes - offset) {
        refuse (out, TMQ_INVALID, "offset: the blob has %" PRIu64 " bytes", upload->bytes);
        return;
    }
    out->offset = upload->offset;
    if (offset > upload->offset || offset + length <= upload->offset)
        return;
    size_t known = (size_t) (upload->offset - offset);
    int error = append (self, upload, bytes + known, length - known);
    if (error != 0) {
        refuse_error (self, out, "the upload cannot be written", error);
        return;
    }
    crypto_generichash_update (&upload->sum, bytes + known, length - known);
    upload->offset += length - known;
    end_if_whole (self, upload, out);
}

void depot_read (depot_t *self, const uint8_t *hash, uint64_t bytes, uint64_t offset, uint8_t *to,
                 size_t limit, size_t *length, depot_word_t *out)
{
    char hex[HEX_SIZE];
    struct stat info = {0};
    *out = (depot_word_t){.code = TMQ_OK};
    *length = 0;
    hex_of (hex, hash);
    int bucket = open_bucket (self, hex, false);
    int fd = bucket < 0 ? -1 : openat (bucket, hex + 2, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    if (bucket >= 0)
        close (bucket);
    if (fd < 0 || fstat (fd, &info) != 0 || !S_ISREG (info.st_mode)) {
        refuse (out, TMQ_NO_BLOB, "the blob %s is missing", hex);
    } else if ((uint64_t) info.st_size != bytes) {
        refuse (out, TMQ_NO_BLOB, "the blob %s is damaged: %jd of %" PRIu64 " bytes", hex,
                (intmax_t) info.st_size, bytes);
    } else if (offset < bytes) {
        uint64_t left = bytes - offset;
        ssize_t got = pread (fd, to, left < limit ? (size_t) left : limit, (off_t) offset);
        if (got <= 0)
            refuse (out, TMQ_NO_BLOB, "the blob %s cannot be read: %s", hex, strerror (errno));
        else
            *length = (size_t) got;
    }
    self->stats.errors += out->code != TMQ_OK;
    if (fd >= 0)
        close (fd);
}

/* The look. */

static DIR *list_directory (int at, const char *name)
{
    int fd = open_directory (at, name);
    DIR *list = fd < 0 ? NULL : fdopendir (fd);
    if (list == NULL && fd >= 0)
        close (fd);
    return list;
}

static void look_at_uploads (depot_t *self, int64_t mono_ms)
{
    struct stat info;
    for (size_t i = self->uploads_count; i > 0; i--)
        if (mono_ms - self->uploads[i - 1].used_ms >= DEPOT_IDLE_MS)
            discard (self, &self->uploads[i - 1]);
    DIR *list = list_directory (self->directory, UPLOADS);
    if (list == NULL)
        return;
    for (const struct dirent *file = readdir (list); file != NULL; file = readdir (list)) {
        if (file->d_name[0] == '.' || upload_find (self, file->d_name) != NULL)
            continue;
        if (find (self->uploads_at, file->d_name, &info) && is_still (&info))
            unlinkat (self->uploads_at, file->d_name, 0);
    }
    closedir (list);
}

/* Behind those that were passed. False: there may be more. */
static bool look_at_bucket (depot_t *self, unsigned bucket, depot_left_t *out, size_t *count)
{
    char name[HEX_SIZE];
    char hex[NAME_SIZE];
    struct stat info;
    size_t passed = 0;
    snprintf (name, sizeof (name), "%02x", bucket);
    DIR *list = list_directory (self->directory, name);
    if (list == NULL)
        return true;
    for (const struct dirent *file = readdir (list); file != NULL && *count < DEPOT_SLICE_MAX;
         file = readdir (list)) {
        if (strlen (file->d_name) != HEX_SIZE - 3)
            continue;
        snprintf (hex, sizeof (hex), "%.2s%.62s", name, file->d_name);
        if (!find (dirfd (list), file->d_name, &info) || !is_still (&info) ||
            !hash_of_hex (out[*count].hash, hex) || passed++ < self->passed)
            continue;
        out[(*count)++].at = touched_ns (&info);
    }
    closedir (list);
    self->passed += *count;
    return *count < DEPOT_SLICE_MAX;
}

void depot_look (depot_t *self, int64_t mono_ms, depot_left_t *out, size_t *count)
{
    *count = 0;
    if (self->bucket == DEPOT_BUCKETS)
        look_at_uploads (self, mono_ms);
    else if (!look_at_bucket (self, self->bucket, out, count))
        return; /* the next look goes on with this one */
    self->passed = 0;
    self->bucket = self->bucket == DEPOT_BUCKETS ? 0 : self->bucket + 1;
}

void depot_collect (depot_t *self, const depot_left_t *left)
{
    char hex[HEX_SIZE];
    struct stat info;
    hex_of (hex, left->hash);
    int bucket = open_bucket (self, hex, false);
    if (bucket < 0)
        return;
    if (find (bucket, hex + 2, &info) && touched_ns (&info) == left->at && is_still (&info) &&
        unlinkat (bucket, hex + 2, 0) == 0) {
        self->stats.blobs--;
        self->stats.bytes -= (uint64_t) info.st_size;
        self->stats.collected++;
    }
    close (bucket);
}

/* Life. */

static void count_bucket (depot_t *self, unsigned bucket)
{
    char name[HEX_SIZE];
    struct stat info;
    snprintf (name, sizeof (name), "%02x", bucket);
    DIR *list = list_directory (self->directory, name);
    if (list == NULL)
        return;
    for (const struct dirent *file = readdir (list); file != NULL; file = readdir (list))
        if (find (dirfd (list), file->d_name, &info)) {
            self->stats.blobs++;
            self->stats.bytes += (uint64_t) info.st_size;
        }
    closedir (list);
}

depot_t *depot_new (const char *directory, const depot_limits_t *limits, int *error)
{
    depot_t *self = memory_zero (1, sizeof (*self));
    self->limits = *limits;
    self->uploads = aligned_alloc (_Alignof(upload_t), DEPOT_UPLOADS_MAX * sizeof (upload_t));
    if (self->uploads == NULL)
        abort ();
    self->uploads_at = -1;
    self->directory = make_directory (AT_FDCWD, directory);
    if (self->directory >= 0)
        self->uploads_at = make_directory (self->directory, UPLOADS);
    if (self->uploads_at < 0) {
        *error = errno;
        depot_free (&self);
        return NULL;
    }
    for (unsigned bucket = 0; bucket < DEPOT_BUCKETS; bucket++)
        count_bucket (self, bucket);
    return self;
}

void depot_free (depot_t **self_p)
{
    depot_t *self = *self_p;
    if (self == NULL)
        return;
    *self_p = NULL;
    if (self->uploads_at >= 0)
        close (self->uploads_at);
    if (self->directory >= 0)
        close (self->directory);
    free (self->uploads);
    free (self);
}

void depot_configure (depot_t *self, const depot_limits_t *limits)
{
    self->limits = *limits;
}

depot_stats_t depot_stats (const depot_t *self)
{
    return self->stats;
}
