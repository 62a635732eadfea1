/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* The answers of a round's look-up. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "core/reads/loaded.h"
#include "core/tasks/index.h"
#include "core/tasks/rows.h"
#include "core/tasks/space.h"

const lookup_t *loaded_id (const reads_t *self, const space_t *space, const uint8_t *id,
                           lookup_kind_t kind, uint32_t attempt)
{
    if (self->loaded_by_key.count == 0)
        return NULL;
    uint32_t hash = task_hash (self->tasks, space, id);
    size_t cursor = MAP_START;
    const lookup_t *best = NULL;
    for (const lookup_t *key = map_next (&self->loaded_by_key, hash, &cursor); key != NULL;
         key = map_next (&self->loaded_by_key, hash, &cursor)) {
        bool same = key->kind == kind && key->attempt == attempt &&
                    memcmp (key->id.bytes, id, sizeof (tmq_id_t)) == 0 &&
                    strcmp (key->ns, space->name) == 0;
        if (same && (best == NULL || key->bodies))
            best = key;
    }
    return best;
}

const lookup_t *loaded_dedup (const reads_t *self, const space_t *space, const char *owner,
                              const char *dedup_key)
{
    uint32_t hash = task_key_hash (self->tasks, space, owner, dedup_key);
    size_t cursor = MAP_START;
    for (const lookup_t *key = map_next (&self->loaded_by_key, hash, &cursor); key != NULL;
         key = map_next (&self->loaded_by_key, hash, &cursor))
        if (key->kind == LOOKUP_DEDUP && strcmp (key->ns, space->name) == 0 &&
            strcmp (key->owner, owner) == 0 && strcmp (key->dedup_key, dedup_key) == 0)
            return key;
    return NULL;
}

const lookup_t *loaded_row (const reads_t *self, row_kind_t kind, const void *key, size_t key_bytes)
{
    uint32_t hash = rows_hash (self->tasks, kind, key, key_bytes);
    size_t cursor = MAP_START;
    for (const lookup_t *found = map_next (&self->loaded_by_key, hash, &cursor); found != NULL;
         found = map_next (&self->loaded_by_key, hash, &cursor))
        if (found->kind == LOOKUP_ROW && found->row_kind == kind &&
            buf_length (found->row_key) == key_bytes &&
            memcmp (buf_bytes (found->row_key), key, key_bytes) == 0)
            return found;
    return NULL;
}

static void free_keys (lookup_t *keys, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        record_free (keys[i].record);
        free (keys[i].attempt_row);
        buf_drop (keys[i].owner_kept);
        buf_drop (keys[i].row_key);
        buf_drop (keys[i].row_body);
    }
    free (keys);
}

void loaded_free_keys (key_list_t *keys)
{
    free_keys (keys->keys, keys->count);
    *keys = (key_list_t){0};
}

void loaded_clear (reads_t *self)
{
    free_keys (self->loaded, self->loaded_count);
    self->loaded = NULL;
    self->loaded_count = 0;
    if (self->loaded_by_key.count > 0)
        map_free (&self->loaded_by_key);
}

static uint32_t key_hash (const reads_t *self, const lookup_t *key)
{
    if (key->kind == LOOKUP_ROW)
        return rows_hash (self->tasks, key->row_kind, buf_bytes (key->row_key),
                          buf_length (key->row_key));
    const space_t *space = space_find (self->tasks, key->ns);
    assert (space != NULL);
    if (key->kind == LOOKUP_DEDUP)
        return task_key_hash (self->tasks, space, key->owner, key->dedup_key);
    return task_hash (self->tasks, space, key->id.bytes);
}

void loaded_take (reads_t *self, lookup_t *keys, size_t count)
{
    loaded_clear (self);
    self->loaded = keys;
    self->loaded_count = count;
    for (size_t i = 0; i < count; i++)
        map_insert (&self->loaded_by_key, key_hash (self, &keys[i]), &keys[i]);
}
