/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* What a submit was answered, and what a task brought. */
#ifndef TASKCTL_RECEIPT_H
#define TASKCTL_RECEIPT_H

#include "json.h"
#include "line/app.h"

/* {"task_id":…,"queue":…,"status":…,"existing":…,"error":…}; task_id is null when it was
 * refused. */
void write_receipt (json_writer_t *writer, const tmq_receipt_t *receipt, const char *queue);
/* Puts the result of an ended task on stdout, or into a file (path not NULL), its error on stderr.
 * Returns an exit code. */
int put_result (app_t *app, const tmq_task_t *task, const char *path);
/* A result or a payload, which came with its task or is to be fetched, into a file (query.c). 0 or
 * an exit code. */
int save_body_as (app_t *app, const tmq_task_t *task, bool is_result, const char *path);

#endif
