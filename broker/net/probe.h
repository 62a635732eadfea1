/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Is the door shut? One look at each address that wants a key, before the first client comes. */
#ifndef TASKMQ_NET_PROBE_H
#define TASKMQ_NET_PROBE_H

#include <stdbool.h>
#include <stddef.h>

#include "keys.h"
#include "net/zap.h"

enum {
    /* The longest wait for the answer: several handshakes, so that a machine that stood still
     * during one is not taken for an open door. Only a door that answers nothing takes so long. */
    PROBE_MS_MAX = 20000,
    PROBE_ENDS_MAX = 3 /* connections that end without an answer */
};

/* Connects with a key that nobody knows. True when our own handler has refused it; otherwise
 * `error` says what happened instead. endpoint: as router_bind returned it, or feed_bind for a
 * feed. */
bool probe_door (void *context, zap_t *zap, const char *endpoint, bool feed,
                 const key_public_t *server, char *error, size_t error_size);

#endif
