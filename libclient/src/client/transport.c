/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

#include "client/transport.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "taskmq_types.h"

enum {
    /* Full messages of 320 KiB: 5 MiB at most wait inside of libzmq, the rest in our outbox. */
    SEND_MESSAGES_MAX = 16,
    RECEIVE_MESSAGES_MAX = 256,
    FRAME_BYTES_MAX = TMQ_FRAME_BYTES_MAX + 64, /* CURVE adds 33 */
    KEEPALIVE_IDLE_S = 10,
    RECONNECT_NEVER_MS = 24 * 60 * 60 * 1000,
    WATCHED_EVENTS = ZMQ_EVENT_CONNECTED | ZMQ_EVENT_HANDSHAKE_SUCCEEDED | ZMQ_EVENT_CLOSED |
                     ZMQ_EVENT_CONNECT_RETRIED | ZMQ_EVENT_DISCONNECTED |
                     ZMQ_EVENT_HANDSHAKE_FAILED_NO_DETAIL | ZMQ_EVENT_HANDSHAKE_FAILED_PROTOCOL |
                     ZMQ_EVENT_HANDSHAKE_FAILED_AUTH,
    ZAP_TEMPORARY = 300 /* the broker cannot tell now; 400 and 500 are its last word */
};

static void transport_close (transport_t *self)
{
    if (self->socket == NULL)
        return;
    zmq_socket_monitor (self->socket, NULL, 0);
    if (self->monitor != NULL)
        zmq_close (self->monitor);
    zmq_close (self->socket); /* LINGER is 0 */
    self->socket = NULL;
    self->monitor = NULL;
    self->connection = 0;
    self->met = false;
    self->reached = false;
    self->ready = false;
}

static bool set_int (void *socket, int option, int value)
{
    return zmq_setsockopt (socket, option, &value, sizeof value) == 0;
}

/* A socket lives for one connection: the library makes a new one itself, so libzmq's own attempt
 * comes far too late to matter. Neither IMMEDIATE nor RECONNECT_IVL -1 may be used for that: with
 * either of them libzmq 4.3.4 ends the pipe at once when the connection goes, and a recv between
 * the two frames of a message then fails its assertion (!_more in fq.cpp), which aborts the
 * application. */
static bool socket_options (void *socket)
{
    int64_t frame_max = FRAME_BYTES_MAX;
    return set_int (socket, ZMQ_LINGER, 0) && set_int (socket, ZMQ_SNDHWM, SEND_MESSAGES_MAX) &&
           set_int (socket, ZMQ_RCVHWM, RECEIVE_MESSAGES_MAX) &&
           set_int (socket, ZMQ_RECONNECT_IVL, RECONNECT_NEVER_MS) &&
           set_int (socket, ZMQ_TCP_KEEPALIVE, 1) &&
           set_int (socket, ZMQ_TCP_KEEPALIVE_IDLE, KEEPALIVE_IDLE_S) &&
           zmq_setsockopt (socket, ZMQ_MAXMSGSIZE, &frame_max, sizeof frame_max) == 0;
}

/* libzmq keeps copies of its own. */
static bool use_keys (void *socket, const curve_t *curve)
{
    return curve == NULL ||
           (zmq_setsockopt (socket, ZMQ_CURVE_SERVERKEY, curve->server.bytes, KEY_BYTES) == 0 &&
            zmq_setsockopt (socket, ZMQ_CURVE_PUBLICKEY, curve->own.bytes, KEY_BYTES) == 0 &&
            zmq_setsockopt (socket, ZMQ_CURVE_SECRETKEY, curve->secret.bytes, KEY_BYTES) == 0);
}

/* The monitor is there before the connection is begun, so that nothing is missed. */
static bool watch (transport_t *self)
{
    char address[48];
    snprintf (address, sizeof address, "inproc://taskmq-monitor-%" PRIu64, self->connection);
    if (zmq_socket_monitor (self->socket, address, WATCHED_EVENTS) != 0)
        return false;
    self->monitor = zmq_socket (self->context, ZMQ_PAIR);
    return self->monitor != NULL && set_int (self->monitor, ZMQ_LINGER, 0) &&
           zmq_connect (self->monitor, address) == 0;
}

static bool descriptor (void *socket, int *fd)
{
    size_t size = sizeof *fd;
    return zmq_getsockopt (socket, ZMQ_FD, fd, &size) == 0;
}

bool transport_connect (transport_t *self, uint64_t connection, const char *endpoint,
                        const curve_t *curve, char *text, size_t text_size)
{
    transport_close (self);
    if (connection == 0)
        return true;
    self->socket = zmq_socket (self->context, ZMQ_DEALER);
    self->connection = connection;
    self->monitor_news = true;
    if (self->socket != NULL && socket_options (self->socket) && use_keys (self->socket, curve) &&
        watch (self) && descriptor (self->socket, &self->socket_fd) &&
        descriptor (self->monitor, &self->monitor_fd) && zmq_connect (self->socket, endpoint) == 0)
        return true;
    snprintf (text, text_size, "%s", zmq_strerror (zmq_errno ()));
    transport_close (self);
    return false;
}

static bool more_frames (void *socket)
{
    int more = 0;
    size_t size = sizeof more;
    return zmq_getsockopt (socket, ZMQ_RCVMORE, &more, &size) == 0 && more != 0;
}

static void skip_frames (void *socket)
{
    while (more_frames (socket)) {
        zmq_msg_t frame;
        zmq_msg_init (&frame);
        int got = zmq_msg_recv (&frame, socket, ZMQ_DONTWAIT);
        zmq_msg_close (&frame);
        if (got < 0)
            return;
    }
}

/* A thread of the application may get its signals in the middle of these. */
static bool receive_frame (void *socket, zmq_msg_t *frame)
{
    int got;
    do
        got = zmq_msg_recv (frame, socket, ZMQ_DONTWAIT);
    while (got < 0 && zmq_errno () == EINTR);
    return got >= 0;
}

static bool send_frame (void *socket, zmq_msg_t *frame, int flags)
{
    int sent;
    do
        sent = zmq_msg_send (frame, socket, flags);
    while (sent < 0 && zmq_errno () == EINTR);
    return sent >= 0;
}

int transport_receive (transport_t *self, transport_message_t *out)
{
    if (self->socket == NULL)
        return 0;
    zmq_msg_init (&out->envelope);
    zmq_msg_init (&out->body);
    out->has_body = false;
    if (!receive_frame (self->socket, &out->envelope))
        return 0;
    if (more_frames (self->socket))
        out->has_body = receive_frame (self->socket, &out->body);
    if (!more_frames (self->socket))
        return 1;
    skip_frames (self->socket);
    transport_message_close (out);
    return -1;
}

void transport_message_close (transport_message_t *message)
{
    zmq_msg_close (&message->envelope);
    zmq_msg_close (&message->body);
}

static int events_of (void *socket)
{
    int events = 0;
    size_t size = sizeof events;
    return zmq_getsockopt (socket, ZMQ_EVENTS, &events, &size) == 0 ? events : 0;
}

bool transport_writable (transport_t *self)
{
    return self->socket != NULL && (events_of (self->socket) & ZMQ_POLLOUT) != 0;
}

bool transport_send (transport_t *self, zmq_msg_t *envelope, zmq_msg_t *body)
{
    bool sent = send_frame (self->socket, envelope,
                            body != NULL ? ZMQ_DONTWAIT | ZMQ_SNDMORE : ZMQ_DONTWAIT);
    if (sent && body != NULL)
        sent = send_frame (self->socket, body, ZMQ_DONTWAIT);
    zmq_msg_close (envelope);
    if (body != NULL)
        zmq_msg_close (body);
    return sent;
}

/* The connection could not be made. */
static bool is_nobody (uint16_t event)
{
    return event == ZMQ_EVENT_CLOSED || event == ZMQ_EVENT_CONNECT_RETRIED;
}

static transport_end_t end_of (uint16_t event, uint32_t value)
{
    if (is_nobody (event))
        return TRANSPORT_NOBODY;
    switch (event) {
    case ZMQ_EVENT_DISCONNECTED: return TRANSPORT_CLOSED;
    case ZMQ_EVENT_HANDSHAKE_FAILED_NO_DETAIL: return TRANSPORT_SILENCE;
    case ZMQ_EVENT_HANDSHAKE_FAILED_AUTH:
        return value == ZAP_TEMPORARY ? TRANSPORT_LATER : TRANSPORT_REFUSED;
    default:
        return value == ZMQ_PROTOCOL_ERROR_ZMTP_MECHANISM_MISMATCH ? TRANSPORT_MECHANISM
                                                                   : TRANSPORT_NO_PROTOCOL;
    }
}

/* One event of the monitor: two frames, the first with its number (16 bits) and a value (32). */
static bool next_event (transport_t *self, uint16_t *event, uint32_t *value)
{
    zmq_msg_t frame;
    zmq_msg_init (&frame);
    bool got =
        zmq_msg_recv (&frame, self->monitor, ZMQ_DONTWAIT) == (int) (sizeof *event + sizeof *value);
    if (got) {
        memcpy (event, zmq_msg_data (&frame), sizeof *event);
        memcpy (value, (const uint8_t *) zmq_msg_data (&frame) + sizeof *event, sizeof *value);
        skip_frames (self->monitor);
    }
    zmq_msg_close (&frame);
    return got;
}

transport_end_t transport_watch (transport_t *self)
{
    uint16_t event;
    uint32_t value;
    while (self->monitor != NULL && self->monitor_news) {
        if (!next_event (self, &event, &value)) {
            self->monitor_news = false;
            continue;
        }
        self->reached = self->reached || event == ZMQ_EVENT_CONNECTED;
        if (event == ZMQ_EVENT_CONNECTED)
            continue;
        self->met = self->met || !is_nobody (event);
        if (event != ZMQ_EVENT_HANDSHAKE_SUCCEEDED)
            return end_of (event, value);
        self->ready = true;
    }
    return TRANSPORT_GOES_ON;
}

static void clear_wake (int fd)
{
    uint64_t wakes;
    ssize_t got = read (fd, &wakes, sizeof wakes);
    (void) got; /* it is only a signal, and not blocking */
}

void transport_pause (transport_t *self, long timeout_ns)
{
    const struct timespec timeout = {0, timeout_ns};
    struct pollfd wake = {self->wake_fd, POLLIN, 0};
    if (ppoll (&wake, 1, &timeout, NULL) > 0)
        clear_wake (self->wake_fd);
}

/* The descriptor of a ZeroMQ socket becomes readable with news for the socket, and stays so only
 * until the socket is used next, also for sending: so it is asked what it holds before each wait.
 * The monitor is used by transport_watch alone, which reads until nothing is left. (zmq_poll does
 * the same with five more system calls.) */
void transport_wait (transport_t *self, bool for_output, long timeout_ms)
{
    struct pollfd items[3] = {{self->wake_fd, POLLIN, 0}};
    nfds_t count = 1;
    if (self->socket != NULL) {
        int wanted = for_output && self->ready ? ZMQ_POLLIN | ZMQ_POLLOUT : ZMQ_POLLIN;
        if ((events_of (self->socket) & wanted) != 0 || self->monitor_news)
            return;
        items[count++] = (struct pollfd){self->socket_fd, POLLIN, 0};
        items[count++] = (struct pollfd){self->monitor_fd, POLLIN, 0};
    }
    int ready = poll (items, count, timeout_ms < INT_MAX ? (int) timeout_ms : INT_MAX);
    if (ready > 0 && items[0].revents != 0)
        clear_wake (self->wake_fd);
    self->monitor_news = ready > 0 && items[2].revents != 0;
}
