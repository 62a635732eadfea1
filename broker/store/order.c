/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

#include "store/order.h"

const char ORDER_KEY[6] = "times";

bool order_add (order_t *self, int64_t number, int64_t created_at)
{
    if (created_at >= self->high) {
        self->high = created_at;
        return false;
    }
    if (self->last == 0 || number < self->first)
        self->first = number;
    if (number > self->last)
        self->last = number;
    return true;
}

static void pack_number (uint8_t *out, int64_t number)
{
    for (int i = 7; i >= 0; i--, number >>= 8)
        out[i] = (uint8_t) number;
}

static int64_t unpack_number (const uint8_t *bytes)
{
    uint64_t number = 0;
    for (int i = 0; i < 8; i++)
        number = number << 8 | bytes[i];
    return (int64_t) number;
}

void order_pack (const order_t *self, uint8_t out[ORDER_BYTES])
{
    pack_number (out, self->first);
    pack_number (out + 8, self->last);
    pack_number (out + 16, self->high);
}

bool order_unpack (order_t *out, const uint8_t *body, size_t bytes)
{
    if (bytes != ORDER_BYTES)
        return false;
    *out = (order_t){unpack_number (body), unpack_number (body + 8), unpack_number (body + 16)};
    return true;
}
