/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* taskctl work: any program as a worker. */
#ifndef TASKCTL_WORK_H
#define TASKCTL_WORK_H

#include "line/app.h"

/* Returns the exit code. */
int run_work (app_t *app);

#endif
