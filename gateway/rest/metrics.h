/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* /metrics: the numbers of the broker and of the gateway in the text format of Prometheus. */
#ifndef TASKMQ_GATEWAY_REST_METRICS_H
#define TASKMQ_GATEWAY_REST_METRICS_H

#include "rest/service.h"

/* The upper end of a bucket of the histogram of times. */
uint64_t metrics_bucket_us (size_t bucket);
/* Frees what a broker told of its numbers. */
void scraped_clear (scraped_t *self);
/* Those of the process. */
void metrics_write_process (bytes_t *out, const service_t *service);
/* Those of the gateway itself. */
void metrics_write_own (bytes_t *out, const service_t *service);

/* The text of Prometheus, with a NUL behind it, as OpenMetrics 1.0. */
void metrics_open (bytes_t *out, const char *text);

#endif
