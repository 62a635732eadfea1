/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Filters and short ids, as every backend judges them. */
#include "store/select.h"

#include <string.h>

#include "core/data/extra.h"
#include "core/data/turn.h"
#include "ids.h"
#include "types.h"

bool select_is_live (const record_t *record)
{
    return record->leased || !status_is_terminal (record->status);
}

bool select_wants_status (const filter_t *filter, tmq_status_t status)
{
    if (filter->statuses_count == 0)
        return true;
    for (size_t i = 0; i < filter->statuses_count; i++)
        if (filter->statuses[i] == status)
            return true;
    return false;
}

bool select_contains (const char *const *names, size_t count, const char *name)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp (names[i], name) == 0)
            return true;
    return count == 0;
}

static bool has_labels (const filter_t *filter, const record_t *record)
{
    for (size_t i = 0; i < filter->labels_count; i++)
        if (!label_is_mark (&filter->labels[i]) && !record_has_label (record, &filter->labels[i]))
            return false;
    return true;
}

static bool is_part (const filter_t *filter, const record_t *record)
{
    tmq_id_t parent;
    if (filter->parents_count == 0)
        return true;
    if (record->extra == NULL || !extra_parent (record->extra, &parent))
        return false;
    for (size_t i = 0; i < filter->parents_count; i++)
        if (id_equal (&filter->parents[i], &parent))
            return true;
    return false;
}

bool select_matches (const filter_t *filter, const record_t *record)
{
    return strcmp (filter->ns, record->ns) == 0 && select_wants_status (filter, record->status) &&
           select_contains (filter->queues, filter->queues_count, record->queue) &&
           select_contains (filter->sessions, filter->sessions_count, record->session) &&
           select_contains (filter->owners, filter->owners_count, record->owner) &&
           has_labels (filter, record) && is_part (filter, record) &&
           (filter->created_since == 0 || record->created_at >= filter->created_since) &&
           (filter->created_until == 0 || record->created_at < filter->created_until) &&
           filter_sees (filter, record->queue, record->owner);
}

bool select_resolved (read_t *read, const tmq_id_t *id)
{
    if (read->count > 0 && id_equal (&read->id, id))
        return true;
    if (read->count == 0)
        read->id = *id;
    read->count++;
    return read->count < 2;
}

record_t *select_copy_bare (const record_t *record)
{
    record_t bare = *record;
    bare.payload = NULL;
    bare.result = NULL;
    return record_new (&bare);
}
