/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* The engine: everything the broker decides, as a pure function of its inputs (A4, A25).
 *
 * It has no socket, file, clock, thread or randomness. The server drives it with real ones, the
 * simulation with virtual ones. Nothing is re-entrant: an input returns before its effects are
 * fetched. The protocol of one drain is
 *
 *     for each message: engine_want (what it names and memory does not hold)
 *     store_load (the wanted keys); engine_loaded
 *     for each message: engine_message
 *     engine_tick; engine_read_next -> readers
 *     engine_batch_take -> committer, when the committer is free
 *     engine_output_next -> net, until it returns false; engine_has_output: another drain at once
 *
 * and engine_durable, engine_written, engine_read_done whenever the store says so.
 *
 * What is applied is provisional until its batch is durable; outputs are released by the engine
 * itself when the batch they rest on is durable (A7). After a failed commit the server calls
 * engine_reset and streams the live tasks in again (A21).
 *
 * Memory: the engine aborts when memory is exhausted; limits keep it bounded before that. */
#ifndef TASKMQ_CORE_ENGINE_H
#define TASKMQ_CORE_ENGINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/clocks.h"
#include "core/base/config.h"
#include "core/base/counts.h"
#include "core/data/deed.h"
#include "core/data/errand.h"
#include "core/data/log_piece.h"
#include "core/data/lookup.h"
#include "core/data/peer.h"
#include "taskmq.pb-c.h"
#include "validate.h"

typedef struct engine engine_t;

enum { ENGINE_MOVE_MS = 10 * 1000 };

engine_t *engine_new (const engine_config_t *config);
/* Other limits and defaults for the running engine, from the next input on; what is beyond a new
 * limit already stays. The seed has been used and is not looked at again. */
void engine_configure (engine_t *self, const engine_config_t *config);
void engine_free (engine_t *self);

/* Start and restart. engine_boot, then engine_restore_row for each row that lives in memory,
 * engine_restore for each live task and engine_restore_ns for each namespace, then engine_ready.
 * engine_reset forgets everything (links too) and is followed by the same. Live leases get a fresh
 * term at engine_ready (S9). Batch numbers go on after engine_reset. */
void engine_boot (engine_t *self, const boot_t *boot, now_t now);
void engine_restore (engine_t *self, record_t *record); /* takes the record */
/* A row of a kind that lives in memory; borrows it. */
void engine_restore_row (engine_t *self, const row_t *row);
void engine_restore_ns (engine_t *self, const char *name, uint64_t last_seq);
void engine_ready (engine_t *self, now_t now);
/* Tells of each schedule that makes no tasks any more: its zone or calendar is not known. */
void engine_tell_broken (const engine_t *self,
                         void (*tell) (void *context, const char *ns, const char *name,
                                       const char *why),
                         void *context);
void engine_reset (engine_t *self);

/* Inputs. */

/* One validated message of a client. body is the second frame (or NULL), already checked to be as
 * long as the requests say. identity: who net says the peer is ("uid:0", "local", "curve:KEY"). */
typedef struct message {
    peer_t peer;
    const char *identity;
    const Taskmq__ClientMessage *envelope;
    const uint8_t *body;
    size_t body_bytes;
    /* What the validator found; NULL: nothing. Refused requests are skipped here, the server
     * answers them by engine_refuse; refused items of a submit get their code in its answer. */
    const verdicts_t *verdicts;
    bool gone; /* its peer is: what only reads is passed over */
} message_t;

/* Appends the keys whose records the message needs and memory does not hold. Keys point into the
 * message and the engine and stay valid until the next engine_loaded. */

/* … of its requests from number `from` on. Returns the number of the first one that does not fit
 * in this round any more: the requests before it may be handled, the others wait for the next
 * round. */
size_t engine_want (engine_t *self, const message_t *message, size_t from, key_list_t *keys);
/* Begins a share: from here on engine_want allows at most this part of the round's allowance, and
 * never more than what is left of it, or of its first half. A round begins with a share of all. */
void engine_share (engine_t *self, size_t parts, bool first_half);
/* engine_want allows nothing more in this round. */
bool engine_round_is_over (const engine_t *self);
/* Also appends the payloads that queued assignments wait for (tasks whose payload is only in the
 * tables). Call once per drain, after the messages. */
void engine_want_payloads (engine_t *self, key_list_t *keys);
/* Hands the answers over; takes the array with its records and leaves an empty list. What was found
 * is visible until the next call, or the next tick. */
void engine_loaded (engine_t *self, key_list_t *keys);

/* … in place of that: the store was out of reach, and no key has an answer. What needed one of them
 * in this round is refused. */
void engine_unread (engine_t *self, key_list_t *keys);

/* Handles its requests from..upto-1, as engine_want has said. */
void engine_message (engine_t *self, const message_t *message, size_t from, size_t upto, now_t now);
/* A refusal of net's or the validator's own: leaves at once, to this request of this peer. */
void engine_refuse (engine_t *self, peer_t peer, uint64_t request, tmq_code_t code,
                    const char *text, uint32_t retry_after_ms);
/* The transport refuses its messages, and it has left too many answers unread: nothing more should
 * be done for it. It ends by itself: the peer reads, or its link is given up. */
bool engine_is_clogged (const engine_t *self, peer_t peer);
/* Messages of the peer were received and wait to be applied: its leases and its silence are not
 * judged, because a renewal may be among them (A20). */
void engine_set_behind (engine_t *self, peer_t peer, bool behind);
/* The peer has said hello, and its link stands. */
bool engine_is_linked (const engine_t *self, peer_t peer);
/* The hint that the peer's connection ended (A48). */
void engine_peer_gone (engine_t *self, peer_t peer, now_t now);
/* The output that was fetched last was refused by the transport (A49); to be told before the next
 * engine_output_next. */
typedef struct output output_t;
void engine_output_failed (engine_t *self, const output_t *output, now_t now);
/* Begins a round: everything may cost so much again (base/budget.h). */
void engine_round (engine_t *self);
/* Judges deadlines, once a round. Tasks are judged by now; the silence of peers by heard_ms: what
 * had arrived by then (mono) has been applied (A20). Returns mono_ms of the next deadline,
 * INT64_MAX for none. paused_ms: how much longer than a heartbeat the loop stood still since the
 * last tick; it is added to every lease and link. */
int64_t engine_tick (engine_t *self, now_t now, int64_t heard_ms, int64_t paused_ms);
/* Every batch up to this one is durable: what waited for it may leave. */
void engine_durable (engine_t *self, uint64_t batch, now_t now);
/* … is written back: what is over leaves memory, so never between engine_want and its messages. */
void engine_written (engine_t *self, uint64_t batch);
/* Tasks and rows that the store holds for due; takes what it holds. How many are removed. */
size_t engine_due (engine_t *self, due_t *due, now_t now);
/* Namespaces of which the tables know nothing any more; to be told after each store_live, too. */
void engine_forgotten (engine_t *self, const forgotten_t *forgotten);
/* A read that engine_read_next gave away, with its answers; takes it. */
void engine_read_done (engine_t *self, read_t *read, now_t now);
/* An errand that engine_errand_next gave away, with its answer; takes it. */
void engine_errand_done (engine_t *self, errand_t *errand, now_t now);
/* From now on this is who may do what; NULL: everybody everything. Keeps it. Links whose rights are
 * other ones now are closed and told NO_LINK, and what waits for a commit to leave for them is
 * dropped; leases of a principal that is gone return, not counted. The others notice nothing. To be
 * called at any time, also before the first link; a reset leaves it. */
void engine_access (engine_t *self, policy_t *policy, now_t now);
/* Connections end now that come back at once: their workers have TMQ_MOVE_GRACE_MS for it. Counts
 * for those whose end is told within ENGINE_MOVE_MS. */
void engine_move (engine_t *self, now_t now);
/* The key that the broker will have, for the welcome; NULL: none is planned. Links are closed and
 * told NO_LINK, so that everybody who is connected learns of it. */
void engine_next_key (engine_t *self, const key_public_t *next, now_t now);
/* While full, submissions are answered STORE_FULL (A22). */
void engine_set_full (engine_t *self, bool full);
/* The store is out of reach, or it is back. Meanwhile what would have to be looked up or read, and
 * what brings something new, is refused with UNAVAILABLE; what changes what memory has is taken,
 * and waits for its commit (A100). */
void engine_set_away (engine_t *self, bool away, now_t now);
/* Somebody else may own the store by now, or it is ours again. Meanwhile nothing leaves but
 * refusals for those without a link, and nobody gets one (A101). */
void engine_set_shut (engine_t *self, bool shut);
/* From now on every change is refused with STOPPING (clean stop). */
void engine_stop (engine_t *self);

/* Effects. */

/* The batch that an answer made now rests on. */
uint64_t engine_waits_for (const engine_t *self);
/* The next commit batch, or NULL if nothing changed. There may be several: a batch holds a bounded
 * number of changes, whatever made them. */
batch_t *engine_batch_take (engine_t *self, now_t now);
/* A leap of the wall clock, or its way back, that nobody was told yet, and how far; else
 * CLOCKS_STEADY. */
clocks_step_t engine_clock_news (engine_t *self, int64_t *ms);

/* A message ready to leave. Borrowed until the next call on the engine's outputs. */
struct output {
    peer_t peer;
    const uint8_t *envelope;
    size_t envelope_bytes;
    buf_t *body;  /* second frame, or NULL; keep it with buf_keep for zero copy */
    uint64_t tag; /* the engine's own */
};
bool engine_output_next (engine_t *self, output_t *out);
/* The output that was fetched last did not leave, and may not leave now: it comes again when it
 * may, before all others. To be told before the next engine_output_next. */
void engine_output_kept (engine_t *self, const output_t *output);
/* After engine_output_next has returned false: there is more to find for subscriptions that are
 * behind, but what has arrived meanwhile comes first. */
bool engine_has_output (const engine_t *self);

/* A read to be done by a reader thread, or NULL. Belongs to the caller until engine_read_done. */
read_t *engine_read_next (engine_t *self);
/* Some read waits for a write-back: the server calls store_flush. */
bool engine_wants_flush (const engine_t *self);

/* Who did or was denied what, for the record of deeds; false: nobody since. */
bool engine_deed_next (engine_t *self, deed_t *out);

/* Keeps a row of the server's own, which the engine knows nothing of, with the next commit. */
void engine_keep_row (engine_t *self, row_t row, now_t now);

/* Somebody may name the blob of this hash, or a crash would bring a task back that does. */
bool engine_blob_is_needed (engine_t *self, const uint8_t *hash);
/* Work to be done off the loop, or NULL. Belongs to the caller until engine_errand_done. */
errand_t *engine_errand_next (engine_t *self);

/* A piece of a task's log to be kept, or NULL. Belongs to the caller until engine_log_done. */
log_piece_t *engine_log_next (engine_t *self);
/* It is kept, or lost. Takes it. */
void engine_log_done (engine_t *self, log_piece_t *piece);

/* What is not durable and what is not written back, for the hard limits of A19. */
size_t engine_pending_inputs (const engine_t *self);
size_t engine_pending_bytes (const engine_t *self);
size_t engine_dirty_bytes (const engine_t *self);

/* The server's and the store's own numbers, shown after the engine's. Copied. */
void engine_set_counters (engine_t *self, const counter_t *counters, size_t count);

#endif
