/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

#include "work/body.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/spool.h"

void body_init (body_t *self)
{
    *self = (body_t){.fd = -1};
}

void body_drop (body_t *self)
{
    if (self->fd >= 0)
        close (self->fd);
    free (self->hash);
    body_init (self);
}

static bool begin_hash (body_t *self)
{
    if (self->hash)
        return true;
    self->hash = aligned_alloc (_Alignof(crypto_generichash_state), sizeof *self->hash);
    if (self->hash)
        crypto_generichash_init (self->hash, NULL, 0, TMQ_BLOB_HASH_BYTES);
    return self->hash != NULL;
}

ssize_t body_take (body_t *self, int fd, char *piece, size_t length)
{
    self->fd = fd;
    if (!begin_hash (self))
        return -1;
    const ssize_t got = pread (fd, piece, length, (off_t) self->bytes);
    if (got > 0) {
        crypto_generichash_update (self->hash, (const unsigned char *) piece, (size_t) got);
        self->bytes += (uint64_t) got;
    }
    return got;
}

bool body_add (body_t *self, const void *bytes, size_t length)
{
    if (!begin_hash (self))
        return false;
    if (self->fd < 0)
        self->fd = spool_make ();
    if (self->fd < 0 || lseek (self->fd, (off_t) self->bytes, SEEK_SET) < 0 ||
        !spool_write (self->fd, bytes, length))
        return false;
    crypto_generichash_update (self->hash, bytes, length);
    self->bytes += length;
    return true;
}

tmq_blob_t body_blob (const body_t *self)
{
    tmq_blob_t blob = {.bytes = self->bytes};
    crypto_generichash_state state = *self->hash; /* the end changes it */
    crypto_generichash_final (&state, blob.hash, sizeof blob.hash);
    return blob;
}

bool body_is (const body_t *self, const tmq_blob_t *blob)
{
    if (self->fd < 0 || self->bytes != blob->bytes)
        return false;
    const tmq_blob_t ours = body_blob (self);
    return memcmp (ours.hash, blob->hash, sizeof ours.hash) == 0;
}
