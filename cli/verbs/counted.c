/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

#include "verbs/counted.h"

#include <string.h>

uint64_t counted_value (const tmq_stats_t *stats, const char *name, uint64_t absent)
{
    for (size_t i = 0; i < stats->counters_count; i++) {
        if (strcmp (stats->counters[i].name, name) == 0)
            return stats->counters[i].value;
    }
    return absent;
}

uint64_t counted_standbys (const tmq_stats_t *stats)
{
    return counted_value (stats, "lease_left_ms", UINT64_MAX) != UINT64_MAX
               ? counted_value (stats, "standbys", UINT64_MAX)
               : UINT64_MAX;
}
