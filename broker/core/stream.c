/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* What each subscription is sent (A42).
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
    PAGE_BYTES = 64 * 1024, /* of a replay's read: two windows */
    PAGES_HELD_MAX = 64,    /* beyond it a page whose reader stalls is dropped and read again */
    SNAPSHOT_RECORDS = 200, /* of one read */
    SNAPSHOT_AHEAD = 2,     /* messages of a snapshot that leave without credit */
    UPTO_SPREAD = 64,       /* an empty upto follows in 2.5 to 5 s, in so many steps */
    UPTO_SPREAD_MS = TMQ_UPTO_INTERVAL_MS / 2 / UPTO_SPREAD,
    SEND_EVENTS = 5, /* numbers of fields of BrokerMessage in taskmq.proto */
    SEND_SNAPSHOT = 6,
    SEND_GAP = 7
};

/* Waking, ending. */

/* A start that rested on a batch is true now. */
static void wake_started (engine_t *self)
{
    for (node_t *node = list_first (&self->starting); node != NULL;
         node = list_first (&self->starting)) {
        subscription_t *subscription = LIST_ITEM (node, subscription_t, starting);
        if (subscription->start_batch > self->durable)
            return;
        list_unlink (node);
        stream_wake (self, subscription);
    }
}

void stream_durable (engine_t *self)
{
    for (node_t *node = self->ring.prev; node != &self->ring; node = node->prev) {
        const ring_block_t *block = LIST_ITEM (node, ring_block_t, in_ring);
        if (block->batch <= self->streamed)
            break;
        if (block->batch > self->durable ||
            block->first_seq + block->count - 1 <= block->space->durable_seq)
            continue;
        uint64_t before = block->space->durable_seq;
        block->space->durable_seq = block->first_seq + block->count - 1;
        interest_advance (self, block->space, before);
    }
    self->streamed = self->durable;
    wake_started (self);
}

void stream_wake (engine_t *self, subscription_t *subscription)
{
    subscription->held = false;
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

static void drop_snapshot (engine_t *self, subscription_t *subscription)
{
    if (subscription->snapshot != NULL) {
        self->pages_held--;
        for (size_t i = 0; i < subscription->snapshot_count; i++)
            record_free (subscription->snapshot[i]);
        free (subscription->snapshot);
    }
    subscription->snapshot = NULL;
    subscription->snapshot_count = subscription->snapshot_next = 0;
    subscription->snapshot_read = false;
}

void stream_close (engine_t *self, subscription_t *subscription)
{
    list_remove (&subscription->left);
    list_remove (&subscription->starting);
    list_remove (&subscription->stream);
    list_remove (&subscription->of_link);
    map_remove (&subscription->link->subscriptions_by_id,
                subscription_hash (self, subscription->id), subscription);
    interest_remove (subscription);
    alarm_disarm (&subscription->alarm);
    self->subscriptions--;
    drop_page (self, subscription);
    drop_snapshot (self, subscription);
    free (subscription->sent);
    job_t *job = subscription->job;
    if (job == NULL) {
        free (subscription->filter);
    } else { /* the reader may still look at the filter */
        job->filter = subscription->filter;
        job->subscription = NULL;
    }
    free (subscription);
}

/* Credit. */

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

void stream_acknowledge_snapshot (engine_t *self, subscription_t *subscription, uint32_t messages)
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

/* Replay. */

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

static void take_snapshot (engine_t *self, subscription_t *subscription, read_t *read)
{
    subscription->snapshot_read = true;
    subscription->snapshot = read->records;
    subscription->snapshot_count = read->records_count;
    subscription->snapshot_more = read->more;
    read->records = NULL;
    read->records_count = 0;
    if (subscription->snapshot != NULL)
        self->pages_held++;
    if (subscription->snapshot != NULL && subscription->snapshot_count > 0)
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
    if (first == 0)
        first = ring_first_seq (subscription->space);
    if (first == 0)
        first = subscription->space->durable_seq + 1;
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
    if (job->read.error != 0) { /* asked again after a while */
        wheel_arm (&self->fine, &subscription->alarm, self->mono + TMQ_UPTO_INTERVAL_MS);
        return;
    }
    if (job->read.kind == READ_LIST)
        take_snapshot (self, subscription, &job->read);
    else if (job->read.after_seq == subscription->cursor)
        take_page (self, subscription, &job->read);
    stream_wake (self, subscription);
}

/* Messages. */

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
    subscription->snapshot_sent++;
    subscription->last = SENT_SNAPSHOT;
}

static void pack_events (engine_t *self, subscription_t *subscription, uint32_t count,
                         size_t list_bytes, bool replay)
{
    Taskmq__EventBatch batch = TASKMQ__EVENT_BATCH__INIT;
    batch.subscription = subscription->id;
    batch.upto = subscription->cursor;
    batch.generation = self->generation;
    batch.count = count;
    batch.replay = replay;
    batch.list_bytes = (uint32_t) list_bytes;
    bytes_append_message (&self->envelope, SEND_EVENTS, &batch.base);
    subscription->last = SENT_EVENTS;
    subscription->sent_upto = subscription->cursor;
    subscription->told_live = !replay;
    subscription->upto_due = false;
    alarm_disarm (&subscription->alarm);
}

/* The rest of the page is read again when it is wanted. What was looked up by id stays: it is
 * little, and there is no place to go on from. */
static void put_snapshot_back (engine_t *self, subscription_t *subscription)
{
    size_t next = subscription->snapshot_next;
    if (subscription->filter->ids_count > 0 || next == subscription->snapshot_count)
        return;
    subscription->snapshot_before =
        next > 0 ? subscription->snapshot[next - 1]->number : subscription->snapshot[0]->number + 1;
    subscription->snapshot_more = true;
    drop_snapshot (self, subscription);
}

/* The snapshot's next message; false when a page has to be read or credit to come first. */
static bool next_snapshot (engine_t *self, subscription_t *subscription)
{
    bool rest = subscription->snapshot_read &&
                (subscription->snapshot_next < subscription->snapshot_count ||
                 !subscription->snapshot_more);
    if (rest && subscription->snapshot_sent - subscription->snapshot_taken >= SNAPSHOT_AHEAD) {
        if (self->pages_held > PAGES_HELD_MAX)
            put_snapshot_back (self, subscription);
        subscription->held = true; /* credit wakes it */
        return false;
    }
    if (rest) {
        pack_snapshot (self, subscription);
        return true;
    }
    drop_snapshot (self, subscription);
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
                 .stop_seq = subscription->match_seq,
                 .hint = subscription->hint,
                 .upto = subscription->cursor};
    if (ring_holds (subscription->space, subscription->cursor + 1)) {
        drop_page (self, subscription);
        *list = cut_from_ring (subscription->space, &cut);
    } else {
        *list = cut_from_page (subscription->page, subscription->page_count, &cut);
    }
    *count = cut.count;
    self->looks += cut.upto - cut.after_seq;
    subscription->cursor =
        cut.upto >= subscription->match_seq ? subscription->space->durable_seq : cut.upto;
    return cut.upto > cut.after_seq;
}

/* Spread, so that thousands that moved at the same moment are not told at the same moment. */
void stream_wait_for_upto (engine_t *self, subscription_t *subscription)
{
    int64_t wait_ms =
        TMQ_UPTO_INTERVAL_MS - (int64_t) (subscription->id % UPTO_SPREAD) * UPTO_SPREAD_MS;
    if (!alarm_is_armed (&subscription->alarm) && !subscription->upto_due)
        wheel_arm (&self->fine, &subscription->alarm, self->mono + wait_ms);
}

/* At the end of what is durable: the first time is told at once, a mere advance from time
 * to time. */
static bool next_empty (engine_t *self, subscription_t *subscription)
{
    bool moved = subscription->cursor > subscription->sent_upto;
    if (!subscription->told_live || (moved && subscription->upto_due)) {
        pack_events (self, subscription, 0, 0, false);
        return true;
    }
    if (moved)
        stream_wait_for_upto (self, subscription);
    else if (subscription->interest != INTEREST_WIDE)
        interest_rest (subscription);
    return false;
}

/* The next event is here, in the ring or in the page: only the window can hold it back. */
static bool has_more_at_hand (const subscription_t *subscription)
{
    if (ring_holds (subscription->space, subscription->cursor + 1))
        return true;
    if (subscription->page == NULL)
        return false;
    const event_block_t *last = &subscription->page[subscription->page_count - 1];
    return last->first_seq + last->count - 1 > subscription->cursor;
}

static bool next_events (engine_t *self, subscription_t *subscription, buf_t **body)
{
    uint64_t durable_seq = subscription->space->durable_seq;
    if (subscription->cursor >= subscription->match_seq)
        subscription->cursor = durable_seq;
    while (subscription->cursor < durable_seq) {
        uint32_t count = 0;
        if (!next_cut (self, subscription, body, &count)) {
            if (subscription->unacked_bytes > 0 && has_more_at_hand (subscription)) {
                if (self->pages_held > PAGES_HELD_MAX)
                    drop_page (self, subscription);
                subscription->held = true; /* the window is full: credit wakes it */
                return false;
            }
            drop_page (self, subscription);
            if (subscription->job == NULL)
                ask_for_page (self, subscription);
            return false;
        }
        if (count == 0)
            continue;
        remember_sent (subscription, subscription->cursor, buf_length (*body));
        pack_events (self, subscription, count, buf_length (*body),
                     !subscription->told_live && subscription->cursor < durable_seq);
        if (self->config.planted_bug == ENGINE_BUG_CURSOR_OFF_BY_ONE)
            subscription->cursor++;
        return true;
    }
    if (subscription->interest != INTEREST_WIDE)
        subscription->match_seq = 0; /* at the end: interest.c knows what comes */
    return next_empty (self, subscription);
}

bool stream_is_shareable (const engine_t *self, const subscription_t *subscription)
{
    return subscription->start_batch <= self->durable && !subscription->gap &&
           (!subscription->snapshot_wanted || subscription->snapshot_told);
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
    drop_snapshot (self, subscription);
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
        subscription->snapshot_sent--;
        break;
    case SENT_EVENTS:
        drop_page (self, subscription);
        subscription->cursor = subscription->sent_upto = subscription->acked;
        subscription->match_seq = UINT64_MAX;
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

/* Notices. */

void stream_notice (engine_t *self, subscription_t *subscription, const record_t *record)
{
    link_t *link = subscription->link;
    if (!subscription->told_live || link->notices >= NOTICES_MAX || link->stalled ||
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
        if (list_is_empty (&space->wide) && space->topics.count == 0)
            continue;
        record_t record;
        task_texts_t texts;
        task_view (task, &record, &texts);
        interest_notice (self, space, &record);
    }
    self->noticed_count = 0;
}
