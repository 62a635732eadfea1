/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Filters and short ids, as every backend judges them. */
#include "store/select.h"

#include <string.h>

bool select_is_terminal (tmq_status_t status)
{
    switch (status) {
#define X(number, NAME, text, terminal)                                                            \
    case TMQ_STATUS_##NAME: return terminal;
        TMQ_STATUS_MAP (X)
#undef X
    default: return false;
    }
}

bool select_is_live (const record_t *record)
{
    return record->leased || !select_is_terminal (record->status);
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

static bool contains (const char *const *names, size_t count, const char *name)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp (names[i], name) == 0)
            return true;
    return count == 0;
}

bool select_matches (const filter_t *filter, const record_t *record)
{
    return strcmp (filter->ns, record->ns) == 0 && select_wants_status (filter, record->status) &&
           contains (filter->queues, filter->queues_count, record->queue) &&
           contains (filter->sessions, filter->sessions_count, record->session) &&
           (filter->created_since == 0 || record->created_at >= filter->created_since) &&
           (filter->created_until == 0 || record->created_at < filter->created_until);
}

bool select_ends_with (const tmq_id_t *id, const char *suffix)
{
    static const char DIGITS[] = "0123456789abcdef";
    size_t length = strlen (suffix);
    if (length > 32)
        return false;
    for (size_t i = 0; i < length; i++) {
        size_t nibble = 32 - length + i;
        unsigned byte = id->bytes[nibble / 2];
        if (suffix[i] != DIGITS[nibble % 2 == 0 ? byte >> 4 : byte & 15u])
            return false;
    }
    return true;
}

bool select_resolved (read_t *read, const tmq_id_t *id)
{
    if (read->count > 0 && memcmp (read->id.bytes, id->bytes, sizeof (id->bytes)) == 0)
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
