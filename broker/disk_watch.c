/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

#include "disk_watch.h"

#include "log/log.h"

enum {
    DISK_MS = 100, /* free space, while there are commits: a second may fill the reserve */
    HOLD_MS_MAX = 30000,
    HOLD_FORGOTTEN_MS = 300000 /* a commit that finds no space behind so long is the first one */
};

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
                       : "submissions are refused: the store is full",
                   LOG_FIELDS (LOG_NUMBER ("free_bytes", stats->free_bytes)));
    else
        log_write (LOG_LEVEL_INFO, "DISK-FREE", "submissions are taken again",
                   LOG_FIELDS (LOG_NUMBER ("free_bytes", stats->free_bytes)));
}

void disk_commit_failed (disk_watch_t *self, int64_t now_ms)
{
    bool again = self->failed_ms != 0 && now_ms - self->failed_ms < HOLD_FORGOTTEN_MS;
    self->hold_ms = again ? 2 * self->hold_ms : FULL_RETRY_MS;
    if (self->hold_ms > HOLD_MS_MAX)
        self->hold_ms = HOLD_MS_MAX;
    self->failed_ms = now_ms;
    self->full = true;
}

static bool holds (const disk_watch_t *self, int64_t now_ms)
{
    return self->failed_ms != 0 && now_ms - self->failed_ms < self->hold_ms;
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
    bool full =
        stats.free_bytes < free_bytes_min || stats.write_back_stalled || holds (self, now_ms);
    if (full == self->full || (!full && !may_clear))
        return;
    self->full = full;
    engine_set_full (engine, full);
    tell_full (full, &stats);
}
