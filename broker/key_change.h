/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Another key for the broker: ordered by an operator, told to all clients by their welcome, and at
 * its time the one that is listened with. A start takes up what was ordered before it. */
#ifndef TASKMQ_BROKER_KEY_CHANGE_H
#define TASKMQ_BROKER_KEY_CHANGE_H

#include <pthread.h>

#include "core/base/clocks.h"
#include "core/engine/engine.h"
#include "doors.h"
#include "errands.h"
#include "server_key.h"

typedef struct key_change {
    const data_t *data;       /* borrowed */
    doors_t *doors;           /* borrowed; its keys belong to the loop */
    int64_t (*now_ms) (void); /* wall clock */

    pthread_mutex_t lock; /* guards what follows */
    bool has_next;
    bool news;        /* has_next is to be told to the engine */
    bool asked;       /* the next key is to be put into its file: an errand is under way */
    bool kept;        /* it is there, and is to be listened with */
    int64_t retry_at; /* monotonic: after a try that failed, which was said */
    bool failed;
    key_secret_t next;
    key_public_t next_public;
    key_public_t present; /* as the engine was told last; if has_present */
    bool has_present;
    int64_t at_ms; /* wall clock */
    bool has_last_order;
    uint8_t last_order[16]; /* request_id of the newest one */
} key_change_t;

/* Reads what was ordered; what is due becomes the broker's key. Before doors_key. */
exits_t key_change_open (key_change_t *self, const data_t *data, doors_t *doors);
/* Wipes the key. Only after key_change_open. */
void key_change_close (key_change_t *self);
/* The key that is listened with is known, and can be changed. Before the runner works. */
void key_change_begin (key_change_t *self);
/* What operators ask for. */
errand_runner_t key_change_runner (key_change_t *self);
/* Tells the engine what was ordered; makes the change when its time has come and its file is
 * written. True: the server is to run an errand of its own with the runner's op, which writes it.
 * Never waits for a file; the loop's thread. */
bool key_change_turn (key_change_t *self, engine_t *engine, now_t now);

#endif
