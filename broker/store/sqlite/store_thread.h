/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* The sqlite backend's state, and its thread (A17): what it writes back, forgets, copies and gives
 * back to the file system. Private to the backend. */
#ifndef TASKMQ_STORE_STORE_THREAD_H
#define TASKMQ_STORE_STORE_THREAD_H

#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

#include "store/archive/archive.h"
#include "store/dirty.h"
#include "store/follow.h"
#include "store/journal/journal.h"
#include "store/overlay.h"
#include "store/sqlite/copy.h"
#include "store/sqlite/files.h"
#include "store/sqlite/load.h"
#include "store/sqlite/reserve.h"
#include "store/sqlite/tables.h"
#include "timestamp.h"

enum { FLUSH_MS_MIN = 20 /* between two write-backs that were asked for (A11) */ };

typedef struct sqlite_store {
    store_t base;
    store_options_t options;
    gate_t gate;
    damage_t damage;
    journal_t *journal;
    archive_t *archive; /* or NULL */
    tables_t *tables;   /* of the store thread, once it runs */
    view_t load;        /* of the server thread */
    overlay_t *overlay; /* of the server thread; NULL but after a commit without space */
    reserve_t reserve;
    files_t files;
    followed_t followed;

    pthread_mutex_t due_lock; /* guards the view of the sweep */
    view_t due;

    int64_t upgraded_from; /* 0: the tables were of this version */
    pthread_t thread;
    bool thread_runs;
    int64_t expiry_ms;    /* of the thread: by it is judged what is old; 0: nothing is yet */
    pthread_mutex_t lock; /* guards what follows */
    pthread_cond_t changed;
    dirty_t pending; /* to be written */
    dirty_t writing; /* being written */
    bool flush;
    bool stop;
    bool stalled;
    bool may_shrink;      /* something was written since free pages were looked at */
    int64_t commit_ms;    /* when the last commit came */
    store_error_t broken; /* a final failure of the store thread */
    uint64_t commits;
    uint64_t commit_us;
    uint64_t tasks; /* as written */
    uint64_t tombstones;
    uint64_t removals;
    forgotten_t forgotten; /* not told yet */
    size_t forgotten_capacity;

    bool vacuum_wanted;         /* free pages are given back, whatever else is to be done, … */
    uint64_t vacuum_goal;       /* … until so many bytes were; 0: it has not begun */
    store_vacuum_t vacuum;      /* how far it is */
    store_error_t vacuum_error; /* how the last one ended */

    store_backup_t *backup;     /* asked for; NULL: none */
    store_error_t backup_error; /* how it ended */
    pthread_cond_t backed_up;
    copy_t copy; /* of the store thread */

    atomic_bool no_space; /* for a commit: a copy gives its space back */
    atomic_uint_fast64_t written;
    atomic_uint_fast64_t exported; /* events up to it may be forgotten */
} sqlite_store_t;

/* Waits for a change with the lock held, at most until mono_ms. */
static inline void wait_until (sqlite_store_t *self, int64_t mono_ms)
{
    struct timespec until = {mono_ms / 1000, mono_ms % 1000 * 1000000};
    pthread_cond_timedwait (&self->changed, &self->lock, &until);
}

/* The thread; context is a sqlite_store_t. It ends when `stop` is set and nothing is pending, or
 * with a failure, which stands in `broken` and is told to the options' `failed`. */
void *store_thread_run (void *context);

#endif
