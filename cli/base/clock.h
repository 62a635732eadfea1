/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* What time it is. */
#ifndef TASKCTL_CLOCK_H
#define TASKCTL_CLOCK_H

#include <stdint.h>

/* Now, in milliseconds since the epoch, and on a clock that never jumps. */
uint64_t wall_ms (void);
uint64_t mono_ms (void);

#endif
