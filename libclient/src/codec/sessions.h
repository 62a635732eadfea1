/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Sessions: requests and records. */
#ifndef TASKMQ_CLIENT_SESSIONS_H
#define TASKMQ_CLIENT_SESSIONS_H

#include "codec/request.h"
#include "taskmq.pb-c.h"

/* Refuses what can be judged without the broker. */
int core_request_session (core_request_t **out, const tmq_session_spec_t *spec, tmq_error_t *error);
/* NULL when memory is exhausted. */
tmq_session_report_t *core_sessions_record (const Taskmq__SessionPage *page);

#endif
