/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

#include "rest/trace.h"

#include <sodium.h>
#include <stdio.h>
#include <string.h>

#include "ids.h"

enum {
    TRACE_BYTES = 16,
    SPAN_BYTES = 8,
    TRACE_AT = 3,
    SPAN_AT = 36,
    FLAGS_AT = 53,
    PARENT_LENGTH = EXCHANGE_TRACE_SIZE - 1
};

static bool has_form (const char *text)
{
    static const char form[] = "xx-xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx-xxxxxxxxxxxxxxxx-xx";
    for (size_t i = 0; i < PARENT_LENGTH; i++) /* a NUL is no part of the form */
        if (text[i] == '\0' ||
            (form[i] == 'x' ? strchr ("0123456789abcdef", text[i]) == NULL : text[i] != form[i]))
            return false;
    return true;
}

/* VERSION-TRACE-SPAN-FLAGS with small hexadecimal digits; a trace and a span of zeros are none. A
 * later version may go on behind a dash: of it are taken the members, and the one flag, that the
 * present one has. Version ff is none. False: text (may be NULL) is no such. */
static bool read_parent (char out[EXCHANGE_TRACE_SIZE], const char *text)
{
    static const char zeros[] = "00000000000000000000000000000000";
    if (text == NULL || !has_form (text) || memcmp (text, "ff", 2) == 0 ||
        memcmp (text + TRACE_AT, zeros, 2 * (size_t) TRACE_BYTES) == 0 ||
        memcmp (text + SPAN_AT, zeros, 2 * (size_t) SPAN_BYTES) == 0)
        return false;
    const bool is_later = memcmp (text, "00", 2) != 0;
    if (text[PARENT_LENGTH] != '\0' && !(is_later && text[PARENT_LENGTH] == '-'))
        return false;
    memcpy (out, text, PARENT_LENGTH);
    out[PARENT_LENGTH] = '\0';
    if (!is_later)
        return true;
    const bool is_sampled = strchr ("13579bdf", text[FLAGS_AT + 1]) != NULL;
    memcpy (out, "00", 2);
    memcpy (out + FLAGS_AT, is_sampled ? "01" : "00", 2);
    return true;
}

void trace_begin (exchange_t *exchange)
{
    const char *given = http_request_field (exchange->request, "traceparent");
    uint8_t random[TRACE_BYTES + SPAN_BYTES];
    char id[2 * TRACE_BYTES + 1];
    randombytes_buf (random, sizeof random);
    hex_encode (id, random, TRACE_BYTES);
    hex_encode (exchange->span, random + TRACE_BYTES, SPAN_BYTES);
    exchange->traced = read_parent (exchange->trace, given);
    if (!exchange->traced)
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
    char read[EXCHANGE_TRACE_SIZE];
    if (!read_parent (read, parent))
        return NULL;
    const int length =
        snprintf (out, TMQ_TRACE_BYTES_MAX + 1, "%s%s%s", read,
                  state != NULL && *state != '\0' ? " " : "", state != NULL ? state : "");
    bool good = length > 0 && length <= TMQ_TRACE_BYTES_MAX;
    for (const char *at = out; good && *at != '\0'; at++)
        good = *at >= ' ' && *at < 0x7f;
    if (!good)
        snprintf (out, TMQ_TRACE_BYTES_MAX + 1, "%s", read);
    return out;
}

/* A list may come in several fields. One that does not fit is left out whole. */
static const char *states_of (const exchange_t *exchange, char out[TMQ_TRACE_BYTES_MAX + 1])
{
    const http_request_t *request = exchange->request;
    size_t length = 0;
    out[0] = '\0';
    for (size_t i = 0; i < request->fields_count; i++) {
        if (strcmp (request->fields[i].name, "tracestate") != 0)
            continue;
        length += (size_t) snprintf (out + length, TMQ_TRACE_BYTES_MAX + 1 - length, "%s%s",
                                     length > 0 ? "," : "", request->fields[i].value);
        if (length > TMQ_TRACE_BYTES_MAX)
            return NULL;
    }
    return out;
}

const char *trace_of (const exchange_t *exchange, char out[TMQ_TRACE_BYTES_MAX + 1])
{
    char states[TMQ_TRACE_BYTES_MAX + 1];
    return trace_text (out, exchange->trace,
                       exchange->traced ? states_of (exchange, states) : NULL);
}
