/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* What may stand in a JSON string as it is, found eight bytes at a time. */
#ifndef TASKMQ_PROTO_JSON_PLAIN_H
#define TASKMQ_PROTO_JSON_PLAIN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* DEL and the C1 controls move cursors on terminals. */
static inline bool json_byte_is_plain (uint8_t byte)
{
    return byte >= 0x20 && byte < 0x7f && byte != '"' && byte != '\\';
}

/* All eight bytes of the word. Each term has the top bit of a byte set if it is not plain; a borrow
 * or a carry goes from such a byte only. */
static inline bool json_word_is_plain (uint64_t word)
{
    const uint64_t ones = UINT64_C (0x0101010101010101);
    uint64_t over = word | (word + ones); /* 0x7f and above */
    uint64_t under = word - 0x20 * ones;
    uint64_t quote = (word ^ '"' * ones) - ones;
    uint64_t backslash = (word ^ '\\' * ones) - ones;
    return ((over | under | quote | backslash) & 0x80 * ones) == 0;
}

/* How many bytes at the beginning are plain. */
static inline size_t json_plain_length (const uint8_t *at, size_t length)
{
    size_t done = 0;
    uint64_t word;
    for (; length - done >= sizeof (word); done += sizeof (word)) {
        memcpy (&word, at + done, sizeof (word));
        if (!json_word_is_plain (word))
            break;
    }
    while (done < length && json_byte_is_plain (at[done]))
        done++;
    return done;
}

/* The same, and copies them to where `length` bytes are free. */
static inline size_t json_plain_copy (uint8_t *to, const uint8_t *at, size_t length)
{
    size_t done = 0;
    uint64_t word;
    uint32_t half;
    for (; length - done >= sizeof (word); done += sizeof (word)) {
        memcpy (&word, at + done, sizeof (word));
        if (!json_word_is_plain (word))
            break;
        memcpy (to + done, &word, sizeof (word));
    }
    if (length - done >= sizeof (half)) {
        memcpy (&half, at + done, sizeof (half));
        if (json_word_is_plain (half | UINT64_C (0x2020202000000000))) {
            memcpy (to + done, &half, sizeof (half));
            done += sizeof (half);
        }
    }
    for (; done < length && json_byte_is_plain (at[done]); done++)
        to[done] = at[done];
    return done;
}

#endif
