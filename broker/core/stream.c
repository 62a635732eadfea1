/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* The ring of newest events, and what each subscription is sent (A42, A43).
 *
 * A subscription is a cursor. Whenever something may have become possible for it (events are
 * durable, credit came, a page was read) it is woken: put into its link's list of streams. When its
 * turn comes, stream_next makes its next message or finds that there is none. A cursor inside the
 * ring is served from memory, one before it from pages that a reader brings, until it is inside. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "core/engine_private.h"

enum {
    PAGE_BYTES = 64 * 1024,   /* of a replay's read: two windows */
    PAGES_HELD_MAX = 64,      /* beyond it a page whose reader stalls is dropped and read again */
    SNAPSHOT_RECORDS = 200,   /* of one read */
    WHOLE_BLOCK_BYTES = 4096, /* from here on a block is worth a message without a copy */
    SEND_EVENTS = 5,          /* numbers of fields of BrokerMessage in taskmq.proto */
    SEND_SNAPSHOT = 6,
    SEND_GAP = 7
};

/* ---- The ring -------------------------------------------------------------------------------------------- */

static void block_free (engine_t *self, ring_block_t *block)
{
    list_remove (&block->in_space);
    list_remove (&block->in_ring);
    self->ring_bytes -= buf_length (block->list);
    buf_drop (block->list);
    free (block);
}

void stream_add_block (engine_t *self, space_t *space, uint64_t batch, uint64_t first_seq,
                       uint32_t count, buf_t *list)
{
    ring_block_t *block = memory_zero (1, sizeof (*block));
    *block = (ring_block_t){.space = space,
                            .batch = batch,
                            .first_seq = first_seq,
                            .count = count,
                            .list = buf_keep (list)};
    list_push_back (&space->blocks, &block->in_space);
    list_push_back (&self->ring, &block->in_ring);
    self->ring_bytes += buf_length (list);
    while (self->ring_bytes > self->config.ring_bytes) {
        block = LIST_ITEM (self->ring.next, ring_block_t, in_ring);
        if (block->batch > self->durable)
            break;
        block_free (self, block);
    }
}

void stream_clear (engine_t *self)
{
    while (!list_is_empty (&self->ring))
        block_free (self, LIST_ITEM (self->ring.next, ring_block_t, in_ring));
}

static uint64_t block_last (const ring_block_t *block)
{
    return block->first_seq + block->count - 1;
}

static void wake_space (engine_t *self, space_t *space)
{
    for (node_t *node = space->subscriptions.next; node != &space->subscriptions; node = node->next)
        stream_wake (self, LIST_ITEM (node, subscription_t, of_space));
}

void stream_durable (engine_t *self)
{
    for (node_t *node = self->ring.prev; node != &self->ring; node = node->prev) {
        const ring_block_t *block = LIST_ITEM (node, ring_block_t, in_ring);
        if (block->batch <= self->streamed)
            break;
        if (block->batch > self->durable || block_last (block) <= block->space->durable_seq)
            continue;
        block->space->durable_seq = block_last (block);
        wake_space (self, block->space);
    }
    self->streamed = self->durable;
}

/* ---- Waking, ending ---------------------------------------------------------------------------------------- */

void stream_wake (engine_t *self, subscription_t *subscription)
{
    if (!node_is_linked (&subscription->stream))
        list_push_back (&subscription->link->streams, &subscription->stream);
    release_link_ready (self, subscription->link);
}

static void drop_page (engine_t *self, subscription_t *subscription)
{
    if (subscription->page == NULL)
        return;
    for (size_t i = 0; i < subscription->page_count; i++) {
        free ((char *) subscription->page[i].ns);
        buf_drop (subscription->page[i].list);
    }
    free (subscription->page);
    subscription->page = NULL;
    subscription->page_count = 0;
    self->pages_held--;
}

static void drop_snapshot (subscription_t *subscription)
{
    for (size_t i = 0; i < subscription->snapshot_count; i++)
        record_free (subscription->snapshot[i]);
    free (subscription->snapshot);
    subscription->snapshot = NULL;
    subscription->snapshot_count = subscription->snapshot_next = 0;
    subscription->snapshot_read = false;
}

void stream_close (engine_t *self, subscription_t *subscription)
{
    if (self->left_stream == subscription)
        self->left_stream = NULL;
    list_remove (&subscription->stream);
    list_remove (&subscription->of_link);
    list_remove (&subscription->of_space);
    alarm_disarm (&subscription->alarm);
    subscription->link->subscriptions_count--;
    self->subscriptions--;
    drop_page (self, subscription);
    drop_snapshot (subscription);
    free (subscription->sent);
    job_t *job = subscription->job;
    if (job == NULL) {
        free (subscription->filter);
    } else { /* the reader may still look at the filter */
        job->filter = subscription->filter;
        job->subscription = NULL;
        job->request = 0;
    }
    free (subscription);
}

/* ---- Credit -------------------------------------------------------------------------------------------------- */

void stream_acknowledge (engine_t *self, subscription_t *subscription, uint64_t upto)
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

static void remember_sent (subscription_t *subscription, uint64_t upto, size_t bytes)
{
    subscription->sent = memory_grow (subscription->sent, &subscription->sent_capacity,
                                      subscription->sent_count, sizeof (*subscription->sent));
    subscription->sent[subscription->sent_count++] = (sent_t){upto, (uint32_t) bytes};
    subscription->unacked_bytes += bytes;
}

/* ---- Cutting events ------------------------------------------------------------------------------------------ */

/* What one message shall carry. */
typedef struct cut {
    const filter_copy_t *filter;
    uint64_t after_seq;
    uint64_t durable_seq;
    size_t budget; /* bytes */
    bool alone;    /* the first event may be larger than the budget */
    bytes_t list;  /* packed elements so far */
    buf_t *whole;  /* … or a block as it is */
    uint32_t count;
    uint64_t upto; /* everything up to it was considered */
    bool full;     /* the budget ended it */
} cut_t;

/* Walks one block from the cursor on. */
static void cut_block (cut_t *cut, uint64_t first_seq, uint32_t count, buf_t *list)
{
    const uint8_t *at = buf_bytes (list);
    const uint8_t *end = at + buf_length (list);
    uint64_t last = first_seq + count - 1;
    bool whole = cut->filter->everything && cut->count == 0 && cut->upto + 1 == first_seq &&
                 buf_length (list) <= cut->budget &&
                 (buf_length (list) >= WHOLE_BLOCK_BYTES || last >= cut->durable_seq);
    if (whole) {
        cut->whole = buf_keep (list);
        cut->count = count;
        cut->upto = last;
        cut->full = true;
        return;
    }
    scanned_t event;
    while (!cut->full && scan_event (&at, end, &event)) {
        if (event.seq <= cut->upto)
            continue;
        bool taken = filter_takes_event (cut->filter, &event);
        bool fits = cut->list.length + event.element_bytes <= cut->budget ||
                    (cut->alone && cut->count == 0);
        if (taken && !fits) {
            cut->full = true;
            return;
        }
        if (taken) {
            bytes_append (&cut->list, event.element, event.element_bytes);
            cut->count++;
        }
        cut->upto = event.seq;
    }
}

static ring_block_t *ring_first (const space_t *space)
{
    node_t *node = list_first (&space->blocks);
    return node == NULL ? NULL : LIST_ITEM (node, ring_block_t, in_space);
}

/* The block that the cursor goes on in: most subscribers are at the end of the ring. */
static ring_block_t *ring_find (const space_t *space, uint64_t seq)
{
    for (node_t *node = space->blocks.prev; node != &space->blocks; node = node->prev) {
        ring_block_t *block = LIST_ITEM (node, ring_block_t, in_space);
        if (block->first_seq <= seq)
            return block_last (block) >= seq ? block : NULL;
    }
    return NULL;
}

static void cut_ring (const space_t *space, ring_block_t *block, cut_t *cut)
{
    for (node_t *node = &block->in_space; node != &space->blocks && !cut->full; node = node->next) {
        block = LIST_ITEM (node, ring_block_t, in_space);
        if (block->first_seq > cut->durable_seq)
            break;
        cut_block (cut, block->first_seq, block->count, block->list);
    }
}

static void cut_page (const subscription_t *subscription, cut_t *cut)
{
    for (size_t i = 0; i < subscription->page_count && !cut->full; i++) {
        const event_block_t *block = &subscription->page[i];
        if (block->first_seq + block->count - 1 > cut->upto)
            cut_block (cut, block->first_seq, block->count, block->list);
    }
}

/* Subscribers with the same filter and cursor get the same bytes: cut once. */
static slice_t *slice_find (space_t *space, const cut_t *cut)
{
    for (size_t i = 0; i < SLICES; i++) {
        slice_t *slice = &space->slices[i];
        if (slice->upto != 0 && slice->after_seq == cut->after_seq &&
            slice->durable_seq == cut->durable_seq &&
            memcmp (slice->digest, cut->filter->digest, sizeof (slice->digest)) == 0)
            return slice;
    }
    return NULL;
}

static void slice_keep (space_t *space, const cut_t *cut, buf_t *list)
{
    slice_t *slice = &space->slices[space->slice_next++ % SLICES];
    buf_drop (slice->list);
    *slice = (slice_t){.after_seq = cut->after_seq,
                       .upto = cut->upto,
                       .durable_seq = cut->durable_seq,
                       .count = cut->count,
                       .list = buf_keep (list)};
    memcpy (slice->digest, cut->filter->digest, sizeof (slice->digest));
}

/* The list of a finished cut; NULL when nothing matched. */
static buf_t *cut_list (cut_t *cut)
{
    if (cut->whole != NULL)
        return cut->whole;
    if (cut->count == 0)
        return NULL;
    assert (!cut->list.failed);
    return buf_new (cut->list.data, cut->list.length);
}

static buf_t *cut_from_ring (subscription_t *subscription, ring_block_t *block, cut_t *cut)
{
    space_t *space = subscription->space;
    const slice_t *slice = slice_find (space, cut);
    if (slice != NULL && buf_length (slice->list) <= cut->budget) {
        cut->count = slice->count;
        cut->upto = slice->upto;
        return buf_keep (slice->list);
    }
    cut_ring (space, block, cut);
    buf_t *list = cut_list (cut);
    if (cut->upto > cut->after_seq) /* a full window cuts nothing, which says nothing to others */
        slice_keep (space, cut, list);
    return list;
}

/* ---- Replay ------------------------------------------------------------------------------------------------------ */

static void set_gap (subscription_t *subscription, uint64_t to)
{
    subscription->gap = true;
    subscription->gap_from = subscription->cursor + 1;
    subscription->gap_to = to;
    subscription->cursor = to;
}

static void ask_for_page (engine_t *self, subscription_t *subscription)
{
    job_t *job = job_new (self, subscription->link, READ_EVENTS, self->durable);
    job->read.after_seq = subscription->cursor;
    job->read.limit = PAGE_BYTES;
    job->subscription = subscription;
    subscription->job = job;
}

static void ask_for_snapshot (engine_t *self, subscription_t *subscription)
{
    job_t *job = job_new (self, subscription->link, READ_LIST, subscription->start_batch);
    job->read.filter = subscription->filter->filter;
    job->read.filter.ns = job->ns;
    job->read.before_number = subscription->snapshot_before;
    job->read.limit = SNAPSHOT_RECORDS;
    job->subscription = subscription;
    subscription->job = job;
}

static void take_snapshot (subscription_t *subscription, read_t *read)
{
    subscription->snapshot_read = true;
    subscription->snapshot = read->records;
    subscription->snapshot_count = read->records_count;
    subscription->snapshot_more = read->more;
    read->records = NULL;
    read->records_count = 0;
    if (subscription->snapshot_count > 0)
        subscription->snapshot_before =
            subscription->snapshot[subscription->snapshot_count - 1]->number;
    else
        subscription->snapshot_more = false;
}

/* The page begins at the cursor, or behind events that are no longer kept. */
static void take_page (engine_t *self, subscription_t *subscription, read_t *read)
{
    uint64_t first = 0;
    if (read->blocks_count > 0)
        first = read->blocks[0].first_seq;
    const ring_block_t *ring = ring_first (subscription->space);
    if (first == 0)
        first = ring != NULL ? ring->first_seq : subscription->space->durable_seq + 1;
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

void stream_read_done (engine_t *self, job_t *job)
{
    subscription_t *subscription = job->subscription;
    subscription->job = NULL;
    if (job->read.kind == READ_SINCE) {
        subscription_started (self, job);
        return;
    }
    if (job->read.error != 0) /* asked again when the subscription is woken next */
        return;
    if (job->read.kind == READ_LIST)
        take_snapshot (subscription, &job->read);
    else if (job->read.after_seq == subscription->cursor)
        take_page (self, subscription, &job->read);
    stream_wake (self, subscription);
}

/* ---- Messages --------------------------------------------------------------------------------------------------- */

static void pack_gap (engine_t *self, subscription_t *subscription)
{
    Taskmq__Gap gap = TASKMQ__GAP__INIT;
    gap.subscription = subscription->id;
    gap.generation = self->generation;
    gap.from = subscription->gap_from;
    gap.to = subscription->gap_to;
    bytes_append_message (&self->envelope, SEND_GAP, &gap.base);
    self->counts.gaps++;
    subscription->gap = false;
    subscription->last = SENT_GAP;
    subscription->acked = subscription->sent_upto = subscription->cursor = gap.to;
}

static void pack_snapshot (engine_t *self, subscription_t *subscription)
{
    bytes_t *out = &self->envelope;
    bytes_mark_t mark = bytes_open (out, SEND_SNAPSHOT);
    bytes_append_uint (out, 1, subscription->id);
    subscription->snapshot_mark = subscription->snapshot_next;
    while (subscription->snapshot_next < subscription->snapshot_count) {
        const record_t *record = subscription->snapshot[subscription->snapshot_next];
        size_t before = out->length;
        if (filter_takes_record (subscription->filter, record) && !record_is_expired (self, record))
            pack_task (out, 2, record, record_phase (record, self->wall), 0);
        if (out->length > ENVELOPE_FILL_BYTES && before > 64) {
            out->length = before;
            break;
        }
        subscription->snapshot_next++;
    }
    bool last =
        subscription->snapshot_next == subscription->snapshot_count && !subscription->snapshot_more;
    bytes_append_uint (out, 3, last);
    bytes_close (out, mark);
    subscription->snapshot_told = last;
    subscription->last = SENT_SNAPSHOT;
}

static void pack_events (engine_t *self, subscription_t *subscription, uint32_t count, bool replay)
{
    Taskmq__EventBatch batch = TASKMQ__EVENT_BATCH__INIT;
    batch.subscription = subscription->id;
    batch.upto = subscription->cursor;
    batch.generation = self->generation;
    batch.count = count;
    batch.replay = replay;
    bytes_append_message (&self->envelope, SEND_EVENTS, &batch.base);
    subscription->last = SENT_EVENTS;
    subscription->sent_upto = subscription->cursor;
    subscription->told_live = !replay;
    subscription->upto_due = false;
    alarm_disarm (&subscription->alarm);
}

/* The snapshot's next message; false when a page has to be read first. */
static bool next_snapshot (engine_t *self, subscription_t *subscription)
{
    bool rest = subscription->snapshot_read &&
                (subscription->snapshot_next < subscription->snapshot_count ||
                 !subscription->snapshot_more);
    if (rest) {
        pack_snapshot (self, subscription);
        return true;
    }
    drop_snapshot (subscription);
    if (subscription->job == NULL)
        ask_for_snapshot (self, subscription);
    return false;
}

/* Cuts what the window allows. Returns whether anything was considered; *list is what matched. */
static bool next_cut (engine_t *self, subscription_t *subscription, buf_t **list, uint32_t *count)
{
    size_t window = TMQ_SUBSCRIPTION_WINDOW_BYTES;
    cut_t cut = {.filter = subscription->filter,
                 .after_seq = subscription->cursor,
                 .durable_seq = subscription->space->durable_seq,
                 .budget =
                     window -
                     (subscription->unacked_bytes < window ? subscription->unacked_bytes : window),
                 .alone = subscription->unacked_bytes == 0,
                 .upto = subscription->cursor};
    ring_block_t *block = ring_find (subscription->space, subscription->cursor + 1);
    if (block != NULL) {
        drop_page (self, subscription);
        *list = cut_from_ring (subscription, block, &cut);
    } else {
        cut_page (subscription, &cut);
        *list = cut_list (&cut);
    }
    bytes_free (&cut.list);
    *count = cut.count;
    subscription->cursor = cut.upto;
    return cut.upto > cut.after_seq;
}

static void wait_for_upto (engine_t *self, subscription_t *subscription)
{
    if (!alarm_is_armed (&subscription->alarm) && !subscription->upto_due)
        wheel_arm (&self->fine, &subscription->alarm, self->mono + TMQ_UPTO_INTERVAL_MS);
}

/* At the end of what is durable: the first time is told at once, a mere advance from time to time. */
static bool next_empty (engine_t *self, subscription_t *subscription)
{
    bool moved = subscription->cursor > subscription->sent_upto;
    if (!subscription->told_live || (moved && subscription->upto_due)) {
        pack_events (self, subscription, 0, false);
        return true;
    }
    if (moved)
        wait_for_upto (self, subscription);
    return false;
}

static bool next_events (engine_t *self, subscription_t *subscription, buf_t **body)
{
    uint64_t durable_seq = subscription->space->durable_seq;
    while (subscription->cursor < durable_seq) {
        uint32_t count = 0;
        if (!next_cut (self, subscription, body, &count)) {
            if (subscription->unacked_bytes > 0 &&
                (subscription->page != NULL ||
                 ring_find (subscription->space, subscription->cursor + 1) != NULL)) {
                if (self->pages_held > PAGES_HELD_MAX)
                    drop_page (self, subscription);
                return false; /* the window is full: credit wakes it */
            }
            drop_page (self, subscription);
            if (subscription->job == NULL)
                ask_for_page (self, subscription);
            return false;
        }
        if (count == 0)
            continue;
        remember_sent (subscription, subscription->cursor, buf_length (*body));
        pack_events (self, subscription, count,
                     !subscription->told_live && subscription->cursor < durable_seq);
        if (self->config.planted_bug == ENGINE_BUG_CURSOR_OFF_BY_ONE)
            subscription->cursor++;
        return true;
    }
    return next_empty (self, subscription);
}

bool stream_next (engine_t *self, subscription_t *subscription, buf_t **body)
{
    if (subscription->phase == STREAM_STARTING) {
        if (subscription->start_batch > self->durable)
            return false;
        subscription->phase = STREAM_RUNNING;
    }
    if (subscription->gap) {
        pack_gap (self, subscription);
        return true;
    }
    if (subscription->snapshot_wanted && !subscription->snapshot_told)
        return next_snapshot (self, subscription);
    drop_snapshot (subscription);
    return next_events (self, subscription, body);
}

/* The transport did not take the last message: back to where the client surely is (A40). */
void stream_failed (engine_t *self, subscription_t *subscription)
{
    switch (subscription->last) {
    case SENT_GAP: subscription->gap = true; break;
    case SENT_SNAPSHOT:
        subscription->snapshot_next = subscription->snapshot_mark;
        subscription->snapshot_told = false;
        break;
    case SENT_EVENTS:
        drop_page (self, subscription);
        subscription->cursor = subscription->sent_upto = subscription->acked;
        subscription->sent_count = 0;
        subscription->unacked_bytes = 0;
        subscription->told_live = false;
        break;
    case SENT_NOTHING: break;
    }
}

void stream_alarm (engine_t *self, subscription_t *subscription)
{
    subscription->upto_due = true;
    stream_wake (self, subscription);
}

/* ---- Notices ------------------------------------------------------------------------------------------------------ */

static void send_notice (engine_t *self, subscription_t *subscription, const record_t *record)
{
    link_t *link = subscription->link;
    if (link->notices >= NOTICES_MAX || link->stalled)
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
    notice.at = (uint64_t) self->wall;
    notice.progress = &progress;
    bytes_clear (&self->scratch);
    bytes_append_message (&self->scratch, 4, &notice.base);
    release_item (self, link, ITEM_NOTICE, 0, &self->scratch, NULL);
    link->notices++;
    self->counts.notices++;
}

void stream_notices (engine_t *self)
{
    for (size_t i = 0; i < self->noticed_count; i++) {
        task_t *task = self->noticed[i];
        space_t *space = task->queue->space;
        task->notice = false;
        if (list_is_empty (&space->subscriptions))
            continue;
        record_t record;
        task_texts_t texts;
        task_view (task, &record, &texts);
        for (node_t *node = space->subscriptions.next; node != &space->subscriptions;
             node = node->next) {
            subscription_t *subscription = LIST_ITEM (node, subscription_t, of_space);
            if (subscription->told_live && filter_takes_record (subscription->filter, &record))
                send_notice (self, subscription, &record);
        }
    }
    self->noticed_count = 0;
}
