/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* What an imported task brings beside its fields: bodies that were uploaded, artifacts, and
 * successes that came too late. */
#ifndef TASKMQ_CORE_REQUESTS_IMPORT_BESIDE_H
#define TASKMQ_CORE_REQUESTS_IMPORT_BESIDE_H

#include "core/requests/requests.h"
#include "core/requests/sessions.h"

/* Why a task does not come. */
typedef struct import_refusal {
    tmq_code_t code;
    uint32_t retry_after_ms;
    char text[SESSION_REFUSAL_SIZE]; /* the longest */
} import_refusal_t;

/* Always false: for `return import_refuse (…)`. */
__attribute__ ((format (printf, 3, 4))) bool import_refuse (import_refusal_t *out, tmq_code_t code,
                                                            const char *format, ...);
bool import_refuse_limit (import_refusal_t *out, const char *what, size_t limit);
/* False with the refusal: it is more than a day ahead of the broker's clock. 0 is no time. */
bool import_time_is_good (const requests_t *self, const char *member, uint64_t time,
                          import_refusal_t *out);

/* extra: the task's, or NULL. */
bool import_beside_judge (const call_t *call, const Taskmq__ImportedTask *whole,
                          const Taskmq__Extra *extra, import_refusal_t *out);
/* The task is there, with its attempts; all goes with its commit. */
void import_beside_bring (call_t *call, const Taskmq__ImportedTask *whole,
                          const Taskmq__Extra *extra, task_t *task);

#endif
