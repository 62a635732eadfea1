/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* What is said about one attempt: started, progress, status messages, its end.
 *
 * Progress is best effort, the latest wins; status messages are requests that are merged when they
 * come faster than ten a second: the newest is sent, and its answer is the answer to all of them
 * (S23). What ends an attempt is a request like any other, so it survives reconnects. */
#include <stdlib.h>
#include <string.h>

#include "ids.h"
#include "types.h"
#include "workers.h"

enum {
    FIELD_STARTED = 52,
    FIELD_PUSH = 54,
    FIELD_CANCEL_ACK = 55,
    FIELD_COMPLETE = 56,
    FIELD_FAIL = 57,
    FIELD_RELEASE = 58
};

static bool is_end (unsigned op)
{
    return op == TMQ_OP_COMPLETE || op == TMQ_OP_FAIL || op == TMQ_OP_RELEASE ||
           op == TMQ_OP_CANCELLED;
}

/* A request about an attempt, opened at its lease; the caller appends and closes. */
static core_request_t *about (core_request_t *request, const core_attempt_t *attempt,
                              uint32_t field, bytes_mark_t *mark)
{
    if (request == NULL)
        return NULL;
    request->task_id = attempt->node.id;
    request->attempt = attempt->attempt;
    request->answer.completion.task_id = attempt->node.id;
    *mark = bytes_open (&request->fields, field);
    bytes_mark_t lease = bytes_open (&request->fields, 1);
    core_attempt_encode (&request->fields, attempt);
    bytes_close (&request->fields, lease);
    return request;
}

static void say (core_attempt_t *attempt, core_op_t op, uint32_t field, bool changes)
{
    core_t *core = attempt->worker->core;
    bytes_mark_t mark = 0;
    core_request_t *request = about (core_internal_new (core, op, changes), attempt, field, &mark);
    if (request != NULL) {
        if (op == CORE_OP_GIVE_BACK)
            bytes_append_uint (&request->fields, 3, 1); /* no_delay: nothing was begun */
        bytes_close (&request->fields, mark);
    }
    core_internal_send (core, request);
}

void core_attempt_give_back (core_attempt_t *attempt)
{
    say (attempt, CORE_OP_GIVE_BACK, FIELD_RELEASE, true);
    core_attempt_free (attempt);
}

void core_attempt_cancelled (core_attempt_t *attempt, const char *message)
{
    if (!attempt->taken) {
        say (attempt, CORE_OP_CANCEL_ACK, FIELD_CANCEL_ACK, true);
        core_attempt_free (attempt);
        return;
    }
    if (attempt->state == TMQ_ATTEMPT_CANCELLED)
        return;
    attempt->state = TMQ_ATTEMPT_CANCELLED;
    core_attempt_change (attempt, TMQ_ATTEMPT_CANCELLED, message);
}

static core_attempt_t *find (const core_worker_t *self, const tmq_assignment_t *of)
{
    core_attempt_t *attempt =
        of == NULL ? NULL : core_attempt_find (self->core, &of->task_id, of->attempt);
    return attempt != NULL && attempt->worker == self ? attempt : NULL;
}

tmq_attempt_state_t core_worker_state (const core_worker_t *self, const tmq_assignment_t *of)
{
    const core_attempt_t *attempt = find (self, of);
    if (attempt == NULL)
        return TMQ_ATTEMPT_LOST;
    return attempt->ends > 0 ? TMQ_ATTEMPT_ENDED : attempt->state;
}

static int stale (tmq_error_t *error)
{
    return core_error (error, TMQ_STALE_LEASE, "this worker does not hold the attempt any more");
}

int core_worker_started (core_worker_t *self, const tmq_assignment_t *of, tmq_error_t *error)
{
    core_attempt_t *attempt = find (self, of);
    if (attempt == NULL)
        return stale (error);
    if (!attempt->started) {
        attempt->started = true; /* registrations and renewals repeat it */
        say (attempt, CORE_OP_STARTED, FIELD_STARTED, false);
    }
    return core_error (error, TMQ_OK, NULL);
}

/* Progress and messages. */

static void push_schedule (core_attempt_t *attempt)
{
    core_t *core = attempt->worker->core;
    if (attempt->push_due || (attempt->message == NULL && !attempt->has_progress))
        return;
    if (core->now_ms < attempt->push_after_ms) {
        core_heap_set (&core->timers, &attempt->push_timer, attempt->push_after_ms);
        return;
    }
    attempt->push_due = true;
    attempt->next_push = core->pushes_first;
    core->pushes_first = attempt;
}

void core_push_due (core_t *core, void *item)
{
    (void) core;
    push_schedule (item);
}

static void progress_clear (core_attempt_t *attempt)
{
    attempt->has_progress = false;
    free (attempt->progress_unit);
    free (attempt->progress_message);
    attempt->progress_unit = NULL;
    attempt->progress_message = NULL;
}

static void progress_send (core_attempt_t *attempt)
{
    core_t *core = attempt->worker->core;
    bytes_mark_t mark = 0;
    core_request_t *request =
        about (core_internal_new (core, CORE_OP_PROGRESS, true), attempt, FIELD_PUSH, &mark);
    if (request != NULL) {
        bytes_mark_t progress = bytes_open (&request->fields, 3);
        bytes_append_uint (&request->fields, 1, attempt->progress_done);
        bytes_append_uint (&request->fields, 2, attempt->progress_total);
        bytes_append_string (&request->fields, 3, attempt->progress_unit);
        bytes_append_string (&request->fields, 4, attempt->progress_message);
        bytes_close (&request->fields, progress);
        bytes_close (&request->fields, mark);
    }
    progress_clear (attempt);
    core_internal_send (core, request);
}

void core_attempts_output (core_t *core)
{
    while (core->pushes_first != NULL) {
        core_attempt_t *attempt = core->pushes_first;
        core->pushes_first = attempt->next_push;
        attempt->push_due = false;
        attempt->push_after_ms = core->now_ms + CORE_PUSH_MS;
        if (attempt->message != NULL)
            core_request_queue (core, attempt->message);
        attempt->message = NULL;
        if (attempt->has_progress)
            progress_send (attempt);
    }
}

static void push_unlist (core_attempt_t *attempt)
{
    core_attempt_t **at = &attempt->worker->core->pushes_first;
    while (attempt->push_due && *at != attempt)
        at = &(*at)->next_push;
    if (attempt->push_due)
        *at = attempt->next_push;
    attempt->push_due = false;
}

void core_attempt_silence (core_attempt_t *attempt, int code)
{
    push_unlist (attempt);
    progress_clear (attempt);
    if (attempt->message != NULL)
        core_request_end (attempt->worker->core, attempt->message, code, NULL, 0);
    attempt->message = NULL;
}

static bool copy_text (char **out, const char *text)
{
    *out = text != NULL && text[0] != '\0' ? strdup (text) : NULL;
    return *out != NULL || text == NULL || text[0] == '\0';
}

int core_worker_progress (core_worker_t *self, const tmq_assignment_t *of,
                          const tmq_progress_t *progress, int64_t now_ms, tmq_error_t *error)
{
    self->core->now_ms = now_ms > self->core->now_ms ? now_ms : self->core->now_ms;
    core_attempt_t *attempt = find (self, of);
    int code = core_check_text (progress->unit, "unit", TMQ_UNIT_BYTES_MAX, error);
    if (code == TMQ_OK)
        code = core_check_text (progress->message, "message", TMQ_MESSAGE_BYTES_MAX, error);
    if (code != TMQ_OK)
        return code;
    if (attempt == NULL)
        return stale (error);
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

/* The newer message takes the place of one that was not sent, and of those that it replaced. */
static void message_replace (core_attempt_t *attempt, core_request_t *newer)
{
    core_request_t *older = attempt->message;
    attempt->message = newer;
    if (older == NULL)
        return;
    newer->followers = older;
    older->leader = newer;
    older->next = older->followers;
    older->followers = NULL;
    for (core_request_t *at = older->next; at != NULL; at = at->next)
        at->leader = newer;
}

void core_followers_leave (core_request_t *follower)
{
    core_request_t **at = &follower->leader->followers;
    while (*at != follower)
        at = &(*at)->next;
    *at = follower->next;
    follower->next = NULL;
    follower->leader = NULL;
}

/* The leader's deadline has come, those of others have not: the first of them goes on with what was
 * to be said, under the same request id, so that saying it twice is saying it once. */
void core_followers_inherit (core_t *core, core_request_t *leader)
{
    core_request_t *heir = leader->followers;
    core_attempt_t *attempt = core_attempt_find (core, &leader->task_id, leader->attempt);
    bool unsent = attempt != NULL && attempt->message == leader;
    leader->followers = NULL;
    heir->leader = NULL;
    heir->followers = heir->next;
    heir->next = NULL;
    for (core_request_t *at = heir->followers; at != NULL; at = at->next)
        at->leader = heir;
    bytes_t fields = heir->fields;
    core->open_bytes += leader->fields.length;
    core->open_bytes -= fields.length;
    heir->fields = leader->fields;
    leader->fields = fields;
    core->open_bytes += fields.length;
    core->open_bytes -= heir->fields.length;
    memcpy (heir->request_id, leader->request_id, sizeof heir->request_id);
    heir->maybe_done = leader->maybe_done;
    heir->maybe_before = leader->maybe_before;
    if (unsent)
        attempt->message = heir;
    else
        core_request_queue (core, heir);
}

static int message_request (core_request_t **out, const core_attempt_t *attempt,
                            const char *message, core_target_t target, int64_t deadline_ms,
                            tmq_error_t *error)
{
    bytes_mark_t mark = 0;
    core_request_t *request =
        about (core_request_new (TMQ_OP_PUSH, false, true), attempt, FIELD_PUSH, &mark);
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
    core_t *core = self->core;
    core->now_ms = now_ms > core->now_ms ? now_ms : core->now_ms;
    core_attempt_t *attempt = find (self, of);
    core_request_t *request = NULL;
    int code = core_check_text (message, "message", TMQ_MESSAGE_BYTES_MAX, error);
    if (code != TMQ_OK)
        return code;
    if (message == NULL || message[0] == '\0')
        return core_error (error, TMQ_INVALID, "message: must not be empty");
    if (attempt == NULL)
        return stale (error);
    code = message_request (&request, attempt, message, target, deadline_ms, error);
    if (request == NULL)
        return code;
    code = core_admit (core, 1, request->fields.length, target, error);
    if (code != TMQ_OK) {
        core_request_free (request);
        return code;
    }
    core_request_id_make (core, request->request_id);
    if (core_request_open (core, request) != TMQ_OK) {
        core_request_end (core, request, TMQ_NO_MEMORY, NULL, 0);
        return TMQ_OK;
    }
    core_queue_remove (request); /* sent when its time has come */
    request->state = CORE_REQUEST_NEW;
    message_replace (attempt, request);
    push_schedule (attempt);
    return TMQ_OK;
}

/* The end. */

static int check_outcome (const tmq_outcome_t *outcome, tmq_op_t op, tmq_error_t *error)
{
    if (outcome->result_bytes > TMQ_FRAME_BYTES_MAX)
        return core_error (error, TMQ_TOO_LARGE, "result: %zu bytes, at most %d are allowed",
                           outcome->result_bytes, TMQ_FRAME_BYTES_MAX);
    int code =
        core_check_text (outcome->result_type, "result_type", TMQ_CONTENT_TYPE_BYTES_MAX, error);
    if (code != TMQ_OK || op != TMQ_OP_FAIL)
        return code;
    if (task_error_is_reserved (outcome->error_code))
        return core_error (error, TMQ_INVALID, "error_code: %d to %d are the broker's",
                           TMQ_TASK_ERROR_RESERVED_FIRST, TMQ_TASK_ERROR_RESERVED_LAST);
    code = core_check_text (outcome->error_message, "error_message", TMQ_MESSAGE_BYTES_MAX, error);
    if (code == TMQ_OK)
        code = core_check_text (outcome->error_data, "error_data", TMQ_ERROR_DATA_BYTES_MAX, error);
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
    } else if (op == TMQ_OP_FAIL) {
        bytes_append_sint (out, 2, outcome->error_code);
        bytes_append_string (out, 3, outcome->error_message);
        bytes_append_string (out, 4, outcome->error_data);
        bytes_append_uint (out, 5, outcome->final);
        bytes_append_uint (out, 6, outcome->result_bytes);
        bytes_append_string (out, 7, outcome->result_type);
        bytes_append (&request->body, outcome->result, outcome->result_bytes);
    } else if (op == TMQ_OP_RELEASE && delay_ms != UINT32_MAX) {
        bytes_append_uint (out, 2, delay_ms);
        bytes_append_uint (out, 3, delay_ms == 0);
    }
}

static uint32_t end_field (tmq_op_t op)
{
    return op == TMQ_OP_COMPLETE  ? FIELD_COMPLETE
           : op == TMQ_OP_FAIL    ? FIELD_FAIL
           : op == TMQ_OP_RELEASE ? FIELD_RELEASE
                                  : FIELD_CANCEL_ACK;
}

int core_worker_end (core_worker_t *self, tmq_op_t op, const tmq_assignment_t *of,
                     const tmq_outcome_t *outcome, uint32_t delay_ms, core_target_t target,
                     int64_t deadline_ms, int64_t now_ms, tmq_error_t *error)
{
    static const tmq_outcome_t nothing = {0};
    core_attempt_t *attempt = find (self, of);
    bytes_mark_t mark = 0;
    if (outcome == NULL)
        outcome = &nothing;
    int code = check_outcome (outcome, op, error);
    if (code != TMQ_OK)
        return code;
    if (op == TMQ_OP_RELEASE && delay_ms != UINT32_MAX && delay_ms > TMQ_RELEASE_DELAY_MS_MAX)
        return core_error (error, TMQ_INVALID, "delay_ms: at most %d", TMQ_RELEASE_DELAY_MS_MAX);
    if (attempt == NULL)
        return stale (error);
    core_request_t *request =
        about (core_request_new (op, false, true), attempt, end_field (op), &mark);
    if (request != NULL) {
        encode_end (request, op, outcome, delay_ms);
        bytes_close (&request->fields, mark);
    }
    if (request == NULL || request->fields.failed || request->body.failed) {
        core_request_free (request);
        return core_error (error, TMQ_NO_MEMORY, NULL);
    }
    if (attempt->message != NULL) { /* what was said before the end is sent before the end */
        core_request_queue (self->core, attempt->message);
        attempt->message = NULL;
    }
    attempt->ends++; /* core_start may already answer it */
    code = core_start (self->core, request, target, deadline_ms, now_ms, error);
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

void core_attempt_answered (core_t *core, core_request_t *request, int code)
{
    if (request->op != TMQ_OP_PUSH && !is_end (request->op))
        return;
    core_attempt_t *attempt = core_attempt_find (core, &request->task_id, request->attempt);
    if (attempt == NULL)
        return;
    if (request->op == TMQ_OP_PUSH) {
        if (attempt->message == request)
            attempt->message = NULL;
        if (code == TMQ_STALE_LEASE)
            core_attempt_lost (attempt);
        else if (code == TMQ_WRONG_STATUS)
            core_attempt_cancelled (attempt, NULL);
        return;
    }
    if (attempt->ends > 0)
        attempt->ends--;
    if (is_over (code))
        core_attempt_free (attempt);
}
