/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* What clients ask about keys, invitations and the access file: the runners of these errands. */
#ifndef TASKMQ_BROKER_ACCESS_REQUESTS_H
#define TASKMQ_BROKER_ACCESS_REQUESTS_H

#include "access_work.h"
#include "errands.h"

enum { ACCESS_RUNNERS = 9 };

void access_requests_init (access_requests_t *self, access_file_t *file);
void access_requests_free (access_requests_t *self);
/* The broker's key, and HOST:PORT of its first listener with CURVE (empty: not known). */
void access_requests_listen (access_requests_t *self, const key_public_t *key, const char *address);
void access_requests_change_key (access_requests_t *self, const key_public_t *key);
/* Whether who asks has the right by the policy that counts now. context: this object. The errands'
 * thread. */
bool access_requests_may (void *context, const errand_t *errand);
void access_requests_runners (access_requests_t *self, errand_runner_t out[ACCESS_RUNNERS]);

#endif
