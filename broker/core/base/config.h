/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* What the engine is told at its start: limits, defaults, the seed. */
#ifndef TASKMQ_CORE_CONFIG_H
#define TASKMQ_CORE_CONFIG_H

#include <stddef.h>
#include <stdint.h>

#include "core/base/budget.h"
#include "core/base/calendar.h"
#include "core/base/retention.h"
#include "keys.h"
#include "taskmq_types.h"

enum { FULL_RETRY_MS = 1000 }; /* from a write without space to the next one (A22) */

typedef struct engine_config {
    uint8_t seed[32]; /* random, secret: tokens, lease secrets, jitter and hash keys come from it */
    const char *broker;      /* program and version, for the welcome; must outlive the engine */
    const char *broker_host; /* for who asks: where it runs, as long; … */
    uint32_t broker_pid;
    int64_t broker_started_at;      /* … and since when, wall */
    const key_public_t *server_key; /* the broker's own, for the welcome; NULL: it has none; as
                                     * long */
    const char *redact;             /* for the welcome: what exports leave out; NULL: nothing; as
                                     * long */
    /* A time zone by its name, for as long as the engine lives; NULL: there is none. */
    const zone_t *(*zone) (void *context, const char *name);
    void *zone_context;
    size_t live_tasks_max;       /* 1,000,000 */
    size_t live_bytes_max;       /* of the texts of live tasks (method, meta, labels …), with
                                 * their queues and lanes: 256 MiB */
    size_t stream_bytes_max;     /* of subscriptions, their filters and snapshots by id: 64 MiB */
    size_t worker_bytes_max;     /* of workers' places at queues, with the queues: 64 MiB */
    size_t questions_bytes_max;  /* of questions of live tasks and their answers: 64 MiB */
    size_t links_max;            /* 10,000 */
    size_t pending_inputs_soft;  /* not yet durable (A19): 20,000 */
    size_t pending_share;        /* percent of them, of one principal beside others: 50 */
    size_t pending_bytes_soft;   /* 16 MiB */
    size_t dirty_tasks_soft;     /* not yet written back (A12): 100,000 */
    size_t dirty_bytes_soft;     /* 128 MiB */
    size_t ring_bytes;           /* newest events in memory, all namespaces, 4 MiB */
    size_t looks_max;            /* of subscriptions at events, between two drains: 100,000 */
    size_t payload_cache_bytes;  /* 64 MiB */
    size_t space_tasks_max;      /* live tasks of a namespace: 1,000,000 */
    size_t space_bytes_max;      /* … of their payloads: 4 GiB */
    size_t space_values_max;     /* values of a namespace: 1,000,000 */
    size_t space_sessions_max;   /* sessions of a namespace: 100,000 */
    size_t sessions_bytes_max;   /* … of all namespaces, in memory: 128 MiB */
    size_t space_items_max;      /* items of a namespace: 10,000,000 */
    size_t box_items_max;        /* … of a box: 10,000 */
    size_t space_kept_max;       /* late successes of a namespace: 10,000, … */
    size_t space_kept_bytes_max; /* … of their bytes: 64 MiB, … */
    int64_t kept_ms;             /* … for so long: 7 d */
    size_t task_turns_max;       /* turns of a task: 1,000, … */
    size_t task_turn_bytes_max;  /* … of their bytes: 64 MiB, … */
    uint64_t turn_rate;          /* … in a second: 20, five times as many at once */
    size_t space_turn_bytes_max; /* of the turns of a namespace: 4 GiB */
    uint64_t task_artifact_bytes_max;  /* artifacts of a task, blobs included: 1 GiB, … */
    uint64_t space_artifact_bytes_max; /* … of a namespace: 16 GiB */
    size_t spaces_max;                 /* namespaces with a history: 10,000 */
    size_t spaces_at_once;             /* that an identity may make without a pause: 1,000 … */
    int64_t space_ms;        /* … and then one in so long, 10 min: so nobody makes all of them
                                 * before the first have gone, 37 days later */
    size_t dependencies_max; /* of tasks that wait for others, 1,000,000 */
    uint32_t instants_rate;  /* instants of schedules a second, 2,000; one of more than 4 KiB
                                  * counts for each of them … */
    uint32_t space_instants_rate; /* … that those of a namespace may have on average, 500 */
    int64_t ttl_ms;               /* default of a task */
    int64_t recover_max_age_ms;   /* 0: off (S9) */
    uint32_t heartbeat_ms;
    uint32_t gone_grace_ms;
    size_t waits_max;         /* ids that are waited for, all links together: 1,000,000 */
    size_t link_reads_max;    /* pages that one link may ask for at a time: 64, … */
    size_t reads_max;         /* … all links together: 4,096, … */
    size_t given_reads_max;   /* … with readers at a time: 4 */
    size_t read_looks_max;    /* entries that a page, or the turn of a count, looks at: 20,000 */
    size_t unsent_bytes_max;  /* of answers that a link does not take: 2 MiB … */
    int64_t unsent_ms_max;    /* … for so long: then it ends, 10 s */
    size_t fetched_bytes_max; /* payloads read ahead for waiting workers: 32 MiB */
    budget_t round;           /* what one round may cost */
    retention_t retention;    /* of each namespace: of what has ended and no time to live ends */
    retention_of_t retentions[RETENTIONS_MAX]; /* … but these have rules of their own */
    size_t retentions_count;
    size_t log_bytes_max;    /* of memory for logs that are not in their files yet: 8 MiB */
    uint64_t log_rate;       /* bytes a second of a task's log, 1 MiB */
    uint64_t blob_bytes_max; /* of one, 16 MiB, for the welcome: who has the files keeps to it */
    int64_t blob_claim_ms;   /* for so long who uploaded one may name it, 30 min, … */
    int64_t blob_rest_ms;  /* … and so long it is needed after that, or its last task; 60 min; */
    size_t blobs_rest_max; /* of more than 65,536 that nobody names the oldest are forgotten */
    unsigned planted_bug;  /* test-only: 0 in the broker; see planted.h */
} engine_config_t;
#define ENGINE_CONFIG_INIT                                                                         \
    {                                                                                              \
        .broker = "taskmqd", .broker_host = "", .live_tasks_max = 1000000,                         \
        .live_bytes_max = 256u << 20, .stream_bytes_max = 64u << 20,                               \
        .worker_bytes_max = 64u << 20, .questions_bytes_max = 64u << 20, .links_max = 10000,       \
        .pending_inputs_soft = 20000, .pending_share = 50, .pending_bytes_soft = 16u << 20,        \
        .dirty_tasks_soft = 100000, .dirty_bytes_soft = 128u << 20, .ring_bytes = 4u << 20,        \
        .looks_max = 100000, .payload_cache_bytes = 64u << 20, .space_tasks_max = 1000000,         \
        .space_bytes_max = (size_t) 4 << 30, .space_values_max = TMQ_VALUES_MAX,                   \
        .space_sessions_max = TMQ_SESSIONS_MAX, .sessions_bytes_max = 128u << 20,                  \
        .space_items_max = TMQ_ITEMS_MAX, .box_items_max = TMQ_BOX_ITEMS_MAX, .spaces_max = 10000, \
        .space_kept_max = TMQ_KEPT_MAX, .space_kept_bytes_max = TMQ_KEPT_BYTES_MAX,                \
        .kept_ms = TMQ_KEPT_MS, .task_turns_max = TMQ_TURNS_MAX,                                   \
        .task_turn_bytes_max = TMQ_TURNS_BYTES_MAX, .turn_rate = TMQ_TURN_RATE_MAX,                \
        .space_turn_bytes_max = TMQ_SPACE_TURN_BYTES_MAX, .spaces_at_once = 1000,                  \
        .task_artifact_bytes_max = TMQ_ARTIFACTS_BYTES_MAX,                                        \
        .space_artifact_bytes_max = TMQ_SPACE_ARTIFACT_BYTES_MAX, .space_ms = 600000,              \
        .dependencies_max = 1000000, .instants_rate = 2000, .space_instants_rate = 500,            \
        .ttl_ms = TMQ_TTL_MS_DEFAULT, .heartbeat_ms = TMQ_HEARTBEAT_MS,                            \
        .gone_grace_ms = TMQ_GONE_GRACE_MS, .waits_max = 1000000, .link_reads_max = 64,            \
        .reads_max = 4096, .given_reads_max = 4, .read_looks_max = 20000,                          \
        .unsent_bytes_max = 2u << 20, .unsent_ms_max = 10000, .fetched_bytes_max = 32u << 20,      \
        .log_bytes_max = 8u << 20, .log_rate = 1u << 20, .blob_bytes_max = 16u << 20,              \
        .blob_claim_ms = 30 * 60 * 1000, .blob_rest_ms = 60 * 60 * 1000, .blobs_rest_max = 65536,  \
        .round = BUDGET_INIT                                                                       \
    }

#endif
