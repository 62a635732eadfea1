/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* The order of times. Tasks are numbered as they are accepted, so their times rise with their
 * numbers, and a time is found by bisection. A task that is imported brings an older time: where
 * such tasks stand is kept in one row, and there each task's time is looked at. */
#ifndef TASKMQ_STORE_ORDER_H
#define TASKMQ_STORE_ORDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct order {
    int64_t first; /* all tasks that are older than one before them are from here … */
    int64_t last;  /* … to here; 0: there are none */
    int64_t high;  /* the newest time of all */
} order_t;

/* The row that keeps it: of ROW_KIND_ORDER, with this key and so long a body. */
enum { ORDER_BYTES = 3 * 8 };
extern const char ORDER_KEY[6];

/* Another task; its number is higher than all before it. True: first or last changed. */
bool order_add (order_t *self, int64_t number, int64_t created_at);
void order_pack (const order_t *self, uint8_t out[ORDER_BYTES]);
/* False: it is no such body, and *out stays as it was. */
bool order_unpack (order_t *out, const uint8_t *body, size_t bytes);

#endif
