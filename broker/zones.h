/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Time zones of the system (tzdata): TZif files of RFC 9636 become the core's zone_t. Each is read
 * when it is first named and kept; the broker's thread only. */
#ifndef TASKMQ_ZONES_H
#define TASKMQ_ZONES_H

#include "core/base/calendar.h"

#define ZONES_DIRECTORY "/usr/share/zoneinfo"

enum {
    ZONES_MAX = 1024,             /* kept; there are about 600 names */
    ZONES_FILE_BYTES_MAX = 65536, /* the largest of tzdata has 4 KiB */
    ZONES_NAME_BYTES_MAX = 64
};

typedef struct zones zones_t;

zones_t *zones_new (const char *directory); /* of the files; ZONES_DIRECTORY */
void zones_free (zones_t **self);           /* accepts a NULL object */
/* "UTC" needs no file. NULL: there is no such zone, or its file is damaged. What is returned lives
 * as long as the object. context is the object (engine_config_t.zone). */
const zone_t *zones_find (void *context, const char *name);

/* Takes a file apart; the changes are the caller's to free. The rule at its end is followed up to
 * the year 2200. False: it is damaged. */
bool zone_parse (zone_t *out, const void *file, size_t bytes);

#endif
