/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

#include "net/listen.h"

#include <stdio.h>
#include <zmq.h>

#include "net/socket.h"

static bool refuse (listen_error_t *error, bool open, const char *why, const address_t *address)
{
    error->open = open;
    snprintf (error->text, sizeof (error->text), "cannot listen on %s: %s", address->uri, why);
    return false;
}

/* The machine itself may always connect: the look whether the door is shut comes from there. */
static bool allow_networks (void *socket, const address_t *address, const guard_t *guard)
{
    char host[ADDRESS_URI_SIZE];
    if (guard->networks_count == 0 || address->kind != ADDRESS_TCP)
        return true;
    bool good = zmq_setsockopt (socket, ZMQ_TCP_ACCEPT_FILTER, NULL, 0) == 0 &&
                socket_allow (socket, "127.0.0.0/8") && socket_allow (socket, "::1/128");
    for (size_t i = 0; good && i < guard->networks_count; i++)
        good = socket_allow (socket, guard->networks[i]);
    if (!good || address->any)
        return good;
    address_host (address, host, sizeof (host));
    return socket_allow (socket, host);
}

bool listen_bind (void *socket, const address_t *address, const char *domain, const guard_t *guard,
                  listen_error_t *error)
{
    const key_secret_t *key = address->curve ? guard->server_key : NULL;
    if (address->curve && key == NULL)
        return refuse (error, true, "there is no key of the broker", address);
    socket_set (socket, ZMQ_IPV6, address->ipv6);
    if (!socket_guard (socket, domain, key))
        return refuse (error, true, "ZeroMQ does not guard it", address);
    if (!allow_networks (socket, address, guard))
        return refuse (error, true, "ZeroMQ does not take the networks that are allowed", address);
    if (zmq_bind (socket, address->uri) != 0)
        return refuse (error, false, zmq_strerror (zmq_errno ()), address);
    error->open = false;
    return true;
}

void listen_end (void *socket, void *monitor, const char *uri, listen_event_t *tell, void *context)
{
    uint16_t event = 0;
    uint32_t value;
    zmq_pollitem_t item = {monitor, 0, ZMQ_POLLIN, 0};
    bool open = zmq_unbind (socket, uri) == 0;
    while (open && zmq_poll (&item, 1, LISTEN_END_MS) > 0)
        while (open && monitor_receive (monitor, &event, &value)) {
            open = event != ZMQ_EVENT_CLOSED;
            if (open)
                tell (context, event, value);
        }
}
