/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* What the programs of attempts write, on its way to the broker.
 *
 * One piece of a stream is under way at a time, so a program that writes much is sent in large
 * pieces, and one that writes little at once. What was under way when a link ended is sent again:
 * the broker knows by the offset what it has. Before the end of an attempt everything is sent, and
 * nothing waited for (attempts.c). */
#ifndef TASKMQ_CLIENT_LOGS_H
#define TASKMQ_CLIENT_LOGS_H

#include "parts/attempts.h"

void core_logs_reply (core_workers_t *all, const core_request_t *request,
                      const Taskmq__Reply *reply);

/* The application's side. */

int core_worker_log (core_worker_t *self, const tmq_assignment_t *of, tmq_log_stream_t stream,
                     const void *bytes, size_t length, int64_t now_ms, tmq_error_t *error);
/* Bytes that the broker has not taken. */
size_t core_worker_log_pending (const core_worker_t *self, const tmq_assignment_t *of);

#endif
