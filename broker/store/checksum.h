/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* XXH3, 64 bits: against damage, not against people. What consists of several pieces is summed one
 * after the other where each lies, so nothing is copied for it; the longest piece first is the
 * cheapest. Any thread. */
#ifndef TASKMQ_STORE_CHECKSUM_H
#define TASKMQ_STORE_CHECKSUM_H

#include <stddef.h>
#include <stdint.h>

enum { CHECKSUM_BYTES = 8, CHECKSUM_NUMBERS_MAX = 32 };

/* The sum of all before it, 0 for nothing, and of these bytes. The order of the pieces counts. */
uint64_t checksum_add (uint64_t sum, const void *bytes, size_t length);
/* A text with its end, so that it does not run into the next one. */
uint64_t checksum_add_text (uint64_t sum, const char *text);
/* At most CHECKSUM_NUMBERS_MAX numbers, whatever the byte order of the machine. */
uint64_t checksum_add_numbers (uint64_t sum, const int64_t *numbers, size_t count);

/* A sum as bytes of a file. */
void checksum_put (uint8_t to[CHECKSUM_BYTES], uint64_t sum);
uint64_t checksum_get (const uint8_t from[CHECKSUM_BYTES]);

#endif
