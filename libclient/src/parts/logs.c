/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

#include "parts/logs.h"

#include <stdlib.h>
#include <string.h>

#include "base/errors.h"

enum {
    STREAMS = 2,
    LARGE_BYTES = 32 * 1024, /* so much goes on as soon as the piece before it was taken */
    LOG_STREAM = 2,          /* numbers of fields in taskmq.proto */
    LOG_OFFSET = 3,
    LOG_BYTES = 4
};

typedef struct stream {
    bytes_t kept;    /* what the broker has not taken … */
    uint64_t offset; /* … from this one on */
    size_t sent;     /* of it, under way */
} stream_t;

struct core_log {
    stream_t streams[STREAMS]; /* out, err */
    bool over;                 /* the broker takes nothing more of this attempt */
};

static void drop (stream_t *self, size_t bytes)
{
    if (bytes == 0)
        return;
    memmove (self->kept.data, self->kept.data + bytes, self->kept.length - bytes);
    self->kept.length -= bytes;
    self->offset += bytes;
    self->sent -= bytes < self->sent ? bytes : self->sent;
}

void core_log_free (core_log_t *self)
{
    for (size_t i = 0; self != NULL && i < STREAMS; i++)
        bytes_free (&self->streams[i].kept);
    free (self);
}

bool core_log_waits (const core_attempt_t *attempt)
{
    const core_log_t *log = attempt->log;
    for (size_t i = 0; log != NULL && i < STREAMS; i++)
        if (log->streams[i].sent == 0 && log->streams[i].kept.length > 0)
            return true;
    return false;
}

static void send_piece (core_attempt_t *attempt, unsigned number, stream_t *stream)
{
    core_requests_t *requests = attempt->worker->all->requests;
    bytes_mark_t mark = 0;
    size_t length = stream->kept.length - stream->sent;
    uint64_t offset = stream->offset + stream->sent;
    if (length > TMQ_LOG_BYTES_MAX)
        length = TMQ_LOG_BYTES_MAX;
    core_request_t *request =
        core_attempt_about (core_internal_new (requests, CORE_OP_LOG), attempt, &mark);
    if (request != NULL) {
        bytes_append_uint (&request->fields, LOG_STREAM, number);
        bytes_append_uint (&request->fields, LOG_OFFSET, offset);
        bytes_append_uint (&request->fields, LOG_BYTES, length);
        bytes_close (&request->fields, mark);
        bytes_append (&request->body, stream->kept.data + stream->sent, length);
        request->log_stream = number;
        request->log_end = offset + length;
    }
    stream->sent += length;
    core_internal_send (requests, request);
}

void core_log_send (core_attempt_t *attempt, bool all)
{
    core_log_t *log = attempt->log;
    const core_link_t *link = attempt->worker->all->link;
    for (unsigned i = 0; log != NULL && i < STREAMS; i++) {
        stream_t *stream = &log->streams[i];
        while (core_link_is_up (link) && stream->kept.length > stream->sent &&
               (all || stream->sent == 0))
            send_piece (attempt, i + 1, stream);
    }
}

void core_log_unsent (core_attempt_t *attempt)
{
    for (size_t i = 0; attempt->log != NULL && i < STREAMS; i++)
        attempt->log->streams[i].sent = 0;
}

void core_log_again (core_attempt_t *attempt)
{
    core_log_send (attempt, attempt->ends > 0);
}

void core_logs_reply (core_workers_t *all, const core_request_t *request,
                      const Taskmq__Reply *reply)
{
    core_attempt_t *attempt = core_attempt_find (all, &request->task_id, request->attempt);
    if (attempt == NULL || attempt->log == NULL)
        return;
    if (reply->code != TMQ_OK) {
        attempt->log->over = true;
        for (size_t i = 0; i < STREAMS; i++)
            drop (&attempt->log->streams[i], attempt->log->streams[i].kept.length);
        core_attempt_refused (attempt, reply->code);
        return;
    }
    stream_t *stream = &attempt->log->streams[request->log_stream - 1];
    if (request->log_end > stream->offset)
        drop (stream, (size_t) (request->log_end - stream->offset));
    if (stream->kept.length >= LARGE_BYTES)
        core_log_send (attempt, false);
    else
        core_push_due (attempt);
}

/* The application's side. */

int core_worker_log (core_worker_t *self, const tmq_assignment_t *of, tmq_log_stream_t number,
                     const void *bytes, size_t length, int64_t now_ms, tmq_error_t *error)
{
    core_link_hear_time (self->all->link, now_ms);
    core_attempt_t *attempt = core_attempt_of (self, of);
    if (number != TMQ_LOG_OUT && number != TMQ_LOG_ERR)
        return core_error (error, TMQ_INVALID, "stream: must be TMQ_LOG_OUT or TMQ_LOG_ERR");
    if (attempt == NULL)
        return core_attempt_stale (error);
    if (attempt->log == NULL)
        attempt->log = calloc (1, sizeof *attempt->log);
    if (attempt->log == NULL)
        return core_error (error, TMQ_NO_MEMORY, NULL);
    if (attempt->log->over)
        return core_error (error, TMQ_OK, NULL);
    stream_t *stream = &attempt->log->streams[number - 1];
    size_t skipped = length > CORE_LOG_KEPT_MAX ? length - CORE_LOG_KEPT_MAX : 0;
    size_t rest = length - skipped;
    if (stream->kept.length + rest > CORE_LOG_KEPT_MAX || skipped > 0) {
        size_t room = skipped > 0 ? 0 : CORE_LOG_KEPT_MAX - rest;
        drop (stream, stream->kept.length - room);
        stream->offset += skipped;
    }
    bytes_append (&stream->kept, (const uint8_t *) bytes + skipped, rest);
    if (stream->kept.failed) {
        bytes_free (&stream->kept);
        stream->offset += rest;
        stream->sent = 0;
        return core_error (error, TMQ_NO_MEMORY, NULL);
    }
    core_push_due (attempt);
    return core_error (error, TMQ_OK, NULL);
}

size_t core_worker_log_pending (const core_worker_t *self, const tmq_assignment_t *of)
{
    const core_attempt_t *attempt = core_attempt_of (self, of);
    size_t bytes = 0;
    for (size_t i = 0; attempt != NULL && attempt->log != NULL && i < STREAMS; i++)
        bytes += attempt->log->streams[i].kept.length;
    return bytes;
}
