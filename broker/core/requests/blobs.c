/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* blob_begin, blob_chunk, blob_drop, blob_read: bodies that are larger than a frame. The files are
 * the server's, off its loop; the engine says who may upload and read, and who may name what. */
#include "core/requests/blobs.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "artifact_name.h"
#include "core/data/artifact.h"
#include "core/reads/find.h"
#include "core/requests/answer.h"
#include "core/requests/deeds.h"
#include "core/requests/errands.h"
#include "core/requests/get.h"
#include "core/requests/pages.h"
#include "core/requests/quota.h"
#include "core/requests/room.h"
#include "core/tasks/blobs.h"
#include "core/tasks/extras.h"
#include "core/tasks/quarantine.h"

enum { PART_RESULT = 2 }; /* of BlobRead.part; 1 is the payload */

static bool take_blob (errand_t *errand, const Taskmq__Blob *blob)
{
    if (errand == NULL)
        return false;
    memcpy (errand->blob, blob->hash.data, sizeof (errand->blob));
    errand->blob_bytes = blob->bytes;
    return true;
}

static void note_reading (call_t *call, const found_t *found)
{
    if (call->request->blob_read->offset == 0)
        deeds_task (call, DEED_READ, found);
}

static void read_file (call_t *call, const found_t *found, const Taskmq__Blob *blob)
{
    if (take_blob (errand_about_task (call, 0), blob))
        note_reading (call, found);
}

static void read_row (call_t *call, const found_t *found, row_kind_t kind, const row_key_t *key)
{
    const Taskmq__BlobRead *read = call->request->blob_read;
    const row_key_t first = ROW_KEY_INIT;
    read_job_t *job = page_rows (call, kind, key, &first, 1);
    if (job == NULL)
        return;
    if (found->task != NULL && found->task->changed > job->need)
        job->need = found->task->changed;
    job->piece_offset = read->offset;
    job->piece_limit = read->limit == 0 ? TMQ_PART_BYTES_MAX : read->limit;
    note_reading (call, found);
}

void blob_row_answer (requests_t *self, read_job_t *job)
{
    const read_t *read = &job->read;
    bytes_mark_t mark;
    if (read->rows_count == 0) {
        reply_to (self, job->link, job->request, TMQ_NO_BLOB,
                  read->row_kind == ROW_KIND_ARTIFACT ? "the artifact could not be read"
                                                      : "the late success could not be read",
                  0);
        return;
    }
    const buf_t *body = read->rows[0].body;
    size_t length = buf_length (body);
    size_t offset = job->piece_offset < length ? (size_t) job->piece_offset : length;
    size_t count = length - offset < job->piece_limit ? length - offset : job->piece_limit;
    Taskmq__Part part = TASKMQ__PART__INIT;
    part.offset = job->piece_offset;
    part.body = (uint32_t) count;
    part.total = length;
    part.more = offset + count < length;
    bytes_t *out = reply_open (self, job->request, TMQ_OK, NULL, 0, false, &mark);
    bytes_append_message (out, TASKMQ__REPLY__BODY_BLOB_PART, &part.base);
    buf_t *bytes = count == 0 ? NULL : buf_new (buf_bytes (body) + offset, count);
    reply_close (self, job->link, mark, 0, bytes);
    buf_drop (bytes);
}

static void read_artifact (call_t *call, const found_t *found, const Taskmq__Extra *extra)
{
    const Taskmq__BlobRead *read = call->request->blob_read;
    uint32_t place = 0;
    const Taskmq__Artifact *artifact =
        extra == NULL ? NULL : artifact_find (extra, read->name, &place);
    if (artifact == NULL) {
        reply_code (call, TMQ_NO_BLOB, "the task has no artifact of this name");
        return;
    }
    if (read->hash.len > 0 &&
        (artifact->hash.len != read->hash.len ||
         memcmp (artifact->hash.data, read->hash.data, read->hash.len) != 0)) {
        reply_code (call, TMQ_CONFLICT, "another body has this name now");
        return;
    }
    if (artifact_is_blob (artifact)) {
        const Taskmq__Blob blob = artifact_blob (artifact);
        read_file (call, found, &blob);
        return;
    }
    row_key_t key;
    artifact_key (&key, call->link->space->name, read->task_id.data, place);
    read_row (call, found, ROW_KIND_ARTIFACT, &key);
}

static void read_late (call_t *call, const found_t *found)
{
    const Taskmq__BlobRead *read = call->request->blob_read;
    const space_t *space = call->link->space;
    const kept_t *kept =
        kept_find (call->requests->tasks, space, read->task_id.data, read->attempt);
    row_key_t key;
    char text[96];
    if (kept == NULL) {
        snprintf (text, sizeof (text), "no late success of attempt %" PRIu32 " is kept",
                  read->attempt);
        reply_code (call, TMQ_NO_BLOB, text);
    } else if (kept->is_blob) {
        const Taskmq__Blob blob = kept_blob (kept);
        read_file (call, found, &blob);
    } else {
        kept_key (&key, space->name, read->task_id.data, read->attempt);
        read_row (call, found, ROW_KIND_QUARANTINE, &key);
    }
}

/* Of who has a quota. What he uploads counts to him as long as he has a claim to it, so none of
 * these gives way to another one. */
static bool claims_are_full (call_t *call, const Taskmq__Blob *blob)
{
    char text[LIMIT_TEXT_SIZE];
    const link_t *link = call->link;
    const char *identity = name_text (link->identity);
    tasks_t *tasks = call->requests->tasks;
    if (!blob_claims_are_full (tasks, identity) ||
        blob_is_claimed (tasks, link->space->name, identity, blob))
        return false;
    limit_text (text, "blobs of yours that no task names yet", BLOB_CLAIMS_OF_ONE_MAX);
    reply_code_at_once (call, TMQ_LIMIT, text, LIMIT_RETRY_MS);
    return true;
}

void on_blob_begin (call_t *call)
{
    uint64_t has;
    const Taskmq__Blob *blob = call->request->blob_begin->blob;
    if (room_refused_at_once (call))
        return;
    uint64_t most = quota_blobs (call->requests, call->link, blob->hash.data, &has);
    if (most < UINT64_MAX && claims_are_full (call, blob))
        return;
    errand_t *errand = errand_begin (call);
    if (!take_blob (errand, blob))
        return;
    errand->blobs_had = has;
    errand->blobs_most = most;
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

/* It makes room, so a broker that has none takes it, too. */
void on_blob_drop (call_t *call)
{
    take_blob (errand_begin (call), call->request->blob_drop->blob);
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
        read_artifact (call, &found, extra);
    else if (read->part == BLOB_PART_LATE)
        read_late (call, &found);
    else if (blob == NULL)
        reply_code (call, TMQ_NO_BLOB,
                    read->part == PART_RESULT ? "the task has no result that is a blob"
                                              : "the task's payload is no blob");
    else
        read_file (call, &found, blob);
    extra_free (stored);
}
