/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* When something repeated is due: the five fields of cron(8), in a time zone. Pure: the zone's data
 * comes from outside (zone_t).
 *
 * The fields are minute, hour, day of the month, month, day of the week: a star, numbers, ranges
 * (1-5), lists (1,3), steps (star/15, 0-30/10); names of months and days by their first three
 * letters; Sunday is 0 or 7. If both days are restricted, either is enough; a field that begins
 * with a star is not restricted. The words @hourly, @daily, @midnight, @weekly, @monthly, @yearly,
 * @annually stand for such fields, and "@every DURATION" for a fixed distance.
 *
 * Where clocks change, it is as cron(8) of Debian does: what has a star in its minute or hour
 * follows the clock on the wall, so it comes twice in an hour that is repeated and not in one that
 * is left out. Any other comes once: of a repeated hour the first time counts, and what the clock
 * leaves out comes at once when it has leapt. */
#ifndef TASKMQ_CORE_CALENDAR_H
#define TASKMQ_CORE_CALENDAR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    CALENDAR_ERROR_SIZE = 128,
    CALENDAR_TEXT_BYTES_MAX = 256,
    CALENDAR_YEARS_MAX = 50, /* what does not come in so many years never does */
    CALENDAR_EVERY_MS_MIN = 1000
};

/* The offsets of a time zone: seconds east of Greenwich, first, and from each change on. Changes
 * rise. Zeroed memory is UTC. */
typedef struct zone_change {
    int64_t at; /* seconds since the epoch, UTC */
    int32_t offset;
} zone_change_t;
typedef struct zone {
    int32_t first_offset;
    const zone_change_t *changes;
    size_t changes_count;
} zone_t;

typedef struct calendar {
    int64_t every_ms; /* not 0: the rest does not count */
    uint64_t minutes; /* bits */
    uint32_t hours;
    uint32_t days; /* of the month, bits 1..31 */
    uint16_t months;
    uint8_t weekdays; /* bits 0..6, Sunday first */
    bool either_day;  /* both kinds of day are restricted */
    bool wall;        /* a star in minute or hour */
} calendar_t;

/* One moment that is due. Several may come at once, where the clock leaves something out. */
typedef struct occurrence {
    int64_t at_ms;   /* since the epoch, UTC */
    int64_t local_s; /* what the clock on the wall should have shown then; 0 for @every */
} occurrence_t;

/* False with what is wrong, for people. */
bool calendar_parse (calendar_t *out, const char *text, char error[CALENDAR_ERROR_SIZE]);
/* The place from which calendar_next finds what is after this time. */
occurrence_t calendar_at (const zone_t *zone, int64_t at_ms);
/* The first one after another, or after calendar_at's; anchor_ms: what @every counts from. False:
 * none comes in CALENDAR_YEARS_MAX years. Looks at a few days of each month. */
bool calendar_next (const calendar_t *self, const zone_t *zone, int64_t anchor_ms,
                    const occurrence_t *after, occurrence_t *out);

#endif
