/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* The private directory of one attempt, in $TMPDIR or /tmp: what the program is given as files, and
 * an empty directory in which it may write. It goes with the attempt, however that ends.
 *
 * Failure policy: what cannot be removed stays and harms nobody; names are never used again. */
#ifndef TASKCTL_WORKPLACE_H
#define TASKCTL_WORKPLACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Its path; NULL with errno. Freed by free (). */
char *workplace_make (void);
/* The path of something in it. Freed by free (). */
char *workplace_path (const char *place, const char *name);
/* False with errno. */
bool workplace_write (const char *place, const char *name, const void *data, size_t bytes);
/* The same with all that is in a file. */
bool workplace_copy (const char *place, const char *name, int from);

/* Where what the program left in its directory for artifacts waits until it is attached. Freed by
 * free (). */
char *workplace_kept (const char *place);
/* Moves it there. False: there is nothing. Does only what a signal handler may do, as the next. */
bool workplace_keep (const char *artifacts, const char *kept);

/* Does only what a signal handler may do. False if something is left, because it took longer than
 * that or could not be removed; *slow tells which. One that is gone is removed. */
bool workplace_remove (const char *place, uint64_t longest_ms, bool *slow);

/* What is in it. */
#define WORKPLACE_PAYLOAD "payload"
#define WORKPLACE_CHECKPOINT "checkpoint"
#define WORKPLACE_META "meta"
#define WORKPLACE_WORK "work"
#define WORKPLACE_ARTIFACTS "artifacts"

#endif
