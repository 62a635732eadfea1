/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

#include "core/data/row_list.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/memory.h"

static void append (row_list_t *self, const row_t *row)
{
    self->rows = memory_grow (self->rows, &self->capacity, self->count, sizeof (row_t));
    self->rows[self->count++] = row_keep (row);
}

void row_list_add (row_list_t *self, const batch_t *batch)
{
    for (size_t i = 0; i < batch->rows_count; i++)
        append (self, &batch->rows[i]);
}

/* Of two changes of one key the one that was added later stands behind. */
static int compare_places (const void *a, const void *b)
{
    const row_t *left = *(row_t *const *) a;
    const row_t *right = *(row_t *const *) b;
    int order = row_compare (left, right);
    return order != 0 ? order : (left > right) - (left < right);
}

static bool is_sorted (const row_list_t *self)
{
    for (size_t i = 1; i < self->count; i++)
        if (row_compare (&self->rows[i - 1], &self->rows[i]) >= 0)
            return false;
    return true;
}

void row_list_sort (row_list_t *self)
{
    if (is_sorted (self))
        return;
    row_t **places = memory_alloc (self->count * sizeof (row_t *));
    row_t *sorted = memory_alloc (self->count * sizeof (row_t));
    size_t count = 0;
    for (size_t i = 0; i < self->count; i++)
        places[i] = &self->rows[i];
    qsort (places, self->count, sizeof (row_t *), compare_places);
    for (size_t i = 0; i < self->count; i++) {
        if (count > 0 && row_compare (&sorted[count - 1], places[i]) == 0)
            row_drop (&sorted[--count]);
        sorted[count++] = *places[i];
    }
    free (places);
    free (self->rows);
    self->capacity = self->count;
    self->rows = sorted;
    self->count = count;
}

size_t row_list_from (const row_list_t *self, const row_t *least)
{
    size_t low = 0;
    size_t high = self->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (row_compare (&self->rows[middle], least) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

const row_t *row_list_find (const row_list_t *self, row_kind_t kind, const buf_t *key)
{
    row_t wanted = {.kind = kind, .key = (buf_t *) key};
    size_t at = row_list_from (self, &wanted);
    return at < self->count && row_compare (&self->rows[at], &wanted) == 0 ? &self->rows[at] : NULL;
}

static void take_out (row_list_t *self, size_t at)
{
    row_drop (&self->rows[at]);
    self->count--;
    memmove (&self->rows[at], &self->rows[at + 1], (self->count - at) * sizeof (row_t));
}

void row_list_put (row_list_t *self, const row_t *row)
{
    size_t at = row_list_from (self, row);
    if (at < self->count && row_compare (&self->rows[at], row) == 0)
        take_out (self, at);
    if (row->gone)
        return;
    append (self, row);
    row_t added = self->rows[self->count - 1];
    memmove (&self->rows[at + 1], &self->rows[at], (self->count - 1 - at) * sizeof (row_t));
    self->rows[at] = added;
}

void row_list_free (row_list_t *self)
{
    for (size_t i = 0; i < self->count; i++)
        row_drop (&self->rows[i]);
    free (self->rows);
    *self = (row_list_t){0};
}

/* Answers. */

void row_list_answer (const row_list_t *self, lookup_t *key)
{
    const row_t *row = row_list_find (self, key->row_kind, key->row_key);
    key->row_found = row != NULL;
    key->row_body = row == NULL ? NULL : buf_keep (row->body);
    key->row_expires_at = row == NULL ? 0 : row->expires_at;
}

void row_list_page (const row_list_t *self, read_t *read)
{
    size_t capacity = 0;
    size_t bytes = 0;
    row_t prefix = {.kind = read->row_kind, .key = (buf_t *) read->prefix};
    row_t after = {.kind = read->row_kind, .key = (buf_t *) read->after};
    const row_t *least = row_compare (&after, &prefix) > 0 ? &after : &prefix;
    for (size_t i = row_list_from (self, least); i < self->count; i++) {
        const row_t *row = &self->rows[i];
        if (row->kind != read->row_kind || !row_key_begins_with (row->key, read->prefix))
            return;
        if (read->after != NULL && row_compare (row, &after) <= 0)
            continue;
        read->more = read->rows_count == read->limit || bytes >= ROWS_READ_BYTES_MAX;
        if (read->more)
            return;
        bytes += buf_length (row->key) + buf_length (row->body);
        read->rows = memory_grow (read->rows, &capacity, read->rows_count, sizeof (row_t));
        read->rows[read->rows_count++] = row_keep (row);
    }
}

size_t row_list_due (const row_list_t *self, size_t from, int64_t wall_ms, size_t limit, due_t *out)
{
    size_t capacity = out->rows_count;
    size_t i = from;
    for (; i < self->count && out->rows_count < limit; i++) {
        const row_t *row = &self->rows[i];
        if (row->expires_at <= 0 || row->expires_at > wall_ms)
            continue;
        out->rows = memory_grow (out->rows, &capacity, out->rows_count, sizeof (row_t));
        out->rows[out->rows_count++] = row_keep_bare (row);
    }
    return i;
}
