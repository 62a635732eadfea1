/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Tables, on libsmartcols: widths of every script, truncation to the terminal, escapes. And
 * colours. */
#ifndef TASKCTL_TABLE_H
#define TASKCTL_TABLE_H

#include "line/app.h"

/* Colours. */

/* An escape sequence, empty without colours. */
const char *paint_status (const app_t *app, tmq_status_t status);
const char *paint_bold (const app_t *app);
const char *paint_dim (const app_t *app);
const char *paint_end (const app_t *app);

/* Tables. */

typedef enum column_flags {
    COLUMN_LEFT = 0,
    COLUMN_RIGHT = 1,
    COLUMN_TRUNCATE = 2, /* where the terminal is too narrow; a mark says so */
    /* Times a rank from 1 on: left out where the terminal is too narrow, those without any content
     * first, then by rank. */
    COLUMN_YIELDS = 16
} column_flags_t;

typedef struct column {
    const char *title;
    int flags;
} column_t;

typedef struct table table_t;
/* columns lives as long as the table. */
table_t *table_new (const app_t *app, const column_t *columns, size_t count, bool headings);
void table_row (table_t *self);
/* In the present row. NULL and "" show as "-"; format may be any text, control bytes are
 * escaped. */
void table_set (table_t *self, size_t column, const char *format, ...)
    __attribute__ ((format (printf, 3, 4)));
/* In the colour of that status. */
void table_paint (table_t *self, size_t column, tmq_status_t status);
size_t table_rows (const table_t *self);
/* After the last row: leaves out what yields, until the others have some room. */
void table_fit (table_t *self);
bool table_has_left_out (const table_t *self, size_t column);
/* Prints and frees it. */
void table_end (table_t *self);
/* The same with what belongs to a row below it, which prints that with its newline. Rows count from
 * 0. */
typedef void table_below_t (void *context, size_t row);
void table_end_with (table_t *self, table_below_t *below, void *context);
/* Columns of the terminal on stdout, 0 if it is none; measured once. */
size_t terminal_columns (void);

#endif
