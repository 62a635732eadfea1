/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* taskctl audit verify: chains of lines, over their files. */
#ifndef TASKCTL_VERIFY_H
#define TASKCTL_VERIFY_H

#include "line/app.h"

int verify_run (app_t *app);

#endif
