/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* A segment of the archive, read as a restore, a check and a broker read it.
 *
 * The first byte says whether sums are put right, which no fuzzer guesses: those of the header, of
 * batches that end in one, and of a trailer at the end. The rest is the file. */
#include "fuzz.h"
#include "store/archive/archive_form.h"
#include "store/checksum.h"
#include "store/journal/journal_codec.h"

enum {
    SUMS = 1,        /* of the first byte */
    HEADER_SUM = 64, /* docs/ARCHIVE.md has these places */
    TRAILER_SUM = 24,
    BATCH_SUM_TAG = 15 << 3 | 1,
    BATCH_SUM_BYTES = 1 + CHECKSUM_BYTES
};

static void set_trailer_sum (uint8_t *trailer, uint64_t sum)
{
    checksum_put (trailer + TRAILER_SUM, checksum_add (sum, trailer, TRAILER_SUM));
}

static void set_sums (uint8_t *bytes, size_t length)
{
    if (length < ARCHIVE_HEADER_BYTES)
        return;
    checksum_put (bytes + HEADER_SUM, checksum_add (0, bytes, HEADER_SUM));
    uint64_t sum = archive_sum_begin (bytes);
    size_t at = ARCHIVE_HEADER_BYTES;
    while (length - at >= FORM_LENGTH_BYTES + BATCH_SUM_BYTES) {
        size_t body = form_get_length (bytes + at);
        size_t left = length - at - FORM_LENGTH_BYTES;
        if (body == 0 && left + FORM_LENGTH_BYTES >= ARCHIVE_TRAILER_BYTES)
            set_trailer_sum (bytes + at, sum);
        if (body < BATCH_SUM_BYTES || body > left)
            return;
        uint8_t *from = bytes + at + FORM_LENGTH_BYTES;
        size_t covered = body - BATCH_SUM_BYTES;
        from[covered] = BATCH_SUM_TAG;
        checksum_put (from + covered + 1, checksum_add (0, from, covered));
        sum = archive_sum_add (sum, bytes + at, FORM_LENGTH_BYTES + body);
        at += FORM_LENGTH_BYTES + body;
    }
}

static void note (void *context, const uint8_t *hash)
{
    *(uint8_t *) context ^= hash[0] ^ hash[TMQ_BLOB_HASH_BYTES - 1];
}

static void take_apart (const uint8_t *body, size_t length)
{
    journal_head_t head;
    bool newer;
    uint8_t seen = 0;
    uint8_t *copy = fuzz_copy (body, length);
    bool is_batch = archive_blobs (copy, length, note, &seen);
    batch_t *batch = journal_decode (copy, length, &head, &newer);
    HOLDS (batch == NULL || is_batch); /* what can be taken can be looked into */
    batch_free (batch);
    free (copy);
}

int LLVMFuzzerTestOneInput (const uint8_t *data, size_t size)
{
    archive_reading_t reading;
    const uint8_t *body;
    size_t length;
    if (size < 1)
        return 0;
    uint8_t *bytes = fuzz_copy (data + 1, size - 1);
    if ((data[0] & SUMS) != 0)
        set_sums (bytes, size - 1);
    bool empty = archive_is_empty (bytes, size - 1);
    if (archive_read_begin (&reading, bytes, size - 1) == FORM_WHOLE) {
        uint64_t before = 0;
        archive_step_t step;
        HOLDS (!empty);
        while ((step = archive_read_next (&reading, &body, &length)) == ARCHIVE_BATCH) {
            HOLDS (reading.last.no > before && body >= bytes && body + length <= bytes + size - 1);
            before = reading.last.no;
            take_apart (body, length);
        }
        HOLDS (reading.at <= size - 1);
        if (step != ARCHIVE_ENDED)
            archive_read_is_torn (&reading);
    }
    free (bytes);
    return 0;
}
