/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* What leaves the broker, and when (A7, A33).
 *
 * An item is one packed field of a BrokerMessage. It is held until its batch is durable, then waits
 * in its link's list of ready items until the next message to that peer takes it along, with as
 * many others as fit. Batches of held items never fall, so one list in order of making is enough.
 *
 * A message that the transport refuses: assignments are queued again, not counted; a stream falls
 * back to its acknowledged cursor; a lost reply ends the link (A40). */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "core/engine_private.h"
#include "types.h"

/* Numbers of the fields of Reply in taskmq.proto. */
enum { REPLY_ID = 1, REPLY_CODE = 2, REPLY_TEXT = 3, REPLY_RETRY = 4, REPLY_MORE = 5 };

/* Items. */

enum {
    SPARE_BYTES = 160,        /* packed: an assignment without labels fits */
    SPARE_ITEMS_MAX = 4096,   /* kept for use again: under 1 MiB */
    STREAMS_MAX = 512,        /* event batches of one message: 32 KiB of its envelope */
    STREAMS_BYTES = 16 * 1024 /* of events: from here on no further batch joins */
};

/* Nearly all items are small answers that live for one commit: their places are used again. */
static item_t *item_new (engine_t *self, size_t bytes)
{
    node_t *node = bytes > SPARE_BYTES ? NULL : list_pop_front (&self->spare_items);
    if (node == NULL)
        return memory_alloc (sizeof (item_t) + (bytes > SPARE_BYTES ? bytes : SPARE_BYTES));
    self->spare_items_count--;
    return LIST_ITEM (node, item_t, node);
}

static void item_free (engine_t *self, item_t *item)
{
    buf_drop (item->body);
    if (item->bytes > SPARE_BYTES || self->spare_items_count >= SPARE_ITEMS_MAX) {
        free (item);
        return;
    }
    list_push_front (&self->spare_items, &item->node);
    self->spare_items_count++;
}

void release_link_ready (engine_t *self, link_t *link)
{
    if (!node_is_linked (&link->output))
        list_push_back (&self->outputs, &link->output);
}

static void make_ready (engine_t *self, item_t *item)
{
    list_push_back (&item->link->ready, &item->node);
    release_link_ready (self, item->link);
}

/* Answers of one link that wait for the same batch share an item as far as there is room. */
static item_t *join_reply (const link_t *link, item_kind_t kind, uint64_t batch,
                           const bytes_t *packed, const buf_t *body)
{
    item_t *item = link->held_reply;
    if (item == NULL || kind != ITEM_REPLY || body != NULL || item->batch != batch ||
        packed->length > SPARE_BYTES || item->bytes > SPARE_BYTES - packed->length)
        return NULL;
    memcpy (item->packed + item->bytes, packed->data, packed->length);
    item->bytes += packed->length;
    return item;
}

item_t *release_item (engine_t *self, link_t *link, item_kind_t kind, uint64_t batch,
                      const bytes_t *packed, buf_t *body)
{
    assert (!packed->failed);
    item_t *joined = join_reply (link, kind, batch, packed, body);
    if (joined != NULL)
        return joined;
    item_t *item = item_new (self, packed->length);
    *item = (item_t){.link = link,
                     .batch = batch,
                     .kind = kind,
                     .body = buf_keep (body),
                     .bytes = packed->length};
    memcpy (item->packed, packed->data, packed->length);
    if (batch <= self->durable) {
        make_ready (self, item);
        return item;
    }
    link->references++;
    list_push_back (&self->held, &item->node);
    if (kind == ITEM_REPLY && body == NULL)
        link->held_reply = item;
    return item;
}

/* It is not held any more: nothing joins it. */
static void unhold (item_t *item)
{
    list_remove (&item->node);
    item->link->references--;
    if (item->link->held_reply == item)
        item->link->held_reply = NULL;
}

void release_durable (engine_t *self)
{
    for (node_t *node = list_first (&self->held); node != NULL; node = list_first (&self->held)) {
        item_t *item = LIST_ITEM (node, item_t, node);
        if (item->batch > self->durable)
            break;
        link_t *link = item->link;
        unhold (item);
        if (link->silenced) {
            item_free (self, item);
            link_free_if_idle (self, link);
        } else {
            make_ready (self, item);
        }
    }
}

static void free_items (engine_t *self, node_t *list)
{
    for (node_t *node = list_pop_front (list); node != NULL; node = list_pop_front (list))
        item_free (self, LIST_ITEM (node, item_t, node));
}

void release_drop_items (engine_t *self, link_t *link)
{
    free_items (self, &link->ready);
    link->notices = 0;
}

/* Replies. */

bytes_t *reply_open (engine_t *self, uint64_t request, tmq_code_t code, const char *text,
                     uint32_t retry_after_ms, bool more, bytes_mark_t *mark)
{
    bytes_t *out = &self->scratch;
    bytes_clear (out);
    *mark = bytes_open (out, 1);
    bytes_append_uint (out, REPLY_ID, request);
    if (code != TMQ_OK) {
        self->counts.refused++;
        bytes_append_uint (out, REPLY_CODE, code);
        bytes_append_string (out, REPLY_TEXT, text == NULL ? code_text ((int) code) : text);
        bytes_append_uint (out, REPLY_RETRY, retry_after_ms);
    }
    bytes_append_uint (out, REPLY_MORE, more);
    return out;
}

void reply_close (engine_t *self, link_t *link, bytes_mark_t mark, uint64_t batch, buf_t *body)
{
    bytes_close (&self->scratch, mark);
    release_item (self, link, ITEM_REPLY, batch, &self->scratch, body);
}

void reply_to (engine_t *self, link_t *link, uint64_t request, tmq_code_t code, const char *text,
               uint64_t batch)
{
    bytes_mark_t mark;
    reply_open (self, request, code, text, 0, false, &mark);
    reply_close (self, link, mark, batch, NULL);
}

void reply_code (call_t *call, tmq_code_t code, const char *text)
{
    reply_to (call->engine, call->link, call->request->id, code, text,
              batch_to_wait_for (call->engine));
}

void reply_code_at_once (call_t *call, tmq_code_t code, const char *text, uint32_t retry_ms)
{
    bytes_mark_t mark;
    reply_open (call->engine, call->request->id, code, text, retry_ms, false, &mark);
    reply_close (call->engine, call->link, mark, 0, NULL);
}

/* Messages. */

void release_forget_left (engine_t *self)
{
    free_items (self, &self->left);
    buf_drop (self->left_body);
    self->left_body = NULL;
    while (list_pop_front (&self->left_streams) != NULL)
        continue;
    link_t *link = self->leaving;
    self->leaving = NULL;
    if (link == NULL)
        return;
    link->references--;
    link_free_if_idle (self, link);
}

/* The task of an assignment, or NULL when the lease ended before it left. */
static task_t *assigned_task (const engine_t *self, const link_t *link, const item_t *item)
{
    if (link->space == NULL)
        return NULL;
    task_t *task = lookup_task (self, link->space, item->id.bytes);
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
        if (item->kind == ITEM_ASSIGNMENT && assigned_task (self, link, item) == NULL) {
            item_free (self, item);
            continue;
        }
        size_t body = buf_length (item->body);
        bool fits = envelope_bytes + item->bytes <= TMQ_ENVELOPE_BYTES_MAX &&
                    *body_bytes + body <= TMQ_FRAME_BYTES_MAX;
        if (!fits && !list_is_empty (&self->left)) {
            list_push_front (&link->ready, node);
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
        bytes_append (&self->envelope, item->packed, item->bytes);
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
    return self->looks < self->config.looks_max;
}

/* The next message of the link's subscriptions: one of them, or small batches of many, in turn. */
static bool pack_streams (engine_t *self, link_t *link)
{
    buf_t *lists[STREAMS_MAX];
    size_t lists_count = 0;
    size_t bytes = 0;
    size_t streams = 0;
    while (!link->stalled && streams < STREAMS_MAX && bytes < STREAMS_BYTES && may_look (self)) {
        node_t *node = list_first (&link->streams);
        subscription_t *subscription =
            node == NULL ? NULL : LIST_ITEM (node, subscription_t, stream);
        bool alone = streams == 0;
        if (node == NULL || node_is_linked (&subscription->left) ||
            !(alone || stream_is_shareable (self, subscription)))
            break;
        buf_t *list = NULL;
        bool shareable = stream_is_shareable (self, subscription);
        list_unlink (node);
        if (!stream_next (self, subscription, &list))
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
    bytes_clear (&self->envelope);
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
            list_push_back (&self->outputs, node);
    self->looks = 0;
}

/* Nothing to send was found for the link; perhaps only because nothing more may be looked at. */
static void pass_over (engine_t *self, link_t *link, bool could_look)
{
    if (!may_look (self) && !link->stalled && !list_is_empty (&link->streams))
        list_push_back (could_look ? &self->spent : &self->denied, &link->output);
    else
        link_free_if_idle (self, link);
}

bool engine_output_next (engine_t *self, output_t *out)
{
    release_forget_left (self);
    stream_notices (self);
    for (node_t *node = list_pop_front (&self->outputs); node != NULL;
         node = list_pop_front (&self->outputs)) {
        link_t *link = LIST_ITEM (node, link_t, output);
        bool could_look = may_look (self);
        if (!pack_message (self, link)) {
            pass_over (self, link, could_look);
            continue;
        }
        assert (!self->envelope.failed);
        list_push_back (&self->outputs, node);
        self->leaving = link;
        link->references++;
        self->counts.outputs++;
        *out = (output_t){link->peer, self->envelope.data, self->envelope.length, self->left_body,
                          self->counts.outputs};
        return true;
    }
    end_round (self);
    return false;
}

bool engine_has_output (const engine_t *self)
{
    return !list_is_empty (&self->outputs);
}

/* A message that the transport refused. */

static void queue_again (engine_t *self, const link_t *link, const item_t *item)
{
    task_t *task = assigned_task (self, link, item);
    if (task == NULL)
        return;
    cause_t cause = {.message = "the assignment could not be delivered"};
    change_return (self, task, INPUT_RELEASE, 0, &cause);
}

void engine_output_failed (engine_t *self, const output_t *output, now_t now)
{
    engine_clock (self, now);
    link_t *link = self->leaving;
    if (link == NULL || output->tag != self->counts.outputs)
        return;
    self->counts.outputs_failed++;
    bool reply_lost = false;
    link->stalled = true;
    for (node_t *node = self->left_streams.next; node != &self->left_streams; node = node->next)
        stream_failed (self, LIST_ITEM (node, subscription_t, left));
    for (node_t *node = list_first (&link->workers); node != NULL && node != &link->workers;
         node = node->next)
        dispatch_worker_changed (self, LIST_ITEM (node, worker_t, of_link));
    for (node_t *node = self->left.next; node != &self->left; node = node->next) {
        const item_t *item = LIST_ITEM (node, item_t, node);
        reply_lost = reply_lost || item->kind == ITEM_REPLY;
        if (item->kind == ITEM_ASSIGNMENT)
            queue_again (self, link, item);
    }
    if (reply_lost && !link->dead) {
        if (self->config.planted_bug == ENGINE_BUG_HINT_FORGOTTEN)
            link_close (self, link);
        else
            link_lose (self, link);
    }
    release_forget_left (self);
    dispatch_run (self);
}

void release_clear (engine_t *self)
{
    release_forget_left (self);
    end_round (self);
    for (node_t *node = list_first (&self->held); node != NULL; node = list_first (&self->held)) {
        item_t *item = LIST_ITEM (node, item_t, node);
        link_t *link = item->link;
        unhold (item);
        item_free (self, item);
        link_free_if_idle (self, link);
    }
    for (node_t *node = list_pop_front (&self->outputs); node != NULL;
         node = list_pop_front (&self->outputs)) {
        link_t *link = LIST_ITEM (node, link_t, output);
        release_drop_items (self, link);
        link_free_if_idle (self, link);
    }
}

void release_free (engine_t *self)
{
    for (node_t *node = list_pop_front (&self->spare_items); node != NULL;
         node = list_pop_front (&self->spare_items))
        free (LIST_ITEM (node, item_t, node));
}
