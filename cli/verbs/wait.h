/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Waiting for the end of tasks, for `wait`, `result --wait` and `submit --wait`. */
#ifndef TASKCTL_WAIT_H
#define TASKCTL_WAIT_H

#include "line/app.h"

/* Waits for one task, as long as --for says, and puts its result on stdout. Returns an exit
 * code. */
int wait_for_result (app_t *app, const tmq_id_t *id, const char *path);

#endif
