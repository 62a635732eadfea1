/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Import: a task as its pieces. */
#ifndef TASKMQ_CLIENT_IMPORTS_H
#define TASKMQ_CLIENT_IMPORTS_H

#include "codec/request.h"

/* Takes what the application's struct has. */
int core_import_take (tmq_import_t *out, const tmq_import_t *given, tmq_error_t *error);
/* The packed ImportedTask; fails as bytes_t does. */
void core_import_pack (bytes_t *out, const tmq_import_t *task);
/* So many tasks, some of which become requests of their own: a group without any. NULL: no
 * memory. */
core_group_t *core_import_group (size_t count);
/* Adds one piece of a task as a request of the group; receipt: the task's. False: no memory. */
bool core_import_add (core_group_t *group, const tmq_import_t *task, const bytes_t *packed,
                      size_t offset, size_t receipt);
/* Frees one that was not started. */
void core_import_drop (core_group_t *group);

#endif
