/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Long output on a terminal goes through a pager. */
#ifndef TASKCTL_PAGER_H
#define TASKCTL_PAGER_H

#include <sys/types.h>

#include "line/app.h"

/* Puts PAGER, or less where it is installed, behind stdout if that is a terminal. Returns its
 * process id, 0 without one. Before there are threads. */
pid_t pager_start (const app_t *app);
/* Waits until the reader has finished. Nothing can be printed afterwards. */
void pager_end (pid_t pager);

#endif
