/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* ZMTP 3 by hand over TCP: a peer that does what no ZeroMQ library would. */
#ifndef TASKMQ_TESTS_ZMTP_H
#define TASKMQ_TESTS_ZMTP_H

#include <stdbool.h>
#include <stddef.h>

/* A connection of a socket of this type ("DEALER") with this routing id (of any length, 0 for
 * none), its handshake done; the descriptor. Fails the test when it cannot be had. */
int zmtp_open (const char *endpoint, const char *type, const void *routing_id,
               size_t routing_id_bytes);
/* Sends one frame; false when the connection has ended. */
bool zmtp_send (int fd, bool more, const void *bytes, size_t length);
/* Waits until the other side ends the connection, within the patience. */
void zmtp_wait_end (int fd);

#endif
