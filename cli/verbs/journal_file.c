/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

#include "verbs/journal_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

/* The sums are made by what stands in the header: the program needs no further library. */
#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/memory.h"

/* docs/JOURNAL.md, "Blocks and segments" and "Parts". */
enum {
    VERSION = 1,
    BLOCK = 4096,
    HEADER_BYTES = 72,
    HEADER_SUM = 64,
    PART_BYTES = 96,
    PART_SUM = 88,
    LENGTH_BYTES = 4,
    SEGMENT_MIN = 16 * 1024,
    SEGMENT_MAX = 4 * 1024 * 1024,
    SEGMENTS_MIN = 4,
    FLAG_UNSYNCED = 1
};
static const uint8_t MAGIC[8] = {'t', 'm', 'q', 'l', 'o', 'g', 13, 10};
static const uint8_t PART_MAGIC[4] = {'t', 'm', 'q', 'p'};

static uint64_t number_of (const uint8_t *at, size_t bytes)
{
    uint64_t number = 0;
    while (bytes-- > 0)
        number = number << 8 | at[bytes];
    return number;
}

static uint32_t number_32 (const uint8_t *at)
{
    return (uint32_t) number_of (at, 4);
}

static uint64_t number_64 (const uint8_t *at)
{
    return number_of (at, 8);
}

static bool read_at (int fd, void *to, size_t length, uint64_t at)
{
    uint8_t *out = to;
    while (length > 0) {
        const ssize_t n = pread (fd, out, length, (off_t) at);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return false;
        out += n;
        at += (uint64_t) n;
        length -= (size_t) n;
    }
    return true;
}

/* The header. */

/* NULL, or what is wrong. */
static const char *take_header (journal_header_t *out, const uint8_t *from)
{
    if (memcmp (from, MAGIC, sizeof MAGIC) != 0)
        return "is not a journal of taskmq";
    if (number_64 (from + HEADER_SUM) != XXH3_64bits_withSeed (from, HEADER_SUM, 0))
        return "has no header that is whole";
    out->version = number_32 (from + 8);
    if (out->version > VERSION)
        return "was written by a newer version";
    out->segment_bytes = number_64 (from + 16);
    out->segments = number_64 (from + 32);
    out->generation = number_64 (from + 40);
    out->epoch = number_64 (from + 48);
    out->salt = number_64 (from + 56);
    out->whole = number_32 (from + 12) == BLOCK && out->segment_bytes >= SEGMENT_MIN &&
                 out->segment_bytes <= SEGMENT_MAX && out->segment_bytes % BLOCK == 0 &&
                 out->segments >= SEGMENTS_MIN;
    return out->whole ? NULL : "has a header that cannot be";
}

/* The newer epoch counts, then more segments. */
static bool is_newer (const journal_header_t *a, const journal_header_t *b)
{
    return a->whole && (!b->whole || a->epoch > b->epoch ||
                        (a->epoch == b->epoch && a->segments > b->segments));
}

static const char *read_headers (journal_file_t *self, bool *is_damaged)
{
    uint8_t blocks[2][HEADER_BYTES] = {{0}};
    const char *wrong[2];
    for (size_t i = 0; i < 2; i++) {
        if (self->bytes >= i * BLOCK + HEADER_BYTES &&
            !read_at (self->fd, blocks[i], HEADER_BYTES, i * BLOCK))
            return "cannot be read";
        wrong[i] = take_header (&self->headers[i], blocks[i]);
    }
    const bool second = is_newer (&self->headers[1], &self->headers[0]);
    self->run = self->headers[second];
    if (!self->run.whole) {
        const size_t worst = memcmp (blocks[0], MAGIC, sizeof MAGIC) == 0 ? 0 : 1;
        *is_damaged = memcmp (blocks[worst], MAGIC, sizeof MAGIC) == 0;
        return wrong[worst];
    }
    /* A broker makes the file longer before the header counts that. */
    struct stat status;
    if (fstat (self->fd, &status) == 0)
        self->bytes = (uint64_t) status.st_size;
    if (self->bytes / self->run.segment_bytes < self->run.segments) {
        *is_damaged = true;
        return "is shorter than it was made";
    }
    return NULL;
}

/* Parts. */

typedef enum found { FOUND_NOTHING, FOUND_BROKEN, FOUND_WHOLE } found_t;

static found_t take_part (journal_part_t *out, const uint8_t *at, uint64_t room, uint64_t salt)
{
    if (room < PART_BYTES || memcmp (at, PART_MAGIC, sizeof PART_MAGIC) != 0 ||
        number_64 (at + 8) != salt)
        return FOUND_NOTHING;
    out->unsynced = (number_32 (at + 4) & FLAG_UNSYNCED) != 0;
    out->serial = number_64 (at + 32);
    out->first = number_64 (at + 40);
    out->last = number_64 (at + 48);
    out->previous = number_64 (at + 56);
    out->written = number_64 (at + 64);
    out->part = number_32 (at + 72);
    out->parts = number_32 (at + 76);
    out->batches = number_32 (at + 80);
    out->bytes = number_32 (at + 84);
    if (out->bytes > room - PART_BYTES || out->part >= out->parts || out->first > out->last)
        return FOUND_BROKEN;
    const uint64_t sum = XXH3_64bits_withSeed (at, PART_SUM, 0);
    return number_64 (at + PART_SUM) == XXH3_64bits_withSeed (at + PART_BYTES, out->bytes, sum)
               ? FOUND_WHOLE
               : FOUND_BROKEN;
}

static void keep_part (journal_file_t *self, const journal_part_t *part)
{
    if ((self->count & (self->count - 1)) == 0)
        self->parts =
            must_grow (self->parts, self->count == 0 ? 1 : 2 * self->count, sizeof *self->parts);
    self->parts[self->count++] = *part;
    if (part->written > self->written)
        self->written = part->written;
}

static void note_broken (journal_file_t *self, const journal_part_t *part)
{
    if (self->broken++ == 0 || part->serial >= self->broken_serial) {
        self->broken_serial = part->serial;
        self->broken_at = part->at;
    }
}

/* What lies inside a whole part is content, whatever it looks like. */
static void take_segment (journal_file_t *self, const uint8_t *bytes, uint64_t index)
{
    const uint64_t size = self->run.segment_bytes;
    journal_segment_t *segment = &self->segments[index];
    for (uint64_t at = index == 0 ? 2 * BLOCK : BLOCK; at < size;) {
        journal_part_t part = {.at = index * size + at};
        const found_t found = take_part (&part, bytes + at, size - at, self->run.salt);
        uint64_t blocks = 1;
        if (found == FOUND_WHOLE) {
            blocks = (PART_BYTES + (uint64_t) part.bytes + BLOCK - 1) / BLOCK;
            keep_part (self, &part);
            segment->parts++;
            segment->bytes += blocks * BLOCK;
        } else if (found == FOUND_BROKEN) {
            note_broken (self, &part);
            segment->broken++;
        }
        at += blocks * BLOCK;
    }
}

static int compare (const void *a, const void *b)
{
    const journal_part_t *left = a;
    const journal_part_t *right = b;
    if (left->serial != right->serial)
        return left->serial < right->serial ? -1 : 1;
    return (left->part > right->part) - (left->part < right->part);
}

static const char *read_segments (journal_file_t *self)
{
    if (self->run.segments > JOURNAL_SEGMENTS_MAX)
        return "has more segments than 65,536";
    const uint64_t size = self->run.segment_bytes;
    uint8_t *bytes = must_alloc (size);
    const char *wrong = NULL;
    self->segments_count = self->run.segments; /* what is behind them is nothing */
    self->segments = must_grow (NULL, self->segments_count, sizeof *self->segments);
    memset (self->segments, 0, self->segments_count * sizeof *self->segments);
    for (uint64_t i = 0; wrong == NULL && i < self->segments_count; i++) {
        if (!read_at (self->fd, bytes, size, i * size))
            wrong = "cannot be read";
        else if (self->count + size / BLOCK > JOURNAL_PARTS_MAX)
            wrong = "has more parts than 1,000,000";
        else
            take_segment (self, bytes, i);
    }
    free (bytes);
    if (self->count > 1)
        qsort (self->parts, self->count, sizeof *self->parts, compare);
    return wrong;
}

bool journal_open (journal_file_t *out, const char *path, char why[JOURNAL_WHY_SIZE],
                   bool *is_damaged)
{
    struct stat status;
    *out = (journal_file_t){.fd = open (path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)};
    *is_damaged = false;
    if (out->fd < 0 || fstat (out->fd, &status) != 0) {
        snprintf (why, JOURNAL_WHY_SIZE, "cannot be opened: %s", strerror (errno));
        journal_close (out);
        return false;
    }
    if (!S_ISREG (status.st_mode)) {
        snprintf (why, JOURNAL_WHY_SIZE, "is no file");
        journal_close (out);
        return false;
    }
    out->bytes = (uint64_t) status.st_size;
    if (flock (out->fd, LOCK_SH | LOCK_NB) == 0)
        flock (out->fd, LOCK_UN);
    else
        out->is_open = errno == EWOULDBLOCK;
    const char *wrong = read_headers (out, is_damaged);
    if (wrong == NULL)
        wrong = read_segments (out);
    if (wrong == NULL)
        return true;
    snprintf (why, JOURNAL_WHY_SIZE, "%s", wrong);
    journal_close (out);
    return false;
}

void journal_close (journal_file_t *self)
{
    if (self->fd >= 0)
        close (self->fd);
    free (self->segments);
    free (self->parts);
    *self = (journal_file_t){.fd = -1};
}

/* The log. */

bool journal_is_complete (const journal_file_t *self, size_t part)
{
    const journal_part_t *first = &self->parts[part];
    if (first->part != 0 || first->parts > self->count - part)
        return false;
    for (uint32_t i = 1; i < first->parts; i++)
        if (first[i].serial != first->serial || first[i].part != i)
            return false;
    return true;
}

bool journal_in_log (const journal_log_t *log, const journal_part_t *part)
{
    return part->batches > 0 && log->first != 0 && part->first >= log->first &&
           part->last <= log->last;
}

/* Of the newest write, whose parts are durable one after the other: the one before is not there. */
static bool lacks_one_before (const journal_file_t *self, size_t i)
{
    const journal_part_t *part = &self->parts[i];
    if (part->part == 0 || part->serial != self->parts[self->count - 1].serial)
        return false;
    return i == 0 || part[-1].serial != part->serial || part[-1].part + 1 != part->part;
}

void journal_find_log (journal_log_t *out, const journal_file_t *self)
{
    *out = (journal_log_t){.last = self->written};
    for (size_t i = 0; i < self->count; i++) {
        const journal_part_t *part = &self->parts[i];
        const bool follows =
            out->first == 0 ? part->previous <= self->written : part->previous == out->last;
        if (part->batches == 0 || part->last <= out->last || !follows ||
            !journal_is_complete (self, i))
            continue;
        if (out->first == 0)
            out->first = part->first;
        out->commits++;
        out->last = part->last;
        const journal_part_t *end = part + (part->parts - 1);
        out->ends_at = end->at + (PART_BYTES + (uint64_t) end->bytes + BLOCK - 1) / BLOCK * BLOCK;
        i += part->parts - 1;
    }
    for (size_t i = 0; i < self->count && !out->gap; i++) {
        const journal_part_t *part = &self->parts[i];
        out->own =
            part->previous <= out->last && part->last > out->last && lacks_one_before (self, i);
        out->gap = part->previous > out->last || out->own;
        out->gap_at = out->gap ? self->parts[i].at : 0;
        out->unsynced = out->gap && self->parts[i].unsynced;
    }
}

/* Content: the bytes of all parts of a commit, one behind the other. */

typedef struct content {
    const journal_file_t *file;
    const journal_part_t *part;
    const journal_part_t *end; /* behind the last one */
    uint64_t taken;            /* of this part */
    uint8_t buffer[BLOCK];
    size_t filled;
    size_t used;
    XXH3_state_t sum;
} content_t;

static bool fill (content_t *self)
{
    while (self->part < self->end && self->taken == self->part->bytes) {
        self->part++;
        self->taken = 0;
    }
    if (self->part == self->end)
        return false;
    const uint64_t left = self->part->bytes - self->taken;
    self->filled = left < sizeof self->buffer ? (size_t) left : sizeof self->buffer;
    self->used = 0;
    if (!read_at (self->file->fd, self->buffer, self->filled,
                  self->part->at + PART_BYTES + self->taken))
        return false;
    self->taken += self->filled;
    return true;
}

/* The next bytes, which count for the sum; out may be NULL. */
static bool take (content_t *self, void *out, uint64_t length)
{
    uint8_t *to = out;
    while (length > 0) {
        if (self->used == self->filled && !fill (self))
            return false;
        const size_t there = self->filled - self->used;
        const size_t now = length < there ? (size_t) length : there;
        XXH3_64bits_update (&self->sum, self->buffer + self->used, now);
        if (to != NULL) {
            memcpy (to, self->buffer + self->used, now);
            to += now;
        }
        self->used += now;
        length -= now;
    }
    return true;
}

static bool is_at_end (content_t *self)
{
    return self->used == self->filled && !fill (self);
}

/* A varint of protobuf, within what is left. */
static bool take_varint (content_t *self, uint64_t *out, uint64_t *left)
{
    *out = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
        uint8_t byte;
        if (*left == 0 || !take (self, &byte, 1))
            return false;
        --*left;
        *out |= (uint64_t) (byte & 0x7f) << shift;
        if (byte < 0x80)
            return true;
    }
    return false;
}

enum {
    WIRE_VARINT = 0,
    WIRE_BYTES = 2,
    BATCH_NO = 4, /* fields of message Batch */
    BATCH_PREVIOUS = 5,
    BATCH_WALL = 6,
    BATCH_KINDS = 7, /* the first of the five kinds */
    SUM_BYTES = 9    /* its sum, with its tag, ends the batch */
};

static void note_number (journal_batch_t *batch, uint64_t field, uint64_t value)
{
    if (field == BATCH_NO)
        batch->no = value;
    else if (field == BATCH_PREVIOUS)
        batch->previous = value;
    else if (field == BATCH_WALL)
        batch->wall_ms = value;
}

/* A batch of so many bytes, up to its sum. */
static bool take_fields (content_t *self, journal_batch_t *batch)
{
    for (uint64_t left = batch->bytes - SUM_BYTES; left > 0;) {
        uint64_t tag;
        uint64_t value;
        if (!take_varint (self, &tag, &left) || !take_varint (self, &value, &left))
            return false;
        const uint64_t field = tag >> 3;
        if ((tag & 7) == WIRE_VARINT) {
            note_number (batch, field, value);
            continue;
        }
        if ((tag & 7) != WIRE_BYTES || value > left || !take (self, NULL, value))
            return false;
        left -= value;
        if (field >= BATCH_KINDS && field < BATCH_KINDS + JOURNAL_KINDS) {
            batch->counts[field - BATCH_KINDS]++;
            batch->sizes[field - BATCH_KINDS] += value;
        }
    }
    return true;
}

static bool take_batch (content_t *self, journal_batch_t *batch)
{
    uint8_t length[LENGTH_BYTES];
    uint8_t sum[SUM_BYTES];
    *batch = (journal_batch_t){0};
    if (!take (self, length, sizeof length))
        return false;
    batch->bytes = number_32 (length);
    XXH3_64bits_reset (&self->sum);
    if (batch->bytes < SUM_BYTES || !take_fields (self, batch))
        return false;
    const uint64_t wanted = XXH3_64bits_digest (&self->sum);
    if (!take (self, sum, sizeof sum))
        return false;
    batch->whole = number_64 (sum + 1) == wanted;
    return true;
}

bool journal_batches (const journal_file_t *self, size_t part,
                      void (*take_one) (void *context, const journal_batch_t *batch), void *context)
{
    content_t content = {.file = self,
                         .part = &self->parts[part],
                         .end = &self->parts[part] + self->parts[part].parts};
    uint32_t count = 0;
    XXH3_64bits_reset (&content.sum);
    while (!is_at_end (&content)) {
        journal_batch_t batch;
        if (count++ == self->parts[part].batches || !take_batch (&content, &batch))
            return false;
        take_one (context, &batch);
        if (!batch.whole)
            return false;
    }
    return count == self->parts[part].batches;
}
