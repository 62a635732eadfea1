/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Where a live task is found, and the notes of what the tables do not show yet. */
#include <stdlib.h>
#include <string.h>

#include "core/base/memory.h"
#include "core/tasks/account.h"
#include "core/tasks/index.h"
#include "core/tasks/space.h"

uint32_t task_hash (const tasks_t *self, const space_t *space, const uint8_t *id)
{
    return secrets_hash_id (&self->base->secrets, space->hash, id);
}

uint32_t task_key_hash (const tasks_t *self, const space_t *space, const char *owner,
                        const char *key)
{
    uint8_t bytes[sizeof (space->hash) + TMQ_OWNER_BYTES_MAX + 1 + TMQ_DEDUP_KEY_BYTES_MAX];
    size_t owner_length = strnlen (owner, TMQ_OWNER_BYTES_MAX);
    size_t key_length = strnlen (key, TMQ_DEDUP_KEY_BYTES_MAX);
    uint8_t *at = bytes;
    memcpy (at, &space->hash, sizeof (space->hash));
    at += sizeof (space->hash);
    memcpy (at, owner, owner_length);
    at += owner_length;
    *at++ = 0;
    memcpy (at, key, key_length);
    at += key_length;
    return secrets_hash (&self->base->secrets, bytes, (size_t) (at - bytes));
}

task_t *task_find (const tasks_t *self, const space_t *space, const uint8_t *id)
{
    uint32_t hash = task_hash (self, space, id);
    size_t cursor = MAP_START;
    for (task_t *task = map_next (&self->by_id, hash, &cursor); task != NULL;
         task = map_next (&self->by_id, hash, &cursor))
        if (memcmp (task->id.bytes, id, sizeof (tmq_id_t)) == 0 && task->queue->space == space)
            return task;
    return NULL;
}

task_t *task_find_by_key (const tasks_t *self, const space_t *space, const char *owner,
                          const char *key)
{
    uint32_t hash = task_key_hash (self, space, owner, key);
    size_t cursor = MAP_START;
    for (task_t *task = map_next (&self->by_key, hash, &cursor); task != NULL;
         task = map_next (&self->by_key, hash, &cursor))
        if (task->queue->space == space && strcmp (name_text (task->owner), owner) == 0 &&
            strcmp (task_dedup_key (task), key) == 0)
            return task;
    return NULL;
}

static uint32_t attempt_hash (const tasks_t *self, int64_t number, uint32_t attempt)
{
    uint8_t key[sizeof (number) + sizeof (attempt)];
    memcpy (key, &number, sizeof (number));
    memcpy (key + sizeof (number), &attempt, sizeof (attempt));
    return secrets_hash (&self->base->secrets, key, sizeof (key));
}

attempt_note_t *attempt_note_find (const tasks_t *self, int64_t number, uint32_t attempt)
{
    if (self->attempts_by_key.count == 0)
        return NULL;
    uint32_t hash = attempt_hash (self, number, attempt);
    size_t cursor = MAP_START;
    attempt_note_t *note = map_next (&self->attempts_by_key, hash, &cursor);
    while (note != NULL && (note->number != number || note->attempt != attempt))
        note = map_next (&self->attempts_by_key, hash, &cursor);
    return note;
}

void attempt_note_add (tasks_t *self, const attempt_t *attempt)
{
    attempt_note_t *note = memory_alloc (sizeof (*note));
    *note = (attempt_note_t){.hash = attempt_hash (self, attempt->number, attempt->attempt),
                             .number = attempt->number,
                             .attempt = attempt->attempt,
                             .how = attempt->how,
                             .started_at = attempt->started_at,
                             .name = names_keep (&self->base->names, attempt->worker)};
    note->worker = name_text (note->name);
    memcpy (note->secret, attempt->secret, sizeof (note->secret));
    memcpy (note->request_id, attempt->request_id, sizeof (note->request_id));
    map_insert (&self->attempts_by_key, note->hash, note);
    fifo_push (&self->attempt_notes, note);
}

removal_note_t *removal_note_find (const tasks_t *self, const space_t *space, const uint8_t *id)
{
    if (self->removals_by_key.count == 0)
        return NULL;
    uint32_t hash = task_hash (self, space, id);
    size_t cursor = MAP_START;
    removal_note_t *note = map_next (&self->removals_by_key, hash, &cursor);
    while (note != NULL &&
           (note->space != space || memcmp (note->id.bytes, id, sizeof (note->id)) != 0))
        note = map_next (&self->removals_by_key, hash, &cursor);
    return note;
}

void removal_note_add (tasks_t *self, space_t *space, const record_t *record, tmq_code_t code,
                       uint8_t why)
{
    removal_note_t *note = memory_alloc (sizeof (*note));
    *note = (removal_note_t){.hash = task_hash (self, space, record->id.bytes),
                             .space = space,
                             .id = record->id,
                             .code = code,
                             .why = why,
                             .at = self->base->clocks.wall_ms,
                             .owner = names_keep (&self->base->names, record->owner),
                             .queue = names_keep (&self->base->names, record->queue)};
    space->removals++;
    map_insert (&self->removals_by_key, note->hash, note);
    fifo_push (&self->removal_notes, note);
}

void notes_forget (tasks_t *self, size_t attempts, size_t removals)
{
    for (size_t i = 0; i < attempts; i++) {
        attempt_note_t *note = fifo_pop (&self->attempt_notes);
        map_remove (&self->attempts_by_key, note->hash, note);
        names_drop (&self->base->names, note->name);
        free (note);
    }
    for (size_t i = 0; i < removals; i++) {
        removal_note_t *note = fifo_pop (&self->removal_notes);
        map_remove (&self->removals_by_key, note->hash, note);
        note->space->removals--;
        names_drop (&self->base->names, note->owner);
        names_drop (&self->base->names, note->queue);
        space_release (self, note->space);
        free (note);
    }
}

bool task_owner_has_some (tasks_t *self, const char *owner)
{
    bool found = false;
    size_t cursor = 0;
    name_t *name = names_keep (&self->base->names, owner);
    bool known = name != NULL && name->count > 1;
    const task_t *task = known && !self->has_accounts ? map_each (&self->by_id, &cursor) : NULL;
    if (known && self->has_accounts)
        found = name->account != NULL && name->account->tasks > 0;
    for (; task != NULL && !found; task = map_each (&self->by_id, &cursor))
        found = task->owner == name;
    names_drop (&self->base->names, name);
    return found;
}
