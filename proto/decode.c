/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* One pass over the bytes, led by protobuf-c's descriptors. protobuf-c's own unpack knows no limit
 * of depth, merges repeated members in quadratic time, and takes four times as long.
 *
 * Failure: the first thing that is wrong ends it; memory is the arena's, so nothing is undone. */
#include "decode.h"

#include <string.h>

#include "ids.h"
#include "wire.h"

enum { DEPTH_ENVELOPE = 0, DEPTH_OPERATION = 2 };

static const char not_utf8[] = "must be UTF-8 without NUL";
static const char other_type[] = "is of another type";

/* The decoding of one envelope. */
typedef struct decoder {
    arena_t *arena;
    codec_report_t *report;
    const codec_flaw_t **flaws_end; /* where the next flaw is hung */
    size_t request;                 /* index of the request that is decoded */
    size_t item;                    /* … of the repeated message inside its operation */
} decoder_t;

typedef const ProtobufCFieldDescriptor known_t;

static bool decode_fail (decoder_t *self, tmq_code_t code, const char *text)
{
    self->report->code = code;
    self->report->text = text;
    return false;
}

static bool no_memory (decoder_t *self)
{
    return decode_fail (self, TMQ_TOO_LARGE, "the message needs too much memory to decode");
}

static bool wrong_type (decoder_t *self)
{
    return decode_fail (self, TMQ_INVALID, "a member has the wrong type");
}

/* The fields of most messages count from 1 without a gap. */
static known_t *find_field (const ProtobufCMessageDescriptor *type, uint32_t number)
{
    if (number <= type->n_fields && type->fields[number - 1].id == number)
        return &type->fields[number - 1];
    return protobuf_c_message_descriptor_get_field (type, number);
}

/* Members. */

static bool add_flaw (decoder_t *self, known_t *known, const char *text)
{
    codec_flaw_t *flaw = arena_alloc (self->arena, sizeof *flaw);
    if (flaw == NULL)
        return no_memory (self);
    *flaw = (codec_flaw_t){NULL, self->request, self->item, known->name, text};
    *self->flaws_end = flaw;
    self->flaws_end = &flaw->next;
    return true;
}

/* A member of a type that the schema does not have for it, as an older or newer schema might. */
static bool type_fits (known_t *known, wire_type_t type)
{
    switch (known->type) {
    case PROTOBUF_C_TYPE_STRING:
    case PROTOBUF_C_TYPE_BYTES:
    case PROTOBUF_C_TYPE_MESSAGE: return type == WIRE_BYTES;
    case PROTOBUF_C_TYPE_DOUBLE: break;
    default:
        if (type == WIRE_VARINT)
            return true;
    }
    return (known->type == PROTOBUF_C_TYPE_DOUBLE && type == WIRE_FIXED64) ||
           (known->label == PROTOBUF_C_LABEL_REPEATED && type == WIRE_BYTES);
}

/* It spoils the request that it stands in, and leaves the member as if it were not there. Where it
 * is not known to which request a value belongs, or it is a message that others look into, nothing
 * can be made of the whole. */
static bool take_other_type (decoder_t *self, known_t *known, unsigned depth)
{
    if (depth < DEPTH_OPERATION || known->type == PROTOBUF_C_TYPE_MESSAGE)
        return wrong_type (self);
    return add_flaw (self, known, other_type);
}

static bool decode_text (decoder_t *self, known_t *known, const wire_field_t *field, char **out)
{
    if (!utf8_is_valid (field->bytes, field->length) && !add_flaw (self, known, not_utf8))
        return false;
    char *text = arena_alloc (self->arena, field->length + 1);
    if (text == NULL)
        return no_memory (self);
    if (field->length > 0)
        memcpy (text, field->bytes, field->length);
    text[field->length] = '\0';
    *out = text;
    return true;
}

static bool decode_bytes (decoder_t *self, const wire_field_t *field, ProtobufCBinaryData *out)
{
    *out = (ProtobufCBinaryData){field->length, NULL};
    if (field->length == 0)
        return true;
    out->data = arena_alloc (self->arena, field->length);
    if (out->data == NULL)
        return no_memory (self);
    memcpy (out->data, field->bytes, field->length);
    return true;
}

static bool decode_members (decoder_t *self, const ProtobufCMessageDescriptor *type,
                            const uint8_t *at, const uint8_t *end, unsigned depth,
                            ProtobufCMessage **out);

static int64_t from_zigzag (uint64_t value)
{
    return (int64_t) (value >> 1 ^ (UINT64_C (0) - (value & 1)));
}

/* Numbers that are too long for their type lose their upper bits, as protobuf has it. */
static bool decode_number (decoder_t *self, known_t *known, uint64_t value, void *out)
{
    switch (known->type) {
    case PROTOBUF_C_TYPE_UINT32: *(uint32_t *) out = (uint32_t) value; return true;
    case PROTOBUF_C_TYPE_UINT64: *(uint64_t *) out = value; return true;
    case PROTOBUF_C_TYPE_BOOL: *(protobuf_c_boolean *) out = value != 0; return true;
    case PROTOBUF_C_TYPE_SINT32: *(int32_t *) out = (int32_t) from_zigzag (value); return true;
    case PROTOBUF_C_TYPE_SINT64: *(int64_t *) out = from_zigzag (value); return true;
    default: return wrong_type (self); /* the schema has no others */
    }
}

/* One value to where it belongs: into the message, or into the array of a repeated member. */
static bool decode_value (decoder_t *self, known_t *known, const wire_field_t *field,
                          unsigned depth, void *out)
{
    switch (known->type) {
    case PROTOBUF_C_TYPE_DOUBLE: *(double *) out = wire_double (field->bytes); return true;
    case PROTOBUF_C_TYPE_STRING: return decode_text (self, known, field, out);
    case PROTOBUF_C_TYPE_BYTES: return decode_bytes (self, field, out);
    case PROTOBUF_C_TYPE_MESSAGE:
        return decode_members (self, known->descriptor, field->bytes, field->bytes + field->length,
                               depth + 1, out);
    default: return decode_number (self, known, field->value, out);
    }
}

/* Repeated members. */

static size_t element_bytes (known_t *known)
{
    switch (known->type) {
    case PROTOBUF_C_TYPE_STRING: return sizeof (char *);
    case PROTOBUF_C_TYPE_BYTES: return sizeof (ProtobufCBinaryData);
    case PROTOBUF_C_TYPE_MESSAGE: return sizeof (ProtobufCMessage *);
    case PROTOBUF_C_TYPE_UINT32:
    case PROTOBUF_C_TYPE_SINT32: return sizeof (uint32_t);
    case PROTOBUF_C_TYPE_BOOL: return sizeof (protobuf_c_boolean);
    default: return sizeof (uint64_t);
    }
}

/* Where the array's next element goes; NULL: out of memory. An array has room for a power of two,
 * so its length alone says when it is full. */
static void *next_element (decoder_t *self, known_t *known, ProtobufCMessage *message)
{
    size_t *count = (size_t *) (void *) ((uint8_t *) message + known->quantifier_offset);
    void **array = (void **) (void *) ((uint8_t *) message + known->offset);
    size_t size = element_bytes (known);
    if ((*count & (*count - 1)) == 0) {
        uint8_t *larger = arena_alloc (self->arena, (*count == 0 ? 1 : 2 * *count) * size);
        if (larger == NULL)
            return NULL;
        if (*count > 0)
            memcpy (larger, *array, *count * size);
        *array = larger;
    }
    return (uint8_t *) *array + (*count)++ * size;
}

/* Numbers may come packed: many in one field. */
static bool decode_packed (decoder_t *self, known_t *known, const wire_field_t *field,
                           ProtobufCMessage *message)
{
    const uint8_t *at = field->bytes;
    const uint8_t *end = at + field->length;
    const bool doubles = known->type == PROTOBUF_C_TYPE_DOUBLE;
    while (at < end) {
        uint64_t value = 0;
        if (doubles ? end - at < (ptrdiff_t) sizeof (double) : !wire_read_varint (&value, &at, end))
            return wrong_type (self);
        void *element = next_element (self, known, message);
        if (element == NULL)
            return no_memory (self);
        if (doubles) {
            *(double *) element = wire_double (at);
            at += sizeof (double);
        } else if (!decode_number (self, known, value, element)) {
            return false;
        }
    }
    return true;
}

static bool decode_element (decoder_t *self, known_t *known, const wire_field_t *field,
                            unsigned depth, ProtobufCMessage *message)
{
    bool number = known->type != PROTOBUF_C_TYPE_STRING && known->type != PROTOBUF_C_TYPE_BYTES &&
                  known->type != PROTOBUF_C_TYPE_MESSAGE;
    if (number && field->type == WIRE_BYTES)
        return decode_packed (self, known, field, message);
    const size_t *count =
        (const size_t *) (const void *) ((uint8_t *) message + known->quantifier_offset);
    if (known->type == PROTOBUF_C_TYPE_MESSAGE && depth == DEPTH_ENVELOPE)
        self->request = *count, self->item = 0;
    else if (known->type == PROTOBUF_C_TYPE_MESSAGE && depth == DEPTH_OPERATION)
        self->item = *count;
    void *element = next_element (self, known, message);
    return element == NULL ? no_memory (self) : decode_value (self, known, field, depth, element);
}

/* Messages. */

/* Which singular members of one message have been seen: a bit for each, by its place in the type.
 * No message of ours has more (the codec's test says so). */
enum { SEEN_MEMBERS_MAX = 128 };
typedef struct seen {
    uint64_t bits[SEEN_MEMBERS_MAX / 64];
} seen_t;

/* A singular member. Merging messages that are repeated against the rules costs quadratic time, one
 * request with two operations has no meaning, and of two tokens or ids nobody knows which one was
 * meant; no protobuf library writes any of these. */
static bool decode_member (decoder_t *self, known_t *known, const wire_field_t *field,
                           unsigned depth, ProtobufCMessage *message, seen_t *seen)
{
    size_t place = (size_t) (known - message->descriptor->fields) % SEEN_MEMBERS_MAX;
    uint64_t *bits = &seen->bits[place / 64];
    uint64_t bit = UINT64_C (1) << place % 64;
    bool twice = (*bits & bit) != 0;
    *bits |= bit;
    if ((known->flags & PROTOBUF_C_FIELD_FLAG_ONEOF) != 0) {
        uint32_t *chosen = (uint32_t *) (void *) ((uint8_t *) message + known->quantifier_offset);
        twice = *chosen != 0;
        *chosen = known->id;
    }
    if (twice)
        return decode_fail (self, TMQ_INVALID, "a member that may stand once stands twice");
    return decode_value (self, known, field, depth, (uint8_t *) message + known->offset);
}

static bool decode_members (decoder_t *self, const ProtobufCMessageDescriptor *type,
                            const uint8_t *at, const uint8_t *end, unsigned depth,
                            ProtobufCMessage **out)
{
    if (depth >= CODEC_DEPTH_MAX)
        return decode_fail (self, TMQ_INVALID, "the message is nested too deeply");
    ProtobufCMessage *message = arena_alloc (self->arena, type->sizeof_message);
    if (message == NULL)
        return no_memory (self);
    type->message_init (message);
    seen_t seen = {{0}};
    while (at < end) {
        wire_field_t field;
        if (!wire_read_field (&field, &at, end))
            return decode_fail (self, TMQ_INVALID, "the message is not a protobuf message");
        known_t *known = find_field (type, field.number);
        if (known == NULL)
            continue;
        bool good = !type_fits (known, field.type) ? take_other_type (self, known, depth)
                    : known->label == PROTOBUF_C_LABEL_REPEATED
                        ? decode_element (self, known, &field, depth, message)
                        : decode_member (self, known, &field, depth, message, &seen);
        if (!good)
            return false;
    }
    *out = message;
    return true;
}

ProtobufCMessage *decode_message (codec_report_t *report, arena_t *arena,
                                  const ProtobufCMessageDescriptor *type, const uint8_t *bytes,
                                  size_t length)
{
    *report = (codec_report_t){TMQ_OK, NULL, NULL};
    decoder_t self = {arena, report, &report->flaws, 0, 0};
    ProtobufCMessage *message = NULL;
    if (decode_members (&self, type, bytes, bytes + length, DEPTH_ENVELOPE, &message))
        return message;
    report->flaws = NULL;
    return NULL;
}
