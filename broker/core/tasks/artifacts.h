/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Artifacts: bodies with names that workers attach to their task. What is known of them is in
 * memory with the task (Extra.artifacts), so a name is found without a read, and the references to
 * blobs go with the task in one commit. Of the bytes nothing stays in memory. */
#ifndef TASKMQ_CORE_ARTIFACTS_H
#define TASKMQ_CORE_ARTIFACTS_H

#include "core/data/artifact.h"
#include "core/tasks/tasks.h"

/* Attaches one in place of what had its name. bytes: of one that is no blob. The caller tells of it
 * by INPUT_ARTIFACT. */
void artifact_put (tasks_t *self, task_t *task, const Taskmq__Artifact *given,
                   const uint8_t *bytes);
/* The task is removed. */
void artifacts_remove (tasks_t *self, space_t *space, const record_t *record,
                       const Taskmq__Extra *fields);

#endif
