/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* The store contract: a journalled record store, not a queue (A36). Claiming and ordering are the
 * engine's work. Every backend passes tests/unit/test_store_parity.c unchanged.
 *
 * Threads. store_commit is called by one thread at a time (the committer's, or the server's while
 * it owns the commit token). store_load by the server thread only. store_read through a reader,
 * each reader by one thread at a time. store_written, store_flush, store_check, store_stats and
 * store_due from any thread. The backend may run threads of its own.
 *
 * Failures. STORE_ERROR_FULL means that there was no space and that nothing of the batch is kept;
 * the caller may go on (A21). STORE_ERROR_AWAY means that what keeps the data is out of reach for
 * now and that nothing was read; the caller refuses what needed it, or asks again later (A99).
 * Only reads answer it: a commit waits. Any other error is final: the caller ends the process
 * (A23). */
#ifndef TASKMQ_STORE_STORE_H
#define TASKMQ_STORE_STORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/data/lookup.h"
#include "core/data/vault.h"
#include "store/error.h"

typedef struct store store_t;
typedef struct store_reader store_reader_t;

#define STORE_LOG_BYTES_MAX (UINT64_C (256) << 20)

typedef struct store_options {
    const char *directory;  /* of the data; unused by memory */
    size_t dirty_tasks_max; /* written back at the latest then, default 20,000 */
    uint32_t dirty_ms_max;  /* … or after this time, default 250 */
    size_t journal_bytes;   /* of the journal at the start, default 16 MiB */
    /* No sync at a commit: a loss of power takes the newest ones. Never the default. */
    bool synchronous_normal;
    /* A transaction of a reader ends after so many microseconds, default 20,000 (A18); with 0 after
     * each step. */
    uint32_t read_us_max;
    /* What is older, or more, is forgotten: events only as far as store_exported allows. */
    int64_t events_ms_max;     /* 7 d */
    uint64_t events_bytes_max; /* 1 GiB of packed events */
    int64_t tombstones_ms_max; /* 30 d */
    uint64_t tombstones_max;   /* 1,000,000 */
    /* Without a commit for so long, free space in the files goes back to the file system: 60 s. */
    int64_t shrink_ms;
    /* Told whenever written () rose or a namespace was forgotten; on any thread; may be NULL. */
    void (*notify) (void *context);
    void *notify_context;
    /* Told once, before a background thread gives up; the caller ends the process (A23). */
    void (*failed) (void *context, const store_error_t *error);
    /* Told of each read that met a damaged row, and went on; on any thread; may be NULL. */
    void (*damaged) (void *context, const store_error_t *error);
    const struct device *journal_device; /* under the journal; NULL: the files of the machine */
    /* The log of the tables, while another process reads them: then nothing more is written back
     * until that ends. */
    uint64_t log_bytes_max; /* STORE_LOG_BYTES_MAX */
    /* What is committed is kept there, too; NULL: nowhere. Lent until the store is open. */
    const struct archive_options *archive;
    /* Where postgresql keeps everything (store/postgresql/database_options.h), lent as that; unused
     * by the others. */
    const struct database_options *database;
    unsigned planted_bug; /* test-only: 0 in the broker; see core/base/planted.h */
} store_options_t;
#define STORE_OPTIONS_INIT                                                                         \
    {                                                                                              \
        NULL, 20000, 250, 16u << 20, false, 20000, INT64_C (7) * 86400000, UINT64_C (1) << 30,     \
            INT64_C (30) * 86400000, 1000000, 60000, NULL, NULL, NULL, NULL, NULL,                 \
            STORE_LOG_BYTES_MAX, NULL, NULL, 0                                                     \
    }

/* URI is "sqlite", "memory" or "postgresql". On success *out is open, recovered, checkpointed and
 * holds a durable boot record. */
store_code_t store_open (store_t **out, const char *uri, const store_options_t *options,
                         boot_t *boot, store_error_t *error);

/* Owning. A backend whose data several processes can reach lets one of them own it at a time, for a
 * while that it prolongs by itself. sqlite and memory own theirs from store_open on, for good. */

/* Blocks until this process owns the data, and fills *boot then: nothing else of the store may be
 * called before it. Where the owner is certain since store_open it returns at once, and *boot stays
 * as that filled it. STORE_ERROR_STOPPED: stop_fd became readable first; it is only polled, and -1
 * waits for ever. STORE_ERROR_AWAY: the data is out of reach; the store is to be closed, and opened
 * anew. STORE_ERROR_OWNED: somebody else owns it, and this process was not told to wait for it. */
store_code_t store_own (store_t *self, int stop_fd, boot_t *boot, store_error_t *error);
/* CLOCK_MONOTONIC in ms until which nobody else can own the data: what was true of it in memory may
 * be told before, and nothing after (A99). INT64_MAX: nobody else ever can. It may rise at any time
 * and never falls. Never waits; any thread. */
int64_t store_valid_until (store_t *self);
/* For how many ms the data is out of reach by now; 0: it is not. A read that gave up at somebody's
 * lock, or took too long, answers STORE_ERROR_AWAY without it. Never waits; any thread. */
int64_t store_away_ms (store_t *self);
/* A commit of so many inputs is worth less than its hand-over to another thread, so the server's
 * may do it by itself (A16). 0: a commit may wait for a network, so that one never does. */
size_t store_inline_inputs (store_t *self);
/* Writes back what is dirty, leaves an empty journal, frees. *self becomes NULL. */
store_code_t store_close (store_t **self, store_error_t *error);

/* Calls each for every live task (not terminal, or with a lease), in order of number, payloads not
 * loaded; the callee owns the record. Before them every row of the kinds that live in memory, by
 * kind and key; the row is lent. Behind them every namespace with its last sequence. To be called
 * once after store_open and again after a failed commit (A21). */
typedef struct store_live_visitor {
    void (*task) (void *context, record_t *record);
    void (*ns) (void *context, const char *name, uint64_t last_seq);
    void *context;
    void (*row) (void *context, const row_t *row); /* may be NULL */
} store_live_visitor_t;
store_code_t store_live (store_t *self, const store_live_visitor_t *visitor, store_error_t *error);

/* What one commit takes: beyond that a transaction costs no less for each batch. */
enum { STORE_COMMIT_BATCHES_MAX = 16, STORE_COMMIT_BYTES_MAX = 16 * 1024 * 1024 };

/* All or nothing, in order of their numbers, durable when it returns STORE_OK; at most
 * STORE_COMMIT_BATCHES_MAX of them, in one transaction with one sync. Takes the batches in every
 * case. It may take long: while the data is out of reach it waits, and when a commit's answer was
 * lost it finds out by itself whether that had landed, and repeats it if it had not. */
store_code_t store_commit (store_t *self, batch_t *const *batches, size_t count,
                           store_error_t *error);

/* The newest batch whose rows reads can see; every batch up to it is in the tables. */
uint64_t store_written (store_t *self);
/* Asks for a write-back soon (at most one per 20 ms is done). */
void store_flush (store_t *self);

/* Events up to this position stand in the exports, or nobody needs them: the store may forget them
 * when they are old or many (A52). Before the first call it forgets none. Any thread. */
void store_exported (store_t *self, uint64_t pos);

/* Point reads on the server thread. */

/* Fills the answers of all keys from the tables (not from what is not yet written). …_AWAY: no
 * answer of any key was filled. */
store_code_t store_load (store_t *self, lookup_t *keys, size_t count, store_error_t *error);

/* Reads in pages, on reader threads. */

store_code_t store_reader_open (store_reader_t **out, store_t *store, store_error_t *error);
void store_reader_close (store_reader_t **self);
/* Its reads wait while the data is out of reach, in place of …_AWAY: for threads that nobody waits
 * for. */
void store_reader_be_patient (store_reader_t *self);
/* Runs one job in one or more read transactions of at most 20 ms each (A18). …_AWAY: the job has no
 * answers and may be run again as it is. */
store_code_t store_reader_run (store_reader_t *self, read_t *read);

/* Copies. */

/* A copy of all that was durable when it was asked for, made while the store goes on. */
typedef struct store_backup {
    const char *path; /* of the new file, which must not be there */
    /* Asked at each step, on the store's thread: false ends it. May be NULL. */
    bool (*goes_on) (void *context);
    void *context;
    /* answers: what the copy holds */
    uint64_t generation;
    uint64_t epoch;
    uint64_t batch;    /* the newest, of that epoch */
    int64_t newest_ms; /* its time */
    uint64_t tasks;
    uint64_t steps;
    int64_t step_us_max; /* the longest that the copy held up a write-back */
} store_backup_t;

/* Waits until the copy is made; any thread but those of commits and reads. It is not synced: who
 * keeps it does that, piece by piece, for one large sync would hold up the commits. One at a
 * time: a second is STORE_ERROR_BUSY. STORE_ERROR_FULL: there was no space, and the copy gave its
 * own back at once. After any error there is no file. The store itself goes on in every case.
 * STORE_ERROR_FOREIGN: this backend keeps nothing that could be copied. */
store_code_t store_backup (store_t *self, store_backup_t *backup, store_error_t *error);

/* Makes a copy in this directory ready to be opened there by store_open: looks whether it is ours
 * and whole, and gives it a history of its own, so that cursors of the old one find a gap (A50).
 * The answers of *found are filled with what it held, *generation with that of the new history;
 * nobody else may use the directory. */
store_code_t store_adopt (const char *directory, store_backup_t *found, uint64_t *generation,
                          store_error_t *error);
/* The same, but with what an archive has behind the copy (store/archive/archive_history.h): all, or
 * up to a moment. A blob that its batches name is told of, and whether it is gone; of one the last
 * word counts. Answers: what it came to. More errors: …_CORRUPT and …_FOREIGN as those of
 * archive_history_open and _next. */
typedef struct store_more {
    const char *archive;                                          /* directory */
    int64_t until_ms;                                             /* wall; INT64_MAX: all */
    void (*blob) (void *context, const uint8_t *hash, bool gone); /* may be NULL */
    void *context;
    uint64_t batches; /* that were taken */
    uint64_t epoch;   /* of the newest, … */
    uint64_t batch;
    int64_t newest_ms;
    uint64_t tasks;
} store_more_t;
store_code_t store_adopt_more (const char *directory, store_backup_t *found, store_more_t *more,
                               uint64_t *generation, store_error_t *error);
/* The same as store_adopt for the database that was closed there: what follows is a history of its
 * own. */
store_code_t store_begin_history (const char *directory, uint64_t *generation,
                                  store_error_t *error);
/* Looks at the structure of a copy in this directory, and changes nothing. */
store_code_t store_look (const char *directory, store_error_t *error);
/* Tells of each blob that tasks of a copy in this directory name: its hash (TMQ_BLOB_HASH_BYTES)
 * and its length. Changes nothing. */
store_code_t store_look_blobs (const char *directory,
                               void (*blob) (void *context, const uint8_t *hash, uint64_t bytes),
                               void *context, store_error_t *error);

/* All that a copy in this directory has, for a store that is to be filled with it. Batches come as
 * in no life: every task once, by number, with its attempts; behind all tasks the tombstones, the
 * oldest first, then the blocks of events by position, each in a batch with its time, then the rows
 * of all kinds but ORDER. */
typedef struct store_source store_source_t;
typedef struct store_source_facts {
    uint64_t epoch;
    int64_t last_number;
    uint64_t last_pos;
    int64_t newest_ms;
} store_source_facts_t;
/* Nobody may write the copy meanwhile. *out is to be closed also after an error. */
store_code_t store_source_open (store_source_t **out, const char *directory,
                                store_source_facts_t *facts, store_error_t *error);
/* The next batch, which belongs to the caller; NULL: that was all. STORE_ERROR_DAMAGED: a row is
 * not what was written. */
store_code_t store_source_next (store_source_t *self, batch_t **out, store_error_t *error);
void store_source_close (store_source_t **self); /* accepts a NULL object */

/* Space. */

/* How far the vacuum is. */
typedef struct store_vacuum {
    uint64_t file_bytes;  /* of the tables' file, as it will be when its log is in it */
    uint64_t free_bytes;  /* … of which nothing is used */
    uint64_t given_bytes; /* back to the file system, since it began */
    bool more;            /* it goes on */
} store_vacuum_t;

/* With begin: gives the free space in the tables' file back to the file system, step by step beside
 * the write-backs and behind a copy that is being made. What becomes free meanwhile may stay. Begun
 * again while it goes on, it goes on. Tells how far it is: 0 bytes before the first step. Never
 * waits; any thread. STORE_ERROR_FULL: it ended, since there was no space to move what is kept;
 * nothing is lost. STORE_ERROR_FOREIGN: this backend has no file. */
store_code_t store_vacuum (store_t *self, bool begin, store_vacuum_t *out, store_error_t *error);

/* Large bodies. */

/* Where they are kept beside their files, for whoever owns the data next; NULL: they are files
 * alone. To be used behind store_own, by one thread, and no longer than the store. */
const vault_t *store_vault (store_t *self);

/* Removal, numbers. */

/* Any error: the files are no longer those that were opened, and what is committed now would be
 * lost. To be asked each second. Any thread. */
store_code_t store_check (store_t *self, store_error_t *error);

/* Terminal, unleased tasks with 0 < expires_at <= wall_ms, and rows of any kind with the same, all
 * without bodies, in an order of the backend's. The engine decides about each. */
typedef struct store_sweep {
    int64_t wall_ms;
    size_t limit; /* of tasks, and of rows */
    /* The place: only tasks and rows behind it are found, and it moves on. All zero: from the
     * beginning. */
    int64_t expires_at;
    int64_t number;
    int64_t row_expires_at;
    row_kind_t row_kind;
    row_key_t row_key;
    due_t found; /* belongs to the caller (due_clear) */
    bool more;   /* there may be more behind the place */
} store_sweep_t;
/* …_AWAY: nothing was found. */
store_code_t store_due (store_t *self, store_sweep_t *sweep, store_error_t *error);

/* What was forgotten since the last time, to be told to the engine: after each store_live, and when
 * notify was called. The caller frees the list. Any thread. */
void store_forgotten (store_t *self, forgotten_t *out);

typedef struct store_stats {
    uint64_t tasks; /* rows */
    uint64_t tombstones;
    uint64_t removals; /* of tasks, written since the start or a little more; only ever grows */
    uint64_t database_bytes;
    uint64_t wal_bytes;
    uint64_t journal_bytes;
    uint64_t free_bytes; /* of the file system */
    uint64_t commits;
    uint64_t commit_us;   /* spent in commits, total */
    uint64_t dirty_tasks; /* not yet written back */
    uint64_t dirty_bytes;
    uint64_t damaged;         /* reads that met a damaged row */
    uint64_t unknown_commits; /* whose answer was lost, and that were settled */
    uint64_t pinned_ms; /* age of the oldest foreign transaction that keeps what was deleted; 0 */
    uint64_t standbys;  /* that wait for the database */
    bool taken_over;    /* by this start, from an owner that stood still */
    bool write_back_stalled; /* waits for space (A22) */
    int schema;              /* version of what is stored; 0 where nothing is */
    int upgraded_from;       /* … that this start found, when it was an earlier one; else 0 */
    bool tables_held;        /* another process reads them, so their log can only grow */
    bool synchronous_normal; /* a loss of power may lose what was acknowledged */
    bool archive_stalled;    /* what is committed waits for the archive … */
    uint64_t archive_backlog_bytes; /* … so much of it */
    uint64_t archive_lag_ms;        /* … for so long */
    uint64_t archive_gaps;          /* since the start: it lacks something for good */
} store_stats_t;
void store_stats (store_t *self, store_stats_t *out);

#endif
