/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

#include "screen/listing.h"

#include "screen/output.h"

void listing_begin (listing_t *self, const app_t *app, const column_t *columns, size_t count)
{
    self->app = app;
    self->json = app_wants_json (app);
    self->table = NULL;
    if (self->json)
        items_begin (&self->items, app, false);
    else if (app->format == FORMAT_TABLE || app->format == FORMAT_WIDE)
        self->table = table_new (app, columns, count, true);
}

void listing_end (listing_t *self, const char *none)
{
    if (none && self->table && table_rows (self->table) == 0)
        note (self->app, "%s", none);
    if (self->table)
        table_end (self->table);
    else if (self->json)
        items_end (&self->items, NULL);
}
