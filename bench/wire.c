/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* A blocking, buffered TCP connection for the peers that speak in lines. */

#include "bench.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

enum { RECEIVE_SECONDS = 300 };

wire_t *wire_connect (int port)
{
    wire_t *self = need_memory (calloc (1, sizeof *self));
    self->fd = socket (AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons ((uint16_t) port)};
    address.sin_addr.s_addr = htonl (INADDR_LOOPBACK);
    int on = 1;
    struct timeval limit = {RECEIVE_SECONDS, 0};
    if (self->fd < 0 || connect (self->fd, (struct sockaddr *) &address, sizeof address) != 0)
        die ("port %d: %s", port, strerror (errno));
    setsockopt (self->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    setsockopt (self->fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    return self;
}

void wire_close (wire_t *self)
{
    close (self->fd);
    free (self);
}

void wire_flush (wire_t *self)
{
    for (size_t sent = 0; sent < self->out_length;) {
        ssize_t count = send (self->fd, self->out + sent, self->out_length - sent, MSG_NOSIGNAL);
        if (count < 0)
            die ("a peer: send: %s", strerror (errno));
        sent += (size_t) count;
    }
    self->out_length = 0;
}

void wire_put (wire_t *self, const void *bytes, size_t length)
{
    if (length > sizeof self->out)
        die ("a peer: a message of %zu bytes", length);
    if (self->out_length + length > sizeof self->out)
        wire_flush (self);
    memcpy (self->out + self->out_length, bytes, length);
    self->out_length += length;
}

static void wire_fill (wire_t *self)
{
    if (self->in_first > 0) {
        memmove (self->in, self->in + self->in_first, self->in_length - self->in_first);
        self->in_length -= self->in_first;
        self->in_first = 0;
    }
    if (self->in_length == sizeof self->in)
        die ("a peer: an answer is too long");
    ssize_t count =
        recv (self->fd, self->in + self->in_length, sizeof self->in - self->in_length, 0);
    if (count <= 0)
        die ("a peer: receive: %s", count == 0 ? "the connection ended" : strerror (errno));
    self->in_length += (size_t) count;
}

const char *wire_line (wire_t *self)
{
    for (size_t seen = 0;;) {
        char *first = self->in + self->in_first;
        size_t length = self->in_length - self->in_first;
        char *end = memchr (first + seen, '\n', length - seen);
        if (end) {
            self->in_first += (size_t) (end - first) + 1;
            end[end > first && end[-1] == '\r' ? -1 : 0] = '\0';
            return first;
        }
        seen = length;
        wire_fill (self);
    }
}

void wire_read (wire_t *self, void *out, size_t length)
{
    for (size_t done = 0; done < length;) {
        size_t there = self->in_length - self->in_first;
        if (there == 0) {
            wire_fill (self);
            continue;
        }
        size_t part = there < length - done ? there : length - done;
        memcpy ((char *) out + done, self->in + self->in_first, part);
        self->in_first += part;
        done += part;
    }
}
