/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* From the core to those who wait: its answers, its news, and what wakes the I/O thread. */
#include "client/client.h"

#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

/* Time and waiting. */

int64_t client_now_ms (void)
{
    struct timespec now;
    clock_gettime (CLOCK_MONOTONIC, &now);
    return (int64_t) now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

int64_t client_deadline (uint32_t timeout_ms)
{
    return timeout_ms == TMQ_FOREVER ? CORE_NEVER : client_now_ms () + timeout_ms;
}

int client_cond_init (pthread_cond_t *cond)
{
    pthread_condattr_t attributes;
    if (pthread_condattr_init (&attributes) != 0)
        return TMQ_NO_MEMORY;
    pthread_condattr_setclock (&attributes, CLOCK_MONOTONIC);
    int failed = pthread_cond_init (cond, &attributes);
    pthread_condattr_destroy (&attributes);
    return failed ? TMQ_NO_MEMORY : TMQ_OK;
}

bool client_cond_wait (tmq_client_t *client, pthread_cond_t *cond, int64_t deadline_ms)
{
    if (deadline_ms == CORE_NEVER)
        return pthread_cond_wait (cond, &client->lock) == 0;
    struct timespec until = {.tv_sec = (time_t) (deadline_ms / 1000),
                             .tv_nsec = (long) (deadline_ms % 1000) * 1000000};
    return pthread_cond_timedwait (cond, &client->lock, &until) == 0;
}

/* Completions that can be polled. */

void client_signal (int fd)
{
    uint64_t one = 1;
    ssize_t written = write (fd, &one, sizeof one);
    (void) written; /* it can only fail because it is readable already */
}

static void clear_fd (int fd)
{
    uint64_t value;
    ssize_t got = read (fd, &value, sizeof value);
    (void) got;
}

static void ready_push (tmq_client_t *client, core_answer_t *answer)
{
    answer->queued = true;
    answer->next = NULL;
    answer->previous = client->ready_last;
    if (client->ready_last != NULL) {
        client->ready_last->next = answer;
    } else {
        client->ready_first = answer;
        client_signal (client->ready_fd);
    }
    client->ready_last = answer;
    pthread_cond_signal (&client->answered);
}

void client_ready_remove (tmq_client_t *client, core_answer_t *answer)
{
    if (answer->previous != NULL)
        answer->previous->next = answer->next;
    else
        client->ready_first = answer->next;
    if (answer->next != NULL)
        answer->next->previous = answer->previous;
    else
        client->ready_last = answer->previous;
    answer->queued = false;
    if (client->ready_first == NULL)
        clear_fd (client->ready_fd);
}

void client_unready (tmq_client_t *client, const core_answer_t *answer)
{
    core_answer_t *at = client->ready_first;
    while (at != NULL && at != answer)
        at = at->next;
    if (at != NULL)
        client_ready_remove (client, at);
}

/* Out of the core. */

static void deliver (tmq_client_t *client)
{
    core_answer_t *answer;
    while ((answer = core_answer_next (client->core)) != NULL) {
        client_waiter_t *waiter = answer->waiter;
        if (waiter == NULL) {
            ready_push (client, answer);
            continue;
        }
        waiter->answer = answer;
        client->answered_calls++;
        pthread_cond_signal (&waiter->cond);
    }
    core_woken_kind_t kind;
    void *owner;
    while (core_woken_next (client->core, &kind, &owner))
        pthread_cond_broadcast (&((client_object_t *) owner)->changed);
    uint64_t changes = core_link_changes (client->core);
    if (changes != client->link_changes) {
        client->link_changes = changes;
        pthread_cond_broadcast (&client->link_changed);
    }
    if (client->flushing > 0 && core_changes_open (client->core) == 0)
        pthread_cond_broadcast (&client->settled);
}

void client_flush (tmq_client_t *client)
{
    deliver (client);
    if (client->gathering && client->started_calls >= client->gather_goal) {
        client->gathering = false;
        client_signal (client->transport.wake_fd);
    }
    if (!client->sleeping)
        return;
    if (!core_has_output (client->core) && core_next_due (client->core) >= client->wake_at_ms)
        return;
    client->sleeping = false;
    client_signal (client->transport.wake_fd);
}
