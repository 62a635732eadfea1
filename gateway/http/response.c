/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

#include "http/response.h"

#include <inttypes.h>
#include <stdio.h>

static const struct {
    int status;
    const char *text;
} texts[] = {{100, "Continue"},
             {200, "OK"},
             {201, "Created"},
             {202, "Accepted"},
             {204, "No Content"},
             {206, "Partial Content"},
             {303, "See Other"},
             {304, "Not Modified"},
             {400, "Bad Request"},
             {401, "Unauthorized"},
             {403, "Forbidden"},
             {404, "Not Found"},
             {405, "Method Not Allowed"},
             {406, "Not Acceptable"},
             {408, "Request Timeout"},
             {409, "Conflict"},
             {410, "Gone"},
             {412, "Precondition Failed"},
             {413, "Content Too Large"},
             {414, "URI Too Long"},
             {415, "Unsupported Media Type"},
             {416, "Range Not Satisfiable"},
             {417, "Expectation Failed"},
             {422, "Unprocessable Content"},
             {429, "Too Many Requests"},
             {431, "Request Header Fields Too Large"},
             {500, "Internal Server Error"},
             {501, "Not Implemented"},
             {503, "Service Unavailable"},
             {504, "Gateway Timeout"},
             {505, "HTTP Version Not Supported"},
             {507, "Insufficient Storage"}};

const char *http_status_text (int status)
{
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        if (texts[i].status == status)
            return texts[i].text;
    return "?";
}

void response_init (response_t *self, int status)
{
    *self = (response_t){.status = status, .fields = BYTES_INIT, .body = BYTES_INIT};
}

void response_clear (response_t *self)
{
    bytes_free (&self->fields);
    bytes_free (&self->body);
}

void response_field (response_t *self, const char *name, const char *value)
{
    bytes_append_text (&self->fields, name);
    bytes_append_text (&self->fields, ": ");
    for (; *value != '\0'; value++) {
        const uint8_t byte = (uint8_t) *value;
        bytes_append_byte (&self->fields, byte < ' ' || byte == 0x7f ? '?' : byte);
    }
    bytes_append_text (&self->fields, "\r\n");
}

void response_number (response_t *self, const char *name, uint64_t value)
{
    char text[24];
    snprintf (text, sizeof text, "%" PRIu64, value);
    response_field (self, name, text);
}

void response_write (bytes_t *out, const response_t *self, response_frame_t frame)
{
    char line[96];
    const bool bodiless = self->status == 204 || self->status == 304 || self->status < 200;
    snprintf (line, sizeof line, "HTTP/1.1 %d %s\r\n", self->status,
              http_status_text (self->status));
    bytes_append_text (out, line);
    bytes_append (out, self->fields.data, self->fields.length);
    if (frame.stream && frame.chunked) {
        bytes_append_text (out, "Transfer-Encoding: chunked\r\n");
    } else if (!bodiless && (self->is_sized || !frame.stream)) {
        snprintf (line, sizeof line, "Content-Length: %" PRIu64 "\r\n",
                  self->is_sized ? self->length : (uint64_t) self->body.length);
        bytes_append_text (out, line);
    }
    if (frame.close)
        bytes_append_text (out, "Connection: close\r\n");
    bytes_append_text (out, "\r\n");
    if (!bodiless && !frame.head_only && !frame.stream)
        bytes_append (out, self->body.data, self->body.length);
    if (self->fields.failed || self->body.failed)
        out->failed = true;
}
