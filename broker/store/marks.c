/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

#include "store/marks.h"

#include <string.h>

#include "store/checksum.h"

bool marks_open (marks_t *self, const row_t *row)
{
    if (row->kind != ROW_KIND_TURN || row->gone)
        return false;
    const char *key = (const char *) buf_bytes (row->key);
    size_t ns_bytes = strnlen (key, buf_length (row->key)) + 1;
    self->ns = key;
    self->id = (const uint8_t *) key + ns_bytes;
    self->next = 0;
    return buf_length (row->key) >= ns_bytes + sizeof (tmq_id_t) &&
           turn_unpack (&self->turn, row->body);
}

bool marks_next (marks_t *self, turn_mark_t *mark, int64_t *place)
{
    enum { BITS_LEFT_OUT = 2 };
    if (!turn_next_mark (&self->turn, &self->next, mark))
        return false;
    uint64_t sum = checksum_add (checksum_add_text (0, mark->key), mark->value, mark->length);
    *place = (int64_t) (sum >> BITS_LEFT_OUT) + TMQ_LABELS_MAX;
    return true;
}
