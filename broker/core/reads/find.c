/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Where a task is. */
#include <string.h>

#include "core/reads/find.h"
#include "core/reads/loaded.h"
#include "core/tasks/change.h"
#include "core/tasks/index.h"
#include "core/tasks/rows.h"

static found_t found_record (const reads_t *self, const record_t *record)
{
    if (record_is_over (record, clocks_expiry_ms (&self->base->clocks)))
        return (found_t){.gone = TMQ_EXPIRED, .gone_at = record->expires_at};
    return (found_t){.record = record};
}

found_t find_id (const reads_t *self, const space_t *space, const uint8_t *id)
{
    task_t *task = task_find (self->tasks, space, id);
    if (task != NULL && task_is_over (self->tasks, task))
        return (found_t){.gone = TMQ_EXPIRED, .gone_at = task->expires_at};
    if (task != NULL)
        return (found_t){.task = task};
    const removal_note_t *removal = removal_note_find (self->tasks, space, id);
    if (removal != NULL)
        return (found_t){.gone = removal->code, .gone_at = removal->at, .removed = true};
    const lookup_t *key = loaded_id (self, space, id, LOOKUP_ID, 0);
    if (key == NULL)
        return (found_t){.gone = TMQ_NOT_FOUND};
    if (key->damaged)
        return (found_t){.gone = TMQ_INTERNAL};
    if (key->record != NULL)
        return found_record (self, key->record);
    if (key->tombstone == TMQ_OK)
        return (found_t){.gone = TMQ_NOT_FOUND};
    return (found_t){.gone = key->tombstone, .gone_at = key->tombstone_at, .removed = true};
}

buf_t *find_payload (const reads_t *self, const space_t *space, const uint8_t *id)
{
    const lookup_t *key = loaded_id (self, space, id, LOOKUP_ID, 0);
    return key == NULL || key->record == NULL ? NULL : key->record->payload;
}

found_t find_dedup (const reads_t *self, const space_t *space, const char *owner, const char *key)
{
    task_t *task = task_find_by_key (self->tasks, space, owner, key);
    if (task != NULL)
        return (found_t){.task = task};
    const lookup_t *loaded = loaded_dedup (self, space, owner, key);
    if (loaded != NULL && loaded->damaged)
        return (found_t){.gone = TMQ_INTERNAL};
    if (loaded == NULL || loaded->record == NULL ||
        removal_note_find (self->tasks, space, loaded->record->id.bytes) != NULL)
        return (found_t){.gone = TMQ_NOT_FOUND};
    return (found_t){.record = loaded->record};
}

bool find_attempt (const reads_t *self, const space_t *space, const uint8_t *id, int64_t number,
                   uint32_t attempt, attempt_note_t *out)
{
    const attempt_note_t *note = attempt_note_find (self->tasks, number, attempt);
    if (note != NULL) {
        *out = *note;
        return true;
    }
    const lookup_t *key = loaded_id (self, space, id, LOOKUP_ATTEMPT, attempt);
    if (key == NULL || key->attempt_row == NULL)
        return false;
    *out = (attempt_note_t){.number = number, .attempt = attempt, .how = key->attempt_row->how};
    memcpy (out->secret, key->attempt_row->secret, sizeof (out->secret));
    memcpy (out->request_id, key->attempt_row->request_id, sizeof (out->request_id));
    return true;
}

bool attempt_is_damaged (const reads_t *self, const space_t *space, const uint8_t *id,
                         uint32_t attempt)
{
    const lookup_t *key = loaded_id (self, space, id, LOOKUP_ATTEMPT, attempt);
    return key != NULL && key->damaged;
}

tmq_status_t found_status (const found_t *found)
{
    if (found->task != NULL)
        return found->task->status;
    return found->record == NULL ? TMQ_STATUS_NONE : found->record->status;
}

const buf_t *find_row (const reads_t *self, row_kind_t kind, const void *key, size_t key_bytes,
                       bool *found)
{
    const row_t *row = rows_find (self->tasks, kind, key, key_bytes);
    if (row != NULL) {
        *found = !row->gone;
        return row->body;
    }
    const lookup_t *loaded = loaded_row (self, kind, key, key_bytes);
    *found = loaded != NULL && loaded->row_found;
    return *found ? loaded->row_body : NULL;
}
