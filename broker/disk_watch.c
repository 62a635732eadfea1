/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

#include "disk_watch.h"

#include "log/log.h"

enum { DISK_MS = 100 /* free space, while there are commits: a second may fill the reserve */ };

static void tell_held (const store_stats_t *stats)
{
    if (stats->tables_held)
        log_write (LOG_LEVEL_WARNING, "TABLES-HELD",
                   "another process reads taskmq.db: its log can only grow until that ends",
                   LOG_FIELDS (LOG_NUMBER ("wal_bytes", stats->wal_bytes),
                               LOG_NUMBER ("wal_bytes_max", STORE_LOG_BYTES_MAX)));
    else
        log_write (LOG_LEVEL_INFO, "TABLES-FREE", "the log of taskmq.db was emptied again",
                   LOG_FIELDS (LOG_NUMBER ("wal_bytes", stats->wal_bytes)));
}

static void tell_full (bool full, const store_stats_t *stats)
{
    if (full)
        log_write (LOG_LEVEL_WARNING, "DISK-FULL",
                   stats->write_back_stalled && stats->tables_held
                       ? "submissions are refused: another process holds the tables' log"
                       : "submissions are refused: the disk is full",
                   LOG_FIELDS (LOG_NUMBER ("free_bytes", stats->free_bytes)));
    else
        log_write (LOG_LEVEL_INFO, "DISK-FREE", "submissions are taken again",
                   LOG_FIELDS (LOG_NUMBER ("free_bytes", stats->free_bytes)));
}

void disk_commit_failed (disk_watch_t *self)
{
    self->commit_full = true;
    self->full = true;
}

bool disk_is_due (const disk_watch_t *self, int64_t now_ms, uint64_t durable)
{
    return now_ms >= self->at && durable != self->batch;
}

void disk_look (disk_watch_t *self, store_t *store, engine_t *engine, int64_t now_ms,
                uint64_t durable, uint64_t free_bytes_min, bool may_clear)
{
    store_stats_t stats;
    self->at = now_ms + DISK_MS;
    self->batch = durable;
    store_stats (store, &stats);
    if (stats.tables_held != self->held)
        tell_held (&stats);
    self->held = stats.tables_held;
    bool full = stats.free_bytes < free_bytes_min || stats.write_back_stalled || self->commit_full;
    if (may_clear)
        self->commit_full = false;
    if (full == self->full || (!full && !may_clear))
        return;
    self->full = full;
    engine_set_full (engine, full);
    tell_full (full, &stats);
}
