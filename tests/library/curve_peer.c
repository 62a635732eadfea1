/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

#include "curve_peer.h"

#include "support/cmocka_all.h"
#include "support/timing.h"

#include <string.h>
#include <zmq.h>

#include "bytes.h"
#include "taskmq.h"
#include "taskmq.pb-c.h"

enum { ZAP_FRAMES = 10, FRAME_MAX = 1024 };

static int receive (void *socket, char frames[ZAP_FRAMES][FRAME_MAX], int sizes[ZAP_FRAMES])
{
    int count = 0;
    int more = 1;
    size_t size = sizeof more;
    while (more != 0) {
        const int at = count < ZAP_FRAMES ? count++ : ZAP_FRAMES - 1;
        sizes[at] = zmq_recv (socket, frames[at], FRAME_MAX, 0);
        zmq_getsockopt (socket, ZMQ_RCVMORE, &more, &size);
    }
    return count;
}

/* version, id, domain, address, routing id, mechanism, key. */
static void judge (curve_peer_t *self)
{
    char frames[ZAP_FRAMES][FRAME_MAX];
    int sizes[ZAP_FRAMES];
    char status[4] = "200";
    const int count = receive (self->zap, frames, sizes);
    pthread_mutex_lock (&self->lock);
    if (self->status[0] != '\0')
        memcpy (status, self->status, sizeof status);
    else if (count == 7 && memcmp (frames[6], self->accepts.bytes, KEY_BYTES) != 0)
        memcpy (status, "400", sizeof status);
    pthread_mutex_unlock (&self->lock);
    zmq_send (self->zap, frames[0], (size_t) sizes[0], ZMQ_SNDMORE);
    zmq_send (self->zap, frames[1], (size_t) sizes[1], ZMQ_SNDMORE);
    zmq_send (self->zap, status, 3, ZMQ_SNDMORE);
    zmq_send (self->zap, "", 0, ZMQ_SNDMORE);
    zmq_send (self->zap, "render-7", 8, ZMQ_SNDMORE);
    zmq_send (self->zap, "", 0, 0);
    atomic_fetch_add (&self->asked, 1);
}

static void fill_welcome (curve_peer_t *self, Taskmq__Welcome *out)
{
    static uint8_t token[16] = {1};
    static char ns[] = "default", principal[] = "render-7", roles[] = "worker(default/render*)";
    out->version = TMQ_PROTOCOL_VERSION;
    out->token = (ProtobufCBinaryData){sizeof token, token};
    out->namespace_ = ns;
    out->identity = out->principal = principal;
    out->roles = roles;
    out->generation = 1;
    out->key_until = self->key_until;
    if (self->announces)
        out->next_server_key = (ProtobufCBinaryData){KEY_BYTES, self->announce.bytes};
}

static void answer (curve_peer_t *self)
{
    char frames[ZAP_FRAMES][FRAME_MAX];
    int sizes[ZAP_FRAMES];
    receive (self->router, frames, sizes);
    Taskmq__ClientMessage *message =
        taskmq__client_message__unpack (NULL, (size_t) sizes[1], (const uint8_t *) frames[1]);
    if (message == NULL)
        return;
    for (size_t i = 0; i < message->n_requests; i++) {
        const bool hello = message->requests[i]->op_case == TASKMQ__REQUEST__OP_HELLO;
        Taskmq__BrokerMessage out = TASKMQ__BROKER_MESSAGE__INIT;
        Taskmq__Reply reply = TASKMQ__REPLY__INIT, *replies[] = {&reply};
        Taskmq__Welcome welcome = TASKMQ__WELCOME__INIT;
        bytes_t bytes = BYTES_INIT;
        reply.id = message->requests[i]->id;
        out.n_replies = 1;
        out.replies = replies;
        pthread_mutex_lock (&self->lock);
        if (hello) {
            fill_welcome (self, &welcome);
            reply.body_case = TASKMQ__REPLY__BODY_WELCOME;
            reply.welcome = &welcome;
        }
        bytes_append_packed (&bytes, &out.base);
        pthread_mutex_unlock (&self->lock);
        zmq_send (self->router, frames[0], (size_t) sizes[0], ZMQ_SNDMORE);
        zmq_send (self->router, bytes.data, bytes.length, 0);
        bytes_free (&bytes);
        atomic_fetch_add (&self->welcomes, hello);
    }
    taskmq__client_message__free_unpacked (message, NULL);
}

static void *serve (void *argument)
{
    curve_peer_t *self = argument;
    while (!atomic_load (&self->stop)) {
        zmq_pollitem_t items[] = {{self->zap, 0, ZMQ_POLLIN, 0}, {self->router, 0, ZMQ_POLLIN, 0}};
        zmq_poll (items, 2, 10);
        if ((items[0].revents & ZMQ_POLLIN) != 0)
            judge (self);
        if ((items[1].revents & ZMQ_POLLIN) != 0)
            answer (self);
    }
    zmq_close (self->router);
    zmq_close (self->zap);
    return NULL;
}

static void bind_router (curve_peer_t *self, const char *endpoint)
{
    const int one = 1, zero = 0, enforce_domain = 93;
    size_t size = sizeof self->endpoint;
    self->router = zmq_socket (self->context, ZMQ_ROUTER);
    zmq_setsockopt (self->router, ZMQ_LINGER, &zero, sizeof zero);
    zmq_setsockopt (self->router, ZMQ_ZAP_DOMAIN, "test", 4);
    zmq_setsockopt (self->router, enforce_domain, &one, sizeof one);
    if (!self->plain) {
        zmq_setsockopt (self->router, ZMQ_CURVE_SERVER, &one, sizeof one);
        zmq_setsockopt (self->router, ZMQ_CURVE_SECRETKEY, self->secret.bytes, KEY_BYTES);
    }
    WAIT_FOR (zmq_bind (self->router, endpoint != NULL ? endpoint : "tcp://127.0.0.1:*") == 0,
              TIMING_PATIENCE_MS);
    assert_int_equal (zmq_getsockopt (self->router, ZMQ_LAST_ENDPOINT, self->endpoint, &size), 0);
}

void curve_peer_start (curve_peer_t *self, const key_public_t *accepts, const char *endpoint)
{
    static const key_public_t none;
    if (key_public_equal (&self->key, &none))
        key_make (&self->key, &self->secret);
    self->accepts = *accepts;
    pthread_mutex_init (&self->lock, NULL);
    atomic_store (&self->stop, false);
    self->context = zmq_ctx_new ();
    self->zap = zmq_socket (self->context, ZMQ_REP);
    assert_int_equal (zmq_bind (self->zap, "inproc://zeromq.zap.01"), 0);
    bind_router (self, endpoint);
    assert_int_equal (pthread_create (&self->thread, NULL, serve, self), 0);
}

void curve_peer_stop (curve_peer_t *self)
{
    atomic_store (&self->stop, true);
    pthread_join (self->thread, NULL);
    zmq_ctx_term (self->context);
    pthread_mutex_destroy (&self->lock);
}

void curve_peer_answer (curve_peer_t *self, const char *status)
{
    pthread_mutex_lock (&self->lock);
    strcpy (self->status, status);
    pthread_mutex_unlock (&self->lock);
}
