/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

#include "screen/bodies.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/patience.h"
#include "ids.h"

/* What is read piece by piece. */
typedef struct source {
    const tmq_id_t *id;
    const tmq_artifact_info_t *artifact; /* NULL: … */
    uint32_t attempt;                    /* … what is kept of this one */
    uint64_t bytes;
} source_t;

static int read_piece (tmq_part_t **out, const app_t *app, const source_t *source, uint64_t offset,
                       tmq_error_t *error)
{
    patience_t patience = {0};
    int code;
    do
        code = source->artifact ? tmq_artifact_read (out, app->client, source->id, source->artifact,
                                                     offset, 0, app->timeout_ms, error)
                                : tmq_kept_read (out, app->client, source->id, source->attempt,
                                                 offset, 0, app->timeout_ms, error);
    while (patience_waits (&patience, error, app->timeout_ms));
    return code;
}

/* A piece that is empty, or more than there should be, ends it. */
static int read_all (shown_body_t *out, const app_t *app, const source_t *source,
                     tmq_error_t *error)
{
    int code = TMQ_OK;
    while (code == TMQ_OK && out->bytes.length < source->bytes) {
        tmq_part_t *part = NULL;
        code = read_piece (&part, app, source, out->bytes.length, error);
        if (code == TMQ_OK &&
            (part->length == 0 || part->length > source->bytes - out->bytes.length))
            code = error->code = TMQ_NO_BLOB;
        if (code == TMQ_OK)
            bytes_append (&out->bytes, part->bytes, part->length);
        tmq_part_free (part);
    }
    if (out->bytes.failed)
        must_grow (NULL, SIZE_MAX, 2); /* ends the program */
    out->there = code == TMQ_OK;
    return code;
}

int shown_body_artifact (shown_body_t *out, const app_t *app, const tmq_id_t *id,
                         const tmq_artifact_info_t *artifact, tmq_error_t *error)
{
    const source_t source = {.id = id, .artifact = artifact, .bytes = artifact->bytes};
    return read_all (out, app, &source, error);
}

int shown_body_kept (shown_body_t *out, const app_t *app, const tmq_id_t *id,
                     const tmq_attempt_info_t *attempt, tmq_error_t *error)
{
    const source_t source = {.id = id, .attempt = attempt->attempt, .bytes = attempt->kept_bytes};
    return read_all (out, app, &source, error);
}

void shown_body_write (json_writer_t *writer, const shown_body_t *body)
{
    if (!body || !body->there)
        return;
    const char *bytes = body->bytes.length > 0 ? (const char *) body->bytes.data : "";
    if (utf8_is_valid (bytes, body->bytes.length) && !memchr (bytes, '\0', body->bytes.length)) {
        json_write_key (writer, "text");
        json_write_string (writer, bytes, body->bytes.length);
    } else {
        json_write_key (writer, "base64");
        json_write_base64 (writer, bytes, body->bytes.length);
    }
}

void shown_bodies_free (shown_body_t *bodies, size_t count)
{
    for (size_t i = 0; i < count; i++)
        bytes_free (&bodies[i].bytes);
    free (bodies);
}
