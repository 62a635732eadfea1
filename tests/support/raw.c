/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

#include "support/raw.h"

#include <stdlib.h>
#include <string.h>
#include <zmq.h>

#include "support/cmocka_all.h"
#include "support/timing.h"
#include "taskmq_types.h"

void raw_open (raw_t *self, const char *endpoint)
{
    int zero = 0;
    int patience = TIMING_PATIENCE_MS;
    memset (self, 0, sizeof *self);
    self->context = zmq_ctx_new ();
    self->socket = zmq_socket (self->context, ZMQ_DEALER);
    zmq_setsockopt (self->socket, ZMQ_LINGER, &zero, sizeof zero);
    zmq_setsockopt (self->socket, ZMQ_RCVTIMEO, &patience, sizeof patience);
    zmq_setsockopt (self->socket, ZMQ_SNDTIMEO, &patience, sizeof patience);
    assert_int_equal (zmq_connect (self->socket, endpoint), 0);
}

void raw_close (raw_t *self)
{
    zmq_close (self->socket);
    zmq_ctx_term (self->context);
}

void raw_send (raw_t *self, const void *const *frames, const size_t *sizes, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        int more = i + 1 < count ? ZMQ_SNDMORE : 0;
        assert_int_equal (zmq_send (self->socket, frames[i], sizes[i], more), sizes[i]);
    }
}

Taskmq__BrokerMessage *raw_receive (raw_t *self)
{
    zmq_msg_t frame;
    Taskmq__BrokerMessage *message = NULL;
    int more = 1;
    for (int i = 0; more; i++) {
        zmq_msg_init (&frame);
        if (zmq_msg_recv (&frame, self->socket, 0) < 0) {
            fail_msg ("the broker sends nothing");
        }
        if (i == 0) {
            message =
                taskmq__broker_message__unpack (NULL, zmq_msg_size (&frame), zmq_msg_data (&frame));
        }
        more = zmq_msg_more (&frame);
        zmq_msg_close (&frame);
    }
    assert_non_null (message);
    return message;
}

static const Taskmq__Reply *find_reply (const Taskmq__BrokerMessage *message, uint64_t id)
{
    for (size_t i = 0; i < message->n_replies; i++)
        if (message->replies[i]->id == id)
            return message->replies[i];
    return NULL;
}

Taskmq__BrokerMessage *raw_answer (raw_t *self, uint64_t id, const Taskmq__Reply **reply)
{
    Taskmq__BrokerMessage *message = raw_receive (self);
    for (; (*reply = find_reply (message, id)) == NULL; message = raw_receive (self))
        taskmq__broker_message__free_unpacked (message, NULL);
    return message;
}

/* Takes the token out of a welcome. */
static uint32_t wait_for_reply (raw_t *self, uint64_t id)
{
    const Taskmq__Reply *reply;
    Taskmq__BrokerMessage *message = raw_answer (self, id, &reply);
    uint32_t code = reply->code;
    if (reply->body_case == TASKMQ__REPLY__BODY_WELCOME) {
        assert_int_equal (reply->welcome->token.len, sizeof self->token);
        memcpy (self->token, reply->welcome->token.data, sizeof self->token);
    }
    taskmq__broker_message__free_unpacked (message, NULL);
    return code;
}

uint64_t raw_begin (raw_t *self, Taskmq__Request *request, const void *body, size_t body_bytes)
{
    static const uint8_t no_token[16];
    Taskmq__ClientMessage message = TASKMQ__CLIENT_MESSAGE__INIT;
    request->id = ++self->next_id;
    message.requests = &request;
    message.n_requests = 1;
    if (memcmp (self->token, no_token, sizeof no_token) != 0) {
        message.token.data = self->token;
        message.token.len = sizeof self->token;
    }
    size_t size = taskmq__client_message__get_packed_size (&message);
    uint8_t *packed = malloc (size);
    taskmq__client_message__pack (&message, packed);
    const void *frames[] = {packed, body};
    const size_t sizes[] = {size, body_bytes};
    raw_send (self, frames, sizes, body != NULL ? 2 : 1);
    free (packed);
    return request->id;
}

uint32_t raw_request (raw_t *self, Taskmq__Request *request, const void *body, size_t body_bytes)
{
    return wait_for_reply (self, raw_begin (self, request, body, body_bytes));
}

uint32_t raw_say_hello (raw_t *self, uint32_t features)
{
    Taskmq__Hello hello = TASKMQ__HELLO__INIT;
    Taskmq__Request request = TASKMQ__REQUEST__INIT;
    hello.version_min = TMQ_PROTOCOL_VERSION;
    hello.version_max = TMQ_PROTOCOL_VERSION;
    hello.client = "raw";
    hello.features = features;
    request.op_case = TASKMQ__REQUEST__OP_HELLO;
    request.hello = &hello;
    return raw_request (self, &request, NULL, 0);
}

void raw_hello (raw_t *self)
{
    assert_int_equal (raw_say_hello (self, 0), TMQ_OK);
}

uint32_t raw_refusal (raw_t *self)
{
    return wait_for_reply (self, 0);
}
