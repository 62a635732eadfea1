/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* What a command lists, by the format: rows of a table, items of JSON, or neither (ids). */
#ifndef TASKCTL_LISTING_H
#define TASKCTL_LISTING_H

#include "screen/items.h"
#include "screen/table.h"

typedef struct listing {
    items_t items;  /* begun with the JSON formats alone */
    table_t *table; /* NULL with the others */
    bool json;
    const app_t *app;
} listing_t;

/* columns lives as long as the listing. */
void listing_begin (listing_t *self, const app_t *app, const column_t *columns, size_t count);
/* none: what is said on stderr of an empty table, as "no queues"; NULL: nothing. */
void listing_end (listing_t *self, const char *none);

#endif
