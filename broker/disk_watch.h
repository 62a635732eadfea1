/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* The look at the disk: whether submissions are refused for want of space, and whether somebody
 * holds the tables; with what the log says of both. One thread. */
#ifndef TASKMQ_BROKER_DISK_WATCH_H
#define TASKMQ_BROKER_DISK_WATCH_H

#include "core/engine/engine.h"
#include "store/store.h"

/* An all-zero disk_watch_t has not looked yet. */
typedef struct disk_watch {
    int64_t at;     /* the next look, if there are commits until then */
    uint64_t batch; /* newest durable batch at the last look */
    bool full;      /* submissions are answered STORE_FULL */
    bool held;      /* another process reads the tables */
    /* A commit found no space: … */
    int64_t failed_ms; /* mono, when; 0: none did */
    int64_t hold_ms;   /* … and so long submissions are refused behind it */
} disk_watch_t;

/* A commit found no space. Submissions are refused for FULL_RETRY_MS, and for twice as long each
 * time that this happens again within some minutes: what a store needs for them is not known, and
 * each try costs reading the state anew. */
void disk_commit_failed (disk_watch_t *self, int64_t now_ms);
/* There were commits, which may have filled it. durable: the newest batch. */
bool disk_is_due (const disk_watch_t *self, int64_t now_ms, uint64_t durable);
/* Looks, and tells the engine and the log what has changed. may_clear: what is no longer full may
 * be told, too; between the looks of each second it can only become full. */
void disk_look (disk_watch_t *self, store_t *store, engine_t *engine, int64_t now_ms,
                uint64_t durable, uint64_t free_bytes_min, bool may_clear);

#endif
