/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* What each subscription is sent (A51).
 *
 * A subscription is a cursor. Whenever something may have become possible for it (events are
 * durable, credit came, a page was read) it is woken: put into its link's list of streams. When its
 * turn comes, stream_next makes its next message or finds that there is none. A cursor inside the
 * ring is served from memory, one before it from pages that a reader brings, until it is inside. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/memory.h"
#include "core/peers/outbox.h"
#include "core/reads/jobs.h"
#include "core/streams/cut.h"
#include "core/streams/interest.h"
#include "core/streams/snapshot.h"
#include "core/streams/stream.h"
#include "core/streams/subscription.h"

enum {
    PAGE_BYTES = 64 * 1024, /* of a replay's read: two windows */
    NOTICES_MAX = 256,      /* that wait for one link; more are dropped */
    UPTO_SPREAD = 64,       /* an empty upto follows in 2.5 to 5 s, in so many steps */
    UPTO_SPREAD_MS = TMQ_UPTO_INTERVAL_MS / 2 / UPTO_SPREAD
};

/* Waking. */

void stream_wake (streams_t *self, subscription_t *subscription)
{
    subscription->held = false;
    if (!node_is_linked (&subscription->stream))
        list_push_back (&subscription->link->streams, &subscription->stream);
    outbox_wake (self->peers, subscription->link);
}

/* Spread, so that thousands that moved at the same moment are not told at the same moment. */
static void wait_for_upto (streams_t *self, subscription_t *subscription)
{
    int64_t wait_ms =
        TMQ_UPTO_INTERVAL_MS - (int64_t) (subscription->id % UPTO_SPREAD) * UPTO_SPREAD_MS;
    if (!alarm_is_armed (&subscription->alarm) && !subscription->upto_due)
        wheel_arm (&self->base->fine, &subscription->alarm, self->base->clocks.mono_ms + wait_ms);
}

/* A start that rested on a batch is true now. */
static void wake_started (streams_t *self)
{
    for (node_t *node = list_first (&self->starting); node != NULL;
         node = list_first (&self->starting)) {
        subscription_t *subscription = LIST_ITEM (node, subscription_t, starting);
        if (subscription->start_batch > self->base->durable)
            return;
        list_remove (node);
        stream_wake (self, subscription);
    }
}

/* Wakes those whom an advance concerns, and lets the others know of it in time. */
static void wake_concerned (streams_t *self, node_t *concerned, node_t *moved)
{
    for (node_t *node = list_pop_front (concerned); node != NULL; node = list_pop_front (concerned))
        stream_wake (self, LIST_ITEM (node, subscription_t, concerned));
    for (node_t *node = list_pop_front (moved); node != NULL; node = list_pop_front (moved))
        wait_for_upto (self, LIST_ITEM (node, subscription_t, of_interest));
}

void stream_durable (streams_t *self)
{
    node_t concerned;
    node_t moved;
    list_init (&concerned);
    list_init (&moved);
    const node_t *ring = &self->history->ring;
    for (node_t *node = ring->prev; node != ring; node = node->prev) {
        const ring_block_t *block = LIST_ITEM (node, ring_block_t, in_ring);
        event_log_t *log = block->log;
        uint64_t last_seq = block->first_seq + block->count - 1;
        if (block->batch <= self->streamed)
            break;
        if (block->batch > self->base->durable || last_seq <= log->durable_seq)
            continue;
        uint64_t before = log->durable_seq;
        log->durable_seq = last_seq;
        interest_advance (self, log, before, &concerned, &moved);
    }
    wake_concerned (self, &concerned, &moved);
    self->streamed = self->base->durable;
    wake_started (self);
}

void stream_start (streams_t *self, subscription_t *subscription)
{
    if (subscription->start_batch > self->base->durable)
        list_push_back (&self->starting, &subscription->starting);
    else
        stream_wake (self, subscription);
}

/* Credit. */

void stream_acknowledge (streams_t *self, subscription_t *subscription, uint64_t upto)
{
    if (upto > subscription->sent_upto)
        upto = subscription->sent_upto;
    if (upto > subscription->acked)
        subscription->acked = upto;
    size_t done = 0;
    while (done < subscription->sent_count && subscription->sent[done].upto <= upto)
        subscription->unacked_bytes -= subscription->sent[done++].bytes;
    if (done == 0)
        return;
    subscription->sent_count -= done;
    memmove (subscription->sent, subscription->sent + done,
             subscription->sent_count * sizeof (*subscription->sent));
    stream_wake (self, subscription);
}

void stream_acknowledge_snapshot (streams_t *self, subscription_t *subscription, uint32_t messages)
{
    if (messages > subscription->snapshot_sent)
        messages = subscription->snapshot_sent;
    if (messages <= subscription->snapshot_taken)
        return;
    subscription->snapshot_taken = messages;
    stream_wake (self, subscription);
}

static void remember_sent (subscription_t *subscription, uint64_t upto, size_t bytes)
{
    subscription->sent = memory_grow (subscription->sent, &subscription->sent_capacity,
                                      subscription->sent_count, sizeof (*subscription->sent));
    subscription->sent[subscription->sent_count++] = (sent_t){upto, (uint32_t) bytes};
    subscription->unacked_bytes += bytes;
}

static void set_gap (subscription_t *subscription, uint64_t to)
{
    subscription->gap = true;
    subscription->gap_from = subscription->cursor + 1;
    subscription->gap_to = to;
    subscription->cursor = to;
}

/* It is read again when it is wanted. */
static void let_page_go (streams_t *self, subscription_t *subscription)
{
    if (subscription->page != NULL)
        subscription_drop_page (self, subscription);
    else
        snapshot_put_back (self, subscription);
}

/* The pages of those that wait for credit are in the way of those that wait for a page. */
static void make_way (streams_t *self, link_t *link)
{
    node_t *paged = &link->paged;
    for (node_t *node = paged->next, *next = NULL; node != paged; node = next) {
        subscription_t *subscription = LIST_ITEM (node, subscription_t, paged);
        next = node->next;
        if (subscription->held && jobs_pages_wait (link))
            let_page_go (self, subscription);
    }
}

static void ask_for_page (streams_t *self, subscription_t *subscription)
{
    read_job_t *job = job_for_stream (self->reads, subscription->link, subscription->log->name,
                                      READ_EVENTS, self->base->durable, subscription);
    job->read.after_seq = subscription->cursor;
    job->read.limit = PAGE_BYTES;
    subscription->job = job;
}

/* The page begins at the cursor, or behind events that are no longer kept. */
static void take_page (streams_t *self, subscription_t *subscription, read_t *read)
{
    uint64_t first = 0;
    if (read->blocks_count > 0)
        first = read->blocks[0].first_seq;
    if (first == 0)
        first = ring_first_seq (subscription->log);
    if (first == 0)
        first = subscription->log->durable_seq + 1;
    if (first > subscription->cursor + 1)
        set_gap (subscription, first - 1);
    if (read->blocks_count == 0)
        return;
    subscription->page = read->blocks;
    subscription->page_count = read->blocks_count;
    self->pages_held++;
    read->blocks = NULL;
    read->blocks_count = 0;
}

void stream_read_done (streams_t *self, read_job_t *job)
{
    subscription_t *subscription = job->subscription;
    subscription->job = NULL;
    if (job->read.error != 0) { /* asked again after a while */
        wheel_arm (&self->base->fine, &subscription->alarm,
                   self->base->clocks.mono_ms + TMQ_UPTO_INTERVAL_MS);
        return;
    }
    if (gate_is_closed (&subscription->link->gate, GATE_STALLED)) {
        /* nobody would take it: it is read again when the link is heard */
    } else if (job->read.kind == READ_LIST) {
        snapshot_take (self, subscription, &job->read);
    } else if (job->read.after_seq == subscription->cursor) {
        take_page (self, subscription, &job->read);
    }
    if (subscription->page != NULL || subscription->snapshot != NULL)
        subscription_keep_page (subscription, job);
    stream_wake (self, subscription);
}

void streams_stall (streams_t *self, link_t *link)
{
    node_t *paged = &link->paged;
    for (node_t *node = paged->next, *next = NULL; node != paged; node = next) {
        next = node->next;
        if (self->pages_held > PAGES_HELD_MAX)
            let_page_go (self, LIST_ITEM (node, subscription_t, paged));
    }
}

static void pack_gap (streams_t *self, subscription_t *subscription)
{
    Taskmq__Gap gap = TASKMQ__GAP__INIT;
    gap.subscription = subscription->id;
    gap.generation = self->history->generation;
    gap.from = subscription->gap_from;
    gap.to = subscription->gap_to;
    bytes_append_message (&self->peers->envelope, BROKER_GAP, &gap.base);
    self->base->counts.gaps++;
    subscription->gap = false;
    subscription->last = SENT_GAP;
    subscription->acked = subscription->sent_upto = subscription->cursor = gap.to;
}

static void pack_events (streams_t *self, subscription_t *subscription, uint32_t count,
                         size_t list_bytes, bool replay)
{
    Taskmq__EventBatch batch = TASKMQ__EVENT_BATCH__INIT;
    batch.subscription = subscription->id;
    batch.upto = subscription->cursor;
    batch.generation = self->history->generation;
    batch.count = count;
    batch.replay = replay;
    batch.list_bytes = (uint32_t) list_bytes;
    bytes_append_message (&self->peers->envelope, BROKER_EVENTS, &batch.base);
    subscription->last = SENT_EVENTS;
    subscription->sent_upto = subscription->cursor;
    subscription->told_live = !replay;
    subscription->upto_due = false;
    alarm_disarm (&subscription->alarm);
}

/* What is next was there before the subscription was, or before it fell back. */
static bool is_replaying (const subscription_t *subscription)
{
    return !subscription->told_live && subscription->cursor < subscription->live_seq;
}

static uint64_t smaller (uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* Cuts what the window allows, never both of the replay and of what came behind it. Returns
 * whether anything was considered; *list is what matched. */
static bool next_cut (streams_t *self, subscription_t *subscription, buf_t **list, uint32_t *count)
{
    size_t window = TMQ_SUBSCRIPTION_WINDOW_BYTES;
    uint64_t end_seq = is_replaying (subscription) ? subscription->live_seq : UINT64_MAX;
    cut_t cut = {.filter = subscription->filter,
                 .after_seq = subscription->cursor,
                 .durable_seq = smaller (subscription->log->durable_seq, end_seq),
                 .budget =
                     window -
                     (subscription->unacked_bytes < window ? subscription->unacked_bytes : window),
                 .alone = subscription->unacked_bytes == 0,
                 .stop_seq = smaller (subscription->match_seq, end_seq),
                 .hint = subscription->hint,
                 .upto = subscription->cursor};
    if (self->base->config.planted_bug == ENGINE_BUG_REPLAY_UNJUDGED)
        subscription->filter->scoped =
            subscription->filter->access.policy != NULL && !is_replaying (subscription);
    if (ring_holds (subscription->log, subscription->cursor + 1)) {
        subscription_drop_page (self, subscription);
        *list = cut_from_ring (subscription->log, &cut);
    } else {
        *list = cut_from_page (subscription->page, subscription->page_count, &cut);
    }
    *count = cut.count;
    self->looks += cut.upto - cut.after_seq;
    subscription->cursor =
        cut.upto >= subscription->match_seq ? subscription->log->durable_seq : cut.upto;
    return cut.upto > cut.after_seq;
}

/* At the end of what is durable: the first time is told at once, a mere advance from time
 * to time. */
static bool next_empty (streams_t *self, subscription_t *subscription)
{
    bool moved = subscription->cursor > subscription->sent_upto;
    if (!subscription->told_live || (moved && subscription->upto_due)) {
        pack_events (self, subscription, 0, 0, false);
        return true;
    }
    if (moved)
        wait_for_upto (self, subscription);
    else if (subscription->interest != INTEREST_WIDE)
        interest_rest (subscription);
    return false;
}

/* The next event is here, in the ring or in the page: only the window can hold it back. */
static bool has_more_at_hand (const subscription_t *subscription)
{
    if (ring_holds (subscription->log, subscription->cursor + 1))
        return true;
    if (subscription->page == NULL)
        return false;
    const event_block_t *last = &subscription->page[subscription->page_count - 1];
    return last->first_seq + last->count - 1 > subscription->cursor;
}

static bool next_events (streams_t *self, subscription_t *subscription, buf_t **body)
{
    uint64_t durable_seq = subscription->log->durable_seq;
    if (subscription->cursor >= subscription->match_seq)
        subscription->cursor = durable_seq;
    while (subscription->cursor < durable_seq) {
        uint32_t count = 0;
        bool replay = is_replaying (subscription);
        if (!next_cut (self, subscription, body, &count)) {
            if (subscription->unacked_bytes > 0 && has_more_at_hand (subscription)) {
                if (self->pages_held > PAGES_HELD_MAX)
                    subscription_drop_page (self, subscription);
                subscription->held = true; /* the window is full: credit wakes it */
                make_way (self, subscription->link);
                return false;
            }
            subscription_drop_page (self, subscription);
            if (subscription->job == NULL)
                ask_for_page (self, subscription);
            make_way (self, subscription->link);
            return false;
        }
        if (count == 0)
            continue;
        remember_sent (subscription, subscription->cursor, buf_length (*body));
        pack_events (self, subscription, count, buf_length (*body), replay);
        if (self->base->config.planted_bug == ENGINE_BUG_CURSOR_OFF_BY_ONE)
            subscription->cursor++;
        return true;
    }
    if (subscription->interest != INTEREST_WIDE)
        subscription->match_seq = 0; /* at the end: interest.c knows what comes */
    return next_empty (self, subscription);
}

bool stream_is_shareable (const streams_t *self, const subscription_t *subscription)
{
    return subscription->start_batch <= self->base->durable && !subscription->gap &&
           (!subscription->snapshot_wanted || subscription->snapshot_told);
}

bool stream_next (streams_t *self, subscription_t *subscription, buf_t **body)
{
    if (subscription->phase == STREAM_STARTING) {
        if (subscription->start_batch > self->base->durable)
            return false;
        subscription->phase = STREAM_RUNNING;
    }
    if (subscription->gap) {
        pack_gap (self, subscription);
        return true;
    }
    if (subscription->snapshot_wanted && !subscription->snapshot_told) {
        bool sent = snapshot_next (self, subscription);
        make_way (self, subscription->link);
        return sent;
    }
    subscription_drop_snapshot (self, subscription);
    return next_events (self, subscription, body);
}

/* The transport did not take the last message: back to where the client surely is (A49). */
void stream_failed (streams_t *self, subscription_t *subscription)
{
    switch (subscription->last) {
    case SENT_GAP: subscription->gap = true; break;
    case SENT_SNAPSHOT: snapshot_failed (subscription); break;
    case SENT_EVENTS:
        subscription_drop_page (self, subscription);
        subscription->cursor = subscription->sent_upto = subscription->acked;
        subscription->match_seq = UINT64_MAX;
        subscription->sent_count = 0;
        subscription->unacked_bytes = 0;
        subscription->told_live = false;
        subscription->live_seq = subscription->log->durable_seq;
        break;
    case SENT_NOTHING: break;
    }
}

void stream_alarm (streams_t *self, subscription_t *subscription)
{
    subscription->upto_due = true;
    stream_wake (self, subscription);
}

static void send_notice (streams_t *self, const subscription_t *subscription,
                         const record_t *record, const Taskmq__LogState *state)
{
    link_t *link = subscription->link;
    if ((state != NULL && !subscription->logs) || !subscription->told_live ||
        link->notices >= NOTICES_MAX || gate_is_closed (&link->gate, GATE_STALLED) ||
        !filter_takes_record (subscription->filter, record))
        return;
    Taskmq__Progress progress = TASKMQ__PROGRESS__INIT;
    progress.done = record->progress_done;
    progress.total = record->progress_total;
    progress.unit = (char *) record->progress_unit;
    progress.message = (char *) record->progress_message;
    Taskmq__Notice notice = TASKMQ__NOTICE__INIT;
    notice.subscription = subscription->id;
    notice.task_id = (ProtobufCBinaryData){sizeof (record->id), (uint8_t *) record->id.bytes};
    notice.queue = (char *) record->queue;
    notice.session = (char *) record->session;
    notice.status = record->status;
    notice.attempt = record->attempt;
    notice.worker = (char *) record->worker;
    notice.at = (uint64_t) self->base->clocks.wall_ms;
    notice.progress = state == NULL ? &progress : NULL;
    notice.log = (Taskmq__LogState *) (uintptr_t) state;
    bytes_clear (&self->peers->scratch);
    bytes_append_message (&self->peers->scratch, BROKER_NOTICES, &notice.base);
    outbox_add (self->peers, link, ITEM_NOTICE, 0, &self->peers->scratch, NULL);
    link->notices++;
    self->base->counts.notices++;
}

size_t stream_notice (streams_t *self, event_log_t *log, const record_t *record,
                      const Taskmq__LogState *state, size_t max)
{
    node_t concerned;
    list_init (&concerned);
    size_t looked_at = interest_notice (self, log, record, max, &concerned);
    for (node_t *node = list_pop_front (&concerned); node != NULL;
         node = list_pop_front (&concerned))
        send_notice (self, LIST_ITEM (node, subscription_t, concerned), record, state);
    return looked_at;
}

/* Life. */

void streams_init (streams_t *self, base_t *base, history_t *history, links_t *peers,
                   reads_t *reads)
{
    *self = (streams_t){.base = base, .history = history, .peers = peers, .reads = reads};
    list_init (&self->ended);
    streams_reset (self);
}

void streams_reset (streams_t *self)
{
    while (!list_is_empty (&self->ended)) {
        self->base->round = self->base->config.round;
        subscriptions_run (self);
    }
    list_init (&self->starting);
    self->looks = 0;
}
