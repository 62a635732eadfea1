/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* What a run of commit batches comes to: the latest image of each task in it. */
#ifndef TASKMQ_STORE_IMAGES_H
#define TASKMQ_STORE_IMAGES_H

#include "core/record.h"
#include "store/number_map.h"

/* The latest image of a task, with the newest bodies of the images that it stands for. All
 * pointers lead into the batches. */
typedef struct image {
    const record_t *record;
    const buf_t *payload;
    const buf_t *result; /* NULL when the latest image has none */
} image_t;

typedef struct images {
    number_map_t by_number; /* of every task in the batches; see images_is_removed */
    image_t *list;          /* by number; without the removed ones */
    size_t count;
    size_t capacity;
} images_t;

/* Batches oldest first; they must outlive the images. */
void images_collect (images_t *self, batch_t *const *batches, size_t count);
void images_free (images_t *self);
bool images_is_removed (const images_t *self, int64_t number);

#endif
