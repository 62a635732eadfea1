/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Requests about artifacts. */
#ifndef TASKMQ_CORE_REQUESTS_ARTIFACTS_H
#define TASKMQ_CORE_REQUESTS_ARTIFACTS_H

#include "core/requests/get.h"

/* Answers a `blob_read` of an artifact. extra: the task's, or NULL. */
void artifact_read (call_t *call, const found_t *found, const Taskmq__Extra *extra);
/* … whose row was read. */
void artifact_answer (requests_t *self, read_job_t *job);
/* Has a piece of the blob that a `blob_read` asks for read from its file; false: it was refused and
 * answered (blobs.c). */
bool blob_read_file (call_t *call, const Taskmq__Blob *blob);

#endif
