/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */
/* Reading blobs. Before a vault a file is summed before its first bytes are given away, since the
 * vault may have better ones. What fits one turn is summed at once; of larger files one is summed
 * at a time, by whoever reads, so that they do not undo each other's work. */
#include "blobs/depot_parts.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

/* -1 with errno. */
static int open_blob (const depot_t *self, const char *hex, struct stat *info)
{
    int bucket = depot_open_bucket (self, hex, false);
    int fd =
        bucket < 0 ? -1 : openat (bucket, hex + 2, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    int error = errno;
    if (bucket >= 0)
        close (bucket);
    if (fd >= 0 && (fstat (fd, info) != 0 || !S_ISREG (info->st_mode))) {
        close (fd);
        fd = -1;
        error = ENOENT;
    }
    errno = error;
    return fd;
}

/* Whether its bytes are the hash's. */

static void sum_begin (summing_t *self, const uint8_t *hash, const struct stat *info)
{
    *self = (summing_t){.under_way = true, .bytes = (uint64_t) info->st_size, .file = *info};
    memcpy (self->hash, hash, HASH_BYTES);
    crypto_generichash_init (&self->sum, NULL, 0, HASH_BYTES);
}

/* A turn. A file that took the place of the one that was begun is begun by whoever reads it. */
static void sum_on (depot_t *self, summing_t *of)
{
    char hex[BLOB_HEX_SIZE];
    struct stat info;
    blob_hex (hex, of->hash);
    uint64_t until = depot_min (of->bytes, of->at + DEPOT_TURN_BYTES);
    int fd = open_blob (self, hex, &info);
    bool same = fd >= 0 && info.st_dev == of->file.st_dev && info.st_ino == of->file.st_ino &&
                info.st_size == of->file.st_size;
    int error = same ? depot_sum_file (self, fd, &of->at, until, &of->sum) : 0;
    of->under_way = same && error == 0 && of->at == until && until < of->bytes;
    if (same && !of->under_way)
        summed_add (&self->summed, of->hash, &info,
                    error == 0 && of->at == of->bytes && depot_sum_is (&of->sum, of->hash));
    if (fd >= 0)
        close (fd);
}

/* NULL: it is not known yet. */
static summed_file_t *sum_of (depot_t *self, const uint8_t *hash, const struct stat *info)
{
    summing_t small = {.under_way = false};
    summing_t *of = (uint64_t) info->st_size <= DEPOT_TURN_BYTES ? &small : &self->summing;
    summed_file_t *known = summed_find (&self->summed, hash, info);
    if (known != NULL)
        return known;
    if (of == &small || !of->under_way)
        sum_begin (of, hash, info);
    sum_on (self, of);
    return summed_find (&self->summed, hash, info);
}

/* Whether its bytes are to be read: they are the hash's, or nobody has better ones. */
static bool is_sound (depot_t *self, const uint8_t *hash, const char *hex, const struct stat *info,
                      depot_word_t *out)
{
    if (self->vault == NULL)
        return true;
    summed_file_t *known = sum_of (self, hash, info);
    out->more = known == NULL;
    if (known == NULL || known->good)
        return known != NULL;
    out->damaged = !known->told;
    known->told = true;
    depot_refuse (out, TMQ_NO_BLOB, "the blob %s is damaged: its bytes are others", hex);
    return false;
}

/* Reading. */

static void read_open (int fd, const char *hex, uint64_t bytes, uint64_t offset, uint8_t *to,
                       size_t limit, size_t *length, depot_word_t *out)
{
    uint64_t left = bytes - offset;
    ssize_t got = pread (fd, to, left < limit ? (size_t) left : limit, (off_t) offset);
    if (got <= 0)
        depot_refuse (out, TMQ_NO_BLOB, "the blob %s cannot be read: %s", hex, strerror (errno));
    else
        *length = (size_t) got;
}

static void read_file (depot_t *self, const char *hex, const uint8_t *hash, uint64_t bytes,
                       uint64_t offset, uint8_t *to, size_t limit, size_t *length,
                       depot_word_t *out)
{
    struct stat info = {0};
    int fd = open_blob (self, hex, &info);
    if (fd < 0)
        depot_refuse (out, TMQ_NO_BLOB, "the blob %s is missing", hex);
    else if ((uint64_t) info.st_size != bytes)
        depot_refuse (out, TMQ_NO_BLOB, "the blob %s is damaged: %jd of %" PRIu64 " bytes", hex,
                      (intmax_t) info.st_size, bytes);
    else if (is_sound (self, hash, hex, &info, out) && offset < bytes)
        read_open (fd, hex, bytes, offset, to, limit, length, out);
    if (fd >= 0)
        close (fd);
}

/* Another machine may have taken it in, or the file may be lost. */
static void read_vault (depot_t *self, const char *hex, const uint8_t *hash, uint64_t bytes,
                        uint64_t offset, uint8_t *to, size_t limit, size_t *length,
                        depot_word_t *out)
{
    vault_word_t word;
    *out = (depot_word_t){.code = TMQ_OK, .damaged = out->damaged};
    tmq_code_t code =
        self->vault->read (self->vault->context, hash, bytes, offset, to, limit, length, &word);
    if (code == TMQ_NO_BLOB)
        depot_refuse (out, code, "the blob %s %.120s", hex, word.text);
    else if (code != TMQ_OK)
        depot_refuse (out, code, "%s", word.text);
}

void depot_read (depot_t *self, const uint8_t *hash, uint64_t bytes, uint64_t offset, uint8_t *to,
                 size_t limit, size_t *length, depot_word_t *out)
{
    char hex[BLOB_HEX_SIZE];
    *out = (depot_word_t){.code = TMQ_OK};
    *length = 0;
    blob_hex (hex, hash);
    read_file (self, hex, hash, bytes, offset, to, limit, length, out);
    if (out->code != TMQ_OK && self->vault != NULL) {
        read_vault (self, hex, hash, bytes, offset, to, limit, length, out);
        if (out->code == TMQ_NO_BLOB) /* the disk may give more the next time */
            summed_forget (&self->summed, hash);
    }
    self->stats.errors += out->damaged || (out->code != TMQ_OK && out->code != TMQ_UNAVAILABLE);
}
