/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Clients that keep a broker busy while it is killed, frozen or cut off: submitters, workers,
 * subscribers and readers, each a thread with a client of its own, all writing into one history. */
#ifndef TASKMQ_TESTS_LOAD_H
#define TASKMQ_TESTS_LOAD_H

#include <pthread.h>
#include <stdatomic.h>

#include "support/checker.h"

enum { LOAD_THREADS_MAX = 16, LOAD_ENDPOINTS_MAX = 4 };

typedef struct load_options {
    const char *endpoints[LOAD_ENDPOINTS_MAX]; /* every client knows all of them; NULL ends them */
    unsigned submitters;
    unsigned workers;
    unsigned subscribers;
    unsigned readers;  /* each at one endpoint alone: it asks on where others were told more */
    unsigned visitors; /* each comes to one endpoint, submits, looks and leaves, again and again */
    size_t open_max;   /* submitters pause while more tasks are unfinished */
    size_t tasks_max;  /* submitters end after this many tasks in all; 0: when told to */
    uint32_t timeout_ms;  /* of every request: longer than any outage, so that all are answered */
    uint32_t work_ms_max; /* a task takes 0..this */
    bool faulty_workers;  /* some attempts fail, some are given back, some report */
    bool cancels;         /* submitters cancel some of their tasks */
    uint32_t reconnect_ms_max; /* 0: short, so that much happens between two faults */
} load_options_t;

struct load;

typedef struct load_thread {
    struct load *load;
    pthread_t thread;
    unsigned number; /* among its kind */
    unsigned seed;
} load_thread_t;

typedef struct load {
    load_options_t options;
    history_t history;
    atomic_bool stop_submitters;
    atomic_bool stop_workers;
    atomic_llong accepted_ms;          /* when a submitter last heard that a task is durable */
    atomic_ullong stop_subscribers_at; /* they end when they have taken this event; 0: go on */
    atomic_llong give_up_ms;           /* ... and at this time in any case; 0: never */
    load_thread_t threads[LOAD_THREADS_MAX];
    unsigned threads_count;
} load_t;

void load_start (load_t *self, const load_options_t *options);
/* One more task, which is durable when this returns; any thread, with a client of its own. Fails
 * the test when the broker does not take it in timeout_ms. */
void load_submit (load_t *self, tmq_client_t *client, uint32_t timeout_ms);
/* Ends the submitters, waits for the end of all tasks, lets the subscribers come up to the newest
 * event, ends everything, and has the checker look at all of it through a fresh client. */
void load_finish (load_t *self, uint32_t ms);
/* Frees the history; after the last check. */
void load_clear (load_t *self);

#endif
