/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* One connection after the other: that is what a broker that is refused makes. */
#include "pooler.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "support/cmocka_all.h"

enum { PIECE_BYTES = 16384, ROUND_MS = 20 };

struct pooler {
    int listener;
    int server_port;
    int port;
    pthread_t thread;
    atomic_bool stop;
};

static struct sockaddr_in loopback (int port)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons ((uint16_t) port)};
    address.sin_addr.s_addr = htonl (INADDR_LOOPBACK);
    return address;
}

/* BackendKeyData of the protocol: 'K', the length 12, the process, a secret. It comes in the first
 * piece behind the login. */
static void change_process (uint8_t *bytes, size_t length)
{
    static const uint8_t head[] = {'K', 0, 0, 0, 12};
    uint8_t *found = memmem (bytes, length, head, sizeof head);
    if (found != NULL && found + sizeof head + 4 <= bytes + length)
        found[sizeof head] ^= 0x10;
}

/* False: the connection is over. */
static bool pass (int from, int to, bool greeting)
{
    uint8_t bytes[PIECE_BYTES];
    ssize_t length = recv (from, bytes, sizeof bytes, 0);
    if (length <= 0)
        return false;
    if (greeting)
        change_process (bytes, (size_t) length);
    return send (to, bytes, (size_t) length, MSG_NOSIGNAL) == length;
}

static void serve (const pooler_t *self, int client)
{
    struct sockaddr_in address = loopback (self->server_port);
    int server = socket (AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    bool lives = connect (server, (struct sockaddr *) &address, sizeof address) == 0;
    while (lives && !atomic_load (&self->stop)) {
        struct pollfd ends[] = {{client, POLLIN, 0}, {server, POLLIN, 0}};
        poll (ends, 2, ROUND_MS);
        if (ends[0].revents != 0)
            lives = pass (client, server, false);
        if (lives && ends[1].revents != 0)
            lives = pass (server, client, true);
    }
    close (server);
    close (client);
}

static void *run (void *context)
{
    pooler_t *self = context;
    while (!atomic_load (&self->stop)) {
        struct pollfd listener = {self->listener, POLLIN, 0};
        if (poll (&listener, 1, ROUND_MS) <= 0)
            continue;
        int client = accept4 (self->listener, NULL, NULL, SOCK_CLOEXEC);
        if (client >= 0)
            serve (self, client);
    }
    return NULL;
}

pooler_t *pooler_new (int server_port)
{
    pooler_t *self = calloc (1, sizeof *self);
    struct sockaddr_in address = loopback (0);
    socklen_t size = sizeof address;
    self->server_port = server_port;
    self->listener = socket (AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal (bind (self->listener, (struct sockaddr *) &address, size), 0);
    assert_int_equal (listen (self->listener, 8), 0);
    assert_int_equal (getsockname (self->listener, (struct sockaddr *) &address, &size), 0);
    self->port = ntohs (address.sin_port);
    assert_int_equal (pthread_create (&self->thread, NULL, run, self), 0);
    return self;
}

void pooler_free (pooler_t *self)
{
    atomic_store (&self->stop, true);
    pthread_join (self->thread, NULL);
    close (self->listener);
    free (self);
}

int pooler_port (const pooler_t *self)
{
    return self->port;
}
