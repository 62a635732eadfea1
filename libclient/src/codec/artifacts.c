/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

#include "codec/artifacts.h"

#include <stdlib.h>
#include <string.h>

#include "artifact_name.h"
#include "base/check.h"
#include "base/errors.h"
#include "base/sized.h"
#include "codec/encode.h"
#include "codec/tail.h"

/* Field numbers of ArtifactPut in taskmq.proto. */
enum { PUT_NAME = 2, PUT_TYPE = 3, PUT_BYTES = 4, PUT_BLOB = 5 };

int core_take_artifact (tmq_artifact_t *out, const tmq_artifact_t *given, tmq_error_t *error)
{
    if (given == NULL || !core_sized_take (out, sizeof *out, given, sizeof out->size))
        return core_error (error, TMQ_INVALID,
                           "the artifact was not initialised by tmq_artifact_init");
    const char *flaw = artifact_name_flaw (out->name);
    if (flaw != NULL)
        return core_error (error, TMQ_INVALID, "the name of an artifact %s", flaw);
    if (out->bytes == NULL && out->length > 0)
        return core_error (error, TMQ_INVALID, "the bytes are NULL");
    return core_check_text (out->type, "type", TMQ_CONTENT_TYPE_BYTES_MAX, error);
}

void core_encode_artifact (bytes_t *fields, bytes_t *body, const tmq_artifact_t *in)
{
    bytes_append_string (fields, PUT_NAME, in->name);
    bytes_append_string (fields, PUT_TYPE, in->type == NULL ? "" : in->type);
    if (in->blob.bytes > 0) {
        core_encode_blob (fields, PUT_BLOB, &in->blob);
        return;
    }
    bytes_append_uint (fields, PUT_BYTES, in->length);
    bytes_append (body, in->bytes, in->length);
}

static void fill (tmq_artifact_info_t *out, tail_t *tail, const Taskmq__Artifact *in)
{
    *out = (tmq_artifact_info_t){.name = tail_text (tail, in->name),
                                 .type = tail_text (tail, in->type),
                                 .bytes = in->bytes,
                                 .has_hash = in->hash.len == TMQ_BLOB_HASH_BYTES,
                                 .attempt = in->attempt,
                                 .attached_at = in->attached_at};
    if (out->has_hash)
        memcpy (out->hash, in->hash.data, sizeof out->hash);
}

tmq_artifact_list_t *core_artifact_list_record (const Taskmq__ArtifactPage *page)
{
    tail_t tail = {NULL, 0};
    tmq_artifact_info_t measured;
    for (size_t i = 0; i < page->n_artifacts; i++) {
        /* It becomes a file's name: whoever the broker is, it leads nowhere else. */
        if (artifact_name_flaw (page->artifacts[i]->name) != NULL)
            return NULL;
        fill (&measured, &tail, page->artifacts[i]);
    }
    const size_t list = page->n_artifacts * sizeof (tmq_artifact_info_t);
    tmq_artifact_list_t *out = calloc (1, sizeof *out + list + tail.used);
    if (out == NULL)
        return NULL;
    tmq_artifact_info_t *artifacts = (tmq_artifact_info_t *) (void *) (out + 1);
    tail = (tail_t){(uint8_t *) (artifacts + page->n_artifacts), 0};
    for (size_t i = 0; i < page->n_artifacts; i++)
        fill (&artifacts[i], &tail, page->artifacts[i]);
    out->artifacts = artifacts;
    out->count = page->n_artifacts;
    return out;
}
