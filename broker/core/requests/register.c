/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* A worker comes, says how much it can take, and leaves. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/match/roster.h"
#include "core/match/worker.h"
#include "core/peers/link.h"
#include "core/requests/answer.h"
#include "core/requests/deeds.h"
#include "core/requests/quota.h"
#include "core/requests/report.h"
#include "core/tasks/attempt.h"
#include "core/tasks/journal.h"
#include "core/tasks/lease.h"
#include "core/tasks/members.h"
#include "core/wire/pack.h"

enum {
    REGISTERED_LEASES = 1,   /* number of the field in taskmq.proto */
    LINK_WORKERS_MAX = 1000, /* registered on one link; one is usual */
    TAKEN_TEXT_SIZE = 256
};

static void answer_register (call_t *call, worker_t *worker)
{
    requests_t *self = call->requests;
    const Taskmq__Register *request = call->request->register_;
    bytes_mark_t mark;
    bytes_t packed = BYTES_INIT;
    for (size_t i = 0; i < request->n_leases; i++) {
        const Taskmq__Lease *lease = request->leases[i];
        task_t *task = NULL;
        tmq_code_t code = report_refresh (self, call->link, worker, lease, &task);
        if (task != NULL)
            task->detail->listed = true;
        if (task != NULL && lease->started && code == TMQ_OK)
            report_started (self, task);
        pack_lease_state (&packed, REGISTERED_LEASES, lease->task_id.data, lease->attempt, code,
                          task == NULL ? 0 : task->lease_ms, report_news (self, task));
    }
    /* What is not listed never reached it, or was lost by it: queued again, not counted (S7). A
     * worker ignores what arrives between its registration and the answer. */
    worker_drop_unlisted (self->match, worker, "the worker does not hold it any more");
    bytes_t *out = reply_open (self, call->request->id, TMQ_OK, NULL, 0, false, &mark);
    bytes_append_element (out, TASKMQ__REPLY__BODY_REGISTERED, packed.data, packed.length);
    reply_close (self, call->link, mark, journal_batch (self->tasks), NULL);
    bytes_free (&packed);
}

/* One that works on a queue sees what comes out of it. */
static bool deny_queue (call_t *call)
{
    const Taskmq__Register *request = call->request->register_;
    char text[TMQ_NAME_LENGTH_MAX + 64];
    for (size_t i = 0; i < request->n_queues; i++) {
        if (access_queue (&call->link->access, request->queues[i], RIGHT_WORK))
            continue;
        snprintf (text, sizeof (text), "no right to work on queue %s", request->queues[i]);
        deny (call);
        reply_code (call, TMQ_DENIED, text);
        return true;
    }
    return false;
}

/* After a restart the leases say whose the worker is. Without a policy whoever has them then may go
 * on with them. */
static bool may_take_over (const link_t *link, const worker_t *worker)
{
    bool restored = worker->serial == 0;
    return worker->identity == NULL || link_is (link, name_text (worker->identity)) ||
           (restored && link->access.policy == NULL);
}

/* An id and what is held under it belong to a name, also when the same user has another one now:
 * the file says with owns= whose tasks go over. */
static void reply_foreign (call_t *call)
{
    char text[TAKEN_TEXT_SIZE];
    snprintf (
        text, sizeof (text),
        "the worker's id belongs to another name than %.64s. If the access file gave its user "
        "this name meanwhile, start the worker again, or write its name before (uid:NUMBER) "
        "into owns= of the line",
        name_text (call->link->identity));
    deny (call);
    reply_code (call, TMQ_DENIED, text);
}

/* It may not have heard, or be another start of the same worker's connection. */
static void tell_drained (requests_t *self, const worker_t *worker)
{
    const roster_entry_t *entry = roster_find (self->match, worker->space->name, worker->id);
    if (entry != NULL && gate_is_closed (&worker->gate, GATE_DRAINED))
        roster_tell_drained (self->match, worker, name_text (entry->drained_by));
}

void on_register (call_t *call)
{
    requests_t *self = call->requests;
    link_t *link = call->link;
    const Taskmq__Register *request = call->request->register_;
    if (deny_queue (call))
        return;
    const worker_t *known = worker_find (self->tasks, link->space, request->worker_id.data);
    bool comes = known == NULL || known->link != link;
    if (comes && link->workers_count >= LINK_WORKERS_MAX) {
        reply_limit (call, "workers on a link", LINK_WORKERS_MAX);
        return;
    }
    if ((known == NULL || known->link == NULL) &&
        quota_answered (call, quota_ask (self, link, QUOTA_WORKERS)))
        return;
    size_t before = known == NULL ? 0 : worker_seats_bytes (known->seats_count);
    size_t bytes_max = self->base->config.worker_bytes_max;
    if (self->match->seats_bytes - before + worker_seats_bytes (request->n_queues) > bytes_max) {
        reply_limit (call, "bytes of workers' queues", bytes_max);
        return;
    }
    if (!roster_has_room (self->match, link->space->name, request)) {
        reply_limit (call, "bytes that workers say of themselves", bytes_max);
        return;
    }
    worker_t *worker = worker_make (self->tasks, link->space, request->worker_id.data);
    if (!may_take_over (link, worker)) {
        reply_foreign (call);
        return;
    }
    if (link->serial < worker->serial) { /* it came late: the worker is on a newer link */
        reply_code_at_once (call, TMQ_NO_LINK, NULL, 0);
        return;
    }
    worker_detach (self->match, worker);
    worker_take_back (worker);
    worker->link = link;
    worker->serial = link->serial;
    list_push_back (&link->workers, &worker->of_link);
    link->workers_count++;
    members_move (self->tasks, worker);
    if (worker->identity != link->identity) {
        account_end_leases (self->tasks, worker, worker->held);
        names_drop (&self->base->names, worker->identity);
        worker->identity = names_share (link->identity);
        account_add_leases (self->tasks, worker, worker->held);
    }
    names_drop (&self->base->names, worker->name);
    worker->name = names_keep (&self->base->names, request->name);
    worker_set_labels (self->tasks, worker, request->labels, request->n_labels);
    worker_sit (self->match, worker, request->queues, request->n_queues);
    worker->seen = request->seen;
    if (worker->assigned < request->seen)
        worker->assigned = request->seen;
    roster_register (self->match, worker, request);
    answer_register (call, worker);
    tell_drained (self, worker);
    worker->capacity = request->capacity;
    worker_update (self->match, worker);
}

void on_worker_credit (call_t *call)
{
    requests_t *self = call->requests;
    const Taskmq__WorkerCredit *request = call->request->worker_credit;
    worker_t *worker = worker_find (self->tasks, call->link->space, request->worker_id.data);
    if (worker == NULL || worker->link != call->link) {
        reply_code (call, TMQ_NOT_FOUND, "the worker is not registered");
        return;
    }
    worker->seen = request->seen;
    worker->capacity = request->capacity;
    worker_update (self->match, worker);
}

void on_leave (call_t *call)
{
    requests_t *self = call->requests;
    worker_t *worker =
        worker_find (self->tasks, call->link->space, call->request->leave->worker_id.data);
    if (worker != NULL && worker->link == call->link) {
        worker_detach (self->match, worker);
        members_move (self->tasks, worker);
        worker_drop_leases (self->match, worker, WORKER_RETURNS, "the worker left");
        roster_leave (self->match, worker, call->request->leave);
        roster_release (self->match, worker);
        self->tasks->open.inputs++;
    }
    reply_code (call, TMQ_OK, NULL);
}
