/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

#include "logs/log_frame.h"

#include <errno.h>
#include <unistd.h>

#include "store/checksum.h"

enum { AT_LENGTH = 8, AT_CHECK = 12, AT_SUM = 16, CHECK = 0x746d716c };

void log_put (uint8_t *out, uint64_t value, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++)
        out[i] = (uint8_t) (value >> (8 * i));
}

uint64_t log_get (const uint8_t *in, size_t bytes)
{
    uint64_t value = 0;
    for (size_t i = 0; i < bytes; i++)
        value |= (uint64_t) in[i] << (8 * i);
    return value;
}

uint32_t log_sum (const void *bytes, size_t length)
{
    return (uint32_t) checksum_add (0, bytes, length);
}

size_t log_read_all (int fd, uint8_t *out, size_t length, uint64_t at)
{
    size_t have = 0;
    errno = 0;
    while (have < length) {
        ssize_t got = pread (fd, out + have, length - have, (off_t) (at + have));
        if (got < 0 && errno != EINTR)
            break;
        errno = 0;
        if (got == 0)
            break;
        have += got > 0 ? (size_t) got : 0;
    }
    return have;
}

size_t log_frame_head_bytes (bool sums)
{
    return sums ? LOG_FRAME_HEAD_BYTES : AT_SUM;
}

uint64_t log_frame_upto (const log_frame_t *self, bool sums)
{
    return self->at + log_frame_head_bytes (sums) + self->length;
}

uint64_t log_frame_end (const log_frame_t *self)
{
    return self->offset + self->length;
}

/* Files of before checked one half of the offset. */
static uint32_t check_of (uint64_t offset, uint32_t length, bool sums)
{
    uint32_t high = sums ? (uint32_t) (offset >> 32) * 0x9e3779b1u : 0;
    return (uint32_t) offset ^ high ^ length ^ CHECK;
}

void log_frame_pack (uint8_t *out, uint64_t offset, const uint8_t *bytes, size_t length, bool sums)
{
    log_put (out, offset, 8);
    log_put (out + AT_LENGTH, length, 4);
    log_put (out + AT_CHECK, check_of (offset, (uint32_t) length, sums), 4);
    if (sums)
        log_put (out + AT_SUM, log_sum (bytes, length), 4);
}

bool log_frame_unpack (log_frame_t *out, const uint8_t *in, bool sums)
{
    out->length = (uint32_t) log_get (in + AT_LENGTH, 4);
    if (out->length == 0 || out->length > TMQ_LOG_BYTES_MAX)
        return false;
    out->offset = log_get (in, 8);
    out->sum = sums ? (uint32_t) log_get (in + AT_SUM, 4) : 0;
    return log_get (in + AT_CHECK, 4) == check_of (out->offset, out->length, sums) &&
           out->offset <= TMQ_LOG_OFFSET_MAX - out->length;
}

int log_frame_read (const log_frame_t *self, int fd, bool sums, uint8_t out[TMQ_LOG_BYTES_MAX])
{
    if (log_read_all (fd, out, self->length, self->at + log_frame_head_bytes (sums)) !=
        self->length)
        return EIO;
    return sums && log_sum (out, self->length) != self->sum ? EBADMSG : 0;
}
