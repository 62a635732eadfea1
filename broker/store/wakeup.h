/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* An eventfd that is readable exactly while its owner's queue is not empty. */
#ifndef TASKMQ_STORE_WAKEUP_H
#define TASKMQ_STORE_WAKEUP_H

int wakeup_new (void);      /* a descriptor, or -1 */
void wakeup_raise (int fd); /* readable from now on; the first call after wakeup_lower counts */
void wakeup_lower (int fd); /* not readable any more */

#endif
