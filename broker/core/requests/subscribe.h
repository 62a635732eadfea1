/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* The start of a subscription by time. */
#ifndef TASKMQ_CORE_SUBSCRIBE_H
#define TASKMQ_CORE_SUBSCRIBE_H

#include "core/requests/requests.h"

void subscribe_started (requests_t *self, read_job_t *job); /* READ_SINCE was answered */

#endif
