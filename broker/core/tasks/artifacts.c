/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

#include "core/tasks/artifacts.h"

#include "core/tasks/blobs.h"
#include "core/tasks/debts.h"
#include "core/tasks/entries.h"
#include "core/tasks/extras.h"
#include "core/tasks/rows.h"

static void give_up (tasks_t *self, const char *owner, const Taskmq__Artifact *artifact)
{
    const Taskmq__Blob blob = artifact_blob (artifact);
    if (artifact_is_blob (artifact))
        blob_give (self, owner, &blob);
}

static void put_bytes (tasks_t *self, const task_t *task, uint32_t place,
                       const Taskmq__Artifact *given, const uint8_t *bytes)
{
    row_key_t key;
    const Taskmq__Blob blob = artifact_blob (given);
    artifact_key (&key, task->queue->space->name, task->id.bytes, place);
    if (artifact_is_blob (given)) {
        blob_take (self, name_text (task->owner), &blob);
        rows_put (self, row_make_gone (ROW_KIND_ARTIFACT, key.bytes, key.length));
        return;
    }
    rows_put (self,
              row_make (ROW_KIND_ARTIFACT, key.bytes, key.length, bytes, (size_t) given->bytes));
}

void artifact_put (tasks_t *self, task_t *task, const Taskmq__Artifact *given, const uint8_t *bytes)
{
    uint32_t place = 0;
    space_t *space = task->queue->space;
    Taskmq__Extra *extra = extras_edit (task);
    uint64_t before = extra->artifact_bytes;
    if (artifact_find (extra, given->name, &place) == NULL) {
        extra_add_artifact (extra);
        place = (uint32_t) extra->n_artifacts;
    }
    Taskmq__Artifact *kept = extra->artifacts[place - 1];
    put_bytes (self, task, place, given, bytes); /* first: it may be the same blob */
    give_up (self, name_text (task->owner), kept);
    extra->artifact_bytes += given->bytes - kept->bytes;
    extra_set_artifact (kept, given);
    extras_changed (self, task);
    space->entries.artifact_bytes += extra->artifact_bytes - before;
    entries_changed (self, space);
}

void artifacts_remove (tasks_t *self, space_t *space, const record_t *record,
                       const Taskmq__Extra *fields)
{
    if (fields->n_artifacts == 0)
        return;
    for (size_t i = 0; i < fields->n_artifacts; i++)
        give_up (self, record->owner, fields->artifacts[i]);
    debt_owe (self, ROW_KIND_ARTIFACT, record, fields->n_artifacts);
    space->entries.artifact_bytes -= fields->artifact_bytes;
    entries_changed (self, space);
}
