/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* A progress bar on stderr, on a terminal only. Output of the command goes between two calls. */
#ifndef TASKCTL_BAR_H
#define TASKCTL_BAR_H

#include "line/app.h"

typedef struct bar {
    const app_t *app;
    const char *what; /* is counted, "ended" */
    bool shown;
} bar_t;

void bar_init (bar_t *self, const app_t *app, const char *what);
void bar_draw (const bar_t *self, size_t done, size_t total);
/* Takes it away, so that a line can be printed. */
void bar_clear (const bar_t *self);

#endif
