/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

#include "codec.h"

#include <sodium.h>
#include <stdbool.h>
#include <string.h>

#include "decode.h"

/* Decoding. */

static ProtobufCMessage *decode (codec_report_t *report, arena_t *arena,
                                 const ProtobufCMessageDescriptor *type, const void *bytes,
                                 size_t length)
{
    static const uint8_t nothing[1];
    return decode_message (report, arena, type, length > 0 ? bytes : nothing, length);
}

/* Flaws in what a broker or a store wrote are an error. */
static ProtobufCMessage *decode_flawless (codec_report_t *report, arena_t *arena,
                                          const ProtobufCMessageDescriptor *type, const void *bytes,
                                          size_t length)
{
    ProtobufCMessage *message = decode (report, arena, type, bytes, length);
    if (message == NULL || report->flaws == NULL)
        return message;
    report->code = TMQ_INVALID;
    report->text = "a value is not what it must be";
    return NULL;
}

static bool envelope_fits (codec_report_t *report, size_t length)
{
    if (length <= TMQ_ENVELOPE_BYTES_MAX)
        return true;
    *report = (codec_report_t){TMQ_TOO_LARGE, "the envelope is larger than 65536 bytes", NULL};
    return false;
}

const Taskmq__ClientMessage *codec_client_message (codec_report_t *report, arena_t *arena,
                                                   const void *bytes, size_t length)
{
    if (!envelope_fits (report, length))
        return NULL;
    return (const Taskmq__ClientMessage *) decode (
        report, arena, &taskmq__client_message__descriptor, bytes, length);
}

const Taskmq__BrokerMessage *codec_broker_message (codec_report_t *report, arena_t *arena,
                                                   const void *bytes, size_t length)
{
    if (!envelope_fits (report, length))
        return NULL;
    return (const Taskmq__BrokerMessage *) decode_flawless (
        report, arena, &taskmq__broker_message__descriptor, bytes, length);
}

const Taskmq__EventList *codec_event_list (codec_report_t *report, arena_t *arena,
                                           const void *bytes, size_t length)
{
    return (const Taskmq__EventList *) decode_flawless (
        report, arena, &taskmq__event_list__descriptor, bytes, length);
}

/* Digest. */

static void digest_field (crypto_generichash_state *state, const void *bytes, size_t length)
{
    const uint8_t prefix[4] = {(uint8_t) (length >> 24), (uint8_t) (length >> 16),
                               (uint8_t) (length >> 8), (uint8_t) length};
    crypto_generichash_update (state, prefix, sizeof prefix);
    if (length > 0)
        crypto_generichash_update (state, bytes, length);
}

void codec_submit_digest (uint8_t out[CODEC_DIGEST_BYTES], const Taskmq__TaskSpec *spec,
                          const void *payload, size_t payload_bytes)
{
    crypto_generichash_state state;
    crypto_generichash_init (&state, NULL, 0, CODEC_DIGEST_BYTES);
    digest_field (&state, spec->queue, strlen (spec->queue));
    digest_field (&state, spec->method, strlen (spec->method));
    digest_field (&state, spec->session, strlen (spec->session));
    digest_field (&state, spec->content_type, strlen (spec->content_type));
    digest_field (&state, payload, payload_bytes);
    if (spec->extra != NULL && spec->extra->payload_blob != NULL) /* the hash says it all */
        digest_field (&state, spec->extra->payload_blob->hash.data,
                      spec->extra->payload_blob->hash.len);
    crypto_generichash_final (&state, out, CODEC_DIGEST_BYTES);
}
