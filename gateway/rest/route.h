/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* What a row of the table of routes says. */
#ifndef TASKMQ_GATEWAY_REST_ROUTE_H
#define TASKMQ_GATEWAY_REST_ROUTE_H

#include "auth/policy.h"
#include "http/exchange.h"

typedef enum body_kind { BODY_NONE, BODY_JSON, BODY_RAW } body_kind_t;

/* Parameters of the query that it reads: it refuses others itself, or at the door all are. */
typedef enum query_kind { QUERY_NONE, QUERY_OWN } query_kind_t;

typedef void route_fn (exchange_t *exchange);

typedef struct route {
    http_method_t method;
    const char *path; /* "{name}" is any segment */
    access_t access;
    body_kind_t body;
    query_kind_t query;
    route_fn *run;
} route_t;

#endif
