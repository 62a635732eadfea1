/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

#include "client/names.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { NAMES_PORT_BYTES_MAX = 5 };

/* One question. Who asked may leave before the answer, so the last of the two frees it. */
typedef struct query {
    pthread_mutex_t lock;
    pthread_cond_t answered;
    bool is_answered;
    bool is_left; /* by who asked */
    int failed;
    struct addrinfo *found;
    char host[NAMES_HOST_BYTES_MAX + 1];
    char port[NAMES_PORT_BYTES_MAX + 1];
} query_t;

static void query_free (query_t *self)
{
    if (self->found != NULL)
        freeaddrinfo (self->found);
    pthread_cond_destroy (&self->answered);
    pthread_mutex_destroy (&self->lock);
    free (self);
}

static void *ask (void *argument)
{
    query_t *self = argument;
    const struct addrinfo wanted = {.ai_flags = AI_NUMERICSERV, .ai_socktype = SOCK_STREAM};
    struct addrinfo *found = NULL;
    const int failed = getaddrinfo (self->host, self->port, &wanted, &found);
    pthread_mutex_lock (&self->lock);
    self->failed = failed;
    self->found = failed == 0 ? found : NULL;
    self->is_answered = true;
    const bool is_left = self->is_left;
    pthread_cond_signal (&self->answered);
    pthread_mutex_unlock (&self->lock);
    if (is_left)
        query_free (self);
    return NULL;
}

/* getaddrinfo waits as long as the name server makes it, so it has a thread of its own, which ends
 * with the answer. ZeroMQ has asked the same before, so there are never many. */
static bool start (query_t *self)
{
    pthread_attr_t attributes;
    pthread_t thread;
    sigset_t all, before;
    if (pthread_attr_init (&attributes) != 0)
        return false;
    pthread_attr_setdetachstate (&attributes, PTHREAD_CREATE_DETACHED);
    sigfillset (&all);
    pthread_sigmask (SIG_SETMASK, &all, &before);
    const bool started = pthread_create (&thread, &attributes, ask, self) == 0;
    pthread_sigmask (SIG_SETMASK, &before, NULL);
    pthread_attr_destroy (&attributes);
    return started;
}

static query_t *query_new (const char *host, const char *port)
{
    pthread_condattr_t clock;
    query_t *self = calloc (1, sizeof *self);
    if (self == NULL)
        return NULL;
    snprintf (self->host, sizeof self->host, "%s", host);
    snprintf (self->port, sizeof self->port, "%s", port);
    pthread_mutex_init (&self->lock, NULL);
    pthread_condattr_init (&clock);
    pthread_condattr_setclock (&clock, CLOCK_MONOTONIC);
    pthread_cond_init (&self->answered, &clock);
    pthread_condattr_destroy (&clock);
    return self;
}

static struct timespec after (unsigned ms)
{
    struct timespec time;
    clock_gettime (CLOCK_MONOTONIC, &time);
    time.tv_sec += ms / 1000;
    time.tv_nsec += (long) (ms % 1000) * 1000000;
    if (time.tv_nsec >= 1000000000) {
        time.tv_sec++;
        time.tv_nsec -= 1000000000;
    }
    return time;
}

bool names_resolve (struct addrinfo **out, int *failed, const char *host, const char *port,
                    unsigned wait_ms)
{
    const struct timespec end = after (wait_ms);
    query_t *self = query_new (host, port);
    *out = NULL;
    *failed = 0;
    if (self == NULL)
        return false;
    if (!start (self)) {
        query_free (self);
        return false;
    }
    int timed_out = 0;
    pthread_mutex_lock (&self->lock);
    while (!self->is_answered && !timed_out)
        timed_out = pthread_cond_timedwait (&self->answered, &self->lock, &end);
    const bool answered = self->is_answered;
    *failed = self->failed;
    *out = self->found;
    self->found = NULL;
    self->is_left = true;
    pthread_mutex_unlock (&self->lock);
    if (answered)
        query_free (self);
    return answered;
}
