/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* -o of commands whose output is raw bytes: a file. The name of a format is one, as everywhere:
 * then errors have that form. A file of such a name is ./json. */
#ifndef TASKCTL_DESTINATION_H
#define TASKCTL_DESTINATION_H

#include "line/app.h"

/* *path: where to; NULL: standard output. 0 or an exit code. */
int destination_take (app_t *app, const char **path);

#endif
