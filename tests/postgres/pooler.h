/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* What a client can see of a pooler that mixes sessions: the process that its greeting names is not
 * the one that answers. Everything else passes. */
#ifndef TASKMQ_TESTS_POOLER_H
#define TASKMQ_TESTS_POOLER_H

typedef struct pooler pooler_t;

/* Listens on a free port of the loopback, before the server's. Starts a thread. */
pooler_t *pooler_new (int server_port);
void pooler_free (pooler_t *self);
int pooler_port (const pooler_t *self);

#endif
