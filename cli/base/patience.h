/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Requests that come again: a rate of the principal's lets a few through at once and others a
 * moment later, and the broker says when. */
#ifndef TASKCTL_PATIENCE_H
#define TASKCTL_PATIENCE_H

#include <stdbool.h>
#include <stdint.h>

#include "taskmq.h"

/* Of one request; it begins all zero. */
typedef struct patience {
    uint64_t until_ms; /* monotonic */
} patience_t;

/* After each try of a request: waits as long as the broker advises, and the request comes again.
 * False: it was answered otherwise, or the time ends before. */
bool patience_waits (patience_t *self, const tmq_error_t *error, uint32_t timeout_ms);

#endif
