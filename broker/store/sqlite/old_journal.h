/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* journal.db, in which the journal stood before it had a file of its own: read once more, then
 * removed. */
#ifndef TASKMQ_STORE_OLD_JOURNAL_H
#define TASKMQ_STORE_OLD_JOURNAL_H

#include "store/journal/journal.h"
#include "store/sqlite/sql.h"

typedef struct old_journal old_journal_t;

/* *out stays NULL when there is none. Nothing is changed, whatever is found: a log that is missing
 * stays missing. */
store_code_t old_journal_open (old_journal_t **out, const char *directory, store_error_t *error);
/* It was never begun, so that nothing can be in it. */
bool old_journal_is_empty (const old_journal_t *self);
/* STORE_ERROR_CORRUPT when the tables lack what it has given up for them, or when its log is
 * gone. *lost, which the caller has made empty: what is lost all the same, because its log was not
 * synced, or is an empty one that somebody may have put there. */
store_code_t old_journal_judge (old_journal_t *self, const journal_tables_t *tables, lost_t *lost,
                                store_error_t *error);
/* As journal_replay. */
store_code_t old_journal_replay (old_journal_t *self, const journal_tables_t *tables,
                                 journal_visit_t *each, void *context, store_error_t *error);
/* Closes, and removes the files for good; to be called when the tables have all of it and the
 * journal has begun. Accepts NULL. */
store_code_t old_journal_remove (old_journal_t **self, store_error_t *error);
/* Closes; the files stay. Accepts NULL. */
void old_journal_free (old_journal_t **self);

#endif
