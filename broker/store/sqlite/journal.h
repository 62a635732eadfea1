/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* journal.db (A9, A10, A14): what makes a commit durable before its rows are written. One single
 * connection, handed over between the committing thread and the store thread by a lock. */
#ifndef TASKMQ_STORE_JOURNAL_H
#define TASKMQ_STORE_JOURNAL_H

#include "store/sqlite/sql.h"

typedef struct journal journal_t;

/* *created: there was no journal before, so nothing can be replayed. */
store_code_t journal_open (journal_t **out, const store_options_t *options, bool *created,
                           store_error_t *error);
/* Closes; what is in it stays there. Accepts NULL. */
void journal_free (journal_t **self);

/* STORE_ERROR_CORRUPT when the tables lack what the journal has given up for them, or when the
 * journal's log is gone: SQLite would begin with what is left, without a word. clean: the tables
 * were closed, so the journal has nothing to add. To be called once, before the replay. */
store_code_t journal_judge (journal_t *self, uint64_t generation, uint64_t epoch, uint64_t written,
                            bool clean, store_error_t *error);
/* The store is closed in order: the log goes when the connection ends. Otherwise it stays, as a
 * crash would leave it. */
void journal_let_go (journal_t *self);
/* Calls each for every batch that the tables of that history, epoch and written batch do not hold,
 * oldest first; the callee owns it, and a code other than STORE_OK ends the replay. */
typedef store_code_t journal_visit_t (void *context, batch_t *batch, store_error_t *error);
store_code_t journal_replay (journal_t *self, uint64_t generation, uint64_t epoch, uint64_t written,
                             journal_visit_t *each, void *context, store_error_t *error);
/* Empties the journal, which must have been replayed, durably, and grows its write-ahead log by
 * real writes. From now on batches belong to this generation and epoch. */
store_code_t journal_begin (journal_t *self, uint64_t generation, uint64_t epoch,
                            store_error_t *error);

/* Durable, all of them, when it returns STORE_OK; at most STORE_COMMIT_BATCHES_MAX.
 * STORE_ERROR_FULL keeps nothing and may be followed by others; any other failure is final. */
store_code_t journal_append (journal_t *self, batch_t *const *batches, size_t count,
                             store_error_t *error);
/* Batches up to it are in the tables: the next append deletes their rows. Any thread. */
void journal_written (journal_t *self, uint64_t batch);
/* Deletes those rows now and checkpoints: to be called when nothing was committed for a while. */
store_code_t journal_rest (journal_t *self, store_error_t *error);
/* Rows that journal_rest would delete. Any thread. */
bool journal_has_written_rows (journal_t *self);

#endif
