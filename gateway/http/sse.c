/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

#include "http/sse.h"

#include <inttypes.h>
#include <stdio.h>

static void write_field (bytes_t *out, const char *name, const char *value)
{
    bytes_append_text (out, name);
    bytes_append_text (out, ": ");
    for (; *value != '\0'; value++)
        bytes_append_byte (out, *value == '\r' || *value == '\n' ? '?' : (uint8_t) *value);
    bytes_append_byte (out, '\n');
}

static void write_data (bytes_t *out, const char *data, size_t length)
{
    size_t at = 0;
    for (;;) {
        size_t end = at;
        while (end < length && data[end] != '\r' && data[end] != '\n')
            end++;
        bytes_append_text (out, "data: ");
        bytes_append (out, data + at, end - at);
        bytes_append_byte (out, '\n');
        if (end == length)
            return;
        at = end + (data[end] == '\r' && end + 1 < length && data[end + 1] == '\n' ? 2 : 1);
    }
}

void sse_write (bytes_t *out, const sse_event_t *event)
{
    if (event->id != NULL)
        write_field (out, "id", event->id);
    if (event->kind != NULL)
        write_field (out, "event", event->kind);
    if (event->data != NULL)
        write_data (out, event->data, event->data_bytes);
    bytes_append_byte (out, '\n');
}

void sse_write_retry (bytes_t *out, uint32_t ms)
{
    char line[32];
    snprintf (line, sizeof line, "retry: %" PRIu32 "\n\n", ms);
    bytes_append_text (out, line);
}

void sse_fields (response_t *response)
{
    response_field (response, "Content-Type", "text/event-stream");
    response_field (response, "X-Accel-Buffering", "no");
}
