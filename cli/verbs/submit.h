/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* What the two forms of submit share. */
#ifndef TASKCTL_SUBMIT_H
#define TASKCTL_SUBMIT_H

#include "line/app.h"

int run_submit_batch (app_t *app);

#endif
