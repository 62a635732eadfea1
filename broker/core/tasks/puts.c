/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

#include "core/tasks/puts.h"

#include <string.h>

enum { PUT_BYTES = 16 + 8 };

uint64_t puts_find (const puts_t *self, const uint8_t *request_id)
{
    for (size_t i = 0; i < self->count; i++)
        if (memcmp (self->list[i].request_id, request_id, 16) == 0)
            return self->list[i].number;
    return 0;
}

void puts_remember (puts_t *self, size_t max, const uint8_t *request_id, uint64_t number)
{
    if (self->count == max) {
        memmove (self->list, self->list + 1, (max - 1) * sizeof (entry_put_t));
        self->count--;
    }
    entry_put_t *put = &self->list[self->count++];
    memcpy (put->request_id, request_id, sizeof (put->request_id));
    put->number = number;
}

void puts_take (puts_t *self, size_t max, const wire_field_t *field)
{
    uint64_t number = 0;
    if (field->length != PUT_BYTES || self->count == max)
        return;
    for (size_t i = 16; i < PUT_BYTES; i++)
        number = number << 8 | field->bytes[i];
    puts_remember (self, max, field->bytes, number);
}

void puts_append (bytes_t *out, uint32_t field_number, const puts_t *self)
{
    for (size_t i = 0; i < self->count; i++) {
        uint8_t put[PUT_BYTES];
        memcpy (put, self->list[i].request_id, 16);
        for (size_t k = 0; k < 8; k++)
            put[16 + k] = (uint8_t) (self->list[i].number >> (56 - 8 * k));
        bytes_append_blob (out, field_number, put, sizeof (put));
    }
}
