/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* What a stored record looks like to those who show tasks. */
#ifndef TASKMQ_EXPORT_RECORD_VIEW_H
#define TASKMQ_EXPORT_RECORD_VIEW_H

#include "core/data/batch.h"
#include "json.h"

/* Borrows from the record; labels is the caller's room for the view's labels. wall_ms decides
 * whether a queued task is ready or scheduled. */
void record_view (task_view_t *out, label_view_t labels[TMQ_LABELS_MAX], const record_t *record,
                  int64_t wall_ms);

#endif
