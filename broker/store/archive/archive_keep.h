/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Which segments are old enough to go.
 *
 * Times of files are the wall clock's, and that can be wrong: a machine that comes up a year ahead
 * must not throw an archive away. So an age is the sum of the steps between each segment and the
 * next one, up to now, and a step counts ARCHIVE_STEP_MS at most. While there is work a segment is
 * closed each minute, so this is the time that has passed. A leap of the clock counts as one step,
 * a leap back as none. What stood still for long is kept for longer than was asked, with as few
 * segments as there are steps in that time. Pure. */
#ifndef TASKMQ_STORE_ARCHIVE_KEEP_H
#define TASKMQ_STORE_ARCHIVE_KEEP_H

#include "store/archive/archive_files.h"

enum { ARCHIVE_STEP_MS = 60 * 60 * 1000 };

/* Marks in old[i] the closed segments of the list that are older than keep_ms, now_ms being the
 * wall clock, and returns the earliest change of those that stay: nothing that they name was
 * carried before it, but for the time that a segment is open. INT64_MAX: none stays. generation:
 * the history that is written now; others are older than all of it. */
int64_t archive_keep (const archive_list_t *list, uint64_t generation, int64_t keep_ms,
                      int64_t now_ms, bool *old);

#endif
