/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

#include "core/data/errand.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "bytes.h"
#include "core/base/memory.h"

errand_t *errand_new (uint32_t op)
{
    errand_t *self = memory_zero (1, sizeof (*self));
    self->op = op;
    return self;
}

void errand_clear (errand_t *self)
{
    free (self->identity);
    buf_drop (self->request);
    buf_drop (self->fields);
    buf_drop (self->body);
    buf_drop (self->bytes);
}

void errand_free (errand_t *self)
{
    if (self == NULL)
        return;
    errand_clear (self);
    free (self);
}

void errand_refuse (errand_t *self, tmq_code_t code, const char *format, ...)
{
    va_list arguments;
    va_start (arguments, format);
    vsnprintf (self->text, sizeof (self->text), format, arguments);
    va_end (arguments);
    self->code = code;
}

void errand_reply (errand_t *self, uint32_t member, const ProtobufCMessage *message)
{
    bytes_t packed = BYTES_INIT;
    bytes_append_packed (&packed, message);
    self->code = TMQ_OK;
    self->member = member;
    buf_drop (self->fields);
    self->fields = buf_new (packed.data, packed.length);
    bytes_free (&packed);
}
