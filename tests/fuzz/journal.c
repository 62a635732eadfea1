/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* A journal's file, read as a start reads it. The salt of its parts and their sums are set right
 * first, where a header is: else every input would end at the first sum. */
#include <string.h>

#include "core/base/memory.h"
#include "fuzz.h"
#include "store/checksum.h"
#include "store/journal/journal_codec.h"
#include "store/journal/scan.h"

enum { BYTES_MAX = 256 * 1024, HEADER_SUM = 64, PART_SUM = 88, PART_LENGTH = 84 };

typedef struct input {
    uint8_t *bytes;
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
        if (scan_content (scan, source, log->commits[i], &content, &error) != STORE_OK)
            continue;
        while (scan_next_batch (&content, &at, &body, &bytes)) {
            journal_head_t head;
            bool newer;
            batch_free (journal_decode (body, bytes, &head, &newer));
        }
    }
    bytes_free (&content);
}

int LLVMFuzzerTestOneInput (const uint8_t *data, size_t size)
{
    if (size > BYTES_MAX)
        return 0;
    input_t input = {memory_alloc (size), size};
    scan_source_t source = {read_input, &input, size, "journal.log"};
    store_error_t error;
    scan_t scan;
    if (size > 0)
        memcpy (input.bytes, data, size);
    for (int sums = 0; sums < 2; sums++) {
        if (scan_read (&scan, &source, &error) == STORE_OK) {
            scan_log_t log;
            scan_log (&log, &scan, sums == 0 ? 0 : 2);
            read_commits (&scan, &source, &log);
            scan_log_destroy (&log);
            scan_destroy (&scan);
        }
        set_sums (&input);
    }
    free (input.bytes);
    return 0;
}
