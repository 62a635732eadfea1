/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* The format is that of sqlite.org/fileformat2.html, section 4: a header, then frames, each with
 * the salts of its log and a sum over all of the log before it. Older frames, which a new log
 * overwrites from the start, have other salts. */
#include "store/sqlite/wal_scan.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/memory.h"
#include "store/sqlite/sqlite_schema.h"

enum {
    HEADER_BYTES = 32,
    HEADER_SUMMED = 24, /* bytes of it that its own sum covers */
    HEADER_PAGE_BYTES = 8,
    HEADER_SALTS = 16,
    FRAME_HEADER_BYTES = 24,
    FRAME_SUMMED = 8, /* of its header; then the page */
    FRAME_COMMIT = 4, /* not 0: the last frame of a commit */
    FRAME_SALTS = 8,
    FRAME_SUM = 16,
    SALTS_BYTES = 8,
    PAGE_BYTES_MIN = 512,
    PAGE_BYTES_MAX = 65536,
    DATABASE_APPLICATION = 68 /* in the first page of the database */
};

static const uint32_t MAGIC = 0x377f0682; /* the lowest bit: words of sums are big-endian */

typedef struct scan {
    const char *database;
    const char *path;
    int fd;
    off_t size;
    uint8_t header[HEADER_BYTES];
    size_t frame_bytes;
    uint8_t *frame;
    bool big_endian;
    uint32_t sum[2];
} scan_t;

static uint32_t number_of (const uint8_t *bytes)
{
    return (uint32_t) bytes[0] << 24 | (uint32_t) bytes[1] << 16 | (uint32_t) bytes[2] << 8 |
           bytes[3];
}

static uint32_t word_of (const scan_t *self, const uint8_t *bytes)
{
    if (self->big_endian)
        return number_of (bytes);
    return (uint32_t) bytes[3] << 24 | (uint32_t) bytes[2] << 16 | (uint32_t) bytes[1] << 8 |
           bytes[0];
}

static void add (const scan_t *self, uint32_t sum[2], const uint8_t *bytes, size_t length)
{
    for (size_t i = 0; i < length; i += 8) {
        sum[0] += word_of (self, bytes + i) + sum[1];
        sum[1] += word_of (self, bytes + i + 4) + sum[0];
    }
}

static bool sum_is (const uint32_t sum[2], const uint8_t *stored)
{
    return sum[0] == number_of (stored) && sum[1] == number_of (stored + 4);
}

static bool read_at (const scan_t *self, void *to, size_t length, off_t at)
{
    return pread (self->fd, to, length, at) == (ssize_t) length;
}

static off_t frame_at (const scan_t *self, uint64_t index)
{
    return HEADER_BYTES + (off_t) (index * self->frame_bytes);
}

/* A log of zeroes was never begun: its header is synced before anything else. */
static bool is_empty (const scan_t *self)
{
    static const uint8_t ZERO[HEADER_BYTES];
    return memcmp (self->header, ZERO, sizeof (ZERO)) == 0;
}

static bool take_header (scan_t *self)
{
    uint32_t magic = number_of (self->header);
    uint32_t page_bytes = number_of (self->header + HEADER_PAGE_BYTES);
    self->big_endian = (magic & 1) != 0;
    add (self, self->sum, self->header, HEADER_SUMMED);
    self->frame_bytes = FRAME_HEADER_BYTES + page_bytes;
    return (magic & ~1U) == MAGIC && sum_is (self->sum, self->header + HEADER_SUMMED) &&
           page_bytes >= PAGE_BYTES_MIN && page_bytes <= PAGE_BYTES_MAX;
}

/* Of this log, or but for one bit: the salts of another log are other random numbers. */
static bool has_salts (const scan_t *self, const uint8_t *frame)
{
    int other = 0;
    for (size_t i = 0; i < SALTS_BYTES; i++)
        other += __builtin_popcount (frame[FRAME_SALTS + i] ^ self->header[HEADER_SALTS + i]);
    return other <= 1;
}

static bool frame_is_whole (scan_t *self)
{
    const uint8_t *frame = self->frame;
    if (memcmp (frame + FRAME_SALTS, self->header + HEADER_SALTS, SALTS_BYTES) != 0)
        return false;
    add (self, self->sum, frame, FRAME_SUMMED);
    add (self, self->sum, frame + FRAME_HEADER_BYTES, self->frame_bytes - FRAME_HEADER_BYTES);
    return sum_is (self->sum, frame + FRAME_SUM);
}

/* Index of the first frame that SQLite does not read. *end: behind the last commit before it. */
static uint64_t first_unread (scan_t *self, uint64_t count, uint64_t *end)
{
    uint64_t index = 0;
    *end = 0;
    for (; index < count; index++) {
        if (!read_at (self, self->frame, self->frame_bytes, frame_at (self, index)) ||
            !frame_is_whole (self))
            break;
        if (number_of (self->frame + FRAME_COMMIT) != 0)
            *end = index + 1;
    }
    return index;
}

/* The frame was written behind one with this sum: it goes on with it. */
static bool goes_on (const scan_t *self, uint64_t index, uint32_t first, uint32_t second)
{
    uint32_t sum[2] = {first, second};
    if (!read_at (self, self->frame, self->frame_bytes, frame_at (self, index)) ||
        !has_salts (self, self->frame))
        return false;
    add (self, sum, self->frame, FRAME_SUMMED);
    add (self, sum, self->frame + FRAME_HEADER_BYTES, self->frame_bytes - FRAME_HEADER_BYTES);
    return sum_is (sum, self->frame + FRAME_SUM);
}

/* A frame that goes on behind a commit that is not read: that commit was synced before it. Frames
 * that only stand there prove nothing: a commit that failed leaves some, which the next overwrites
 * in part. */
static bool is_followed (const scan_t *self, uint64_t unread, uint64_t count)
{
    uint8_t header[FRAME_HEADER_BYTES];
    for (uint64_t index = unread; index + 1 < count; index++) {
        if (!read_at (self, header, sizeof (header), frame_at (self, index)) ||
            !has_salts (self, header) || number_of (header + FRAME_COMMIT) == 0)
            continue;
        const uint8_t *sum = header + FRAME_SUM;
        if (goes_on (self, index + 1, number_of (sum), number_of (sum + 4)) ||
            (index == unread && goes_on (self, index + 1, self->sum[0], self->sum[1])))
            return true;
    }
    return false;
}

/* The mark stands in the first page, which holds it since before the first commit without a sync:
 * a checkpoint that a crash cuts short writes the same there. */
static bool log_is_unsynced (const scan_t *self)
{
    uint8_t id[4];
    int fd = open (self->database, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0)
        return false;
    bool good = pread (fd, id, sizeof (id), DATABASE_APPLICATION) == (ssize_t) sizeof (id);
    close (fd);
    return good && number_of (id) == SCHEMA_JOURNAL_UNSYNCED;
}

static store_code_t scan_frames (scan_t *self, bool *cut, store_error_t *error)
{
    uint64_t count = (uint64_t) (self->size - HEADER_BYTES) / self->frame_bytes;
    uint64_t end;
    self->frame = memory_alloc (self->frame_bytes);
    uint64_t unread = first_unread (self, count, &end);
    bool followed = is_followed (self, unread, count);
    free (self->frame);
    if (!followed)
        return STORE_OK;
    *cut = log_is_unsynced (self);
    if (*cut)
        return STORE_OK;
    return store_fail (
        error, STORE_ERROR_CORRUPT,
        "%s: is damaged at byte %lld, before commits that were acknowledged: restore "
        "a backup; \"truncate -s %lld\" of this file gives those commits up",
        self->path, (long long) frame_at (self, unread), (long long) frame_at (self, end));
}

static store_code_t scan_file (scan_t *self, bool *cut, store_error_t *error)
{
    struct stat status;
    if (fstat (self->fd, &status) != 0)
        return store_fail (error, STORE_ERROR_IO, "%s: %s", self->path, strerror (errno));
    self->size = status.st_size;
    if (self->size < HEADER_BYTES + FRAME_HEADER_BYTES + PAGE_BYTES_MIN)
        return STORE_OK; /* not one frame */
    if (!read_at (self, self->header, sizeof (self->header), 0))
        return store_fail (error, STORE_ERROR_IO, "%s: %s", self->path, strerror (errno));
    if (is_empty (self))
        return STORE_OK;
    if (!take_header (self))
        return store_fail (
            error, STORE_ERROR_CORRUPT,
            "%s: its header is damaged, so that nothing of it would be read: restore "
            "a backup; \"truncate -s 0\" of this file gives its commits up",
            self->path);
    return scan_frames (self, cut, error);
}

store_code_t wal_scan (const char *directory, const char *name, bool *cut, store_error_t *error)
{
    char database[PATH_MAX];
    char path[PATH_MAX];
    snprintf (database, sizeof (database), "%s/%s", directory, name);
    snprintf (path, sizeof (path), "%s/%s-wal", directory, name);
    scan_t self = {
        .database = database, .path = path, .fd = open (path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW)};
    *cut = false;
    if (self.fd < 0)
        return STORE_OK; /* none, or one that SQLite will say more about */
    store_code_t code = scan_file (&self, cut, error);
    close (self.fd);
    return code;
}
