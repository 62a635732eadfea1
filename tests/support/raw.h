/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* A bare DEALER: a client that keeps no rule of the protocol. */
#ifndef TASKMQ_TESTS_RAW_H
#define TASKMQ_TESTS_RAW_H

#include <stddef.h>
#include <stdint.h>

#include "taskmq.pb-c.h"

typedef struct raw {
    void *context;
    void *socket;
    uint8_t token[16];
    uint64_t next_id;
} raw_t;

void raw_open (raw_t *self, const char *endpoint);
void raw_close (raw_t *self);
/* Sends count frames; NULL frames are empty. */
void raw_send (raw_t *self, const void *const *frames, const size_t *sizes, size_t count);
/* The next message of the broker within the patience, else the test fails. Freed by
 * taskmq__broker_message__free_unpacked. */
Taskmq__BrokerMessage *raw_receive (raw_t *self);
/* Sends one request of ours with the token, and does not wait; its id. */
uint64_t raw_begin (raw_t *self, Taskmq__Request *request, const void *body, size_t body_bytes);
/* The message that has the reply to it, which it points into; skips everything else that comes. */
Taskmq__BrokerMessage *raw_answer (raw_t *self, uint64_t id, const Taskmq__Reply **reply);
/* Sends one request of ours with the token and returns the reply to it (a copy of its code);
 * skips everything else that comes. */
uint32_t raw_request (raw_t *self, Taskmq__Request *request, const void *body, size_t body_bytes);
/* Hello in the default namespace; the code of the answer. */
uint32_t raw_say_hello (raw_t *self, uint32_t features);
/* The same without features; fails unless it is welcomed. */
void raw_hello (raw_t *self);
/* The code of the next reply to request id 0. */
uint32_t raw_refusal (raw_t *self);

#endif
