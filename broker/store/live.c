/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

#include "store/live.h"

#include "store/select.h"

void live_init (live_t *self, const store_live_visitor_t *visitor, const overlay_t *overlay)
{
    *self = (live_t){.visitor = visitor, .overlay = overlay};
}

/* Rows. */

static const row_list_t *newer_rows (const live_t *self)
{
    return self->overlay == NULL ? NULL : overlay_rows (self->overlay);
}

/* Gives the overlay's rows of the kind up to this one, NULL: all. */
static void visit_newer (live_t *self, row_kind_t kind, const row_t *upto)
{
    const row_list_t *newer = newer_rows (self);
    for (; newer != NULL && self->next_row < newer->count; self->next_row++) {
        const row_t *row = &newer->rows[self->next_row];
        if (row->kind > kind || (upto != NULL && row_compare (row, upto) > 0))
            return;
        if (row->kind == kind && !row->gone)
            self->visitor->row (self->visitor->context, row);
    }
}

void live_kind (live_t *self, row_kind_t kind)
{
    const row_t first = {.kind = kind};
    self->next_row = self->overlay == NULL ? 0 : row_list_from (newer_rows (self), &first);
}

void live_row (live_t *self, const row_t *row)
{
    const row_list_t *newer = newer_rows (self);
    visit_newer (self, row->kind, row);
    if (newer == NULL || row_list_find (newer, row->kind, row->key) == NULL)
        self->visitor->row (self->visitor->context, row);
}

void live_kind_end (live_t *self, row_kind_t kind)
{
    visit_newer (self, kind, NULL);
}

/* Tasks. */

/* Gives the live tasks of the overlay whose number is below the given one. */
static void visit_below (live_t *self, int64_t below)
{
    if (self->overlay == NULL)
        return;
    for (; self->next_record < overlay_count (self->overlay); self->next_record++) {
        const record_t *record = overlay_record (self->overlay, self->next_record);
        if (record->number >= below)
            return;
        if (select_is_live (record))
            self->visitor->task (self->visitor->context, record_new (record));
    }
}

bool live_wants (live_t *self, int64_t number)
{
    if (self->overlay != NULL && overlay_has (self->overlay, number))
        return false;
    visit_below (self, number);
    return true;
}

void live_task (live_t *self, record_t *record)
{
    self->visitor->task (self->visitor->context, record);
}

void live_tasks_end (live_t *self)
{
    visit_below (self, INT64_MAX);
}

/* Namespaces. */

void live_space (live_t *self, const char *name, uint64_t last_seq)
{
    uint64_t newer = self->overlay == NULL ? 0 : overlay_last_seq (self->overlay, name);
    self->visitor->ns (self->visitor->context, name, newer > last_seq ? newer : last_seq);
}

const char *live_new_space (const live_t *self, size_t position)
{
    return self->overlay == NULL ? NULL : overlay_ns (self->overlay, position);
}
