/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* What leaves the broker, and when (A7, A43).
 *
 * An item is one packed field of a BrokerMessage. It is held until its batch is durable, then waits
 * in its link's list of ready items until the next message to that peer takes it along, with as
 * many others as fit. Batches of held items never fall, so one list in order of making is enough.
 *
 * A message that the transport refuses: assignments are queued again, not counted; a stream falls
 * back to its acknowledged cursor; replies are tried again, until they are too many for too long
 * (A49). */
#include <assert.h>
#include <string.h>

#include "core/base/memory.h"
#include "core/engine/rooms.h"
#include "core/match/worker.h"
#include "core/peers/link.h"
#include "core/peers/outbox.h"
#include "core/requests/parting.h"
#include "core/streams/stream.h"
#include "core/tasks/attempt.h"
#include "core/tasks/flow.h"
#include "core/tasks/index.h"
#include "core/tasks/view.h"

void output_forget_left (engine_t *self)
{
    self->left_kept = false;
    outbox_free_items (&self->peers, &self->left);
    buf_drop (self->left_body);
    self->left_body = NULL;
    while (list_pop_front (&self->left_streams) != NULL)
        continue;
    link_t *link = self->leaving;
    self->leaving = NULL;
    if (link == NULL)
        return;
    link->references--;
    link_free_if_idle (&self->peers, link);
}

enum {
    STREAMS_MAX = 512,        /* event batches of one message: 32 KiB of its envelope */
    STREAMS_BYTES = 16 * 1024 /* of events: from here on no further batch joins */
};

/* The task of an assignment, or NULL when the lease ended before it left. */
static task_t *assigned_task (const engine_t *self, const link_t *link, const item_t *item)
{
    if (link->space == NULL)
        return NULL;
    task_t *task = task_find (&self->tasks, link->space, item->id.bytes);
    bool held = task != NULL && task->leased && task->attempt == item->attempt &&
                task->detail->holder->link == link;
    return held ? task : NULL;
}

/* Moves the items of the next message from the link to `left`. Returns how many have a body. */
static size_t choose_items (engine_t *self, link_t *link, size_t *body_bytes)
{
    size_t envelope_bytes = 0;
    size_t bodies = 0;
    *body_bytes = 0;
    for (node_t *node = list_pop_front (&link->ready); node != NULL;
         node = list_pop_front (&link->ready)) {
        item_t *item = LIST_ITEM (node, item_t, node);
        link->unsent_bytes -= outbox_item_bytes (item);
        if (item->kind == ITEM_ASSIGNMENT && assigned_task (self, link, item) == NULL) {
            outbox_free (&self->peers, item);
            continue;
        }
        size_t body = buf_length (item->body);
        bool fits = envelope_bytes + item->bytes <= TMQ_ENVELOPE_BYTES_MAX &&
                    *body_bytes + body <= TMQ_FRAME_BYTES_MAX;
        if (!fits && !list_is_empty (&self->left)) {
            list_push_front (&link->ready, node);
            link->unsent_bytes += outbox_item_bytes (item);
            break;
        }
        list_push_back (&self->left, node);
        envelope_bytes += item->bytes;
        *body_bytes += body;
        bodies += body > 0;
        if (item->kind == ITEM_NOTICE)
            link->notices--;
    }
    return bodies;
}

static void append_kind (engine_t *self, item_kind_t kind, uint8_t **body)
{
    for (node_t *node = self->left.next; node != &self->left; node = node->next) {
        item_t *item = LIST_ITEM (node, item_t, node);
        if (item->kind != kind)
            continue;
        bytes_append (&self->peers.envelope, item->packed, item->bytes);
        size_t length = buf_length (item->body);
        if (length == 0)
            continue;
        if (*body == NULL) { /* the only one: no copy */
            self->left_body = buf_keep (item->body);
            continue;
        }
        memcpy (*body, buf_bytes (item->body), length);
        *body += length;
    }
}

static void pack_items (engine_t *self, link_t *link)
{
    size_t body_bytes = 0;
    size_t bodies = choose_items (self, link, &body_bytes);
    uint8_t *at = NULL;
    if (bodies > 1) {
        self->left_body = buf_new_uninitialised (body_bytes);
        at = buf_mutable (self->left_body);
    }
    for (item_kind_t kind = ITEM_REPLY; kind <= ITEM_NOTICE; kind++)
        append_kind (self, kind, &at);
}

/* The lists of a message, one after the other; a single one is not copied. */
static buf_t *join_lists (buf_t *const *lists, size_t count, size_t bytes)
{
    if (count == 0)
        return NULL;
    if (count == 1)
        return lists[0];
    buf_t *joined = buf_new_uninitialised (bytes);
    uint8_t *at = buf_mutable (joined);
    for (size_t i = 0; i < count; i++) {
        memcpy (at, buf_bytes (lists[i]), buf_length (lists[i]));
        at += buf_length (lists[i]);
        buf_drop (lists[i]);
    }
    return joined;
}

static bool may_look (const engine_t *self)
{
    return self->streams.looks < self->base.config.looks_max;
}

/* The next message of the link's subscriptions: one of them, or small batches of many, in turn. */
static bool pack_streams (engine_t *self, link_t *link)
{
    buf_t *lists[STREAMS_MAX] MEMORY_FILLED_BEFORE_READ;
    size_t lists_count = 0;
    size_t bytes = 0;
    size_t streams = 0;
    while (!gate_is_closed (&link->gate, GATE_STALLED) && streams < STREAMS_MAX &&
           bytes < STREAMS_BYTES && may_look (self)) {
        node_t *node = list_first (&link->streams);
        subscription_t *subscription =
            node == NULL ? NULL : LIST_ITEM (node, subscription_t, stream);
        bool alone = streams == 0;
        if (node == NULL || node_is_linked (&subscription->left) ||
            !(alone || stream_is_shareable (&self->streams, subscription)))
            break;
        buf_t *list = NULL;
        bool shareable = stream_is_shareable (&self->streams, subscription);
        list_unlink (node);
        if (!stream_next (&self->streams, subscription, &list))
            continue;
        list_push_back (&link->streams, node);
        list_push_back (&self->left_streams, &subscription->left);
        streams++;
        bytes += buf_length (list);
        if (list != NULL)
            lists[lists_count++] = list;
        if (!shareable)
            break;
    }
    self->left_body = join_lists (lists, lists_count, bytes);
    return streams > 0;
}

static bool pack_message (engine_t *self, link_t *link)
{
    bytes_clear (&self->peers.envelope);
    pack_items (self, link);
    return !list_is_empty (&self->left) || pack_streams (self, link);
}

/* Thousands of subscriptions that are behind look at thousands of events each, mostly in vain: not
 * in one piece, or the broker would answer nobody meanwhile. */
static void end_round (engine_t *self)
{
    node_t *lists[] = {&self->denied, &self->spent};
    for (size_t i = 0; i < 2; i++)
        for (node_t *node = list_pop_front (lists[i]); node != NULL;
             node = list_pop_front (lists[i]))
            list_push_back (&self->peers.outputs, node);
    self->streams.looks = 0;
}

/* Nothing to send was found for the link; perhaps only because nothing more may be looked at. */
static void pass_over (engine_t *self, link_t *link, bool could_look)
{
    if (!may_look (self) && !gate_is_closed (&link->gate, GATE_STALLED) &&
        !list_is_empty (&link->streams))
        list_push_back (could_look ? &self->spent : &self->denied, &link->output);
    else
        link_free_if_idle (&self->peers, link);
}

static void fill (const engine_t *self, const link_t *link, output_t *out)
{
    const bytes_t *envelope = &self->peers.envelope;
    *out = (output_t){link->peer, envelope->data, envelope->length, self->left_body,
                      self->base.counts.outputs};
}

/* Nothing is told to who has, or had, a link; a refusal tells nothing. */
static bool is_shut (const engine_t *self, const link_t *link)
{
    return self->base.shut && (link->established || link->serial != 0);
}

void engine_output_kept (engine_t *self, const output_t *output)
{
    self->left_kept = self->leaving != NULL && output->tag == self->base.counts.outputs;
}

/* The one that was kept, unless its link has ended since. */
static bool next_kept (engine_t *self, output_t *out)
{
    self->left_kept = false;
    if (self->leaving->dead)
        return false;
    fill (self, self->leaving, out);
    return true;
}

bool engine_output_next (engine_t *self, output_t *out)
{
    if (self->left_kept && self->base.shut)
        return false;
    if (self->left_kept && next_kept (self, out))
        return true;
    if (self->leaving != NULL)
        self->leaving->refused_ms = 0; /* the transport took it */
    output_forget_left (self);
    output_notices (self);
    for (node_t *node = list_pop_front (&self->peers.outputs); node != NULL;
         node = list_pop_front (&self->peers.outputs)) {
        link_t *link = LIST_ITEM (node, link_t, output);
        bool could_look = may_look (self);
        if (is_shut (self, link)) {
            list_push_back (&self->denied, node);
            continue;
        }
        if (!pack_message (self, link)) {
            pass_over (self, link, could_look);
            continue;
        }
        assert (!self->peers.envelope.failed);
        list_push_back (&self->peers.outputs, node);
        self->leaving = link;
        link->references++;
        self->base.counts.outputs++;
        fill (self, link, out);
        return true;
    }
    end_round (self);
    return false;
}

bool engine_has_output (const engine_t *self)
{
    return !self->base.shut && !list_is_empty (&self->peers.outputs);
}

/* Assignments that did not leave go to whoever can take them. */
static void queue_again (engine_t *self, const link_t *link)
{
    for (node_t *node = self->left.next, *next = NULL; node != &self->left; node = next) {
        item_t *item = LIST_ITEM (node, item_t, node);
        next = node->next;
        if (item->kind != ITEM_ASSIGNMENT)
            continue;
        task_t *task = assigned_task (self, link, item);
        if (task != NULL)
            attempt_undelivered (&self->tasks, task);
        list_unlink (node);
        outbox_free (&self->peers, item);
    }
}

enum { STRANGER_BYTES_MAX = 64 * 1024 }; /* of answers that one without a link leaves unread */

/* It has left too many answers unread for too long. */
static bool is_hopeless (const engine_t *self, const link_t *link)
{
    const engine_config_t *config = &self->base.config;
    if (!link->established) /* it is told no more than that it has no link */
        return link->unsent_bytes > STRANGER_BYTES_MAX;
    return link->unsent_bytes > config->unsent_bytes_max &&
           self->base.clocks.mono_ms - link->refused_ms >= config->unsent_ms_max;
}

static void give_up (engine_t *self, link_t *link)
{
    if (self->base.config.planted_bug == ENGINE_BUG_HINT_FORGOTTEN)
        parting_close (&self->requests, link);
    else
        parting_lose (&self->requests, link);
}

void engine_output_failed (engine_t *self, const output_t *output, now_t now)
{
    input_begin (self, now);
    link_t *link = self->leaving;
    if (link == NULL || output->tag != self->base.counts.outputs)
        return;
    self->base.counts.outputs_failed++;
    gate_close (&link->gate, GATE_STALLED);
    list_remove (&link->output); /* until it is heard, or tried again */
    if (link->refused_ms == 0)
        link->refused_ms = self->base.clocks.mono_ms;
    for (node_t *node = self->left_streams.next; node != &self->left_streams; node = node->next)
        stream_failed (&self->streams, LIST_ITEM (node, subscription_t, left));
    streams_stall (&self->streams, link);
    worker_update_link (&self->match, link);
    queue_again (self, link);
    if (link->dead) {
        outbox_drop (&self->peers, link); /* nothing wakes it any more */
    } else if (!list_is_empty (&self->left)) {
        outbox_put_back (&self->peers, link, &self->left);
        if (is_hopeless (self, link))
            give_up (self, link);
    }
    output_forget_left (self);
    input_end (self);
}

static size_t notice_of_log (engine_t *self, const flow_t *flow, size_t max)
{
    event_log_t *log = &flow->task->queue->space->log;
    record_t record;
    task_texts_t texts;
    Taskmq__LogState state = TASKMQ__LOG_STATE__INIT;
    if (self->streams.of_logs == 0 || log->audience == NULL)
        return 0;
    task_view (flow->task, &record, &texts);
    state.out = flow->end[TMQ_LOG_OUT - 1];
    state.err = flow->end[TMQ_LOG_ERR - 1];
    return stream_notice (&self->streams, log, &record, &state, max);
}

void output_notices (engine_t *self)
{
    size_t max = self->base.config.round.notices; /* of one, so that it reaches all, or many */
    size_t *left = &self->base.round.notices;
    while (*left > 0 && !list_is_empty (&self->tasks.noticed)) {
        detail_t *detail = LIST_ITEM (list_pop_front (&self->tasks.noticed), detail_t, noticed);
        event_log_t *log = &detail->task->queue->space->log;
        record_t record;
        task_texts_t texts;
        size_t looked_at = 0;
        if (log->audience != NULL) {
            task_view (detail->task, &record, &texts);
            looked_at = stream_notice (&self->streams, log, &record, NULL, max);
        }
        budget_take (left, 1 + looked_at);
    }
    while (*left > 0 && !list_is_empty (&self->tasks.flowed)) {
        const flow_t *flow = LIST_ITEM (list_pop_front (&self->tasks.flowed), flow_t, flowed);
        budget_take (left, 1 + notice_of_log (self, flow, max));
    }
}

void output_clear (engine_t *self)
{
    output_forget_left (self);
    end_round (self);
}
