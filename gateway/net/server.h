/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Connections: they are accepted, read, answered and closed here.
 *
 * Each has one deadline at a time, which is a total: for its head, its body, or without a request.
 * One request is under way on a connection; what comes behind it waits in the socket. Exhausted
 * memory, descriptors and places are answered where that is possible, and never end the process. */
#ifndef TASKMQ_GATEWAY_NET_SERVER_H
#define TASKMQ_GATEWAY_NET_SERVER_H

#include <stddef.h>

#include "net/connection.h"

enum { ADDRESS_SIZE = 128, SERVER_ERROR_SIZE = 256 };

typedef struct server server_t;

/* settings and handler are borrowed. NULL when memory is exhausted. */
server_t *server_new (loop_t *loop, const settings_t *settings, const exchange_handler_t *handler);
/* Closes what is open: exchanges end without an answer. */
void server_free (server_t **self);
/* text: "ADDRESS:PORT" with a numeric address, "[ADDRESS]:PORT" or "unix:PATH". *out is what it is
 * then: "http://127.0.0.1:7433" with the real port, or "unix:PATH". */
bool server_listen (server_t *self, const char *text, char out[ADDRESS_SIZE],
                    char error[SERVER_ERROR_SIZE]);
/* True if it can be read. */
bool server_is_address (const char *text);
/* True if only this machine can reach it; false also for what cannot be read. */
bool server_is_local (const char *text);
/* Each exchange that is under way. The function may end it, and no other. */
void server_each (server_t *self, exchange_fn *fn, void *context);
/* Accepts nothing more, tells exchanges that are under way, and closes connections as their answers
 * are sent; calls fn when none is left. */
void server_drain (server_t *self, watch_fn *fn, void *context);
/* Lives as long as the server. */
const connections_numbers_t *server_numbers (const server_t *self);

#endif
