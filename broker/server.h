/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* The loop that owns the ROUTER and drives the engine (A15). */
#ifndef TASKMQ_BROKER_SERVER_H
#define TASKMQ_BROKER_SERVER_H

#include "access_file.h"
#include "audit/audit.h"
#include "blobs/depot.h"
#include "core/engine/engine.h"
#include "doors.h"
#include "errands.h"
#include "exits.h"
#include "export/event_log.h"
#include "export/exporter.h"
#include "inbox.h"
#include "key_change.h"
#include "logs/shelf.h"
#include "net/feed.h"
#include "net/router.h"
#include "net/zap.h"
#include "search/indexer.h"
#include "store/store.h"

typedef struct server server_t;

/* Takes over a configuration that the errands' thread has read again; on the loop's thread, after
 * each errand. */
typedef void reload_t (void *context);

typedef struct server_options {
    engine_config_t engine;
    size_t drain_messages;
    size_t drain_requests;
    size_t drain_bytes;
    int64_t drain_ms;
    inbox_limits_t lines;
    size_t pending_inputs_hard; /* beyond it nothing is read (A19) */
    size_t pending_bytes_hard;
    size_t dirty_bytes_hard;
    uint64_t free_bytes_min; /* below it submissions are refused (A22) */
    int64_t away_ms;         /* a store out of reach for longer: UNAVAILABLE (A100) */
    uint32_t slow_ms;        /* requests that take so long are told in the log; 0: none */
    shelf_limits_t logs;
    const char *logs_directory; /* as long */
    depot_limits_t blobs;
    const char *blobs_directory;
    size_t readers;
    size_t peers_max;               /* of the router */
    const errand_runner_t *runners; /* of the requests that need a file; copied */
    size_t runners_count;
    errand_judge_t judge; /* of who may still ask for them */
    /* All borrowed, to outlive the server. */
    store_t *store;
    boot_t boot; /* as the store was opened */
    router_t *router;
    zap_t *zap;
    const exporter_t *exporter;
    event_log_t *events; /* NULL: none is kept */
    indexer_t *indexer;
    const char *directory; /* of the data */
    access_file_t *access;
    audit_t *audit;               /* may be NULL */
    shared_limit_t *backup_lacks; /* large bodies, of the newest backup */
    feed_t *feed;
    doors_t *doors;
    key_change_t *key_change;
    int written_fd; /* a wakeup that the store's notify raises */
    int signal_fd;  /* signalfd: SIGTERM and SIGINT stop, SIGHUP reloads */
    reload_t *reload;
    void *reload_context;
    void (*gone) (void *context, peer_t peer); /* told of each connection that ended */
    void *gone_context;
} server_options_t;

/* Streams the live tasks in and starts the committer, the readers and the sweeper. EXITS_OK, else
 * the line has been logged. */
exits_t server_new (server_t **out, const server_options_t *options);
/* Other limits for the running server; of the options only those that settings_fill sets are looked
 * at. What only a start can change has to be as it was. */
void server_configure (server_t *self, const server_options_t *options);
void server_free (server_t **self); /* accepts a NULL object */
/* Until a signal: then nothing new is taken, everything taken is committed and answered. */
void server_run (server_t *self);

#endif
