/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* blob_begin, blob_chunk, blob_read: bodies that are larger than a frame. The files are the
 * server's, off its loop; the engine says who may upload and read, and who may name what. */
#include <string.h>

#include "artifact_name.h"
#include "core/reads/find.h"
#include "core/requests/answer.h"
#include "core/requests/artifacts.h"
#include "core/requests/deeds.h"
#include "core/requests/errands.h"
#include "core/requests/get.h"
#include "core/requests/room.h"
#include "core/tasks/blobs.h"
#include "core/tasks/extras.h"

enum { PART_RESULT = 2 }; /* of BlobRead.part; 1 is the payload */

static bool take_blob (errand_t *errand, const Taskmq__Blob *blob)
{
    if (errand == NULL)
        return false;
    memcpy (errand->blob, blob->hash.data, sizeof (errand->blob));
    errand->blob_bytes = blob->bytes;
    return true;
}

bool blob_read_file (call_t *call, const Taskmq__Blob *blob)
{
    return take_blob (errand_about_task (call, 0), blob);
}

void on_blob_begin (call_t *call)
{
    if (!room_refused_at_once (call))
        take_blob (errand_begin (call), call->request->blob_begin->blob);
}

void on_blob_chunk (call_t *call)
{
    const Taskmq__BlobChunk *chunk = call->request->blob_chunk;
    if (room_refused_at_once (call))
        return;
    errand_t *errand = errand_begin (call);
    if (take_blob (errand, chunk->blob))
        errand->bytes = buf_new (call->body, chunk->chunk_bytes);
}

void on_blob_read (call_t *call)
{
    found_t found;
    const Taskmq__BlobRead *read = call->request->blob_read;
    if (!get_find (call, &read->task_id, RIGHT_BODY, &found))
        return;
    extra_t *stored =
        found.task == NULL && found.record->extra != NULL ? extra_new (found.record->extra) : NULL;
    const Taskmq__Extra *extra = found.task != NULL ? extras_of (found.task)
                                 : stored != NULL   ? stored->fields
                                                    : NULL;
    const Taskmq__Blob *blob = extra == NULL               ? NULL
                               : read->part == PART_RESULT ? extra->result_blob
                                                           : extra->payload_blob;
    if (read->part == BLOB_PART_ARTIFACT)
        artifact_read (call, &found, extra);
    else if (blob == NULL)
        reply_code (call, TMQ_NO_BLOB,
                    read->part == PART_RESULT ? "the task has no result that is a blob"
                                              : "the task's payload is no blob");
    else if (blob_read_file (call, blob) && read->offset == 0)
        deeds_task (call, DEED_READ, &found);
    extra_free (stored);
}
