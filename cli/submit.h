/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* What the two forms of submit share. */
#ifndef TASKCTL_SUBMIT_H
#define TASKCTL_SUBMIT_H

#include "app.h"
#include "json.h"

int run_submit_batch (app_t *app);
/* {"task_id":…,"queue":…,"status":…,"existing":…,"error":…}; task_id is null when it was
 * refused. */
void write_receipt (json_writer_t *writer, const tmq_receipt_t *receipt, const char *queue);

#endif
