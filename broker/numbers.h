/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* The numbers of the process beside those of the engine, for who asks for stats. */
#ifndef TASKMQ_BROKER_NUMBERS_H
#define TASKMQ_BROKER_NUMBERS_H

#include "access_file.h"
#include "audit/audit.h"
#include "blob_desk.h"
#include "core/base/tenure.h"
#include "core/engine/engine.h"
#include "counters.h"
#include "export/event_log.h"
#include "export/exporter.h"
#include "intake.h"
#include "log_desk.h"
#include "net/feed.h"
#include "net/router.h"
#include "net/zap.h"
#include "search/indexer.h"
#include "store/store.h"

/* Numbers of the server's own. */
typedef struct server_counts {
#define X(name, meaning, bad) uint64_t name;
    SERVER_COUNTER_MAP (X)
#undef X
} server_counts_t;

/* Whose numbers they are; all borrowed. */
typedef struct numbers {
    const intake_t *intake;
    const router_t *router;
    const zap_t *zap;
    const feed_t *feed;
    store_t *store;
    const exporter_t *exporter;
    event_log_t *events; /* NULL: none */
    indexer_t *indexer;
    access_file_t *access;
    audit_t *audit; /* may be NULL */
    log_desk_t *logs;
    blob_desk_t *blobs;
    shared_limit_t *backup_lacks;
    const policy_t *policy; /* NULL: there is none */
    const server_counts_t *counts;
    size_t links_max;
    uint64_t durable_pos; /* of events */
    int64_t wall_ms;
    int64_t stall_ms; /* of commits */
    bool full;        /* submissions are answered STORE_FULL */
    const tenure_t *tenure;
    int64_t mono_ms;
} numbers_t;

/* Hands them to the engine, as they are now. The server's thread. */
void numbers_tell (const numbers_t *self, engine_t *engine);

#endif
