/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* A key of the configuration that the running server may take is set here and nowhere else. */
#include "settings.h"

void settings_fill (server_options_t *out, const config_t *config, size_t links)
{
    const uint64_t *limits = config->numbers;
    out->engine.broker = "taskmqd " TASKMQ_VERSION;
    out->engine.live_tasks_max = limits[CONFIG_LIVE_TASKS];
    out->engine.live_bytes_max = limits[CONFIG_LIVE_BYTES];
    out->engine.space_tasks_max = limits[CONFIG_NAMESPACE_TASKS];
    out->engine.space_bytes_max = limits[CONFIG_NAMESPACE_BYTES];
    out->engine.task_turns_max = limits[CONFIG_TASK_TURNS];
    out->engine.task_turn_bytes_max = limits[CONFIG_TASK_TURN_BYTES];
    out->engine.turn_rate = limits[CONFIG_TURN_RATE];
    out->engine.space_turn_bytes_max = limits[CONFIG_NAMESPACE_TURN_BYTES];
    out->engine.task_artifact_bytes_max = limits[CONFIG_TASK_ARTIFACT_BYTES];
    out->engine.space_artifact_bytes_max = limits[CONFIG_NAMESPACE_ARTIFACT_BYTES];
    out->engine.spaces_max = limits[CONFIG_NAMESPACES];
    out->engine.spaces_at_once = (limits[CONFIG_NAMESPACES] + 9) / 10;
    out->engine.links_max = links;
    out->engine.link_reads_max = limits[CONFIG_LINK_READS];
    out->engine.reads_max = limits[CONFIG_READS];
    out->engine.unsent_bytes_max = limits[CONFIG_UNSENT_BYTES];
    out->engine.stream_bytes_max = limits[CONFIG_SUBSCRIPTION_BYTES];
    out->engine.worker_bytes_max = limits[CONFIG_WORKER_BYTES];
    out->engine.pending_inputs_soft = limits[CONFIG_PENDING_INPUTS_SOFT];
    out->engine.pending_share = limits[CONFIG_PENDING_SHARE];
    out->engine.pending_bytes_soft = limits[CONFIG_PENDING_BYTES_SOFT];
    out->engine.dirty_tasks_soft = limits[CONFIG_DIRTY_TASKS_SOFT];
    out->engine.dirty_bytes_soft = limits[CONFIG_DIRTY_BYTES_SOFT];
    out->engine.ring_bytes = limits[CONFIG_EVENT_RING];
    out->engine.payload_cache_bytes = limits[CONFIG_PAYLOAD_CACHE];
    out->engine.retention = config_retention (config);
    out->engine.retentions_count = config_retentions (config, out->engine.retentions);
    out->engine.ttl_ms = (int64_t) limits[CONFIG_TTL];
    out->engine.recover_max_age_ms = (int64_t) limits[CONFIG_RECOVER_MAX_AGE];
    out->engine.heartbeat_ms = (uint32_t) limits[CONFIG_HEARTBEAT];
    out->engine.gone_grace_ms = (uint32_t) limits[CONFIG_GRACE];
    out->drain_messages = limits[CONFIG_DRAIN_MESSAGES];
    out->drain_requests = limits[CONFIG_DRAIN_REQUESTS];
    out->drain_bytes = limits[CONFIG_DRAIN_BYTES];
    out->drain_ms = (int64_t) limits[CONFIG_DRAIN_TIME];
    out->lines = (inbox_limits_t){.line_messages = limits[CONFIG_LINE_MESSAGES],
                                  .line_bytes = limits[CONFIG_LINE_BYTES],
                                  .messages = limits[CONFIG_LINES_MESSAGES],
                                  .bytes = limits[CONFIG_LINES_BYTES]};
    out->pending_inputs_hard = limits[CONFIG_PENDING_INPUTS_HARD];
    out->pending_bytes_hard = limits[CONFIG_PENDING_BYTES_HARD];
    out->dirty_bytes_hard = limits[CONFIG_DIRTY_BYTES_HARD];
    out->free_bytes_min = limits[CONFIG_FREE_SPACE_MIN];
    out->away_ms = (int64_t) limits[CONFIG_AWAY];
    out->slow_ms = (uint32_t) limits[CONFIG_LOG_SLOW];
    out->engine.log_bytes_max = limits[CONFIG_LOGS_QUEUE];
    out->engine.log_rate = limits[CONFIG_LOGS_RATE];
    out->logs = (shelf_limits_t){.stream_bytes = limits[CONFIG_LOGS_STREAM],
                                 .disk_bytes = limits[CONFIG_LOGS_DISK],
                                 .tasks = limits[CONFIG_LOGS_TASKS],
                                 .free_bytes_min = limits[CONFIG_FREE_SPACE_MIN]};
    out->blobs = (depot_limits_t){.blob_bytes = limits[CONFIG_BLOB_BYTES],
                                  .disk_bytes = limits[CONFIG_BLOBS_DISK],
                                  .free_bytes_min = limits[CONFIG_FREE_SPACE_MIN]};
    out->engine.blob_bytes_max = limits[CONFIG_BLOB_BYTES];
    out->readers = limits[CONFIG_READERS];
    out->engine.given_reads_max = 2 * limits[CONFIG_READERS]; /* one waits while one is read */
    out->peers_max = 2 * links;
}
