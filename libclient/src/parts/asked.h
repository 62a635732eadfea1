/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Questions of attempts: they are asked, and their answers are fetched as the broker tells of them.
 * attempts.h is below it. */
#ifndef TASKMQ_CLIENT_ASKED_H
#define TASKMQ_CLIENT_ASKED_H

#include "base/bodies.h"
#include "parts/attempts.h"

/* The broker says that the attempt's task has answers up to this number (0: none that are new). */
void core_asked_news (core_attempt_t *attempt, uint64_t answers);
/* The same, of an attempt that is named by a notice. */
void core_asked_notice (core_workers_t *all, const Taskmq__AnswerNotice *notice);
/* The reply to what core_asked_news asked for; false: it is not what it should be. */
bool core_asked_reply (core_workers_t *all, const core_request_t *request,
                       const Taskmq__Reply *reply, const uint8_t *body);

/* The application's side. */

int core_worker_ask (core_worker_t *self, const tmq_assignment_t *of, const tmq_ask_t *ask,
                     core_target_t target, int64_t deadline_ms, int64_t now_ms, tmq_error_t *error);
/* TMQ_TIMEOUT: it is not there yet. key NULL: the next one. */
int core_worker_given (tmq_given_t **out, core_worker_t *self, const tmq_assignment_t *of,
                       const char *key, tmq_error_t *error);

#endif
