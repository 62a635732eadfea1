/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* What the tests of the library share: a broker for each test, and what most of them do.
 * Every function fails the running test when it cannot do its work. */
#ifndef TASKMQ_TESTS_LIBRARY_SUPPORT_H
#define TASKMQ_TESTS_LIBRARY_SUPPORT_H

#include "support/daemon.h"

extern daemon_t broker; /* runs from set_up to tear_down, on TCP */

int set_up (void **state);
int tear_down (void **state);
tmq_client_t *client_of (const char *endpoint);
tmq_worker_t *worker_of (tmq_client_t *client, const char *queue, uint32_t capacity);
tmq_id_t submit (tmq_client_t *client, const char *queue, const char *payload);
/* So many tasks without payloads; ids: their ids. */
void submit_batch (tmq_client_t *client, const char *queue, tmq_id_t *ids, size_t count);
/* The task has completed, with these bytes. */
void assert_result (tmq_client_t *client, const tmq_id_t *id, const char *expected);

#endif
