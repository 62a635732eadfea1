/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Artifacts as they are stored: what is known of each stands in its task's Extra. The bytes of a
 * small one are a row of kind ARTIFACT, those of a large one are a blob, and so are those of a
 * small one that an import has uploaded because a commit has no room for it. */
#ifndef TASKMQ_CORE_ARTIFACT_H
#define TASKMQ_CORE_ARTIFACT_H

#include "core/data/row.h"
#include "taskmq.pb-c.h"
#include "taskmq_types.h"

/* The one of this name, and its place from 1 on (place may be NULL); NULL: there is none. */
const Taskmq__Artifact *artifact_find (const Taskmq__Extra *fields, const char *name,
                                       uint32_t *place);
static inline bool artifact_is_blob (const Taskmq__Artifact *artifact)
{
    return artifact->bytes > TMQ_FRAME_BYTES_MAX || artifact->uploaded;
}
/* What a blob's is called; borrows the hash. */
Taskmq__Blob artifact_blob (const Taskmq__Artifact *artifact);
bool artifact_is_same (const Taskmq__Artifact *a, const Taskmq__Artifact *b); /* bytes and type */
/* All of them, packed into their Extra. */
size_t artifacts_packed_bytes (const Taskmq__Extra *fields);
size_t artifact_packed_bytes (const Taskmq__Artifact *artifact);

/* The row's key. */
void artifact_key (row_key_t *out, const char *ns, const uint8_t *id, uint32_t place);

#endif
