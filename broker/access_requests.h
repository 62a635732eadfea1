/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* What clients ask about keys, invitations and the access file: the runners of these errands. */
#ifndef TASKMQ_BROKER_ACCESS_REQUESTS_H
#define TASKMQ_BROKER_ACCESS_REQUESTS_H

#include <pthread.h>

#include "access_file.h"
#include "errands.h"
#include "keys.h"

enum {
    ACCESS_RUNNERS = 9,
    ACCESS_KEYS_MAX = 2,           /* of a principal: the present one, and the one that follows */
    ACCESS_INVITATIONS_MAX = 1000, /* that count, or say who used them */
    ACCESS_PAGE_BYTES = 32 * 1024,
    /* Changes that clients make to their own keys, of all of them: so many at once, then one in so
     * long. Each costs a sync, and a look at every link. */
    ACCESS_OWN_BURST = 32,
    ACCESS_OWN_MS = 500
};

typedef struct access_requests {
    access_file_t *file;      /* borrowed */
    int64_t (*now_ms) (void); /* wall clock */
    /* Whose request made the file: the change ends the very link that it came on, so who repeats it
     * is told as the first time. */
    bool has_made;
    key_public_t made_for;
    uint32_t made_uid;
    int64_t own_due_ms; /* when ACCESS_OWN_BURST changes are allowed at once again */

    pthread_mutex_t lock; /* guards what follows: where those who join connect */
    bool has_key;
    key_public_t key;
    char address[JOIN_PLACE_BYTES_MAX + 1];
} access_requests_t;

void access_requests_init (access_requests_t *self, access_file_t *file);
void access_requests_free (access_requests_t *self);
/* The broker's key, and HOST:PORT of its first listener with CURVE (empty: not known). */
void access_requests_listen (access_requests_t *self, const key_public_t *key, const char *address);
void access_requests_change_key (access_requests_t *self, const key_public_t *key);
/* Whether who asks has the right by the policy that counts now. context: this object. The errands'
 * thread. */
bool access_requests_may (void *context, const errand_t *errand);
void access_requests_runners (access_requests_t *self, errand_runner_t out[ACCESS_RUNNERS]);

#endif
