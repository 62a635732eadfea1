/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

#include "store/archive/archive_keep.h"

typedef struct ages {
    const archive_list_t *list;
    int64_t keep_ms;
    int64_t age_ms;     /* of the segment that was looked at last, … */
    int64_t after_ms;   /* … and its time */
    int64_t staying_ms; /* the earliest of those that stay */
    bool *old;
} ages_t;

static int64_t step_ms (int64_t from_ms, int64_t to_ms)
{
    int64_t step = to_ms > from_ms ? to_ms - from_ms : 0;
    return step < ARCHIVE_STEP_MS ? step : ARCHIVE_STEP_MS;
}

/* All of one history, the newest first. `end` is behind its last one; returns where it begins. */
static size_t judge (ages_t *self, size_t end)
{
    const archive_file_t *files = self->list->files;
    uint64_t generation = files[end - 1].header.generation;
    size_t i = end;
    while (i > 0 && files[i - 1].header.generation == generation) {
        const archive_file_t *file = &files[--i];
        self->age_ms += step_ms (file->changed_ms, self->after_ms);
        self->after_ms = file->changed_ms;
        self->old[i] = !file->open && self->age_ms > self->keep_ms;
        if (!self->old[i] && file->changed_ms < self->staying_ms)
            self->staying_ms = file->changed_ms;
    }
    return i;
}

/* Behind the last segment of a history; 0: it has none. */
static size_t end_of (const archive_list_t *list, uint64_t generation)
{
    size_t end = list->count;
    while (end > 0 && list->files[end - 1].header.generation != generation)
        end--;
    return end;
}

int64_t archive_keep (const archive_list_t *list, uint64_t generation, int64_t keep_ms,
                      int64_t now_ms, bool *old)
{
    ages_t own = {
        .list = list, .keep_ms = keep_ms, .after_ms = now_ms, .staying_ms = INT64_MAX, .old = old};
    size_t own_end = end_of (list, generation);
    if (own_end > 0)
        judge (&own, own_end);
    int64_t staying_ms = own.staying_ms;
    for (size_t end = list->count; end > 0;) {
        if (list->files[end - 1].header.generation == generation) {
            end--;
            continue;
        }
        ages_t ages = own; /* as if it had ended when this one began: nobody knows their order */
        ages.staying_ms = staying_ms;
        end = judge (&ages, end);
        staying_ms = ages.staying_ms;
    }
    return staying_ms;
}
