/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* The store thread (A17): what is committed waits in memory until its rows are written, together
 * with those of other batches. Every backend with a journal in front and rows behind has one; how
 * rows are written is told by five callbacks, all of them called by the thread alone and without
 * the lock.
 *
 * A write-back that finds no space is tried again every second, and nothing is given up. Any other
 * failure is final: the thread ends, everybody who asks is told, and the journal has everything. */
#ifndef TASKMQ_STORE_BEHIND_H
#define TASKMQ_STORE_BEHIND_H

#include <stdatomic.h>

#include "store/dirty.h"
#include "store/overlay.h"
#include "store/store.h"

typedef struct behind behind_t;

enum { BEHIND_STALL_MS = 1000 /* between two tries when there is no space (A22) */ };

/* What the thread knows when it has nothing to write, and what it is to do then. */
typedef struct behind_rest {
    bool busy;         /* something waits to be written, or to be forgotten: this is no real rest */
    bool pending;      /* … to be written, but not for so long that it is due */
    bool ends;         /* this is the thread's last call: there will be no other */
    int64_t commit_ms; /* mono, of the newest commit */
    /* answers */
    int64_t again_ms; /* mono: called again by then, and after every change; INT64_MAX: only then */
    bool write;       /* what waits is to be written first, at once */
} behind_rest_t;

/* context is that of behind_new. A transaction that fails is undone by whoever failed. */
typedef struct behind_calls {
    /* Opens the transaction of one write-back, … */
    store_code_t (*begin) (void *context, store_error_t *error);
    /* … writes its rows, … */
    store_code_t (*write) (void *context, const dirty_t *dirty, store_error_t *error);
    /* … and makes them durable. newest: the last batch of them. */
    store_code_t (*commit) (void *context, const batch_t *newest, store_error_t *error);
    /* Forgets one slice of what is old, in a transaction of its own. expiry_ms: the time that it is
     * judged by, which is that of the newest batch, so that no clock can be wrong; 0: none yet.
     * exported: events up to there may go. *more: it is not all. */
    store_code_t (*forget) (void *context, int64_t expiry_ms, uint64_t exported, bool *more,
                            store_error_t *error);
    /* Nothing is to be written: one step of whatever else the backend does. */
    store_code_t (*rest) (void *context, behind_rest_t *rest, store_error_t *error);
} behind_calls_t;

/* options: of the store; not kept but for its limits and functions. */
behind_t *behind_new (const behind_calls_t *calls, void *context, const store_options_t *options);
/* STORE_ERROR_IO: there is no thread. */
store_code_t behind_start (behind_t *self, store_error_t *error);
/* Writes what waits, and waits for the end of the thread. Any error: that which ended it. */
store_code_t behind_stop (behind_t *self, store_error_t *error);
/* The thread does not run. Accepts NULL. */
void behind_free (behind_t *self);

/* Any thread may call any of these, but for behind_take. */

/* Takes batches that are durable. begun_us: when their commit began. One thread at a time. */
void behind_take (behind_t *self, batch_t *const *batches, size_t count, int64_t begun_us);
uint64_t behind_written (behind_t *self); /* the newest batch whose rows stand */
/* What waits is written soon. */
void behind_flush (behind_t *self);
void behind_exported (behind_t *self, uint64_t pos);
/* `rest` is called once more. */
void behind_wake (behind_t *self);
/* The failure that ended the thread, or STORE_OK. */
store_code_t behind_failure (behind_t *self, store_error_t *error);

/* Waits until something more is written; FULL: that waits for space itself. */
store_code_t behind_wait (behind_t *self, store_error_t *error);
/* Waits until everything is written. While that waits for space: *out is what it would bring, to be
 * freed by the caller, else NULL. */
store_code_t behind_wait_all (behind_t *self, overlay_t **out, store_error_t *error);

/* A task whose row is not its latest state. */
bool behind_has (behind_t *self, int64_t number);
/* Answers a READ_EXPORT from what was written last (follow_take). */
bool behind_follow (behind_t *self, read_t *read, bool *lacks);

/* What `forget` forgot. Before its commit, where events begin now; behind it, the namespaces that
 * are gone, which are copied. */
void behind_forgets (behind_t *self, uint64_t upto_seq);
void behind_forgot (behind_t *self, const forgotten_t *forgotten);
/* As store_forgotten. */
void behind_forgotten (behind_t *self, forgotten_t *out);

/* Fills commits, commit_us, dirty_tasks, dirty_bytes, write_back_stalled. */
void behind_stats (behind_t *self, store_stats_t *out);

#endif
