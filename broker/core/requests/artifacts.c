/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* artifact, artifacts: what workers attach to their tasks, and whoever reads it. */
#include <sodium.h>
#include <stdlib.h>
#include <string.h>

#include "artifact_name.h"
#include "core/requests/answer.h"
#include "core/requests/get.h"
#include "core/requests/naming.h"
#include "core/requests/report.h"
#include "core/requests/room.h"
#include "core/tasks/artifacts.h"
#include "core/tasks/blobs.h"
#include "core/tasks/change.h"
#include "core/tasks/extras.h"
#include "core/tasks/flow.h"
#include "core/tasks/journal.h"

/* artifact. */

/* hash: room for one. */
static void take (Taskmq__Artifact *out, uint8_t *hash, const call_t *call, const task_t *task)
{
    const Taskmq__ArtifactPut *put = call->request->artifact;
    const tasks_t *tasks = call->requests->tasks;
    taskmq__artifact__init (out);
    out->name = put->name;
    out->type = put->type[0] == '\0' ? (char *) (uintptr_t) ARTIFACT_TYPE : put->type;
    out->attempt = task->attempt;
    out->attached_at = (uint64_t) clocks_wall_ms (&tasks->base->clocks, task->updated_at);
    if (put->blob != NULL) {
        out->hash = put->blob->hash;
        out->bytes = put->blob->bytes;
        return;
    }
    crypto_generichash (hash, TMQ_BLOB_HASH_BYTES, call->body, put->bytes, NULL, 0);
    out->hash = (ProtobufCBinaryData){TMQ_BLOB_HASH_BYTES, hash};
    out->bytes = put->bytes;
}

/* before: what has its name now, or NULL. */
static bool is_over_limit (call_t *call, const task_t *task, const Taskmq__Artifact *artifact,
                           const Taskmq__Artifact *before)
{
    const engine_config_t *config = &call->requests->base->config;
    const Taskmq__Extra *extra = extras_of (task);
    uint64_t gone = before == NULL ? 0 : before->bytes;
    uint64_t of_task = extra->artifact_bytes - gone + artifact->bytes;
    uint64_t of_space = call->link->space->entries.artifact_bytes - gone + artifact->bytes;
    size_t listed = artifacts_packed_bytes (extra) + artifact_packed_bytes (artifact);
    if (before != NULL)
        listed -= artifact_packed_bytes (before);
    if (before == NULL && extra->n_artifacts >= TMQ_ARTIFACTS_MAX)
        reply_limit (call, "artifacts of a task", TMQ_ARTIFACTS_MAX);
    else if (of_task > config->task_artifact_bytes_max)
        reply_limit (call, "bytes of the artifacts of a task", config->task_artifact_bytes_max);
    else if (of_space > config->space_artifact_bytes_max)
        reply_limit (call, "bytes of the artifacts of a namespace",
                     config->space_artifact_bytes_max);
    else if (listed > TMQ_ARTIFACT_LIST_BYTES_MAX)
        reply_limit (call, "bytes of the names and types of a task's artifacts",
                     TMQ_ARTIFACT_LIST_BYTES_MAX);
    else
        return false;
    return true;
}

/* Only who has the bytes may name them. True: it was answered. */
static bool blob_is_refused (call_t *call, const task_t *task, const Taskmq__Blob *blob)
{
    naming_refusal_t why;
    if (!naming_refuses (call, name_text (task->owner), blob, "blob", &why))
        return false;
    naming_answer (call, &why);
    return true;
}

/* The last to be asked: what else is refused does not count. */
static bool must_wait (call_t *call, task_t *task)
{
    char text[LIMIT_TEXT_SIZE];
    flow_t *flow = flow_at (&task->detail->flow, task, task->attempt);
    int64_t wait_ms = bucket_take (&flow->artifacts, TMQ_ARTIFACT_RATE_MAX, TMQ_ARTIFACTS_MAX,
                                   call->requests->base->clocks.mono_ms);
    if (wait_ms == 0)
        return false;
    limit_text (text, "artifacts a second of a task", TMQ_ARTIFACT_RATE_MAX);
    reply_code_at_once (call, TMQ_LIMIT, text, (uint32_t) wait_ms);
    return true;
}

void on_artifact (call_t *call)
{
    requests_t *self = call->requests;
    const Taskmq__ArtifactPut *put = call->request->artifact;
    uint8_t hash[TMQ_BLOB_HASH_BYTES];
    Taskmq__Artifact artifact;
    task_t *task = report_begin (call, put->lease);
    if (task == NULL)
        return;
    take (&artifact, hash, call, task);
    report_started (self, task);
    const Taskmq__Artifact *before = artifact_find (extras_of (task), artifact.name, NULL);
    if (before != NULL && artifact_is_same (before, &artifact)) { /* a repeat, too */
        reply_code (call, TMQ_OK, NULL);
        return;
    }
    if (room_refused_at_once (call) || is_over_limit (call, task, &artifact, before) ||
        blob_is_refused (call, task, put->blob) || must_wait (call, task))
        return;
    self->tasks->open.inputs++;
    artifact_put (self->tasks, task, &artifact, call->body);
    cause_t cause = {.actor = name_text (call->link->identity),
                     .message = artifact.type,
                     .name = artifact.name,
                     .number = artifact.bytes};
    change_apply (self->tasks, task, INPUT_ARTIFACT, &cause);
    reply_code (call, TMQ_OK, NULL);
}

/* artifacts. */

static int by_name (const void *a, const void *b)
{
    const Taskmq__Artifact *const *left = a;
    const Taskmq__Artifact *const *right = b;
    return strcmp ((*left)->name, (*right)->name);
}

static void answer_list (call_t *call, const Taskmq__Extra *extra)
{
    enum { PAGE_ARTIFACTS = 1 };
    const Taskmq__Artifact *sorted[TMQ_ARTIFACTS_MAX];
    size_t count = extra == NULL ? 0 : extra->n_artifacts;
    bytes_mark_t mark;
    bytes_t *out = reply_open (call->requests, call->request->id, TMQ_OK, NULL, 0, false, &mark);
    bytes_mark_t page = bytes_open (out, TASKMQ__REPLY__BODY_ARTIFACT_PAGE);
    for (size_t i = 0; i < count; i++)
        sorted[i] = extra->artifacts[i];
    if (count > 0)
        qsort (sorted, count, sizeof (sorted[0]), by_name);
    for (size_t i = 0; i < count; i++) {
        Taskmq__Artifact shown = *sorted[i];
        shown.uploaded = false;
        if (!call->bodies) /* a hash tells whether a body is one that he knows */
            shown.hash = (ProtobufCBinaryData){0, NULL};
        bytes_append_message (out, PAGE_ARTIFACTS, &shown.base);
    }
    bytes_close (out, page);
    reply_close (call->requests, call->link, mark, journal_batch (call->requests->tasks), NULL);
}

void on_artifacts (call_t *call)
{
    found_t found;
    if (!get_find (call, &call->request->artifacts->task_id, RIGHT_READ | RIGHT_OBSERVE, &found))
        return;
    extra_t *stored =
        found.task == NULL && found.record->extra != NULL ? extra_new (found.record->extra) : NULL;
    answer_list (call, found.task != NULL ? extras_of (found.task)
                       : stored != NULL   ? stored->fields
                                          : NULL);
    extra_free (stored);
}
