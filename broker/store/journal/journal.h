/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* The journal (A9, A10, A14): what makes a commit durable before its rows are written. One file of
 * segments, which are used again once the tables have what is in them; docs/JOURNAL.md tells its
 * form. The committing thread and the store thread hand it over to each other by a lock. */
#ifndef TASKMQ_STORE_JOURNAL_H
#define TASKMQ_STORE_JOURNAL_H

#include "core/data/lookup.h"
#include "store/error.h"
#include "store/journal/device.h"
#include "store/journal/form.h"

/* Somebody who made this file gives up what stands behind damage. */
#define JOURNAL_CUT_FILE "journal.cut"

typedef struct journal journal_t;

typedef struct journal_options {
    const char *directory;
    size_t bytes; /* of the file; under load it may grow to eight times that, at least to 64 MiB */
    bool unsynced;
    const device_t *device;  /* NULL: the files of the machine */
    unsigned planted_bug;    /* test-only: 0 in the broker; see core/base/planted.h */
    struct archive *archive; /* is given each commit that is durable; NULL: nobody is. Lent. */
} journal_options_t;

/* Where the tables stand that the journal belongs to. */
typedef struct journal_tables {
    uint64_t generation;
    uint64_t epoch;
    uint64_t written; /* batch of that epoch */
    bool clean;       /* they have all that was committed, and need no journal */
} journal_tables_t;

/* Reads and judges all of it; nothing is changed, but a missing one is made unless it is needed.
 * STORE_ERROR_CORRUPT: it is missing, damaged in front of commits that were acknowledged, of other
 * tables, or these lack what it has given up for them. */
store_code_t journal_open (journal_t **out, const journal_options_t *options,
                           const journal_tables_t *tables, bool needed, store_error_t *error);
/* Closes; what is in it stays there. Accepts NULL. */
void journal_free (journal_t **self);

/* Calls each for every batch that the tables do not hold, oldest first; the callee owns it, and a
 * code other than STORE_OK ends the replay. *cut: some behind them are lost, for none was synced,
 * or because somebody gave them up. */
typedef store_code_t journal_visit_t (void *context, batch_t *batch, store_error_t *error);
store_code_t journal_replay (journal_t *self, journal_visit_t *each, void *context, bool *cut,
                             store_error_t *error);
/* Which those are; of an opened journal, until journal_begin. */
lost_t journal_lost (const journal_t *self);
/* Gives the archive what the file still has of the newest start, also what the tables hold. Between
 * the opening and journal_begin. */
store_code_t journal_recover_archive (journal_t *self, store_error_t *error);
/* Empties the journal, which must have been replayed, durably. From now on batches belong to this
 * generation and epoch. The tables of that epoch are clean until it has returned, and not before
 * they say that they are clean no more may anything be committed: so whoever finds them like that
 * knows that the journal is of their epoch. */
store_code_t journal_begin (journal_t *self, uint64_t generation, uint64_t epoch,
                            store_error_t *error);
/* How it writes since then, for people. */
const char *journal_way (const journal_t *self);

/* Durable, all of them, when it returns STORE_OK; at most STORE_COMMIT_BATCHES_MAX. Two failures
 * keep nothing and may be followed by others: STORE_ERROR_FULL, and STORE_ERROR_BUSY when no
 * segment is free and the file has its largest size: one is free when more batches are written. Any
 * other failure is final. */
store_code_t journal_append (journal_t *self, batch_t *const *batches, size_t count,
                             store_error_t *error);
/* Batches up to it are in the tables: their room is used again. Any thread. */
void journal_written (journal_t *self, uint64_t batch);
/* Makes one segment more if most of them are in use and the file may grow, so that a commit finds
 * it there. Commits go on meanwhile. To be called before a write-back, by one thread. FULL changes
 * nothing; any other failure is final. */
store_code_t journal_make_room (journal_t *self, store_error_t *error);
/* Notes in the file what is in the tables, so that tables which lose it are known: to be called
 * when nothing was committed for a while. */
store_code_t journal_rest (journal_t *self, store_error_t *error);
/* Whether there is something to note. Any thread. */
bool journal_can_rest (journal_t *self);

#endif
