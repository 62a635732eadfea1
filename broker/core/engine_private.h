/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* The inside of the engine: what its files offer each other (their structs: engine_state.h). Only
 * files of broker/core include it.
 *
 *     engine.c     the table of requests, one message, one tick
 *     lookup.c     what a message needs of the store, and where a task is found
 *     absent.c     ids that need no look-up
 *     batch.c      the open batch, images, what durable and written mean for memory
 *     change.c     one transition with all that follows from it; events
 *     dispatch.c   ready tasks to waiting workers
 *     release.c    who waits for which batch; messages to peers
 *     link.c       hello, token, heartbeat, silence, grace
 *     submit.c worker.c outcome.c query.c list.c wait.c subscribe.c stats.c   requests by family
 *     ring.c       the newest events in memory, and cutting messages out of them
 *     stream.c     what a subscription is sent
 *     interest.c   which subscriptions an event concerns
 *     scan.c       packed events and filters
 *     restore.c    start, restart, removal
 *     pack.c       events, tasks and assignments in the wire's form
 */
#ifndef TASKMQ_CORE_ENGINE_PRIVATE_H
#define TASKMQ_CORE_ENGINE_PRIVATE_H

#include "core/engine_state.h"
#include "core/memory.h"
#include "core/planted.h"

/* One request while it is handled. */
typedef struct call {
    engine_t *engine;
    link_t *link;
    const char *identity; /* who net says the peer is */
    const Taskmq__Request *request;
    const verdict_t *items; /* of a submit, may be NULL */
    const uint8_t *body;    /* from the request's first body on */
    size_t body_bytes;
} call_t;

/* engine.c. */

void fifo_push (fifo_t *self, void *item);
void *fifo_pop (fifo_t *self); /* NULL when empty */
void *fifo_first (const fifo_t *self);
void *fifo_at (const fifo_t *self, size_t index);
void fifo_free (fifo_t *self);

/* The time by which expiry is judged: wall time without a leap that is still held. */
int64_t engine_expiry_ms (const engine_t *self);
space_t *space_find (const engine_t *self, const char *name);
space_t *space_make (engine_t *self, const char *name); /* found or made */
void space_release (engine_t *self, space_t *space);    /* frees it when nobody needs it */
queue_t *queue_make (engine_t *self, space_t *space, const char *name);
void queue_release (engine_t *self, queue_t *queue);
void engine_clear (engine_t *self); /* everything that a reset forgets */
void engine_clock (engine_t *self, now_t now);

/* lookup.c. */

/* Where a task is: in memory, in the answers of this drain's look-up, or gone and why. */
typedef struct found {
    task_t *task;
    const record_t *record;
    tmq_code_t gone; /* NOT_FOUND, EXPIRED, PURGED when neither of them is set */
} found_t;
found_t lookup_id (const engine_t *self, const space_t *space, const uint8_t *id);
found_t lookup_dedup (const engine_t *self, const space_t *space, const char *owner,
                      const char *key);
task_t *lookup_task (const engine_t *self, const space_t *space, const uint8_t *id);
uint32_t task_hash (const engine_t *self, const space_t *space, const uint8_t *id);
uint32_t dedup_hash (const engine_t *self, const space_t *space, const char *owner,
                     const char *key);
/* What is known of a former attempt: its row, in memory or in the tables; false: nothing. */
bool lookup_attempt (const engine_t *self, const space_t *space, const uint8_t *id, int64_t number,
                     uint32_t attempt, attempt_note_t *out);
bool record_is_expired (const engine_t *self, const record_t *record);
/* A payload that this drain's look-up brought, or NULL. Borrowed. */
buf_t *lookup_payload (const engine_t *self, const space_t *space, const uint8_t *id);
void lookup_clear (engine_t *self);

/* batch.c. */

bool batch_is_empty (const engine_t *self);
/* The batch that what is computed now must wait for (A7). */
uint64_t batch_to_wait_for (const engine_t *self);
/* The task has changed: its image goes with the open batch. */
void batch_touch (engine_t *self, task_t *task);
/* … but that may wait up to LAZY_MS. */
void batch_touch_lazily (engine_t *self, task_t *task);
void batch_add_attempt (engine_t *self, const task_t *task, tmq_event_kind_t how,
                        int32_t error_code, const char *error_message, const uint8_t *request_id);
void batch_add_removal (engine_t *self, space_t *space, int64_t number, const tmq_id_t *id,
                        tmq_code_t code);
void batch_write_lazy (engine_t *self);        /* what has waited long enough */
int64_t batch_lazy_due (const engine_t *self); /* mono ms, INT64_MAX for none */
void batch_settle (engine_t *self);            /* forgets what is written and no longer live */
void batch_clear (engine_t *self);
/* The task as a record that points into it. */
void task_view (const task_t *task, record_t *out, task_texts_t *texts);
bool engine_is_overloaded (const engine_t *self);
attempt_note_t *attempt_note_find (const engine_t *self, int64_t number, uint32_t attempt);
removal_note_t *removal_note_find (const engine_t *self, const space_t *space, const uint8_t *id);

/* change.c. */

/* Why a task changes, for its event. */
typedef struct cause {
    const char *actor;         /* NULL: the broker itself */
    const char *message;       /* NULL: none */
    const uint8_t *request_id; /* NULL: none */
} cause_t;

/* Applies one transition that must be permitted: status, version, event, image. The lease and the
 * place in the queue are the caller's. */
void change_apply (engine_t *self, task_t *task, task_input_t input, const cause_t *cause);
/* A queued task goes to where it belongs: ready order or the wheel. */
void change_place (engine_t *self, task_t *task);
void change_unplace (engine_t *self, task_t *task);
/* The end of a task: times, expiry, and those who wait for it. */
void change_finish (engine_t *self, task_t *task, task_input_t input, const cause_t *cause);
/* … as failed, with the error that its detail has. */
void change_fail (engine_t *self, task_t *task, task_input_t input, const cause_t *cause);
void change_expire (engine_t *self, task_t *task);
/* A task whose attempt ended without an end of the task goes back to its queue. */
void change_requeue (engine_t *self, task_t *task, task_input_t input, int64_t delay_ms,
                     const cause_t *cause);
/* An uncounted return (S4): release, goodbye, undelivered, lost before it was started. */
void change_return (engine_t *self, task_t *task, task_input_t input, int64_t delay_ms,
                    const cause_t *cause);
/* The lease ended by itself: counted when the attempt was started. */
void change_lose (engine_t *self, task_t *task, const char *why);
int64_t change_backoff_ms (engine_t *self, const task_t *task, uint32_t times);
void change_remove (engine_t *self, space_t *space, const record_t *record);
bool task_is_expired (const engine_t *self, const task_t *task);

/* dispatch.c. */

void dispatch_queue_changed (engine_t *self, queue_t *queue); /* look at it at the end */
void dispatch_run (engine_t *self);
/* Puts a worker's seats into the waiting lists or takes them out, as its state asks. */
void dispatch_worker_changed (engine_t *self, worker_t *worker);
void lease_give (engine_t *self, worker_t *worker, task_t *task);
/* A lease that a restart found. */
void lease_restore (engine_t *self, worker_t *worker, task_t *task, int64_t lease_ms);
/* Ends the lease's record; the holder's credit is free again. */
void lease_end (engine_t *self, task_t *task);
void lease_arm (engine_t *self, task_t *task, int64_t lease_ms);
/* Gives back everything that the worker holds: returned (not counted) or lost. */
void worker_drop_leases (engine_t *self, worker_t *worker, bool lost, const char *why);
worker_t *worker_find (const engine_t *self, const space_t *space, const uint8_t *id);
worker_t *worker_make (engine_t *self, space_t *space, const uint8_t *id);
void worker_release (engine_t *self,
                     worker_t *worker); /* frees it when it is gone and holds nothing */
void worker_detach (engine_t *self, worker_t *worker); /* from its link and queues */

/* release.c. */

/* A packed field of a BrokerMessage (see engine_t.scratch) for the link, held until batch is
 * durable; 0 leaves at once. Keeps the body once more. */
item_t *release_item (engine_t *self, link_t *link, item_kind_t kind, uint64_t batch,
                      const bytes_t *packed, buf_t *body);
/* Starts the answer to a request in scratch and sends it. text NULL: the code's own. */
bytes_t *reply_open (engine_t *self, uint64_t request, tmq_code_t code, const char *text,
                     uint32_t retry_after_ms, bool more, bytes_mark_t *mark);
void reply_close (engine_t *self, link_t *link, bytes_mark_t mark, uint64_t batch, buf_t *body);
void reply_code (call_t *call, tmq_code_t code, const char *text); /* waits (A7) */
void reply_code_at_once (call_t *call, tmq_code_t code, const char *text, uint32_t retry_ms);
void reply_to (engine_t *self, link_t *link, uint64_t request, tmq_code_t code, const char *text,
               uint64_t batch);
void release_durable (engine_t *self);
void release_link_ready (engine_t *self, link_t *link);
void release_forget_left (engine_t *self);
void release_drop_items (engine_t *self, link_t *link);
void release_clear (engine_t *self);
void release_free (engine_t *self); /* the spare items, at the end */

/* link.c. */

link_t *link_find (const engine_t *self, peer_t peer);
/* For peers without a link too: their answers need a place to wait in. */
link_t *link_make (engine_t *self, peer_t peer);
void link_heard (engine_t *self, link_t *link);
/* Ends a link without a goodbye: what waits to leave for it is dropped. May free it. */
void link_close (engine_t *self, link_t *link);
/* An answer to it could not leave: what it asks next is told NO_LINK. May free it. */
void link_lose (engine_t *self, link_t *link);
void link_unreference (engine_t *self, link_t *link);
void link_free_if_idle (engine_t *self, link_t *link);
void link_alarm (engine_t *self, link_t *link);
bool link_token_is (const link_t *link, const ProtobufCBinaryData *token);
void on_hello (call_t *call);
void on_goodbye (call_t *call);
void on_heartbeat (call_t *call);

/* requests by family. */

void on_submit (call_t *call);
void on_get (call_t *call);
void on_result (call_t *call);
void on_payload (call_t *call);
void on_cancel (call_t *call);
void on_list (call_t *call);
void on_count (call_t *call);
void on_resolve (call_t *call);
void on_task_events (call_t *call);
void on_stats (call_t *call);
void on_wait (call_t *call);
void on_subscribe (call_t *call);
void on_credit (call_t *call);
void on_unsubscribe (call_t *call);
void on_register (call_t *call);
void on_worker_credit (call_t *call);
void on_started (call_t *call);
void on_renew (call_t *call);
void on_push (call_t *call);
void on_cancel_ack (call_t *call);
void on_complete (call_t *call);
void on_fail (call_t *call);
void on_release (call_t *call);
void on_leave (call_t *call);

/* worker.c, outcome.c. */

/* The lease is the one under which the task is held now. */
bool lease_is_current (const engine_t *self, const task_t *task, const Taskmq__Lease *lease);
/* The lease is of the task's newest attempt, held or not. */
bool attempt_of_is (const found_t *found, const Taskmq__Lease *lease);
tmq_status_t found_status (const found_t *found); /* NONE when it is gone */
void cancel_acknowledge (call_t *call, task_t *task);

/* wait.c. */

void wait_task_ended (engine_t *self, task_t *task);
void wait_drop (engine_t *self, wait_t *wait);

/* list.c: reads. */

/* A read in the link's namespace, to be given away once the batch `need` is written back. */
job_t *job_new (engine_t *self, link_t *link, read_kind_t kind, uint64_t need);
void job_free (engine_t *self, job_t *job);
void jobs_clear (engine_t *self); /* forgets those that wait, and for whom the others are */
/* A copy of a filter in one allocation, to be freed with free (). filter NULL: no condition. */
filter_copy_t *filter_new (const char *ns, const Taskmq__Filter *filter);

/* scan.c. */

/* What an event's packed form says, as far as filters and cursors need it. Texts are not
 * NUL-terminated. */
typedef struct scanned {
    const uint8_t *element; /* its element of the EventList, tag and length included */
    size_t element_bytes;
    const uint8_t *event;
    size_t event_bytes;
    uint64_t seq;
    uint64_t previous_seq;
    uint64_t status;
    const uint8_t *id; /* NULL, or 16 bytes */
    const uint8_t *queue;
    size_t queue_bytes;
    const uint8_t *session;
    size_t session_bytes;
} scanned_t;
/* The event at *at, which moves behind it; false at the end, or where the bytes are damaged. */
bool scan_event (const uint8_t **at, const uint8_t *end, scanned_t *out);
bool filter_takes_event (const filter_copy_t *filter, const scanned_t *event);
bool filter_takes_record (const filter_copy_t *filter, const record_t *record);

/* ring.c. */

/* What one message shall carry. */
typedef struct cut {
    const filter_copy_t *filter;
    uint64_t after_seq;
    uint64_t durable_seq;
    size_t budget;     /* bytes */
    bool alone;        /* the first event may be larger than the budget */
    uint64_t stop_seq; /* nothing behind it matches */
    hint_t hint;       /* nothing before it does */
    bytes_t list;      /* packed elements so far */
    buf_t *whole;      /* … or a block as it is */
    uint32_t count;
    uint64_t upto; /* everything up to it was considered */
    bool full;     /* the budget or stop_seq ended it */
} cut_t;
void ring_add (engine_t *self, space_t *space, uint64_t batch, uint64_t first_seq, uint32_t count,
               buf_t *list);
void ring_clear (engine_t *self);
uint64_t ring_first_seq (const space_t *space); /* 0: nothing is in memory */
bool ring_holds (const space_t *space, uint64_t seq);
/* What matches from the cursor on, within the budget; NULL: nothing. cut says how far it went.
 * The ring must hold the event behind the cursor. */
buf_t *cut_from_ring (space_t *space, cut_t *cut);
buf_t *cut_from_page (const event_block_t *page, size_t count, cut_t *cut);

/* stream.c. */

void stream_durable (engine_t *self);
/* It may have something to send: look at it before the next output. */
void stream_wake (engine_t *self, subscription_t *subscription);
/* Packs the next message of the subscription into the envelope; false: nothing for now. */
bool stream_next (engine_t *self, subscription_t *subscription, buf_t **body);
/* What comes next for it are event batches, which may share a message. */
bool stream_is_shareable (const engine_t *self, const subscription_t *subscription);
void stream_failed (engine_t *self, subscription_t *subscription);
void stream_read_done (engine_t *self, job_t *job);
void stream_alarm (engine_t *self, subscription_t *subscription);
void stream_close (engine_t *self, subscription_t *subscription);
void stream_notices (engine_t *self);
/* Tells one subscription of a task's progress, if it is live and its filter takes the task. */
void stream_notice (engine_t *self, subscription_t *subscription, const record_t *record);
/* It has moved without an event: an empty upto follows in time. */
void stream_wait_for_upto (engine_t *self, subscription_t *subscription);
void stream_acknowledge (engine_t *self, subscription_t *subscription, uint64_t upto);
/* … so many messages of the snapshot. */
void stream_acknowledge_snapshot (engine_t *self, subscription_t *subscription, uint32_t messages);
/* subscribe.c. */
void subscription_started (engine_t *self, job_t *job);         /* READ_SINCE answered */
uint32_t subscription_hash (const engine_t *self, uint64_t id); /* among those of its link */

/* interest.c. */

void interest_add (engine_t *self, subscription_t *subscription); /* filter and space are set */
void interest_remove (subscription_t *subscription);
/* What lies behind after_seq became durable: wakes those whom it concerns. */
void interest_advance (engine_t *self, space_t *space, uint64_t after_seq);
/* It was told everything: the next advance, whatever it brings, starts its time for an upto. */
void interest_rest (subscription_t *subscription);
/* A task's progress, to those whom it concerns. */
void interest_notice (engine_t *self, space_t *space, const record_t *record);

/* pack.c. */

typedef struct event {
    uint64_t seq;
    int64_t at;
    tmq_event_kind_t kind;
    const tmq_id_t *id;
    const char *queue;
    const char *session;
    tmq_status_t status;
    tmq_status_t previous;
    uint32_t attempt;
    const char *worker;
    const char *actor;
    const char *message;
    const label_t *labels;
    size_t labels_count;
    uint64_t previous_seq;
} event_t;
void pack_event (bytes_t *out, const event_t *event); /* one element of an EventList */
tmq_phase_t task_phase (const task_t *task);
/* As field of an enclosing message. */
void pack_task (bytes_t *out, uint32_t field, const record_t *record, tmq_phase_t phase,
                uint32_t body_bytes);
void pack_assignment (bytes_t *out, const worker_t *worker, const task_t *task);
void pack_lease_state (bytes_t *out, uint32_t field, const uint8_t *id, uint32_t attempt,
                       tmq_code_t code, uint32_t lease_ms);

#endif
