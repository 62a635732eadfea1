/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

#include "codec.h"

#include <sodium.h>
#include <stdbool.h>
#include <string.h>

#include "ids.h"

/* The walk over bytes that nobody has checked yet. */

typedef struct walk {
    arena_t *arena;
    const codec_flaw_t **flaws_end; /* where the next flaw is hung */
    size_t request;                 /* index of the request the walk is in */
    size_t item;                    /* … of the repeated message inside its operation */
    tmq_code_t code;
    const char *text;
} walk_t;

enum {
    WALK_DEPTH_ENVELOPE = 0,
    WALK_DEPTH_OPERATION = 2,
    WIRE_VARINT = 0,
    WIRE_64BIT = 1,
    WIRE_LENGTH = 2,
    WIRE_32BIT = 5
};

/* One field as it stands on the wire. */
typedef struct field {
    uint32_t number;
    unsigned wire_type;
    const uint8_t *data; /* of WIRE_LENGTH */
    size_t length;
} field_t;

static bool walk_fail (walk_t *walk, tmq_code_t code, const char *text)
{
    walk->code = code;
    walk->text = text;
    return false;
}

static bool read_varint (const uint8_t **at, const uint8_t *end, uint64_t *value)
{
    *value = 0;
    for (unsigned shift = 0; shift < 64 && *at < end; shift += 7) {
        uint8_t byte = *(*at)++;
        *value |= (uint64_t) (byte & 0x7f) << shift;
        if (byte < 0x80)
            return true;
    }
    return false;
}

/* Reads one field and moves *at behind it. */
static bool read_field (field_t *field, const uint8_t **at, const uint8_t *end)
{
    uint64_t tag;
    if (!read_varint (at, end, &tag) || tag > UINT32_MAX || tag >> 3 == 0)
        return false;
    *field = (field_t){(uint32_t) (tag >> 3), (unsigned) (tag & 7), NULL, 0};
    uint64_t size;
    switch (field->wire_type) {
    case WIRE_VARINT: return read_varint (at, end, &size);
    case WIRE_64BIT: size = 8; break;
    case WIRE_32BIT: size = 4; break;
    case WIRE_LENGTH:
        if (!read_varint (at, end, &size))
            return false;
        break;
    default: return false;
    }
    if (size > (size_t) (end - *at))
        return false;
    field->data = *at;
    field->length = (size_t) size;
    *at += size;
    return true;
}

static bool walk_string (walk_t *walk, const ProtobufCFieldDescriptor *known, const field_t *field)
{
    if (utf8_is_valid (field->data, field->length))
        return true;
    codec_flaw_t *flaw = arena_alloc (walk->arena, sizeof *flaw);
    if (flaw == NULL)
        return walk_fail (walk, TMQ_TOO_LARGE, "the message needs too much memory to decode");
    *flaw = (codec_flaw_t){NULL, walk->request, walk->item, known->name};
    *walk->flaws_end = flaw;
    walk->flaws_end = &flaw->next;
    return true;
}

/* Which members of a message have been met. */
typedef struct seen {
    uint64_t members; /* a bit for each singular message, by its place in the descriptor */
    bool oneof;       /* no message of ours has two oneofs */
} seen_t;

/* Merging what is repeated against the rules costs quadratic time, and one request with two
 * operations has no meaning. No protobuf library writes either. */
static bool walk_once (seen_t *seen, const ProtobufCMessageDescriptor *type,
                       const ProtobufCFieldDescriptor *known)
{
    if ((known->flags & PROTOBUF_C_FIELD_FLAG_ONEOF) != 0) {
        bool first = !seen->oneof;
        seen->oneof = true;
        return first;
    }
    if (known->type != PROTOBUF_C_TYPE_MESSAGE || known->label == PROTOBUF_C_LABEL_REPEATED)
        return true;
    uint64_t bit = UINT64_C (1) << ((size_t) (known - type->fields) % 64);
    bool first = (seen->members & bit) == 0;
    seen->members |= bit;
    return first;
}

static bool walk_message (walk_t *walk, const ProtobufCMessageDescriptor *type, const uint8_t *at,
                          const uint8_t *end, unsigned depth)
{
    if (depth >= CODEC_DEPTH_MAX)
        return walk_fail (walk, TMQ_INVALID, "the message is nested too deeply");
    seen_t seen = {0, false};
    size_t elements = 0;
    while (at < end) {
        field_t field;
        if (!read_field (&field, &at, end))
            return walk_fail (walk, TMQ_INVALID, "the message is not a protobuf message");
        const ProtobufCFieldDescriptor *known =
            protobuf_c_message_descriptor_get_field (type, field.number);
        if (known == NULL)
            continue;
        if (!walk_once (&seen, type, known))
            return walk_fail (walk, TMQ_INVALID, "a member that may stand once stands twice");
        if (field.wire_type != WIRE_LENGTH)
            continue;
        if (known->type == PROTOBUF_C_TYPE_STRING && !walk_string (walk, known, &field))
            return false;
        if (known->type != PROTOBUF_C_TYPE_MESSAGE)
            continue;
        if (known->label == PROTOBUF_C_LABEL_REPEATED) {
            if (depth == WALK_DEPTH_ENVELOPE)
                walk->request = elements++;
            else if (depth == WALK_DEPTH_OPERATION)
                walk->item = elements++;
        }
        if (!walk_message (walk, known->descriptor, field.data, field.data + field.length,
                           depth + 1))
            return false;
    }
    return true;
}

/* Decoding. */

static ProtobufCMessage *decode (codec_report_t *report, arena_t *arena,
                                 const ProtobufCMessageDescriptor *type, const void *bytes,
                                 size_t length)
{
    static const uint8_t nothing[1];
    const uint8_t *start = length > 0 ? bytes : nothing;
    *report = (codec_report_t){TMQ_OK, NULL, NULL};
    walk_t walk = {arena, &report->flaws, 0, 0, TMQ_OK, NULL};
    if (!walk_message (&walk, type, start, start + length, WALK_DEPTH_ENVELOPE)) {
        *report = (codec_report_t){walk.code, walk.text, NULL};
        return NULL;
    }
    ProtobufCMessage *message =
        protobuf_c_message_unpack (type, arena_allocator (arena), length, start);
    if (message != NULL)
        return message;
    /* The structure was sound, so either a member has another type than ours or memory ran out. */
    report->code = arena_exhausted (arena) ? TMQ_TOO_LARGE : TMQ_INVALID;
    report->text = arena_exhausted (arena) ? "the message needs too much memory to decode"
                                           : "a member has the wrong type";
    return NULL;
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
    report->text = "a text is not UTF-8 without NUL";
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
    crypto_generichash_final (&state, out, CODEC_DIGEST_BYTES);
}
