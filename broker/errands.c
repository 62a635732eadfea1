/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* One thread behind a handover. What a runner finds wrong is in the errand's answer. */
#include "errands.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/memory.h"
#include "store/handover.h"

struct errands {
    errand_runner_t *runners;
    size_t runners_count;
    errand_judge_t judge;
    handover_t *handover;
    pthread_t thread;
    bool running;
};

static void run (const errands_t *self, errand_t *errand)
{
    bool of_client = errand->context != NULL;
    if (of_client && self->judge.may != NULL && !self->judge.may (self->judge.context, errand)) {
        errand_refuse (errand, TMQ_DENIED, "%s has lost the right to ask for this",
                       errand->identity);
        return;
    }
    for (size_t i = 0; i < self->runners_count; i++) {
        if (self->runners[i].op != errand->op)
            continue;
        self->runners[i].run (self->runners[i].context, errand);
        return;
    }
    errand->code = TMQ_UNSUPPORTED;
}

static void *thread_run (void *context)
{
    errands_t *self = context;
    errand_t *errand;
    pthread_setname_np (pthread_self (), "errands");
    while ((errand = handover_next (self->handover)) != NULL) {
        errand->again = false;
        run (self, errand);
        if (errand->again)
            handover_submit (self->handover, errand);
        else
            handover_finish (self->handover, errand);
    }
    return NULL;
}

void errands_submit (errands_t *self, errand_t *errand)
{
    if (handover_waiting (self->handover) < ERRANDS_QUEUE_MAX) {
        handover_submit (self->handover, errand);
        return;
    }
    errand_refuse (errand, TMQ_OVERLOADED, "%d requests that need a file wait", ERRANDS_QUEUE_MAX);
    errand->retry_after_ms = ERRANDS_OVERLOAD_MS;
    handover_finish (self->handover, errand);
}

errand_t *errands_done (errands_t *self)
{
    return handover_done (self->handover);
}

int errands_fd (const errands_t *self)
{
    return handover_fd (self->handover);
}

errands_t *errands_new (const errand_runner_t *runners, size_t count, errand_judge_t judge)
{
    errands_t *self = memory_zero (1, sizeof (*self));
    self->runners = memory_alloc (count * sizeof (*runners));
    if (count > 0)
        memcpy (self->runners, runners, count * sizeof (*runners));
    self->runners_count = count;
    self->judge = judge;
    self->handover = handover_new ();
    self->running =
        self->handover != NULL && pthread_create (&self->thread, NULL, thread_run, self) == 0;
    if (!self->running)
        errands_free (&self);
    return self;
}

void errands_free (errands_t **self_p)
{
    errands_t *self = *self_p;
    if (self == NULL)
        return;
    *self_p = NULL;
    if (self->running) {
        handover_stop (self->handover);
        pthread_join (self->thread, NULL);
    }
    handover_free (&self->handover);
    free (self->runners);
    free (self);
}
