/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* A journal's file, read as a start reads it.
 *
 * The input is short, the file is not: a byte says how many blocks it has at least and whether its
 * sums are put right, one what the tables have, and then follow pieces with two bytes of length.
 * Each begins a block; the rest is zero. No fuzzer guesses a sum or a salt: with sums put right,
 * parts have the salt of the first header, and batches that lie in one part end in their sum. */
#include <string.h>

#include "fuzz.h"
#include "store/checksum.h"
#include "store/journal/journal_codec.h"
#include "store/journal/scan.h"

enum {
    BLOCKS_MAX = 64,
    BYTES_MAX = BLOCKS_MAX * FORM_BLOCK_BYTES,
    SUMS = 0x40, /* of the first byte; below it is the number of blocks */
    WRITTEN_MAX = 7,
    HEADER_SALT = 56, /* docs/JOURNAL.md has these places */
    HEADER_SUM = 64,
    PART_SALT = 8,
    PART_LENGTH = 84,
    PART_SUM = 88,
    SALT_BYTES = 8,
    BATCH_SUM_TAG = 15 << 3 | 1,
    BATCH_SUM_BYTES = 1 + CHECKSUM_BYTES
};

typedef struct input {
    uint8_t bytes[BYTES_MAX];
    size_t size;
} input_t;

static int read_input (void *context, void *to, size_t length, uint64_t at)
{
    const input_t *input = context;
    if (at > input->size || length > input->size - at)
        return -1;
    memcpy (to, input->bytes + at, length);
    return 0;
}

static void lay_out (input_t *input, const uint8_t *data, size_t size, size_t blocks)
{
    const uint8_t *piece;
    size_t length;
    size_t at = 0;
    memset (input->bytes, 0, input->size);
    input->size = blocks * FORM_BLOCK_BYTES;
    while (at < BYTES_MAX && fuzz_piece (&data, &size, &piece, &length)) {
        length = length < BYTES_MAX - at ? length : BYTES_MAX - at;
        memcpy (input->bytes + at, piece, length);
        input->size = at + length > input->size ? at + length : input->size;
        at = (at + length) / FORM_BLOCK_BYTES * FORM_BLOCK_BYTES + FORM_BLOCK_BYTES;
    }
}

static void set_batch_sums (uint8_t *content, size_t length)
{
    while (length >= FORM_LENGTH_BYTES) {
        size_t body = form_get_length (content);
        if (body < BATCH_SUM_BYTES || body > length - FORM_LENGTH_BYTES)
            return;
        uint8_t *at = content + FORM_LENGTH_BYTES;
        size_t covered = body - BATCH_SUM_BYTES;
        at[covered] = BATCH_SUM_TAG;
        checksum_put (at + covered + 1, checksum_add (0, at, covered));
        content = at + body;
        length -= FORM_LENGTH_BYTES + body;
    }
}

static void set_sums (input_t *input)
{
    for (size_t i = 0; i < 2 && (i + 1) * FORM_BLOCK_BYTES <= input->size; i++) {
        uint8_t *header = input->bytes + i * FORM_BLOCK_BYTES;
        checksum_put (header + HEADER_SUM, checksum_add (0, header, HEADER_SUM));
    }
    for (size_t at = 0; at + FORM_BLOCK_BYTES <= input->size; at += FORM_BLOCK_BYTES) {
        uint8_t *part = input->bytes + at;
        uint32_t length = form_get_length (part + PART_LENGTH);
        if (memcmp (part, "tmqp", 4) != 0 || length > input->size - at - FORM_PART_BYTES)
            continue;
        memcpy (part + PART_SALT, input->bytes + HEADER_SALT, SALT_BYTES);
        set_batch_sums (part + FORM_PART_BYTES, length);
        uint64_t sum = checksum_add (0, part, PART_SUM);
        checksum_put (part + PART_SUM, checksum_add (sum, part + FORM_PART_BYTES, length));
    }
}

static void read_commits (const scan_t *scan, const scan_source_t *source, const scan_log_t *log)
{
    bytes_t content = BYTES_INIT;
    store_error_t error;
    for (size_t i = 0; i < log->count; i++) {
        const uint8_t *body;
        size_t bytes;
        size_t at = 0;
        bytes_clear (&content);
        HOLDS (scan_content (scan, source, log->commits[i], &content, &error) == STORE_OK);
        while (scan_next_batch (&content, &at, &body, &bytes)) {
            journal_head_t head;
            bool newer;
            uint8_t *copy = fuzz_copy (body, bytes);
            batch_free (journal_decode (copy, bytes, &head, &newer));
            free (copy);
        }
    }
    bytes_free (&content);
}

int LLVMFuzzerTestOneInput (const uint8_t *data, size_t size)
{
    static input_t input; /* what was written the last time is zero again */
    if (size < 2)
        return 0;
    lay_out (&input, data + 2, size - 2, data[0] % BLOCKS_MAX);
    if ((data[0] & SUMS) != 0)
        set_sums (&input);
    scan_source_t source = {read_input, &input, input.size, "journal.log"};
    store_error_t error;
    scan_t scan;
    if (scan_read (&scan, &source, &error) != STORE_OK) {
        HOLDS (memchr (error.text, '\0', sizeof (error.text)) != NULL && error.text[0] != '\0');
        return 0;
    }
    scan_log_t log;
    scan_log (&log, &scan, data[1] & WRITTEN_MAX);
    read_commits (&scan, &source, &log);
    scan_log_destroy (&log);
    scan_destroy (&scan);
    return 0;
}
