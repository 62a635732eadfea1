/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

#include "store/checksum.h"

#include <assert.h>
#include <endian.h>
#include <string.h>
#include <xxhash.h>

#include "core/base/memory.h"

uint64_t checksum_add (uint64_t sum, const void *bytes, size_t length)
{
    return XXH3_64bits_withSeed (bytes, length, sum);
}

uint64_t checksum_add_text (uint64_t sum, const char *text)
{
    return checksum_add (sum, text, strlen (text) + 1);
}

uint64_t checksum_add_numbers (uint64_t sum, const int64_t *numbers, size_t count)
{
    uint64_t words[CHECKSUM_NUMBERS_MAX] MEMORY_FILLED_BEFORE_READ;
    assert (count <= CHECKSUM_NUMBERS_MAX);
    for (size_t i = 0; i < count; i++)
        words[i] = htole64 ((uint64_t) numbers[i]);
    return checksum_add (sum, words, count * sizeof (words[0]));
}

void checksum_put (uint8_t to[CHECKSUM_BYTES], uint64_t sum)
{
    sum = htole64 (sum);
    memcpy (to, &sum, CHECKSUM_BYTES);
}

uint64_t checksum_get (const uint8_t from[CHECKSUM_BYTES])
{
    uint64_t sum;
    memcpy (&sum, from, CHECKSUM_BYTES);
    return le64toh (sum);
}
