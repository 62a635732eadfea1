/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* tmq_worker_run: the loop that most workers would write, with a pool of threads. It uses nothing
 * but the public functions. */
#include <pthread.h>
#include <stdlib.h>

#include "base/errors.h"

enum { THREADS_MAX = 1024 };

typedef struct run {
    tmq_worker_t *worker;
    tmq_worker_handler_t *handler;
    void *context;
    pthread_mutex_t lock;
    int code; /* why a thread ended, if it was not the drain */
    tmq_error_t error;
} run_t;

static void report (const run_t *run, const tmq_assignment_t *assignment, tmq_run_end_t end,
                    const tmq_outcome_t *outcome)
{
    tmq_worker_t *worker = run->worker;
    /* Whatever the answer is, there is nothing left to do: the attempt is over, or another one has
     * taken its place. */
    if (tmq_worker_state (worker, assignment) == TMQ_ATTEMPT_CANCELLED)
        tmq_worker_cancelled (worker, assignment, TMQ_FOREVER, NULL);
    else if (end == TMQ_RUN_COMPLETE)
        tmq_worker_complete (worker, assignment, outcome, TMQ_FOREVER, NULL);
    else if (end == TMQ_RUN_RELEASE)
        tmq_worker_release (worker, assignment, UINT32_MAX, TMQ_FOREVER, NULL);
    else
        tmq_worker_fail (worker, assignment, outcome, TMQ_FOREVER, NULL);
}

/* What the handler gave cannot be sent as it is: the attempt fails and says why. */
static tmq_run_end_t check (const tmq_outcome_t *outcome, tmq_run_end_t end, tmq_outcome_t *instead)
{
    *instead = *outcome;
    if (outcome->result_bytes <= TMQ_FRAME_BYTES_MAX)
        return end;
    *instead = (tmq_outcome_t){.error_code = TMQ_TOO_LARGE,
                               .error_message = "the result is larger than a frame",
                               .final = true};
    return TMQ_RUN_FAIL;
}

static void *run_main (void *argument)
{
    run_t *run = argument;
    tmq_assignment_t *assignment;
    tmq_error_t error;
    int code;
    while ((code = tmq_worker_next (&assignment, run->worker, TMQ_FOREVER, &error)) == TMQ_OK) {
        tmq_outcome_t outcome = {0};
        tmq_outcome_t sent;
        tmq_worker_started (run->worker, assignment, NULL);
        tmq_run_end_t end = run->handler (run->context, run->worker, assignment, &outcome);
        end = check (&outcome, end, &sent);
        report (run, assignment, end, &sent);
        if (outcome.release != NULL)
            outcome.release ((void *) (uintptr_t) outcome.result);
        tmq_assignment_free (assignment);
    }
    pthread_mutex_lock (&run->lock);
    if (code != TMQ_CLOSED && run->code == TMQ_OK) {
        run->code = code;
        run->error = error;
    }
    pthread_mutex_unlock (&run->lock);
    return NULL;
}

int tmq_worker_run (tmq_worker_t *worker, unsigned threads, tmq_worker_handler_t *handler,
                    void *context, tmq_error_t *error)
{
    if (worker == NULL || handler == NULL || threads == 0 || threads > THREADS_MAX)
        return core_error (error, TMQ_INVALID, "a worker, a handler, 1 to %d threads", THREADS_MAX);
    run_t run = {.worker = worker, .handler = handler, .context = context, .code = TMQ_OK};
    pthread_t *pool = calloc (threads, sizeof *pool);
    if (pool == NULL)
        return core_error (error, TMQ_NO_MEMORY, NULL);
    pthread_mutex_init (&run.lock, NULL);
    unsigned started = 0;
    while (started < threads && pthread_create (&pool[started], NULL, run_main, &run) == 0)
        started++;
    if (started < threads) {
        run.code = core_error (&run.error, TMQ_SYSTEM, "only %u of %u threads could be started",
                               started, threads);
        tmq_worker_drain (worker, NULL);
    }
    for (unsigned i = 0; i < started; i++)
        pthread_join (pool[i], NULL);
    pthread_mutex_destroy (&run.lock);
    free (pool);
    if (run.code == TMQ_OK)
        return core_error (error, TMQ_OK, NULL);
    return core_error (error, run.code, "%s", run.error.text);
}
