/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* The table of requests. */
#include "core/requests/table.h"

#include <stdio.h>
#include <string.h>

#include "core/reads/loaded.h"
#include "core/requests/after.h"
#include "core/requests/answer.h"
#include "core/requests/behalf.h"
#include "core/requests/deeds.h"
#include "core/requests/errands.h"
#include "core/requests/items.h"
#include "core/requests/turns.h"
#include "core/requests/unavailable.h"
#include "core/requests/values.h"
#include "core/tasks/checkpoint.h"
#include "core/tasks/lanes.h"
#include "core/tasks/quarantine.h"
#include "core/tasks/session.h"
#include "core/tasks/space.h"
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
        after_want (self, link, spec, keys);
    }
}

WANT (want_import)
{
    (void) items;
    const Taskmq__Import *import = request->import;
    if (import->more || self->base->stopping || submits_are_refused (self))
        return;
    Taskmq__TaskSpec spec = TASKMQ__TASK_SPEC__INIT;
    spec.extra = import->extra;
    want_id (self->reads, link->space, import->task_id.data, false, keys);
    if (import->dedup_key[0] != '\0')
        want_dedup (self->reads, link->space, name_text (link->identity), import->dedup_key, keys);
    after_want (self, link, &spec, keys);
}

WANT (want_get)
{
    (void) items;
    if (request->get->no_body)
        want_id (self->reads, link->space, request->get->task_id.data, false, keys);
    else
        want_result (self->reads, link->space, request->get->task_id.data, keys);
}

WANT (want_the_result)
{
    (void) items;
    want_result (self->reads, link->space, request->result->task_id.data, keys);
}

WANT (want_the_payload)
{
    (void) items;
    want_payload (self->reads, link->space, request->payload->task_id.data, keys);
}

/* What names one task, and needs no more than its record. */
#define WANT_ID(KIND)                                                                              \
    WANT (want_##KIND)                                                                             \
    {                                                                                              \
        (void) items;                                                                              \
        want_id (self->reads, link->space, request->KIND->task_id.data, false, keys);              \
    }
WANT_ID (answer)
WANT_ID (artifacts)
WANT_ID (attempts)
WANT_ID (blob_read)
WANT_ID (cancel)
WANT_ID (task_events)
WANT_ID (turns)
WANT_ID (why)

/* What names some. */
#define WANT_IDS(KIND)                                                                             \
    WANT (want_##KIND)                                                                             \
    {                                                                                              \
        (void) items;                                                                              \
        want_ids (self->reads, link->space, request->KIND->n_task_ids, request->KIND->task_ids,    \
                  keys);                                                                           \
    }
WANT_IDS (purge)
WANT_IDS (resume)
WANT_IDS (retry)
WANT_IDS (set)
WANT_IDS (wait)

WANT (want_read_log)
{
    (void) items;
    want_id (self->reads, link->space, request->read_log->task_id.data, false, keys);
}

WANT (want_inbox)
{
    (void) items;
    if (request->inbox->task_id.len > 0)
        want_id (self->reads, link->space, request->inbox->task_id.data, false, keys);
}

WANT (want_adopt)
{
    (void) items;
    const Taskmq__Adopt *adopt = request->adopt;
    row_key_t key;
    kept_key (&key, link->space->name, adopt->task_id.data, adopt->attempt);
    want_id (self->reads, link->space, adopt->task_id.data, false, keys);
    want_row (self->reads, ROW_KIND_QUARANTINE, key.bytes, key.length, keys);
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
WANT_TASK (ask)
WANT_TASK (take_answers)
WANT_TASK (artifact)
WANT_TASK (checkpoint)
WANT_TASK (log)
#undef WANT_TASK

/* One that was told before may be a repeat: its row says so. */
WANT (want_turn)
{
    (void) items;
    const Taskmq__Turn *turn = request->turn;
    row_key_t key;
    want_id (self->reads, link->space, turn->lease->task_id.data, false, keys);
    if (turn_told_key (self, link->space, turn, &key))
        want_row (self->reads, ROW_KIND_TURN, key.bytes, key.length, keys);
}

WANT (want_checkpoint_read)
{
    (void) items;
    row_key_t key;
    tmq_id_t id;
    memcpy (id.bytes, request->checkpoint_read->lease->task_id.data, sizeof (id));
    checkpoint_key (&key, link->space->name, &id);
    want_id (self->reads, link->space, id.bytes, false, keys);
    want_row (self->reads, ROW_KIND_CHECKPOINT, key.bytes, key.length, keys);
}

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

WANT (want_value_put)
{
    (void) items;
    if (!self->base->stopping && !submits_are_refused (self))
        want_value (self, link, request->value_put->session, request->value_put->key, keys);
}

WANT (want_value_get)
{
    (void) items;
    want_value (self, link, request->value_get->session, request->value_get->key, keys);
}

WANT (want_item_put)
{
    (void) items;
    if (!self->base->stopping && !submits_are_refused (self))
        want_items (self, link, request->item_put->session, request->item_put->box, NULL, 0, keys);
}

WANT (want_item_ack)
{
    (void) items;
    const Taskmq__ItemAck *ack = request->item_ack;
    want_items (self, link, ack->session, ack->box, ack->numbers, ack->n_numbers, keys);
}

WANT (want_value_remove)
{
    (void) items;
    want_value (self, link, request->value_remove->session, request->value_remove->key, keys);
}
#undef WANT

/* The rows. What is true of a request apart from who handles it stands in request_kinds.h. */

typedef struct request_row {
    void (*handle) (call_t *call);
    void (*want) (const requests_t *self, const link_t *link, const Taskmq__Request *request,
                  const verdict_t *items, key_list_t *keys);
    unsigned rights; /* the link must have one of them somewhere in its namespace */
    unsigned cost;   /* of a round's allowance; beside it each task, id and lease in a list costs */
} request_row_t;

/* X (OP, handle, want, rights, cost). Over which tasks and queues a right is had is judged where
 * they are found (reads/find.h) and by the handlers. */
enum { SEES = RIGHT_READ | RIGHT_OBSERVE };
#define REQUEST_ROW_MAP(X)                                                                         \
    X (GOODBYE, on_goodbye, want_nothing, RIGHT_LINK, 1)                                           \
    X (HEARTBEAT, on_heartbeat, want_nothing, RIGHT_LINK, 1)                                       \
    X (SUBMIT, on_submit, want_submit, RIGHT_SUBMIT, 1)                                            \
    X (IMPORT, on_import, want_import, RIGHT_SUBMIT, 16)                                           \
    X (GET, on_get, want_get, SEES | RIGHT_WORK, 1)                                                \
    X (RESOLVE, on_resolve, want_nothing, SEES | RIGHT_WORK, 64)                                   \
    X (LIST, on_list, want_nothing, SEES, 8)                                                       \
    X (SEARCH, on_search, want_nothing, RIGHT_BODY, 32)                                            \
    X (REINDEX, on_errand, want_nothing, RIGHT_OPERATE, 64)                                        \
    X (COUNT, on_count, want_nothing, SEES, 8)                                                     \
    X (TASK_EVENTS, on_task_events, want_task_events, SEES | RIGHT_WORK, 8)                        \
    X (RESULT, on_result, want_the_result, RIGHT_BODY | RIGHT_WORK, 1)                             \
    X (PAYLOAD, on_payload, want_the_payload, RIGHT_BODY | RIGHT_WORK, 1)                          \
    X (CANCEL, on_cancel, want_cancel, RIGHT_CANCEL | RIGHT_READ, 1)                               \
    X (WHY, on_why, want_why, SEES | RIGHT_WORK, 32)                                               \
    X (ANSWER, on_answer, want_answer, RIGHT_CANCEL | RIGHT_READ, 2)                               \
    X (INBOX, on_inbox, want_inbox, SEES, 8)                                                       \
    X (RETRY, on_retry, want_retry, RIGHT_CANCEL | RIGHT_READ, 1)                                  \
    X (RESUME, on_resume, want_resume, RIGHT_CANCEL | RIGHT_READ, 1)                               \
    X (SET, on_set, want_set, RIGHT_CANCEL | RIGHT_READ, 1)                                        \
    X (PURGE, on_purge, want_purge, RIGHT_ADMIN | RIGHT_READ, 1)                                   \
    X (CLEANUP, on_cleanup, want_nothing, RIGHT_OPERATE, 64)                                       \
    X (ADOPT, on_adopt, want_adopt, RIGHT_ADMIN | RIGHT_READ, 8)                                   \
    X (ATTEMPTS, on_attempts, want_attempts, SEES | RIGHT_WORK, 8)                                 \
    X (ARTIFACTS, on_artifacts, want_artifacts, SEES | RIGHT_WORK, 4)                              \
    X (TURNS, on_turns, want_turns, SEES | RIGHT_WORK, 8)                                          \
    X (WAIT, on_wait, want_wait, SEES | RIGHT_WORK, 1)                                             \
    X (STATS, on_stats, want_nothing, RIGHT_LINK, 64)                                              \
    X (READ_LOG, on_read_log, want_read_log, RIGHT_BODY | RIGHT_WORK, 8)                           \
    X (BLOB_BEGIN, on_blob_begin, want_nothing, RIGHT_SUBMIT | RIGHT_WORK, 8)                      \
    X (BLOB_CHUNK, on_blob_chunk, want_nothing, RIGHT_SUBMIT | RIGHT_WORK, 8)                      \
    X (BLOB_READ, on_blob_read, want_blob_read, RIGHT_BODY | RIGHT_WORK, 8)                        \
    X (BLOB_DROP, on_blob_drop, want_nothing, RIGHT_SUBMIT | RIGHT_WORK, 8)                        \
    X (SUBSCRIBE, on_subscribe, want_subscribe, SEES, 8)                                           \
    X (CREDIT, on_credit, want_nothing, RIGHT_LINK, 1)                                             \
    X (UNSUBSCRIBE, on_unsubscribe, want_nothing, RIGHT_LINK, 1)                                   \
    X (REGISTER, on_register, want_nothing, RIGHT_WORK, 8)                                         \
    X (WORKER_CREDIT, on_worker_credit, want_nothing, RIGHT_WORK, 1)                               \
    X (STARTED, on_started, want_started, RIGHT_WORK, 1)                                           \
    X (RENEW, on_renew, want_nothing, RIGHT_WORK, 1)                                               \
    X (PUSH, on_push, want_push, RIGHT_WORK, 1)                                                    \
    X (ASK, on_ask, want_ask, RIGHT_WORK, 2)                                                       \
    X (LOG, on_log, want_log, RIGHT_WORK, 2)                                                       \
    X (ARTIFACT, on_artifact, want_artifact, RIGHT_WORK, 8)                                        \
    X (TURN, on_turn, want_turn, RIGHT_WORK, 4)                                                    \
    X (CHECKPOINT, on_checkpoint, want_checkpoint, RIGHT_WORK, 2)                                  \
    X (CHECKPOINT_READ, on_checkpoint_read, want_checkpoint_read, RIGHT_WORK, 8)                   \
    X (TAKE_ANSWERS, on_take_answers, want_take_answers, RIGHT_WORK, 8)                            \
    X (CANCEL_ACK, on_cancel_ack, want_cancel_ack, RIGHT_WORK, 1)                                  \
    X (COMPLETE, on_complete, want_complete, RIGHT_WORK, 1)                                        \
    X (FAIL, on_fail, want_fail, RIGHT_WORK, 1)                                                    \
    X (RELEASE, on_release, want_release, RIGHT_WORK, 1)                                           \
    X (LEAVE, on_leave, want_nothing, RIGHT_WORK, 8)                                               \
    X (ENROLL, on_errand, want_nothing, RIGHT_ENROLL | RIGHT_LINK, 64)                             \
    X (KEY_LIST, on_errand, want_nothing, RIGHT_OPERATE, 64)                                       \
    X (KEY_TRUST, on_errand, want_nothing, RIGHT_OPERATE, 64)                                      \
    X (KEY_REVOKE, on_errand, want_nothing, RIGHT_OPERATE, 64)                                     \
    X (INVITE, on_errand, want_nothing, RIGHT_OPERATE, 64)                                         \
    X (INVITE_LIST, on_errand, want_nothing, RIGHT_OPERATE, 64)                                    \
    X (INVITE_REVOKE, on_errand, want_nothing, RIGHT_OPERATE, 64)                                  \
    X (SERVER_KEY_ROTATE, on_errand, want_nothing, RIGHT_OPERATE, 64)                              \
    X (RELOAD, on_errand, want_nothing, RIGHT_OPERATE, 64)                                         \
    X (ACCESS_READ, on_errand, want_nothing, RIGHT_OPERATE, 64)                                    \
    X (AUDIT, on_errand, want_nothing, RIGHT_OPERATE, 64)                                          \
    X (AUDIT_HEAD, on_errand, want_nothing, RIGHT_OPERATE, 8)                                      \
    X (BACKUP, on_errand, want_nothing, RIGHT_OPERATE, 64)                                         \
    X (VACUUM, on_errand, want_nothing, RIGHT_OPERATE, 64)                                         \
    X (QUEUE_LIST, on_queue_list, want_nothing, RIGHT_LINK, 64)                                    \
    X (QUEUE_SET, on_queue_set, want_nothing, RIGHT_ADMIN, 8)                                      \
    X (QUEUE_SHOW, on_queue_show, want_nothing, RIGHT_LINK, 1)                                     \
    X (QUEUE_PAUSE, on_queue_pause, want_nothing, RIGHT_ADMIN, 8)                                  \
    X (QUEUE_RESUME, on_queue_resume, want_nothing, RIGHT_ADMIN, 8)                                \
    X (SESSION_SET, on_session_set, want_nothing, RIGHT_SUBMIT | RIGHT_WORK, 8)                    \
    X (SESSION_SHOW, on_session_show, want_nothing, SEES | RIGHT_WORK, 8)                          \
    X (SESSION_LIST, on_session_list, want_nothing, SEES | RIGHT_WORK, 64)                         \
    X (SESSION_STATUS, on_session_status, want_nothing, RIGHT_SUBMIT | RIGHT_WORK, 8)              \
    X (SESSION_REMOVE, on_session_remove, want_nothing, RIGHT_SUBMIT | RIGHT_WORK, 8)              \
    X (SCHEDULE_PUT, on_schedule_put, want_nothing, RIGHT_SUBMIT, 8)                               \
    X (SCHEDULE_SHOW, on_schedule_show, want_nothing, SEES, 8)                                     \
    X (SCHEDULE_LIST, on_schedule_list, want_nothing, SEES, 64)                                    \
    X (SCHEDULE_PAUSE, on_schedule_pause, want_nothing, RIGHT_SUBMIT | RIGHT_CANCEL, 8)            \
    X (SCHEDULE_RESUME, on_schedule_resume, want_nothing, RIGHT_SUBMIT | RIGHT_CANCEL, 8)          \
    X (SCHEDULE_REMOVE, on_schedule_remove, want_nothing, RIGHT_SUBMIT | RIGHT_CANCEL, 8)          \
    X (VALUE_PUT, on_value_put, want_value_put, RIGHT_SUBMIT | RIGHT_WORK, 1)                      \
    X (VALUE_GET, on_value_get, want_value_get, RIGHT_BODY | RIGHT_WORK, 1)                        \
    X (VALUE_LIST, on_value_list, want_nothing, SEES | RIGHT_WORK, 8)                              \
    X (VALUE_REMOVE, on_value_remove, want_value_remove, RIGHT_SUBMIT | RIGHT_WORK, 1)             \
    X (WORKER_LIST, on_worker_list, want_nothing, SEES | RIGHT_WORK, 64)                           \
    X (WORKER_SHOW, on_worker_show, want_nothing, SEES | RIGHT_WORK, 64)                           \
    X (WORKER_DRAIN, on_worker_drain, want_nothing, RIGHT_ADMIN, 64)                               \
    X (ITEM_PUT, on_item_put, want_item_put, RIGHT_SUBMIT | RIGHT_WORK, 1)                         \
    X (ITEM_READ, on_item_read, want_nothing, SEES | RIGHT_WORK, 8)                                \
    X (ITEM_ACK, on_item_ack, want_item_ack, RIGHT_SUBMIT | RIGHT_WORK, 8)

#define OP(NAME) TASKMQ__REQUEST__OP_##NAME
static const request_row_t ROWS[] = {
#define X(OPERATION, handle, want, rights, cost) [OP (OPERATION)] = {handle, want, rights, cost},
    REQUEST_ROW_MAP (X)
#undef X
};

/* A request that anybody may make would be one that nobody thought about. */
#define X(OPERATION, handle, want, rights, cost)                                                   \
    _Static_assert((rights) != 0, #OPERATION " needs a right");
REQUEST_ROW_MAP (X)
#undef X

static const request_row_t *row_of (const Taskmq__Request *request)
{
    size_t op = (size_t) request->op_case;
    if (op >= sizeof (ROWS) / sizeof (ROWS[0]) || ROWS[op].handle == NULL)
        return NULL;
    return &ROWS[op];
}

/* Of so many entries, those that a page of them may look at. all: none is looked at in vain. */
static size_t looked_at (const link_t *link, bool all, size_t limit, size_t count)
{
    limit = limit == 0 ? TMQ_LIST_LIMIT_DEFAULT : limit;
    return all && (link->access.everywhere & SEES) != 0 && limit < count ? limit : count;
}

/* … of open questions. */
static size_t questions_looked_at (const requests_t *self, const link_t *link,
                                   const Taskmq__Request *request)
{
    const Taskmq__Inbox *inbox = request->inbox;
    size_t looks = self->base->config.read_looks_max;
    size_t open = link->space->unanswered.open;
    bool all = inbox->n_queues == 0 && inbox->n_sessions == 0 && request->owner[0] == '\0';
    return inbox->task_id.len > 0
               ? 0
               : looked_at (link, all, inbox->limit, open < looks ? open : looks);
}

static size_t sessions_looked_at (const link_t *link, const Taskmq__SessionList *list)
{
    size_t count;
    sessions_behind (link->space, list->after, &count);
    return looked_at (link, true, list->limit, count);
}

/* … and those that it shows: to pack one costs as much as a small request. */
static size_t shown (size_t limit, size_t count)
{
    limit = limit == 0 ? TMQ_LIST_LIMIT_DEFAULT : limit;
    return limit < count ? limit : count;
}

/* What it looks at or shows beyond what its row and its lists say, as memory is now. */
static size_t cost_of_work (const requests_t *self, const link_t *link,
                            const Taskmq__Request *request)
{
    enum { LOOKS = 8 };   /* … cost as much as a small request */
    enum { INSTANT = 4 }; /* each schedule of a page computes one */
    const space_t *space = link->space;
    size_t schedules = space->schedules_count;
    size_t workers = self->match->roster_by_id.count; /* of all namespaces */
    switch ((int) request->op_case) {
    case OP (INBOX):
        return questions_looked_at (self, link, request) / LOOKS +
               shown (request->inbox->limit, space->unanswered.open);
    case OP (SESSION_LIST):
        return sessions_looked_at (link, request->session_list) / LOOKS +
               shown (request->session_list->limit, space->sessions_count);
    case OP (SCHEDULE_LIST):
        return looked_at (link, true, request->schedule_list->limit, schedules) / LOOKS +
               INSTANT * shown (request->schedule_list->limit, schedules);
    case OP (WORKER_LIST): return workers / LOOKS + shown (request->worker_list->limit, workers);
    case OP (WORKER_SHOW): return workers / LOOKS;
    default: return 0;
    }
}

size_t request_cost (const requests_t *self, const link_t *link, const Taskmq__Request *request)
{
    const request_row_t *row = row_of (request);
    size_t cost = row == NULL ? 1 : row->cost;
    if (request->op_case == OP (SUBMIT))
        cost += request->submit->n_tasks;
    else if (request->op_case == OP (ANSWER))
        cost += request->answer->n_items;
    else if (request->op_case == OP (WAIT))
        cost += request->wait->n_task_ids;
    else if (request->op_case == OP (RETRY))
        cost += request->retry->n_task_ids;
    else if (request->op_case == OP (RESUME))
        cost += request->resume->n_task_ids;
    else if (request->op_case == OP (SET))
        cost += request->set->n_task_ids;
    else if (request->op_case == OP (PURGE))
        cost += request->purge->n_task_ids;
    else if (request->op_case == OP (RENEW))
        cost += request->renew->n_leases;
    else if (request->op_case == OP (ITEM_ACK))
        cost += request->item_ack->n_numbers;
    else if (request->op_case == OP (SCHEDULE_SHOW))
        cost += request->schedule_show->coming;
    else if (request->op_case == OP (REGISTER))
        cost += request->register_->n_leases;
    return link == NULL ? cost : cost + cost_of_work (self, link, request);
}

void request_want (requests_t *self, link_t *link, const Taskmq__Request *request,
                   const verdict_t *items, key_list_t *keys)
{
    const request_row_t *row = row_of (request);
    bool behalf = request->owner[0] != '\0';
    behalf_own_t own;
    if (behalf && !behalf_begin (self, link, request->owner, &own))
        return;
    if (row != NULL && access_may (&link->access, row->rights))
        row->want (self, link, request, items, keys);
    if (behalf)
        behalf_end (self, link, &own);
}

static void reply_denied (call_t *call, unsigned rights)
{
    const char *text = (rights & RIGHT_OPERATE) != 0 ? "only an operator may do this"
                       : (rights & RIGHT_ADMIN) != 0
                           ? "only an admin of this namespace, or an operator, may do this"
                       : (rights & RIGHT_CANCEL) != 0 ? "no right to change tasks in this namespace"
                       : (rights & RIGHT_BODY) != 0
                           ? "no right to payloads and results in this namespace"
                       : (rights & RIGHT_SUBMIT) != 0 ? "no right to submit tasks in this namespace"
                       : (rights & SEES) != 0         ? "no right to read tasks in this namespace"
                       : (rights & RIGHT_WORK) != 0 ? "no right to work on tasks in this namespace"
                                                    : "no right to do this in this namespace";
    deny (call);
    reply_code_at_once (call, TMQ_DENIED, text, 0);
}

/* The store is out of reach, and memory alone cannot answer it. */
static bool lacks_keys (const call_t *call, const request_row_t *row)
{
    const base_t *base = call->requests->base;
    if ((!base->away && !base->unread) || base->config.planted_bug == ENGINE_BUG_UNREAD_TAKEN)
        return false;
    key_list_t keys = {0};
    row->want (call->requests, call->link, call->request, call->items, &keys);
    bool lacks = keys.count > 0;
    loaded_free_keys (&keys);
    return lacks;
}

static void handle (call_t *call)
{
    const request_row_t *row = row_of (call->request);
    const request_kind_t *kind = request_kind (call->request);
    if (row == NULL || kind == NULL)
        reply_code_at_once (call, TMQ_UNSUPPORTED, NULL, 0);
    else if (!access_may (&call->link->access, row->rights))
        reply_denied (call, row->rights);
    else if ((kind->flags & REQUEST_CHANGES) != 0 && call->requests->base->stopping)
        reply_code_at_once (call, TMQ_STOPPING, NULL, 0);
    else if (lacks_keys (call, row))
        reply_unavailable (call);
    else
        row->handle (call);
}

/* … for somebody whom the link names. The record of deeds has both names, too. */
static void handle_for (call_t *call, const char *owner)
{
    behalf_own_t own;
    const char *identity = call->identity;
    if (!behalf_begin (call->requests, call->link, owner, &own)) {
        deny (call);
        reply_code_at_once (call, TMQ_DENIED, "no right to act for others in this namespace", 0);
        return;
    }
    call->identity = name_text (call->link->identity);
    handle (call);
    call->identity = identity;
    behalf_end (call->requests, call->link, &own);
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
    if (call->request->owner[0] == '\0')
        handle (call);
    else
        handle_for (call, call->request->owner);
}
