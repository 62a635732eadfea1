/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Reading blobs. */
#include "blobs/depot_parts.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

static void read_file (depot_t *self, const char *hex, uint64_t bytes, uint64_t offset, uint8_t *to,
                       size_t limit, size_t *length, depot_word_t *out)
{
    struct stat info = {0};
    *out = (depot_word_t){.code = TMQ_OK};
    *length = 0;
    int bucket = depot_open_bucket (self, hex, false);
    int fd =
        bucket < 0 ? -1 : openat (bucket, hex + 2, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (bucket >= 0)
        close (bucket);
    if (fd < 0 || fstat (fd, &info) != 0 || !S_ISREG (info.st_mode)) {
        depot_refuse (out, TMQ_NO_BLOB, "the blob %s is missing", hex);
    } else if ((uint64_t) info.st_size != bytes) {
        depot_refuse (out, TMQ_NO_BLOB, "the blob %s is damaged: %jd of %" PRIu64 " bytes", hex,
                      (intmax_t) info.st_size, bytes);
    } else if (offset < bytes) {
        uint64_t left = bytes - offset;
        ssize_t got = pread (fd, to, left < limit ? (size_t) left : limit, (off_t) offset);
        if (got <= 0)
            depot_refuse (out, TMQ_NO_BLOB, "the blob %s cannot be read: %s", hex,
                          strerror (errno));
        else
            *length = (size_t) got;
    }
    if (fd >= 0)
        close (fd);
}

/* Another machine may have taken it in, or the directory may be lost. */
static void read_vault (depot_t *self, const char *hex, const uint8_t *hash, uint64_t bytes,
                        uint64_t offset, uint8_t *to, size_t limit, size_t *length,
                        depot_word_t *out)
{
    vault_word_t word;
    *out = (depot_word_t){.code = TMQ_OK};
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
    blob_hex (hex, hash);
    read_file (self, hex, bytes, offset, to, limit, length, out);
    if (out->code != TMQ_OK && self->vault != NULL)
        read_vault (self, hex, hash, bytes, offset, to, limit, length, out);
    self->stats.errors += out->code != TMQ_OK && out->code != TMQ_UNAVAILABLE;
}
