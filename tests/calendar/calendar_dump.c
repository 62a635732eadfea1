/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Prints when a calendar is due in a zone, a line of seconds since the epoch for each occurrence:
 * calendar_dump ZONE FROM UNTIL "FIELDS", times in seconds, FROM excluded, UNTIL included. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "core/base/calendar.h"
#include "zones.h"

int main (int argc, char **argv)
{
    char error[CALENDAR_ERROR_SIZE];
    calendar_t calendar;
    if (argc != 5 || !calendar_parse (&calendar, argv[4], error))
        return 2;
    zones_t *zones = zones_new (ZONES_DIRECTORY);
    const zone_t *zone = zones_find (zones, argv[1]);
    if (zone == NULL)
        return 3;
    int64_t from_ms = strtoll (argv[2], NULL, 10) * 1000;
    int64_t until_ms = strtoll (argv[3], NULL, 10) * 1000;
    occurrence_t at = calendar_at (zone, from_ms);
    while (calendar_next (&calendar, zone, from_ms, &at, &at) && at.at_ms <= until_ms)
        printf ("%" PRId64 "\n", at.at_ms / 1000);
    zones_free (&zones);
    return 0;
}
