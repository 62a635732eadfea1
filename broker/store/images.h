/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* What a run of commit batches comes to: the latest image of each task in it. */
#ifndef TASKMQ_STORE_IMAGES_H
#define TASKMQ_STORE_IMAGES_H

#include "core/data/batch.h"
#include "store/number_map.h"

/* The latest image of a task, with the newest bodies of the images that it stands for. All
 * pointers lead into the batches. */
typedef struct image {
    record_t *record;
    buf_t *payload;
    buf_t *result; /* NULL when the latest image has none */
    uint64_t pos;  /* broker-wide number of its last event; 0: that came before the batches */
} image_t;

typedef struct images {
    number_map_t by_number; /* of every task in the batches; see images_is_removed */
    image_t *list;          /* by number, once they are sorted; without the removed ones */
    size_t count;
    size_t capacity;
} images_t;

/* An all-zero images_t is empty. Batches are added in their order; they must outlive the images. */
void images_add (images_t *self, const batch_t *batch);
/* After the last batch. */
void images_sort (images_t *self);
void images_free (images_t *self);
bool images_is_removed (const images_t *self, int64_t number);

#endif
