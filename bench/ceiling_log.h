/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* The plain log of the second ceiling: what a batch costs when it is one aligned write past the
 * page cache into a file that was made before, synced by the same call. Nothing reads it, it has no
 * sums, and it begins anew at its end. One thread; any error ends the process. */
#ifndef TASKMQ_BENCH_CEILING_LOG_H
#define TASKMQ_BENCH_CEILING_LOG_H

#include <stddef.h>

void ceiling_log_open (const char *directory);
/* Adds to the batch. */
void ceiling_log_put (const void *bytes, size_t length);
/* The batch is on the disk when it returns. */
void ceiling_log_commit (void);

/* Of ceiling.c: writes a line and ends the process. */
_Noreturn void ceiling_fail (const char *what);

#endif
