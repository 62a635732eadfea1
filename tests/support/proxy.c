/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* One thread, one poll loop; all state below the mutex is touched by that thread alone except
 * mode, cut and the count of connections. A system call that fails on a connection ends that
 * connection: it is a bad network. */
#include "support/proxy.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "support/cmocka_all.h"
#include "support/timing.h"

enum {
    PAIRS_MAX = 256,
    PIECE_BYTES = 16384,
    THROTTLED_BYTES = 400,
    SPLIT_BYTES_MAX = 64, /* single bytes of one round */
    DELAY_MS_MAX = 50,
    ROUND_MS = 10
};

/* Bytes that were read on one side and wait for the other. */
typedef struct pipe_side {
    int from;
    int to;
    uint8_t bytes[PIECE_BYTES];
    size_t length;
    size_t sent;
    int64_t due_ms; /* not before */
    bool ended;     /* from has no more; to is told when the rest is sent */
    bool told;
} pipe_side_t;

typedef struct pair {
    pipe_side_t up; /* client to broker */
    pipe_side_t down;
} pair_t;

struct proxy {
    int listener;
    int broker_port;
    unsigned seed;
    char endpoint[64];
    pthread_t thread;
    atomic_int mode;
    atomic_int cut; /* proxy_cut_t + 1, 0: none wanted */
    atomic_bool stop;
    atomic_size_t connections;
    pair_t *pairs[PAIRS_MAX];
    size_t pairs_count;
};

static struct sockaddr_in loopback (int port)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons ((uint16_t) port)};
    address.sin_addr.s_addr = htonl (INADDR_LOOPBACK);
    return address;
}

static void set_reset (int fd)
{
    struct linger linger = {1, 0};
    setsockopt (fd, SOL_SOCKET, SO_LINGER, &linger, sizeof linger);
}

/* Connections. */

static void pair_close (proxy_t *self, size_t at, bool reset)
{
    pair_t *pair = self->pairs[at];
    if (reset) {
        set_reset (pair->up.from);
        set_reset (pair->down.from);
    }
    close (pair->up.from);
    close (pair->down.from);
    free (pair);
    self->pairs[at] = self->pairs[--self->pairs_count];
    atomic_store (&self->connections, self->pairs_count);
}

static void accept_one (proxy_t *self)
{
    int client = accept4 (self->listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (client < 0) {
        return;
    }
    int on = 1;
    struct sockaddr_in address = loopback (self->broker_port);
    int broker = socket (AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    bool refused = atomic_load (&self->mode) == PROXY_REFUSE || self->pairs_count == PAIRS_MAX;
    if (refused || connect (broker, (struct sockaddr *) &address, sizeof address) < 0) {
        set_reset (client);
        close (client);
        close (broker);
        return;
    }
    setsockopt (client, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    setsockopt (broker, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    pair_t *pair = calloc (1, sizeof *pair);
    pair->up = (pipe_side_t){.from = client, .to = broker};
    pair->down = (pipe_side_t){.from = broker, .to = client};
    self->pairs[self->pairs_count++] = pair;
    atomic_store (&self->connections, self->pairs_count);
}

static void carry_out_cut (proxy_t *self)
{
    int cut = atomic_exchange (&self->cut, 0) - 1;
    if (cut == PROXY_CUT_HALF) {
        for (size_t i = 0; i < self->pairs_count; i++) {
            shutdown (self->pairs[i]->up.to, SHUT_WR);
        }
    } else if (cut >= 0) {
        while (self->pairs_count > 0) {
            pair_close (self, self->pairs_count - 1, cut == PROXY_CUT_RESET);
        }
    }
}

/* Bytes. */

/* False when the connection is over. */
static bool read_side (proxy_t *self, pipe_side_t *side)
{
    ssize_t length = recv (side->from, side->bytes, sizeof side->bytes, MSG_DONTWAIT);
    if (length < 0) {
        return errno == EAGAIN || errno == EINTR;
    }
    if (length == 0) {
        side->ended = true;
        return true;
    }
    side->length = (size_t) length;
    side->sent = 0;
    side->due_ms = timing_ms ();
    if (atomic_load (&self->mode) == PROXY_DELAY) {
        side->due_ms += rand_r (&self->seed) % (DELAY_MS_MAX + 1);
    }
    return true;
}

static bool send_bytes (pipe_side_t *side, size_t most)
{
    size_t left = side->length - side->sent;
    ssize_t sent = send (side->to, side->bytes + side->sent, left < most ? left : most,
                         MSG_DONTWAIT | MSG_NOSIGNAL);
    if (sent < 0) {
        return errno == EAGAIN || errno == EINTR;
    }
    side->sent += (size_t) sent;
    if (side->sent == side->length) {
        side->length = 0;
        side->sent = 0;
    }
    return true;
}

static bool is_held (const proxy_t *self, const pair_t *pair, const pipe_side_t *side)
{
    int mode = atomic_load (&self->mode);
    return mode == PROXY_BLACKHOLE || (mode == PROXY_BLACKHOLE_UP && side == &pair->up) ||
           (mode == PROXY_BLACKHOLE_DOWN && side == &pair->down);
}

/* False when the connection is over. */
static bool write_side (proxy_t *self, const pair_t *pair, pipe_side_t *side)
{
    int64_t now_ms = timing_ms ();
    if (is_held (self, pair, side)) {
        return true;
    }
    if (side->length > 0 && now_ms >= side->due_ms) {
        int mode = atomic_load (&self->mode);
        if (mode == PROXY_SPLIT) {
            for (int i = 0; i < SPLIT_BYTES_MAX && side->length > 0; i++) {
                if (!send_bytes (side, 1)) {
                    return false;
                }
            }
        } else if (mode == PROXY_THROTTLE) {
            side->due_ms = now_ms + ROUND_MS;
            return send_bytes (side, THROTTLED_BYTES);
        } else {
            return send_bytes (side, side->length);
        }
    }
    if (side->length == 0 && side->ended && !side->told) {
        side->told = true;
        shutdown (side->to, SHUT_WR);
    }
    return true;
}

static bool serve_side (proxy_t *self, const pair_t *pair, pipe_side_t *side, short events)
{
    if (side->length == 0 && !side->ended && (events & (POLLIN | POLLHUP | POLLERR)) != 0 &&
        !read_side (self, side)) {
        return false;
    }
    return write_side (self, pair, side);
}

static void serve_pairs (proxy_t *self, const struct pollfd *polled)
{
    for (size_t i = self->pairs_count; i-- > 0;) {
        pair_t *pair = self->pairs[i];
        bool lives = serve_side (self, pair, &pair->up, polled[2 * i].revents) &&
                     serve_side (self, pair, &pair->down, polled[2 * i + 1].revents);
        if (!lives || (pair->up.told && pair->down.told)) {
            pair_close (self, i, !lives);
        }
    }
}

/* The thread. */

static void *run (void *context)
{
    proxy_t *self = context;
    while (!atomic_load (&self->stop)) {
        struct pollfd polled[2 * PAIRS_MAX + 1];
        bool waiting = false; /* something is held back: look again soon */
        size_t count = self->pairs_count;
        for (size_t i = 0; i < count; i++) {
            pair_t *pair = self->pairs[i];
            pipe_side_t *sides[] = {&pair->up, &pair->down};
            for (size_t k = 0; k < 2; k++) {
                bool reads = sides[k]->length == 0 && !sides[k]->ended;
                polled[2 * i + k] = (struct pollfd){reads ? sides[k]->from : -1, POLLIN, 0};
                waiting = waiting || sides[k]->length > 0;
            }
        }
        polled[2 * count] = (struct pollfd){self->listener, POLLIN, 0};
        poll (polled, 2 * count + 1, waiting ? 1 : ROUND_MS);
        serve_pairs (self, polled);
        carry_out_cut (self);
        if ((polled[2 * count].revents & POLLIN) != 0) {
            accept_one (self);
        }
    }
    while (self->pairs_count > 0) {
        pair_close (self, self->pairs_count - 1, true);
    }
    return NULL;
}

proxy_t *proxy_new (int broker_port, unsigned seed)
{
    proxy_t *self = calloc (1, sizeof *self);
    struct sockaddr_in address = loopback (0);
    socklen_t size = sizeof address;
    int on = 1;
    self->broker_port = broker_port;
    self->seed = seed;
    self->listener = socket (AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    setsockopt (self->listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    assert_int_equal (bind (self->listener, (struct sockaddr *) &address, size), 0);
    assert_int_equal (listen (self->listener, 64), 0);
    assert_int_equal (getsockname (self->listener, (struct sockaddr *) &address, &size), 0);
    snprintf (self->endpoint, sizeof self->endpoint, "tcp://127.0.0.1:%d",
              ntohs (address.sin_port));
    assert_int_equal (pthread_create (&self->thread, NULL, run, self), 0);
    return self;
}

void proxy_free (proxy_t *self)
{
    if (self != NULL) {
        atomic_store (&self->stop, true);
        pthread_join (self->thread, NULL);
        close (self->listener);
        free (self);
    }
}

const char *proxy_endpoint (const proxy_t *self)
{
    return self->endpoint;
}

void proxy_set (proxy_t *self, proxy_mode_t mode)
{
    atomic_store (&self->mode, mode);
}

void proxy_cut (proxy_t *self, proxy_cut_t how)
{
    atomic_store (&self->cut, (int) how + 1);
}
