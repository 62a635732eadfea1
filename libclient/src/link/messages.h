/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Messages for the broker: as many requests in one as fit. */
#ifndef TASKMQ_CLIENT_MESSAGES_H
#define TASKMQ_CLIENT_MESSAGES_H

#include "link/requests.h"

typedef struct core_message {
    const uint8_t *envelope; /* borrowed until the next call */
    size_t envelope_bytes;
    const uint8_t *body; /* NULL: one frame */
    size_t body_bytes;
} core_message_t;

typedef struct core_messages {
    core_requests_t *requests;
    uint64_t goodbye; /* number of the goodbye that was sent, 0: none */
    bytes_t envelope;
    bytes_t body;
} core_messages_t;

/* False when memory is exhausted. */
bool core_messages_init (core_messages_t *self, core_requests_t *requests);
void core_messages_free (core_messages_t *self);
/* True if some request may be sent now. */
bool core_messages_waiting (const core_messages_t *self);
/* The hello, which is a message of its own. False if it could not be made. */
bool core_messages_hello (core_messages_t *self, core_message_t *out);
/* The next requests; with the goodbye, when the link is being left and nothing else is left. False
 * when there is nothing to send. */
bool core_messages_next (core_messages_t *self, core_message_t *out);
void core_messages_heartbeat (core_messages_t *self);

#endif
