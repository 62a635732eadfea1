/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

#include "work/payload.h"

#include <string.h>
#include <unistd.h>

#include "base/spool.h"

void payload_init (payload_t *self)
{
    self->fd = -1;
    self->bytes = 0;
}

void payload_drop (payload_t *self)
{
    if (self->fd >= 0)
        close (self->fd);
    payload_init (self);
}

bool payload_add (payload_t *self, const void *bytes, size_t length)
{
    if (self->fd < 0) {
        crypto_generichash_init (&self->hash, NULL, 0, TMQ_BLOB_HASH_BYTES);
        self->fd = spool_make ();
    }
    if (self->fd < 0 || lseek (self->fd, (off_t) self->bytes, SEEK_SET) < 0 ||
        !spool_write (self->fd, bytes, length))
        return false;
    crypto_generichash_update (&self->hash, bytes, length);
    self->bytes += length;
    return true;
}

bool payload_is (const payload_t *self, const tmq_blob_t *blob)
{
    uint8_t hash[TMQ_BLOB_HASH_BYTES];
    if (self->fd < 0 || self->bytes != blob->bytes)
        return false;
    crypto_generichash_state state = self->hash;
    crypto_generichash_final (&state, hash, sizeof hash);
    return memcmp (hash, blob->hash, sizeof hash) == 0;
}
