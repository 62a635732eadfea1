/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

#include "store/images.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/memory.h"

/* Value of a removed task; of the others it is the position in the list plus one, until that is
 * sorted. */
static const uint64_t REMOVED = UINT64_MAX;

/* The position of the record's last event, if the batch has it. */
static uint64_t position_in (const batch_t *batch, const record_t *record)
{
    for (size_t i = 0; i < batch->blocks_count; i++) {
        const event_block_t *block = &batch->blocks[i];
        uint64_t offset = record->last_seq - block->first_seq;
        if (record->last_seq >= block->first_seq && offset < block->count &&
            strcmp (block->ns, record->ns) == 0)
            return block->first_pos + offset;
    }
    return 0;
}

static void add_record (images_t *self, const batch_t *batch, record_t *record)
{
    bool is_new;
    uint64_t *at = number_map_put (&self->by_number, (uint64_t) record->number, &is_new);
    if (*at == REMOVED)
        return;
    if (is_new) {
        self->list = memory_grow (self->list, &self->capacity, self->count, sizeof (image_t));
        self->list[self->count++] = (image_t){record, NULL, NULL, 0};
        *at = self->count;
    }
    image_t *image = &self->list[*at - 1];
    uint64_t pos = position_in (batch, record);
    if (pos != 0)
        image->pos = pos; /* else it changed without an event */
    image->record = record;
    if (record->payload != NULL)
        image->payload = record->payload;
    if (record->result != NULL || record->result_bytes == 0)
        image->result = record->result;
}

static void add_removal (images_t *self, int64_t number)
{
    uint64_t *at = number_map_put (&self->by_number, (uint64_t) number, NULL);
    if (*at != 0 && *at != REMOVED)
        self->list[*at - 1].record = NULL;
    *at = REMOVED;
}

void images_add (images_t *self, const batch_t *batch)
{
    for (size_t i = 0; i < batch->removals_count; i++)
        add_removal (self, batch->removals[i].number);
    for (size_t i = 0; i < batch->records_count; i++)
        add_record (self, batch, batch->records[i]);
}

static int image_compare (const void *a, const void *b)
{
    int64_t left = ((const image_t *) a)->record->number;
    int64_t right = ((const image_t *) b)->record->number;
    return (left > right) - (left < right);
}

void images_sort (images_t *self)
{
    size_t count = 0;
    bool sorted = true;
    for (size_t i = 0; i < self->count; i++) {
        if (self->list[i].record == NULL)
            continue;
        self->list[count++] = self->list[i];
        sorted = sorted &&
                 (count < 2 || image_compare (&self->list[count - 2], &self->list[count - 1]) <= 0);
    }
    self->count = count;
    if (!sorted)
        qsort (self->list, self->count, sizeof (image_t), image_compare);
}

void images_free (images_t *self)
{
    number_map_clear (&self->by_number);
    free (self->list);
    *self = (images_t){0};
}

bool images_is_removed (const images_t *self, int64_t number)
{
    const uint64_t *value = number_map_get (&self->by_number, (uint64_t) number);
    return value != NULL && *value == REMOVED;
}
