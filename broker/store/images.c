/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

#include "store/images.h"

#include <stdlib.h>

#include "core/memory.h"

/* Value of a removed task; of the others it is the position in the list plus one, while the list is
 * being made. */
static const uint64_t REMOVED = UINT64_MAX;

static void images_add (images_t *self, const record_t *record)
{
    bool is_new;
    uint64_t *at = number_map_put (&self->by_number, (uint64_t) record->number, &is_new);
    if (*at == REMOVED)
        return;
    if (is_new) {
        self->list = memory_grow (self->list, &self->capacity, self->count, sizeof (image_t));
        self->list[self->count++] = (image_t){record, NULL, NULL};
        *at = self->count;
    }
    image_t *image = &self->list[*at - 1];
    if (image->payload == NULL)
        image->payload = record->payload;
    if (image->result == NULL && image->record->result_bytes > 0)
        image->result = record->result;
}

static int image_compare (const void *a, const void *b)
{
    int64_t left = ((const image_t *) a)->record->number;
    int64_t right = ((const image_t *) b)->record->number;
    return (left > right) - (left < right);
}

void images_collect (images_t *self, batch_t *const *batches, size_t count)
{
    *self = (images_t){{NULL, 0, 0}, NULL, 0, 0};
    /* From the newest batch to the oldest, so that the first image of a task is its latest. */
    for (size_t i = count; i > 0; i--) {
        const batch_t *batch = batches[i - 1];
        for (size_t k = 0; k < batch->removals_count; k++)
            *number_map_put (&self->by_number, (uint64_t) batch->removals[k].number, NULL) =
                REMOVED;
        for (size_t k = batch->records_count; k > 0; k--)
            images_add (self, batch->records[k - 1]);
    }
    if (self->count > 1)
        qsort (self->list, self->count, sizeof (image_t), image_compare);
}

void images_free (images_t *self)
{
    number_map_clear (&self->by_number);
    free (self->list);
}

bool images_is_removed (const images_t *self, int64_t number)
{
    const uint64_t *value = number_map_get (&self->by_number, (uint64_t) number);
    return value != NULL && *value == REMOVED;
}
