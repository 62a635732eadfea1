/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Who was let in to listen, where no message tells it later: a subscriber of a feed sends nothing
 * that leads to its connection. Remembered are the different ones by domain, and whether there were
 * more of them. One thread. */
#ifndef TASKMQ_NET_GUESTS_H
#define TASKMQ_NET_GUESTS_H

#include <stdbool.h>
#include <stddef.h>

enum {
    GUESTS_MAX = 256, /* of a domain; beyond it everybody there counts as a stranger */
    GUESTS_DOMAINS_MAX = 16
};

typedef struct guests guests_t;

guests_t *guests_new (void);
void guests_free (guests_t **self); /* accepts a NULL object */

/* Copies the texts. */
void guests_add (guests_t *self, const char *domain, const char *knock, const char *identity);
/* The connections of this domain have ended. */
void guests_forget (guests_t *self, const char *domain);

typedef bool guests_judge_t (const void *context, const char *knock, const char *identity);
/* Everybody there is known, and the judge takes them all. */
bool guests_are (const guests_t *self, const char *domain, guests_judge_t *judge,
                 const void *context);

#endif
