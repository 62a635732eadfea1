/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

#include "verbs/import_bodies.h"

#include <inttypes.h>
#include <sodium.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "verbs/import_values.h"

/* Payload and result. */

static void *decode_base64 (import_line_t *self, piece_t piece, size_t *bytes)
{
    piece_t inner;
    size_t length;
    if (!piece_member (&inner, piece, "base64", 6))
        return NULL;
    const char *text = line_decode (self, inner, &length);
    if (!text)
        return NULL;
    uint8_t *out = line_room (self, length, 1);
    return sodium_base642bin (out, length + 1, text, length, NULL, bytes, NULL,
                              sodium_base64_VARIANT_ORIGINAL) == 0
               ? out
               : NULL;
}

/* Its bytes, which are `wanted`, so that it is known in which of its forms it stands there. */
static bool take_body (import_line_t *self, const void **out, size_t *bytes, const char *key,
                       const char *text_key, uint64_t wanted)
{
    piece_t piece, exact;
    *bytes = 0;
    if (!line_find (&piece, self->object, key)) {
        *out = "";
        return wanted == 0 ||
               line_wrong (self, "%s is missing, it had %" PRIu64 " bytes", key, wanted);
    }
    if (line_find (&exact, self->object, text_key)) {
        *out = line_decode (self, exact, bytes);
        if (*out && *bytes == wanted)
            return true;
    }
    if (*piece.at == '"') {
        *out = line_decode (self, piece, bytes);
        if (*out && *bytes == wanted)
            return true;
    }
    *out = piece.at;
    *bytes = piece.length;
    if (*bytes == wanted)
        return true;
    *out = decode_base64 (self, piece, bytes);
    return (*out && *bytes == wanted) ||
           line_wrong (self, "%s has not the %" PRIu64 " bytes that %s_bytes says", key, wanted,
                       key);
}

/* What was replaced in a body has changed its length. */
static void take_redacted_body (import_line_t *self, const void **out, size_t *bytes,
                                const char *key, const char *text_key, const char *type)
{
    piece_t piece, exact;
    *out = "";
    *bytes = 0;
    if (line_find (&exact, self->object, text_key) && (*out = line_decode (self, exact, bytes)))
        return;
    if (!line_find (&piece, self->object, key))
        return;
    const bool is_json = type && strncmp (type, "application/json", 16) == 0;
    *out = NULL;
    if (!is_json && *piece.at == '"')
        *out = line_decode (self, piece, bytes);
    else if (*piece.at == '{')
        *out = decode_base64 (self, piece, bytes);
    if (*out)
        return;
    *out = piece.at;
    *bytes = piece.length;
}

/* Where a payload or a result stands in a line, and where it goes. */
typedef struct import_part {
    const char *key;
    const char *text_key;
    const char *hash_key;
    const void **out;
    size_t *bytes;
    tmq_blob_t *blob;
    const char **type;
} import_part_t;

/* What is larger than a frame stands in no line: its hash does. */
static bool take_blob (import_line_t *self, tmq_blob_t *out, const char *what, piece_t object,
                       const char *key, uint64_t bytes)
{
    out->bytes = bytes;
    if (!line_hash (self, out->hash, object, key))
        return false;
    self->bodies[self->bodies_count++] = (import_body_t){what, *out};
    return true;
}

static bool take_one_body (import_line_t *self, const import_part_t *part, uint64_t wanted)
{
    *part->bytes = 0;
    *part->out = "";
    if (wanted > TMQ_FRAME_BYTES_MAX)
        return take_blob (self, part->blob, part->key, self->object, part->hash_key, wanted);
    if (!self->redacted)
        return take_body (self, part->out, part->bytes, part->key, part->text_key, wanted);
    take_redacted_body (self, part->out, part->bytes, part->key, part->text_key, *part->type);
    return true;
}

bool line_take_bodies (import_line_t *self)
{
    tmq_import_t *task = &self->task;
    uint64_t payload = 0;
    uint64_t result = 0;
    piece_t piece;
    self->bodies = line_room (self, IMPORT_BODIES_MAX, sizeof *self->bodies);
    if (!line_number (self, &payload, self->object, "payload_bytes", TMQ_BLOB_BYTES_MAX) ||
        !line_number (self, &result, self->object, "result_bytes", TMQ_BLOB_BYTES_MAX) ||
        !line_text (self, &task->result_type, self->object, "result_type") ||
        !line_bool (self, &self->redacted, self->object, "redacted"))
        return false;
    const bool ended = line_find (&piece, self->object, "result_bytes");
    const import_part_t of_payload = {"payload",          "payload_text",       "payload_hash",
                                      &task->payload,     &task->payload_bytes, &task->payload_blob,
                                      &task->content_type};
    const import_part_t of_result = {"result",          "result_text",       "result_hash",
                                     &task->result,     &task->result_bytes, &task->result_blob,
                                     &task->result_type};
    if (!take_one_body (self, &of_payload, payload) ||
        (ended && !take_one_body (self, &of_result, result)))
        return false;
    if (task->status == TMQ_STATUS_COMPLETED)
        task->outcome = TMQ_OUTCOME_RESULT;
    else if (task->status == TMQ_STATUS_FAILED)
        task->outcome = ended ? TMQ_OUTCOME_TOOL_ERROR : TMQ_OUTCOME_PROTOCOL_ERROR;
    return true;
}

/* Artifacts and late successes: what fits stands beside them, as text or as base64. */

/* *out NULL: it does not. False: what stands there is neither. */
static bool take_inline (import_line_t *self, const void **out, size_t *bytes, piece_t object)
{
    piece_t text;
    *out = NULL;
    *bytes = 0;
    if (line_find (&text, object, "text")) {
        *out = line_decode (self, text, bytes);
        return *out || line_wrong (self, "text must be a string");
    }
    if (!line_find (&text, object, "base64"))
        return true;
    *out = decode_base64 (self, object, bytes);
    return *out || line_wrong (self, "base64 must be a string of that");
}

static bool has_hash (const tmq_imported_artifact_t *artifact, const uint8_t *hash)
{
    uint8_t own[TMQ_BLOB_HASH_BYTES];
    crypto_generichash (own, sizeof own, artifact->bytes, artifact->length, NULL, 0);
    return memcmp (own, hash, sizeof own) == 0;
}

/* What was replaced in it has changed its length and its hash. */
static bool take_artifact_body (import_line_t *self, tmq_imported_artifact_t *out, piece_t piece,
                                uint64_t bytes)
{
    enum { WHAT_SIZE = sizeof "artifact " + TMQ_ARTIFACT_NAME_BYTES_MAX };
    uint8_t hash[TMQ_BLOB_HASH_BYTES];
    if (!take_inline (self, &out->bytes, &out->length, piece))
        return false;
    if (out->bytes && self->redacted)
        return true;
    if (!line_hash (self, hash, piece, "hash"))
        return false;
    if (out->bytes || bytes == 0)
        return (out->length == bytes && has_hash (out, hash)) ||
               line_wrong (self, "%s has other bytes than its hash says", out->name);
    if (bytes < TMQ_BLOB_BYTES_MIN)
        return line_wrong (self, "%s: text or base64 is missing, it had %" PRIu64 " bytes",
                           out->name, bytes);
    char *what = line_room (self, WHAT_SIZE, 1);
    snprintf (what, WHAT_SIZE, "artifact %s", out->name);
    return take_blob (self, &out->blob, what, piece, "hash", bytes);
}

static bool take_artifact (import_line_t *self, tmq_imported_artifact_t *out, piece_t piece)
{
    uint64_t bytes = 0;
    if (!line_text (self, &out->name, piece, "name") ||
        !line_text (self, &out->type, piece, "type") ||
        !line_number (self, &bytes, piece, "bytes", TMQ_BLOB_BYTES_MAX) ||
        !line_number_32 (self, &out->attempt, piece, "attempt") ||
        !line_time (self, &out->attached_at, piece, "attached_at"))
        return false;
    const char *flaw = tmq_artifact_name_flaw (out->name ? out->name : "");
    if (flaw)
        return line_wrong (self, "name %s", flaw);
    return take_artifact_body (self, out, piece, bytes);
}

bool line_take_artifacts (import_line_t *self)
{
    piece_t artifacts, one;
    const char *at = NULL;
    size_t count;
    if (!line_array (self, &artifacts, &count, self->object, "artifacts"))
        return false;
    if (count > TMQ_ARTIFACTS_MAX)
        return line_wrong (self, "artifacts: %zu, a task has at most %d", count, TMQ_ARTIFACTS_MAX);
    tmq_imported_artifact_t *list = line_room (self, count, sizeof *list);
    while (self->task.artifacts_count < count && piece_next (&one, artifacts, &at))
        if (!take_artifact (self, &list[self->task.artifacts_count++], one))
            return line_wrong_in (self, "artifacts", self->task.artifacts_count);
    self->task.artifacts = list;
    return true;
}

/* Where neither its bytes nor a hash stand, an earlier version wrote the line. */
static bool take_late (import_line_t *self, tmq_imported_late_t *out, bool *comes, piece_t kept)
{
    enum { WHAT_SIZE = 48 };
    uint64_t bytes = 0;
    piece_t hash;
    const void *result;
    if (!line_number (self, &bytes, kept, "bytes", TMQ_BLOB_BYTES_MAX) ||
        !line_text (self, &out->type, kept, "content_type") ||
        !line_time (self, &out->at, kept, "at") || !line_time (self, &out->until, kept, "until") ||
        !take_inline (self, &result, &out->result_bytes, kept))
        return false;
    const bool named = line_find (&hash, kept, "hash");
    /* The broker keeps none longer than it keeps its own. */
    const uint64_t now = wall_ms ();
    *comes = (result || named || bytes == 0) && out->until > now && out->at + TMQ_KEPT_MS > now;
    out->result = result;
    if (result)
        return self->redacted || out->result_bytes == bytes ||
               line_wrong (self, "it has not the %" PRIu64 " bytes that it says", bytes);
    if (bytes == 0 || !*comes)
        return true;
    if (bytes <= TMQ_FRAME_BYTES_MAX)
        return line_wrong (self, "text or base64 is missing, it had %" PRIu64 " bytes", bytes);
    char *what = line_room (self, WHAT_SIZE, 1);
    snprintf (what, WHAT_SIZE, "late success of attempt %" PRIu32, out->attempt);
    return take_blob (self, &out->result_blob, what, kept, "hash", bytes);
}

bool line_take_late (import_line_t *self, piece_t piece, uint32_t attempt)
{
    piece_t kept;
    bool comes = false;
    if (!line_object (self, &kept, piece, "kept") || !kept.at)
        return !kept.at;
    tmq_import_t *task = &self->task;
    if (!self->late)
        task->late = self->late = line_room (self, TMQ_KEPT_TASK_MAX, sizeof *self->late);
    if (task->late_count == TMQ_KEPT_TASK_MAX)
        return line_wrong (self, "kept: a task has at most %d late successes", TMQ_KEPT_TASK_MAX);
    tmq_imported_late_t *out = &self->late[task->late_count];
    *out = (tmq_imported_late_t){.attempt = attempt};
    if (!take_late (self, out, &comes, kept))
        return line_wrong_in (self, "kept", 0);
    task->late_count += comes;
    self->kept += !comes;
    return true;
}
