/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* The newest puts into an entry, so that one that is repeated gets the same answer. They stand in
 * the row of the entry, a field each: a request id, and 8 bytes of the number that it was given. */
#ifndef TASKMQ_CORE_PUTS_H
#define TASKMQ_CORE_PUTS_H

#include <stddef.h>
#include <stdint.h>

#include "bytes.h"
#include "wire.h"

enum { PUTS_MAX = 32 };

typedef struct entry_put {
    uint8_t request_id[16];
    uint64_t number;
} entry_put_t;

typedef struct puts {
    entry_put_t list[PUTS_MAX]; /* oldest first */
    size_t count;
} puts_t;

/* What the put of this request id was given; 0: it is not among them. */
uint64_t puts_find (const puts_t *self, const uint8_t *request_id);
/* Adds one; the oldest gives way. max: how many this kind of entry keeps, at most PUTS_MAX. */
void puts_remember (puts_t *self, size_t max, const uint8_t *request_id, uint64_t number);
/* Takes one out of a field of the row; what is none, or too many, is passed over. */
void puts_take (puts_t *self, size_t max, const wire_field_t *field);
void puts_append (bytes_t *out, uint32_t field_number, const puts_t *self);

#endif
