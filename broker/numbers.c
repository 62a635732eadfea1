/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

#include "numbers.h"

#include <stdlib.h>
#include <string.h>

enum { DAY_MS = 24 * 60 * 60 * 1000 };

/* All of a telling, in the order in which it is shown. */
enum { NUMBERS_MAX = 160 };

typedef struct told {
    counter_t all[NUMBERS_MAX];
    size_t count;
} told_t;

static void put (told_t *self, const counter_t *counters, size_t count)
{
    if (count > NUMBERS_MAX - self->count)
        abort (); /* the list has grown, and its room has not */
    memcpy (self->all + self->count, counters, count * sizeof (*counters));
    self->count += count;
}

#define PUT(told, counters) put (told, counters, sizeof (counters) / sizeof ((counters)[0]))

/* What comes in, and from whom. */
static void put_peers (const numbers_t *self, told_t *told)
{
    intake_stats_t intake;
    router_stats_t router;
    zap_stats_t zap;
    intake_stats (self->intake, &intake);
    router_stats (self->router, &router);
    zap_stats (self->zap, &zap);
    const counter_t counters[] = {
#define X(name, meaning, bad) {"server_" #name, self->counts->name},
        SERVER_COUNTER_MAP (X)
#undef X
            {"refused_messages", intake.refused_messages},
        {"inbox_messages", intake.inbox_messages},
        {"inbox_bytes", intake.inbox_bytes},
        {"inbox_refused", intake.inbox_refused},
        {"links_max", self->links_max},
        {"peers", router.peers},
        {"send_unread_full", router.unread_full},
        {"unread_bytes", router.unread_bytes},
        {"connections", router.connections},
        {"connections_cut_mute", router.cut_mute},
        {"connections_cut_endless", router.cut_endless},
        {"peers_refused", router.refused_peers},
        {"zap_accepted", zap.accepted},
        {"zap_refused", zap.refused},
        {"zap_silent", zap.silent},
        {"unauthenticated", router.unauthenticated},
        {"connections_cut_revoked", router.cut_revoked},
        {"connections_cut_claimed", router.cut_claimed},
        {"connections_cut_crowd", router.cut_crowd},
        {"connections_mute", router.mute},
        {"accept_failed", router.accept_failed},
        {"send_failed", router.send_failed},
        {"libzmq", router_zeromq_version ()},
    };
    PUT (told, counters);
}

static void put_store (const numbers_t *self, told_t *told)
{
    store_stats_t store;
    indexer_stats_t search;
    store_stats (self->store, &store);
    indexer_stats (self->indexer, &search);
    const counter_t counters[] = {
        {"stored_tasks", store.tasks},
        {"tombstones", store.tombstones},
        {"database_bytes", store.database_bytes},
        {"wal_bytes", store.wal_bytes},
        {"journal_bytes", store.journal_bytes},
        {"free_bytes", store.free_bytes},
        {"commits", store.commits},
        {"commit_us", store.commit_us},
        {"commit_stall_ms", (uint64_t) self->stall_ms},
        {"store_dirty_tasks", store.dirty_tasks},
        {"store_dirty_bytes", store.dirty_bytes},
        {"store_damaged", store.damaged},
        {"write_back_stalled", store.write_back_stalled},
        {"tables_held", store.tables_held},
        {"search_damaged", search.broken},
        {"synchronous_normal", store.synchronous_normal},
        {"archive_stalled", store.archive_stalled},
        {"archive_backlog_bytes", store.archive_backlog_bytes},
        {"archive_lag_ms", store.archive_lag_ms},
        {"archive_gaps", store.archive_gaps},
        {"store_full", self->full},
        {"store_away_ms", (uint64_t) store_away_ms (self->store)},
        {"taken_over", store.taken_over},
        {"unknown_commits", store.unknown_commits},
        {"database_pinned_ms", store.pinned_ms},
        {"standbys", store.standbys},
    };
    PUT (told, counters);
}

/* What is written beside the store. */
static void put_files (const numbers_t *self, told_t *told)
{
    exporter_stats_t exporter;
    event_log_stats_t events;
    audit_stats_t audit;
    const bool keeps_events = self->events != NULL;
    const shelf_stats_t logs = log_desk_stats (self->logs);
    const depot_stats_t blobs = blob_desk_stats (self->blobs);
    exporter_stats (self->exporter, &exporter);
    event_log_stats (self->events, &events);
    audit_stats (self->audit, &audit);
    const counter_t counters[] = {
        {"access_stale", access_file_is_stale (self->access)},
        {"access_principals", self->policy == NULL ? 0 : policy_count (self->policy)},
        {"export_lines", exporter.lines},
        {"export_errors", exporter.errors},
        {"events_lines", events.lines},
        {"events_gaps", events.gaps},
        {"events_errors", events.errors},
        {"events_early", events.early},
        {"events_bytes", events.bytes},
        {"events_stalled", events.stalled},
        {"events_lag",
         keeps_events && self->durable_pos > events.pos ? self->durable_pos - events.pos : 0},
        {"audit_lines", audit.lines},
        {"audit_lost", audit.lost},
        {"audit_errors", audit.errors},
        {"logs_tasks", logs.tasks},
        {"logs_bytes", logs.bytes},
        {"logs_lost", logs.lost},
        {"logs_evicted", logs.evicted},
        {"logs_errors", logs.errors},
        {"blobs", blobs.blobs},
        {"blobs_bytes", blobs.bytes},
        {"blobs_errors", blobs.errors},
        {"blobs_stored", blobs.stored},
        {"blobs_stored_bytes", blobs.stored_bytes},
        {"uploads", blobs.uploads},
        {"uploads_still", blobs.parked},
        {"uploads_dropped", blobs.dropped},
        {"backup_lacks", shared_limit (self->backup_lacks)},
        {"feed_published", feed_published (self->feed)},
        {"export_lag", self->durable_pos > exporter.pos ? self->durable_pos - exporter.pos : 0},
    };
    PUT (told, counters);
}

void numbers_tell (const numbers_t *self, engine_t *engine)
{
    told_t told = {.count = 0};
    put_peers (self, &told);
    put_store (self, &told);
    put_files (self, &told);
    if (tenure_has_end (self->tenure)) {
        const uint64_t left_ms = (uint64_t) tenure_left_ms (self->tenure, self->mono_ms);
        put (&told, &(counter_t){"lease_left_ms", left_ms}, 1);
    }
    const int64_t loss_ms = policy_next_loss_ms (self->policy, self->wall_ms);
    if (loss_ms != INT64_MAX) {
        const uint64_t days = (uint64_t) (loss_ms - self->wall_ms) / DAY_MS;
        put (&told, &(counter_t){"key_days_left", days}, 1);
    }
    engine_set_counters (engine, told.all, told.count);
}
