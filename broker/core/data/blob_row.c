/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

#include "core/data/blob_row.h"

#include <string.h>

enum { NUMBER_BYTES = sizeof (uint64_t), BODY_BYTES = 2 * NUMBER_BYTES };

row_t blob_row_make (const uint8_t *hash, uint64_t bytes, uint64_t tasks)
{
    row_key_t body = ROW_KEY_INIT;
    row_key_number (&body, bytes);
    row_key_number (&body, tasks);
    return tasks == 0
               ? row_make_gone (ROW_KIND_BLOB, hash, TMQ_BLOB_HASH_BYTES)
               : row_make (ROW_KIND_BLOB, hash, TMQ_BLOB_HASH_BYTES, body.bytes, body.length);
}

static uint64_t number_at (const uint8_t *bytes)
{
    uint64_t number = 0;
    for (size_t i = 0; i < NUMBER_BYTES; i++)
        number = number << 8 | bytes[i];
    return number;
}

bool blob_row_read (const row_t *row, uint64_t *bytes, uint64_t *tasks)
{
    *bytes = *tasks = 0;
    if (row->kind != ROW_KIND_BLOB || buf_length (row->key) != TMQ_BLOB_HASH_BYTES)
        return false;
    if (row->gone)
        return true;
    if (buf_length (row->body) != BODY_BYTES)
        return false;
    *bytes = number_at (buf_bytes (row->body));
    *tasks = number_at (buf_bytes (row->body) + NUMBER_BYTES);
    return true;
}

row_t blob_share_make (const uint8_t *hash, const char *owner, uint64_t tasks)
{
    row_key_t key = ROW_KEY_INIT;
    row_key_t body = ROW_KEY_INIT;
    row_key_bytes (&key, hash, TMQ_BLOB_HASH_BYTES);
    row_key_text (&key, owner);
    row_key_number (&body, tasks);
    return tasks == 0
               ? row_make_gone (ROW_KIND_BLOB_SHARE, key.bytes, key.length)
               : row_make (ROW_KIND_BLOB_SHARE, key.bytes, key.length, body.bytes, body.length);
}

bool blob_share_read (const row_t *row, const uint8_t **hash, const char **owner, uint64_t *tasks)
{
    const uint8_t *key = buf_bytes (row->key);
    size_t length = buf_length (row->key);
    *tasks = 0;
    if (row->kind != ROW_KIND_BLOB_SHARE || length < TMQ_BLOB_HASH_BYTES + 2 ||
        memchr (key + TMQ_BLOB_HASH_BYTES, '\0', length - TMQ_BLOB_HASH_BYTES) != key + length - 1)
        return false;
    *hash = key;
    *owner = (const char *) key + TMQ_BLOB_HASH_BYTES;
    if (row->gone)
        return true;
    *tasks = row_number (row->body);
    return *tasks > 0;
}
