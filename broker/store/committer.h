/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* The thread that commits (A16). While it works on some batches the server fills the next, so what
 * a commit takes adapts to the load. When it is idle the server may commit by itself: whoever
 * commits holds the token, and the store's journal is handed over with it, never shared.
 *
 * All functions are called by one thread, the server's. */
#ifndef TASKMQ_STORE_COMMITTER_H
#define TASKMQ_STORE_COMMITTER_H

#include "store/store.h"

typedef struct committer committer_t;

/* What became of the batches of a commit. Any code but STORE_OK and STORE_ERROR_FULL is final
 * (A23). */
typedef struct commit_result {
    uint64_t batch; /* number of the last one */
    store_code_t code;
    int64_t begun_us; /* CLOCK_MONOTONIC */
    int64_t ended_us;
    char text[512]; /* for people, when code is not STORE_OK */
} commit_result_t;

/* The store must outlive the committer. NULL when the thread or its eventfd cannot be made. */
committer_t *committer_new (store_t *store);
/* Waits for the commit in flight; its result is lost. Accepts a NULL object. */
void committer_free (committer_t **self);

/* Nothing is in flight: committer_submit or committer_commit may be called. */
bool committer_idle (const committer_t *self);
/* Hands batches to the thread, takes them: one commit, as store_commit. The result comes through
 * committer_result. */
void committer_submit (committer_t *self, batch_t *const *batches, size_t count);
/* Commits batches on the calling thread, takes them. Blocks for the length of one commit; the
 * result is returned here only. */
void committer_commit (committer_t *self, batch_t *const *batches, size_t count,
                       commit_result_t *result);

/* Readable (level-triggered) while a result waits; for poll only, never read by the caller. */
int committer_fd (const committer_t *self);
/* The result of the commit in flight, false if it is not done or nothing is in flight. */
bool committer_result (committer_t *self, commit_result_t *result);

#endif
