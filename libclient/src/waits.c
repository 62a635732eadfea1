/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Waits for the end of tasks. Many operations may wait for one task, and up to 1,000 tasks are
 * asked for in one request, so 10,000 waits cost ten requests and no polling.
 *
 * A task that is waited for is pending (to be asked for) or asked for; after a lost link all are
 * pending again, so a wait cannot hang. When its last waiter gave up, a task stays on the books
 * until the broker has forgotten it too, so that it is not asked for twice.
 *
 * The broker keeps at most 10,000 waits for a link; what is beyond is asked for when others end.
 *
 * A wait may be started right behind the submit of its task. If that submit is refused for now, the
 * broker does not know the task yet: such a wait is blocked until the submit is sent again. */
#include <stdlib.h>
#include <string.h>

#include "core_internal.h"
#include "ids.h"

enum { FIELD_WAIT = 29 };

/* One operation that waits for one task. */
typedef struct waiter {
    core_answer_t answer; /* first: freed as such */
    core_timer_t timer;
    struct waiter *next;
    struct waiter *previous;
    struct core_wait *wait;
    int64_t deadline_ms;
} waiter_t;

/* A task that is waited for. */
typedef struct core_wait {
    core_idnode_t node; /* first: found by its id */
    waiter_t *waiters;
    struct core_wait *next; /* among the pending */
    struct core_wait *previous;
    bool pending;
    bool blocked;
    uint64_t request;    /* that asked for it, 0: none */
    int64_t deadline_ms; /* until which the broker knows of it */
} core_wait_t;

static void pending_add (core_t *self, core_wait_t *wait)
{
    if (wait->pending)
        return;
    wait->pending = true;
    wait->next = NULL;
    wait->previous = self->waits_pending_last;
    if (wait->previous != NULL)
        wait->previous->next = wait;
    else
        self->waits_pending_first = wait;
    self->waits_pending_last = wait;
}

static void pending_remove (core_t *self, core_wait_t *wait)
{
    if (!wait->pending)
        return;
    if (wait->previous != NULL)
        wait->previous->next = wait->next;
    else
        self->waits_pending_first = wait->next;
    if (wait->next != NULL)
        wait->next->previous = wait->previous;
    else
        self->waits_pending_last = wait->previous;
    wait->pending = false;
}

static void unblock (core_t *self, core_wait_t *wait)
{
    self->waits_blocked -= wait->blocked ? 1 : 0;
    wait->blocked = false;
}

static void wait_free (core_t *self, core_wait_t *wait)
{
    pending_remove (self, wait);
    unblock (self, wait);
    if (wait->request != 0)
        self->waits_open--;
    core_idmap_remove (&self->waits, &wait->node);
    free (wait);
}

/* Starting. */

static core_wait_t *wait_find (core_t *self, const tmq_id_t *id)
{
    core_idnode_t *node = core_idmap_get (&self->waits, id);
    if (node != NULL)
        return (core_wait_t *) node;
    core_wait_t *wait = calloc (1, sizeof *wait);
    if (wait == NULL)
        return NULL;
    wait->node.id = *id;
    if (!core_idmap_add (&self->waits, &wait->node)) {
        free (wait);
        return NULL;
    }
    return wait;
}

static void waiter_end (core_t *self, waiter_t *waiter, int code, const char *text)
{
    core_wait_t *wait = waiter->wait;
    if (wait != NULL) {
        if (waiter->previous != NULL)
            waiter->previous->next = waiter->next;
        else
            wait->waiters = waiter->next;
        if (waiter->next != NULL)
            waiter->next->previous = waiter->previous;
        core_heap_clear (&self->timers, &waiter->timer);
        self->timers_alive--;
    }
    self->open--;
    core_answer_set (&waiter->answer, code, text, 0);
    core_answer_push (self, &waiter->answer);
}

static void waiter_start (core_t *self, waiter_t *waiter, int64_t deadline_ms)
{
    core_wait_t *wait = NULL;
    if (core_timer_reserve (self, 1)) {
        wait = wait_find (self, &waiter->answer.completion.task_id);
        if (wait == NULL)
            self->timers_alive--;
    }
    if (wait == NULL) {
        waiter_end (self, waiter, TMQ_NO_MEMORY, NULL);
        return;
    }
    waiter->wait = wait;
    waiter->deadline_ms = deadline_ms;
    waiter->timer.kind = CORE_TIMER_WAITER;
    waiter->timer.item = waiter;
    waiter->next = wait->waiters;
    if (waiter->next != NULL)
        waiter->next->previous = waiter;
    wait->waiters = waiter;
    core_heap_set (&self->timers, &waiter->timer, deadline_ms);
    if (!wait->blocked && (wait->request == 0 || wait->deadline_ms < deadline_ms))
        pending_add (self, wait);
}

int core_wait (core_t *self, const tmq_id_t *ids, size_t count, core_target_t target,
               int64_t deadline_ms, int64_t now_ms, tmq_error_t *error)
{
    self->now_ms = now_ms > self->now_ms ? now_ms : self->now_ms;
    waiter_t *first = NULL;
    for (size_t i = count; i > 0; i--) {
        waiter_t *waiter = calloc (1, sizeof *waiter);
        if (waiter != NULL) {
            waiter->next = first;
            waiter->answer.waiter = target.waiter;
            waiter->answer.completion.op = TMQ_OP_WAIT;
            waiter->answer.completion.user = target.user;
            waiter->answer.completion.task_id = ids[i - 1];
            first = waiter;
        }
        int code = waiter == NULL ? core_error (error, TMQ_NO_MEMORY, NULL)
                   : i == 1       ? core_admit (self, count, 0, target, error)
                                  : TMQ_OK;
        while (code != TMQ_OK && first != NULL) {
            waiter = first->next;
            free (first);
            first = waiter;
        }
        if (code != TMQ_OK)
            return code;
    }
    while (first != NULL) {
        waiter_t *next = first->next;
        first->next = NULL;
        waiter_start (self, first, deadline_ms);
        first = next;
    }
    return TMQ_OK;
}

/* Asking. */

bool core_waits_pending (const core_t *self)
{
    return self->waits_pending_first != NULL && self->waits_open < TMQ_LINK_WAITS_MAX;
}

/* Until when somebody waits; 0: nobody does. */
static int64_t wait_until (const core_wait_t *wait)
{
    int64_t until = 0;
    for (const waiter_t *waiter = wait->waiters; waiter != NULL; waiter = waiter->next)
        if (waiter->deadline_ms > until)
            until = waiter->deadline_ms;
    return until;
}

/* Those without a deadline go apart from the others: the broker keeps a request's ids as long as
 * the longest of them is wanted. */
static core_request_t *ask (core_t *self, bool for_ever)
{
    core_request_t *request = core_internal_new (self, CORE_OP_WAIT, false);
    if (request == NULL)
        return NULL;
    size_t ids = 0;
    request->deadline_ms = for_ever ? CORE_NEVER : 0;
    bytes_mark_t mark = bytes_open (&request->fields, FIELD_WAIT);
    core_wait_t *wait = self->waits_pending_first;
    while (wait != NULL && ids < TMQ_WAIT_IDS_MAX && self->waits_open + ids < TMQ_LINK_WAITS_MAX) {
        core_wait_t *next = wait->next;
        int64_t until = wait_until (wait);
        if ((until == CORE_NEVER) == for_ever) {
            bytes_append_element (&request->fields, 1, wait->node.id.bytes, ID_BYTES);
            if (until > request->deadline_ms)
                request->deadline_ms = until;
            ids++;
        }
        wait = next;
    }
    bytes_close (&request->fields, mark);
    request->items_count = ids;
    return request;
}

/* A request that is on its way. */
typedef struct asking {
    uint64_t number;
    size_t ids;
    int64_t deadline_ms;
} asking_t;

/* Notes on the tasks that the request named, in the same order, that they are asked for. */
static void asked (core_t *self, const asking_t *asking)
{
    core_wait_t *wait = self->waits_pending_first;
    for (size_t left = asking->ids; left > 0 && wait != NULL;) {
        core_wait_t *next = wait->next;
        if ((wait_until (wait) == CORE_NEVER) == (asking->deadline_ms == CORE_NEVER)) {
            pending_remove (self, wait);
            self->waits_open += wait->request == 0 ? 1 : 0;
            wait->request = asking->number;
            wait->deadline_ms = asking->deadline_ms;
            left--;
        }
        wait = next;
    }
}

void core_waits_output (core_t *self)
{
    for (int for_ever = 0; for_ever < 2; for_ever++)
        while (core_waits_pending (self) && self->stage == CORE_LINK_UP) {
            core_request_t *request = ask (self, for_ever != 0);
            asking_t asking = {0};
            if (request != NULL)
                asking = (asking_t){0, request->items_count, request->deadline_ms};
            if (request != NULL && asking.ids == 0) {
                core_request_free (request);
                break;
            }
            asking.number = core_internal_send (self, request);
            if (asking.number != 0)
                asked (self, &asking);
        }
}

/* Answers. */

static void wait_end (core_t *self, core_wait_t *wait, int code, const char *text,
                      tmq_status_t status)
{
    while (wait->waiters != NULL) {
        wait->waiters->answer.completion.status = status;
        waiter_end (self, wait->waiters, code, text);
    }
    wait_free (self, wait);
}

/* Calls for each task that the request asked for. An end with code 0 means: ask again. */
static void each_of (core_t *self, uint64_t request, int code, const char *text)
{
    for (size_t i = 0; i < self->waits.capacity; i++) {
        core_idnode_t *node = self->waits.buckets[i];
        while (node != NULL) {
            core_idnode_t *next = node->next;
            core_wait_t *wait = (core_wait_t *) node;
            if (wait->request == request && code != TMQ_OK) {
                wait_end (self, wait, code, text, TMQ_STATUS_NONE);
            } else if (wait->request == request) {
                self->waits_open--;
                wait->request = 0;
                if (wait->waiters != NULL)
                    pending_add (self, wait);
                else
                    wait_free (self, wait);
            }
            node = next;
        }
    }
}

static void block (core_t *self, core_wait_t *wait)
{
    self->waits_open -= wait->request != 0 ? 1 : 0;
    wait->request = 0;
    pending_remove (self, wait);
    self->waits_blocked += wait->blocked ? 0 : 1;
    wait->blocked = true;
}

void core_waits_unblock (core_t *self)
{
    for (size_t i = 0; i < self->waits.capacity && self->waits_blocked > 0; i++)
        for (core_idnode_t *node = self->waits.buckets[i]; node != NULL; node = node->next) {
            core_wait_t *wait = (core_wait_t *) node;
            if (!wait->blocked)
                continue;
            unblock (self, wait);
            pending_add (self, wait);
        }
}

void core_waits_reply (core_t *self, core_request_t *request, const Taskmq__Reply *reply)
{
    const char *text = reply->text[0] != '\0' ? reply->text : NULL;
    if (reply->code != TMQ_OK) {
        each_of (self, request->number, (int) reply->code, text);
        return;
    }
    if (reply->body_case != TASKMQ__REPLY__BODY_WAITED)
        return;
    for (size_t i = 0; i < reply->waited->n_items; i++) {
        const Taskmq__WaitedItem *item = reply->waited->items[i];
        tmq_id_t id;
        core_idnode_t *node = NULL;
        if (id_from_bytes (&id, item->task_id.data, item->task_id.len))
            node = core_idmap_get (&self->waits, &id);
        if (node == NULL)
            continue;
        core_wait_t *wait = (core_wait_t *) node;
        request->items_count -= wait->request == request->number ? 1 : 0;
        if (item->code == TMQ_NOT_FOUND && core_submit_is_delayed (self, &id)) {
            block (self, wait);
            continue;
        }
        wait_end (self, wait, (int) item->code, item->text[0] != '\0' ? item->text : NULL,
                  (tmq_status_t) item->status);
    }
}

void core_waits_forget (core_t *self, uint64_t request)
{
    if (self->waits_open > 0)
        each_of (self, request, TMQ_OK, NULL);
}

void core_waits_unsend (core_t *self)
{
    for (size_t i = 0; i < self->waits.capacity && self->waits_open > 0; i++) {
        core_idnode_t *node = self->waits.buckets[i];
        while (node != NULL) {
            core_idnode_t *next = node->next;
            core_wait_t *wait = (core_wait_t *) node;
            if (wait->request != 0) {
                self->waits_open--;
                wait->request = 0;
                if (wait->waiters != NULL)
                    pending_add (self, wait);
                else
                    wait_free (self, wait);
            }
            node = next;
        }
    }
}

void core_waiter_due (core_t *self, void *item)
{
    waiter_t *waiter = item;
    core_wait_t *wait = waiter->wait;
    bool asked_for = wait->request != 0 || self->stage == CORE_LINK_UP;
    waiter_end (self, waiter, asked_for ? TMQ_TIMEOUT : TMQ_UNREACHABLE,
                asked_for ? "the task did not end in time" : self->text);
    if (wait->waiters == NULL && wait->request == 0)
        wait_free (self, wait);
}

/* The end. */

void core_waits_end (core_t *self, int code, const char *text)
{
    for (size_t i = 0; i < self->waits.capacity; i++)
        while (self->waits.buckets[i] != NULL)
            wait_end (self, (core_wait_t *) self->waits.buckets[i], code, text, TMQ_STATUS_NONE);
}

void core_waits_free (core_t *self)
{
    core_waits_end (self, TMQ_CLOSED, NULL);
    core_idmap_free (&self->waits);
}
