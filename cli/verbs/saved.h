/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* The saved connections of this user, by name. */
#ifndef TASKCTL_SAVED_H
#define TASKCTL_SAVED_H

#include <stddef.h>

#include "line/app.h"

/* Names of the profiles in ~/.config/taskmq/profiles, sorted. saved_free frees them. */
char **saved_names (size_t *count);
void saved_free (char **names, size_t count);

/* From now on this profile counts where nothing else says where the broker is; NULL: none does. 0
 * or an exit code. */
int saved_choose (const app_t *app, const char *name);

#endif
