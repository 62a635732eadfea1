/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* The parts of the running broker: opened in order, closed in the reverse order. */
#ifndef TASKMQ_BROKER_DAEMON_H
#define TASKMQ_BROKER_DAEMON_H

#include <pthread.h>
#include <stdbool.h>

#include "access_requests.h"
#include "audit/audit.h"
#include "config/config.h"
#include "data.h"
#include "doors.h"
#include "exits.h"
#include <limits.h>

#include "export/event_log.h"
#include "export/event_witness.h"
#include "export/exporter.h"
#include "net/feed.h"
#include "net/router.h"
#include "owning.h"
#include "records.h"
#include "server.h"
#include "start_stop.h"
#include "store/bar.h"
#include "zones.h"

/* Open files that are no connections: databases, logs of tasks, sockets. */
enum { DAEMON_FILES_SPARE = 96 };

/* A configuration on its way from the thread that reads it to the loop. */
typedef struct reloading {
    errand_runner_t inner; /* what reads the access file */
    pthread_mutex_t lock;  /* guards what follows; if inner */
    bool fresh;
    config_t wanted; /* if fresh */
} reloading_t;

enum { DAEMON_RUNNERS = ACCESS_RUNNERS + 1 + RECORDS_RUNNERS + 1 };

/* Everything that is opened in the order of the fields. */
typedef struct daemon {
    int argc; /* of main, for a reload */
    char **argv;
    /* As reload.h has them. */
    void (*reload_open) (struct daemon *self);
    void (*reload_close) (struct daemon *self);
    reload_t *reload_take;
    config_t config;
    uint64_t links; /* limits/links, or as many as there are open files for */
    uint64_t mute;  /* the same of limits/mute */
    data_t data;
    int signal_fd;
    int written_fd; /* the server's and the exporter's news of write-backs */
    int export_fd;
    int events_fd;
    owning_t owning;
    start_stop_t start_stop; /* while a start may wait for a database */
    store_t *store;
    boot_t boot;
    audit_t *audit;                /* NULL: none is kept */
    shared_limit_t backup_lacks;   /* large bodies, of the newest one */
    shared_limit_t free_bytes_min; /* limits/free_space_min, also after a reload */
    watermark_t watermark;         /* of what follows */
    exporter_t *exporter;
    event_files_t *event_files; /* until `events` has them; NULL: none are kept */
    event_log_options_t events_options;
    event_log_t *events; /* NULL: none */
    indexer_t *indexer;
    access_file_t *access;
    access_requests_t requests; /* about keys and the access file; if access */
    records_t *records;
    errand_runner_t runners[DAEMON_RUNNERS];
    reloading_t reloading;
    doors_t doors;
    key_change_t key_change; /* if has_key_change */
    bool has_key_change;
    zap_t *zap;
    router_t *router;
    feed_t *feed;
    bar_t followers; /* of the exports and the index */
    zones_t *zones;
    char *redact;                 /* what exports leave out, for welcomes; NULL: nothing */
    char host[HOST_NAME_MAX + 1]; /* of this machine; empty: not known */
    char logs[DATA_PATH_SIZE];
    char blobs[DATA_PATH_SIZE];
    server_options_t options; /* of the server, as the last reload left them */
    server_t *server;
} daemon_t;
#define DAEMON_INIT                                                                                \
    {                                                                                              \
        .data = {.lock = -1}, .followers = BAR_INIT                                                \
    }

/* Everything up to taking requests; the server's loop may run after EXITS_OK. Any other code: one
 * line was logged, and daemon_stop closes what was opened by then. */
exits_t daemon_start (daemon_t *self);
/* The code to end with: that of the start or the loop, unless the stop itself fails. */
exits_t daemon_stop (daemon_t *self, exits_t code);

#endif
