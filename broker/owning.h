/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* From a start to owning the data: the store is opened, and its owner's end or a database that is
 * out of reach is waited for. Nothing of the store is used, and nobody is listened to, before. */
#ifndef TASKMQ_BROKER_OWNING_H
#define TASKMQ_BROKER_OWNING_H

#include <stdbool.h>
#include <stdint.h>

#include "data.h"
#include "store/store.h"

enum { OWNING_TEXT_SIZE = 512 };

/* What was told of it, so that a state is told once: sessions that come and go change nothing. */
typedef struct owning {
    const data_t *data; /* where clients read that a standby waits */
    bool standby;
    bool ready;                   /* told to the service manager: a standby is */
    int64_t asked_ms;             /* when that was asked for time last; 0: not yet */
    bool away;                    /* told: the database is out of reach */
    bool blinked;                 /* it was once since the owner was met last, which is not told */
    char owner[OWNING_TEXT_SIZE]; /* told: who is waited for; empty: nobody yet */
} owning_t;

/* The store met an owner, and waits for its end; the text is for people. It is told when it is
 * another one, or behind a database that was out of reach. Within owning_open, on its thread. */
void owning_meets (owning_t *self, const char *owner);
/* A start goes on waiting for its database, within owning_open: a service manager gives it time. */
void owning_waits (owning_t *self);
/* It owns the data from now on; what is left of the start is no wait for an owner. */
void owning_ends (owning_t *self);

/* As store_open and store_own; data is borrowed. A signal to stop (signal_fd, which is read then)
 * ends the process with EXITS_OK while it waits: nothing is open that could be lost. One to read
 * the configuration again is told to come too early. */
store_code_t owning_open (owning_t *self, store_t **out, const char *store,
                          const store_options_t *options, const data_t *data, int signal_fd,
                          boot_t *boot, store_error_t *error);

#endif
