/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Which trace a request belongs to (W3C Trace Context): that of its field traceparent, else one
 * that begins here, not sampled. It is stored with the tasks that the request submits, given to
 * their workers, and told in the answer (traceresponse) and in log lines. */
#ifndef TASKMQ_GATEWAY_REST_TRACE_H
#define TASKMQ_GATEWAY_REST_TRACE_H

#include "http/exchange.h"
#include "taskmq_types.h"

enum { TRACE_ID_SIZE = 33 };

/* Fills in trace and span. */
void trace_begin (exchange_t *exchange);
/* The id of the trace: out. */
const char *trace_id (const exchange_t *exchange, char out[TRACE_ID_SIZE]);
/* The field traceresponse: out. */
void trace_response (const exchange_t *exchange, char out[EXCHANGE_TRACE_SIZE]);
/* What is stored with a task: "PARENT STATE", or PARENT alone. out; NULL when parent, which may be
 * NULL, is none. */
const char *trace_text (char out[TMQ_TRACE_BYTES_MAX + 1], const char *parent, const char *state);
/* The same of a request. */
const char *trace_of (const exchange_t *exchange, char out[TMQ_TRACE_BYTES_MAX + 1]);

#endif
