/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* May a request name this blob? For all requests that do. */
#ifndef TASKMQ_CORE_REQUESTS_NAMING_H
#define TASKMQ_CORE_REQUESTS_NAMING_H

#include "core/requests/quota.h"
#include "core/requests/requests.h"

typedef struct naming_refusal {
    tmq_code_t code; /* NO_BLOB or LIMIT */
    uint32_t retry_after_ms;
    char text[512]; /* the name of an artifact has room in it */
} naming_refusal_t;

/* True, and why not, for a task of this owner. Only who has the bytes may name them: a hash alone
 * would give everybody everything. member: of the request, which the text names. blob NULL: there
 * is nothing to refuse. */
bool naming_refuses (const call_t *call, const char *owner, const Taskmq__Blob *blob,
                     const char *member, naming_refusal_t *out);
void naming_answer (call_t *call, const naming_refusal_t *refusal);

#endif
