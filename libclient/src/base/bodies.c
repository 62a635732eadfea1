/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

#include "base/bodies.h"

const uint8_t *core_bodies_take (core_bodies_t *self, size_t bytes, bool *good)
{
    if (bytes > self->bytes - self->used) {
        *good = false;
        return NULL;
    }
    const uint8_t *at = bytes > 0 ? self->data + self->used : NULL;
    self->used += bytes;
    return at;
}
