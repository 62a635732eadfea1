/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* The sqlite backend's state, and what its store thread does for it (A17): how rows are written and
 * forgotten, and what it does when nothing is to be written: it copies, and gives pages back to the
 * file system. When it writes is behind.h's. Private to the backend. */
#ifndef TASKMQ_STORE_STORE_THREAD_H
#define TASKMQ_STORE_STORE_THREAD_H

#include <pthread.h>
#include <stdatomic.h>

#include "store/archive/archive.h"
#include "store/behind.h"
#include "store/journal/journal.h"
#include "store/sqlite/copy.h"
#include "store/sqlite/files.h"
#include "store/sqlite/load.h"
#include "store/sqlite/reserve.h"
#include "store/sqlite/tables.h"

typedef struct sqlite_store {
    store_t base;
    store_options_t options;
    gate_t gate;
    damage_t damage;
    journal_t *journal;
    archive_t *archive; /* or NULL */
    tables_t *tables;   /* of the store thread, once it runs */
    behind_t *behind;
    view_t load;        /* of the server thread */
    overlay_t *overlay; /* of the server thread; NULL but after a commit without space */
    reserve_t reserve;
    files_t files;

    pthread_mutex_t due_lock; /* guards the view of the sweep */
    view_t due;

    int64_t upgraded_from; /* 0: the tables were of this version */

    /* Of the store thread. */
    bool may_shrink; /* something was written since free pages were looked at */
    copy_t copy;
    bool copy_caught_up; /* what waited for the last step of the copy is written */

    pthread_mutex_t lock;       /* guards what follows */
    bool ended;                 /* the store thread has */
    bool vacuum_wanted;         /* free pages are given back, whatever else is to be done, … */
    uint64_t vacuum_goal;       /* … until so many bytes were; 0: it has not begun */
    store_vacuum_t vacuum;      /* how far it is */
    store_error_t vacuum_error; /* how the last one ended */
    store_backup_t *backup;     /* asked for; NULL: none */
    store_error_t backup_error; /* how it ended */
    pthread_cond_t backed_up;

    atomic_bool no_space;       /* for a commit: a copy gives its space back */
    atomic_uint_fast64_t tasks; /* as written, as the next two */
    atomic_uint_fast64_t tombstones;
    atomic_uint_fast64_t removals;
} sqlite_store_t;

/* Of a sqlite_store_t. */
extern const behind_calls_t store_thread_calls;

#endif
