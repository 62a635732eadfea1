/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* A client of taskmqd as the bench uses it, in the ordinary rows and in those by size. What fails
 * ends the bench. */
#ifndef TASKMQ_BENCH_CLIENT_H
#define TASKMQ_BENCH_CLIENT_H

#include "bench.h"
#include "taskmq.h"

enum { CLIENT_DEADLINE_MS = 120 * 1000, CLIENT_POLL_MAX = 512 };

/* Ends the bench unless code is TMQ_OK; what: the operation. */
void client_check (int code, const char *what, const tmq_error_t *error);
/* A connected client, to be freed by tmq_client_free. */
tmq_client_t *client_connect (const server_t *server);
/* The same, in this namespace. */
tmq_client_t *client_connect_to (const server_t *server, const char *ns);
/* Takes the completions that are there, at most CLIENT_POLL_MAX, waiting up to timeout_ms for the
 * first; each must be TMQ_OK. Returns how many there were. */
size_t client_reap (tmq_client_t *client, uint32_t timeout_ms, const char *what);

#endif
