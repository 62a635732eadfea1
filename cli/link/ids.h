/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* The tasks that operands name. */
#ifndef TASKCTL_IDS_H
#define TASKCTL_IDS_H

#include "base/exit.h"
#include "line/app.h"

/* A full id, or the ending of one, looked up. 0 or an exit code. */
int app_resolve (app_t *app, tmq_id_t *out, const char *text);
/* All operands; those that cannot be resolved are counted in tally. *out is freed by free (). */
void app_resolve_operands (app_t *app, tmq_id_t **out, size_t *count, tally_t *tally);
/* Puts the whole ids in the place of the short ones that --after and --parent name. Connects only
 * if there are any. 0 or an exit code. */
int app_resolve_options (app_t *app);
/* True if the operands could be ids; else an exit code is in *code. Needs no connection. Operand
 * "-" becomes the ids that standard input names. */
bool app_operands_are_ids (app_t *app, int *code);

#endif
