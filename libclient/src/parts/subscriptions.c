/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Subscriptions: a cursor that moves, and a bounded buffer between the broker and the application.
 *
 * `received` is the cursor behind everything that is in the buffer or was taken; it is what a new
 * link subscribes from, so that nothing is missed and nothing comes twice. `taken` is the cursor
 * behind what the application has taken; it is what the application may store. Credit is given for
 * what was received while the buffer has room: then a slow application stops the broker at one
 * window, and is caught up later, or told of a gap.
 *
 * Failure: an item that cannot be kept for lack of memory ends the link; the next link asks for it
 * again, because the cursor has not moved. */
#include "parts/subscriptions.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/errors.h"
#include "codec.h"
#include "codec/encode.h"
#include "codec/records.h"
#include "ids.h"

enum {
    BUFFER_BYTES_MIN = 16 * 1024,
    CREDIT_BYTES = 8 * 1024, /* received before credit is given: a quarter of the window */
    NOTICES_MAX = 64         /* buffered notices; older ones give way */
};

typedef enum subscription_stage {
    SUBSCRIPTION_IDLE = 0, /* no link */
    SUBSCRIPTION_ASKED,
    SUBSCRIPTION_ON,
    SUBSCRIPTION_ENDED
} subscription_stage_t;

typedef struct stream_item {
    struct stream_item *next;
    tmq_event_t *event;
    size_t bytes;
} stream_item_t;

/* What a snapshot said of a task that changed after the start cursor. */
typedef struct seen_seq {
    core_idnode_t node; /* first */
    uint64_t seq;
} seen_seq_t;

typedef struct cursor {
    uint64_t generation;
    uint64_t seq;
} cursor_t;

struct core_subscription {
    core_part_t part; /* first */
    core_subscriptions_t *all;
    core_subscription_t *next_credit; /* among those that owe credit */
    uint64_t number;                  /* on this link */
    bytes_t filter;                   /* packed, with tag */
    char *owner;                      /* that it is for; NULL: ourselves */
    char *text;                       /* when ENDED */
    uint64_t since_time;
    cursor_t received;
    uint64_t told; /* newest event that came, itself or in a gap; of the same generation */
    cursor_t taken;
    cursor_t start; /* of the snapshot */
    stream_item_t *first;
    stream_item_t *last;
    size_t buffered_bytes;
    size_t buffer_bytes_max;
    size_t notices;
    size_t uncredited_bytes;    /* received since the last credit */
    uint32_t snapshot_messages; /* received on this link */
    uint64_t credit_number;     /* request number of the last credit */
    core_idmap_t seen;
    uint64_t seen_max;
    subscription_stage_t stage;
    int code; /* when ENDED */
    bool credit_due;
    bool withheld;   /* credit waits for room in the buffer */
    bool asked_once; /* `received` is meant, not how the options say it */
    bool from_now;
    bool snapshot; /* wanted, and not yet complete */
    bool logs;     /* notices of them are wanted */
    bool live_told;
};

/* The buffer. */

static void wake (core_subscription_t *self)
{
    core_parts_wake (&self->all->parts, &self->part);
}

static bool buffer_push (core_subscription_t *self, tmq_event_t *event)
{
    stream_item_t *item = event != NULL ? calloc (1, sizeof *item) : NULL;
    if (item == NULL) {
        tmq_event_free (event);
        return false;
    }
    item->event = event;
    item->bytes = sizeof *item + core_event_bytes (event);
    if (self->last != NULL)
        self->last->next = item;
    else
        self->first = item;
    self->last = item;
    self->buffered_bytes += item->bytes;
    wake (self);
    return true;
}

/* Takes the item behind `before` (NULL: the first) out of the buffer. */
static tmq_event_t *buffer_take (core_subscription_t *self, stream_item_t *before)
{
    stream_item_t *item = before != NULL ? before->next : self->first;
    if (before != NULL)
        before->next = item->next;
    else
        self->first = item->next;
    if (self->last == item)
        self->last = before;
    self->buffered_bytes -= item->bytes;
    tmq_event_t *event = item->event;
    self->notices -= event->item == TMQ_ITEM_NOTICE ? 1 : 0;
    free (item);
    return event;
}

static void buffer_clear (core_subscription_t *self)
{
    while (self->first != NULL)
        tmq_event_free (buffer_take (self, NULL));
}

static void seen_clear (core_subscription_t *self)
{
    for (size_t i = 0; i < self->seen.capacity; i++)
        while (self->seen.buckets[i] != NULL) {
            core_idnode_t *node = self->seen.buckets[i];
            core_idmap_remove (&self->seen, node);
            free (node);
        }
    core_idmap_free (&self->seen);
    self->seen_max = 0;
}

/* Subscribing. */

static void subscribe (core_subscription_t *self)
{
    core_subscriptions_t *all = self->all;
    core_request_t *request = core_internal_new (all->requests, CORE_OP_SUBSCRIBE);
    self->number = core_slots_add (&all->numbers, self);
    bool named = request != NULL &&
                 (self->owner == NULL || core_request_for (request, self->owner, NULL) == TMQ_OK);
    if (!named || self->number == 0) {
        core_request_free (request);
        core_link_drop (all->requests->link, TMQ_NO_MEMORY, NULL);
        return;
    }
    bool anew = self->snapshot && self->asked_once; /* the rest of a snapshot cannot be asked for */
    cursor_t from = anew ? self->start : self->received;
    bytes_t *out = &request->fields;
    bytes_mark_t mark = core_request_begin (request);
    bytes_append_uint (out, 1, self->number);
    bytes_append (out, self->filter.data, self->filter.length);
    if (self->asked_once || (!self->from_now && self->since_time == 0)) {
        bytes_append_uint (out, 3, from.generation);
        bytes_append_uint (out, 4, from.seq);
    } else {
        bytes_append_uint (out, 5, self->from_now);
        bytes_append_uint (out, 7, self->since_time);
    }
    bytes_append_uint (out, 6, self->snapshot);
    bytes_append_uint (out, 8, self->logs);
    bytes_close (out, mark);
    request->subscription = self->number;
    self->stage = SUBSCRIPTION_ASKED;
    self->uncredited_bytes = 0;
    self->snapshot_messages = 0;
    self->withheld = false;
    core_internal_send (all->requests, request);
}

static void unnumber (core_subscription_t *self)
{
    core_slots_remove (&self->all->numbers, self->number);
    self->number = 0;
    if (self->stage != SUBSCRIPTION_ENDED)
        self->stage = SUBSCRIPTION_IDLE;
}

void core_subscriptions_link (core_subscriptions_t *all)
{
    CORE_PARTS_EACH (core_subscription_t, self, &all->parts)
    if (self->stage == SUBSCRIPTION_IDLE && core_link_is_up (all->link))
        subscribe (self);
}

void core_subscriptions_unlink (core_subscriptions_t *all)
{
    CORE_PARTS_EACH (core_subscription_t, self, &all->parts)
    unnumber (self);
}

static void end (core_subscription_t *self, int code, const char *text)
{
    if (self->stage == SUBSCRIPTION_ENDED)
        return;
    unnumber (self);
    self->stage = SUBSCRIPTION_ENDED;
    self->code = code;
    self->text = text != NULL && text[0] != '\0' ? strdup (text) : NULL;
    wake (self);
}

void core_subscriptions_end (core_subscriptions_t *all, int code, const char *text)
{
    CORE_PARTS_EACH (core_subscription_t, self, &all->parts)
    end (self, code, text);
}

void core_subscriptions_reply (core_subscriptions_t *all, const core_request_t *request,
                               const Taskmq__Reply *reply)
{
    core_subscription_t *self = core_slots_get (&all->numbers, request->subscription);
    if (self == NULL || self->stage != SUBSCRIPTION_ASKED)
        return;
    if (reply->code != TMQ_OK) {
        end (self, (int) reply->code, reply->text);
        return;
    }
    if (reply->body_case != TASKMQ__REPLY__BODY_SUBSCRIBED) {
        core_link_drop (all->requests->link, TMQ_PROTOCOL, NULL);
        return;
    }
    const cursor_t start = {reply->subscribed->generation, reply->subscribed->seq};
    self->stage = SUBSCRIPTION_ON;
    if (self->snapshot) {
        /* What was buffered is part of the snapshot that comes; what was taken of an earlier one
         * may come again. */
        buffer_clear (self);
        seen_clear (self);
        self->start = start;
        self->received = start;
        self->told = 0;
        self->taken = start;
    } else if (!self->asked_once) {
        self->received = start;
        self->told = 0;
        self->taken = start;
    }
    self->asked_once = true;
    wake (self);
}

/* What comes. */

static core_subscription_t *subscription_on (const core_subscriptions_t *all, uint64_t number)
{
    core_subscription_t *self = core_slots_get (&all->numbers, number);
    return self != NULL && self->stage == SUBSCRIPTION_ON ? self : NULL;
}

static void credit (core_subscription_t *self)
{
    if (self->credit_due || self->stage != SUBSCRIPTION_ON)
        return;
    self->credit_due = true;
    self->next_credit = self->all->credit;
    self->all->credit = self;
}

static void received (core_subscription_t *self, size_t bytes)
{
    self->uncredited_bytes += bytes;
    if (self->buffered_bytes >= self->buffer_bytes_max)
        self->withheld = true;
    else if (self->uncredited_bytes >= CREDIT_BYTES)
        credit (self);
}

void core_subscriptions_output (core_subscriptions_t *all)
{
    while (all->credit != NULL && core_link_is_up (all->link)) {
        core_subscription_t *self = all->credit;
        core_request_t *request = NULL;
        all->credit = self->next_credit;
        self->credit_due = false;
        if (self->stage != SUBSCRIPTION_ON)
            continue;
        request = core_internal_new (all->requests, CORE_OP_CREDIT);
        if (request != NULL) {
            bytes_mark_t mark = core_request_begin (request);
            bytes_append_uint (&request->fields, 1, self->number);
            bytes_append_uint (&request->fields, 2, self->received.seq);
            bytes_append_uint (&request->fields, 3, self->snapshot_messages);
            bytes_close (&request->fields, mark);
            self->uncredited_bytes = 0;
        }
        self->credit_number = core_internal_send (all->requests, request);
    }
}

void core_subscriptions_refused (core_subscriptions_t *all, uint64_t number)
{
    CORE_PARTS_EACH (core_subscription_t, self, &all->parts)
    if (self->credit_number == number && self->stage == SUBSCRIPTION_ON) {
        unnumber (self);
        subscribe (self);
    }
}

/* Everything up to the cursor has come. */
static void receive (core_subscription_t *self, cursor_t cursor)
{
    self->received = cursor;
    self->told = cursor.seq;
}

/* True if the snapshot already contained this event. */
static bool is_contained (const core_subscription_t *self, const Taskmq__Event *event)
{
    tmq_id_t id;
    if (event->seq > self->seen_max ||
        !id_from_bytes (&id, event->task_id.data, event->task_id.len))
        return false;
    const seen_seq_t *seen = (const seen_seq_t *) core_idmap_get (&self->seen, &id);
    return seen != NULL && event->seq <= seen->seq;
}

/* The batch's own cursor holds for what comes behind it; within it events are in order. */
static bool take_events (core_subscription_t *self, const Taskmq__EventList *list,
                         uint64_t generation)
{
    for (size_t i = 0; i < list->n_events; i++) {
        const Taskmq__Event *event = list->events[i];
        if (event->seq <= self->received.seq)
            continue;
        if (!is_contained (self, event) &&
            !buffer_push (self, core_event_record (event, self->all->link->ns, generation)))
            return false;
        receive (self, (cursor_t){generation, event->seq});
    }
    return true;
}

static bool tell_live (core_subscription_t *self)
{
    if (self->live_told)
        return true;
    tmq_event_t *event = core_item_record (TMQ_ITEM_LIVE, self->all->link->ns);
    if (event != NULL) {
        event->generation = self->received.generation;
        core_cursor_format (event->cursor, self->received.generation, self->received.seq);
    }
    self->live_told = buffer_push (self, event);
    return self->live_told;
}

bool core_subscriptions_events (core_subscriptions_t *all, const Taskmq__EventBatch *batch,
                                const void *packed)
{
    core_subscription_t *self = subscription_on (all, batch->subscription);
    if (self == NULL)
        return true;
    bool good = true;
    if (batch->generation != self->received.generation)
        receive (self, (cursor_t){batch->generation, 0});
    if (batch->count > 0) {
        codec_report_t report;
        arena_reset (all->arena);
        const Taskmq__EventList *list =
            codec_event_list (&report, all->arena, packed, batch->list_bytes);
        if (list == NULL || list->n_events != batch->count)
            return false;
        good = take_events (self, list, batch->generation);
    }
    if (good && batch->upto > self->received.seq)
        receive (self, (cursor_t){batch->generation, batch->upto});
    if (good && !batch->replay)
        good = tell_live (self);
    if (self->seen_max != 0 && self->received.seq >= self->seen_max)
        seen_clear (self);
    if (self->first == NULL)
        self->taken = self->received;
    received (self, batch->list_bytes);
    if (!good)
        core_link_drop (all->requests->link, TMQ_NO_MEMORY, NULL);
    return true;
}

/* Only what changed behind the start cursor can come again as an event. */
static bool remember (core_subscription_t *self, const Taskmq__Task *task)
{
    if (task->seq <= self->start.seq)
        return true;
    seen_seq_t *seen = calloc (1, sizeof *seen);
    if (seen == NULL)
        return false;
    id_from_bytes (&seen->node.id, task->task_id.data, task->task_id.len);
    seen->seq = task->seq;
    if (!core_idmap_add (&self->seen, &seen->node)) {
        free (seen);
        return false;
    }
    if (task->seq > self->seen_max)
        self->seen_max = task->seq;
    return true;
}

static bool take_task (core_subscription_t *self, const Taskmq__Task *task)
{
    tmq_event_t *event = core_item_record (TMQ_ITEM_SNAPSHOT, self->all->link->ns);
    if (event == NULL || !remember (self, task)) {
        tmq_event_free (event);
        return false;
    }
    tmq_task_t *record = core_task_record (task, NULL);
    if (record == NULL) {
        tmq_event_free (event);
        return false;
    }
    event->task = record;
    event->task_id = record->id;
    event->status = record->status;
    event->seq = record->seq;
    event->generation = self->start.generation;
    core_cursor_format (event->cursor, self->start.generation, self->start.seq);
    return buffer_push (self, event);
}

bool core_subscriptions_snapshot (core_subscriptions_t *all, const Taskmq__Snapshot *snapshot)
{
    core_subscription_t *self = subscription_on (all, snapshot->subscription);
    if (self == NULL || !self->snapshot)
        return true;
    bool good = true;
    for (size_t i = 0; i < snapshot->n_tasks && good; i++)
        good = take_task (self, snapshot->tasks[i]);
    if (good && snapshot->last) {
        tmq_event_t *event = core_item_record (TMQ_ITEM_SNAPSHOT_END, all->link->ns);
        if (event != NULL) {
            event->generation = self->start.generation;
            core_cursor_format (event->cursor, self->start.generation, self->start.seq);
        }
        good = buffer_push (self, event);
        self->snapshot = !good;
    }
    self->snapshot_messages++;
    received (self, CREDIT_BYTES); /* each message is credited by itself */
    if (!good)
        core_link_drop (all->requests->link, TMQ_NO_MEMORY, NULL);
    return true;
}

bool core_subscriptions_gap (core_subscriptions_t *all, const Taskmq__Gap *gap)
{
    core_subscription_t *self = subscription_on (all, gap->subscription);
    bool same = self != NULL && gap->generation == self->received.generation;
    /* The broker may fall back to the cursor that was acknowledged: what we have is no gap. */
    if (self == NULL || (same && gap->to <= self->told))
        return true;
    if (self->snapshot) /* that is behind it: what the snapshot has may come again from here on */
        self->start = (cursor_t){gap->generation, gap->to};
    tmq_event_t *event = core_item_record (TMQ_ITEM_GAP, all->link->ns);
    if (event != NULL) {
        event->generation = gap->generation;
        event->gap_from = same && gap->from <= self->told ? self->told + 1 : gap->from;
        event->gap_to = gap->to;
        core_cursor_format (event->cursor, gap->generation, gap->to);
    }
    if (buffer_push (self, event))
        receive (self, (cursor_t){gap->generation, gap->to});
    else
        core_link_drop (all->requests->link, TMQ_NO_MEMORY, NULL);
    return true;
}

/* The latest notice of a task replaces an earlier one that was not taken yet. */
static void notice_replace (core_subscription_t *self, const tmq_id_t *id)
{
    stream_item_t *before = NULL;
    stream_item_t *oldest_before = NULL;
    bool any = false;
    for (stream_item_t *item = self->first; item != NULL; before = item, item = item->next) {
        if (item->event->item != TMQ_ITEM_NOTICE)
            continue;
        if (id_equal (&item->event->task_id, id)) {
            tmq_event_free (buffer_take (self, before));
            return;
        }
        if (!any)
            oldest_before = before;
        any = true;
    }
    if (any && self->notices >= NOTICES_MAX)
        tmq_event_free (buffer_take (self, oldest_before));
}

bool core_subscriptions_notice (core_subscriptions_t *all, const Taskmq__Notice *notice)
{
    core_subscription_t *self = subscription_on (all, notice->subscription);
    tmq_id_t id;
    if (self == NULL || self->buffered_bytes >= self->buffer_bytes_max ||
        !id_from_bytes (&id, notice->task_id.data, notice->task_id.len))
        return true;
    if (self->notices > 0)
        notice_replace (self, &id);
    tmq_event_t *event = core_notice_record (notice, all->link->ns);
    if (event == NULL)
        return true; /* best effort */
    event->generation = self->received.generation;
    core_cursor_format (event->cursor, self->received.generation, self->received.seq);
    if (buffer_push (self, event))
        self->notices++;
    return true;
}

/* The application's side. */

static bool cursor_parse (cursor_t *out, const char *text)
{
    char *end;
    if (text[0] < '0' || text[0] > '9')
        return false;
    errno = 0;
    uint64_t first = strtoull (text, &end, 10);
    *out = (cursor_t){0, first};
    if (*end == '-' && end[1] >= '0' && end[1] <= '9') {
        out->generation = first;
        out->seq = strtoull (end + 1, &end, 10);
    }
    return *end == '\0' && errno == 0;
}

static int subscription_init (core_subscription_t *self, const tmq_subscription_options_t *options,
                              tmq_error_t *error)
{
    const char *text = options->cursor;
    bool given = text != NULL && text[0] != '\0';
    int code = core_check_filter (&options->filter, true, error);
    if (code == TMQ_OK && options->subjects_count > TMQ_FILTER_VALUES_MAX)
        code = core_error (error, TMQ_TOO_LARGE, "subjects: at most %d are allowed",
                           TMQ_FILTER_VALUES_MAX);
    if (code == TMQ_OK)
        code =
            core_check_text (options->name_prefix, "name_prefix", TMQ_ENTRY_NAME_BYTES_MAX, error);
    if (code != TMQ_OK)
        return code;
    if (options->owner != NULL) {
        self->owner = strdup (options->owner);
        code = self->owner != NULL ? core_check_owner (options->owner, error)
                                   : core_error (error, TMQ_NO_MEMORY, NULL);
    }
    if (code != TMQ_OK)
        return code;
    if (given && !cursor_parse (&self->received, text))
        return core_error (error, TMQ_BAD_CURSOR, "cursor: GENERATION-SEQUENCE or SEQUENCE");
    core_encode_subscription_filter (&self->filter, 2, options);
    if (self->filter.failed)
        return core_error (error, TMQ_NO_MEMORY, NULL);
    self->taken = self->received;
    self->from_now = !given && options->since_time == 0;
    self->since_time = given ? 0 : options->since_time;
    self->snapshot = options->snapshot;
    self->logs = options->logs;
    self->buffer_bytes_max =
        options->buffer_bytes_max < BUFFER_BYTES_MIN ? BUFFER_BYTES_MIN : options->buffer_bytes_max;
    core_part_init (&self->part, TMQ_OP_SUBSCRIPTION_READY, options->notify, options->user);
    return TMQ_OK;
}

int core_subscriptions_add (core_subscription_t **out, core_subscriptions_t *all,
                            const tmq_subscription_options_t *options, void *owner,
                            tmq_error_t *error)
{
    if (all->link->stage == CORE_LINK_FINAL)
        return core_error (error, all->link->code, "%s", all->link->text);
    core_subscription_t *self = calloc (1, sizeof *self);
    if (self == NULL)
        return core_error (error, TMQ_NO_MEMORY, NULL);
    self->all = all;
    int code = subscription_init (self, options, error);
    if (code != TMQ_OK) {
        bytes_free (&self->filter);
        free (self->owner);
        free (self);
        return code;
    }
    core_parts_add (&all->parts, &self->part, owner);
    if (core_link_is_up (all->link))
        subscribe (self);
    *out = self;
    return TMQ_OK;
}

static void unsubscribe (core_subscription_t *self)
{
    core_request_t *request = core_internal_new (self->all->requests, CORE_OP_UNSUBSCRIBE);
    if (request != NULL) {
        bytes_mark_t mark = core_request_begin (request);
        bytes_append_uint (&request->fields, 1, self->number);
        bytes_close (&request->fields, mark);
    }
    core_internal_send (self->all->requests, request);
}

void core_subscription_free (core_subscription_t *self)
{
    core_subscriptions_t *all = self->all;
    if (self->number != 0 && core_link_is_up (all->link))
        unsubscribe (self);
    unnumber (self);
    core_subscription_t **at = &all->credit;
    while (*at != NULL && *at != self)
        at = &(*at)->next_credit;
    if (*at != NULL)
        *at = self->next_credit;
    core_parts_remove (&all->parts, &self->part);
    buffer_clear (self);
    seen_clear (self);
    bytes_free (&self->filter);
    free (self->owner);
    free (self->text);
    free (self);
}

bool core_subscriptions_init (core_subscriptions_t *all, core_requests_t *requests)
{
    all->requests = requests;
    all->link = requests->link;
    all->parts.answers = &requests->answers;
    all->arena = arena_new (CODEC_BROKER_ARENA_BYTES);
    return all->arena != NULL;
}

bool core_subscriptions_waiting (const core_subscriptions_t *all)
{
    return all->credit != NULL;
}

void core_subscriptions_free (core_subscriptions_t *all)
{
    core_part_t *next;
    for (core_part_t *part = all->parts.first; part != NULL; part = next) {
        next = part->next;
        core_subscription_free ((core_subscription_t *) part);
    }
    core_slots_free (&all->numbers);
    arena_free (all->arena);
}

static int end_error (const core_subscription_t *self, tmq_error_t *error)
{
    if (self->text == NULL)
        return core_error (error, self->code, NULL);
    return core_error (error, self->code, "%s", self->text);
}

int core_subscription_state (const core_subscription_t *self, tmq_error_t *error)
{
    if (self->stage == SUBSCRIPTION_ENDED)
        return end_error (self, error);
    if (self->asked_once)
        return core_error (error, TMQ_OK, NULL);
    return core_error (error, TMQ_TIMEOUT, "%s",
                       self->all->link->code == TMQ_OK ? "the broker has not confirmed it yet"
                                                       : self->all->link->text);
}

static void taken (core_subscription_t *self, const tmq_event_t *event)
{
    if (event->item == TMQ_ITEM_EVENT)
        self->taken = (cursor_t){event->generation, event->seq};
    else if (event->item == TMQ_ITEM_GAP)
        self->taken = (cursor_t){event->generation, event->gap_to};
    if (self->first == NULL && !self->snapshot)
        self->taken = self->received;
    if (self->withheld && self->buffered_bytes <= self->buffer_bytes_max / 2) {
        self->withheld = false;
        credit (self);
    }
}

int core_subscription_next (tmq_event_t **out, core_subscription_t *self, tmq_error_t *error)
{
    if (self->first == NULL && self->stage == SUBSCRIPTION_ENDED)
        return end_error (self, error);
    if (self->first == NULL)
        return core_error (error, TMQ_TIMEOUT, NULL);
    *out = buffer_take (self, NULL);
    taken (self, *out);
    return core_error (error, TMQ_OK, NULL);
}

int core_subscription_cursor (char out[48], const core_subscription_t *self)
{
    if (!self->asked_once)
        return TMQ_TIMEOUT;
    core_cursor_format (out, self->taken.generation, self->taken.seq);
    return TMQ_OK;
}

core_answer_t *core_subscription_answer (core_subscription_t *self)
{
    return &self->part.ready;
}
