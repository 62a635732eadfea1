/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Requests of strangers. However they are cut, they are judged the same; what is taken is within
 * its limits, and has one meaning. */
#include "http/codec.h"

#include "fuzz.h"
#include "http/target.h"

enum { HEAD_MAX = 2048, FIELDS_MAX = 20, TARGET_MAX = 256, BODY_MAX = 512 };

typedef struct verdict {
    size_t whole;
    int status;
    size_t body_bytes;
    uint32_t hash; /* of what was understood */
} verdict_t;

static void add (verdict_t *verdict, const void *bytes, size_t length)
{
    const uint8_t *at = bytes;
    for (size_t i = 0; i < length; i++)
        verdict->hash = (verdict->hash ^ at[i]) * 16777619U;
}

static void look_at_head (verdict_t *verdict, const http_request_t *request)
{
    http_target_t target;
    HOLDS (request->target[0] == '/' && strlen (request->target) <= TARGET_MAX);
    HOLDS (request->fields_count <= FIELDS_MAX);
    HOLDS (http_request_count (request, "host") == 1 || request->minor_0);
    HOLDS (!request->chunked || http_request_count (request, "content-length") == 0);
    add (verdict, request->target, strlen (request->target));
    for (size_t i = 0; i < request->fields_count; i++) {
        HOLDS (request->fields[i].name[0] != '\0');
        HOLDS (strpbrk (request->fields[i].value, "\r\n") == NULL);
        add (verdict, request->fields[i].name, strlen (request->fields[i].name));
        add (verdict, request->fields[i].value, strlen (request->fields[i].value));
    }
    if (http_target_parse (&target, request->target) == NULL) {
        for (size_t i = 0; i < target.segments_count; i++)
            HOLDS (target.segments[i][0] != '\0' && strchr (target.segments[i], '/') == NULL);
        http_target_clear (&target);
    }
}

static verdict_t read_all (const uint8_t *data, size_t size, size_t step)
{
    static const codec_limits_t limits = {HEAD_MAX, FIELDS_MAX, TARGET_MAX};
    verdict_t verdict = {0};
    codec_t *codec = codec_new (&limits);
    if (codec == NULL)
        abort ();
    size_t body_bytes = 0;
    for (size_t at = 0; verdict.status == 0;) {
        const uint8_t *body = NULL;
        size_t used = 0;
        size_t body_length = 0;
        const size_t piece = size - at < step ? size - at : step;
        const codec_event_t event =
            codec_feed (codec, data + at, piece, &used, &body, &body_length);
        HOLDS (used <= piece);
        at += used;
        if (event == CODEC_MORE && at == size)
            break;
        if (event == CODEC_HEAD) {
            look_at_head (&verdict, codec_request (codec));
            codec_accept (codec, BODY_MAX, "the body is too long");
            body_bytes = 0;
        } else if (event == CODEC_BODY) {
            HOLDS (body_length > 0);
            body_bytes += body_length;
            verdict.body_bytes += body_length;
            HOLDS (body_bytes <= BODY_MAX);
            add (&verdict, body, body_length);
        } else if (event == CODEC_END) {
            verdict.whole++;
            codec_next (codec);
        } else if (event == CODEC_REFUSED) {
            verdict.status = codec_refusal (codec, NULL);
            HOLDS (verdict.status >= 400 && verdict.status < 600);
        }
    }
    codec_free (codec);
    return verdict;
}

int LLVMFuzzerTestOneInput (const uint8_t *data, size_t size)
{
    uint8_t *copy = fuzz_copy (data, size);
    const verdict_t once = read_all (copy, size, size + 1);
    const verdict_t bytes = read_all (copy, size, 1);
    HOLDS (once.whole == bytes.whole && once.status == bytes.status);
    HOLDS (once.body_bytes == bytes.body_bytes && once.hash == bytes.hash);
    free (copy);
    return 0;
}
