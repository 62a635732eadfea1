/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* What a stored record looks like to those who show tasks. */
#ifndef TASKMQ_EXPORT_RECORD_VIEW_H
#define TASKMQ_EXPORT_RECORD_VIEW_H

#include "core/data/batch.h"
#include "core/data/extra.h"
#include "json.h"

/* What a view borrows from, beside its record. */
typedef struct record_view_room {
    label_view_t labels[TMQ_LABELS_MAX];
    extra_t *extra;
    extra_view_room_t of_extra;
} record_view_room_t;

/* room: to be cleared when the view is not needed any more. wall_ms decides whether a queued task
 * is ready or scheduled. */
void record_view (task_view_t *out, record_view_room_t *room, const record_t *record,
                  int64_t wall_ms);
void record_view_clear (record_view_room_t *room);

#endif
