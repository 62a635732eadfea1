/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* What is said about one attempt: started, progress, status messages, its end.
 *
 * Progress is best effort, the latest wins; status messages are requests that are merged when they
 * come faster than ten a second: the newest is sent, and its answer is the answer to all of them
 * (S19). What ends an attempt is a request like any other, so it survives reconnects. */
#include "parts/attempts.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/errors.h"
#include "codec/encode.h"
#include "ids.h"
#include "types.h"

enum {
    PUSH_MS = 100,                    /* between two pushes of one attempt: 10 a second (S19) */
    CHANGES_MAX = 2 * TMQ_CREDIT_MAX, /* older ones give way */
    LOST_MAX = TMQ_CREDIT_MAX         /* of a worker, remembered; older ones give way */
};

/* Waking. */

void core_worker_wake (core_worker_t *self)
{
    core_parts_wake (&self->all->parts, &self->part);
}

core_change_t *core_change_pop (core_worker_t *self)
{
    core_change_t *change = self->changes_first;
    self->changes_first = change->next;
    if (self->changes_first == NULL)
        self->changes_last = NULL;
    self->changes_count--;
    if (change->attempt != NULL)
        change->attempt->change = NULL;
    return change;
}

void core_attempt_change (core_attempt_t *attempt, tmq_attempt_state_t state, const char *message)
{
    core_worker_t *worker = attempt->worker;
    if (!attempt->taken)
        return;
    core_change_t *change = attempt->change;
    if (change != NULL && state == TMQ_ATTEMPT_ANSWERED)
        return; /* what is untold says more, and wakes whoever looks for answers too */
    if (change == NULL) {
        change = calloc (1, sizeof *change);
        if (change == NULL)
            return; /* tmq_worker_state still tells it */
        if (worker->changes_count >= CHANGES_MAX)
            free (core_change_pop (worker));
        if (worker->changes_last != NULL)
            worker->changes_last->next = change;
        else
            worker->changes_first = change;
        worker->changes_last = change;
        worker->changes_count++;
        attempt->change = change;
        change->attempt = attempt;
    }
    change->change.task_id = attempt->node.id;
    change->change.attempt = attempt->attempt;
    change->change.state = state;
    if (message != NULL)
        snprintf (change->change.message, sizeof change->change.message, "%s", message);
    core_worker_wake (worker);
}

void core_attempt_schedule (core_attempt_t *attempt)
{
    int64_t ending_ms = attempt->granted_ms + attempt->lease_ms / 2;
    int64_t at_ms = attempt->renew_ms;
    if (attempt->state == TMQ_ATTEMPT_HELD && ending_ms < at_ms)
        at_ms = ending_ms;
    if (attempt->hurry_ms != 0 && attempt->hurry_ms < at_ms)
        at_ms = attempt->hurry_ms;
    core_heap_set (&attempt->worker->all->requests->timers, &attempt->lease_timer, at_ms);
}

/* Attempts. */

static core_attempt_t *find_known (const core_workers_t *all, const tmq_id_t *id, uint32_t attempt)
{
    core_idnode_t *node = core_idmap_get (&all->attempts, id);
    while (node != NULL && ((core_attempt_t *) node)->attempt != attempt)
        node = core_idmap_again (node);
    return (core_attempt_t *) node;
}

core_attempt_t *core_attempt_find (const core_workers_t *all, const tmq_id_t *id, uint32_t attempt)
{
    core_attempt_t *known = find_known (all, id, attempt);
    return known != NULL && known->lost ? NULL : known;
}

static core_attempt_t *fresh_at (const core_worker_t *self, size_t index)
{
    return self->fresh[(self->fresh_first + index) % self->fresh_size];
}

bool core_fresh_push (core_worker_t *self, core_attempt_t *attempt)
{
    if (self->fresh_count == self->fresh_size)
        return false;
    self->fresh[(self->fresh_first + self->fresh_count) % self->fresh_size] = attempt;
    self->fresh_count++;
    return true;
}

core_attempt_t *core_fresh_pop (core_worker_t *self)
{
    core_attempt_t *attempt = fresh_at (self, 0);
    self->fresh_first = (self->fresh_first + 1) % self->fresh_size;
    self->fresh_count--;
    return attempt;
}

static void fresh_remove (core_worker_t *self, const core_attempt_t *attempt)
{
    size_t kept = 0;
    for (size_t i = 0; i < self->fresh_count; i++) {
        core_attempt_t *at = fresh_at (self, i);
        if (at != attempt)
            self->fresh[(self->fresh_first + kept++) % self->fresh_size] = at;
    }
    self->fresh_count = kept;
}

static void progress_clear (core_attempt_t *attempt)
{
    attempt->has_progress = false;
    free (attempt->progress_unit);
    free (attempt->progress_message);
    attempt->progress_unit = NULL;
    attempt->progress_message = NULL;
}

static void push_unlist (core_attempt_t *attempt)
{
    core_attempt_t **at = &attempt->worker->all->pushes;
    while (attempt->push_due && *at != attempt)
        at = &(*at)->next_push;
    if (attempt->push_due)
        *at = attempt->next_push;
    attempt->push_due = false;
}

/* What cannot be said any more: messages that were not sent are answered. */
static void silence (core_attempt_t *attempt, int code)
{
    push_unlist (attempt);
    progress_clear (attempt);
    if (attempt->message != NULL)
        core_request_end (attempt->worker->all->requests, attempt->message, code, NULL, 0);
    attempt->message = NULL;
}

static void answers_free (core_attempt_t *attempt)
{
    while (attempt->answers != NULL) {
        core_given_t *given = attempt->answers;
        attempt->answers = given->next;
        tmq_given_free (given->given);
        free (given);
    }
}

static void unlist (core_attempt_t *attempt)
{
    core_worker_t *worker = attempt->worker;
    core_attempt_t **first = attempt->lost ? &worker->lost : &worker->attempts;
    if (attempt->previous != NULL)
        attempt->previous->next = attempt->next;
    else
        *first = attempt->next;
    if (attempt->next != NULL)
        attempt->next->previous = attempt->previous;
    if (attempt->lost)
        worker->lost_count--;
    else
        worker->held--;
}

/* There is nothing more to be said, but perhaps its end. */
static void quieten (core_attempt_t *attempt)
{
    core_workers_t *all = attempt->worker->all;
    silence (attempt, TMQ_STALE_LEASE);
    answers_free (attempt);
    core_log_free (attempt->log);
    attempt->log = NULL;
    core_heap_clear (&all->requests->timers, &attempt->lease_timer);
    core_heap_clear (&all->requests->timers, &attempt->push_timer);
}

void core_attempt_free (core_attempt_t *attempt)
{
    core_worker_t *worker = attempt->worker;
    core_workers_t *all = worker->all;
    core_idmap_remove (&all->attempts, &attempt->node); /* from here on nobody finds it */
    if (attempt->fresh != NULL)
        fresh_remove (worker, attempt);
    if (attempt->change != NULL)
        attempt->change->attempt = NULL;
    quieten (attempt);
    all->requests->timers_alive -= 2;
    unlist (attempt);
    tmq_assignment_free (attempt->fresh);
    free (attempt);
}

static void forget_oldest (core_worker_t *worker)
{
    core_attempt_t *oldest = worker->lost;
    while (oldest->next != NULL)
        oldest = oldest->next;
    if (oldest != worker->lost) /* there are LOST_MAX */
        core_attempt_free (oldest);
}

void core_attempt_lost (core_attempt_t *attempt, const char *message)
{
    core_worker_t *worker = attempt->worker;
    if (attempt->ends > 0)
        return; /* the answer to its end says what became of it */
    core_attempt_change (attempt, TMQ_ATTEMPT_LOST, message);
    if (!attempt->taken) {
        core_attempt_free (attempt);
        return;
    }
    if (worker->lost_count >= LOST_MAX)
        forget_oldest (worker);
    quieten (attempt);
    unlist (attempt);
    attempt->lost = true;
    attempt->state = TMQ_ATTEMPT_LOST;
    attempt->previous = NULL;
    attempt->next = worker->lost;
    if (attempt->next != NULL)
        attempt->next->previous = attempt;
    worker->lost = attempt;
    worker->lost_count++;
}

void core_attempt_encode (bytes_t *out, const core_attempt_t *attempt)
{
    bytes_append_blob (out, 1, attempt->node.id.bytes, ID_BYTES);
    bytes_append_uint (out, 2, attempt->attempt);
    bytes_append_blob (out, 3, attempt->secret, sizeof attempt->secret);
    bytes_append_uint (out, 4, attempt->started);
}

/* Words about an attempt. */

core_request_t *core_attempt_about (core_request_t *request, const core_attempt_t *attempt,
                                    bytes_mark_t *mark)
{
    if (request == NULL)
        return NULL;
    request->task_id = attempt->node.id;
    request->attempt = attempt->attempt;
    request->answer.completion.task_id = attempt->node.id;
    *mark = core_request_begin (request);
    bytes_mark_t lease = bytes_open (&request->fields, 1);
    core_attempt_encode (&request->fields, attempt);
    bytes_close (&request->fields, lease);
    return request;
}

static void say (core_attempt_t *attempt, core_op_t op)
{
    core_requests_t *requests = attempt->worker->all->requests;
    bytes_mark_t mark = 0;
    core_request_t *request = core_attempt_about (core_internal_new (requests, op), attempt, &mark);
    if (request != NULL) {
        if (op == CORE_OP_GIVE_BACK)
            bytes_append_uint (&request->fields, 3, 1); /* no_delay: nothing was begun */
        if (op == CORE_OP_TAKE_ANSWERS)
            bytes_append_uint (&request->fields, 2, attempt->answers_seen);
        bytes_close (&request->fields, mark);
    }
    core_internal_send (requests, request);
}

bool core_attempt_take (core_attempt_t *attempt)
{
    if (!core_link_is_up (attempt->worker->all->link))
        return false;
    say (attempt, CORE_OP_TAKE_ANSWERS);
    return true;
}

void core_attempt_refused (core_attempt_t *attempt, uint32_t code)
{
    if (code == TMQ_WRONG_STATUS)
        core_attempt_cancelled (attempt, NULL);
    else if (code == TMQ_STALE_LEASE || code == TMQ_NOT_FOUND || code == TMQ_EXPIRED ||
             code == TMQ_PURGED)
        core_attempt_lost (attempt, NULL);
}

void core_attempt_give_back (core_attempt_t *attempt)
{
    say (attempt, CORE_OP_GIVE_BACK);
    core_attempt_free (attempt);
}

void core_attempt_cancelled (core_attempt_t *attempt, const char *message)
{
    if (!attempt->taken) {
        say (attempt, CORE_OP_CANCEL_ACK);
        core_attempt_free (attempt);
        return;
    }
    if (attempt->state == TMQ_ATTEMPT_CANCELLED)
        return;
    attempt->state = TMQ_ATTEMPT_CANCELLED;
    core_attempt_change (attempt, TMQ_ATTEMPT_CANCELLED, message);
}

/* … held or remembered. */
static core_attempt_t *known_of (const core_worker_t *self, const tmq_assignment_t *of)
{
    core_attempt_t *attempt = of == NULL ? NULL : find_known (self->all, &of->task_id, of->attempt);
    return attempt != NULL && attempt->worker == self ? attempt : NULL;
}

core_attempt_t *core_attempt_of (const core_worker_t *self, const tmq_assignment_t *of)
{
    core_attempt_t *attempt =
        of == NULL ? NULL : core_attempt_find (self->all, &of->task_id, of->attempt);
    return attempt != NULL && attempt->worker == self ? attempt : NULL;
}

tmq_attempt_state_t core_worker_state (const core_worker_t *self, const tmq_assignment_t *of)
{
    const core_attempt_t *attempt = core_attempt_of (self, of);
    if (attempt == NULL)
        return TMQ_ATTEMPT_LOST;
    if (attempt->ends > 0)
        return TMQ_ATTEMPT_ENDED;
    return attempt->hurries && attempt->state == TMQ_ATTEMPT_HELD ? TMQ_ATTEMPT_HURRY
                                                                  : attempt->state;
}

void core_worker_returned (core_worker_t *self, const tmq_assignment_t *of)
{
    core_attempt_t *attempt = known_of (self, of);
    if (attempt != NULL && attempt->ends == 0)
        core_attempt_free (attempt);
}

int core_attempt_stale (tmq_error_t *error)
{
    return core_error (error, TMQ_STALE_LEASE, "this worker does not hold the attempt any more");
}

int core_worker_started (core_worker_t *self, const tmq_assignment_t *of, tmq_error_t *error)
{
    core_attempt_t *attempt = core_attempt_of (self, of);
    if (attempt == NULL)
        return core_attempt_stale (error);
    if (!attempt->started) {
        attempt->started = true; /* registrations and renewals repeat it */
        say (attempt, CORE_OP_STARTED);
        if (attempt->runtime_ms > 0)
            attempt->hurry_ms = self->all->link->now_ms + attempt->runtime_ms / 2;
        core_attempt_schedule (attempt);
    }
    return core_error (error, TMQ_OK, NULL);
}

/* Progress and messages. */

static void push_schedule (core_attempt_t *attempt)
{
    core_workers_t *all = attempt->worker->all;
    if (attempt->push_due ||
        (attempt->message == NULL && !attempt->has_progress && !core_log_waits (attempt->log)))
        return;
    if (all->link->now_ms < attempt->push_after_ms) {
        core_heap_set (&all->requests->timers, &attempt->push_timer, attempt->push_after_ms);
        return;
    }
    attempt->push_due = true;
    attempt->next_push = all->pushes;
    all->pushes = attempt;
}

void core_push_due (core_attempt_t *attempt)
{
    push_schedule (attempt);
}

static void progress_send (core_attempt_t *attempt)
{
    core_requests_t *requests = attempt->worker->all->requests;
    bytes_mark_t mark = 0;
    core_request_t *request =
        core_attempt_about (core_internal_new (requests, CORE_OP_PROGRESS), attempt, &mark);
    if (request != NULL) {
        bytes_mark_t progress = bytes_open (&request->fields, 3);
        bytes_append_double (&request->fields, 1, attempt->progress_done);
        bytes_append_double (&request->fields, 2, attempt->progress_total);
        bytes_append_string (&request->fields, 3, attempt->progress_unit);
        bytes_append_string (&request->fields, 4, attempt->progress_message);
        bytes_close (&request->fields, progress);
        bytes_close (&request->fields, mark);
    }
    progress_clear (attempt);
    core_internal_send (requests, request);
}

static void send_piece (core_attempt_t *attempt, const core_log_piece_t *piece)
{
    core_requests_t *requests = attempt->worker->all->requests;
    bytes_mark_t mark = 0;
    core_request_t *request =
        core_attempt_about (core_internal_new (requests, CORE_OP_LOG), attempt, &mark);
    if (request != NULL) {
        bytes_append_uint (&request->fields, 2, piece->stream);
        bytes_append_uint (&request->fields, 3, piece->offset);
        bytes_append_uint (&request->fields, 4, piece->length);
        bytes_close (&request->fields, mark);
        bytes_append (&request->body, piece->bytes, piece->length);
        request->log_stream = piece->stream;
        request->log_end = piece->offset + piece->length;
    }
    core_internal_send (requests, request);
}

void core_attempt_send_log (core_attempt_t *attempt, bool all)
{
    core_log_piece_t piece;
    while (core_link_is_up (attempt->worker->all->link) &&
           core_log_next (attempt->log, all, &piece))
        send_piece (attempt, &piece);
}

void core_attempts_output (core_workers_t *all)
{
    while (all->pushes != NULL) {
        core_attempt_t *attempt = all->pushes;
        all->pushes = attempt->next_push;
        attempt->push_due = false;
        attempt->push_after_ms = all->link->now_ms + PUSH_MS;
        if (attempt->message != NULL)
            core_request_queue (all->requests, attempt->message);
        attempt->message = NULL;
        if (attempt->has_progress)
            progress_send (attempt);
        core_attempt_send_log (attempt, false);
    }
}

static bool copy_text (char **out, const char *text)
{
    *out = text != NULL && text[0] != '\0' ? strdup (text) : NULL;
    return *out != NULL || text == NULL || text[0] == '\0';
}

static int check_amount (const char *what, double value, tmq_error_t *error)
{
    if (isfinite (value) && value >= 0)
        return TMQ_OK;
    return core_error (error, TMQ_INVALID, "%s must be a finite number from 0 up", what);
}

int core_worker_progress (core_worker_t *self, const tmq_assignment_t *of,
                          const tmq_progress_t *progress, int64_t now_ms, tmq_error_t *error)
{
    core_link_hear_time (self->all->link, now_ms);
    core_attempt_t *attempt = core_attempt_of (self, of);
    int code = core_check_text (progress->unit, "unit", TMQ_UNIT_BYTES_MAX, error);
    if (code == TMQ_OK)
        code = core_check_text (progress->message, "message", TMQ_MESSAGE_BYTES_MAX, error);
    if (code == TMQ_OK)
        code = check_amount ("done", progress->done, error);
    if (code == TMQ_OK)
        code = check_amount ("total", progress->total, error);
    if (code != TMQ_OK)
        return code;
    if (attempt == NULL)
        return core_attempt_stale (error);
    progress_clear (attempt);
    if (!copy_text (&attempt->progress_unit, progress->unit) ||
        !copy_text (&attempt->progress_message, progress->message)) {
        progress_clear (attempt);
        return core_error (error, TMQ_NO_MEMORY, NULL);
    }
    attempt->has_progress = true;
    attempt->progress_done = progress->done;
    attempt->progress_total = progress->total;
    push_schedule (attempt);
    return core_error (error, TMQ_OK, NULL);
}

static int message_request (core_request_t **out, const core_attempt_t *attempt,
                            const char *message, core_target_t target, int64_t deadline_ms,
                            tmq_error_t *error)
{
    bytes_mark_t mark = 0;
    core_request_t *request = core_attempt_about (core_request_new (TMQ_OP_PUSH), attempt, &mark);
    if (request == NULL)
        return core_error (error, TMQ_NO_MEMORY, NULL);
    bytes_append_string (&request->fields, 2, message);
    bytes_close (&request->fields, mark);
    if (request->fields.failed) {
        core_request_free (request);
        return core_error (error, TMQ_NO_MEMORY, NULL);
    }
    request->deadline_ms = deadline_ms;
    request->answer.waiter = target.waiter;
    request->answer.completion.user = target.user;
    *out = request;
    return TMQ_OK;
}

int core_worker_message (core_worker_t *self, const tmq_assignment_t *of, const char *message,
                         core_target_t target, int64_t deadline_ms, int64_t now_ms,
                         tmq_error_t *error)
{
    core_link_hear_time (self->all->link, now_ms);
    core_requests_t *requests = self->all->requests;
    core_attempt_t *attempt = core_attempt_of (self, of);
    core_request_t *request = NULL;
    int code = core_check_text (message, "message", TMQ_MESSAGE_BYTES_MAX, error);
    if (code != TMQ_OK)
        return code;
    if (message == NULL || message[0] == '\0')
        return core_error (error, TMQ_INVALID, "message: must not be empty");
    if (attempt == NULL)
        return core_attempt_stale (error);
    code = message_request (&request, attempt, message, target, deadline_ms, error);
    if (request == NULL)
        return code;
    code = core_admit (requests, 1, request->fields.length, target, error);
    if (code != TMQ_OK) {
        core_request_free (request);
        return code;
    }
    core_request_id_make (requests, request->request_id);
    if (core_request_open (requests, request) != TMQ_OK) {
        core_request_end (requests, request, TMQ_NO_MEMORY, NULL, 0);
        return TMQ_OK;
    }
    core_request_hold (request); /* sent when its time has come */
    if (attempt->message != NULL)
        core_request_replace (attempt->message, request);
    attempt->message = request;
    push_schedule (attempt);
    return TMQ_OK;
}

/* The end. */

size_t core_long_data (const tmq_outcome_t *outcome)
{
    size_t bytes = outcome->error_data != NULL ? strlen (outcome->error_data) : 0;
    return bytes > TMQ_ERROR_DATA_INLINE_MAX ? bytes : 0;
}

static int check_outcome (const tmq_outcome_t *outcome, tmq_op_t op, tmq_error_t *error)
{
    if (outcome->result_bytes > TMQ_FRAME_BYTES_MAX)
        return core_error (error, TMQ_TOO_LARGE, "result: %zu bytes, at most %d are allowed",
                           outcome->result_bytes, TMQ_FRAME_BYTES_MAX);
    if (outcome->result_blob.bytes > 0 && (op != TMQ_OP_COMPLETE || outcome->result_bytes > 0))
        return core_error (error, TMQ_INVALID,
                           "result_blob: only of a completion, and in place of a result");
    int code =
        core_check_text (outcome->result_type, "result_type", TMQ_CONTENT_TYPE_BYTES_MAX, error);
    if (code != TMQ_OK || op != TMQ_OP_FAIL)
        return code;
    if (task_error_is_reserved (outcome->error_code))
        return core_error (error, TMQ_INVALID, "error_code: %d to %d are the broker's",
                           TMQ_TASK_ERROR_RESERVED_FIRST, TMQ_TASK_ERROR_RESERVED_LAST);
    code = core_check_text (outcome->error_message, "error_message", TMQ_ERROR_MESSAGE_BYTES_MAX,
                            error);
    if (code == TMQ_OK)
        code = core_check_text (outcome->error_data, "error_data", TMQ_ERROR_DATA_BYTES_MAX, error);
    size_t long_bytes = core_long_data (outcome);
    if (code == TMQ_OK && outcome->result_bytes + long_bytes > TMQ_FRAME_BYTES_MAX)
        return core_error (error, TMQ_TOO_LARGE,
                           "result and error_data: %zu bytes, at most %d are allowed together",
                           outcome->result_bytes + long_bytes, TMQ_FRAME_BYTES_MAX);
    return code;
}

static void encode_end (core_request_t *request, tmq_op_t op, const tmq_outcome_t *outcome,
                        uint32_t delay_ms)
{
    bytes_t *out = &request->fields;
    if (op == TMQ_OP_COMPLETE) {
        bytes_append_uint (out, 2, outcome->result_bytes);
        bytes_append_string (out, 3, outcome->result_type);
        bytes_append (&request->body, outcome->result, outcome->result_bytes);
        if (outcome->result_blob.bytes > 0)
            core_encode_blob (out, 4, &outcome->result_blob);
    } else if (op == TMQ_OP_FAIL) {
        bytes_append_sint (out, 2, outcome->error_code);
        bytes_append_string (out, 3, outcome->error_message);
        size_t long_bytes = core_long_data (outcome);
        if (long_bytes == 0)
            bytes_append_string (out, 4, outcome->error_data);
        bytes_append_uint (out, 5, outcome->final);
        bytes_append_uint (out, 6, outcome->result_bytes);
        bytes_append_string (out, 7, outcome->result_type);
        bytes_append_uint (out, 8, long_bytes);
        bytes_append (&request->body, outcome->result, outcome->result_bytes);
        bytes_append (&request->body, outcome->error_data, long_bytes);
    } else if (op == TMQ_OP_RELEASE && delay_ms != UINT32_MAX) {
        bytes_append_uint (out, 2, delay_ms);
        bytes_append_uint (out, 3, delay_ms == 0);
    }
}

int core_worker_end (core_worker_t *self, tmq_op_t op, const tmq_assignment_t *of,
                     const tmq_outcome_t *outcome, uint32_t delay_ms, core_target_t target,
                     int64_t deadline_ms, int64_t now_ms, tmq_error_t *error)
{
    static const tmq_outcome_t nothing = {0};
    core_attempt_t *attempt = known_of (self, of);
    bytes_mark_t mark = 0;
    core_link_hear_time (self->all->link, now_ms);
    if (outcome == NULL)
        outcome = &nothing;
    int code = check_outcome (outcome, op, error);
    if (code != TMQ_OK)
        return code;
    if (op == TMQ_OP_RELEASE && delay_ms != UINT32_MAX && delay_ms > TMQ_RELEASE_DELAY_MS_MAX)
        return core_error (error, TMQ_INVALID, "delay_ms: at most %d", TMQ_RELEASE_DELAY_MS_MAX);
    if (attempt != NULL && attempt->lost && op != TMQ_OP_COMPLETE && attempt->ends == 0) {
        core_attempt_free (attempt); /* only a success may still be of use */
        attempt = NULL;
    }
    if (attempt == NULL)
        return core_attempt_stale (error);
    core_request_t *request = core_attempt_about (core_request_new (op), attempt, &mark);
    if (request != NULL) {
        encode_end (request, op, outcome, delay_ms);
        bytes_close (&request->fields, mark);
    }
    if (request == NULL || request->fields.failed || request->body.failed) {
        core_request_free (request);
        return core_error (error, TMQ_NO_MEMORY, NULL);
    }
    if (attempt->message != NULL) { /* what was said before the end is sent before the end */
        core_request_queue (self->all->requests, attempt->message);
        attempt->message = NULL;
    }
    core_attempt_send_log (attempt, true);
    attempt->ends++; /* it may be answered already */
    code = core_request_start (self->all->requests, request, target, deadline_ms, error);
    if (code != TMQ_OK)
        attempt->ends--;
    return code;
}

/* Codes by which the broker says that the attempt is over. */
static bool is_over (int code)
{
    return code == TMQ_OK || code == TMQ_STALE_LEASE || code == TMQ_WRONG_STATUS ||
           code == TMQ_NOT_FOUND || code == TMQ_EXPIRED || code == TMQ_PURGED;
}

void core_attempt_answered (core_workers_t *all, core_request_t *request, int code)
{
    core_attempt_t *attempt = find_known (all, &request->task_id, request->attempt);
    bool ends = core_op_ends_attempt (request->op);
    if (attempt == NULL || (attempt->lost && !ends))
        return;
    if (request->op == TMQ_OP_PUSH || request->op == TMQ_OP_ASK ||
        request->op == TMQ_OP_CHECKPOINT || request->op == TMQ_OP_TURN ||
        request->op == TMQ_OP_ARTIFACT) {
        if (attempt->message == request)
            attempt->message = request->heir;
        if (request->op == TMQ_OP_TURN && code != TMQ_OK &&
            attempt->turns >= request->answer.completion.count)
            attempt->turns = (uint32_t) request->answer.completion.count - 1;
        if (code == TMQ_STALE_LEASE)
            core_attempt_lost (attempt, NULL);
        else if (code == TMQ_WRONG_STATUS)
            core_attempt_cancelled (attempt, NULL);
        return;
    }
    if (attempt->ends > 0)
        attempt->ends--;
    if (is_over (code))
        core_attempt_free (attempt);
}
