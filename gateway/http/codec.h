/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Requests of HTTP/1.1 and 1.0, read from bytes as they come. Pure: no socket, no clock.
 *
 * Where two readers of the same bytes could disagree about what they mean, nothing is read: a guard
 * looks at every byte of a head before the parser does, and bodies are framed in exactly one way.
 * Refused are NUL and other control characters, a CR or LF alone, folded lines, a missing or second
 * Host, any Transfer-Encoding but "chunked", both it and Content-Length, two of either, chunk
 * extensions, trailers, targets that do not begin with a slash, other versions and other methods.
 *
 * Failure: a refusal has the status to answer with and a sentence; then nothing more is read. */
#ifndef TASKMQ_GATEWAY_HTTP_CODEC_H
#define TASKMQ_GATEWAY_HTTP_CODEC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum request_method {
    HTTP_METHOD_GET,
    HTTP_METHOD_HEAD,
    HTTP_METHOD_POST,
    HTTP_METHOD_PUT,
    HTTP_METHOD_DELETE,
    HTTP_METHOD_OPTIONS
} http_method_t;
enum { HTTP_METHODS_COUNT = HTTP_METHOD_OPTIONS + 1 };
const char *http_method_text (http_method_t method);

typedef struct http_field {
    const char *name; /* lower case */
    const char *value;
} http_field_t;

/* A head, whole. Lives until codec_next. */
typedef struct http_request {
    http_method_t method;
    const char *target; /* begins with a slash; visible ASCII */
    const http_field_t *fields;
    size_t fields_count;
    bool minor_0; /* HTTP/1.0 */
    bool keep_alive;
    bool expects_continue;
    bool chunked;
    uint64_t content_length; /* 0 when chunked */
} http_request_t;

/* The value of the only field of that name (lower case); NULL without one, or with several. */
const char *http_request_field (const http_request_t *request, const char *name);
size_t http_request_count (const http_request_t *request, const char *name);

typedef struct codec_limits {
    size_t head_bytes_max;
    size_t fields_max;
    size_t target_bytes_max;
} codec_limits_t;

typedef enum codec_event {
    CODEC_MORE,   /* all bytes are taken; it needs more */
    CODEC_HEAD,   /* the head is there: codec_request, then codec_accept */
    CODEC_BODY,   /* a piece of the body */
    CODEC_END,    /* the request is whole; codec_next begins another one */
    CODEC_REFUSED /* codec_refusal says why */
} codec_event_t;

typedef struct codec codec_t;

/* NULL when memory is exhausted. limits are copied. */
codec_t *codec_new (const codec_limits_t *limits);
void codec_free (codec_t *self); /* accepts NULL */
/* Takes some of the bytes, *used of them. For CODEC_BODY *body points into them. To be called again
 * with the rest (perhaps none) until it gives CODEC_MORE. After CODEC_END and CODEC_REFUSED it
 * takes nothing. */
codec_event_t codec_feed (codec_t *self, const void *bytes, size_t length, size_t *used,
                          const uint8_t **body, size_t *body_length);
/* After CODEC_HEAD. */
const http_request_t *codec_request (const codec_t *self);
/* After CODEC_HEAD: takes a body of at most so many bytes. A longer one is refused with 413 and the
 * reason, before it comes where its length is told. reason lives until codec_next. */
void codec_accept (codec_t *self, uint64_t body_bytes_max, const char *reason);
/* The status to answer with; *reason (may be NULL) is a sentence. */
int codec_refusal (const codec_t *self, const char **reason);
/* Forgets the request. */
void codec_next (codec_t *self);
/* The memory that the head takes, as far as it has come. */
size_t codec_held (const codec_t *self);
/* True when no byte of a request has come yet. */
bool codec_is_idle (const codec_t *self);

#endif
