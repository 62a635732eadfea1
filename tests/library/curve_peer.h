/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* A peer that speaks CURVE and just enough of the protocol: it judges keys as it is told, welcomes
 * and answers everything else with OK. One thread of its own. */
#ifndef TASKMQ_TESTS_CURVE_PEER_H
#define TASKMQ_TESTS_CURVE_PEER_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "keys.h"

typedef struct curve_peer {
    key_public_t key;
    key_secret_t secret;
    bool plain;            /* without keys; to be set before the start */
    key_public_t accepts;  /* whose key is let in; under lock */
    char status[4];        /* "" or what every newcomer is answered; under lock */
    key_public_t announce; /* the next server key; under lock */
    bool announces;
    uint64_t key_until;
    pthread_mutex_t lock;
    atomic_uint asked;    /* newcomers that were judged */
    atomic_uint welcomes; /* hellos that were answered */
    char endpoint[64];    /* tcp://127.0.0.1:PORT */
    /* private */
    atomic_bool stop;
    void *context;
    void *zap;
    void *router;
    pthread_t thread;
} curve_peer_t;

/* A peer with a new key, which lets accepts in. port: of an earlier one, whose place it takes; 0:
 * any. */
void curve_peer_start (curve_peer_t *self, const key_public_t *accepts, const char *endpoint);
void curve_peer_stop (curve_peer_t *self);
/* Every newcomer gets that status; "" judges by the key again. */
void curve_peer_answer (curve_peer_t *self, const char *status);

#endif
