/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

#include "core/data/turn.h"

#include <string.h>

#include "bytes.h"
#include "turn_files.h"
#include "wire.h"

/* Fields of a row's body; the parts stand in a row. */
enum {
    FIELD_TURN = 1,
    FIELD_ATTEMPT = 2,
    FIELD_NUMBER = 3,
    FIELD_WORKER = 4,
    FIELD_AGENT = 5,
    FIELD_STATUS = 6,
    FIELD_STARTED_AT = 7,
    FIELD_DURATION_MS = 8,
    FIELD_TOLD_AT = 9,
    FIELD_REQUEST_ID = 10,
    FIELD_PARTS = 11,
    FIELD_PARTS_END = FIELD_PARTS + TURN_PARTS
};

void turn_key (row_key_t *out, const char *ns, const uint8_t *id, uint32_t turn)
{
    out->length = 0;
    row_key_text (out, ns);
    row_key_bytes (out, id, sizeof (tmq_id_t));
    if (turn > 0)
        row_key_number (out, turn);
}

size_t turn_bytes (const turn_t *turn)
{
    size_t bytes = 0;
    for (size_t i = 0; i < TURN_PARTS; i++)
        bytes += turn->lengths[i];
    return bytes;
}

bool turn_unpack (turn_t *out, const buf_t *body)
{
    *out = (turn_t){0};
    const uint8_t *at = buf_bytes (body);
    const uint8_t *end = at + buf_length (body);
    wire_field_t field;
    while (at < end) {
        if (!wire_read_field (&field, &at, end))
            return false;
        switch (field.number) {
        case FIELD_TURN: out->turn = (uint32_t) field.value; break;
        case FIELD_ATTEMPT: out->attempt = (uint32_t) field.value; break;
        case FIELD_NUMBER: out->number = (uint32_t) field.value; break;
        case FIELD_WORKER: wire_copy_text (out->worker, sizeof (out->worker), &field); break;
        case FIELD_AGENT: wire_copy_text (out->agent, sizeof (out->agent), &field); break;
        case FIELD_STATUS: wire_copy_text (out->status, sizeof (out->status), &field); break;
        case FIELD_STARTED_AT: out->started_at = (int64_t) field.value; break;
        case FIELD_DURATION_MS: out->duration_ms = (int64_t) field.value; break;
        case FIELD_TOLD_AT: out->told_at = (int64_t) field.value; break;
        case FIELD_REQUEST_ID:
            if (field.length == sizeof (out->request_id))
                memcpy (out->request_id, field.bytes, sizeof (out->request_id));
            break;
        default:
            if (field.number >= FIELD_PARTS && field.number < FIELD_PARTS_END) {
                out->parts[field.number - FIELD_PARTS] = field.bytes;
                out->lengths[field.number - FIELD_PARTS] = field.length;
            }
        }
    }
    return out->turn != 0;
}

buf_t *turn_pack (const turn_t *turn)
{
    bytes_t out = BYTES_INIT;
    bytes_append_uint (&out, FIELD_TURN, turn->turn);
    bytes_append_uint (&out, FIELD_ATTEMPT, turn->attempt);
    bytes_append_uint (&out, FIELD_NUMBER, turn->number);
    bytes_append_string (&out, FIELD_WORKER, turn->worker);
    bytes_append_string (&out, FIELD_AGENT, turn->agent);
    bytes_append_string (&out, FIELD_STATUS, turn->status);
    bytes_append_uint (&out, FIELD_STARTED_AT, (uint64_t) turn->started_at);
    bytes_append_uint (&out, FIELD_DURATION_MS, (uint64_t) turn->duration_ms);
    bytes_append_uint (&out, FIELD_TOLD_AT, (uint64_t) turn->told_at);
    bytes_append_blob (&out, FIELD_REQUEST_ID, turn->request_id, sizeof (turn->request_id));
    for (uint32_t i = 0; i < TURN_PARTS; i++)
        bytes_append_blob (&out, FIELD_PARTS + i, turn->parts[i], turn->lengths[i]);
    buf_t *body = buf_new (out.data, out.length);
    bytes_free (&out);
    return body;
}

enum { FILES = 3 }; /* of the parts */

bool turn_next_mark (const turn_t *turn, size_t *place, turn_mark_t *out)
{
    turn_file_t file;
    if (++*place == 1) {
        *out = (turn_mark_t){TURN_MARK_AGENT, turn->agent, strlen (turn->agent)};
        if (out->length > 0)
            return true;
        ++*place;
    }
    size_t offset = *place - 2;
    if (offset >= turn->lengths[FILES])
        return false;
    const uint8_t *at = turn->parts[FILES] + offset;
    if (!turn_file_read (&file, &at, turn->parts[FILES] + turn->lengths[FILES]))
        return false;
    *place = (size_t) (at - turn->parts[FILES]) + 1;
    *out = (turn_mark_t){TURN_MARK_FILE, file.path, file.path_bytes};
    return true;
}

bool turn_has_mark (const turn_t *turn, const label_t *wanted)
{
    size_t place = 0;
    turn_mark_t mark;
    while (turn_next_mark (turn, &place, &mark))
        if (strcmp (mark.key, wanted->key) == 0 && strlen (wanted->value) == mark.length &&
            memcmp (mark.value, wanted->value, mark.length) == 0)
            return true;
    return false;
}
