/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* The directory itself: what it counts, what is said of it, and how its files are summed. */
#include "blobs/depot_parts.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/base/memory.h"

/* Words. */

void depot_refuse (depot_word_t *out, tmq_code_t code, const char *format, ...)
{
    va_list arguments;
    va_start (arguments, format);
    vsnprintf (out->text, sizeof (out->text), format, arguments);
    va_end (arguments);
    out->code = code;
    bool passes = code == TMQ_LIMIT || code == TMQ_STORE_FULL || code == TMQ_OVERLOADED ||
                  code == TMQ_UNAVAILABLE;
    out->retry_after_ms = passes ? DEPOT_RETRY_MS : 0;
}

void depot_refuse_vault (depot_t *self, depot_word_t *out, tmq_code_t code,
                         const vault_word_t *word)
{
    self->stats.errors += code != TMQ_UNAVAILABLE;
    depot_refuse (out, code, "%s", word->text);
}

void depot_refuse_error (depot_t *self, depot_word_t *out, const char *what, int error)
{
    self->stats.errors++;
    bool full = error == ENOSPC || error == EDQUOT;
    depot_refuse (out, full ? TMQ_STORE_FULL : TMQ_INTERNAL, "%s: %s", what, strerror (error));
}

/* Directories and files. */

int depot_open_bucket (const depot_t *self, const char *hex, bool make)
{
    const char name[] = {hex[0], hex[1], '\0'};
    return make ? blob_directory_make (self->directory, name)
                : blob_directory_open (self->directory, name);
}

uint64_t depot_min (uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

void depot_take_off (depot_t *self, uint64_t bytes)
{
    self->stats.bytes -= depot_min (bytes, self->stats.bytes);
}

/* Adds what a file has from the offset on. 0 or an errno. */
int depot_sum_file (depot_t *self, int fd, uint64_t *offset, uint64_t bytes,
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

bool depot_sum_is (const crypto_generichash_state *sum, const uint8_t *hash)
{
    uint8_t got[HASH_BYTES];
    crypto_generichash_state state = *sum; /* the end changes it */
    crypto_generichash_final (&state, got, HASH_BYTES);
    return memcmp (got, hash, HASH_BYTES) == 0;
}

/* Life. */

/* What uploads have that are no blobs. */
static void count_uploads (depot_t *self)
{
    DIR *list = blob_directory_list (self->directory, UPLOADS);
    if (list == NULL)
        return;
    for (const struct dirent *file = readdir (list); file != NULL; file = readdir (list)) {
        uint64_t bytes = depot_bytes_alone (self, file->d_name);
        self->stats.bytes += bytes;
        depot_park_file (self, file->d_name, bytes, PARKED_UNKNOWN);
    }
    closedir (list);
}

static void count_bucket (depot_t *self, unsigned bucket)
{
    char name[BLOB_HEX_SIZE];
    struct stat info;
    snprintf (name, sizeof (name), "%02x", bucket);
    DIR *list = blob_directory_list (self->directory, name);
    if (list == NULL)
        return;
    for (const struct dirent *file = readdir (list); file != NULL; file = readdir (list))
        if (blob_file_find (dirfd (list), file->d_name, &info)) {
            self->stats.blobs++;
            self->stats.bytes += (uint64_t) info.st_size;
        }
    closedir (list);
}

depot_t *depot_new (const char *directory, const depot_limits_t *limits, int *error)
{
    depot_t *self = memory_zero (1, sizeof (*self));
    self->limits = *limits;
    blob_writer_init (&self->writer);
    self->uploads = aligned_alloc (_Alignof(upload_t), DEPOT_UPLOADS_MAX * sizeof (upload_t));
    if (self->uploads == NULL)
        abort ();
    self->uploads_at = -1;
    self->directory = blob_directory_make (AT_FDCWD, directory);
    if (self->directory >= 0)
        self->uploads_at = blob_directory_make (self->directory, UPLOADS);
    if (self->uploads_at < 0) {
        *error = errno;
        depot_free (&self);
        return NULL;
    }
    for (unsigned bucket = 0; bucket < DEPOT_BUCKETS; bucket++)
        count_bucket (self, bucket);
    count_uploads (self);
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
    parked_clear (&self->parked);
    blob_writer_clear (&self->writer);
    free (self->uploads);
    free (self->room);
    free (self);
}

void depot_use (depot_t *self, const vault_t *vault)
{
    self->vault = vault;
    if (vault != NULL && self->room == NULL)
        self->room = memory_alloc (VAULT_PUT_BYTES);
}

void depot_configure (depot_t *self, const depot_limits_t *limits)
{
    self->limits = *limits;
}

depot_stats_t depot_stats (const depot_t *self)
{
    depot_stats_t stats = self->stats;
    stats.parked = self->parked.count;
    if (self->vault != NULL) {
        vault_stats_t kept = self->vault->stats (self->vault->context);
        stats.stored = kept.blobs;
        stats.stored_bytes = kept.bytes;
    }
    return stats;
}
