/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* A rig for the engine's tests: one engine, a clock that the test moves, a store whose commits and
 * write-backs the test triggers one by one, and peers whose messages are unpacked with the
 * generated code and kept until the rig is freed. */
#ifndef TASKMQ_TESTS_CORE_RIG_H
#define TASKMQ_TESTS_CORE_RIG_H

#include "core/base/planted.h"
#include "core/data/row_list.h"
#include "core/engine/engine.h"
#include "support/cmocka_all.h"

/* The time in every id that rig_id makes. */
#define RIG_IDS_MADE_MS INT64_C (1700000000000)

enum { RIG_PEERS = 17, RIG_TABLE_MAX = 20000 };

/* One thing that a peer received. */
typedef struct rig_item {
    const Taskmq__Reply *reply; /* one of these is set */
    const Taskmq__Assignment *assignment;
    const Taskmq__CancelNotice *cancel;
    const Taskmq__DrainNotice *drain;
    const Taskmq__Notice *notice;
    const Taskmq__AnswerNotice *answers;
    const Taskmq__EventBatch *events;
    const Taskmq__EventList *list; /* of events, NULL when there are none */
    const Taskmq__Snapshot *snapshot;
    const Taskmq__Gap *gap;
    const uint8_t *body; /* of a reply's task or an assignment */
    size_t body_bytes;
} rig_item_t;

typedef struct rig_peer {
    peer_t id;
    const char *identity;
    uint8_t token[16];
    uint64_t next_request;
    bool refuse;  /* the transport does not take what is for it */
    size_t allow; /* … but so many messages it still takes */
    rig_item_t *items;
    size_t count;
    size_t capacity;
} rig_peer_t;

typedef struct rig {
    engine_t *engine;
    engine_config_t config;
    now_t now;
    int64_t heard_ms; /* mono; what had arrived by then was taken; 0: all of it */
    boot_t boot;
    rig_peer_t peers[RIG_PEERS];
    size_t messages; /* that left */
    size_t refused;  /* that the transport did not take */
    /* the store */
    batch_t *batches[RIG_TABLE_MAX]; /* by number, kept to the end */
    /* Keeps a batch for good before it counts as durable; NULL: nobody does. */
    void (*keep) (void *context, const batch_t *batch);
    void *keep_context;
    uint64_t committed;
    uint64_t durable;
    uint64_t written;
    record_t *rows[RIG_TABLE_MAX];       /* by acceptance number */
    removal_t tombstones[RIG_TABLE_MAX]; /* code 0: none */
    row_list_t kind_rows;
    /* requests that wait for rig_send_gathered; NULL: each leaves at once */
    Taskmq__Request **gathered;
    size_t gathered_count;
    bool gathers;
    policy_t *policy;
    size_t rows_end;     /* one more than the highest number */
    bool damaged;        /* every row is */
    bool away;           /* look-ups and reads find the store out of reach */
    uint32_t features;   /* of hellos */
    size_t lasting_read; /* records that READ_LASTING has brought */
    size_t events_from;  /* events before this sequence are no longer kept */
    const char *owner;   /* that peer 0 asks for; NULL: for itself */
    size_t loads;
    size_t reads;
    /* what is to be freed */
    Taskmq__BrokerMessage **kept;
    size_t kept_count;
    size_t kept_capacity;
    Taskmq__EventList **lists;
    size_t lists_count;
    size_t lists_capacity;
    buf_t **bodies;
    size_t bodies_count;
    size_t bodies_capacity;
} rig_t;

rig_t *rig_new (void); /* the defaults */
rig_t *rig_new_with (const engine_config_t *config);
void rig_free (rig_t *self);
/* The set-up and the end of a test for two clients of one namespace, peers 0 and 1. */
int rig_setup (void **state);
int rig_teardown (void **state);

/* Driving. */

/* Takes and commits the open batch if there is one; nothing is written back. */
void rig_commit (rig_t *self);
/* Takes the open batch without making it durable; rig_durable does that for all that were taken. */
void rig_take (rig_t *self);
void rig_durable (rig_t *self);
/* Everything that is durable reaches the tables. */
void rig_write (rig_t *self);
/* Fetches what leaves. */
void rig_outputs (rig_t *self);
/* One round of it; false when there is no other to come. */
bool rig_outputs_round (rig_t *self);
/* Commits, ticks, reads and fetches outputs until nothing moves; writes back too. */
void rig_settle (rig_t *self);
/* … without writing back. */
void rig_run (rig_t *self);
/* Moves both clocks and ticks, in steps of at most a second, settling after each. */
void rig_advance (rig_t *self, int64_t ms);
/* A crash: a new engine over the tables and what was durable. Links are gone. */
void rig_restart (rig_t *self);
/* … that finds this as the newest stored time. */
void rig_restart_at (rig_t *self, int64_t newest_ms);
/* A commit that failed: the engine is reset and filled again. */
void rig_fail_commit (rig_t *self);
/* … while the rows of what is durable wait for space. Returns the newest batch that was kept: tell
 * engine_written of it. */
uint64_t rig_fail_commit_stalled (rig_t *self);

/* Peers. */

/* Says hello; the peer's number stands for the connection. */
void rig_link (rig_t *self, size_t peer, const char *ns);
/* Sends one request and returns its id. body may be NULL. */
uint64_t rig_send (rig_t *self, size_t peer, Taskmq__Request *request, const void *body,
                   size_t body_bytes);
/* … a submit whose items the validator has judged. */
uint64_t rig_send_judged (rig_t *self, size_t peer, Taskmq__Request *request,
                          const verdict_t *items, const void *body, size_t body_bytes);
/* From now on requests wait, until rig_send_gathered sends them as one message of the peer. Only
 * for requests without bodies. */
void rig_gather (rig_t *self);
void rig_send_gathered (rig_t *self, size_t peer);
/* A new policy, from the text of an access file; NULL: none. Restarts keep it. */
void rig_access (rig_t *self, const char *text);
/* The transport takes so many messages for the peer, then none until rig_heed. */
void rig_refuse_after (rig_t *self, size_t peer, size_t messages);
void rig_heed (rig_t *self, size_t peer);
/* Forgets what the peer received so far. */
void rig_forget (rig_t *self, size_t peer);
/* The newest reply to a request, or NULL. */
const rig_item_t *rig_reply (const rig_t *self, size_t peer, uint64_t request);
/* The code of the newest reply; fails the test when there is none. */
unsigned rig_code (const rig_t *self, size_t peer, uint64_t request);
size_t rig_replies (const rig_t *self, size_t peer, uint64_t request);
/* The n-th item of its kind, from 0, or NULL. */
const rig_item_t *rig_assignment (const rig_t *self, size_t peer, size_t n);
size_t rig_assignments (const rig_t *self, size_t peer);

/* Requests. */

tmq_id_t rig_id (unsigned n); /* a UUIDv7 */
uint64_t rig_submit (rig_t *self, size_t peer, unsigned n, const char *queue, const char *payload);
/* As rig_submit, with a spec of the test's; ids and lengths are filled in when empty. */
uint64_t rig_submit_spec (rig_t *self, size_t peer, unsigned n, Taskmq__TaskSpec *spec,
                          const char *payload);
uint64_t rig_get (rig_t *self, size_t peer, unsigned n);
uint64_t rig_get_record (rig_t *self, size_t peer, unsigned n); /* without bytes */
uint64_t rig_why (rig_t *self, size_t peer, unsigned n);
uint64_t rig_result (rig_t *self, size_t peer, unsigned n);
uint64_t rig_payload (rig_t *self, size_t peer, unsigned n);
uint64_t rig_cancel (rig_t *self, size_t peer, unsigned n);
/* retry, resume or purge: the number of the operation. */
uint64_t rig_change (rig_t *self, size_t peer, unsigned op, unsigned first, unsigned count);
/* A piece of the assignment's log. */
uint64_t rig_log (rig_t *self, size_t peer, const Taskmq__Assignment *assignment,
                  tmq_log_stream_t stream, uint64_t offset, const char *bytes);
uint64_t rig_read_log (rig_t *self, size_t peer, unsigned n);
/* What a worker keeps; state NULL: asks for it. */
uint64_t rig_checkpoint (rig_t *self, size_t peer, const Taskmq__Assignment *assignment,
                         const char *state);
/* ids are filled in. */
uint64_t rig_set (rig_t *self, size_t peer, unsigned n, const Taskmq__Set *set);
/* The code of the only item of its answer. */
unsigned rig_changed (const rig_t *self, size_t peer, uint64_t request);
uint64_t rig_wait (rig_t *self, size_t peer, unsigned first, unsigned count, uint32_t deadline_ms);
uint64_t rig_register (rig_t *self, size_t peer, unsigned worker, const char *queue,
                       uint32_t capacity);
uint64_t rig_register_queues (rig_t *self, size_t peer, unsigned worker, char **queues,
                              size_t count, uint32_t capacity);
/* … listing one lease that it holds and has started. */
uint64_t rig_register_with (rig_t *self, size_t peer, unsigned worker, const char *queue,
                            uint32_t capacity, const Taskmq__Assignment *held);
uint64_t rig_worker_credit (rig_t *self, size_t peer, unsigned worker, uint64_t seen,
                            uint32_t capacity);
uint64_t rig_leave (rig_t *self, size_t peer, unsigned worker);
uint64_t rig_goodbye (rig_t *self, size_t peer);
uint64_t rig_started (rig_t *self, size_t peer, const Taskmq__Assignment *assignment);
uint64_t rig_turn (rig_t *self, size_t peer, const Taskmq__Assignment *assignment, uint32_t number,
                   const char *content);
uint64_t rig_search (rig_t *self, size_t peer, const char *text, ProtobufCBinaryData cursor,
                     bool ranked);
uint64_t rig_turns (rig_t *self, size_t peer, unsigned n, uint32_t attempt, uint32_t after);
uint64_t rig_complete (rig_t *self, size_t peer, const Taskmq__Assignment *assignment,
                       const char *result);
uint64_t rig_fail (rig_t *self, size_t peer, const Taskmq__Assignment *assignment, int32_t code,
                   bool final);
uint64_t rig_fail_with (rig_t *self, size_t peer, const Taskmq__Assignment *assignment,
                        int32_t code, bool final, const char *result);
uint64_t rig_push (rig_t *self, size_t peer, const Taskmq__Assignment *assignment,
                   const char *message, double done);
uint64_t rig_release (rig_t *self, size_t peer, const Taskmq__Assignment *assignment,
                      bool no_delay);
/* A question and its answers; key "" is "input". */
uint64_t rig_ask (rig_t *self, size_t peer, const Taskmq__Assignment *assignment, const char *key,
                  const char *request_text);
/* … with everything else as the test wants it. */
uint64_t rig_ask_as (rig_t *self, size_t peer, const Taskmq__Assignment *assignment,
                     const Taskmq__Ask *ask);
uint64_t rig_take_answers (rig_t *self, size_t peer, const Taskmq__Assignment *assignment,
                           uint64_t seen);
uint64_t rig_answer (rig_t *self, size_t peer, unsigned n, const char *key, const char *json);
/* The first page of a task's artifacts, as peer 0 gets it. Lent until the rig's next message. */
const Taskmq__ArtifactPage *rig_artifacts (rig_t *self, unsigned n);
uint64_t rig_inbox (rig_t *self, size_t peer, Taskmq__Inbox *inbox);
uint64_t rig_cancel_ack (rig_t *self, size_t peer, const Taskmq__Assignment *assignment);
uint64_t rig_renew (rig_t *self, size_t peer, unsigned worker,
                    const Taskmq__Assignment *assignment);
uint64_t rig_subscribe (rig_t *self, size_t peer, uint64_t subscription, uint64_t after_seq);
/* … with everything as the test wants it. */
uint64_t rig_subscribe_as (rig_t *self, size_t peer, Taskmq__Subscribe *subscribe);
uint64_t rig_unsubscribe (rig_t *self, size_t peer, uint64_t subscription);
/* … also for what came of its snapshot. */
uint64_t rig_credit (rig_t *self, size_t peer, uint64_t subscription, uint64_t upto);
uint64_t rig_list (rig_t *self, size_t peer, Taskmq__Filter *filter, ProtobufCBinaryData cursor,
                   uint32_t limit);
uint64_t rig_search_count (rig_t *self, size_t peer, const char *text);
uint64_t rig_count (rig_t *self, size_t peer);
uint64_t rig_resolve (rig_t *self, size_t peer, const char *suffix);
uint64_t rig_history (rig_t *self, size_t peer, unsigned n);
uint64_t rig_stats (rig_t *self, size_t peer);
/* The request id that the helpers use, to repeat a request or to make another one. */
void rig_use_request_id (unsigned n);

/* Status of the task now, by a get of its own. */
unsigned rig_status (rig_t *self, size_t peer, unsigned n);
const Taskmq__Task *rig_task (rig_t *self, size_t peer, unsigned n);

enum { RIG_REQUESTS_MAX = 100 };
/* A message of the peer with so many of the same request, for who hands it over in pieces; valid
 * until the next call. */
message_t rig_message_of (rig_t *rig, size_t peer, const Taskmq__Request *request, size_t count);

#endif
