/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* The inputs: one message, one tick, what the store says. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "core/engine/rooms.h"
#include "core/match/dispatch.h"
#include "core/match/fetch.h"
#include "core/match/roster.h"
#include "core/match/worker.h"
#include "core/peers/link.h"
#include "core/peers/outbox.h"
#include "core/reads/ends.h"
#include "core/reads/jobs.h"
#include "core/reads/loaded.h"
#include "core/requests/answer.h"
#include "core/requests/browse.h"
#include "core/requests/cancel.h"
#include "core/requests/cleanup.h"
#include "core/requests/deeds.h"
#include "core/requests/errands.h"
#include "core/requests/fire.h"
#include "core/requests/log.h"
#include "core/requests/parting.h"
#include "core/requests/policy.h"
#include "core/requests/stats.h"
#include "core/requests/subscribe.h"
#include "core/requests/table.h"
#include "core/requests/unavailable.h"
#include "core/requests/values.h"
#include "core/requests/wait.h"
#include "core/sessions/leaving.h"
#include "core/streams/stream.h"
#include "core/streams/subscription.h"
#include "core/tasks/asking.h"
#include "core/tasks/attempt.h"
#include "core/tasks/blobs.h"
#include "core/tasks/change.h"
#include "core/tasks/debts.h"
#include "core/tasks/dependents.h"
#include "core/tasks/due.h"
#include "core/tasks/index.h"
#include "core/tasks/journal.h"
#include "core/tasks/lanes.h"
#include "core/tasks/rows.h"
#include "core/tasks/session.h"
#include "core/tasks/settings.h"
#include "core/tasks/settle.h"
#include "core/tasks/space.h"
#include "request_kinds.h"
#include "types.h"

/* Messages. */

void engine_access (engine_t *self, policy_t *policy, now_t now)
{
    bool booted = self->history.epoch != 0; /* before, the clocks do not run, and nobody is there */
    if (booted)
        input_begin (self, now);
    policy_take (&self->requests, policy);
    if (booted)
        input_end (self);
}

void engine_move (engine_t *self, now_t now)
{
    self->base.moved_until = now.mono_ms + ENGINE_MOVE_MS;
}

void engine_next_key (engine_t *self, const key_public_t *next, now_t now)
{
    self->base.has_next_key = next != NULL;
    if (next == NULL)
        return;
    self->base.next_key = *next;
    if (self->history.epoch == 0) /* nobody is there */
        return;
    engine_move (self, now);
    input_begin (self, now);
    policy_greet_again (&self->requests);
    input_end (self);
}

void engine_round (engine_t *self)
{
    self->base.round = self->base.config.round;
    self->base.submits_refused = false;
    self->base.unread = false;
    engine_share (self, 1, false);
}

static bool share_is_over (const engine_t *self)
{
    const budget_t *left = &self->base.round;
    const budget_t *floor = &self->base.floor;
    return left->requests <= floor->requests || left->lookups <= floor->lookups ||
           left->bodies <= floor->bodies || left->answer_bytes == 0;
}

bool engine_round_is_over (const engine_t *self)
{
    const budget_t *left = &self->base.round;
    return left->requests == 0 || left->lookups == 0 || left->bodies == 0 ||
           left->answer_bytes == 0;
}

/* Where an allowance stands after the share. */
static size_t floor_of (size_t left, size_t all, size_t parts, bool first_half)
{
    size_t share = all / parts;
    size_t floor = left > share ? left - share : 0;
    return first_half && floor < all / 2 ? all / 2 : floor;
}

void engine_share (engine_t *self, size_t parts, bool first_half)
{
    const budget_t *all = &self->base.config.round;
    const budget_t *left = &self->base.round;
    budget_t *floor = &self->base.floor;
    floor->requests = floor_of (left->requests, all->requests, parts, first_half);
    floor->lookups = floor_of (left->lookups, all->lookups, parts, first_half);
    floor->bodies = floor_of (left->bodies, all->bodies, parts, first_half);
}

/* Nobody is there for the answer. */
static bool is_idle (const message_t *message, const Taskmq__Request *request)
{
    if (!message->gone)
        return false;
    const request_kind_t *kind = request_kind (request);
    return kind != NULL && (kind->flags & REQUEST_READS) != 0;
}

static void pay_for_keys (engine_t *self, const lookup_t *keys, size_t count)
{
    self->base.counts.lookups += count;
    budget_take (&self->base.round.lookups, count);
    for (size_t i = 0; i < count; i++)
        budget_take (&self->base.round.bodies, keys[i].bodies);
}

size_t engine_want (engine_t *self, const message_t *message, size_t from, key_list_t *keys)
{
    const Taskmq__ClientMessage *envelope = message->envelope;
    link_t *link = link_find (&self->peers, message->peer);
    bool linked = link != NULL && link_token_is (link, envelope->token.data, envelope->token.len);
    size_t i = from;
    for (; i < envelope->n_requests && !share_is_over (self); i++) {
        const Taskmq__Request *request = envelope->requests[i];
        const request_verdict_t *verdict =
            message->verdicts == NULL ? NULL : &message->verdicts->requests[i];
        if (is_idle (message, request))
            continue;
        budget_take (&self->base.round.requests,
                     request_cost (&self->requests, linked ? link : NULL, request));
        if (!linked || self->base.away || (verdict != NULL && verdict->verdict.code != TMQ_OK))
            continue;
        size_t before = keys->count;
        request_want (&self->requests, link, request, verdict == NULL ? NULL : verdict->items,
                      keys);
        pay_for_keys (self, keys->keys + before, keys->count - before);
    }
    return i;
}

void engine_want_payloads (engine_t *self, key_list_t *keys)
{
    if (self->base.away)
        return;
    fetch_want (&self->match, keys);
    ends_want (&self->reads, keys);
}

void engine_loaded (engine_t *self, key_list_t *keys)
{
    loaded_take (&self->reads, keys->keys, keys->count);
    *keys = (key_list_t){0};
    fetch_take (&self->match);
    ends_take (&self->reads);
}

void engine_unread (engine_t *self, key_list_t *keys)
{
    loaded_clear (&self->reads);
    fetch_unread (&self->match, keys);
    loaded_free_keys (keys);
    ends_unread (&self->reads);
    self->base.unread = true;
}

void engine_set_away (engine_t *self, bool away, now_t now)
{
    bool begins = away && !self->base.away;
    self->base.away = away;
    if (!begins)
        return;
    input_begin (self, now);
    unavailable_begins (&self->requests);
    input_end (self);
}

void engine_set_shut (engine_t *self, bool shut)
{
    self->base.shut = shut;
}

/* Bytes of the second frame that the request mentions; only asked when no verdicts say it. */
static size_t body_bytes_of (const Taskmq__Request *request)
{
    size_t bytes = 0;
    switch (request->op_case) {
    case TASKMQ__REQUEST__OP_SUBMIT:
        for (size_t i = 0; i < request->submit->n_tasks; i++)
            bytes += validate_payload_bytes (request->submit->tasks[i]);
        return bytes;
    case TASKMQ__REQUEST__OP_COMPLETE: return request->complete->result_bytes;
    case TASKMQ__REQUEST__OP_FAIL: return request->fail->result_bytes;
    case TASKMQ__REQUEST__OP_ANSWER:
        for (size_t i = 0; i < request->answer->n_items; i++)
            bytes += request->answer->items[i]->bytes;
        return bytes;
    case TASKMQ__REQUEST__OP_VALUE_PUT: return request->value_put->body_bytes;
    case TASKMQ__REQUEST__OP_ITEM_PUT: return request->item_put->body_bytes;
    default: return 0;
    }
}

/* What was held back while it was silent goes on. */
static void heard_again (engine_t *self, link_t *link)
{
    if (!list_is_empty (&link->ready))
        outbox_wake (&self->peers, link);
    worker_update_link (&self->match, link);
    jobs_link_heard (&self->reads, link);
    for (node_t *node = link->subscriptions.next; node != &link->subscriptions; node = node->next)
        stream_wake (&self->streams, LIST_ITEM (node, subscription_t, of_link));
}

/* The link that a message came on. A peer that became somebody else begins anew. */
static link_t *link_of (engine_t *self, const message_t *message)
{
    link_t *link = link_make (&self->peers, message->peer);
    bool same = link->established && message->identity != NULL &&
                strcmp (name_text (link->identity), message->identity) == 0;
    if (link->established && !same) {
        parting_close (&self->requests, link);
        link = link_make (&self->peers, message->peer);
    }
    if (link_heard (&self->peers, link))
        heard_again (self, link);
    return link;
}

void engine_message (engine_t *self, const message_t *message, size_t from, size_t upto, now_t now)
{
    input_begin (self, now);
    const ProtobufCBinaryData *token = &message->envelope->token;
    link_t *link = link_of (self, message);
    const uint8_t *body = message->body == NULL ? buf_bytes (NULL) : message->body;
    bool linked = link_token_is (link, token->data, token->len);
    size_t offset = 0;
    for (size_t i = 0; i < upto; i++) {
        const Taskmq__Request *request = message->envelope->requests[i];
        const request_verdict_t *verdict =
            message->verdicts == NULL ? NULL : &message->verdicts->requests[i];
        if (verdict != NULL)
            offset = verdict->body_offset;
        call_t call = {&self->requests,
                       link,
                       message->identity,
                       request,
                       verdict == NULL ? NULL : verdict->items,
                       body + offset,
                       message->body_bytes - offset,
                       false,
                       false};
        if (verdict == NULL)
            offset += body_bytes_of (request);
        if (i < from || (verdict != NULL && verdict->verdict.code != TMQ_OK) ||
            is_idle (message, request))
            continue;
        journal_close_full (&self->tasks);
        request_handle (&call, linked);
        linked = linked && request->op_case != TASKMQ__REQUEST__OP_HELLO;
        link = call.link;
        if (link->dead) { /* it said goodbye: what follows has no link */
            link = link_make (&self->peers, message->peer);
            linked = false;
        }
    }
    link_free_if_idle (&self->peers, link);
    input_end (self);
}

void engine_refuse (engine_t *self, peer_t peer, uint64_t request, tmq_code_t code,
                    const char *text, uint32_t retry_after_ms)
{
    bytes_mark_t mark;
    link_t *link = link_make (&self->peers, peer);
    reply_open (&self->requests, request, code, text, retry_after_ms, false, &mark);
    reply_close (&self->requests, link, mark, 0, NULL);
    /* One who reads nothing and goes on asking. */
    if (link->refused_ms != 0 && link->unsent_bytes / 2 > self->base.config.unsent_bytes_max)
        parting_lose (&self->requests, link);
}

bool engine_is_clogged (const engine_t *self, peer_t peer)
{
    if (list_is_empty (&self->peers.refused))
        return false;
    const link_t *link = link_find (&self->peers, peer);
    return link != NULL && link->refused_ms != 0 &&
           link->unsent_bytes > self->base.config.unsent_bytes_max;
}

void engine_set_behind (engine_t *self, peer_t peer, bool behind)
{
    link_t *link = link_find (&self->peers, peer);
    if (link != NULL)
        link->behind = behind;
}

bool engine_is_linked (const engine_t *self, peer_t peer)
{
    const link_t *link = link_find (&self->peers, peer);
    return link != NULL && link->established && !gate_is_closed (&link->gate, GATE_LOST);
}

void engine_peer_gone (engine_t *self, peer_t peer, now_t now)
{
    input_begin (self, now);
    link_t *link = link_find (&self->peers, peer);
    if (link == NULL)
        return;
    if (!link->established) { /* nobody is there for what it left unread */
        parting_close (&self->requests, link);
        return;
    }
    const clocks_t *clocks = &self->base.clocks;
    gate_close (&link->gate, GATE_GONE);
    int64_t grace_ms = base_gone_grace_ms (&self->base);
    link->gone_due_ms = clocks_awake_ms (clocks) + grace_ms;
    wheel_arm (&self->base.fine, &link->alarm, clocks->mono_ms + grace_ms);
    worker_update_link (&self->match, link);
}

/* The attempt is over for the broker; who works on it is told. */
static void overrun (engine_t *self, task_t *task)
{
    const worker_t *holder = task->detail->holder;
    uint32_t attempt = task->attempt;
    attempt_overrun (&self->tasks, task);
    cancel_tell (&self->requests, holder, &task->id, attempt,
                 task_error_text (TMQ_TASK_ERROR_MAX_RUNTIME), TMQ_TASK_ERROR_MAX_RUNTIME);
}

/* A deadline of a question may have passed. Who works on a task that fails by it is told. */
static void answers_due (engine_t *self, asking_t *asking)
{
    const task_t *task = asking->task;
    const worker_t *holder = task->leased ? task->detail->holder : NULL;
    asking_alarm (&self->tasks, asking);
    if (holder != NULL && task_is_terminal (task))
        cancel_tell (&self->requests, holder, &task->id, task->attempt,
                     task_error_text (TMQ_TASK_ERROR_ANSWER_DEADLINE),
                     TMQ_TASK_ERROR_ANSWER_DEADLINE);
}

static void attempt_alarm (engine_t *self, task_t *task)
{
    const clocks_t *clocks = &self->base.clocks;
    int64_t due_ms = clocks_awake_due_ms (clocks, task->detail->lease_due_ms);
    const worker_t *holder = task->detail->holder;
    bool behind = holder != NULL && holder->link != NULL && holder->link->behind;
    bool due = due_ms <= clocks->heard_ms && !behind; /* else a renewal may be unread */
    if (!behind && due_is_overrun (&self->tasks, task)) {
        overrun (self, task);
        return;
    }
    if (due && self->base.config.planted_bug == ENGINE_BUG_LEASE_NEVER_ENDS)
        return;
    if (due)
        attempt_lose (&self->tasks, task, "the lease ended");
    else
        wheel_arm (&self->base.fine, &task->alarm,
                   clocks_look_again_ms (clocks, due_attempt_ms (task, due_ms)));
}

static void task_alarm (engine_t *self, task_t *task)
{
    if (task->leased) {
        attempt_alarm (self, task);
        return;
    }
    assert (task->status == TMQ_STATUS_QUEUED);
    if (due_is_over (&self->tasks, task)) {
        change_end_unclaimed (&self->tasks, task);
    } else if (task->scheduled && task->ends_first) {
        due_go_on (&self->tasks, task);
    } else if (task->scheduled) {
        change_unplace (&self->tasks, task);
        task->due = !task->by_wall;
        change_place (&self->tasks, task);
    } else {
        due_arm_ready (&self->tasks, task);
    }
}

static void fire (engine_t *self, alarm_t *alarm)
{
    switch (alarm->kind) {
    case ALARM_TASK: task_alarm (self, LIST_ITEM (alarm, task_t, alarm)); break;
    case ALARM_WAIT: wait_end (&self->requests, LIST_ITEM (alarm, wait_t, alarm)); break;
    case ALARM_READ: job_drop (&self->reads, LIST_ITEM (alarm, read_job_t, alarm)); break;
    case ALARM_LINK: parting_alarm (&self->requests, LIST_ITEM (alarm, link_t, alarm)); break;
    case ALARM_WORKER:
        parting_worker_alarm (&self->requests, LIST_ITEM (alarm, worker_t, alarm));
        break;
    case ALARM_ASKING: answers_due (self, LIST_ITEM (alarm, asking_t, alarm)); break;
    case ALARM_ROSTER: roster_alarm (&self->match, LIST_ITEM (alarm, roster_entry_t, alarm)); break;
    case ALARM_STREAM:
        stream_alarm (&self->streams, LIST_ITEM (alarm, subscription_t, alarm));
        break;
    case ALARM_QUEUE: settings_alarm (&self->tasks, LIST_ITEM (alarm, settings_t, alarm)); break;
    case ALARM_SESSION: session_alarm (&self->tasks, LIST_ITEM (alarm, session_t, alarm)); break;
    case ALARM_SCHEDULE: fire_alarm (&self->requests, LIST_ITEM (alarm, schedule_t, alarm)); break;
    case ALARM_INSTANTS: fire_turns (&self->requests); break;
    default: assert (false && "an alarm of no kind");
    }
}

/* Fires what is due, as far as this round allows; the rest waits in its wheel. */
static void turn (engine_t *self, wheel_t *wheel, int64_t now_ms)
{
    node_t fired;
    list_init (&fired);
    size_t max = self->base.round.alarms;
    wheel_turn (wheel, now_ms, &fired, max);
    for (node_t *node = list_pop_front (&fired); node != NULL; node = list_pop_front (&fired)) {
        fire (self, LIST_ITEM (node, alarm_t, node));
        budget_take (&self->base.round.alarms, 1);
        journal_close_full (&self->tasks);
    }
}

/* When the earliest expiry falls due on the monotonic clock. */
static int64_t next_expiry_ms (engine_t *self)
{
    const clocks_t *clocks = &self->base.clocks;
    int64_t next = wheel_next (&self->base.coarse);
    if (next == INT64_MAX)
        return next;
    next = clocks->mono_ms + (next - base_expiry_turn_ms (&self->base));
    bool held = clocks->leap_ms > 0 && clocks->hold_until_ms < next;
    return held ? clocks->hold_until_ms : next;
}

/* Something waits for the next round alone. */
static bool is_behind (const engine_t *self)
{
    return !list_is_empty (&self->streams.ended) || stats_are_owed (&self->requests) ||
           waits_are_behind (&self->requests) || dependents_are_owed (&self->tasks) ||
           debts_are_owed (&self->tasks) || lanes_are_owed (&self->tasks) ||
           !list_is_empty (&self->tasks.noticed) || !list_is_empty (&self->tasks.flowed) ||
           !list_is_empty (&self->match.owing) || !list_is_empty (&self->tasks.delays_to_judge) ||
           (!list_is_empty (&self->tasks.changed_queues) && !self->base.stopping);
}

int64_t engine_tick (engine_t *self, now_t now, int64_t heard_ms, int64_t paused_ms)
{
    if (paused_ms > 0) /* one that stood still heard nobody: that is nobody's fault (A20) */
        self->base.clocks.paused_ms += paused_ms;
    input_begin (self, now);
    self->base.clocks.heard_ms = heard_ms;
    policy_judge_ends (&self->requests);
    output_notices (self);
    outbox_retry (&self->peers);
    loaded_clear (&self->reads);
    spaces_free_idle (&self->tasks);
    settle_written (&self->tasks);
    turn (self, &self->base.fine, self->base.clocks.mono_ms);
    turn (self, &self->base.coarse, base_expiry_turn_ms (&self->base));
    change_judge_some (&self->tasks);
    change_write_lazy (&self->tasks);
    stats_run (&self->requests);
    waits_run (&self->requests);
    dependents_run (&self->tasks);
    debts_run (&self->tasks);
    lanes_run (&self->tasks);
    leaving_run (&self->sessions);
    cleanup_run (&self->requests);
    subscriptions_run (&self->streams);
    input_end (self);
    if (is_behind (self))
        return now.mono_ms;
    int64_t next = wheel_next (&self->base.fine);
    int64_t expiry = next_expiry_ms (self);
    int64_t lazy = journal_lazy_due_ms (&self->tasks);
    int64_t retry = outbox_retry_at_ms (&self->peers);
    int64_t judgement = policy_next_judgement_ms (&self->requests);
    int64_t cleanup = cleanup_next_ms (&self->requests);
    if (expiry < next)
        next = expiry;
    if (retry < next)
        next = retry;
    if (judgement < next)
        next = judgement;
    if (cleanup < next)
        next = cleanup;
    return lazy < next ? lazy : next;
}

void engine_durable (engine_t *self, uint64_t batch, now_t now)
{
    input_begin (self, now);
    if (batch <= self->base.durable)
        return;
    self->base.durable = batch;
    settle_durable (&self->tasks, batch);
    stream_durable (&self->streams);
    outbox_durable (&self->peers);
}

void engine_written (engine_t *self, uint64_t batch)
{
    uint64_t before = self->base.written;
    base_written (&self->base, batch);
    if (self->base.written == before)
        return;
    output_notices (self); /* they name tasks that may go now */
    settle_written (&self->tasks);
}

/* What the store saw may have changed since: memory knows, or it has forgotten too much of it. */
static bool is_seen_as_it_is (const engine_t *self, const due_t *due)
{
    const tasks_t *tasks = &self->tasks;
    return tasks->settled <= due->written || tasks->freshened <= due->written;
}

static bool task_is_due (const engine_t *self, const space_t *space, const record_t *record)
{
    return record_is_over (record, clocks_expiry_ms (&self->base.clocks)) &&
           task_find (&self->tasks, space, record->id.bytes) == NULL &&
           edges_find (&self->tasks, space, record->id.bytes) == NULL &&
           removal_note_find (&self->tasks, space, record->id.bytes) == NULL;
}

static bool row_is_due (const engine_t *self, const row_t *row)
{
    return row->expires_at != 0 && row->expires_at <= clocks_expiry_ms (&self->base.clocks) &&
           rows_find (&self->tasks, row->kind, buf_bytes (row->key), buf_length (row->key)) == NULL;
}

size_t engine_due (engine_t *self, due_t *due, now_t now)
{
    tasks_t *tasks = &self->tasks;
    size_t removed = 0;
    input_begin (self, now);
    bool judged = !self->base.stopping && !clocks_are_held (&self->base.clocks) &&
                  is_seen_as_it_is (self, due);
    for (size_t i = 0; judged && i < due->count; i++) {
        space_t *space = space_find (tasks, due->records[i]->ns);
        if (space != NULL && task_is_due (self, space, due->records[i])) {
            journal_close_full (tasks);
            change_remove (tasks, space, due->records[i], INPUT_REMOVE, NULL);
            tasks->open.inputs++;
            removed++;
        }
    }
    for (size_t i = 0; judged && i < due->rows_count; i++)
        if (row_is_due (self, &due->rows[i])) {
            journal_close_full (tasks);
            engine_end_row (self, &due->rows[i]);
            tasks->open.inputs++;
            removed++;
        }
    due_clear (due);
    return removed;
}

void engine_forgotten (engine_t *self, const forgotten_t *forgotten)
{
    history_raise_floor (&self->history, forgotten->upto_seq);
    for (size_t i = 0; i < forgotten->count; i++) {
        space_t *space = space_find (&self->tasks, forgotten->list[i].name);
        if (space == NULL)
            continue;
        history_forget (&self->history, &space->log, forgotten->list[i].last_seq);
        space_release (&self->tasks, space);
    }
}

/* A count is made in pieces, and answered when it is whole. */
static bool goes_on (const read_t *read)
{
    bool counts = read->kind == READ_COUNT || (read->kind == READ_SEARCH && read->search->counting);
    return counts && read->more && read->error == 0;
}

void engine_read_done (engine_t *self, read_t *read, now_t now)
{
    input_begin (self, now);
    read_job_t *job = (read_job_t *) (void *) read;
    if (read->away) {
        unavailable_read (&self->requests, job);
        return;
    }
    if (goes_on (read) && job->link != NULL) {
        job_again (&self->reads, job);
        return;
    }
    if (values_go_on (&self->requests, job) || cleanup_looks_on (&self->requests, job))
        return;
    if (job->own && read->kind == READ_LASTING)
        cleanup_page (&self->requests, job);
    else if (job->own)
        leaving_swept (&self->sessions, job);
    else if (job->subscription != NULL && read->kind == READ_SINCE)
        subscribe_started (&self->requests, job);
    else if (job->subscription != NULL)
        stream_read_done (&self->streams, job);
    else
        browse_answer (&self->requests, job);
    job_free (&self->reads, job);
}

void engine_errand_done (engine_t *self, errand_t *errand, now_t now)
{
    input_begin (self, now);
    errand_answer (&self->requests, errand);
}

/* Effects. */

void engine_keep_row (engine_t *self, row_t row, now_t now)
{
    input_begin (self, now);
    rows_put (&self->tasks, row);
    journal_close_full (&self->tasks);
    input_end (self);
}

bool engine_deed_next (engine_t *self, deed_t *out)
{
    return deeds_next (&self->requests, out);
}

bool engine_blob_is_needed (engine_t *self, const uint8_t *hash)
{
    return blob_is_needed (&self->tasks, hash);
}

errand_t *engine_errand_next (engine_t *self)
{
    return errand_jobs_next (&self->requests);
}

log_piece_t *engine_log_next (engine_t *self)
{
    return log_pieces_next (&self->requests);
}

void engine_log_done (engine_t *self, log_piece_t *piece)
{
    log_piece_done (&self->requests, piece);
}

clocks_step_t engine_clock_news (engine_t *self, int64_t *ms)
{
    clocks_step_t news = self->base.clocks.news;
    *ms = self->base.clocks.news_ms;
    self->base.clocks.news = CLOCKS_STEADY;
    return news;
}

uint64_t engine_waits_for (const engine_t *self)
{
    return journal_batch (&self->tasks);
}

batch_t *engine_batch_take (engine_t *self, now_t now)
{
    input_begin (self, now);
    change_write_lazy (&self->tasks);
    follow_facts (self);
    return journal_take (&self->tasks);
}

read_t *engine_read_next (engine_t *self)
{
    return jobs_next (&self->reads);
}

bool engine_wants_flush (const engine_t *self)
{
    return jobs_want_flush (&self->reads) || journal_is_dirty (&self->tasks);
}

size_t engine_pending_inputs (const engine_t *self)
{
    return journal_pending_inputs (&self->tasks);
}

size_t engine_pending_bytes (const engine_t *self)
{
    return journal_pending_bytes (&self->tasks);
}

size_t engine_dirty_bytes (const engine_t *self)
{
    return journal_dirty_bytes (&self->tasks);
}
