/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Showing tasks and events on stdout: as JSON by the one renderer of proto/json.h, as tables, as a
 * card of one task, as lines of a live view. */
#ifndef TASKCTL_SHOW_H
#define TASKCTL_SHOW_H

#include "app.h"
#include "json.h"

/* JSON documents and lines (show_json.c). */

/* A stream of JSON objects: one alone, {"items":[…],"next":…}, or one a line, by the format. */
typedef struct items {
    const app_t *app;
    bytes_t bytes;
    json_writer_t writer;
    bool alone; /* FORMAT_JSON: the one object is the document */
    size_t count;
} items_t;

void items_begin (items_t *self, const app_t *app, bool alone);
/* Between the two calls one value is written; the second sends it off. */
json_writer_t *items_open (items_t *self);
void items_close (items_t *self);
/* next: the cursor to go on with; NULL or empty: none. */
void items_end (items_t *self, const char *next);
/* True if the format is one of the JSON ones. */
bool app_wants_json (const app_t *app);

/* A view of a task, with a label array of its own. */
typedef struct shown_task {
    task_view_t view;
    label_view_t *labels;
} shown_task_t;
void shown_task_init (shown_task_t *out, const tmq_task_t *task);
void shown_task_clear (shown_task_t *self);

void items_add_task (items_t *self, const tmq_task_t *task);
void items_add_event (items_t *self, const tmq_event_t *event);
/* An event as a value of what is being written. */
void write_event (json_writer_t *writer, const tmq_event_t *event);
/* A task, and its result as body, as members of an object that is open. */
void write_task_members (json_writer_t *writer, const tmq_task_t *task);

/* Tables (table.c). */

typedef enum column_flags {
    COLUMN_LEFT = 0,
    COLUMN_RIGHT = 1,
    COLUMN_TRUNCATE = 2, /* where the terminal is too narrow */
    COLUMN_WIDE = 4      /* only with -o wide */
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
/* Prints and frees it. */
void table_end (table_t *self);
/* Columns of the terminal on stdout, 0 if it is none. */
size_t terminal_columns (void);

/* People (show.c). */

/* An escape sequence, empty without colours. */
const char *paint_status (const app_t *app, tmq_status_t status);
const char *paint_bold (const app_t *app);
const char *paint_dim (const app_t *app);
const char *paint_end (const app_t *app);

/* "2.1s", "450ms", "3m 12s" */
const char *span_format (char out[32], uint64_t ms);
/* How long a task ran or has been running; "" if it did not start. */
const char *task_took (char out[32], const tmq_task_t *task);
/* What there is to say about a task in one line: its error, message or progress. "" if nothing. */
const char *task_remark (char *out, size_t size, const tmq_task_t *task);

/* "3/10 pages rendering" */
const char *progress_text (char *out, size_t size, uint64_t done, uint64_t total, const char *unit,
                           const char *message);

/* A page of tasks as a table. */
void show_tasks (const app_t *app, tmq_task_t *const *tasks, size_t count, bool headings);
/* All about one task. The task's body is its result, payload's body the payload (NULL: not shown);
 * events may be NULL. */
void show_card (const app_t *app, const tmq_task_t *task, const tmq_task_t *payload,
                tmq_event_t *const *events, size_t events_count);
/* One line of a live view, with the task's id and queue or without. */
void show_event (const app_t *app, const tmq_event_t *event, bool with_task);
/* One line about a task that has ended. */
void show_ending (const app_t *app, const tmq_task_t *task);
/* What went wrong with a failed or cancelled task, on stderr. Returns EXIT_TASK. */
int show_failure (const app_t *app, const tmq_task_t *task);
/* The bytes as they are. */
void put_body (const tmq_task_t *task);

#endif
