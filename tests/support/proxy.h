/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* A bad network: a TCP proxy on the loopback between library and broker. Each connection that it
 * accepts has a connection of its own to the broker; what happens to the bytes is one mode for all
 * of them, changed at any time by any thread. */
#ifndef TASKMQ_TESTS_PROXY_H
#define TASKMQ_TESTS_PROXY_H

#include <stdbool.h>
#include <stddef.h>

/* What happens to the bytes: number, NAME, text. */
#define PROXY_MODE_MAP(X)                                                                          \
    X (0, CLEAR, "everything passes")                                                              \
    X (1, DELAY, "every piece waits up to 50 ms")                                                  \
    X (2, THROTTLE, "a few hundred bytes every 10 ms")                                             \
    X (3, SPLIT, "every byte by itself")                                                           \
    X (4, BLACKHOLE_UP, "nothing reaches the broker, the connection stands")                       \
    X (5, BLACKHOLE_DOWN, "nothing reaches the client, the connection stands")                     \
    X (6, REFUSE, "new connections are closed at once")                                            \
    X (7, BLACKHOLE, "nothing passes either way, the connection stands")

typedef enum proxy_mode {
#define X(number, NAME, text) PROXY_##NAME = number,
    PROXY_MODE_MAP (X)
#undef X
        PROXY_MODES
} proxy_mode_t;

/* What happens to the connections that exist, once. */
typedef enum proxy_cut {
    PROXY_CUT_CLOSE = 0, /* an orderly end of both sides */
    PROXY_CUT_RESET,     /* RST to both sides */
    PROXY_CUT_HALF,      /* the client's side is shut for writing; the rest goes on for a while */
    PROXY_CUTS
} proxy_cut_t;

typedef struct proxy proxy_t;

/* Listens on a free port and forwards to the broker's port. Starts a thread. */
proxy_t *proxy_new (int broker_port, unsigned seed);
void proxy_free (proxy_t *self);
/* tcp://127.0.0.1:PORT, valid as long as the proxy. */
const char *proxy_endpoint (const proxy_t *self);
/* What was held back passes when the mode allows it. */
void proxy_set (proxy_t *self, proxy_mode_t mode);
void proxy_cut (proxy_t *self, proxy_cut_t how);

#endif
