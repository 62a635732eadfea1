/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* The whole screen of a terminal, drawn anew as things change; the only place with ncurses. */
#ifndef TASKCTL_FULL_H
#define TASKCTL_FULL_H

#include "line/app.h"

enum { FULL_LINES_MIN = 8, FULL_COLUMNS_MIN = 40 };

typedef enum full_look {
    FULL_PLAIN,
    FULL_HEAD, /* of a section */
    FULL_BAR,  /* the first line */
    FULL_GOOD,
    FULL_BAD,
    FULL_DIM
} full_look_t;

/* 0 or an exit code: stdin or stdout is no terminal. */
int full_check (const app_t *app);
/* Takes the screen. 0 or an exit code: the terminal cannot do it. */
int full_begin (const app_t *app);
/* Gives the terminal back as it was; does nothing without full_begin. */
void full_end (void);
size_t full_lines (void);
size_t full_columns (void);
void full_clear (void);
/* A text at a place, cut to width columns; what acts on a terminal is escaped. */
void full_put (const app_t *app, size_t line, size_t column, size_t width, full_look_t look,
               const char *format, ...) __attribute__ ((format (printf, 6, 7)));
void full_show (void);
/* The next key that was pressed, in ASCII; 0: none. A change of the size is FULL_RESIZED. */
enum { FULL_RESIZED = 1 };
int full_key (void);

#endif
