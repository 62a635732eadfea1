/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Failure: whatever is not a clear refusal counts as an open door. */
#include "net/probe.h"

#include <sodium.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <zmq.h>

#include "net/address.h"
#include "net/socket.h"
#include "timestamp.h"

enum { LOOK_MS = 10, REFUSED = 400 };

/* Others may come while we look, so both clocks have to be right. */
static now_t clocks_now (void)
{
    return (now_t){clock_ms (CLOCK_MONOTONIC), clock_ms (CLOCK_REALTIME)};
}

static bool set_keys (void *socket, const key_public_t *server)
{
    key_public_t public_key;
    key_secret_t secret;
    key_make (&public_key, &secret);
    bool set = zmq_setsockopt (socket, ZMQ_CURVE_SERVERKEY, server->bytes, KEY_BYTES) == 0 &&
               zmq_setsockopt (socket, ZMQ_CURVE_PUBLICKEY, public_key.bytes, KEY_BYTES) == 0 &&
               zmq_setsockopt (socket, ZMQ_CURVE_SECRETKEY, secret.bytes, KEY_BYTES) == 0;
    sodium_memzero (&secret, sizeof (secret));
    return set;
}

/* What the handshake came to; 0: nothing in time. A handshake that takes too long ends without an
 * answer, and ZeroMQ begins another one. */
static uint16_t wait_end (void *monitor, zap_t *zap, uint32_t *value)
{
    int64_t until = clocks_now ().mono_ms + PROBE_MS_MAX;
    zmq_pollitem_t item = {monitor, 0, ZMQ_POLLIN, 0};
    uint16_t event;
    int ends = 0;
    for (now_t now = clocks_now (); now.mono_ms < until; now = clocks_now ()) {
        zap_answer (zap, now);
        (void) zmq_poll (&item, 1, LOOK_MS);
        if (!monitor_receive (monitor, &event, value))
            continue;
        ends++;
        if (event != ZMQ_EVENT_HANDSHAKE_FAILED_NO_DETAIL || ends == PROBE_ENDS_MAX)
            return event;
    }
    return 0;
}

static bool judge (uint16_t event, uint32_t value, const char *endpoint, char *error, size_t size)
{
    if (event == ZMQ_EVENT_HANDSHAKE_FAILED_AUTH && value == REFUSED)
        return true;
    if (event == ZMQ_EVENT_HANDSHAKE_SUCCEEDED)
        snprintf (error, size, "%s lets a key in that nobody knows", endpoint);
    else if (event == ZMQ_EVENT_HANDSHAKE_FAILED_AUTH)
        snprintf (error, size, "%s answers a key that nobody knows with %u, not with %d", endpoint,
                  value, REFUSED);
    else if (event != 0)
        snprintf (error, size, "%s ends a connection with a key that nobody knows without asking",
                  endpoint);
    else
        snprintf (error, size, "%s does not answer a key that nobody knows", endpoint);
    return false;
}

bool probe_door (void *context, zap_t *zap, const char *endpoint, bool feed,
                 const key_public_t *server, char *error, size_t error_size)
{
    char reach[ADDRESS_URI_SIZE];
    uint32_t value = 0;
    uint16_t event = 0;
    address_reach (endpoint, reach, sizeof (reach));
    void *socket = zmq_socket (context, feed ? ZMQ_SUB : ZMQ_DEALER);
    void *monitor = NULL;
    if (socket != NULL) {
        socket_set (socket, ZMQ_LINGER, 0);
        socket_set (socket, ZMQ_IPV6, strchr (reach, '[') != NULL);
        monitor = handshakes_open (context, socket);
    }
    zap_probing (zap, true);
    if (monitor != NULL && set_keys (socket, server) && zmq_connect (socket, reach) == 0)
        event = wait_end (monitor, zap, &value);
    zap_probing (zap, false);
    if (monitor != NULL) {
        zmq_socket_monitor (socket, NULL, 0);
        zmq_close (monitor);
    }
    if (socket != NULL)
        zmq_close (socket);
    return judge (event, value, endpoint, error, error_size);
}
