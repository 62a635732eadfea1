/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

#include "backup/backup.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "backup/named.h"
#include "backup/pack.h"
#include "backup/tar.h"
#include "core/base/memory.h"
#include "disk.h"
#include "timestamp.h"
#include "units.h"

#define SCRATCH BACKUP_DIRECTORY "/.tmp"
#define ENDING ".tar"
enum {
    CHUNK_BYTES = 256 * 1024,
    SYNC_BYTES = 8 * 1024 * 1024, /* so that a sync of it all does not hold up a commit for long */
    STAMP_LENGTH = 19             /* 20261122T150405.123Z */
};

/* A tar file that grows. */
typedef struct archive {
    const backup_options_t *options;
    manifest_t *manifest;
    int fd;
    uint64_t length;
    uint64_t synced;
    named_t *named; /* blobs that the tables in it name */
} archive_t;

/* A file that goes into it. */
typedef struct source {
    int fd;
    const char *path;
    uint64_t bytes;
    crypto_generichash_state *hash; /* of the part */
    crypto_generichash_state *own;  /* of this file alone, or NULL */
    bool unread;                    /* it could not be read */
} source_t;

static store_code_t fail_system (store_error_t *error, const char *path, const char *what)
{
    store_code_t code = errno == ENOSPC || errno == EDQUOT ? STORE_ERROR_FULL : STORE_ERROR_IO;
    return store_fail (error, code, "%s: %s: %s", path, what, strerror (errno));
}

static void path_of (char *out, const char *directory, const char *name)
{
    snprintf (out, BACKUP_PATH_SIZE, "%s/%s", directory, name);
}

/* Files of the scratch directory and those that SQLite may put beside a database. */
void backup_clean (const char *directory)
{
    static const char *const left[] = {SCRATCH "/taskmq.db", SCRATCH "/taskmq.db-wal",
                                       SCRATCH "/taskmq.db-shm", SCRATCH "/backup.tar"};
    char path[BACKUP_PATH_SIZE];
    for (size_t i = 0; i < sizeof (left) / sizeof (left[0]); i++) {
        path_of (path, directory, left[i]);
        unlink (path);
    }
    path_of (path, directory, SCRATCH);
    rmdir (path);
}

static store_code_t make_directories (const char *directory, store_error_t *error)
{
    static const char *const names[] = {BACKUP_DIRECTORY, SCRATCH};
    char path[BACKUP_PATH_SIZE];
    for (size_t i = 0; i < sizeof (names) / sizeof (names[0]); i++) {
        path_of (path, directory, names[i]);
        if (mkdir (path, 0700) != 0 && errno != EEXIST)
            return fail_system (error, path, "cannot be made");
    }
    return STORE_OK;
}

static uint64_t bytes_of_blobs (const char *directory)
{
    char path[BACKUP_PATH_SIZE];
    pack_blob_t *blobs;
    size_t count;
    path_of (path, directory, manifest_file (PART_BLOBS));
    pack_list (path, &blobs, &count);
    uint64_t bytes = pack_bytes (blobs, count);
    free (blobs);
    return bytes;
}

/* The copy and the archive of it stand side by side for a moment. */
static store_code_t look_for_space (const backup_options_t *options, store_error_t *error)
{
    store_stats_t stats;
    char wanted[UNITS_TEXT_SIZE];
    char free_bytes[UNITS_TEXT_SIZE];
    store_stats (options->store, &stats);
    uint64_t needed = 2 * (stats.database_bytes + stats.wal_bytes) + options->free_bytes_min +
                      bytes_of_blobs (options->directory);
    if (stats.free_bytes >= needed)
        return STORE_OK;
    return store_fail (error, STORE_ERROR_FULL,
                       "a backup needs %s of free space where the data is, and %s are free",
                       size_format (wanted, needed), size_format (free_bytes, stats.free_bytes));
}

static store_code_t copy_tables (const backup_options_t *options, backup_made_t *out,
                                 store_error_t *error)
{
    char path[BACKUP_PATH_SIZE];
    path_of (path, options->directory, SCRATCH "/taskmq.db");
    store_backup_t copy = {.path = path, .goes_on = options->goes_on, .context = options->context};
    store_code_t code = store_backup (options->store, &copy, error);
    if (code != STORE_OK)
        return code;
    out->steps = copy.steps;
    out->step_us_max = copy.step_us_max;
    out->manifest.generation = copy.generation;
    out->manifest.epoch = copy.epoch;
    out->manifest.batch = copy.batch;
    out->manifest.newest_ms = copy.newest_ms;
    out->manifest.tasks = copy.tasks;
    path_of (path, options->directory, SCRATCH);
    return store_look (path, error);
}

/* The archive. */

static store_code_t put (archive_t *self, const void *bytes, size_t length, store_error_t *error)
{
    if (disk_write (self->fd, bytes, length) != 0)
        return fail_system (error, "the backup", "cannot be written");
    self->length += length;
    if (self->length - self->synced >= SYNC_BYTES) {
        if (fdatasync (self->fd) != 0)
            return fail_system (error, "the backup", "cannot be synced");
        self->synced = self->length;
    }
    return STORE_OK;
}

static void make_head (const archive_t *self, uint8_t out[TAR_BLOCK_BYTES], const char *name,
                       uint64_t bytes)
{
    tar_member_t member = {.bytes = bytes};
    snprintf (member.name, sizeof (member.name), "%s", name);
    tar_write (out, &member, self->manifest->made_ms / 1000);
}

static store_code_t put_head (archive_t *self, const char *name, uint64_t bytes,
                              store_error_t *error)
{
    uint8_t block[TAR_BLOCK_BYTES];
    make_head (self, block, name, bytes);
    return put (self, block, sizeof (block), error);
}

/* How long the blobs are is known behind them. */
static store_code_t put_length (const archive_t *self, off_t head_at, uint64_t bytes,
                                store_error_t *error)
{
    uint8_t block[TAR_BLOCK_BYTES];
    make_head (self, block, manifest_file (PART_BLOBS), bytes);
    return pwrite (self->fd, block, sizeof (block), head_at) == (ssize_t) sizeof (block)
               ? STORE_OK
               : fail_system (error, "the backup", "cannot be written");
}

static store_code_t put_rest (archive_t *self, uint64_t bytes, store_error_t *error)
{
    static const uint8_t zeroes[TAR_BLOCK_BYTES];
    return put (self, zeroes, tar_rest (bytes), error);
}

/* Adds them to the hashes. */
static store_code_t put_bytes (archive_t *self, source_t *from, store_error_t *error)
{
    store_code_t code = STORE_OK;
    char *chunk = memory_alloc (CHUNK_BYTES);
    uint64_t left = from->bytes;
    while (code == STORE_OK && left > 0) {
        ssize_t got = read (from->fd, chunk, left < CHUNK_BYTES ? (size_t) left : CHUNK_BYTES);
        from->unread = got <= 0;
        if (got <= 0)
            code = fail_system (error, from->path, got < 0 ? "cannot be read" : "became shorter");
        else if (self->options->goes_on != NULL && !self->options->goes_on (self->options->context))
            code = store_fail (error, STORE_ERROR_BUSY, "the backup was given up");
        if (code != STORE_OK)
            break;
        crypto_generichash_update (from->hash, (const unsigned char *) chunk, (size_t) got);
        if (from->own != NULL)
            crypto_generichash_update (from->own, (const unsigned char *) chunk, (size_t) got);
        code = put (self, chunk, (size_t) got, error);
        left -= (uint64_t) got;
    }
    sodium_memzero (chunk, CHUNK_BYTES); /* it may hold the broker's key */
    free (chunk);
    return code;
}

/* One file as a part; one that need not be there may be missing. */
static store_code_t put_part (archive_t *self, manifest_part_name_t name, const char *path,
                              bool needed, store_error_t *error)
{
    manifest_part_t *part = &self->manifest->parts[name];
    crypto_generichash_state hash;
    struct stat info;
    int fd = path != NULL ? open (path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW) : -1;
    if (fd < 0 && !needed && (path == NULL || errno == ENOENT))
        return STORE_OK;
    if (fd < 0)
        return fail_system (error, path, "cannot be read");
    store_code_t code = STORE_OK;
    if (fstat (fd, &info) != 0 || !S_ISREG (info.st_mode) ||
        (uint64_t) info.st_size > manifest_bytes_max (name))
        code =
            store_fail (error, STORE_ERROR_IO, "%s: is no file, or too large for a backup", path);
    *part = (manifest_part_t){.there = true, .bytes = (uint64_t) info.st_size};
    if (code == STORE_OK)
        code = put_head (self, manifest_file (name), part->bytes, error);
    crypto_generichash_init (&hash, NULL, 0, MANIFEST_HASH_BYTES);
    source_t source = {.fd = fd, .path = path, .bytes = part->bytes, .hash = &hash};
    if (code == STORE_OK)
        code = put_bytes (self, &source, error);
    crypto_generichash_final (&hash, part->hash, MANIFEST_HASH_BYTES);
    if (code == STORE_OK)
        code = put_rest (self, part->bytes, error);
    close (fd);
    return code;
}

/* *good: it could be read, and its bytes are those of its name. */
static store_code_t try_blob (archive_t *self, const char *directory, const pack_blob_t *blob,
                              crypto_generichash_state *hash, bool *good, store_error_t *error)
{
    uint8_t head[PACK_HEAD_BYTES];
    uint8_t sum[PACK_HASH_BYTES];
    crypto_generichash_state own;
    source_t source = {.fd = pack_open (directory, blob),
                       .path = directory,
                       .bytes = blob->bytes,
                       .hash = hash,
                       .own = &own};
    *good = false;
    if (source.fd < 0)
        return STORE_OK;
    pack_head (head, blob);
    crypto_generichash_init (&own, NULL, 0, sizeof (sum));
    crypto_generichash_update (hash, head, sizeof (head));
    store_code_t code = put (self, head, sizeof (head), error);
    if (code == STORE_OK)
        code = put_bytes (self, &source, error);
    crypto_generichash_final (&own, sum, sizeof (sum));
    *good = code == STORE_OK && memcmp (sum, blob->hash, sizeof (sum)) == 0;
    close (source.fd);
    return source.unread ? STORE_OK : code;
}

/* One that is damaged is left out: with it nobody could restore the others. */
static store_code_t put_blob (archive_t *self, const char *directory, const pack_blob_t *blob,
                              crypto_generichash_state *hash, store_error_t *error)
{
    const crypto_generichash_state before = *hash;
    uint64_t length = self->length;
    bool good;
    store_code_t code = try_blob (self, directory, blob, hash, &good, error);
    if (good)
        named_have (self->named, blob->hash);
    if (code != STORE_OK || good)
        return code;
    *hash = before;
    self->length = length;
    self->synced = self->synced < length ? self->synced : length;
    if (ftruncate (self->fd, (off_t) length) != 0 || lseek (self->fd, (off_t) length, SEEK_SET) < 0)
        return fail_system (error, "the backup", "cannot be written");
    return STORE_OK;
}

static store_code_t put_blobs_listed (archive_t *self, const char *directory,
                                      const pack_blob_t *blobs, size_t count, store_error_t *error)
{
    manifest_part_t *part = &self->manifest->parts[PART_BLOBS];
    crypto_generichash_state hash;
    off_t head_at = (off_t) self->length;
    store_code_t code = put_head (self, manifest_file (PART_BLOBS), 0, error);
    uint64_t begin = self->length;
    crypto_generichash_init (&hash, NULL, 0, MANIFEST_HASH_BYTES);
    for (size_t i = 0; code == STORE_OK && i < count; i++)
        code = put_blob (self, directory, &blobs[i], &hash, error);
    crypto_generichash_final (&hash, part->hash, MANIFEST_HASH_BYTES);
    part->there = true;
    part->bytes = self->length - begin;
    if (code == STORE_OK)
        code = put_rest (self, part->bytes, error);
    return code == STORE_OK ? put_length (self, head_at, part->bytes, error) : code;
}

/* All that are there: the tables were copied before, so those that they name are among them. The
 * broker removes none meanwhile. */
static store_code_t put_blobs (archive_t *self, const char *directory, store_error_t *error)
{
    pack_blob_t *blobs;
    size_t count;
    store_code_t code = STORE_OK;
    if (!pack_list (directory, &blobs, &count))
        code = fail_system (error, directory, "cannot be read");
    else if (count > 0)
        code = put_blobs_listed (self, directory, blobs, count, error);
    free (blobs);
    return code;
}

static store_code_t put_manifest (archive_t *self, store_error_t *error)
{
    static const uint8_t zeroes[2 * TAR_BLOCK_BYTES];
    char text[MANIFEST_BYTES_MAX];
    size_t length = manifest_write (self->manifest, text);
    store_code_t code = put_head (self, MANIFEST_NAME, length, error);
    if (code == STORE_OK)
        code = put (self, text, length, error);
    if (code == STORE_OK)
        code = put_rest (self, length, error);
    if (code == STORE_OK)
        code = put (self, zeroes, sizeof (zeroes), error);
    return code;
}

static store_code_t pack (const backup_options_t *options, backup_made_t *out, store_error_t *error)
{
    char path[BACKUP_PATH_SIZE];
    archive_t archive = {.options = options, .manifest = &out->manifest};
    path_of (path, options->directory, SCRATCH "/backup.tar");
    archive.fd = open (path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (archive.fd < 0)
        return fail_system (error, path, "cannot be made");
    path_of (path, options->directory, SCRATCH "/taskmq.db");
    store_code_t code = put_part (&archive, PART_TABLES, path, true, error);
    path_of (path, options->directory, SCRATCH);
    if (code == STORE_OK)
        code = named_read (&archive.named, path, error);
    if (code == STORE_OK)
        code = put_part (&archive, PART_ACCESS, options->access, false, error);
    path_of (path, options->directory, manifest_file (PART_BLOBS));
    if (code == STORE_OK)
        code = put_blobs (&archive, path, error);
    if (code == STORE_OK)
        out->manifest.lacks = named_missing (archive.named);
    if (code == STORE_OK)
        code = put_part (&archive, PART_SERVER_KEY, options->server_key, false, error);
    if (code == STORE_OK)
        code = put_manifest (&archive, error);
    if (code == STORE_OK && fsync (archive.fd) != 0)
        code = fail_system (error, "the backup", "cannot be synced");
    out->bytes = archive.length;
    named_free (&archive.named);
    close (archive.fd);
    return code;
}

/* The name. */

static store_code_t sync_directory (const char *path, store_error_t *error)
{
    return disk_sync_directory (path) == 0 ? STORE_OK
                                           : fail_system (error, path, "cannot be synced");
}

/* 2026-11-22T15:04:05.123Z without what a file name had better not have. */
static void make_name (char out[BACKUP_NAME_SIZE], int64_t made_ms, const char *id)
{
    char text[TIME_TEXT_SIZE] = "";
    char stamp[TIME_TEXT_SIZE];
    size_t length = 0;
    time_format (text, made_ms);
    for (const char *at = text; *at != '\0'; at++) {
        if (*at != '-' && *at != ':')
            stamp[length++] = *at;
    }
    stamp[length] = '\0';
    snprintf (out, BACKUP_NAME_SIZE, "%s-%.32s" ENDING, stamp, id);
}

static store_code_t give_name (const backup_options_t *options, backup_made_t *out,
                               store_error_t *error)
{
    char from[BACKUP_PATH_SIZE];
    char to[BACKUP_PATH_SIZE + BACKUP_NAME_SIZE];
    char directory[BACKUP_PATH_SIZE];
    make_name (out->name, out->manifest.made_ms, options->id);
    path_of (directory, options->directory, BACKUP_DIRECTORY);
    path_of (from, options->directory, SCRATCH "/backup.tar");
    snprintf (to, sizeof (to), "%s/%s", directory, out->name);
    if (rename (from, to) != 0)
        return fail_system (error, to, "cannot be made");
    return sync_directory (directory, error);
}

static bool is_backup (const char *name)
{
    size_t length = strlen (name);
    return length > STAMP_LENGTH + sizeof (ENDING) && length < BACKUP_NAME_SIZE &&
           strspn (name, "0123456789TZ.-abcdefghijklmnopqrstuvwxyz") == length &&
           strcmp (name + length - (sizeof (ENDING) - 1), ENDING) == 0 && name[8] == 'T';
}

static int only_backups (const struct dirent *entry)
{
    return is_backup (entry->d_name);
}

/* Names begin with their time, so the order of the names is that of the times. */
static void remove_old (const backup_options_t *options)
{
    char directory[BACKUP_PATH_SIZE];
    struct dirent **list = NULL;
    path_of (directory, options->directory, BACKUP_DIRECTORY);
    int count = scandir (directory, &list, only_backups, alphasort);
    for (int i = 0; i < count; i++) {
        char path[BACKUP_PATH_SIZE + 256];
        snprintf (path, sizeof (path), "%s/%s", directory, list[i]->d_name);
        if ((size_t) (count - i) > options->keep)
            unlink (path);
        free (list[i]);
    }
    free (list);
}

store_code_t backup_make (const backup_options_t *options, backup_made_t *out, store_error_t *error)
{
    *out = (backup_made_t){.manifest = {.made_ms = clock_ms (CLOCK_REALTIME)}};
    snprintf (out->manifest.version, sizeof (out->manifest.version), "%s", TASKMQ_VERSION);
    backup_clean (options->directory);
    store_code_t code = look_for_space (options, error);
    if (code == STORE_OK)
        code = make_directories (options->directory, error);
    if (code == STORE_OK)
        code = copy_tables (options, out, error);
    if (code == STORE_OK)
        code = pack (options, out, error);
    if (code == STORE_OK)
        code = give_name (options, out, error);
    if (code == STORE_OK)
        remove_old (options);
    backup_clean (options->directory);
    return code;
}

/* Reading. */

bool backup_find (const char *directory, const char *id, char name[BACKUP_NAME_SIZE],
                  uint64_t *bytes)
{
    char path[BACKUP_PATH_SIZE];
    char ending[BACKUP_NAME_SIZE];
    struct dirent **list = NULL;
    bool found = false;
    path_of (path, directory, BACKUP_DIRECTORY);
    snprintf (ending, sizeof (ending), "-%.32s" ENDING, id);
    int count = scandir (path, &list, only_backups, alphasort);
    for (int i = 0; i < count; i++) {
        const char *dash = strchr (list[i]->d_name, '-');
        char file[BACKUP_PATH_SIZE + 256];
        struct stat info;
        snprintf (file, sizeof (file), "%s/%s", path, list[i]->d_name);
        if (dash != NULL && strcmp (dash, ending) == 0 && stat (file, &info) == 0) {
            snprintf (name, BACKUP_NAME_SIZE, "%.63s", list[i]->d_name);
            *bytes = (uint64_t) info.st_size;
            found = true;
        }
        free (list[i]);
    }
    free (list);
    return found;
}

int64_t backup_read (const char *directory, const char *name, uint64_t offset, void *out,
                     size_t size, store_error_t *error)
{
    char path[BACKUP_PATH_SIZE + BACKUP_NAME_SIZE];
    snprintf (path, sizeof (path), "%s/" BACKUP_DIRECTORY "/%s", directory, name);
    int fd = is_backup (name) ? open (path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW) : -1;
    ssize_t got = fd >= 0 ? pread (fd, out, size, (off_t) offset) : -1;
    if (got < 0)
        fail_system (error, path, "cannot be read");
    if (fd >= 0)
        close (fd);
    return got;
}

/* The manifest is the last member: a head, at most MANIFEST_BYTES_MAX, and two blocks behind it. */
static bool find_manifest (manifest_t *out, const char *end, size_t length)
{
    tar_member_t member;
    const char *why;
    for (size_t back = 4 * TAR_BLOCK_BYTES; back <= length; back += TAR_BLOCK_BYTES) {
        const char *head = end - back;
        if (tar_read ((const uint8_t *) head, &member, &why) == TAR_MEMBER &&
            strcmp (member.name, MANIFEST_NAME) == 0 && member.bytes <= back - TAR_BLOCK_BYTES)
            return manifest_read (out, head + TAR_BLOCK_BYTES, (size_t) member.bytes);
    }
    return false;
}

uint64_t backup_lacks (const char *directory, const char *name)
{
    char path[BACKUP_PATH_SIZE + BACKUP_NAME_SIZE];
    char end[MANIFEST_BYTES_MAX + 3 * TAR_BLOCK_BYTES];
    manifest_t manifest = {.lacks = 0};
    struct stat info;
    snprintf (path, sizeof (path), "%s/" BACKUP_DIRECTORY "/%s", directory, name);
    int fd = open (path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0)
        return 0;
    ssize_t got = -1;
    if (fstat (fd, &info) == 0) {
        off_t from = info.st_size - (off_t) sizeof (end);
        got = pread (fd, end, sizeof (end), from > 0 ? from : 0);
    }
    close (fd);
    return got > 0 && find_manifest (&manifest, end + got, (size_t) got) ? manifest.lacks : 0;
}
