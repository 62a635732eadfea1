/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */
/* How far those who write the events to files are: the store forgets none that one of them still
 * has to write. */
#ifndef TASKMQ_EXPORT_WATERMARK_H
#define TASKMQ_EXPORT_WATERMARK_H

#include <stdatomic.h>
#include <stdint.h>

#include "store/store.h"

typedef enum watermark_who {
    WATERMARK_TASKS,
    WATERMARK_EVENTS,
    WATERMARK_FOLLOWERS
} watermark_who_t;

typedef struct watermark {
    store_t *store;
    _Atomic uint64_t pos[WATERMARK_FOLLOWERS];
} watermark_t;

/* Each of them has still everything to write. */
void watermark_init (watermark_t *self, store_t *store);
/* Everything up to this position is written; UINT64_MAX: it needs nothing. Any thread. */
void watermark_move (watermark_t *self, watermark_who_t who, uint64_t pos);

#endif
