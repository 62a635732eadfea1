/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* The status line: the last line of a terminal, on stderr, drawn anew as things change.
 *
 * It is there only where nothing can garble it: stderr is a terminal with us in the foreground, and
 * stdout is no pipe, whose reader may write to the same terminal. Everything in the room that
 * writes hides the line first; whoever owns it shows it again before it waits. */
#ifndef TASKCTL_STATUS_H
#define TASKCTL_STATUS_H

#include "line/app.h"

enum { STATUS_BYTES_MAX = 512 };

typedef struct status_line {
    bool possible;
    bool drawn;
    char text[STATUS_BYTES_MAX]; /* as it stands on the terminal */
} status_line_t;

/* The line of this run; -q and a pipe leave it out. Until status_end the app knows it. */
void status_begin (status_line_t *self, app_t *app);
/* Takes it off the terminal for good. */
void status_end (app_t *app);
/* Takes it off the terminal, if there is one, because something else is written. */
void status_hide (const app_t *app);
/* Draws it, cut to the width of the terminal, unless it stands there already. */
void status_show (const app_t *app, const char *format, ...)
    __attribute__ ((format (printf, 2, 3)));
/* A bar of done and total (both at least 0) before the text. */
void status_show_bar (const app_t *app, uint64_t done, uint64_t total, const char *format, ...)
    __attribute__ ((format (printf, 4, 5)));

#endif
