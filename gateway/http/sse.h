/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* The framing of server-sent events (text/event-stream), as the HTML standard has it. Pure.
 *
 * Failure: bytes are appended to a bytes_t, which remembers exhausted memory. */
#ifndef TASKMQ_GATEWAY_HTTP_SSE_H
#define TASKMQ_GATEWAY_HTTP_SSE_H

#include "bytes.h"
#include "http/response.h"

/* A comment that every reader skips. */
#define SSE_PING ": ping\n\n"

typedef struct sse_event {
    const char *id;   /* NULL: none; the reader keeps the last one */
    const char *kind; /* NULL: "message" */
    const char *data; /* UTF-8 of any lines; NULL: none, and then the reader raises no event */
    size_t data_bytes;
} sse_event_t;

/* Line ends of data (CR, LF and both) become lines of their own, which the reader joins by LF. In
 * an id or a kind they become "?", so a value that came from elsewhere cannot begin a field. */
void sse_write (bytes_t *out, const sse_event_t *event);
/* The reader waits so long before it connects again. */
void sse_write_retry (bytes_t *out, uint32_t ms);
/* The fields of the head that every such stream has: its type, and that no proxy keeps it back. */
void sse_fields (response_t *response);

#endif
