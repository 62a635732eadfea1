/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Whether this is still the process that something was made in, without a system call. */
#ifndef TASKMQ_SRC_FORKS_H
#define TASKMQ_SRC_FORKS_H

/* How often this process and its ancestors have forked since the library was first used. */
unsigned forks_count (void);

#endif
