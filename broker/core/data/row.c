/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

#include "core/data/row.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

static const struct {
    const char *name;
    row_home_t home;
} KINDS[ROW_KINDS_MAX] = {
#define X(NAME, number, name, home, key) [(number)] = {(name), ROW_HOME_##home},
    ROW_KIND_MAP (X)
#undef X
};

const char *row_kind_name (row_kind_t kind)
{
    return (unsigned) kind < ROW_KINDS_MAX ? KINDS[kind].name : NULL;
}

row_home_t row_kind_home (row_kind_t kind)
{
    assert (row_kind_name (kind) != NULL);
    return KINDS[kind].home;
}

row_t row_make (row_kind_t kind, const void *key, size_t key_bytes, const void *body,
                size_t body_bytes)
{
    assert (key_bytes <= ROW_KEY_BYTES_MAX && body_bytes <= ROW_BODY_BYTES_MAX);
    return (row_t){.kind = kind,
                   .key = buf_new (key, key_bytes),
                   .body = body_bytes == 0 ? NULL : buf_new (body, body_bytes)};
}

row_t row_make_gone (row_kind_t kind, const void *key, size_t key_bytes)
{
    row_t row = row_make (kind, key, key_bytes, NULL, 0);
    row.gone = true;
    return row;
}

row_t row_keep (const row_t *row)
{
    row_t copy = *row;
    copy.key = buf_keep (row->key);
    copy.body = buf_keep (row->body);
    return copy;
}

row_t row_keep_bare (const row_t *row)
{
    row_t bare = *row;
    bare.body = NULL;
    return row_keep (&bare);
}

void row_drop (row_t *row)
{
    buf_drop (row->key);
    buf_drop (row->body);
    *row = (row_t){0};
}

void rows_free (row_t *rows, size_t count)
{
    for (size_t i = 0; i < count; i++)
        row_drop (&rows[i]);
    free (rows);
}

int row_compare (const row_t *a, const row_t *b)
{
    if (a->kind != b->kind)
        return a->kind < b->kind ? -1 : 1;
    size_t left = buf_length (a->key);
    size_t right = buf_length (b->key);
    int order = memcmp (buf_bytes (a->key), buf_bytes (b->key), left < right ? left : right);
    return order != 0 ? order : (left > right) - (left < right);
}

bool row_key_begins_with (const buf_t *key, const buf_t *prefix)
{
    size_t length = buf_length (prefix);
    return buf_length (key) >= length && memcmp (buf_bytes (key), buf_bytes (prefix), length) == 0;
}

size_t row_bytes (const row_t *row)
{
    enum { OVERHEAD = 64 }; /* of the two allocations */
    return sizeof (*row) + OVERHEAD + buf_length (row->key) + buf_length (row->body);
}

bool row_is_valid (const row_t *row)
{
    return row_kind_name (row->kind) != NULL && buf_length (row->key) > 0 &&
           buf_length (row->key) <= ROW_KEY_BYTES_MAX &&
           buf_length (row->body) <= (row->gone ? 0 : ROW_BODY_BYTES_MAX) &&
           (row->gone ? row->expires_at == 0 : row->expires_at >= 0);
}

/* Keys. */

void row_key_bytes (row_key_t *self, const void *bytes, size_t length)
{
    assert (length <= sizeof (self->bytes) - self->length);
    memcpy (self->bytes + self->length, bytes, length);
    self->length += length;
}

void row_key_text (row_key_t *self, const char *text)
{
    row_key_bytes (self, text, strlen (text) + 1);
}

uint64_t row_number (const buf_t *bytes)
{
    uint64_t number = 0;
    if (buf_length (bytes) != sizeof (number))
        return 0;
    for (size_t i = 0; i < sizeof (number); i++)
        number = number << 8 | buf_bytes (bytes)[i];
    return number;
}

void row_key_number (row_key_t *self, uint64_t number)
{
    uint8_t bytes[sizeof (number)] = {0};
    for (size_t i = 0; i < sizeof (bytes); i++)
        bytes[i] = (uint8_t) (number >> (8 * (sizeof (bytes) - 1 - i)));
    row_key_bytes (self, bytes, sizeof (bytes));
}
