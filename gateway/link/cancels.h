/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Cancels that nobody waits for, because who brought them about has left. A broker that is away or
 * does not answer is no reason to forget them: each is repeated until the broker has said what
 * became of it. They live as long as this process does. */
#ifndef TASKMQ_GATEWAY_LINK_CANCELS_H
#define TASKMQ_GATEWAY_LINK_CANCELS_H

#include "base/account.h"
#include "base/settings.h"
#include "net/loop.h"
#include "taskmq.h"

typedef struct cancels cancels_t;
typedef struct cancel {
    struct cancel *next;
    struct cancel *previous;
    cancels_t *all;
    tmq_id_t id;
    const char *message; /* static */
    account_t *account;  /* whose it is */
    bool owned;
    char owner[TMQ_NAME_LENGTH_MAX + 1];
    uint64_t ticket; /* 0: it is not under way */
} cancel_t;

/* Asks the broker, and sets the ticket; cancels_came tells the answer. A code as of link_cancel. */
typedef int cancels_ask_fn (void *context, cancel_t *cancel);

/* ns is borrowed. NULL when memory is exhausted. */
cancels_t *cancels_new (loop_t *loop, const settings_t *settings, const char *ns,
                        cancels_ask_fn *ask, void *context);
/* Nothing is told any more. Those that are left are told to the log. Accepts NULL. */
void cancels_free (cancels_t **self);
/* As link_cancel_kept. */
bool cancels_add (cancels_t *self, account_t *account, const char *owner, const tmq_id_t *id,
                  const char *message);
/* What the broker, or the library, has answered; the ticket is 0. Frees what is settled. */
void cancels_came (cancel_t *cancel, int code);
/* The broker is there: those that wait for it go now. */
void cancels_go (cancels_t *self);
void cancels_count (const cancels_t *self, uint64_t *kept, uint64_t *dropped);

#endif
