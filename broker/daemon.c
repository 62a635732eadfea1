/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Failure: whatever cannot be had at the start is one line on stderr and an exit code of its own
 * (exits.h). */
#include "daemon.h"

#include <czmq.h>
#include <inttypes.h>
#include <malloc.h>
#include <sodium.h>
#include <stdatomic.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/stat.h>

#include "archived.h"
#include "database.h"
#include "log/log.h"
#include "net/bolt.h"
#include "net/socket.h"
#include "owning.h"
#include "reach.h"
#include "settings.h"
#include "store/patience.h"
#include "store/postgresql/database.h"
#include "store/wakeup.h"
#include "store_reach.h"
#include "timestamp.h"

enum {
    LINGER_MS = 1000,      /* for the last answers of a clean stop */
    DAMAGED_LOG_MS = 1000, /* between two lines that name what is damaged */
    CLOSE_MS = 8000,       /* for a database to take what is written back; the journal has it */
    EXPORT_STOP_MS = 1500, /* for the last lines of tasks.jsonl and events.jsonl at a clean stop */
    STORE_NAME_SIZE = 16,
    /* What a batch takes is freed on another thread soon after. Giving it back to the system each
     * time costs page faults and a lock on all memory; so this much stays with each of malloc's
     * arenas, and only larger pieces have mappings of their own. */
    MEMORY_KEPT_BYTES = 16 * 1024 * 1024,
    MEMORY_MAPPED_BYTES = 4 * 1024 * 1024
};

static void store_news (void *context)
{
    const daemon_t *self = context;
    wakeup_raise (self->written_fd);
    wakeup_raise (self->export_fd);
    wakeup_raise (self->events_fd);
}

static void store_gave_up (void *context, const store_error_t *error)
{
    (void) context;
    exits_store_failed (error);
}

/* A read that meets damage may come again with each request: one line a second is enough. */
static void store_damaged (void *context, const store_error_t *error)
{
    (void) context;
    static atomic_int_fast64_t next_ms;
    int_fast64_t now_ms = clock_ms (CLOCK_MONOTONIC);
    int_fast64_t due = atomic_load (&next_ms);
    if (now_ms >= due && atomic_compare_exchange_strong (&next_ms, &due, now_ms + DAMAGED_LOG_MS))
        log_write (LOG_LEVEL_ERROR, "STORE-DAMAGED", error->text, NULL);
}

/* Every link may have a descriptor, and so many connections that have said nothing yet, as far as
 * the system allows. Beyond that connections are closed at once. */
static exits_t raise_files (daemon_t *self)
{
    struct rlimit files;
    uint64_t wanted = self->config.numbers[CONFIG_LINKS];
    self->links = wanted;
    self->mute = self->config.numbers[CONFIG_MUTE];
    if (getrlimit (RLIMIT_NOFILE, &files) != 0)
        return EXITS_OK;
    rlim_t before = files.rlim_cur;
    files.rlim_cur = files.rlim_max;
    if (setrlimit (RLIMIT_NOFILE, &files) != 0)
        files.rlim_cur = before;
    if (files.rlim_cur <= 2 * DAEMON_FILES_SPARE)
        return exits_fail (EXITS_INTERNAL, "too few open files are allowed: raise ulimit -Hn");
    uint64_t room = files.rlim_cur - DAEMON_FILES_SPARE;
    bolt_set (room < INT_MAX ? (int) room : INT_MAX);
    if (self->mute > room / 4)
        self->mute = room / 4;
    if (wanted <= room - self->mute)
        return EXITS_OK;
    self->links = room - self->mute;
    log_write (LOG_LEVEL_WARNING, "FILES",
               "limits/links is lowered to what the limit of open files allows: raise that "
               "(ulimit -Hn), or lower limits/links",
               LOG_FIELDS (LOG_NUMBER ("links", self->links), LOG_NUMBER ("wanted", wanted),
                           LOG_NUMBER ("files", files.rlim_cur),
                           LOG_NUMBER ("spare", DAEMON_FILES_SPARE + self->mute)));
    return EXITS_OK;
}

/* Before any thread: signals come through a descriptor, and files belong to this user alone. */
static exits_t prepare_process (daemon_t *self)
{
    sigset_t signals;
    umask (077);
    mallopt (M_TRIM_THRESHOLD, MEMORY_KEPT_BYTES);
    mallopt (M_MMAP_THRESHOLD, MEMORY_MAPPED_BYTES);
    signal (SIGPIPE, SIG_IGN);
    signal (SIGXFSZ, SIG_IGN); /* a file at the limit of its size is a write that fails */
    sigemptyset (&signals);
    sigaddset (&signals, SIGTERM);
    sigaddset (&signals, SIGINT);
    sigaddset (&signals, SIGHUP);
    sigprocmask (SIG_BLOCK, &signals, NULL);
    self->signal_fd = signalfd (-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK);
    self->written_fd = wakeup_new ();
    self->export_fd = wakeup_new ();
    self->events_fd = wakeup_new ();
    bool good = self->signal_fd >= 0 && self->written_fd >= 0 && self->export_fd >= 0 &&
                self->events_fd >= 0;
    if (!good || sodium_init () < 0)
        return exits_fail (EXITS_INTERNAL, "cannot prepare the process: no descriptors");
    return raise_files (self);
}

static exits_t open_data (daemon_t *self)
{
    char error[DATA_ERROR_SIZE];
    exits_t code = data_open (&self->data, config_text (&self->config, CONFIG_DATA), error);
    if (code != EXITS_OK)
        return exits_fail (code, error);
    log_write (LOG_LEVEL_INFO, "DATA",
               self->data.made ? "made the data directory" : "data directory",
               LOG_FIELDS (LOG_TEXT ("path", self->data.directory)));
    if (self->data.ignored[0] != '\0')
        log_write (LOG_LEVEL_WARNING, "DATA-IGNORED", "passed over a directory that may be planted",
                   LOG_FIELDS (LOG_TEXT ("why", self->data.ignored)));
    return EXITS_OK;
}

/* Before the first thread: only those that start later are held too. */
static exits_t confine (daemon_t *self)
{
    char error[ARCHIVED_ERROR_SIZE];
    char database_error[DATABASE_ERROR_SIZE];
    exits_t code = archived_judge (&self->config, self->data.directory, error);
    if (code != EXITS_OK)
        return exits_fail (code, error);
    code = database_judge (&self->config, self->data.directory, database_error);
    if (code != EXITS_OK)
        return exits_fail (code, database_error);
    reach_confine (&self->config, &self->data);
    return EXITS_OK;
}

static void tell_upgrade (store_t *store)
{
    char copy[64];
    store_stats_t stats;
    store_stats (store, &stats);
    if (stats.upgraded_from == 0)
        return;
    snprintf (copy, sizeof (copy), "backups/before-schema-%d", stats.upgraded_from + 1);
    log_write (LOG_LEVEL_INFO, "UPGRADED",
               "the data was of an earlier version and is of this one now; as it was it stands in"
               " the copy, which may be removed",
               LOG_FIELDS (LOG_NUMBER ("from", stats.upgraded_from),
                           LOG_NUMBER ("schema", stats.schema), LOG_TEXT ("copy", copy)));
}

static void tell_lost (const lost_t *lost)
{
    if (lost->first == 0)
        log_write (LOG_LEVEL_WARNING, "COMMITS-LOST",
                   "commits before this start may be lost; which ones nothing tells",
                   LOG_FIELDS (LOG_TEXT ("why", lost->why)));
    else
        log_write (LOG_LEVEL_WARNING, "COMMITS-LOST",
                   "the newest commits before this start are lost",
                   LOG_FIELDS (LOG_NUMBER ("batches", lost->last - lost->first + 1),
                               LOG_NUMBER ("from_batch", lost->first),
                               LOG_NUMBER ("to_batch", lost->last), LOG_TEXT ("why", lost->why)));
}

static exits_t open_store (daemon_t *self)
{
    const uint64_t *limits = self->config.numbers;
    char store[STORE_NAME_SIZE];
    store_error_t error = {STORE_OK, ""};
    store_options_t options = STORE_OPTIONS_INIT;
    options.directory = self->data.directory;
    options.dirty_tasks_max = limits[CONFIG_WRITE_BACK_TASKS];
    options.dirty_ms_max = (uint32_t) limits[CONFIG_WRITE_BACK_TIME];
    options.journal_bytes = limits[CONFIG_JOURNAL_SIZE];
    options.synchronous_normal = self->config.numbers[CONFIG_SYNCHRONOUS] != 0;
    options.notify = store_news;
    options.notify_context = self;
    options.failed = store_gave_up;
    options.damaged = store_damaged;
    archive_options_t archive;
    database_options_t database;
    if (database_fill (&database, &self->config, &self->owning))
        options.database = &database;
    if (archived_fill (&archive, &self->config, self->data.directory, &self->free_bytes_min))
        options.archive = &archive;
    config_word (&self->config, CONFIG_STORE, store, sizeof (store));
    if (options.database != NULL && !start_stop_begin (&self->start_stop))
        return exits_fail (EXITS_INTERNAL, "cannot start a thread");
    if (options.database != NULL && database.standby)
        doors_sweep (&self->config, &self->data);
    if (owning_open (&self->owning, &self->store, store, &options, &self->data, self->signal_fd,
                     &self->boot, &error) != STORE_OK)
        return exits_fail (exits_of_store (error.code), error.text);
    tell_upgrade (self->store);
    const char *way = self->boot.journal_way;
    log_write (LOG_LEVEL_INFO, "STORE", "opened and recovered",
               LOG_FIELDS (LOG_TEXT ("store", store), LOG_NUMBER ("tasks", self->boot.tasks),
                           LOG_NUMBER ("epoch", self->boot.epoch),
                           LOG_NUMBER ("recovered_batches", self->boot.recovered_batches),
                           LOG_TEXT ("journal", way == NULL ? "none" : way)));
    if (self->boot.lost.why != NULL)
        tell_lost (&self->boot.lost);
    if (self->config.numbers[CONFIG_SYNCHRONOUS] != 0)
        log_write (LOG_LEVEL_WARNING, "SYNCHRONOUS-NORMAL",
                   "commits are not synced to the disk: a loss of power may lose work that was"
                   " acknowledged",
                   NULL);
    return EXITS_OK;
}

/* A database is still owned while its history begins: whoever takes over at the end finds it begun.
 * Files are exchanged when nobody has them. */
static store_code_t begin_history (daemon_t *self, store_error_t *error)
{
    uint64_t generation;
    database_options_t database;
    const char *directory = self->data.directory;
    bool has_database = database_fill (&database, &self->config, NULL);
    store_code_t code = STORE_OK;
    if (has_database)
        code = database_begin_history (&database, directory, self->boot.epoch, error);
    if (code == STORE_OK)
        code = store_close (&self->store, error);
    if (code == STORE_OK && !has_database)
        code = store_begin_history (directory, &generation, error);
    return code;
}

/* What the database has lost is given up: its history ends, and another one begins. */
static exits_t accept_rollback (daemon_t *self, const char *why)
{
    store_error_t error = {STORE_OK, ""};
    if (begin_history (self, &error) != STORE_OK)
        return exits_fail (exits_of_store (error.code), error.text);
    log_write (LOG_LEVEL_WARNING, "EVENTS-ROLLBACK",
               "events that the database lacks are given up, and a new history begins",
               LOG_FIELDS (LOG_TEXT ("why", why)));
    return open_store (self);
}

/* Whether the database still has what events.jsonl says that it had. */
static exits_t judge_events (daemon_t *self, const event_files_end_t *end)
{
    char why[EVENT_WITNESS_TEXT_SIZE];
    char text[2 * EVENT_WITNESS_TEXT_SIZE];
    event_verdict_t verdict;
    event_log_options_t *options = &self->events_options;
    store_code_t code = event_witness (&verdict, &options->pos, self->event_files, end, self->store,
                                       &self->boot, why);
    if (code != STORE_OK)
        return exits_fail (exits_of_store (code), why);
    options->begin = verdict == EVENTS_OTHER || verdict == EVENTS_AHEAD;
    options->why = verdict == EVENTS_GO_ON   ? EVENT_ANCHOR_TURNED
                   : verdict == EVENTS_BEGIN ? EVENT_ANCHOR_BEGUN
                                             : EVENT_ANCHOR_HISTORY;
    if (end->damaged)
        options->why = EVENT_ANCHOR_CHANGED;
    if (verdict != EVENTS_AHEAD)
        return EXITS_OK;
    snprintf (text, sizeof (text),
              "committed work was lost: %s; put the newer database back%s, or give up what is "
              "missing: --accept-rollback",
              why,
              self->config.numbers[CONFIG_STORE] == CONFIG_STORE_POSTGRESQL
                  ? ", or name it, if database/uri or database/schema names another one"
                  : "");
    /* A journal that was cut was given up before. */
    if (!self->config.accept_rollback && self->boot.lost.why == NULL)
        return exits_fail (EXITS_ROLLBACK, text);
    options->why = EVENT_ANCHOR_ROLLBACK;
    return accept_rollback (self, why);
}

static exits_t open_event_files (daemon_t *self)
{
    char error[LINE_FILE_ERROR_SIZE];
    event_files_end_t end;
    const uint64_t *numbers = self->config.numbers;
    event_files_options_t options = {.directory = self->data.directory,
                                     .turn_bytes = numbers[CONFIG_EVENTS_KEEP],
                                     .keep_ms = (int64_t) (numbers[CONFIG_EVENTS_DAYS] * CONFIG_D),
                                     .keep_bytes = numbers[CONFIG_EVENTS_DISK]};
    /* What is forgotten at the end leaves no history that a database could be compared with. */
    if (numbers[CONFIG_EVENTS_FILE] == 0 || numbers[CONFIG_STORE] == CONFIG_STORE_MEMORY)
        return EXITS_OK;
    options.redactor = config_redactor (&self->config);
    options.free_bytes_min = &self->free_bytes_min;
    self->event_files = event_files_open (&options, &end, error);
    if (self->event_files == NULL)
        return exits_fail (EXITS_DATA, error);
    if (end.damaged)
        log_write (LOG_LEVEL_ERROR, "EVENTS-DAMAGED",
                   end.damaged_first
                       ? "the first line of events.jsonl is damaged: set aside, begun anew"
                       : "the end of events.jsonl is damaged: set aside, begun anew",
                   NULL);
    return judge_events (self, &end);
}

static exits_t open_events (daemon_t *self)
{
    char error[LINE_FILE_ERROR_SIZE];
    event_log_options_t *options = &self->events_options;
    if (self->event_files == NULL) {
        watermark_move (&self->watermark, WATERMARK_EVENTS, UINT64_MAX);
        return EXITS_OK;
    }
    options->store = self->store;
    options->watermark = &self->watermark;
    options->generation = self->boot.generation;
    options->wake_fd = self->events_fd;
    options->bar = &self->followers;
    options->stop_ms = EXPORT_STOP_MS;
    options->pack = self->config.numbers[CONFIG_EVENTS_PACK] != 0;
    options->free_bytes_min = &self->free_bytes_min;
    options->failed = exits_store_failed;
    self->events = event_log_new (options, &self->event_files, error);
    return self->events != NULL ? EXITS_OK : exits_fail (EXITS_INTERNAL, error);
}

static exits_t open_audit (daemon_t *self)
{
    char error[AUDIT_ERROR_SIZE];
    char detail[128];
    const uint64_t *numbers = self->config.numbers;
    audit_options_t options = {.directory = self->data.directory,
                               .generation = self->boot.generation,
                               .epoch = self->boot.epoch,
                               .keep_bytes = numbers[CONFIG_AUDIT_KEEP],
                               .keep_ms = (int64_t) (numbers[CONFIG_AUDIT_DAYS] * CONFIG_D),
                               .free_bytes_min = &self->free_bytes_min};
    if (numbers[CONFIG_AUDIT_FILE] == 0)
        return EXITS_OK;
    self->audit = audit_new (&options, error);
    if (self->audit == NULL)
        return exits_fail (EXITS_DATA, error);
    snprintf (detail, sizeof (detail), "version %s, epoch %" PRIu64 ", pid %d", TASKMQ_VERSION,
              self->boot.epoch, (int) getpid ());
    audit_note (self->audit, &(audit_line_t){.kind = AUDIT_BROKER_STARTED,
                                             .object = self->data.directory,
                                             .detail = detail});
    if (self->events_options.why == EVENT_ANCHOR_ROLLBACK)
        audit_note (self->audit,
                    &(audit_line_t){.kind = AUDIT_RESTORED,
                                    .outcome = "rollback",
                                    .detail = "events that the database lacked were given up"});
    return EXITS_OK;
}

static exits_t open_exporter (daemon_t *self)
{
    char path[DATA_PATH_SIZE];
    char error[TASKS_FILE_ERROR_SIZE];
    const uint64_t *numbers = self->config.numbers;
    data_path (&self->data, "tasks.jsonl", path, sizeof (path));
    watermark_init (&self->watermark, self->store);
    exporter_options_t options = {.store = self->store,
                                  .path = path,
                                  .last_pos = self->boot.last_pos,
                                  .wake_fd = self->export_fd,
                                  .bar = &self->followers,
                                  .stop_ms = EXPORT_STOP_MS,
                                  .watermark = &self->watermark,
                                  .compact = {.bytes = numbers[CONFIG_EXPORT_COMPACT],
                                              .forget_ms = numbers[CONFIG_EXPORT_FORGET],
                                              .free_bytes_min = &self->free_bytes_min},
                                  .failed = exits_store_failed};
    options.redactor = config_redactor (&self->config);
    self->exporter = exporter_new (&options, error);
    return self->exporter != NULL ? EXITS_OK : exits_fail (EXITS_DATA, error);
}

static exits_t open_indexer (daemon_t *self)
{
    indexer_options_t options = {.store = self->store,
                                 .directory = self->data.directory,
                                 .generation = self->boot.generation,
                                 .last_pos = self->boot.last_pos,
                                 .bar = &self->followers,
                                 .free_bytes_min = &self->free_bytes_min,
                                 .failed = exits_store_failed};
    self->indexer = indexer_new (&options);
    return self->indexer != NULL ? EXITS_OK : exits_fail (EXITS_INTERNAL, "cannot start a thread");
}

/* The server has it made when it takes the errand back. */
static void run_reindex (void *context, errand_t *errand)
{
    (void) context;
    log_write (LOG_LEVEL_INFO, "SEARCH-REINDEX", "a new index of texts was asked for",
               LOG_FIELDS (LOG_TEXT ("by", errand->identity)));
}

static exits_t open_access (daemon_t *self)
{
    char path[DATA_PATH_SIZE];
    char error[ACCESS_FILE_ERROR_SIZE];
    const char *named = config_text (&self->config, CONFIG_ACCESS);
    data_path (&self->data, "access", path, sizeof (path));
    self->access = access_file_new (named != NULL ? named : path, error);
    if (self->access == NULL)
        return exits_fail (EXITS_KEYS, error);
    if (named != NULL && access_file_policy (self->access) == NULL)
        log_write (LOG_LEVEL_WARNING, "ACCESS-ABSENT",
                   "the access file that the configuration names is not there: until it is, who "
                   "reaches the broker without a key may do all",
                   LOG_FIELDS (LOG_TEXT ("path", named)));
    access_requests_init (&self->requests, self->access);
    access_requests_runners (&self->requests, self->runners);
    self->reload_open (self);
    return EXITS_OK;
}

static exits_t open_records (daemon_t *self)
{
    const uint64_t *numbers = self->config.numbers;
    records_options_t options = {.store = self->store,
                                 .audit = self->audit,
                                 .directory = self->data.directory,
                                 .access = access_file_path (self->access),
                                 .free_bytes_min = &self->free_bytes_min,
                                 .lacks = &self->backup_lacks,
                                 .keep = (size_t) numbers[CONFIG_BACKUP_KEEP]};
    self->records = records_new (&options);
    self->runners[ACCESS_RUNNERS] = key_change_runner (&self->key_change);
    records_watch (self->records, self->runners, ACCESS_RUNNERS + 1);
    records_runners (self->records, self->runners + ACCESS_RUNNERS + 1);
    self->runners[DAEMON_RUNNERS - 1] =
        (errand_runner_t){TASKMQ__REQUEST__OP_REINDEX, run_reindex, NULL};
    return EXITS_OK;
}

static exits_t open_router (daemon_t *self)
{
    char error[ADDRESS_PATH_SIZE];
    router_options_t options = {.context = zsys_init (),
                                .peers_max = 2 * self->links,
                                .held_max = self->config.numbers[CONFIG_DRAIN_MESSAGES],
                                .mute_max = self->mute,
                                .mute_ms = (int64_t) self->config.numbers[CONFIG_HELLO],
                                .linger_ms = LINGER_MS,
                                .unread_bytes_max = self->config.numbers[CONFIG_LINK_UNREAD],
                                .unread_all_bytes_max = self->config.numbers[CONFIG_UNREAD],
                                .guard = doors_guard (&self->doors)};

    /* Counts until the first socket is made. */
    zmq_ctx_set (options.context, ZMQ_IO_THREADS, (int) options.guard.io_threads);
    zap_options_t zap = {
        .context = options.context, .silent_ms = options.guard.handshake_ms, .audit = self->audit};
    randombytes_buf (options.key, sizeof (options.key));
    randombytes_buf (zap.key, sizeof (zap.key));
    /* Before the first address: a connection that finds no handler is refused. */
    self->zap = zap_new (&zap, error, sizeof (error));
    if (self->zap == NULL)
        return exits_fail (EXITS_INTERNAL, error);
    options.zap = self->zap;
    self->router = router_new (&options, error, sizeof (error));
    if (self->router == NULL)
        return exits_fail (EXITS_INTERNAL, error);
    self->feed = feed_new (options.context, LINGER_MS);
    return self->feed != NULL ? EXITS_OK : exits_fail (EXITS_INTERNAL, "out of memory");
}

static void peer_gone (void *context, peer_t peer)
{
    records_gone (context, peer);
}

static exits_t open_server (daemon_t *self)
{
    server_options_t *options = &self->options;
    options->engine = (engine_config_t) ENGINE_CONFIG_INIT;
    if (gethostname (self->host, sizeof (self->host) - 1) == 0)
        options->engine.broker_host = self->host;
    options->engine.broker_pid = (uint32_t) getpid ();
    options->engine.broker_started_at = (int64_t) time (NULL) * 1000;
    randombytes_buf (options->engine.seed, sizeof (options->engine.seed));
    settings_fill (options, &self->config, self->links);
    data_path (&self->data, "logs", self->logs, sizeof (self->logs));
    options->logs_directory = self->logs;
    data_path (&self->data, "blobs", self->blobs, sizeof (self->blobs));
    options->blobs_directory = self->blobs;
    options->backup_lacks = &self->backup_lacks;
    self->zones = zones_new (ZONES_DIRECTORY);
    options->engine.zone = zones_find;
    options->engine.zone_context = self->zones;
    self->redact = config_redact_text (&self->config);
    options->engine.redact = self->redact;
    options->engine.server_key = self->doors.has_server_key ? &self->doors.server_public : NULL;
    options->store = self->store;
    options->boot = self->boot;
    options->router = self->router;
    options->zap = self->zap;
    options->exporter = self->exporter;
    options->events = self->events;
    options->indexer = self->indexer;
    options->directory = self->data.directory;
    options->audit = self->audit;
    options->access = self->access;
    options->runners = self->runners;
    options->judge = (errand_judge_t){access_requests_may, &self->requests};
    options->runners_count = DAEMON_RUNNERS;
    options->feed = self->feed;
    options->doors = &self->doors;
    options->key_change = &self->key_change;
    options->written_fd = self->written_fd;
    options->signal_fd = self->signal_fd;
    options->reload = self->reload_take;
    options->reload_context = self;
    options->gone = peer_gone;
    options->gone_context = self->records;
    return server_new (&self->server, options);
}

static exits_t open_key (daemon_t *self)
{
    self->doors.config = &self->config;
    self->doors.data = &self->data;
    exits_t code = key_change_open (&self->key_change, &self->data, &self->doors);
    self->has_key_change = true;
    if (code == EXITS_OK)
        code = doors_key (&self->doors);
    key_change_begin (&self->key_change);
    return code;
}

static exits_t open_doors (daemon_t *self)
{
    self->doors.zap = self->zap;
    self->doors.router = self->router;
    self->doors.feed = self->feed;
    self->doors.access = self->access;
    self->doors.audit = self->audit;
    self->doors.requests = &self->requests;
    return doors_open (&self->doors);
}

/* No promise needs the exports and the index before the first request (A55), and what they read
 * would take longest while live tasks are read beside it. */
static exits_t begin_following (daemon_t *self)
{
    bar_lift (&self->followers);
    return EXITS_OK;
}

exits_t daemon_start (daemon_t *self)
{
    static exits_t (*const steps[]) (daemon_t *) = {
        prepare_process, open_data,   confine,      open_store,     open_event_files, open_audit,
        open_exporter,   open_events, open_indexer, open_access,    open_records,     open_key,
        open_router,     open_server, open_doors,   begin_following};
    exits_t code = EXITS_OK;
    atomic_store (&self->free_bytes_min, self->config.numbers[CONFIG_FREE_SPACE_MIN]);
    for (size_t i = 0; code == EXITS_OK && i < sizeof (steps) / sizeof (steps[0]); i++)
        code = steps[i](self);
    start_stop_end (&self->start_stop);
    return code;
}

/* One that is out of reach cannot be told of the end, and needs not: nothing is lost by that. What
 * is written back to a server that takes nothing is in the journal. */
static exits_t close_store (daemon_t *self, exits_t code)
{
    store_error_t error = {STORE_OK, ""};
    start_stop_t stop = {.text = "the store was not closed in time: what is not written back is in "
                                 "its journal",
                         .told = true,
                         .ms = CLOSE_MS,
                         .code = code};
    if (store_valid_until (self->store) != INT64_MAX)
        (void) start_stop_begin (&stop);
    store_code_t closed = store_close (&self->store, &error);
    start_stop_end (&stop);
    if (closed == STORE_OK || code != EXITS_OK)
        return code;
    if (closed == STORE_ERROR_AWAY)
        return store_reach_left (&error);
    return exits_fail (exits_of_store (closed), error.text);
}

exits_t daemon_stop (daemon_t *self, exits_t code)
{
    store_error_t error = {STORE_OK, ""};
    bar_lift (&self->followers); /* so that they can end */
    if (self->store != NULL)
        store_end_patience (self->store);
    server_free (&self->server);
    free (self->redact);
    self->reload_close (self);
    router_free (&self->router);
    feed_free (&self->feed);
    zap_free (&self->zap);
    records_free (&self->records);
    if (self->access != NULL)
        access_requests_free (&self->requests);
    access_file_free (&self->access);
    if (self->store != NULL)
        store_flush (self->store);
    event_log_stop (self->events);
    exporter_free (&self->exporter);
    event_log_free (&self->events);
    event_files_close (&self->event_files);
    indexer_free (&self->indexer);
    audit_note (self->audit, &(audit_line_t){.kind = AUDIT_BROKER_STOPPED,
                                             .outcome = code == EXITS_OK ? NULL : exits_id (code),
                                             .detail = exits_meaning (code)});
    audit_free (&self->audit);
    if (self->store != NULL && store_check (self->store, &error) != STORE_OK && code == EXITS_OK)
        code = exits_fail (exits_of_store (error.code), error.text);
    if (self->store != NULL)
        code = close_store (self, code);
    zsys_shutdown ();
    if (self->has_key_change)
        key_change_close (&self->key_change);
    zones_free (&self->zones);
    sodium_memzero (&self->doors.server_key, sizeof (self->doors.server_key));
    data_close (&self->data);
    config_free (&self->config);
    return code;
}
