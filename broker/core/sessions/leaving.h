/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Sessions that were removed. What belongs to one, its values and its items, is read from the
 * tables page by page and removed, and the session last. A restart begins again with what is
 * left. */
#ifndef TASKMQ_CORE_LEAVING_H
#define TASKMQ_CORE_LEAVING_H

#include "core/sessions/sessions.h"

/* Once a round: asks for the next page. */
void leaving_run (sessions_t *self);
/* A page that was asked for. */
void leaving_swept (sessions_t *self, const read_job_t *job);

#endif
