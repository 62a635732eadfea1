/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* What ZeroMQ tells of a connection: frames with two bytes of length each. */
#include "net/zap.h"

#include "fuzz.h"

static void is_printable (const char *text, size_t size)
{
    const char *end = memchr (text, '\0', size);
    HOLDS (end != NULL);
    for (; text < end; text++)
        HOLDS (*text > ' ' && *text <= '~');
}

int LLVMFuzzerTestOneInput (const uint8_t *data, size_t size)
{
    zap_frame_t frames[ZAP_FRAMES_MAX];
    const uint8_t *piece;
    size_t count = 0;
    zap_request_t request;
    while (count < ZAP_FRAMES_MAX && fuzz_piece (&data, &size, &piece, &frames[count].length)) {
        frames[count].bytes = fuzz_copy (piece, frames[count].length);
        count++;
    }
    if (zap_parse (frames, count, &request)) {
        is_printable (request.domain, sizeof (request.domain));
        is_printable (request.address, sizeof (request.address));
        HOLDS (request.mechanism == ZAP_NULL || request.mechanism == ZAP_CURVE);
    }
    for (size_t i = 0; i < count; i++)
        free ((void *) (uintptr_t) frames[i].bytes);
    return 0;
}
