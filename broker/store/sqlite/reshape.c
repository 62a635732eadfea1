/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

#include "store/sqlite/reshape.h"

#include "store/journal/journal_codec.h"
#include "wire.h"

/* What becomes of a field: what is in it is made anew by these rules, or, without any, its varint
 * becomes a double. Other fields stay as they are. The last rule is of field 0. */
typedef struct rule {
    uint32_t field;
    const struct rule *inside;
} rule_t;

static const rule_t PROGRESS[] = {{1, NULL}, {2, NULL}, {0, NULL}};
static const rule_t EVENT[] = {{13, PROGRESS}, {0, NULL}};
static const rule_t EVENTS[] = {{1, EVENT}, {0, NULL}};
static const rule_t RECORD[] = {{38, NULL}, {39, NULL}, {0, NULL}};
static const rule_t BLOCK[] = {{5, EVENTS}, {0, NULL}};
static const rule_t BATCH[] = {{7, RECORD}, {10, BLOCK}, {0, NULL}};

static const rule_t *rule_of (const rule_t *rules, uint32_t field)
{
    for (; rules->field != 0; rules++)
        if (rules->field == field)
            return rules;
    return NULL;
}

/* As deep as the rules, which end. */
static bool reshape (bytes_t *out, const rule_t *rules, const uint8_t *bytes, size_t length)
{
    const uint8_t *end = bytes + length;
    for (const uint8_t *at = bytes; at < end;) {
        const uint8_t *begin = at;
        wire_field_t field;
        if (!wire_read_field (&field, &at, end))
            return false;
        const rule_t *rule = rule_of (rules, field.number);
        if (rule != NULL && rule->inside == NULL && field.type == WIRE_VARINT) {
            bytes_append_double (out, field.number, (double) field.value);
        } else if (rule != NULL && rule->inside != NULL && field.type == WIRE_BYTES) {
            bytes_t inner = BYTES_INIT;
            bool good = reshape (&inner, rule->inside, field.bytes, field.length);
            bytes_append_element (out, field.number, inner.data, inner.length);
            bytes_free (&inner);
            if (!good)
                return false;
        } else {
            bytes_append (out, begin, (size_t) (at - begin));
        }
    }
    return !out->failed;
}

bool reshape_record_6 (bytes_t *out, const uint8_t *bytes, size_t length)
{
    return reshape (out, RECORD, bytes, length);
}

bool reshape_events_6 (bytes_t *out, const uint8_t *bytes, size_t length)
{
    return reshape (out, EVENTS, bytes, length);
}

bool reshape_batch_2 (bytes_t *out, const uint8_t *bytes, size_t length)
{
    size_t start = out->length;
    if (!journal_is_whole (bytes, length) ||
        !reshape (out, BATCH, bytes, length - JOURNAL_TRAILER_BYTES))
        return false;
    journal_seal (out, start);
    return true;
}
