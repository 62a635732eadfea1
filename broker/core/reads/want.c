/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* What has to be looked up. */
#include <string.h>

#include "core/base/memory.h"
#include "core/reads/want.h"
#include "core/tasks/index.h"
#include "core/tasks/rows.h"

static lookup_t *want_one (key_list_t *keys, lookup_kind_t kind)
{
    keys->keys = memory_grow (keys->keys, &keys->capacity, keys->count, sizeof (*keys->keys));
    lookup_t *key = &keys->keys[keys->count++];
    *key = (lookup_t){.kind = kind};
    return key;
}

lookup_t *want (key_list_t *keys, lookup_kind_t kind, const space_t *space)
{
    lookup_t *key = want_one (keys, kind);
    key->ns = space->name;
    return key;
}

void want_row (const reads_t *self, row_kind_t kind, const void *key, size_t key_bytes,
               key_list_t *keys)
{
    if (rows_find (self->tasks, kind, key, key_bytes) != NULL)
        return;
    lookup_t *wanted = want_one (keys, LOOKUP_ROW);
    wanted->row_kind = kind;
    wanted->row_key = buf_new (key, key_bytes);
    wanted->bodies = true;
}

void want_id (const reads_t *self, const space_t *space, const uint8_t *id, bool bodies,
              key_list_t *keys)
{
    tmq_id_t copy;
    memcpy (copy.bytes, id, sizeof (copy));
    if (task_find (self->tasks, space, id) != NULL ||
        removal_note_find (self->tasks, space, id) != NULL ||
        absent_surely (&self->tasks->absent, task_hash (self->tasks, space, id), &copy))
        return;
    lookup_t *key = want (keys, LOOKUP_ID, space);
    key->id = copy;
    key->bodies = bodies;
}

static void want_bodies (const task_t *task, const space_t *space, key_list_t *keys)
{
    lookup_t *key = want (keys, LOOKUP_ID, space);
    key->id = task->id;
    key->bodies = true;
}

void want_payload (const reads_t *self, const space_t *space, const uint8_t *id, key_list_t *keys)
{
    const task_t *task = task_find (self->tasks, space, id);
    if (task == NULL || task->payload != NULL || task->payload_bytes == 0)
        want_id (self, space, id, true, keys);
    else
        want_bodies (task, space, keys);
}

void want_result (const reads_t *self, const space_t *space, const uint8_t *id, key_list_t *keys)
{
    const task_t *task = task_find (self->tasks, space, id);
    if (task == NULL || task->detail == NULL || task->detail->result != NULL ||
        task->detail->result_bytes == 0)
        want_id (self, space, id, true, keys);
    else
        want_bodies (task, space, keys);
}

void want_dedup (const reads_t *self, const space_t *space, const char *owner, const char *key,
                 key_list_t *keys)
{
    if (task_find_by_key (self->tasks, space, owner, key) != NULL)
        return;
    lookup_t *wanted = want (keys, LOOKUP_DEDUP, space);
    wanted->owner_kept = access_is_behalf (owner) ? buf_new (owner, strlen (owner) + 1) : NULL;
    wanted->owner =
        wanted->owner_kept != NULL ? (const char *) buf_bytes (wanted->owner_kept) : owner;
    wanted->dedup_key = key;
}

void want_lease (const reads_t *self, const space_t *space, const Taskmq__Lease *lease,
                 key_list_t *keys)
{
    const task_t *task = task_find (self->tasks, space, lease->task_id.data);
    if (task == NULL)
        want_id (self, space, lease->task_id.data, false, keys);
    bool current = task != NULL && task->leased && task->attempt == lease->attempt;
    if (current ||
        (task != NULL && attempt_note_find (self->tasks, task->number, lease->attempt) != NULL))
        return;
    lookup_t *key = want (keys, LOOKUP_ATTEMPT, space);
    memcpy (key->id.bytes, lease->task_id.data, sizeof (key->id));
    key->attempt = lease->attempt;
}

void want_ids (const reads_t *self, const space_t *space, size_t count,
               const ProtobufCBinaryData *ids, key_list_t *keys)
{
    for (size_t i = 0; i < count; i++)
        want_id (self, space, ids[i].data, false, keys);
}
