/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Cursors of pages of tasks. */
#ifndef TASKMQ_CORE_REQUESTS_CURSOR_H
#define TASKMQ_CORE_REQUESTS_CURSOR_H

#include <protobuf-c/protobuf-c.h>
#include <stdint.h>

/* A list cursor: the number that the next page begins below, and what it was made for. */
typedef struct list_cursor {
    uint8_t number[8]; /* big-endian */
    uint8_t digest[16];
} list_cursor_t;

list_cursor_t cursor_make (int64_t number, const uint8_t digest[16]);
/* The number, or 0 when the bytes are no cursor for this filter. */
int64_t cursor_number (const ProtobufCBinaryData *bytes, const uint8_t digest[16]);

#endif
