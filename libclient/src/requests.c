/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Open requests: their numbers, deadlines, repeats and answers.
 *
 * A request is queued, sent, perhaps delayed by a refusal or queued again by a lost link, and ends
 * exactly once. How it ends is never a guess: an answer of the broker; TMQ_UNREACHABLE when nothing
 * was ever handed over; TMQ_UNKNOWN when it was and nobody said what became of it.
 *
 * Failure: starting an operation may fail for memory; what is open can always be ended, because
 * its answer is part of it. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core_internal.h"
#include "ids.h"
#include "types.h"

/* Errors. */

static void error_fill (tmq_error_t *error, int code, const char *text, uint32_t retry_after_ms)
{
    memset (error, 0, sizeof *error);
    error->code = code;
    error->retriable = code_is_retriable (code);
    error->retry_after_ms = retry_after_ms;
    snprintf (error->text, sizeof error->text, "%s", text != NULL ? text : code_text (code));
}

int core_error (tmq_error_t *error, int code, const char *format, ...)
{
    if (error == NULL)
        return code;
    error_fill (error, code, NULL, 0);
    if (format != NULL) {
        va_list arguments;
        va_start (arguments, format);
        vsnprintf (error->text, sizeof error->text, format, arguments);
        va_end (arguments);
    }
    return code;
}

void core_answer_set (core_answer_t *answer, int code, const char *text, uint32_t retry_after_ms)
{
    answer->completion.code = code;
    if (code == TMQ_OK)
        return;
    /* Without memory for the text the code alone has to do. */
    answer->completion.error = malloc (sizeof *answer->completion.error);
    if (answer->completion.error != NULL)
        error_fill (answer->completion.error, code, text, retry_after_ms);
}

/* Answers. */

void core_answer_push (core_t *self, core_answer_t *answer)
{
    answer->next = NULL;
    answer->previous = self->answers_last;
    if (self->answers_last != NULL)
        self->answers_last->next = answer;
    else
        self->answers_first = answer;
    self->answers_last = answer;
}

core_answer_t *core_answer_next (core_t *self)
{
    core_answer_t *answer = self->answers_first;
    if (answer == NULL)
        return NULL;
    self->answers_first = answer->next;
    if (answer->next != NULL)
        answer->next->previous = NULL;
    else
        self->answers_last = NULL;
    answer->next = NULL;
    return answer;
}

void core_answer_withdraw (core_t *self, const core_answer_t *answer)
{
    for (core_answer_t *at = self->answers_first; at != NULL; at = at->next)
        if (at == answer) {
            if (at->previous != NULL)
                at->previous->next = at->next;
            else
                self->answers_first = at->next;
            if (at->next != NULL)
                at->next->previous = at->previous;
            else
                self->answers_last = at->previous;
            return;
        }
}

void core_answer_free (core_answer_t *answer)
{
    completion_clear (&answer->completion);
    if (!answer->embedded)
        free (answer);
}

void core_answer_taken (core_t *self, const core_answer_t *answer)
{
    if (!answer->embedded && self->untaken > 0)
        self->untaken--;
}

/* Making and freeing. */

core_request_t *core_request_new (unsigned op, bool large, bool changes)
{
    core_request_t *request = calloc (1, sizeof *request);
    if (request == NULL)
        return NULL;
    request->op = op;
    request->large = large;
    request->changes = changes;
    request->deadline_ms = CORE_NEVER;
    request->timer.kind = CORE_TIMER_REQUEST;
    request->timer.item = request;
    request->answer.completion.op = (tmq_op_t) op;
    return request;
}

/* What is needed only until the answer. */
static void request_shed (core_request_t *request)
{
    bytes_free (&request->fields);
    bytes_free (&request->body);
    free (request->items);
    request->items = NULL;
    free (request->refused_text);
    request->refused_text = NULL;
}

static void request_free_one (core_request_t *request)
{
    request_shed (request);
    core_answer_free (&request->answer);
}

void core_request_free (core_request_t *request)
{
    if (request == NULL)
        return;
    core_group_t *group = request->group;
    if (group == NULL) {
        request_free_one (request);
        return;
    }
    for (core_request_t *member = group->first; member != NULL;) {
        core_request_t *next = member->next;
        request_free_one (member);
        member = next;
    }
    core_answer_free (&group->answer);
}

void core_request_id_make (core_t *self, uint8_t out[16])
{
    self->request_ids++;
    memcpy (out, self->config.seed, 8);
    for (int i = 0; i < 8; i++)
        out[8 + i] = (uint8_t) (self->request_ids >> (8 * (7 - i)));
}

bool core_timer_reserve (core_t *self, size_t count)
{
    if (!core_heap_reserve (&self->timers, self->timers_alive + count))
        return false;
    self->timers_alive += count;
    return true;
}

/* Queues. */

void core_queue_push (core_queue_t *queue, core_request_t *request)
{
    request->queue = queue;
    request->next = NULL;
    request->previous = queue->last;
    if (queue->last != NULL)
        queue->last->next = request;
    else
        queue->first = request;
    queue->last = request;
}

void core_queue_remove (core_request_t *request)
{
    core_queue_t *queue = request->queue;
    if (queue == NULL)
        return;
    if (request->previous != NULL)
        request->previous->next = request->next;
    else
        queue->first = request->next;
    if (request->next != NULL)
        request->next->previous = request->previous;
    else
        queue->last = request->previous;
    request->queue = NULL;
    request->next = NULL;
    request->previous = NULL;
}

/* Changes and waits stay in the order in which they were started, so that a wait never overtakes
 * the submit of its task; reads with large replies may be held back behind them. */
static core_queue_t *queue_of (core_t *self, const core_request_t *request)
{
    if (request->internal && request->op != CORE_OP_WAIT)
        return &self->control;
    return request->large ? &self->large : &self->small;
}

void core_request_queue (core_t *self, core_request_t *request)
{
    core_queue_remove (request);
    request->state = CORE_REQUEST_QUEUED;
    core_queue_push (queue_of (self, request), request);
}

void core_request_sent (core_t *self, core_request_t *request)
{
    core_queue_remove (request);
    request->state = CORE_REQUEST_SENT;
    request->maybe_done = true;
    request->refused = TMQ_OK;
    core_queue_push (&self->sent, request);
    if (request->large)
        self->large_open++;
}

static size_t request_bytes (const core_request_t *request)
{
    return sizeof *request + request->fields.length + request->body.length;
}

static int64_t request_due (const core_request_t *request)
{
    if (request->state == CORE_REQUEST_DELAYED && request->retry_ms < request->deadline_ms)
        return request->retry_ms;
    return request->deadline_ms;
}

int core_request_open (core_t *self, core_request_t *request)
{
    request->number = core_slots_add (&self->requests, request);
    if (request->number == 0)
        return TMQ_NO_MEMORY;
    if (!core_timer_reserve (self, 1)) {
        core_slots_remove (&self->requests, request->number);
        request->number = 0;
        return TMQ_NO_MEMORY;
    }
    if (!request->internal)
        self->open_bytes += request_bytes (request);
    core_request_queue (self, request);
    core_heap_set (&self->timers, &request->timer, request_due (request));
    return TMQ_OK;
}

static bool is_submit (const core_request_t *request)
{
    return request->op == TMQ_OP_SUBMIT || request->op == TMQ_OP_SUBMIT_BATCH;
}

static void leave_sent (core_t *self, core_request_t *request)
{
    if (request->state == CORE_REQUEST_SENT && request->large)
        self->large_open--;
    if (request->state == CORE_REQUEST_DELAYED && is_submit (request)) {
        self->submits_delayed--;
        core_waits_unblock (self);
    }
    core_queue_remove (request);
}

static bool submits (const core_request_t *request, const tmq_id_t *id)
{
    if (request->op == TMQ_OP_SUBMIT)
        return id_equal (&request->task_id, id);
    for (size_t i = 0; request->op == TMQ_OP_SUBMIT_BATCH && i < request->items_count; i++)
        if (id_equal (&request->group->answer.completion.receipts[request->items[i].receipt].id,
                      id))
            return true;
    return false;
}

bool core_submit_is_delayed (const core_t *self, const tmq_id_t *id)
{
    for (size_t i = 0; self->submits_delayed > 0 && i < self->requests.capacity; i++) {
        const core_request_t *request = self->requests.slots[i].item;
        if (request != NULL && request->state != CORE_REQUEST_ENDED && submits (request, id))
            return true;
    }
    return false;
}

void core_request_close (core_t *self, core_request_t *request)
{
    leave_sent (self, request);
    request->state = CORE_REQUEST_ENDED;
    if (request->number == 0)
        return;
    core_slots_remove (&self->requests, request->number);
    core_heap_clear (&self->timers, &request->timer);
    self->timers_alive--;
    if (!request->internal)
        self->open_bytes -= request_bytes (request);
    request->number = 0;
}

/* Starting. */

int core_admit (core_t *self, size_t operations, size_t bytes, core_target_t target,
                tmq_error_t *error)
{
    if (self->closed)
        return core_error (error, TMQ_CLOSED, NULL);
    if (self->stage == CORE_LINK_FINAL)
        return core_error (error, self->code, "%s", self->text);
    if (self->open + operations > self->config.requests_max)
        return core_error (error, TMQ_OUTBOX_FULL,
                           "%zu operations are open, at most %zu are allowed", self->open,
                           self->config.requests_max);
    if (self->open_bytes + bytes > self->config.request_bytes_max)
        return core_error (error, TMQ_OUTBOX_FULL,
                           "the open requests hold %zu bytes, at most %zu "
                           "are allowed",
                           self->open_bytes, self->config.request_bytes_max);
    if (target.waiter == NULL && self->untaken + operations > self->config.completions_max)
        return core_error (error, TMQ_OUTBOX_FULL,
                           "%zu completions are open or not yet taken, at most %zu are allowed",
                           self->untaken, self->config.completions_max);
    self->open += operations;
    self->untaken += target.waiter == NULL ? operations : 0;
    self->counters.requests += operations;
    return TMQ_OK;
}

static size_t chain_bytes (const core_request_t *request)
{
    size_t bytes = 0;
    for (; request != NULL; request = request->next)
        bytes += request_bytes (request);
    return bytes;
}

/* Opens one request; one that cannot be opened is answered right away. */
static void start_one (core_t *self, core_request_t *request, int64_t deadline_ms)
{
    static const uint8_t none[16] = {0};
    request->next = NULL;
    request->deadline_ms = deadline_ms;
    if (request->changes && memcmp (request->request_id, none, sizeof none) == 0)
        core_request_id_make (self, request->request_id);
    if (deadline_ms <= self->now_ms)
        core_request_end (self, request, TMQ_UNREACHABLE, "no time was given; nothing was sent", 0);
    else if (core_request_open (self, request) != TMQ_OK)
        core_request_end (self, request, TMQ_NO_MEMORY, NULL, 0);
}

int core_start (core_t *self, core_request_t *request, core_target_t target, int64_t deadline_ms,
                int64_t now_ms, tmq_error_t *error)
{
    self->now_ms = now_ms > self->now_ms ? now_ms : self->now_ms;
    int code = core_admit (self, 1, chain_bytes (request), target, error);
    if (code != TMQ_OK) {
        core_request_free (request);
        return code;
    }
    core_answer_t *answer = request->group != NULL ? &request->group->answer : &request->answer;
    answer->waiter = target.waiter;
    answer->completion.user = target.user;
    while (request != NULL) {
        core_request_t *next = request->next;
        start_one (self, request, deadline_ms);
        request = next;
    }
    return TMQ_OK;
}

/* Ending. */

static void error_add_request_id (core_answer_t *answer, const core_request_t *request)
{
    if (answer->completion.error != NULL)
        memcpy (answer->completion.error->request_id, request->request_id,
                sizeof request->request_id);
}

/* What the member's tasks were not told otherwise, they are told now. */
static void member_end (core_t *self, core_request_t *member, int code, const char *text,
                        uint32_t retry_after_ms)
{
    core_group_t *group = member->group;
    for (size_t i = 0; i < member->items_count && code != TMQ_OK; i++) {
        tmq_receipt_t *receipt = &group->answer.completion.receipts[member->items[i].receipt];
        receipt->code = code;
        snprintf (receipt->text, sizeof receipt->text, "%s",
                  text != NULL ? text : code_text (code));
    }
    if (code != TMQ_OK && group->code == TMQ_OK) {
        group->code = code;
        core_answer_set (&group->answer, code, text, retry_after_ms);
        error_add_request_id (&group->answer, member);
    }
    if (--group->open == 0) {
        self->open--;
        core_answer_push (self, &group->answer);
    }
    request_free_one (member);
}

static void internal_end (core_t *self, core_request_t *request)
{
    if (request->op == CORE_OP_WAIT && request->items_count > 0)
        core_waits_forget (self, request->number);
    core_request_close (self, request);
    request_free_one (request);
}

void core_request_end (core_t *self, core_request_t *request, int code, const char *text,
                       uint32_t retry_after_ms)
{
    if (request->internal) {
        internal_end (self, request);
        return;
    }
    core_request_t *followers = request->followers;
    request->followers = NULL;
    core_request_close (self, request);
    core_attempt_answered (self, request, code);
    if (request->group != NULL) {
        member_end (self, request, code, text, retry_after_ms);
        return;
    }
    core_answer_set (&request->answer, code, text, retry_after_ms);
    if (code == TMQ_UNKNOWN)
        error_add_request_id (&request->answer, request);
    if (request->op == TMQ_OP_SUBMIT && code != TMQ_OK) {
        tmq_receipt_t *receipt = request->answer.completion.receipts;
        receipt->code = code;
        snprintf (receipt->text, sizeof receipt->text, "%s",
                  text != NULL ? text : code_text (code));
    }
    request_shed (request);
    self->open--;
    core_answer_push (self, &request->answer);
    while (followers != NULL) {
        core_request_t *next = followers->next;
        followers->next = NULL;
        followers->leader = NULL;
        core_request_end (self, followers, code, text, retry_after_ms);
        followers = next;
    }
}

void core_request_delay (core_t *self, core_request_t *request, int code, const char *text,
                         uint32_t retry_after_ms)
{
    uint32_t pause_ms = retry_after_ms != 0 ? retry_after_ms : CORE_RETRY_MS;
    leave_sent (self, request);
    if (request->internal)
        core_queue_push (&self->delayed, request); /* to be forgotten with the link */
    if (is_submit (request))
        self->submits_delayed++;
    request->state = CORE_REQUEST_DELAYED;
    request->maybe_done = request->maybe_before;
    request->refused = code;
    request->refused_ms = retry_after_ms;
    free (request->refused_text);
    request->refused_text = text != NULL && text[0] != '\0' ? strdup (text) : NULL;
    /* A fifth of jitter keeps many clients from coming back at the same moment. */
    request->retry_ms =
        self->now_ms + pause_ms + (int64_t) (core_random (self) % (pause_ms / 5 + 1));
    core_heap_set (&self->timers, &request->timer, request_due (request));
}

/* Deadlines. */

static void request_expire (core_t *self, core_request_t *request)
{
    char text[sizeof self->text + 64];
    if (request->changes && request->maybe_done) {
        core_request_end (self, request, TMQ_UNKNOWN, NULL, 0);
        return;
    }
    if (request->refused != TMQ_OK) {
        char *refused = request->refused_text;
        request->refused_text = NULL;
        core_request_end (self, request, request->refused, refused, request->refused_ms);
        free (refused);
        return;
    }
    if (self->stage == CORE_LINK_UP || request->maybe_done)
        snprintf (text, sizeof text, "no answer in time");
    else
        snprintf (text, sizeof text, "%s", self->text);
    core_request_end (self, request, TMQ_UNREACHABLE, text, 0);
}

void core_request_timer (core_t *self, core_request_t *request)
{
    if (self->now_ms >= request->deadline_ms) {
        if (request->leader != NULL)
            core_followers_leave (request);
        else if (request->followers != NULL)
            core_followers_inherit (self, request);
        /* A link on which these stay unanswered is of no use, whatever its heartbeats say. */
        bool vital = request->op == CORE_OP_REGISTER || request->op == CORE_OP_SUBSCRIBE;
        request_expire (self, request);
        if (vital)
            core_link_drop (self, TMQ_UNREACHABLE, "no answer to a registration or subscription");
        return;
    }
    leave_sent (self, request);
    core_request_queue (self, request);
    core_heap_set (&self->timers, &request->timer, request->deadline_ms);
}

/* All at once. */

static void internals_end (core_t *self, const core_queue_t *queue)
{
    for (core_request_t *request = queue->first; request != NULL;) {
        core_request_t *next = request->next;
        internal_end (self, request);
        request = next;
    }
}

void core_requests_unsend (core_t *self)
{
    core_queue_t sent = self->sent;
    core_queue_t small = self->small;
    core_queue_t large = self->large;
    self->sent = self->small = self->large = (core_queue_t){NULL, NULL};
    self->large_open = 0;
    for (core_request_t *request = sent.first; request != NULL;) {
        core_request_t *next = request->next;
        request->queue = NULL;
        request->state = CORE_REQUEST_NEW;
        if (request->internal) {
            internal_end (self, request);
        } else {
            request->maybe_before = request->maybe_done;
            core_request_queue (self, request);
            self->counters.resent++;
        }
        request = next;
    }
    const core_queue_t *unsent[] = {&small, &large};
    for (size_t i = 0; i < 2; i++)
        for (core_request_t *request = unsent[i]->first; request != NULL;) {
            core_request_t *next = request->next;
            request->queue = NULL;
            if (request->internal)
                internal_end (self, request);
            else
                core_request_queue (self, request);
            request = next;
        }
    internals_end (self, &self->control);
    internals_end (self, &self->delayed);
}

void core_requests_end (core_t *self, int code, const char *text)
{
    for (size_t i = 0; i < self->requests.capacity; i++) {
        core_request_t *request = self->requests.slots[i].item;
        if (request == NULL)
            continue;
        bool unknown = code == TMQ_CLOSED && request->changes && request->maybe_done;
        if (request->leader != NULL)
            core_followers_leave (request);
        core_request_end (self, request, unknown ? TMQ_UNKNOWN : code, unknown ? NULL : text, 0);
    }
    core_waits_end (self, code, text);
}

/* Requests of the core itself. */

core_request_t *core_internal_new (core_t *self, unsigned op, bool changes)
{
    core_request_t *request = core_request_new (op, false, changes);
    if (request == NULL)
        return NULL;
    request->internal = true;
    request->deadline_ms = self->now_ms + CORE_INTERNAL_MS;
    if (changes)
        core_request_id_make (self, request->request_id);
    return request;
}

uint64_t core_internal_send (core_t *self, core_request_t *request)
{
    bool made = request != NULL && !request->fields.failed && !request->body.failed;
    bool linked = self->stage == CORE_LINK_UP ||
                  (self->stage == CORE_LINK_HELLO && made && request->op == CORE_OP_HELLO);
    /* Without a link it is not needed: the next one begins with a complete picture anyway. */
    if (made && linked && core_request_open (self, request) == TMQ_OK)
        return request->number;
    if (request != NULL)
        request_free_one (request);
    if (linked)
        core_link_drop (self, TMQ_NO_MEMORY, NULL);
    return 0;
}
