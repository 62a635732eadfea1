/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* What the loop's thread computes, told apart by whom it is for. Whatever wakes the loop begins
 * anew; who knows for whom something was done takes what it cost. Time of the processor, not of a
 * clock: a machine that is busy with something else makes nobody dear. One thread: the loop's. */
#ifndef TASKMQ_GATEWAY_BASE_EFFORT_H
#define TASKMQ_GATEWAY_BASE_EFFORT_H

#include <stdint.h>

/* What was spent before is nobody's. */
void effort_begin (void);
/* Microseconds since it began, or since it was taken last. */
uint64_t effort_take (void);

#endif
