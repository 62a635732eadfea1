/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

#include "disk_words.h"

#include "log/log.h"

void disk_tell_held (const store_stats_t *stats)
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

void disk_tell_full (bool full, const store_stats_t *stats)
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
