/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* A task to be submitted, from JSON or from a query. The members have the names that a task is
 * shown with; durations are whole milliseconds. */
#ifndef TASKMQ_GATEWAY_REST_SPEC_H
#define TASKMQ_GATEWAY_REST_SPEC_H

#include "auth/tokens.h"
#include "http/exchange.h"
#include "rest/input.h"
#include "taskmq.h"

enum { SPEC_POINTER_SIZE = 96, SPEC_ERROR_SIZE = 240, SPEC_KEY_SIZE = 201 };

typedef struct spec {
    tmq_submit_t submit;
    tmq_label_t labels[TMQ_LABELS_MAX];
    json_t *object; /* that it was read from */
    char *payload;  /* of its own */
    char *meta;
    const char *key; /* the member idempotency_key */
    char dedup_key[TMQ_DEDUP_KEY_BYTES_MAX + 1];
    char trace[TMQ_TRACE_BYTES_MAX + 1];
    char pointer[SPEC_POINTER_SIZE]; /* what is wrong: a JSON pointer, … */
    char error[SPEC_ERROR_SIZE];     /* … and a sentence */
} spec_t;

/* False: pointer and error say what is wrong; to be cleared in any case. queue: of the path, or
 * NULL. text must live as long as the spec. */
bool spec_from_json (spec_t *out, slice_t text, const char *queue);
/* All but the payload from the parameters of the query. */
bool spec_from_query (spec_t *out, const http_target_t *target, const char *queue);
void spec_clear (spec_t *self);

/* What the gateway adds: the principal's label, and the key, which is his alone (NULL: none).
 * False: as above. */
bool spec_finish (spec_t *self, const principal_t *principal, const char *key);

#endif
