/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

#include "core/data/artifact.h"

#include <string.h>

const Taskmq__Artifact *artifact_find (const Taskmq__Extra *fields, const char *name,
                                       uint32_t *place)
{
    for (size_t i = 0; i < fields->n_artifacts; i++)
        if (strcmp (fields->artifacts[i]->name, name) == 0) {
            if (place != NULL)
                *place = (uint32_t) i + 1;
            return fields->artifacts[i];
        }
    return NULL;
}

Taskmq__Blob artifact_blob (const Taskmq__Artifact *artifact)
{
    Taskmq__Blob blob = TASKMQ__BLOB__INIT;
    blob.hash = artifact->hash;
    blob.bytes = artifact->bytes;
    return blob;
}

bool artifact_is_same (const Taskmq__Artifact *a, const Taskmq__Artifact *b)
{
    return a->bytes == b->bytes && a->hash.len == b->hash.len &&
           memcmp (a->hash.data, b->hash.data, a->hash.len) == 0 && strcmp (a->type, b->type) == 0;
}

size_t artifact_packed_bytes (const Taskmq__Artifact *artifact)
{
    enum { HEAD = 4 }; /* tag and length */
    return HEAD + taskmq__artifact__get_packed_size (artifact);
}

size_t artifacts_packed_bytes (const Taskmq__Extra *fields)
{
    size_t bytes = 0;
    for (size_t i = 0; i < fields->n_artifacts; i++)
        bytes += artifact_packed_bytes (fields->artifacts[i]);
    return bytes;
}

void artifact_key (row_key_t *out, const char *ns, const uint8_t *id, uint32_t place)
{
    out->length = 0;
    row_key_text (out, ns);
    row_key_bytes (out, id, sizeof (tmq_id_t));
    row_key_number (out, place);
}
