/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

#include "parts/log_kept.h"

#include <stdlib.h>
#include <string.h>

#include "bytes.h"

enum { STREAMS = 2 };

typedef struct stream {
    bytes_t kept;
    uint64_t offset; /* of its first byte */
    size_t sent;     /* of it, under way */
    size_t pieces;   /* under way, also of what is kept no more */
} stream_t;

struct core_log {
    stream_t streams[STREAMS]; /* TMQ_LOG_OUT first */
    bool over;
};

core_log_t *core_log_new (void)
{
    return calloc (1, sizeof (core_log_t));
}

void core_log_free (core_log_t *self)
{
    for (size_t i = 0; self != NULL && i < STREAMS; i++)
        bytes_free (&self->streams[i].kept);
    free (self);
}

static void drop (stream_t *self, size_t bytes)
{
    if (bytes == 0)
        return;
    memmove (self->kept.data, self->kept.data + bytes, self->kept.length - bytes);
    self->kept.length -= bytes;
    self->offset += bytes;
    self->sent -= bytes < self->sent ? bytes : self->sent;
}

bool core_log_keep (core_log_t *self, tmq_log_stream_t number, const void *bytes, size_t length)
{
    if (self == NULL || self->over)
        return true;
    stream_t *stream = &self->streams[number - 1];
    size_t skipped = length > CORE_LOG_KEPT_MAX ? length - CORE_LOG_KEPT_MAX : 0;
    size_t rest = length - skipped;
    size_t room = CORE_LOG_KEPT_MAX - rest;
    if (stream->kept.length > room)
        drop (stream, stream->kept.length - room);
    if (skipped > 0) /* then nothing is kept of what was before */
        stream->offset += skipped;
    bytes_append (&stream->kept, (const uint8_t *) bytes + skipped, rest);
    if (!stream->kept.failed)
        return true;
    stream->offset += stream->kept.length + rest;
    stream->sent = 0;
    bytes_free (&stream->kept);
    return false;
}

bool core_log_next (core_log_t *self, bool all, core_log_piece_t *out)
{
    for (size_t i = 0; self != NULL && i < STREAMS; i++) {
        stream_t *stream = &self->streams[i];
        size_t left = stream->kept.length - stream->sent;
        if (left == 0 || (stream->pieces > 0 && !all))
            continue;
        out->stream = i == 0 ? TMQ_LOG_OUT : TMQ_LOG_ERR;
        out->offset = stream->offset + stream->sent;
        out->bytes = stream->kept.data + stream->sent;
        out->length = left < TMQ_LOG_BYTES_MAX ? left : TMQ_LOG_BYTES_MAX;
        stream->sent += out->length;
        stream->pieces++;
        return true;
    }
    return false;
}

bool core_log_waits (const core_log_t *self)
{
    for (size_t i = 0; self != NULL && i < STREAMS; i++)
        if (self->streams[i].pieces == 0 && self->streams[i].kept.length > 0)
            return true;
    return false;
}

void core_log_taken (core_log_t *self, tmq_log_stream_t number, uint64_t end)
{
    if (self == NULL)
        return;
    stream_t *stream = &self->streams[number - 1];
    stream->pieces -= stream->pieces > 0;
    if (end > stream->offset)
        drop (stream, (size_t) (end - stream->offset));
}

void core_log_unsent (core_log_t *self)
{
    for (size_t i = 0; self != NULL && i < STREAMS; i++)
        self->streams[i].sent = self->streams[i].pieces = 0;
}

void core_log_end (core_log_t *self)
{
    for (size_t i = 0; self != NULL && i < STREAMS; i++)
        drop (&self->streams[i], self->streams[i].kept.length);
    if (self != NULL)
        self->over = true;
}

size_t core_log_bytes (const core_log_t *self)
{
    size_t bytes = 0;
    for (size_t i = 0; self != NULL && i < STREAMS; i++)
        bytes += self->streams[i].kept.length;
    return bytes;
}
