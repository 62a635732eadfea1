/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Tables of tasks, with columns by choice. */
#ifndef TASKCTL_TASKS_H
#define TASKCTL_TASKS_H

#include "line/app.h"

enum { TASK_COLUMNS_MAX = 32 };

/* A column as it is shown. */
typedef struct task_column {
    const struct task_fact *fact;
    char label[TMQ_NAME_LENGTH_MAX + 1]; /* of the fact "label:NAME" */
} task_column_t;

/* The columns of a table. Those that nobody chose are settled by the first tasks that are shown, so
 * that all pages of a list have the same. */
typedef struct task_table {
    const app_t *app;
    task_column_t columns[TASK_COLUMNS_MAX];
    size_t count;
    bool begun;
    bool chosen;     /* by --columns: all of them are shown */
    size_t left_out; /* columns, because the terminal is too narrow */
} task_table_t;

/* choice: --columns, names with commas; NULL: what suits. 0 or an exit code. */
int task_table_init (task_table_t *self, const app_t *app, const char *choice);
/* A page; the first one has headings. */
void task_table_show (task_table_t *self, tmq_task_t *const *tasks, size_t count);

/* The names that --columns knows, one by one; NULL behind the last. */
const char *task_column_name (size_t i);

#endif
