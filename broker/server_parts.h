/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* What the files of the server share: its state, and the commits of what was applied. */
#ifndef TASKMQD_SERVER_PARTS_H
#define TASKMQD_SERVER_PARTS_H

#include <poll.h>

#include "blob_desk.h"
#include "disk_watch.h"
#include "intake.h"
#include "log_desk.h"
#include "notes.h"
#include "numbers.h"
#include "peak.h"
#include "search/finder.h"
#include "server.h"
#include "store/committer.h"
#include "store/readers_pool.h"
#include "store_reach.h"
#include "sweeper.h"
#include "texts.h"
#include "trace.h"

/* Something that wakes the loop. */
typedef struct source {
    int fd;
    /* Once it is readable. True: not everything was taken, so the next round does not wait for it.
     * NULL: the socket, which the round drains in its own way. */
    bool (*take) (server_t *self);
    bool unfinished;
} source_t;

/* The first two have names, because they are not always wanted. */
enum { SOURCE_SOCKET, SOURCE_SLICE, SOURCES_MAX = 16 };

struct server {
    server_options_t options;
    engine_t *engine;
    int64_t access_at; /* the next look at the access file */
    committer_t *committer;
    readers_pool_t *readers;
    finder_t *finder;
    sweeper_t *sweeper;
    errands_t *errands;
    log_desk_t *logs;
    blob_desk_t *blobs;
    intake_t *intake;
    trace_t *trace;
    notes_t notes; /* for the record of deeds */
    source_t sources[SOURCES_MAX];
    struct pollfd polled[SOURCES_MAX]; /* as sources */
    size_t sources_count;

    now_t now;        /* of this round */
    int64_t pause_ms; /* of the loop, not yet told to the engine */
    int64_t deadline; /* monotonic, of the engine */
    int64_t maintain_at;
    int64_t commit_at; /* after a commit without space: not repeated before this time */
    int64_t stop_at;   /* of a clean stop: not waited for longer */

    boot_t boot;            /* raised by every batch handed over, for a restart of the engine */
    uint64_t pos_before;    /* of the newest event, before those that were handed over last */
    size_t inline_inputs;   /* of this store */
    size_t last_inputs;     /* of the last batch */
    int64_t commit_us;      /* what its commit took */
    size_t reads;           /* with the readers and the finder */
    texts_t texts;          /* what waits to be asked of the index of texts */
    peak_t stall;           /* the longest commits, in us */
    int64_t committed_us;   /* when batches were handed to the committer */
    size_t errands_given;   /* under way */
    uint64_t durable_batch; /* newest */
    size_t sweep_removed;   /* of the slice in the open batch */
    server_counts_t counts;
    disk_watch_t disk;
    tenure_t tenure; /* what may be done while the store is out of reach */

    /* What had arrived at heard_ms has been taken. A flood may keep the socket from ever being
     * empty; then a turn does: so many messages that one from everybody was among them (A20). */
    int64_t heard_ms;
    int64_t turn_ms;  /* when the turn under way began */
    size_t turn_left; /* messages to its end; 0: none is under way */
    int64_t look_at;  /* at what is under way to the socket */

    bool emptied;    /* the last drain emptied the socket */
    bool busy;       /* something was received or sent: look again before waiting */
    bool committing; /* the last look found something to commit */
    bool sweep_open; /* a slice was applied to the open batch */
    bool stopping;
};

/* Streams what the store has into an engine that has nothing. */
store_code_t server_stream_in (server_t *self, store_error_t *error);
/* Tells the engine of tables' rows that are not there any more. */
void server_take_forgotten (server_t *self);
/* Hands over the batches that wait, if the one before is through. */
void server_commit (server_t *self);
/* What became of a commit: it is told, or never happened (A21), or the process ends (A23). */
void server_commit_done (server_t *self, const commit_result_t *result);

#endif
