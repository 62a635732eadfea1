/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

#include "rest/trace.h"

#include <sodium.h>
#include <stdio.h>
#include <string.h>

#include "ids.h"

enum { TRACE_BYTES = 16, SPAN_BYTES = 8, TRACE_AT = 3, SPAN_AT = 36 };

/* 00-TRACE-SPAN-FLAGS with small hexadecimal digits; a trace and a span of zeros are none. */
static bool is_traceparent (const char *text)
{
    static const char form[] = "00-xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx-xxxxxxxxxxxxxxxx-xx";
    static const char zeros[] = "00000000000000000000000000000000";
    if (strlen (text) != sizeof form - 1)
        return false;
    for (size_t i = 0; i < sizeof form - 1; i++)
        if (form[i] == 'x' ? strchr ("0123456789abcdef", text[i]) == NULL : text[i] != form[i])
            return false;
    return memcmp (text + TRACE_AT, zeros, 2 * (size_t) TRACE_BYTES) != 0 &&
           memcmp (text + SPAN_AT, zeros, 2 * (size_t) SPAN_BYTES) != 0;
}

void trace_begin (exchange_t *exchange)
{
    const char *given = http_request_field (exchange->request, "traceparent");
    uint8_t random[TRACE_BYTES + SPAN_BYTES];
    char id[2 * TRACE_BYTES + 1];
    randombytes_buf (random, sizeof random);
    hex_encode (id, random, TRACE_BYTES);
    hex_encode (exchange->span, random + TRACE_BYTES, SPAN_BYTES);
    if (given != NULL && is_traceparent (given))
        memcpy (exchange->trace, given, EXCHANGE_TRACE_SIZE);
    else
        snprintf (exchange->trace, sizeof exchange->trace, "00-%s-%s-00", id, exchange->span);
}

const char *trace_id (const exchange_t *exchange, char out[TRACE_ID_SIZE])
{
    snprintf (out, TRACE_ID_SIZE, "%s",
              exchange->trace[0] != '\0' ? exchange->trace + TRACE_AT : "");
    return out;
}

void trace_response (const exchange_t *exchange, char out[EXCHANGE_TRACE_SIZE])
{
    memcpy (out, exchange->trace, EXCHANGE_TRACE_SIZE);
    memcpy (out + SPAN_AT, exchange->span, 2 * (size_t) SPAN_BYTES);
}

const char *trace_text (char out[TMQ_TRACE_BYTES_MAX + 1], const char *parent, const char *state)
{
    if (parent == NULL || !is_traceparent (parent))
        return NULL;
    const int length =
        snprintf (out, TMQ_TRACE_BYTES_MAX + 1, "%s%s%s", parent,
                  state != NULL && *state != '\0' ? " " : "", state != NULL ? state : "");
    bool good = length > 0 && length <= TMQ_TRACE_BYTES_MAX;
    for (const char *at = out; good && *at != '\0'; at++)
        good = *at >= ' ' && *at < 0x7f;
    if (!good)
        snprintf (out, TMQ_TRACE_BYTES_MAX + 1, "%s", parent);
    return out;
}

const char *trace_of (const exchange_t *exchange, char out[TMQ_TRACE_BYTES_MAX + 1])
{
    const char *given = http_request_field (exchange->request, "traceparent");
    const bool is_theirs = given != NULL && strcmp (given, exchange->trace) == 0;
    return trace_text (out, exchange->trace,
                       is_theirs ? http_request_field (exchange->request, "tracestate") : NULL);
}
