/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* The table of requests. */
#include "core/requests/table.h"

#include "core/requests/answer.h"
#include "core/requests/errands.h"
#include "request_kinds.h"

/* What the tables are asked before it is handled: one function beside each handler. */

static void want_nothing (const requests_t *self, const link_t *link,
                          const Taskmq__Request *request, const verdict_t *items, key_list_t *keys)
{
    (void) self;
    (void) link;
    (void) request;
    (void) items;
    (void) keys;
}

#define WANT(NAME)                                                                                 \
    static void NAME (const requests_t *self, const link_t *link, const Taskmq__Request *request,  \
                      const verdict_t *items, key_list_t *keys)

WANT (want_submit)
{
    if (self->base->stopping || submits_are_refused (self))
        return;
    const Taskmq__Submit *submit = request->submit;
    for (size_t i = 0; i < submit->n_tasks; i++) {
        if (items != NULL && items[i].code != TMQ_OK)
            continue;
        const Taskmq__TaskSpec *spec = submit->tasks[i];
        want_id (self->reads, link->space, spec->task_id.data, false, keys);
        if (spec->dedup_key[0] != '\0')
            want_dedup (self->reads, link->space, name_text (link->identity), spec->dedup_key,
                        keys);
    }
}

WANT (want_get)
{
    (void) items;
    want_id (self->reads, link->space, request->get->task_id.data, true, keys);
}

WANT (want_result)
{
    (void) items;
    want_id (self->reads, link->space, request->result->task_id.data, true, keys);
}

WANT (want_the_payload)
{
    (void) items;
    want_payload (self->reads, link->space, request->payload->task_id.data, keys);
}

WANT (want_cancel)
{
    (void) items;
    want_id (self->reads, link->space, request->cancel->task_id.data, false, keys);
}

WANT (want_task_events)
{
    (void) items;
    want_id (self->reads, link->space, request->task_events->task_id.data, false, keys);
}

WANT (want_wait)
{
    (void) items;
    want_ids (self->reads, link->space, request->wait->n_task_ids, request->wait->task_ids, keys);
}

WANT (want_subscribe)
{
    (void) items;
    const Taskmq__Subscribe *subscribe = request->subscribe;
    if (subscribe->snapshot && subscribe->filter != NULL)
        want_ids (self->reads, link->space, subscribe->filter->n_task_ids,
                  subscribe->filter->task_ids, keys);
}

/* Whether the task was removed: nothing else is asked of one that memory does not have. */
#define WANT_TASK(OP)                                                                              \
    WANT (want_##OP)                                                                               \
    {                                                                                              \
        (void) items;                                                                              \
        want_id (self->reads, link->space, request->OP->lease->task_id.data, false, keys);         \
    }
WANT_TASK (started)
WANT_TASK (push)
#undef WANT_TASK

#define WANT_LEASE(OP)                                                                             \
    WANT (want_##OP)                                                                               \
    {                                                                                              \
        (void) items;                                                                              \
        want_lease (self->reads, link->space, request->OP->lease, keys);                           \
    }
WANT_LEASE (cancel_ack)
WANT_LEASE (complete)
WANT_LEASE (fail)
WANT_LEASE (release)
#undef WANT_LEASE
#undef WANT

/* The rows. What is true of a request apart from who handles it stands in request_kinds.h. */

/* Who may make a request. Today every link has all roles. */
typedef enum role {
    ROLE_LINK = 1,    /* whoever has a link */
    ROLE_LOOK = 2,    /* reads tasks and events */
    ROLE_SUBMIT = 4,  /* makes and cancels tasks */
    ROLE_WORK = 8,    /* works on them */
    ROLE_ENROLL = 16, /* brings a key */
    ROLE_OPERATE = 32 /* decides who may use the broker */
} role_t;

static unsigned roles_of (const link_t *link)
{
    (void) link;
    return ROLE_LINK | ROLE_LOOK | ROLE_SUBMIT | ROLE_WORK | ROLE_ENROLL | ROLE_OPERATE;
}

typedef struct request_row {
    void (*handle) (call_t *call);
    void (*want) (const requests_t *self, const link_t *link, const Taskmq__Request *request,
                  const verdict_t *items, key_list_t *keys);
    role_t role;   /* that may make it */
    unsigned cost; /* of a round's allowance; beside it each task, id and lease in a list costs */
} request_row_t;

#define OP(NAME) TASKMQ__REQUEST__OP_##NAME
static const request_row_t ROWS[] = {
    [OP (GOODBYE)] = {on_goodbye, want_nothing, ROLE_LINK, 1},
    [OP (HEARTBEAT)] = {on_heartbeat, want_nothing, ROLE_LINK, 1},
    [OP (SUBMIT)] = {on_submit, want_submit, ROLE_SUBMIT, 1},
    [OP (GET)] = {on_get, want_get, ROLE_LOOK, 1},
    [OP (RESOLVE)] = {on_resolve, want_nothing, ROLE_LOOK, 64},
    [OP (LIST)] = {on_list, want_nothing, ROLE_LOOK, 8},
    [OP (COUNT)] = {on_count, want_nothing, ROLE_LOOK, 8},
    [OP (TASK_EVENTS)] = {on_task_events, want_task_events, ROLE_LOOK, 8},
    [OP (RESULT)] = {on_result, want_result, ROLE_LOOK, 1},
    [OP (PAYLOAD)] = {on_payload, want_the_payload, ROLE_LOOK, 1},
    [OP (CANCEL)] = {on_cancel, want_cancel, ROLE_SUBMIT, 1},
    [OP (WAIT)] = {on_wait, want_wait, ROLE_LOOK, 1},
    [OP (STATS)] = {on_stats, want_nothing, ROLE_LOOK, 64},
    [OP (SUBSCRIBE)] = {on_subscribe, want_subscribe, ROLE_LOOK, 8},
    [OP (CREDIT)] = {on_credit, want_nothing, ROLE_LOOK, 1},
    [OP (UNSUBSCRIBE)] = {on_unsubscribe, want_nothing, ROLE_LOOK, 1},
    [OP (REGISTER)] = {on_register, want_nothing, ROLE_WORK, 8},
    [OP (WORKER_CREDIT)] = {on_worker_credit, want_nothing, ROLE_WORK, 1},
    [OP (STARTED)] = {on_started, want_started, ROLE_WORK, 1},
    [OP (RENEW)] = {on_renew, want_nothing, ROLE_WORK, 1},
    [OP (PUSH)] = {on_push, want_push, ROLE_WORK, 1},
    [OP (CANCEL_ACK)] = {on_cancel_ack, want_cancel_ack, ROLE_WORK, 1},
    [OP (COMPLETE)] = {on_complete, want_complete, ROLE_WORK, 1},
    [OP (FAIL)] = {on_fail, want_fail, ROLE_WORK, 1},
    [OP (RELEASE)] = {on_release, want_release, ROLE_WORK, 1},
    [OP (LEAVE)] = {on_leave, want_nothing, ROLE_WORK, 8},
    [OP (ENROLL)] = {on_errand, want_nothing, ROLE_ENROLL, 64},
    [OP (KEY_LIST)] = {on_errand, want_nothing, ROLE_OPERATE, 64},
    [OP (KEY_TRUST)] = {on_errand, want_nothing, ROLE_OPERATE, 64},
    [OP (KEY_REVOKE)] = {on_errand, want_nothing, ROLE_OPERATE, 64},
    [OP (INVITE)] = {on_errand, want_nothing, ROLE_OPERATE, 64},
    [OP (INVITE_LIST)] = {on_errand, want_nothing, ROLE_OPERATE, 64},
    [OP (INVITE_REVOKE)] = {on_errand, want_nothing, ROLE_OPERATE, 64},
    [OP (SERVER_KEY_ROTATE)] = {on_errand, want_nothing, ROLE_OPERATE, 64},
    [OP (RELOAD)] = {on_errand, want_nothing, ROLE_OPERATE, 64},
    [OP (ACCESS_READ)] = {on_errand, want_nothing, ROLE_OPERATE, 64},
};

static const request_row_t *row_of (const Taskmq__Request *request)
{
    size_t op = (size_t) request->op_case;
    if (op >= sizeof (ROWS) / sizeof (ROWS[0]) || ROWS[op].handle == NULL)
        return NULL;
    return &ROWS[op];
}

size_t request_cost (const Taskmq__Request *request)
{
    const request_row_t *row = row_of (request);
    size_t cost = row == NULL ? 1 : row->cost;
    if (request->op_case == OP (SUBMIT))
        cost += request->submit->n_tasks;
    else if (request->op_case == OP (WAIT))
        cost += request->wait->n_task_ids;
    else if (request->op_case == OP (RENEW))
        cost += request->renew->n_leases;
    else if (request->op_case == OP (REGISTER))
        cost += request->register_->n_leases;
    return cost;
}

void request_want (requests_t *self, const link_t *link, const Taskmq__Request *request,
                   const verdict_t *items, key_list_t *keys)
{
    const request_row_t *row = row_of (request);
    if (row != NULL)
        row->want (self, link, request, items, keys);
}

void request_handle (call_t *call, bool linked)
{
    requests_t *self = call->requests;
    self->base->counts.requests++;
    if (call->request->op_case == OP (HELLO)) { /* it stands apart: it is what makes the link */
        on_hello (call);
        return;
    }
    if (!linked) {
        self->base->counts.no_links++;
        reply_code_at_once (call, TMQ_NO_LINK, NULL, 0);
        return;
    }
    const request_row_t *row = row_of (call->request);
    const request_kind_t *kind = request_kind (call->request);
    if (row == NULL || kind == NULL)
        reply_code_at_once (call, TMQ_UNSUPPORTED, NULL, 0);
    else if ((roles_of (call->link) & row->role) == 0)
        reply_code_at_once (call, TMQ_DENIED, NULL, 0);
    else if ((kind->flags & REQUEST_CHANGES) != 0 && self->base->stopping)
        reply_code_at_once (call, TMQ_STOPPING, NULL, 0);
    else
        row->handle (call);
}
