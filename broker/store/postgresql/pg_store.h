/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* The postgresql backend's state. Private to the backend.
 *
 * Links. Each belongs to one thread: commits, the store thread's write-backs, point reads and the
 * sweep (under locks), each reader's own. Whoever finds his link lost says so (pg_store_lost), and
 * answers STORE_ERROR_AWAY while pg_store_is_away; the keeper's thread tries until the server is
 * back, so that no thread that somebody waits for ever connects. */
#ifndef TASKMQ_STORE_PG_STORE_H
#define TASKMQ_STORE_PG_STORE_H

#include <pthread.h>
#include <stdatomic.h>

#include "store/behind.h"
#include "store/postgresql/pg_instance.h"
#include "store/postgresql/pg_link.h"
#include "store/store_backend.h"
#include "store/told.h"

typedef struct pg_store {
    store_t base;
    store_options_t options; /* directory and database are copies of its own */
    database_options_t database;
    pg_target_t target;
    behind_t *behind;
    overlay_t *overlay; /* of the server thread; NULL but after a commit without space */

    struct pg_commit *commit; /* pg_commit.h: of the thread that commits */
    struct pg_beat *beat;     /* pg_beat.h */
    struct pg_tables *tables; /* pg_tables.h: of the store thread, once it runs */
    struct pg_keeper *keeper; /* pg_keeper.h */
    struct pg_watch *watch;   /* pg_watch.h: of the keeper's thread */
    struct pg_kept *load;     /* of the server thread */
    struct pg_kept *due;
    struct pg_readers *readers;     /* pg_readers.h */
    struct pg_blobs *blobs;         /* pg_blobs.h: of the thread that has the bodies */
    bool taken_over;                /* from an owner that stood still */
    bool owned;                     /* store_own was done … */
    uint64_t epoch;                 /* … from this epoch on */
    char owner[PG_OWNER_TEXT_SIZE]; /* … as table shard has us */

    atomic_int_fast64_t away_since; /* mono; 0: it is not */
    atomic_bool commits_wait;       /* … for a standby of the database, though it answers */
    pthread_mutex_t told_lock;      /* guards told, and changes of away_since with it */
    told_t told;
    pthread_mutex_t whole_lock; /* pg_whole.h; guards what is known, and whole_server */
    uint64_t known_last;        /* batch of this epoch that is known to be durable; 0: none */
    /* Up to which one the tables are known to have everything, and 1; 0: not even what was there
     * before this epoch. */
    uint64_t known_written;
    uint8_t known_body[TMQ_BLOB_HASH_BYTES]; /* hash of the newest large body; zeros: none */
    int64_t known_touched;                   /* … and when it was */
    uint64_t known_bodies;                   /* how often that one has changed */
    /* At the start and at the end nobody waits for a database that is out of reach: the supervisor
     * tries again, and what is committed stands in the journal. */
    atomic_bool impatient;
    atomic_bool ends; /* it is being closed: what is written back is given up sooner */
    atomic_uint_fast64_t deleted_bytes;  /* about: of the journal, since it was vacuumed */
    atomic_uint_fast64_t database_bytes; /* of all tables with their indexes, at the last look */
    atomic_uint_fast64_t journal_bytes;  /* … of the journal */
    atomic_uint_fast64_t damaged;
    atomic_uint_fast64_t unknown_commits; /* whose answer was lost, and that were settled */
    atomic_int_fast64_t pinned_ms; /* age of the oldest transaction of somebody, at the last look */
    atomic_uint_fast64_t standbys; /* that wait for the database, at the last look */
    atomic_uint_fast64_t tasks;    /* as written, as the next two */
    atomic_uint_fast64_t tombstones;
    atomic_uint_fast64_t removals;
} pg_store_t;

/* Any thread. */

/* A link is lost, or was not made: reads answer STORE_ERROR_AWAY until the keeper has connected. It
 * is told, and again for another reason, as often as told.h allows. */
void pg_store_lost (pg_store_t *self, const store_error_t *error);
bool pg_store_is_away (pg_store_t *self);
/* It is back, or was not away. text: what became of a commit in doubt, or NULL. */
void pg_store_found (pg_store_t *self, const char *text);
/* What the link noted of commits that wait for a standby of the database, if anything: it is told
 * as the reason, and that it is back is not told before a commit is acknowledged
 * (pg_store_commits). */
void pg_store_waits (pg_store_t *self, pg_link_t *link);
void pg_store_commits (pg_store_t *self);
/* A read met a damaged row: it is counted and told, and the read goes on. STORE_OK for that, any
 * other code as it came. */
store_code_t pg_store_go_on (pg_store_t *self, store_code_t code, const store_error_t *error);
/* Where nobody but the server has to have what is acknowledged, that is told. */
void pg_store_say_replicated (pg_store_t *self);
void pg_store_say (pg_store_t *self, database_word_t word, const char *text);

#endif
