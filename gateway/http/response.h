/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Responses of HTTP/1.1. Pure.
 *
 * Failure: bytes are appended to a bytes_t, which remembers exhausted memory. */
#ifndef TASKMQ_GATEWAY_HTTP_RESPONSE_H
#define TASKMQ_GATEWAY_HTTP_RESPONSE_H

#include <stdbool.h>
#include <stdint.h>

#include "bytes.h"

/* "Not Found"; "?" for a status that is never answered here. */
const char *http_status_text (int status);

/* A response under way: head first, then the body. */
typedef struct response {
    int status;
    bool is_sized;   /* its body is not here: a stream of length bytes, or the answer to a HEAD */
    uint64_t length; /* … of such a body */
    bytes_t fields;  /* lines of the head, each with its end */
    bytes_t body;
} response_t;

void response_init (response_t *self, int status);
void response_clear (response_t *self);
/* A field of the head. Line ends and other control characters of the value become "?", so a value
 * that came from elsewhere cannot begin a line of its own. */
void response_field (response_t *self, const char *name, const char *value);
void response_number (response_t *self, const char *name, uint64_t value);

typedef struct response_frame {
    bool close;     /* no request follows on this connection */
    bool head_only; /* the request was HEAD: the length is told, the body is not */
    bool stream;    /* the head of a stream: no body is written, its length if it is sized */
    bool chunked;   /* … its body comes in chunks; else it ends with its length, or with the
                       connection */
} response_frame_t;

void response_write (bytes_t *out, const response_t *self, response_frame_t frame);

#endif
