/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Bodies that `blob_read` gives in pieces: of blobs from their files, smaller ones from rows. */
#ifndef TASKMQ_CORE_REQUESTS_BLOBS_H
#define TASKMQ_CORE_REQUESTS_BLOBS_H

#include "core/reads/reads.h"
#include "core/requests/requests.h"

/* Answers with the row that was read for one. */
void blob_row_answer (requests_t *self, read_job_t *job);

#endif
