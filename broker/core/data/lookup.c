/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* The answers of reads. */
#include "core/data/lookup.h"

#include <stdio.h>
#include <stdlib.h>

static void records_free (record_t **records, size_t count)
{
    for (size_t i = 0; i < count; i++)
        record_free (records[i]);
    free (records);
}

void read_clear (read_t *read)
{
    records_free (read->records, read->records_count);
    buf_drop (read->list);
    event_blocks_free (read->blocks, read->blocks_count);
    for (size_t i = 0; read->release == NULL && i < read->items_count; i++)
        record_free (read->items[i].record);
    rows_free (read->rows, read->rows_count);
    if (read->search != NULL)
        search_clear (read->search);
    free (read->items);
    free (read->attempts);
    if (read->release != NULL)
        read->release (read->held);
    read->records = NULL;
    read->records_count = 0;
    read->list = NULL;
    read->blocks = NULL;
    read->blocks_count = 0;
    read->rows = NULL;
    read->rows_count = 0;
    read->items = NULL;
    read->items_count = 0;
    read->attempts = NULL;
    read->attempts_count = 0;
    read->release = NULL;
    read->held = NULL;
}

void due_clear (due_t *self)
{
    records_free (self->records, self->count);
    rows_free (self->rows, self->rows_count);
    *self = (due_t){0};
}

void lookup_take_tombstone (lookup_t *key, const removal_t *removal)
{
    key->tombstone = removal->code;
    key->tombstone_at = removal->at;
    key->tombstone_why = removal->why;
    snprintf (key->tombstone_owner, sizeof (key->tombstone_owner), "%s", removal->owner);
    snprintf (key->tombstone_queue, sizeof (key->tombstone_queue), "%s", removal->queue);
}

void boot_raise (boot_t *boot, const batch_t *batch)
{
    for (size_t i = 0; i < batch->records_count; i++) {
        if (batch->records[i]->number > boot->last_number)
            boot->last_number = batch->records[i]->number;
    }
    if (batch->blocks_count > 0) {
        const event_block_t *last = &batch->blocks[batch->blocks_count - 1];
        boot->last_pos = last->first_pos + last->count - 1;
    }
    boot->newest_ms = batch->wall_ms;
}
