/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* What the log says of the disk: that it is full, or that somebody holds the tables. */
#ifndef TASKMQ_DISK_WORDS_H
#define TASKMQ_DISK_WORDS_H

#include "store/store.h"

/* stats.tables_held has changed: TABLES-HELD or TABLES-FREE. */
void disk_tell_held (const store_stats_t *stats);
/* Submissions are refused for want of space from now on, or taken again: DISK-FULL or DISK-FREE. */
void disk_tell_full (bool full, const store_stats_t *stats);

#endif
