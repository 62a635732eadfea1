/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Waits for the end of tasks. */
#ifndef TASKMQ_CORE_WAIT_H
#define TASKMQ_CORE_WAIT_H

#include "core/requests/requests.h"

typedef struct wait wait_t;

typedef struct wait_entry {
    wait_t *wait;
    struct wait_entry *next; /* of the same task */
    struct wait_entry **at;  /* what points to it; NULL: answered */
} wait_entry_t;

/* The waits of a link. They outlive it until they are freed. */
struct waiter {
    node_t node;  /* in the list of those whose link has ended */
    link_t *link; /* NULL: it has ended */
    node_t waits;
    size_t open; /* entries without an answer */
};

struct wait {
    node_t node;      /* in the waiter's list, or of those that are over */
    waiter_t *waiter; /* NULL: it is over, and nobody wants an answer */
    uint64_t request;
    alarm_t alarm; /* its deadline */
    size_t open;   /* entries without an answer */
    size_t entries_count;
    wait_entry_t entries[];
};

void waits_init (requests_t *self);
/* Every link is closed already. */
void waits_reset (requests_t *self);
/* Its deadline has come: it gets no answer any more. */
void wait_end (requests_t *self, wait_t *wait);
/* The link ends, and its waits with it. */
void waits_drop_link (requests_t *self, link_t *link);
/* Tells those who wait for a task that ended, as far as the round allows. The others are owed their
 * answers. */
void waits_follow (requests_t *self, const fact_t *fact);
/* Pays what is owed, and frees the waits that are over, as far as the round allows. */
void waits_run (requests_t *self);
bool waits_are_behind (const requests_t *self);

#endif
