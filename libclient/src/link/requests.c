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
#include "link/requests.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/errors.h"
#include "types.h"

enum {
    INTERNAL_MS = 30000, /* until an internal request without an answer is forgotten */
    RETRY_MS = 100       /* when a refusal names no time */
};

void core_requests_free (core_requests_t *self)
{
    core_slots_free (&self->slots);
    core_heap_free (&self->timers);
    core_idmap_free (&self->refused);
    while (core_released_next (self) != NULL) {
    }
}

void core_request_id_make (core_requests_t *self, uint8_t out[16])
{
    self->ids++;
    memcpy (out, self->config->seed, 8);
    for (int i = 0; i < 8; i++)
        out[8 + i] = (uint8_t) (self->ids >> (8 * (7 - i)));
}

uint64_t core_number_make (core_requests_t *self)
{
    return ++self->slots.newest;
}

bool core_timer_reserve (core_requests_t *self, size_t count)
{
    if (!core_heap_reserve (&self->timers, self->timers_alive + count))
        return false;
    self->timers_alive += count;
    return true;
}

/* Queues. */

static void queue_push (core_queue_t *queue, core_request_t *request)
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

static void queue_remove (core_request_t *request)
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
 * the submit of its task, nor the end of an upload its beginning; reads with large replies may be
 * held back behind them. */
static core_queue_t *queue_of (core_requests_t *self, const core_request_t *request)
{
    if (request->internal && request->op != CORE_OP_WAIT && request->op != CORE_OP_BLOB_DROP)
        return &self->control;
    return request->large ? &self->large : &self->small;
}

void core_request_queue (core_requests_t *self, core_request_t *request)
{
    queue_remove (request);
    request->state = CORE_REQUEST_QUEUED;
    queue_push (queue_of (self, request), request);
}

void core_request_hold (core_request_t *request)
{
    queue_remove (request);
    request->state = CORE_REQUEST_NEW;
}

void core_request_sent (core_requests_t *self, core_request_t *request)
{
    queue_remove (request);
    request->state = CORE_REQUEST_SENT;
    request->maybe_done = true;
    request->refused = TMQ_OK;
    bytes_clear (&request->parts); /* an answer begins anew */
    queue_push (&self->sent, request);
    if (request->large)
        self->large_open++;
}

static int64_t request_due (const core_request_t *request)
{
    if (request->state == CORE_REQUEST_DELAYED && request->retry_ms < request->deadline_ms)
        return request->retry_ms;
    return request->deadline_ms;
}

int core_request_open (core_requests_t *self, core_request_t *request)
{
    request->number = core_slots_add (&self->slots, request);
    if (request->number == 0)
        return TMQ_NO_MEMORY;
    if (!core_timer_reserve (self, 1)) {
        core_slots_remove (&self->slots, request->number);
        request->number = 0;
        return TMQ_NO_MEMORY;
    }
    if (!request->internal) {
        self->open_bytes += core_request_bytes (request);
        *(request->changes ? &self->changes : &self->reads) += 1;
    }
    core_request_queue (self, request);
    core_heap_set (&self->timers, &request->timer, request_due (request));
    return TMQ_OK;
}

/* Tasks whose submit was refused for now. */

static bool is_submit (const core_request_t *request)
{
    return request->op == TMQ_OP_SUBMIT || request->op == TMQ_OP_SUBMIT_BATCH;
}

static const tmq_id_t *submitted_id (const core_request_t *request, size_t index)
{
    if (request->op == TMQ_OP_SUBMIT)
        return &request->task_id;
    return &request->group->answer.completion.receipts[request->items[index].receipt].id;
}

/* Who waits for them may ask (again). */
static void refused_release (core_requests_t *self, core_request_t *request)
{
    while (request->refused_tasks != NULL) {
        core_refused_t *refused = request->refused_tasks;
        request->refused_tasks = refused->next;
        core_idmap_remove (&self->refused, &refused->node);
        if (refused->wait == NULL) {
            free (refused);
            continue;
        }
        refused->next = self->released;
        self->released = refused;
    }
}

static bool refused_add (core_requests_t *self, core_request_t *request, const tmq_id_t *id)
{
    core_refused_t *refused = calloc (1, sizeof *refused);
    if (refused == NULL)
        return false;
    refused->node.id = *id;
    if (!core_idmap_add (&self->refused, &refused->node)) {
        free (refused);
        return false;
    }
    refused->next = request->refused_tasks;
    request->refused_tasks = refused;
    return true;
}

/* Notes what the request still submits; of a batch some may be done. */
static bool refused_note (core_requests_t *self, core_request_t *request)
{
    if (request->op == TMQ_OP_SUBMIT && request->refused_tasks != NULL)
        return true;
    refused_release (self, request);
    size_t count = request->op == TMQ_OP_SUBMIT ? 1 : request->items_count;
    for (size_t i = 0; i < count; i++)
        if (!refused_add (self, request, submitted_id (request, i)))
            return false;
    return true;
}

core_refused_t *core_refused_find (const core_requests_t *self, const tmq_id_t *id)
{
    return (core_refused_t *) core_idmap_get (&self->refused, id);
}

struct core_wait *core_released_next (core_requests_t *self)
{
    while (self->released != NULL) {
        core_refused_t *released = self->released;
        struct core_wait *wait = released->wait;
        self->released = released->next;
        free (released);
        if (wait != NULL)
            return wait;
    }
    return NULL;
}

static void leave_sent (core_requests_t *self, core_request_t *request)
{
    if (request->state == CORE_REQUEST_SENT && request->large)
        self->large_open--;
    queue_remove (request);
}

static void request_close (core_requests_t *self, core_request_t *request)
{
    leave_sent (self, request);
    refused_release (self, request);
    request->state = CORE_REQUEST_ENDED;
    if (request->number == 0)
        return;
    core_slots_remove (&self->slots, request->number);
    core_heap_clear (&self->timers, &request->timer);
    self->timers_alive--;
    if (!request->internal) {
        self->open_bytes -= core_request_bytes (request);
        *(request->changes ? &self->changes : &self->reads) -= 1;
    }
    request->number = 0;
}

/* Starting. */

int core_admit (core_requests_t *self, size_t operations, size_t bytes, core_target_t target,
                tmq_error_t *error)
{
    if (self->link->stage == CORE_LINK_FINAL)
        return core_error (error, self->link->code, "%s", self->link->text);
    if (self->open + operations > self->config->requests_max)
        return core_error (error, TMQ_OUTBOX_FULL,
                           "%zu operations are open, at most %zu are allowed", self->open,
                           self->config->requests_max);
    if (self->open_bytes + bytes > self->config->request_bytes_max)
        return core_error (error, TMQ_OUTBOX_FULL,
                           "the open requests hold %zu bytes, at most %zu "
                           "are allowed",
                           self->open_bytes, self->config->request_bytes_max);
    if (target.waiter == NULL && self->untaken + operations > self->config->completions_max)
        return core_error (error, TMQ_OUTBOX_FULL,
                           "%zu completions are open or not yet taken, at most %zu are allowed",
                           self->untaken, self->config->completions_max);
    self->open += operations;
    self->untaken += target.waiter == NULL ? operations : 0;
    self->counters.requests += operations;
    return TMQ_OK;
}

static size_t chain_bytes (const core_request_t *request)
{
    size_t bytes = 0;
    for (; request != NULL; request = request->next)
        bytes += core_request_bytes (request);
    return bytes;
}

/* Opens one request; one that cannot be opened is answered right away. */
static void start_one (core_requests_t *self, core_request_t *request, int64_t deadline_ms)
{
    static const uint8_t none[16] = {0};
    request->next = NULL;
    request->deadline_ms = deadline_ms;
    if (request->changes && memcmp (request->request_id, none, sizeof none) == 0)
        core_request_id_make (self, request->request_id);
    if (deadline_ms <= self->link->now_ms)
        core_request_end (self, request, TMQ_UNREACHABLE, "no time was given; nothing was sent", 0);
    else if (core_request_open (self, request) != TMQ_OK)
        core_request_end (self, request, TMQ_NO_MEMORY, NULL, 0);
}

int core_request_start (core_requests_t *self, core_request_t *request, core_target_t target,
                        int64_t deadline_ms, tmq_error_t *error)
{
    int code =
        target.owner != NULL ? core_request_for (request, target.owner, error) : (int) TMQ_OK;
    if (code == TMQ_OK)
        code = core_admit (self, 1, chain_bytes (request), target, error);
    if (code != TMQ_OK) {
        core_request_free (request);
        return code;
    }
    core_link_hurry (self->link);
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
static void member_end (core_requests_t *self, core_request_t *member, int code, const char *text,
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
        core_answers_push (&self->answers, &group->answer);
    }
    core_request_free_one (member);
}

static void internal_end (core_requests_t *self, core_request_t *request)
{
    self->on_end (self->core, request, TMQ_OK);
    request_close (self, request);
    core_request_free_one (request);
}

void core_request_end (core_requests_t *self, core_request_t *request, int code, const char *text,
                       uint32_t retry_after_ms)
{
    if (request->internal) {
        internal_end (self, request);
        return;
    }
    core_request_t *followers = request->followers;
    request->followers = NULL;
    request_close (self, request);
    self->on_end (self->core, request, code);
    if (request->group != NULL) {
        member_end (self, request, code, text, retry_after_ms);
        return;
    }
    if (request->forgotten) {
        self->open--;
        self->untaken--;
        core_request_free_one (request);
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
    core_request_shed (request);
    self->open--;
    core_answers_push (&self->answers, &request->answer);
    while (followers != NULL) {
        core_request_t *next = followers->next;
        followers->next = NULL;
        followers->leader = NULL;
        core_request_end (self, followers, code, text, retry_after_ms);
        followers = next;
    }
}

void core_request_delay (core_requests_t *self, core_request_t *request, int code, const char *text,
                         uint32_t retry_after_ms)
{
    uint32_t pause_ms = retry_after_ms != 0 ? retry_after_ms : RETRY_MS;
    leave_sent (self, request);
    if (request->internal)
        queue_push (&self->delayed, request); /* to be forgotten with the link */
    if (is_submit (request) && !refused_note (self, request)) {
        core_request_end (self, request, code, text, retry_after_ms);
        return;
    }
    request->state = CORE_REQUEST_DELAYED;
    request->maybe_done = request->maybe_before;
    request->refused = code;
    request->refused_ms = retry_after_ms;
    free (request->refused_text);
    request->refused_text = text != NULL && text[0] != '\0' ? strdup (text) : NULL;
    /* A fifth of jitter keeps many clients from coming back at the same moment. */
    request->retry_ms = self->link->now_ms + pause_ms +
                        (int64_t) (core_link_random (self->link) % (pause_ms / 5 + 1));
    core_heap_set (&self->timers, &request->timer, request_due (request));
}

/* Requests that take the place of others. */

void core_request_replace (core_request_t *older, core_request_t *newer)
{
    newer->followers = older;
    older->leader = newer;
    older->next = older->followers;
    older->followers = NULL;
    for (core_request_t *at = older->next; at != NULL; at = at->next)
        at->leader = newer;
}

static void followers_leave (core_request_t *follower)
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
static void followers_inherit (core_requests_t *self, core_request_t *leader)
{
    core_request_t *heir = leader->followers;
    leader->followers = NULL;
    heir->leader = NULL;
    heir->followers = heir->next;
    heir->next = NULL;
    for (core_request_t *at = heir->followers; at != NULL; at = at->next)
        at->leader = heir;
    bytes_t fields = heir->fields; /* both are open: their bytes stay counted */
    heir->fields = leader->fields;
    leader->fields = fields;
    memcpy (heir->request_id, leader->request_id, sizeof heir->request_id);
    heir->maybe_done = leader->maybe_done;
    heir->maybe_before = leader->maybe_before;
    if (leader->state == CORE_REQUEST_NEW)
        leader->heir = heir; /* not yet sent: who holds the one now holds the other */
    else
        core_request_queue (self, heir);
}

/* Giving up. */

static bool may_be_forgotten (const core_request_t *request, const tmq_id_t *id, const void *user)
{
    return !request->internal && !request->changes && request->answer.waiter == NULL &&
           !request->forgotten && request->answer.completion.user == user &&
           (id == NULL || memcmp (id, &request->task_id, sizeof *id) == 0);
}

size_t core_requests_abandon (core_requests_t *self, const tmq_id_t *id, const void *user)
{
    size_t count = 0;
    for (size_t i = 0; i < self->slots.capacity && self->reads > 0; i++) {
        core_request_t *request = self->slots.slots[i].item;
        if (request == NULL || !may_be_forgotten (request, id, user))
            continue;
        /* What was sent stays until its answer: the broker still holds it against our limit. */
        request->forgotten = true;
        count++;
        if (request->state != CORE_REQUEST_SENT)
            core_request_end (self, request, TMQ_CANCELLED, NULL, 0);
    }
    return count;
}

/* Deadlines. */

/* It was sent once, and what became of that is not known; what was heard last is. */
static void expire_unknown (core_requests_t *self, core_request_t *request)
{
    char text[160];
    const char *away = request->refused == TMQ_UNAVAILABLE ? code_text (TMQ_UNAVAILABLE)
                                                           : core_link_store_away (self->link);
    const int length = away != NULL ? (int) strcspn (away, ";") : 0;
    snprintf (text, sizeof text, "%s; %.*s", code_text (TMQ_UNKNOWN), length,
              away != NULL ? away : "");
    core_request_end (self, request, TMQ_UNKNOWN, away != NULL ? text : NULL, 0);
}

static void request_expire (core_requests_t *self, core_request_t *request)
{
    char text[sizeof self->link->text + 64];
    if (request->changes && request->maybe_done) {
        expire_unknown (self, request);
        return;
    }
    if (request->refused != TMQ_OK) {
        char *refused = request->refused_text;
        request->refused_text = NULL;
        core_request_end (self, request, request->refused, refused, request->refused_ms);
        free (refused);
        return;
    }
    if (self->link->stage == CORE_LINK_UP || request->maybe_done)
        snprintf (text, sizeof text, "no answer in time");
    else
        snprintf (text, sizeof text, "%s", self->link->text);
    core_request_end (self, request, TMQ_UNREACHABLE, text, 0);
}

void core_request_timer (core_requests_t *self, core_request_t *request)
{
    if (self->link->now_ms >= request->deadline_ms) {
        if (request->leader != NULL)
            followers_leave (request);
        else if (request->followers != NULL)
            followers_inherit (self, request);
        /* A link on which these stay unanswered is of no use, whatever its heartbeats say. */
        bool vital = request->op == CORE_OP_REGISTER || request->op == CORE_OP_SUBSCRIBE;
        request_expire (self, request);
        if (vital)
            core_link_drop (self->link, TMQ_UNREACHABLE,
                            "no answer to a registration or subscription");
        return;
    }
    leave_sent (self, request);
    core_request_queue (self, request);
    core_heap_set (&self->timers, &request->timer, request->deadline_ms);
}

/* All at once. */

static void internals_end (core_requests_t *self, const core_queue_t *queue)
{
    for (core_request_t *request = queue->first; request != NULL;) {
        core_request_t *next = request->next;
        internal_end (self, request);
        request = next;
    }
}

void core_requests_unsend (core_requests_t *self)
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

void core_requests_end (core_requests_t *self, int code, const char *text)
{
    for (size_t i = 0; i < self->slots.capacity; i++) {
        core_request_t *request = self->slots.slots[i].item;
        if (request == NULL)
            continue;
        bool unknown = code == TMQ_CLOSED && request->changes && request->maybe_done;
        if (request->leader != NULL)
            followers_leave (request);
        core_request_end (self, request, unknown ? TMQ_UNKNOWN : code, unknown ? NULL : text, 0);
    }
}

/* Requests of the core itself. */

void core_internal_begin (core_requests_t *self, core_request_t *request)
{
    request->deadline_ms = self->link->now_ms + INTERNAL_MS;
    if (request->changes)
        core_request_id_make (self, request->request_id);
}

core_request_t *core_internal_new (core_requests_t *self, unsigned op)
{
    core_request_t *request = core_request_new (op);
    if (request != NULL)
        core_internal_begin (self, request);
    return request;
}

uint64_t core_internal_send (core_requests_t *self, core_request_t *request)
{
    bool made = request != NULL && !request->fields.failed && !request->body.failed;
    bool linked = core_link_is_up (self->link) ||
                  (self->link->stage == CORE_LINK_HELLO && made && request->op == CORE_OP_HELLO);
    /* Without a link it is not needed: the next one begins with a complete picture anyway. */
    if (made && linked && core_request_open (self, request) == TMQ_OK)
        return request->number;
    if (request != NULL)
        core_request_free_one (request);
    if (linked)
        core_link_drop (self->link, TMQ_NO_MEMORY, NULL);
    return 0;
}
