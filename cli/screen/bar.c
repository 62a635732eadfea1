/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

#include "screen/bar.h"

#include <stdio.h>
#include <unistd.h>

enum { CELLS = 24 };

void bar_init (bar_t *self, const app_t *app, const char *what)
{
    *self = (bar_t){app, what, isatty (STDERR_FILENO) && !app->quiet};
}

void bar_clear (const bar_t *self)
{
    if (self->shown) {
        fflush (stdout);
        fputs ("\r\033[K", stderr);
        fflush (stderr);
    }
}

void bar_draw (const bar_t *self, size_t done, size_t total)
{
    if (!self->shown || done >= total)
        return;
    const size_t filled = done * CELLS / total;
    const char *full = self->app->utf8 ? "█" : "#";
    const char *empty = self->app->utf8 ? "░" : ".";
    fflush (stdout);
    for (size_t i = 0; i < CELLS; i++)
        fputs (i < filled ? full : empty, stderr);
    fprintf (stderr, "  %zu of %zu %s", done, total, self->what);
    fflush (stderr);
}
