/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Failure: an error of a socket that is no peer's doing cannot happen while the socket is ours, so
 * it is an assert. */
#include "net/socket.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

enum {
    ZAP_ENFORCE_DOMAIN = 93, /* stands among the drafts of zmq.h, and in every libzmq since 4.3.1 */
    BACKLOG = 1024,          /* connections that wait for accept: a crowd that comes back at once */
    KEEPALIVE_IDLE_S = 30,
    KEEPALIVE_INTERVAL_S = 10,
    KEEPALIVE_COUNT = 3
};

void socket_set (void *socket, int option, int value)
{
    int rc = zmq_setsockopt (socket, option, &value, sizeof (value));
    assert (rc == 0);
}

int socket_fd (void *socket)
{
    int fd;
    size_t size = sizeof (fd);
    int rc = zmq_getsockopt (socket, ZMQ_FD, &fd, &size);
    assert (rc == 0);
    return fd;
}

/* libzmq takes the mechanism from whichever option of one was set last. */
static bool set_mechanism (void *socket, const key_secret_t *key)
{
    int mechanism = -1;
    size_t size = sizeof (mechanism);
    return (key == NULL ||
            zmq_setsockopt (socket, ZMQ_CURVE_SECRETKEY, key->bytes, sizeof (key->bytes)) == 0) &&
           zmq_setsockopt (socket, ZMQ_CURVE_SERVER, &(int){key != NULL}, sizeof (int)) == 0 &&
           zmq_getsockopt (socket, ZMQ_MECHANISM, &mechanism, &size) == 0 &&
           mechanism == (key != NULL ? ZMQ_CURVE : ZMQ_NULL);
}

bool socket_guard (void *socket, const char *domain, const key_secret_t *key)
{
    char read[SOCKET_DOMAIN_MAX + 1];
    size_t read_size = sizeof (read);
    int enforced = 0;
    size_t enforced_size = sizeof (enforced);
    size_t length = strlen (domain);
    return length > 0 && length <= SOCKET_DOMAIN_MAX &&
           zmq_setsockopt (socket, ZMQ_ZAP_DOMAIN, domain, length) == 0 &&
           zmq_setsockopt (socket, ZAP_ENFORCE_DOMAIN, &(int){1}, sizeof (int)) == 0 &&
           zmq_getsockopt (socket, ZMQ_ZAP_DOMAIN, read, &read_size) == 0 &&
           zmq_getsockopt (socket, ZAP_ENFORCE_DOMAIN, &enforced, &enforced_size) == 0 &&
           strcmp (read, domain) == 0 && enforced == 1 && set_mechanism (socket, key);
}

bool socket_allow (void *socket, const char *network)
{
    return zmq_setsockopt (socket, ZMQ_TCP_ACCEPT_FILTER, network, strlen (network)) == 0;
}

void socket_limit (void *socket, int64_t frame_bytes)
{
    socket_set (socket, ZMQ_BACKLOG, BACKLOG);
    socket_set (socket, ZMQ_TCP_KEEPALIVE, 1);
    socket_set (socket, ZMQ_TCP_KEEPALIVE_IDLE, KEEPALIVE_IDLE_S);
    socket_set (socket, ZMQ_TCP_KEEPALIVE_INTVL, KEEPALIVE_INTERVAL_S);
    socket_set (socket, ZMQ_TCP_KEEPALIVE_CNT, KEEPALIVE_COUNT);
    int rc = zmq_setsockopt (socket, ZMQ_MAXMSGSIZE, &frame_bytes, sizeof (frame_bytes));
    assert (rc == 0);
}

bool socket_receive (void *socket, zmq_msg_t *frame, int flags)
{
    while (zmq_msg_recv (frame, socket, flags) < 0) {
        assert (zmq_errno () == EINTR || zmq_errno () == EAGAIN);
        if (zmq_errno () == EAGAIN)
            return false;
    }
    return true;
}

/* An event of the monitor: 16 bits of event and 32 of value, then a frame with the address. */
bool monitor_receive (void *monitor, uint16_t *event, uint32_t *value)
{
    zmq_msg_t frame;
    zmq_msg_init (&frame);
    if (!socket_receive (monitor, &frame, ZMQ_DONTWAIT))
        return false;
    assert (zmq_msg_size (&frame) == sizeof (*event) + sizeof (*value));
    const uint8_t *bytes = zmq_msg_data (&frame);
    memcpy (event, bytes, sizeof (*event));
    memcpy (value, bytes + sizeof (*event), sizeof (*value));
    while (zmq_msg_more (&frame))
        socket_receive (monitor, &frame, 0);
    zmq_msg_close (&frame);
    return true;
}

static void *open_events (void *context, void *socket, int events)
{
    char address[64];
    snprintf (address, sizeof (address), "inproc://taskmqd-monitor-%p", socket);
    if (zmq_socket_monitor (socket, address, events) != 0)
        return NULL;
    void *monitor = zmq_socket (context, ZMQ_PAIR);
    if (monitor == NULL)
        return NULL;
    /* Without a high-water mark: libzmq's I/O thread would wait for a frozen server. */
    socket_set (monitor, ZMQ_RCVHWM, 0);
    socket_set (monitor, ZMQ_LINGER, 0);
    if (zmq_connect (monitor, address) == 0)
        return monitor;
    zmq_close (monitor);
    return NULL;
}

void *monitor_open (void *context, void *socket)
{
    return open_events (context, socket,
                        ZMQ_EVENT_ACCEPTED | ZMQ_EVENT_DISCONNECTED | ZMQ_EVENT_ACCEPT_FAILED |
                            ZMQ_EVENT_CLOSED);
}

void *handshakes_open (void *context, void *socket)
{
    return open_events (context, socket,
                        ZMQ_EVENT_HANDSHAKE_SUCCEEDED | ZMQ_EVENT_HANDSHAKE_FAILED_AUTH |
                            ZMQ_EVENT_HANDSHAKE_FAILED_PROTOCOL |
                            ZMQ_EVENT_HANDSHAKE_FAILED_NO_DETAIL);
}
