/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* tmq_worker_run: the loop that most workers would write, with a pool of threads. It uses the
 * public functions, and beside them only says that a handler has returned.
 *
 * An attempt never stays with us behind its handler: what cannot be sent is cut or left out, what
 * is refused all the same is given back, and what even that does not end is not renewed. */
#include <inttypes.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/errors.h"
#include "client/client.h"
#include "ids.h"
#include "json.h"
#include "parts/attempts.h"
#include "types.h"

enum { THREADS_MAX = 1024 };

typedef struct run {
    tmq_worker_t *worker;
    tmq_worker_handler_t *handler;
    void *context;
    pthread_mutex_t lock;
    int code; /* why a thread ended, if it was not the drain */
    tmq_error_t error;
} run_t;

/* What a handler gave, made fit to be sent. */
typedef struct fitted {
    tmq_run_end_t end;
    tmq_outcome_t outcome;
    char message[TMQ_ERROR_MESSAGE_BYTES_MAX + 1];
    char dropped[160]; /* what could not be sent, and why; empty for nothing */
} fitted_t;

/* Notes what is left out; the first counts, and is enough to look there. */
static void drop (fitted_t *self, const char *format, ...) __attribute__ ((format (printf, 2, 3)));
static void drop (fitted_t *self, const char *format, ...)
{
    va_list arguments;
    if (self->dropped[0] != '\0')
        return;
    va_start (arguments, format);
    vsnprintf (self->dropped, sizeof self->dropped, format, arguments);
    va_end (arguments);
}

/* The message, cut, with what was left out behind it. What is not UTF-8 is shown as '?'. */
static void fit_message (fitted_t *self)
{
    const char *text = self->outcome.error_message != NULL ? self->outcome.error_message : "";
    size_t length = strlen (text);
    size_t room = TMQ_ERROR_MESSAGE_BYTES_MAX;
    if (length > room)
        drop (self, "the message of %zu bytes was cut", length);
    size_t note = self->dropped[0] != '\0' ? strlen (self->dropped) + 3 : 0;
    length = utf8_whole (text, length, room - note);
    memcpy (self->message, text, length);
    bool valid = utf8_is_valid (text, length);
    for (size_t i = 0; i < length && !valid; i++)
        if ((unsigned char) self->message[i] >= 0x80)
            self->message[i] = '?';
    if (note > 0)
        snprintf (self->message + length, sizeof self->message - length, "%s[%s]",
                  length > 0 ? " " : "", self->dropped);
    else
        self->message[length] = '\0';
    self->outcome.error_message = self->message;
}

static void fit_type (fitted_t *self)
{
    const char *type = self->outcome.result_type;
    size_t length = type != NULL ? strlen (type) : 0;
    if (length <= TMQ_CONTENT_TYPE_BYTES_MAX && utf8_is_valid (type, length))
        return;
    drop (self, "result_type of %zu bytes was left out", length);
    self->outcome.result_type = NULL;
}

static void fit_failure (fitted_t *self)
{
    tmq_outcome_t *outcome = &self->outcome;
    size_t length = outcome->error_data != NULL ? strlen (outcome->error_data) : 0;
    if (task_error_is_reserved (outcome->error_code)) {
        drop (self, "the code %" PRId32 " is the broker's", outcome->error_code);
        outcome->error_code = 0;
    }
    if (length > TMQ_ERROR_DATA_BYTES_MAX) {
        drop (self, "error_data of %zu bytes was left out", length);
        outcome->error_data = NULL;
    } else if (length > 0 && !json_text_is_valid (outcome->error_data, length)) {
        drop (self, "error_data was left out: it is no JSON");
        outcome->error_data = NULL;
    }
    if (outcome->result_bytes + core_long_data (outcome) > TMQ_FRAME_BYTES_MAX) {
        drop (self, "the result of %zu bytes was left out", outcome->result_bytes);
        outcome->result_bytes = 0;
    }
    fit_message (self);
}

static void fit (fitted_t *self, tmq_run_end_t end, const tmq_outcome_t *given)
{
    self->end = end;
    self->outcome = *given;
    self->dropped[0] = '\0';
    fit_type (self);
    if (end == TMQ_RUN_FAIL)
        fit_failure (self);
}

static int fail_too_large (tmq_worker_t *worker, const tmq_assignment_t *assignment,
                           const tmq_error_t *error)
{
    char message[sizeof error->text + 32];
    snprintf (message, sizeof message, "the result: %s", error->text);
    const tmq_outcome_t outcome = {
        .error_code = TMQ_TASK_ERROR_TOO_LARGE, .error_message = message, .final = true};
    return tmq_worker_fail (worker, assignment, &outcome, TMQ_FOREVER, NULL);
}

/* The answer is "no", and the attempt is still ours. */
static bool is_refused (tmq_worker_t *worker, const tmq_assignment_t *assignment, int code)
{
    return code != TMQ_OK && code != TMQ_CLOSED && code != TMQ_FORKED &&
           tmq_worker_state (worker, assignment) != TMQ_ATTEMPT_LOST;
}

static void report (tmq_worker_t *worker, const tmq_assignment_t *assignment, fitted_t *fitted)
{
    int code;
    if (tmq_worker_state (worker, assignment) == TMQ_ATTEMPT_CANCELLED)
        code = tmq_worker_cancelled (worker, assignment, TMQ_FOREVER, NULL);
    else if (fitted->end == TMQ_RUN_FAIL)
        code = tmq_worker_fail (worker, assignment, &fitted->outcome, TMQ_FOREVER, NULL);
    else if (fitted->end == TMQ_RUN_RELEASE)
        code = tmq_worker_release (worker, assignment, UINT32_MAX, TMQ_FOREVER, NULL);
    else {
        if (fitted->dropped[0] != '\0')
            tmq_worker_message (worker, assignment, fitted->dropped, TMQ_FOREVER, NULL);
        tmq_error_t error = {0};
        code = tmq_worker_complete (worker, assignment, &fitted->outcome, TMQ_FOREVER, &error);
        if (code == TMQ_TOO_LARGE)
            code = fail_too_large (worker, assignment, &error);
    }
    /* Else there is nothing left to do: the attempt is over, or another one took its place. */
    if (is_refused (worker, assignment, code))
        tmq_worker_release (worker, assignment, UINT32_MAX, TMQ_FOREVER, NULL);
}

static void work (const run_t *run, tmq_assignment_t *assignment)
{
    tmq_outcome_t outcome = {0};
    fitted_t fitted;
    tmq_worker_started (run->worker, assignment, NULL);
    tmq_run_end_t end = run->handler (run->context, run->worker, assignment, &outcome);
    fit (&fitted, end, &outcome);
    report (run->worker, assignment, &fitted);
    client_worker_returned (run->worker, assignment);
    if (outcome.release != NULL)
        outcome.release ((void *) (uintptr_t) outcome.result);
    tmq_assignment_free (assignment);
}

static void *run_main (void *argument)
{
    run_t *run = argument;
    tmq_assignment_t *assignment;
    tmq_error_t error;
    int code;
    while ((code = tmq_worker_next (&assignment, run->worker, TMQ_FOREVER, &error)) == TMQ_OK)
        work (run, assignment);
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
