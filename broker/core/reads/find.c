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
    found_t found = {.owner = record->owner, .queue = record->queue};
    if (record_is_over (record, clocks_expiry_ms (&self->base->clocks))) {
        found.gone = TMQ_EXPIRED;
        found.gone_at = record->expires_at;
    } else {
        found.record = record;
    }
    return found;
}

static found_t found_task (const reads_t *self, task_t *task)
{
    found_t found = {.owner = name_text (task->owner), .queue = task->queue->name};
    if (task_is_over (self->tasks, task)) {
        found.gone = TMQ_EXPIRED;
        found.gone_at = task->expires_at;
        return found;
    }
    found.task = task;
    if (task->leased)
        found.holder = name_text (task->detail->identity);
    return found;
}

static found_t found_loaded (const reads_t *self, const lookup_t *key)
{
    if (key == NULL)
        return (found_t){.gone = TMQ_NOT_FOUND};
    if (key->damaged)
        return (found_t){.gone = TMQ_INTERNAL};
    if (key->record != NULL)
        return found_record (self, key->record);
    if (key->tombstone == TMQ_OK)
        return (found_t){.gone = TMQ_NOT_FOUND};
    return (found_t){.gone = key->tombstone,
                     .gone_at = key->tombstone_at,
                     .why = key->tombstone_why,
                     .removed = true,
                     .owner = key->tombstone_owner,
                     .queue = key->tombstone_queue};
}

found_t find_unjudged (const reads_t *self, const space_t *space, const uint8_t *id)
{
    task_t *task = task_find (self->tasks, space, id);
    if (task != NULL)
        return found_task (self, task);
    const removal_note_t *removal = removal_note_find (self->tasks, space, id);
    if (removal != NULL)
        return (found_t){.gone = removal->code,
                         .gone_at = removal->at,
                         .why = removal->why,
                         .removed = true,
                         .owner = name_text (removal->owner),
                         .queue = name_text (removal->queue)};
    return found_loaded (self, loaded_id (self, space, id, LOOKUP_ID, 0));
}

static bool has_right (link_t *link, const found_t *found, unsigned rights)
{
    access_t *access = &link->access;
    if ((access->everywhere & rights) != 0)
        return true;
    return found->owner != NULL && found->queue != NULL &&
           access_sees (access, found->queue, found->owner, found->holder, rights);
}

bool found_is_seen (link_t *link, const found_t *found)
{
    return has_right (link, found, RIGHT_READ | RIGHT_OBSERVE);
}

found_t find_id (const reads_t *self, link_t *link, const uint8_t *id, unsigned rights)
{
    found_t found = find_unjudged (self, link->space, id);
    if (found.gone == TMQ_NOT_FOUND || has_right (link, &found, rights))
        return found;
    return (found_t){.gone = found_is_seen (link, &found) ? TMQ_DENIED : TMQ_NOT_FOUND};
}

found_t find_id_for_long (const reads_t *self, link_t *link, const uint8_t *id, unsigned rights)
{
    found_t found = find_id (self, link, id, rights);
    found.holder = NULL;
    if (found.task == NULL || has_right (link, &found, rights))
        return found;
    return (found_t){.gone = TMQ_NOT_FOUND};
}

buf_t *find_result (const reads_t *self, const space_t *space, const uint8_t *id)
{
    const lookup_t *key = loaded_id (self, space, id, LOOKUP_ID, 0);
    return key == NULL || key->record == NULL ? NULL : key->record->result;
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
        out->name = NULL;
        return true;
    }
    const lookup_t *key = loaded_id (self, space, id, LOOKUP_ATTEMPT, attempt);
    if (key == NULL || key->attempt_row == NULL)
        return false;
    *out = (attempt_note_t){.number = number,
                            .attempt = attempt,
                            .how = key->attempt_row->how,
                            .started_at = key->attempt_row->started_at,
                            .worker = key->attempt_row->worker};
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
    const lookup_t *loaded = row != NULL ? NULL : loaded_row (self, kind, key, key_bytes);
    int64_t expires_at = row != NULL ? row->expires_at : 0;
    if (loaded != NULL)
        expires_at = loaded->row_expires_at;
    *found = row != NULL ? !row->gone : loaded != NULL && loaded->row_found;
    if (expires_at != 0 && expires_at <= clocks_expiry_ms (&self->base->clocks))
        *found = false;
    if (!*found)
        return NULL;
    return row != NULL ? row->body : loaded->row_body;
}
