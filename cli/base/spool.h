/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* A file without a name, for what is too large to be kept in memory. */
#ifndef TASKCTL_SPOOL_H
#define TASKCTL_SPOOL_H

#include <stdbool.h>
#include <stddef.h>

/* A descriptor in TMPDIR, which is closed at an exec; -1 with errno. */
int spool_make (void);
/* All of it, behind what is there; false with errno. */
bool spool_write (int fd, const void *bytes, size_t length);

#endif
