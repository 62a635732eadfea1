/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* The client object: the lock around the core, who does the I/O, and the way from an operation of
 * the application into the core and back.
 *
 * The sockets belong to whoever holds the baton (`driven`): the I/O thread, or a thread of the
 * application that waits in a blocking call. A lone one of those takes turns itself while it waits,
 * which saves two changes of thread per call; the I/O thread then sleeps, and takes over within
 * IDLE_MS when the calls end, or at once when there is work that nobody waits for. The baton passes
 * under the lock, which is the fence that libzmq asks for.
 *
 * Every public function that touches the core is client_enter … client_leave. A blocking one is an
 * asynchronous one that waits for its answer in between (client_call). */
#ifndef TASKMQ_CLIENT_CLIENT_H
#define TASKMQ_CLIENT_CLIENT_H

#include <pthread.h>
#include <sys/types.h>

#include "core.h"
#include "transport.h"

/* What waits on a subscription or worker, and is freed with the client. */
typedef struct client_object {
    struct client_object *next;
    struct client_object *previous;
    tmq_client_t *client;
    pthread_cond_t changed;
    void (*free) (struct client_object *self); /* called locked */
} client_object_t;

struct tmq_client {
    pthread_mutex_t lock; /* for everything below that is not the baton's own */
    core_t *core;
    pid_t pid; /* of the process that made it */
    pthread_cond_t link_changed;
    pthread_cond_t answered; /* completions can be polled */
    core_answer_t *ready_first;
    core_answer_t *ready_last;
    int ready_fd; /* readable exactly while completions are queued */
    client_object_t *objects;
    uint64_t link_changes;      /* of the core, already told */
    bool driven;                /* somebody holds the baton, … */
    bool sleeping;              /* … waits, and has to be woken for news */
    int64_t wake_at_ms;         /* when it wakes by itself */
    bool parked;                /* the I/O thread waits without the baton, in the kernel, … */
    int64_t parked_ms;          /* … until then, for news of … */
    uint64_t parked_connection; /* … this connection */
    pthread_cond_t baton;       /* the I/O thread waits for its turn */
    bool unfinished;            /* the last turn left something to receive */
    bool async;                 /* completions are in use: the I/O thread works for them */
    uint64_t turns;             /* that threads of the application took */
    uint64_t parked_turns;      /* … before the I/O thread went to sleep */
    size_t blocked;             /* threads that wait without the baton */
    bool gathering;             /* more to send is waited for, up to … */
    size_t gather_goal;         /* … as many blocking calls as it has just answered */
    size_t answered_calls;      /* blocking calls answered, … */
    size_t started_calls;       /* … and started, since something was last sent */
    bool leaving;               /* the client is being freed */
    int64_t leave_at_ms;

    pthread_t thread;
    transport_t transport; /* the baton's, from here on */
    int64_t ticked_ms;
    char **endpoints;
    size_t endpoints_count;
};

/* Milliseconds of the monotonic clock. */
int64_t client_now_ms (void);
int64_t client_deadline (uint32_t timeout_ms);
/* Locks the client, if it is one of this process. */
int client_enter (tmq_client_t *client, tmq_error_t *error);
/* Delivers what was answered, wakes the I/O thread if it has something to do, and unlocks. */
void client_leave (tmq_client_t *client);
/* The same without unlocking: before waiting. */
void client_flush (tmq_client_t *client);
/* Waits on cond until the deadline, doing the I/O meanwhile if nobody else is there to do it; false
 * when it has passed. It may return early: the caller looks again. The lock is held. */
bool client_wait (tmq_client_t *client, pthread_cond_t *cond, int64_t deadline_ms);
/* A condition variable on the monotonic clock; a code. */
int client_cond_init (pthread_cond_t *cond);

/* The answer that a blocking operation waits for. */
typedef struct client_waiter {
    pthread_cond_t cond;
    core_answer_t *answer;
} client_waiter_t;

/* Starts the request and waits. Returns the answer's code with *answer, which the caller frees by
 * core_answer_free; NULL when it was not started. error is filled. */
int client_call (core_answer_t **answer, tmq_client_t *client, core_request_t *request,
                 uint32_t timeout_ms, tmq_error_t *error);
/* The same for what is already started with this waiter; unlocks. */
int client_await (core_answer_t **answer, tmq_client_t *client, client_waiter_t *waiter,
                  tmq_error_t *error);
/* Starts the request; the answer becomes a completion. */
int client_begin (tmq_client_t *client, core_request_t *request, uint32_t timeout_ms, void *user,
                  tmq_error_t *error);

void client_object_add (tmq_client_t *client, client_object_t *object);
void client_object_remove (client_object_t *object);
/* Takes an answer that is part of a subscription or worker out of the completions. */
void client_unready (tmq_client_t *client, const core_answer_t *answer);

/* io.c: the I/O. */

void *client_io_main (void *client); /* the I/O thread */
/* One turn by a thread of the application: sends, waits until the deadline at most, receives. The
 * lock is held, but not meanwhile. Nobody may hold the baton. */
void client_io_turn (tmq_client_t *client, int64_t deadline_ms);
/* There may be work that nobody holding the baton sees: wakes the I/O thread for it. Locked. */
void client_io_kick (tmq_client_t *client);

#endif
