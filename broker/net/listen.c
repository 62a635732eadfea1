/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

#include "net/listen.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zmq.h>

#include "net/socket.h"

enum { NETWORK_SIZE = 64 }; /* ::ffff:255.255.255.255/128, and more */

static bool refuse (listen_error_t *error, bool open, const char *why, const address_t *address)
{
    error->open = open;
    snprintf (error->text, sizeof (error->text), "cannot listen on %s: %s", address->uri, why);
    return false;
}

/* A socket of IPv6 sees addresses of IPv4 as ::ffff:a.b.c.d, and would take the length of a network
 * for that of theirs: 10.0.0.0/8 would be all of them. One of IPv4 alone takes no others. */
static bool allow (void *socket, const address_t *address, const char *network)
{
    enum { MAPPED_BITS = 96, IPV4_BITS = 32 };
    char mapped[NETWORK_SIZE];
    const char *slash = strchr (network, '/');
    int length = slash != NULL ? (int) (slash - network) : (int) strlen (network);
    if (strchr (network, ':') != NULL)
        return !address->ipv6 || socket_allow (socket, network);
    if (!address->ipv6)
        return socket_allow (socket, network);
    snprintf (mapped, sizeof (mapped), "::ffff:%.*s/%d", length, network,
              MAPPED_BITS + (slash != NULL ? atoi (slash + 1) : IPV4_BITS));
    return socket_allow (socket, mapped);
}

/* The machine itself may always connect: the look whether the door is shut comes from there. */
static bool allow_networks (void *socket, const address_t *address, const guard_t *guard)
{
    char host[ADDRESS_URI_SIZE];
    if (guard->networks_count == 0 || address->kind != ADDRESS_TCP)
        return true;
    bool good = zmq_setsockopt (socket, ZMQ_TCP_ACCEPT_FILTER, NULL, 0) == 0 &&
                allow (socket, address, "127.0.0.0/8") && allow (socket, address, "::1/128");
    for (size_t i = 0; good && i < guard->networks_count; i++)
        good = allow (socket, address, guard->networks[i]);
    if (!good || address->any)
        return good;
    address_host (address, host, sizeof (host));
    return allow (socket, address, host);
}

uint64_t listen_threads (unsigned io_threads, bool curve)
{
    static const uint64_t first = 1;
    if (io_threads < 2)
        return 0;
    return curve ? (first << io_threads) - 1 - first : first;
}

/* A handshake costs half a millisecond: who speaks without keys does not wait behind those. */
static bool choose_threads (void *socket, const address_t *address, const guard_t *guard)
{
    uint64_t threads = listen_threads (guard->io_threads, address->curve);
    return zmq_setsockopt (socket, ZMQ_AFFINITY, &threads, sizeof (threads)) == 0;
}

bool listen_bind (void *socket, const address_t *address, const char *domain, const guard_t *guard,
                  listen_error_t *error)
{
    const key_secret_t *key = address->curve ? guard->server_key : NULL;
    if (address->curve && key == NULL)
        return refuse (error, true, "there is no key of the broker", address);
    socket_set (socket, ZMQ_IPV6, address->ipv6);
    socket_set (socket, ZMQ_HANDSHAKE_IVL,
                guard->handshake_ms > 0 ? guard->handshake_ms : SOCKET_HANDSHAKE_MS);
    if (!socket_guard (socket, domain, key))
        return refuse (error, true, "ZeroMQ does not guard it", address);
    if (!allow_networks (socket, address, guard))
        return refuse (error, true, "ZeroMQ does not take the networks that are allowed", address);
    if (!choose_threads (socket, address, guard))
        return refuse (error, false, "ZeroMQ does not take its threads", address);
    if (zmq_bind (socket, address->uri) != 0)
        return refuse (error, false, zmq_strerror (zmq_errno ()), address);
    error->open = false;
    return true;
}

void listen_close (void *socket, const char *uri, closing_t *closing, int64_t now_ms)
{
    if (zmq_unbind (socket, uri) != 0)
        return; /* it is not bound */
    closing->count++;
    closing->until_ms = now_ms + LISTEN_END_MS;
}

void listen_closed (closing_t *closing)
{
    if (closing->count == 0)
        return; /* it came too late */
    closing->count--;
    closing->ended = closing->count == 0;
}

bool listen_is_closing (const closing_t *closing)
{
    return closing->count > 0 || closing->ended;
}

bool listen_all_closed (closing_t *closing, int64_t now_ms)
{
    if (closing->count > 0 && now_ms < closing->until_ms)
        return false;
    *closing = (closing_t){0};
    return true;
}
