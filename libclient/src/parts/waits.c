/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Many operations may wait for one task, and up to 1,000 tasks are asked for in one request, so
 * 10,000 waits cost ten requests and no polling.
 *
 * A task that is waited for is pending (to be asked for), asked for, or hung up; after a lost link
 * what was asked for is pending again, so a wait cannot hang for ever. When its last waiter gave
 * up, a task stays on the books until the broker has forgotten it too, so that it is not asked for
 * twice.
 *
 * The broker keeps at most 10,000 waits for a link; what is beyond is asked for when others end.
 *
 * A wait may be started right behind the submit of its task. If that submit is refused for now, the
 * broker does not know the task yet: the wait is hung up at the submit until that has its answer.
 *
 * Each step touches only what it is about, so the work grows with the waits and not with their
 * square. */
#include "parts/waits.h"

#include <stdlib.h>
#include <string.h>

#include "base/errors.h"
#include "ids.h"

/* One operation that waits for one task. */
typedef struct waiter {
    core_answer_t answer; /* first: freed as such */
    core_timer_t timer;
    struct waiter *next;
    struct waiter *previous;
    core_wait_t *wait;
    int64_t deadline_ms;
} waiter_t;

/* A task that is waited for. */
struct core_wait {
    core_idnode_t node; /* first: found by its id */
    char *owner; /* that it is waited for; NULL: ourselves. What he may see another may not */
    waiter_t *waiters;
    core_wait_t *next; /* among the pending */
    core_wait_t *previous;
    bool pending;
    bool for_ever;           /* somebody waits without a deadline: in the second list */
    core_refused_t *hung;    /* at its submit */
    core_request_t *request; /* that asked for it, NULL: none */
    core_wait_t *next_asked; /* of the same request */
    core_wait_t *previous_asked;
    int64_t deadline_ms; /* until which the broker knows of it */
};

/* Until when somebody waits; 0: nobody does. */
static int64_t wait_until (core_waits_t *self, const core_wait_t *wait)
{
    int64_t until = 0;
    for (const waiter_t *waiter = wait->waiters; waiter != NULL; waiter = waiter->next) {
        self->looked++;
        if (waiter->deadline_ms > until)
            until = waiter->deadline_ms;
        if (until == CORE_NEVER)
            break;
    }
    return until;
}

static void pending_add (core_waits_t *self, core_wait_t *wait)
{
    if (wait->pending)
        return;
    wait->pending = true;
    wait->for_ever = wait_until (self, wait) == CORE_NEVER;
    core_wait_list_t *list = &self->pending[wait->for_ever];
    wait->next = NULL;
    wait->previous = list->last;
    if (wait->previous != NULL)
        wait->previous->next = wait;
    else
        list->first = wait;
    list->last = wait;
}

static void pending_remove (core_waits_t *self, core_wait_t *wait)
{
    if (!wait->pending)
        return;
    core_wait_list_t *list = &self->pending[wait->for_ever];
    if (wait->previous != NULL)
        wait->previous->next = wait->next;
    else
        list->first = wait->next;
    if (wait->next != NULL)
        wait->next->previous = wait->previous;
    else
        list->last = wait->previous;
    wait->pending = false;
}

static void asked_add (core_waits_t *self, core_wait_t *wait, core_request_t *request)
{
    wait->request = request;
    wait->deadline_ms = request->deadline_ms;
    wait->previous_asked = NULL;
    wait->next_asked = request->waits;
    if (wait->next_asked != NULL)
        wait->next_asked->previous_asked = wait;
    request->waits = wait;
    self->asked++;
}

static void asked_remove (core_waits_t *self, core_wait_t *wait)
{
    if (wait->request == NULL)
        return;
    if (wait->previous_asked != NULL)
        wait->previous_asked->next_asked = wait->next_asked;
    else
        wait->request->waits = wait->next_asked;
    if (wait->next_asked != NULL)
        wait->next_asked->previous_asked = wait->previous_asked;
    wait->request = NULL;
    self->asked--;
}

static void wait_free (core_waits_t *self, core_wait_t *wait)
{
    pending_remove (self, wait);
    asked_remove (self, wait);
    if (wait->hung != NULL)
        wait->hung->wait = NULL;
    core_idmap_remove (&self->tasks, &wait->node);
    free (wait->owner);
    free (wait);
}

/* Nobody waits any more. What the broker was asked for stays until it has forgotten it. */
static void wait_shed (core_waits_t *self, core_wait_t *wait)
{
    if (wait->waiters != NULL)
        return;
    pending_remove (self, wait);
    if (wait->request == NULL)
        wait_free (self, wait);
}

/* Starting. */

static bool is_same (const char *owner, const char *other)
{
    return owner == NULL || other == NULL ? owner == other : strcmp (owner, other) == 0;
}

static core_wait_t *wait_get (core_waits_t *self, const tmq_id_t *id, const char *owner)
{
    core_idnode_t *node = core_idmap_get (&self->tasks, id);
    while (node != NULL && !is_same (((core_wait_t *) node)->owner, owner))
        node = core_idmap_again (node);
    return (core_wait_t *) node;
}

static core_wait_t *wait_find (core_waits_t *self, const tmq_id_t *id, const char *owner)
{
    core_wait_t *wait = wait_get (self, id, owner);
    if (wait != NULL)
        return wait;
    wait = calloc (1, sizeof *wait);
    if (wait == NULL)
        return NULL;
    wait->node.id = *id;
    wait->owner = owner != NULL ? strdup (owner) : NULL;
    if ((owner != NULL && wait->owner == NULL) || !core_idmap_add (&self->tasks, &wait->node)) {
        free (wait->owner);
        free (wait);
        return NULL;
    }
    return wait;
}

/* Takes the waiter out of its task's list. */
static void waiter_remove (core_waits_t *self, waiter_t *waiter)
{
    core_wait_t *wait = waiter->wait;
    if (wait != NULL) {
        if (waiter->previous != NULL)
            waiter->previous->next = waiter->next;
        else
            wait->waiters = waiter->next;
        if (waiter->next != NULL)
            waiter->next->previous = waiter->previous;
        core_heap_clear (&self->requests->timers, &waiter->timer);
        self->requests->timers_alive--;
    }
    self->requests->open--;
}

static void waiter_end (core_waits_t *self, waiter_t *waiter, int code, const char *text)
{
    waiter_remove (self, waiter);
    core_answer_set (&waiter->answer, code, text, 0);
    core_answers_push (&self->requests->answers, &waiter->answer);
}

static void waiter_start (core_waits_t *self, waiter_t *waiter, const char *owner,
                          int64_t deadline_ms)
{
    core_wait_t *wait = NULL;
    if (core_timer_reserve (self->requests, 1)) {
        wait = wait_find (self, &waiter->answer.completion.task_id, owner);
        if (wait == NULL)
            self->requests->timers_alive--;
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
    core_heap_set (&self->requests->timers, &waiter->timer, deadline_ms);
    if (wait->pending && deadline_ms == CORE_NEVER)
        pending_remove (self, wait); /* into the other list */
    if (wait->hung == NULL && (wait->request == NULL || wait->deadline_ms < deadline_ms))
        pending_add (self, wait);
}

int core_waits_start (core_waits_t *self, const tmq_id_t *ids, size_t count, core_target_t target,
                      int64_t deadline_ms, tmq_error_t *error)
{
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
                   : i == 1       ? core_admit (self->requests, count, 0, target, error)
                                  : TMQ_OK;
        while (code != TMQ_OK && first != NULL) {
            waiter = first->next;
            free (first);
            first = waiter;
        }
        if (code != TMQ_OK)
            return code;
    }
    core_link_hurry (self->link);
    while (first != NULL) {
        waiter_t *next = first->next;
        first->next = NULL;
        waiter_start (self, first, target.owner, deadline_ms);
        first = next;
    }
    return TMQ_OK;
}

/* Giving up. */

static size_t abandon (core_waits_t *self, core_wait_t *wait, const void *user)
{
    size_t count = 0;
    for (waiter_t *waiter = wait->waiters; waiter != NULL;) {
        waiter_t *next = waiter->next;
        if (waiter->answer.waiter == NULL && waiter->answer.completion.user == user) {
            waiter_remove (self, waiter);
            self->requests->untaken--;
            core_answer_free (&waiter->answer);
            count++;
        }
        waiter = next;
    }
    wait_shed (self, wait);
    return count;
}

size_t core_waits_abandon (core_waits_t *self, const tmq_id_t *id, const void *user)
{
    size_t count = 0;
    if (id != NULL)
        for (core_idnode_t *node = core_idmap_get (&self->tasks, id); node != NULL;) {
            core_idnode_t *next = core_idmap_again (node); /* of another owner */
            count += abandon (self, (core_wait_t *) node, user);
            node = next;
        }
    if (id != NULL)
        return count;
    for (size_t i = 0; i < self->tasks.capacity; i++)
        for (core_idnode_t *node = self->tasks.buckets[i]; node != NULL;) {
            core_idnode_t *next = node->next;
            count += abandon (self, (core_wait_t *) node, user);
            node = next;
        }
    return count;
}

/* Asking. */

bool core_waits_waiting (const core_waits_t *self)
{
    bool any = self->pending[0].first != NULL || self->pending[1].first != NULL;
    return self->requests->released != NULL || (any && self->asked < TMQ_LINK_WAITS_MAX);
}

/* Asks for the first tasks of a list, as far as they are for the same owner: those without a
 * deadline apart from the others, because the broker keeps a request's ids as long as the longest
 * of them is wanted. */
static void ask (core_waits_t *self, const core_wait_list_t *list, bool for_ever)
{
    core_request_t *request = core_internal_new (self->requests, CORE_OP_WAIT);
    size_t ids = 0;
    const char *owner = list->first->owner;
    if (request != NULL && owner != NULL && core_request_for (request, owner, NULL) != TMQ_OK) {
        core_request_free (request);
        request = NULL;
    }
    if (request != NULL) {
        request->deadline_ms = for_ever ? CORE_NEVER : 0;
        bytes_mark_t mark = core_request_begin (request);
        for (core_wait_t *wait = list->first;
             wait != NULL && ids < TMQ_WAIT_IDS_MAX && self->asked + ids < TMQ_LINK_WAITS_MAX &&
             is_same (wait->owner, owner);
             wait = wait->next) {
            bytes_append_element (&request->fields, 1, wait->node.id.bytes, ID_BYTES);
            int64_t until = for_ever ? CORE_NEVER : wait_until (self, wait);
            if (until > request->deadline_ms)
                request->deadline_ms = until;
            ids++;
        }
        bytes_close (&request->fields, mark);
    }
    if (core_internal_send (self->requests, request) == 0)
        return;
    while (ids-- > 0) {
        core_wait_t *wait = list->first;
        pending_remove (self, wait);
        asked_remove (self, wait);
        asked_add (self, wait, request);
    }
}

void core_waits_output (core_waits_t *self)
{
    core_wait_t *released;
    while ((released = core_released_next (self->requests)) != NULL) {
        self->looked++;
        released->hung = NULL;
        pending_add (self, released);
    }
    for (int for_ever = 0; for_ever < 2; for_ever++) {
        const core_wait_list_t *list = &self->pending[for_ever];
        while (list->first != NULL && self->asked < TMQ_LINK_WAITS_MAX &&
               core_link_is_up (self->link))
            ask (self, list, for_ever != 0);
    }
}

/* Answers. */

static void wait_end (core_waits_t *self, core_wait_t *wait, int code, const char *text,
                      tmq_status_t status)
{
    while (wait->waiters != NULL) {
        self->looked++;
        wait->waiters->answer.completion.status = status;
        waiter_end (self, wait->waiters, code, text);
    }
    wait_free (self, wait);
}

static void hang (core_waits_t *self, core_wait_t *wait, core_refused_t *refused)
{
    if (wait->hung != NULL)
        return;
    asked_remove (self, wait);
    pending_remove (self, wait);
    wait->hung = refused;
    refused->wait = wait;
}

void core_waits_reply (core_waits_t *self, core_request_t *request, const Taskmq__Reply *reply)
{
    const char *text = reply->text[0] != '\0' ? reply->text : NULL;
    while (reply->code != TMQ_OK && request->waits != NULL)
        wait_end (self, request->waits, (int) reply->code, text, TMQ_STATUS_NONE);
    if (reply->code != TMQ_OK || reply->body_case != TASKMQ__REPLY__BODY_WAITED)
        return;
    for (size_t i = 0; i < reply->waited->n_items; i++) {
        const Taskmq__WaitedItem *item = reply->waited->items[i];
        tmq_id_t id;
        core_wait_t *wait = NULL;
        self->looked++;
        if (id_from_bytes (&id, item->task_id.data, item->task_id.len))
            wait = wait_get (self, &id, request->owner);
        if (wait == NULL)
            continue;
        core_refused_t *refused =
            item->code == TMQ_NOT_FOUND ? core_refused_find (self->requests, &id) : NULL;
        if (refused != NULL)
            hang (self, wait, refused);
        else
            wait_end (self, wait, (int) item->code, item->text[0] != '\0' ? item->text : NULL,
                      (tmq_status_t) item->status);
    }
}

void core_waits_ended (core_waits_t *self, core_request_t *request)
{
    core_wait_t *next;
    for (core_wait_t *wait = request->waits; wait != NULL; wait = next) {
        next = wait->next_asked;
        self->looked++;
        asked_remove (self, wait);
        if (wait->waiters != NULL)
            pending_add (self, wait);
        else
            wait_free (self, wait);
    }
}

void core_waiter_due (core_waits_t *self, void *item)
{
    waiter_t *waiter = item;
    core_wait_t *wait = waiter->wait;
    bool asked_for = wait->request != NULL || self->link->stage == CORE_LINK_UP;
    waiter_end (self, waiter, asked_for ? TMQ_TIMEOUT : TMQ_UNREACHABLE,
                asked_for ? "the task did not end in time" : self->link->text);
    wait_shed (self, wait);
}

/* The end. */

void core_waits_end (core_waits_t *self, int code, const char *text)
{
    for (size_t i = 0; i < self->tasks.capacity; i++)
        while (self->tasks.buckets[i] != NULL)
            wait_end (self, (core_wait_t *) self->tasks.buckets[i], code, text, TMQ_STATUS_NONE);
}

void core_waits_free (core_waits_t *self)
{
    core_waits_end (self, TMQ_CLOSED, NULL);
    core_idmap_free (&self->tasks);
}
