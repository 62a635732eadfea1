/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* What the query of a target says. Functions that return false have answered. */
#ifndef TASKMQ_GATEWAY_REST_QUERY_H
#define TASKMQ_GATEWAY_REST_QUERY_H

#include "http/exchange.h"
#include "taskmq.h"

enum { QUERY_STATUSES_MAX = 16, QUERY_LABELS_MAX = 15, QUERY_LABEL_SIZE = 400 };

/* *out stays as it is when there is no parameter of that name. */
bool number_parameter (exchange_t *exchange, uint64_t *out, const char *name, uint64_t most);
/* No parameter has another name. */
bool known_parameters (exchange_t *exchange, const char *const *names, size_t count);

/* A filter with what it points to. It borrows from the target. */
typedef struct query_filter {
    tmq_filter_t filter;
    const char *queues[TMQ_FILTER_VALUES_MAX];
    const char *sessions[TMQ_FILTER_VALUES_MAX];
    tmq_status_t statuses[QUERY_STATUSES_MAX];
    tmq_label_t labels[QUERY_LABELS_MAX + 1]; /* one is the principal's */
    char texts[QUERY_LABELS_MAX][QUERY_LABEL_SIZE];
} query_filter_t;

/* Other parameters, NULL-terminated, are looked at elsewhere (NULL: there are none). Who sees their
 * own tasks only has a condition more. */
bool query_filter (exchange_t *exchange, query_filter_t *out, const char *const *others);
/* *out stays as it is when there is no parameter of that name. */
bool flag_parameter (exchange_t *exchange, bool *out, const char *name);

#endif
