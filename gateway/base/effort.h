/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* How long the loop is busy, told apart by whom it is for. Whatever wakes the loop begins anew; who
 * knows for whom something was done takes what it cost. It is the time that others waited for, but
 * at most a few times what was computed: on a crowded machine all take longer, and a machine that
 * stood still makes nobody dear. One thread: the loop's. */
#ifndef TASKMQ_GATEWAY_BASE_EFFORT_H
#define TASKMQ_GATEWAY_BASE_EFFORT_H

#include <stdint.h>

/* What was spent before is nobody's. */
void effort_begin (void);
/* Microseconds since it began, or since it was taken last. */
uint64_t effort_take (void);

#endif
