/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* The client object: the lock around the core, the I/O thread, and the way from an operation of the
 * application into the core and back.
 *
 * Every public function that touches the core is client_enter … client_leave. A blocking one is an
 * asynchronous one that waits for its answer in between (client_call).
 *
 * One thread at a time drives the connection: `driven` says whether one does, and only that one
 * touches the transport. As a rule it is the I/O thread. A caller that blocks while nobody drives
 * does it itself until it has what it waits for, which saves two changes of thread for each call;
 * the I/O thread steps aside for that as long as such calls follow each other closely (io.c). */
#ifndef TASKMQ_CLIENT_CLIENT_H
#define TASKMQ_CLIENT_CLIENT_H

#include <pthread.h>
#include <sys/types.h>

#include "client/keyring.h"
#include "client/places.h"
#include "client/transport.h"
#include "core.h"

/* What waits on a subscription or worker, and is freed with the client. */
typedef struct client_object {
    struct client_object *next;
    struct client_object *previous;
    tmq_client_t *client;
    pthread_cond_t changed;
    void (*free) (struct client_object *self); /* called locked */
} client_object_t;

struct tmq_client {
    tmq_client_t *base; /* of tmq_client_on_behalf: all that it has but a name; NULL: it is whole */
    char owner[TMQ_BEHALF_BYTES_MAX + 1];
    pthread_mutex_t lock; /* for everything below that is not the I/O thread's own */
    core_t *core;
    pid_t pid; /* of the process that made it */
    pthread_cond_t link_changed;
    pthread_cond_t answered; /* completions can be polled */
    pthread_cond_t settled;  /* no change is without an answer */
    size_t flushing;         /* threads that wait for that */
    core_answer_t *ready_first;
    core_answer_t *ready_last;
    int ready_fd; /* readable exactly while completions are queued */
    client_object_t *objects;
    uint64_t link_changes; /* of the core, already told */
    bool sleeping;         /* the I/O thread waits, and has to be woken for news */
    int64_t wake_at_ms;    /* when it wakes by itself */
    bool gathering;        /* the I/O thread waits for more to send, up to … */
    size_t gather_goal;    /* … as many blocking calls as it has just answered */
    size_t answered_calls; /* blocking calls answered, … */
    size_t started_calls;  /* … and started, since the I/O thread last sent */
    bool leaving;          /* the client is being freed */
    int64_t leave_at_ms;

    bool driven;  /* a thread drives the connection */
    bool aside;   /* the I/O thread waits until `undriven`, … */
    bool relieve; /* … and for as long as a caller drives */
    pthread_cond_t undriven;
    size_t waiting;       /* callers that wait for what comes unasked */
    size_t subscriptions; /* open ones: their events come unasked */
    bool attended;        /* the application looks without blocking: it must not wait for us */
    int64_t called_ms;    /* when the last blocking call ended */
    uint64_t drives;      /* how often a caller has driven */
    pthread_t thread;

    transport_t transport; /* the driving thread's own; its wake_fd everybody's */
    bool drained;          /* … the socket was empty when it was last read */
    int64_t ticked_ms;     /* … when deadlines were last judged */
    places_t places;
    uint64_t tries;            /* the driving thread's: connections since the last welcome */
    keyring_t keys;            /* the driving thread's */
    bool used_insecure;        /* … the newest connection is to another machine, in clear … */
    bool by_curve;             /* … whether the newest connection is, and by which keys … */
    key_public_t used_own;     /* … of ours … */
    key_public_t used_server;  /* … and of the broker */
    uint64_t welcomed_changes; /* … what the core said when the keyring last heard of it */
    char uri[PLACES_URI_BYTES_MAX + 1]; /* that the newest connection was made to */
    char own_text[KEY_TEXT_SIZE];       /* the keys of that connection, for people */
    char server_text[KEY_TEXT_SIZE];
};

/* The client that has the connection. */
static inline tmq_client_t *client_base (tmq_client_t *client)
{
    return client != NULL && client->base != NULL ? client->base : client;
}

/* For whom is what is started with it; NULL: for ourselves. */
static inline const char *client_owner (const tmq_client_t *client)
{
    return client != NULL && client->base != NULL ? client->owner : NULL;
}

/* deliver.c. */

/* Milliseconds of the monotonic clock. */
int64_t client_now_ms (void);
int64_t client_deadline (uint32_t timeout_ms);
/* A condition variable on the monotonic clock; a code. */
int client_cond_init (pthread_cond_t *cond);
/* Waits until the deadline for something that is signalled by cond; false when it has passed. The
 * lock is held. */
bool client_cond_wait (tmq_client_t *client, pthread_cond_t *cond, int64_t deadline_ms);
/* Delivers what was answered, and wakes the I/O thread if it has something to do. Locked. */
void client_flush (tmq_client_t *client);
/* Takes an answer out of the completions. Locked. */
void client_ready_remove (tmq_client_t *client, core_answer_t *answer);
/* The same for one that is part of a subscription or worker, if it is among them. */
void client_unready (tmq_client_t *client, const core_answer_t *answer);
/* Makes an eventfd readable. */
void client_signal (int fd);

/* client.c. */

/* Locks the client, if it is one of this process. */
int client_enter (tmq_client_t *client, tmq_error_t *error);
/* Flushes, hands over to the I/O thread and unlocks. */
void client_leave (tmq_client_t *client);
/* Waits until the deadline for something that is signalled by cond, driving meanwhile if nobody
 * else does. May return early: to be called again until what is waited for is there. False when the
 * deadline has passed. The lock is held. */
bool client_wait (tmq_client_t *client, pthread_cond_t *cond, int64_t deadline_ms);

/* The answer that a blocking operation waits for. */
typedef struct client_waiter {
    pthread_cond_t cond;
    core_answer_t *answer;
} client_waiter_t;

/* Starts the request and waits. Returns the answer's code with *answer, which the caller frees by
 * core_answer_free; NULL when it was not started. error is filled. */
int client_call (core_answer_t **answer, tmq_client_t *client, core_request_t *request,
                 uint32_t timeout_ms, tmq_error_t *error);

/* A member of an answer that is handed over to the caller: a pointer to what it owns, or a
 * value. */
typedef struct client_member {
    size_t offset;
    size_t size;
} client_member_t;

#define CLIENT_MEMBER(member)                                                                      \
    (client_member_t)                                                                              \
    {                                                                                              \
        offsetof (core_answer_t, member), sizeof ((core_answer_t *) NULL)->member                  \
    }

/* client_call for one member of the answer, which becomes *out on success; out may be NULL. */
int client_take (void *out, client_member_t member, tmq_client_t *client, core_request_t *request,
                 uint32_t timeout_ms, tmq_error_t *error);
/* The same for a request that is made of this message. */
int client_ask (void *out, client_member_t member, tmq_client_t *client, tmq_op_t op,
                const ProtobufCMessage *message, uint32_t timeout_ms, tmq_error_t *error);
/* client_call for what is already started with this waiter; unlocks. */
int client_await (core_answer_t **answer, tmq_client_t *client, client_waiter_t *waiter,
                  tmq_error_t *error);
/* Starts the request; the answer becomes a completion. */
int client_begin (tmq_client_t *client, core_request_t *request, uint32_t timeout_ms, void *user,
                  tmq_error_t *error);

void client_object_add (tmq_client_t *client, client_object_t *object);
void client_object_remove (client_object_t *object);

/* api_blobs.c. */

/* tmq_submit of a payload that is larger than a frame. */
int client_submit_large (tmq_receipt_t *out, tmq_client_t *client, const tmq_submit_t *in,
                         uint32_t timeout_ms, tmq_error_t *error);

/* api_worker.c. */

/* The handler of the attempt has returned: if nothing has ended it, it is renewed no more. */
void client_worker_returned (tmq_worker_t *worker, const tmq_assignment_t *of);

/* io.c. */

void *client_io_main (void *client);
/* True if a caller may drive: nobody does, and the connection is established. Locked. */
bool client_io_is_free (tmq_client_t *client);
/* Drives for a moment, until something has happened or the deadline. Locked before and after. */
void client_io_drive (tmq_client_t *client, int64_t deadline_ms);
/* Before a caller leaves: tells the I/O thread if there is something for it to do. Locked. */
void client_io_hand_over (tmq_client_t *client);

/* A text as a generated message takes it: its members have no const. NULL is the empty one. */
static inline char *client_text (const char *text)
{
    return (char *) (uintptr_t) (text != NULL ? text : "");
}

#endif
