/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Requests about values. */
#ifndef TASKMQ_CORE_REQUESTS_VALUES_H
#define TASKMQ_CORE_REQUESTS_VALUES_H

#include "core/requests/requests.h"

/* The value of a request that names one is to be looked up. */
void want_value (const requests_t *self, const link_t *link, const char *session, const char *key,
                 key_list_t *keys);
/* The rows that were read for a value_list are none for its link, and others follow: these are read
 * first. */
bool values_go_on (requests_t *self, read_job_t *job);
/* Answers a value_list whose rows were read. */
void values_answer (requests_t *self, read_job_t *job);

#endif
