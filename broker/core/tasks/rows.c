/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

#include "core/tasks/rows.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/memory.h"

/* The newest change of one key. */
typedef struct row_note {
    row_t row;
    uint32_t hash;
    uint64_t batch; /* that it goes with */
    node_t node;    /* of tasks->rows_unwritten, in the order of batches */
} row_note_t;

uint32_t rows_hash (const tasks_t *self, row_kind_t kind, const void *key, size_t key_bytes)
{
    uint8_t bytes[1 + ROW_KEY_BYTES_MAX];
    assert (key_bytes <= ROW_KEY_BYTES_MAX);
    bytes[0] = (uint8_t) kind;
    memcpy (bytes + 1, key, key_bytes);
    return secrets_hash (&self->base->secrets, bytes, 1 + key_bytes);
}

static row_note_t *find_note (const tasks_t *self, uint32_t hash, row_kind_t kind, const void *key,
                              size_t key_bytes)
{
    size_t cursor = MAP_START;
    row_note_t *note = map_next (&self->rows_by_key, hash, &cursor);
    while (note != NULL && (note->row.kind != kind || buf_length (note->row.key) != key_bytes ||
                            memcmp (buf_bytes (note->row.key), key, key_bytes) != 0))
        note = map_next (&self->rows_by_key, hash, &cursor);
    return note;
}

static void remember (tasks_t *self, const row_t *row)
{
    const uint8_t *key = buf_bytes (row->key);
    size_t key_bytes = buf_length (row->key);
    uint32_t hash = rows_hash (self, row->kind, key, key_bytes);
    row_note_t *note = find_note (self, hash, row->kind, key, key_bytes);
    if (note == NULL) {
        note = memory_zero (1, sizeof (*note));
        note->hash = hash;
        map_insert (&self->rows_by_key, hash, note);
    } else {
        row_drop (&note->row);
        list_unlink (&note->node);
    }
    note->row = row_keep (row);
    note->batch = self->open.no;
    list_push_back (&self->rows_unwritten, &note->node);
}

void rows_put (tasks_t *self, row_t row)
{
    open_batch_t *open = &self->open;
    assert (row_is_valid (&row));
    open->rows = memory_grow (open->rows, &open->rows_capacity, open->rows_count, sizeof (row_t));
    open->rows[open->rows_count++] = row;
    open->bytes += row_bytes (&row);
    if (!row.gone)
        self->freshened = open->no;
    remember (self, &row);
}

const row_t *rows_find (const tasks_t *self, row_kind_t kind, const void *key, size_t key_bytes)
{
    if (self->rows_by_key.count == 0)
        return NULL;
    const row_note_t *note =
        find_note (self, rows_hash (self, kind, key, key_bytes), kind, key, key_bytes);
    return note == NULL ? NULL : &note->row;
}

void rows_settle (tasks_t *self, uint64_t written)
{
    for (node_t *node = list_first (&self->rows_unwritten); node != NULL;
         node = list_first (&self->rows_unwritten)) {
        row_note_t *note = LIST_ITEM (node, row_note_t, node);
        if (note->batch > written)
            return;
        list_unlink (node);
        map_remove (&self->rows_by_key, note->hash, note);
        row_drop (&note->row);
        free (note);
    }
}

void rows_clear (tasks_t *self)
{
    rows_settle (self, UINT64_MAX);
    map_free (&self->rows_by_key);
    for (size_t i = 0; i < self->open.rows_count; i++)
        row_drop (&self->open.rows[i]);
    free (self->open.rows);
    self->open.rows = NULL;
    self->open.rows_count = self->open.rows_capacity = 0;
}
