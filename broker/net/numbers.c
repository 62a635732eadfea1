/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Failure: a question that cannot be asked leaves what is known; the next one is asked later. */
#include "net/numbers.h"

#include <arpa/inet.h>
#include <errno.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zmq.h>

#include "core/base/memory.h"
#include "net/socket.h"

enum { NONCE_BYTES = 16, ADDRESS_SIZE = 64 };

struct numbers {
    void *context;
    void *router;
    void *asker;    /* the question under way, or NULL */
    uint32_t first; /* number of the first one that was given */
    uint32_t next;  /* to be given, when the last question was answered */
    bool suspects;  /* somebody: that number */
    uint8_t suspect[NUMBERS_ID_BYTES];
    uint8_t nonce[NONCE_BYTES];
    char address[ADDRESS_SIZE];
};

static uint32_t number_of (const void *id)
{
    uint32_t wire;
    memcpy (&wire, (const uint8_t *) id + 1, sizeof (wire));
    return ntohl (wire);
}

static void drop_asker (numbers_t *self)
{
    if (self->asker != NULL)
        zmq_close (self->asker);
    self->asker = NULL;
}

bool numbers_ask (numbers_t *self)
{
    if (self->asker != NULL)
        return false;
    self->asker = zmq_socket (self->context, ZMQ_DEALER);
    if (self->asker == NULL)
        return false;
    randombytes_buf (self->nonce, sizeof (self->nonce));
    socket_set (self->asker, ZMQ_LINGER, 0);
    if (zmq_connect (self->asker, self->address) != 0 ||
        zmq_send (self->asker, self->nonce, sizeof (self->nonce), ZMQ_DONTWAIT) < 0)
        drop_asker (self);
    return self->asker != NULL;
}

/* Nobody else is there yet, so the first message is the answer. */
static bool learn_first (numbers_t *self)
{
    zmq_msg_t id;
    zmq_msg_t frame;
    if (!numbers_ask (self))
        return false;
    zmq_msg_init (&id);
    zmq_msg_init (&frame);
    bool learnt = socket_receive (self->router, &id, 0) &&
                  socket_receive (self->router, &frame, 0) &&
                  numbers_answered (self, zmq_msg_data (&id), zmq_msg_size (&id),
                                    zmq_msg_data (&frame), zmq_msg_size (&frame));
    self->first = self->next - 1;
    zmq_msg_close (&id);
    zmq_msg_close (&frame);
    return learnt;
}

numbers_t *numbers_new (void *context, void *router)
{
    numbers_t *self = memory_zero (1, sizeof (*self));
    self->context = context;
    self->router = router;
    snprintf (self->address, sizeof (self->address), "inproc://taskmqd-numbers-%p", router);
    if (zmq_bind (router, self->address) != 0 || !learn_first (self))
        numbers_free (&self);
    return self;
}

void numbers_free (numbers_t **self_p)
{
    numbers_t *self = *self_p;
    if (self == NULL)
        return;
    *self_p = NULL;
    drop_asker (self);
    free (self);
}

/* Numbers begin again at 0 behind the last: what counts is how far they are from the first one. */
bool numbers_is_given (const numbers_t *self, const void *id)
{
    return number_of (id) - self->first < self->next - self->first;
}

numbers_verdict_t numbers_judge (const numbers_t *self, const void *id, size_t bytes)
{
    if (bytes != NUMBERS_ID_BYTES || *(const uint8_t *) id != 0)
        return NUMBERS_CLAIMED;
    return numbers_is_given (self, id) ? NUMBERS_GIVEN : NUMBERS_UNSURE;
}

bool numbers_answered (numbers_t *self, const void *id, size_t id_bytes, const void *frame,
                       size_t frame_bytes)
{
    if (self->asker == NULL || id_bytes != NUMBERS_ID_BYTES || frame_bytes != NONCE_BYTES ||
        sodium_memcmp (frame, self->nonce, NONCE_BYTES) != 0)
        return false;
    self->next = number_of (id) + 1;
    drop_asker (self);
    return true;
}

/* Whether anybody answers to it. Who does, gets an empty message. */
static bool is_taken (numbers_t *self, const uint8_t id[NUMBERS_ID_BYTES])
{
    if (zmq_send (self->router, id, NUMBERS_ID_BYTES, ZMQ_SNDMORE | ZMQ_DONTWAIT) < 0)
        return zmq_errno () != EHOSTUNREACH;
    (void) zmq_send (self->router, "", 0, ZMQ_DONTWAIT);
    return true;
}

static bool find_suspect (numbers_t *self)
{
    uint8_t *id = self->suspect;
    id[0] = 0;
    for (uint32_t i = NUMBERS_AHEAD_FIRST; i < NUMBERS_AHEAD; i++) {
        uint32_t wire = htonl (self->next + i);
        memcpy (id + 1, &wire, sizeof (wire));
        if (is_taken (self, id))
            return true;
    }
    return false;
}

bool numbers_squatted (numbers_t *self, uint8_t id[NUMBERS_ID_BYTES])
{
    bool squatted = self->suspects && !numbers_is_given (self, self->suspect);
    memcpy (id, self->suspect, NUMBERS_ID_BYTES);
    self->suspects = find_suspect (self);
    return squatted;
}

bool numbers_suspects (const numbers_t *self)
{
    return self->suspects;
}
