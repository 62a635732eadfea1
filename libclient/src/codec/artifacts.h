/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Artifacts: requests and records. */
#ifndef TASKMQ_CLIENT_ARTIFACTS_H
#define TASKMQ_CLIENT_ARTIFACTS_H

#include "codec/request.h"
#include "taskmq.pb-c.h"

/* Takes what the application's struct has, and judges it. */
int core_take_artifact (tmq_artifact_t *out, const tmq_artifact_t *given, tmq_error_t *error);
/* Its fields behind the lease, and its bytes. */
void core_encode_artifact (bytes_t *fields, bytes_t *body, const tmq_artifact_t *in);
/* One piece of memory; NULL when it is exhausted, or the page is not what it has to be. */
tmq_artifact_list_t *core_artifact_list_record (const Taskmq__ArtifactPage *page);

#endif
