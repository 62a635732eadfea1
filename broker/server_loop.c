/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* One round of the loop: wait; take in what other threads finished; drain the socket; look up what
 * the messages name; apply; judge deadlines; hand over the commit batch; send what is released.
 *
 * Failure: a commit without space throws away what was applied and streams the durable state in
 * again (A21); every other failure of the store ends the process with one line (A23). What a peer
 * does wrong is answered to it and to nobody else. */
#include "server_parts.h"

#include <assert.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "core/base/memory.h"
#include "log/log.h"
#include "news.h"
#include "store/wakeup.h"
#include "timestamp.h"

enum {
    WAIT_MS_MAX = 1000, /* so that a longer gap between two rounds can only be a pause (A20) */
    MAINTAIN_MS = 1000, /* free space, forgotten peers, files that are gone */
    AWAY_LOOK_MS = 20,  /* at a store that is out of reach */
    CLOSING_MS = 5,     /* until it is seen whether a door has closed */
    FULL_LINES_MS = 10, /* until it is seen whether those read whose lines are full */
    STOP_MS_MAX = 2500  /* a clean stop waits for so long, then for the commit in flight only */
};

static now_t clock_now (void)
{
    return (now_t){clock_ms (CLOCK_MONOTONIC), clock_ms (CLOCK_REALTIME)};
}

/* What other threads finished. */

static bool take_commit (server_t *self)
{
    commit_result_t result;
    if (committer_result (self->committer, &result))
        server_commit_done (self, &result);
    return false;
}

static bool take_written (server_t *self)
{
    wakeup_lower (self->options.written_fd);
    uint64_t written = store_written (self->options.store);
    engine_written (self->engine, written);
    sweeper_written (self->sweeper, written);
    texts_written (&self->texts, written);
    server_take_forgotten (self);
    return false;
}

static bool take_slice (server_t *self)
{
    due_t due;
    if (!sweeper_take (self->sweeper, &due))
        return false;
    self->sweep_removed = engine_due (self->engine, &due, self->now);
    self->sweep_open = self->sweep_removed > 0;
    if (!self->sweep_open)
        sweeper_decided (self->sweeper, 0, 0);
    return false;
}

/* One that gave up at a lock, or took too long, is answered so, and nothing else is. */
static void notice_away (server_t *self, const read_t *read)
{
    if (read->away && store_away_ms (self->options.store) > 0)
        store_reach_missed (&self->tenure, self->engine, self->now);
}

static bool take_found (server_t *self)
{
    read_t *read;
    while ((read = finder_done (self->finder)) != NULL) {
        self->reads--;
        notice_away (self, read);
        engine_read_done (self->engine, read, self->now);
    }
    return false;
}

static bool take_reads (server_t *self)
{
    read_t *read;
    while ((read = readers_pool_done (self->readers)) != NULL) {
        self->reads--;
        bool goes_on = read->error == STORE_OK || read->error == STORE_ERROR_FULL ||
                       read->error == STORE_ERROR_DAMAGED || read->away;
        notice_away (self, read);
        if (!goes_on) {
            store_error_t error;
            error.code = (store_code_t) read->error;
            snprintf (error.text, sizeof (error.text), "%s", read->error_text);
            exits_store_failed (&error);
        }
        engine_read_done (self->engine, read, self->now);
    }
    return false;
}

/* A new access file: the engine and the door judge by it before anything else is done. */
static void take_policy (server_t *self)
{
    policy_t *policy;
    if (!access_file_take (self->options.access, &policy))
        return;
    zap_policy (self->options.zap, policy);
    notes_policy (&self->notes, policy, self->now.wall_ms);
    engine_access (self->engine, policy, self->now);
    doors_open_to_users (self->options.doors);
    policy_drop (policy);
}

/* What brokers in turn have alike goes into the store at once: whoever takes over compares. */
static void keep_alike (server_t *self)
{
    row_t row;
    if (alike_row (&self->notes.alike, &row))
        engine_keep_row (self->engine, row, self->now);
}

/* … and where the record of deeds stands. */
static void keep_head (server_t *self, bool at_once)
{
    row_t row;
    if (notes_head (&self->notes, self->now.mono_ms, at_once, &row))
        engine_keep_row (self->engine, row, self->now);
    keep_alike (self);
}

static void run_errand (server_t *self, errand_t *errand)
{
    self->errands_given++;
    errands_submit (self->errands, errand);
}

static void turn_key (server_t *self)
{
    if (key_change_turn (self->options.key_change, self->engine, self->now))
        run_errand (self, errand_new (TASKMQ__REQUEST__OP_SERVER_KEY_ROTATE));
}

static bool take_errands (server_t *self)
{
    errand_t *errand;
    while ((errand = errands_done (self->errands)) != NULL) {
        self->errands_given--;
        self->options.reload (self->options.reload_context);
        take_policy (self);
        turn_key (self);
        keep_alike (self);
        if (errand->op == TASKMQ__REQUEST__OP_REINDEX && errand->code == TMQ_OK)
            texts_reindex (&self->texts, self->durable_batch);
        if (errand->context != NULL)
            engine_errand_done (self->engine, errand, self->now);
        else
            errand_free (errand);
    }
    return false;
}

static bool take_logs (server_t *self)
{
    store_error_t error = {STORE_OK, ""};
    if (log_desk_take (self->logs, self->engine, self->now, &error) != STORE_OK)
        exits_store_failed (&error);
    return false;
}

static bool take_blobs (server_t *self)
{
    blob_desk_take (self->blobs, self->engine, self->now);
    return false;
}

/* SIGHUP; the deed is that of who sent it. */
static void reload_for (server_t *self, uint32_t uid)
{
    char identity[32];
    errand_t *errand = errand_new (TASKMQ__REQUEST__OP_RELOAD);
    snprintf (identity, sizeof (identity), "uid:%u", (unsigned) uid);
    errand->identity = memory_text (identity);
    run_errand (self, errand);
}

static bool take_signals (server_t *self)
{
    struct signalfd_siginfo info;
    while (read (self->options.signal_fd, &info, sizeof (info)) == (ssize_t) sizeof (info)) {
        if (info.ssi_signo == SIGHUP) {
            reload_for (self, info.ssi_uid);
        } else if (!self->stopping) {
            log_write (LOG_LEVEL_INFO, "STOPPING", "takes nothing new",
                       LOG_FIELDS (LOG_NUMBER ("signal", info.ssi_signo)));
            self->stopping = true;
            self->stop_at = self->now.mono_ms + STOP_MS_MAX;
            keep_head (self, true);
            engine_stop (self->engine);
            zap_stop (self->options.zap);
        }
    }
    return false;
}

/* Who came and went. */
static bool take_connections (server_t *self)
{
    return !router_watch (self->options.router, self->now.mono_ms);
}

/* Who wants to come in. */
static bool take_knocks (server_t *self)
{
    return !zap_answer (self->options.zap, self->now);
}

/* Those who are in and would not be let in any more have to go. */
static void recheck (server_t *self)
{
    router_recheck (self->options.router);
    feed_recheck (self->options.feed, self->options.zap);
    doors_renew (self->options.doors, self->now.mono_ms);
}

static void collect (server_t *self)
{
    for (size_t i = 0; i < self->sources_count; i++) {
        source_t *source = &self->sources[i];
        bool ready = self->polled[i].revents != 0 || source->unfinished;
        if (!ready || source->take == NULL)
            continue;
        source->unfinished = source->take (self);
        self->busy = self->busy || source->unfinished;
    }
    if (zap_wants_recheck (self->options.zap, self->now))
        recheck (self);
    if (doors_are_closing (self->options.doors))
        doors_renew (self->options.doors, self->now.mono_ms);
}

/* Messages. */

static bool reading (const server_t *self)
{
    return engine_pending_inputs (self->engine) < self->options.pending_inputs_hard &&
           engine_pending_bytes (self->engine) < self->options.pending_bytes_hard &&
           engine_dirty_bytes (self->engine) < self->options.dirty_bytes_hard;
}

static bool is_linked (void *context, peer_t peer)
{
    const server_t *self = context;
    return engine_is_linked (self->engine, peer);
}

/* Where everything has been taken that had arrived when the turn began. */
static void count_turn (server_t *self, size_t messages)
{
    if (self->emptied || intake_turned (self->intake)) {
        self->heard_ms = self->now.mono_ms;
        self->turn_left = 0;
        return;
    }
    if (self->turn_left == 0) {
        self->turn_left = router_turn (self->options.router);
        self->turn_ms = self->now.mono_ms;
    }
    if (messages < self->turn_left) {
        self->turn_left -= messages;
        return;
    }
    self->heard_ms = self->turn_ms;
    self->turn_left = 0;
}

static void drain (server_t *self)
{
    bool closed = !reading (self);
    intake_round (self->intake, self->now, closed);
    self->emptied = intake_emptied (self->intake);
    if (intake_missed (self->intake))
        store_reach_missed (&self->tenure, self->engine, self->now);
    if (closed)
        self->counts.hard_limit++;
    else
        count_turn (self, intake_taken (self->intake));
    self->counts.messages += intake_taken (self->intake);
    self->busy = self->busy || intake_is_busy (self->intake);
}

/* The time of tasks goes on in every round. Silence is judged only with everything applied that had
 * arrived: neither a slow disk nor a frozen broker nor a flood may look like silence of the workers
 * (A20). */
static void judge (server_t *self)
{
    peer_t peer;
    while ((peer = router_gone_next (self->options.router, self->heard_ms)) != 0) {
        if (intake_peer_gone (self->intake, peer))
            engine_peer_gone (self->engine, peer, self->now);
        self->options.gone (self->options.gone_context, peer);
        log_write (LOG_LEVEL_DEBUG, "PEER-GONE", "a connection ended",
                   LOG_FIELDS (LOG_NUMBER ("peer", peer)));
    }
    int64_t stood_ms;
    if (!tenure_may_judge (&self->tenure, self->now.mono_ms, &stood_ms))
        return;
    self->pause_ms += stood_ms;
    self->deadline = engine_tick (self->engine, self->now, self->heard_ms, self->pause_ms);
    self->pause_ms = 0;
}

static void read_ahead (server_t *self)
{
    read_t *read;
    while ((read = engine_read_next (self->engine)) != NULL) {
        self->reads++;
        if (read->kind == READ_SEARCH)
            finder_submit (self->finder, read);
        else
            readers_pool_submit (self->readers, read);
    }
    if (engine_wants_flush (self->engine))
        store_flush (self->options.store);
}

static void run_errands (server_t *self)
{
    errand_t *errand;
    while ((errand = engine_errand_next (self->engine)) != NULL) {
        router_address (self->options.router, errand->peer, errand->address,
                        sizeof (errand->address));
        errand->has_key = router_key (self->options.router, errand->peer, &errand->key);
        if (errand->op == TASKMQ__REQUEST__OP_READ_LOG)
            log_desk_read (self->logs, errand);
        else if (blob_desk_does (errand))
            blob_desk_give (self->blobs, errand);
        else
            run_errand (self, errand);
    }
    log_desk_give (self->logs, self->engine);
}

static void note_deeds (server_t *self)
{
    deed_t deed;
    char address[64];
    while (engine_deed_next (self->engine, &deed)) {
        router_address (self->options.router, deed.peer, address, sizeof (address));
        notes_deed (&self->notes, &deed, address);
    }
    notes_ends (&self->notes, self->now.wall_ms);
}

static void deliver (server_t *self)
{
    output_t output;
    note_deeds (self);
    if (tenure_has_end (&self->tenure))
        tenure_hear (&self->tenure, store_valid_until (self->options.store));
    while (engine_output_next (self->engine, &output)) {
        if (store_reach_ended (&self->tenure, self->engine)) {
            engine_output_kept (self->engine, &output);
            break;
        }
        if (router_send (self->options.router, &output))
            trace_sent (self->trace, &output);
        else
            engine_output_failed (self->engine, &output, self->now);
        self->busy = true;
    }
    self->busy = self->busy || engine_has_output (self->engine);
    read_ahead (self); /* a replay that found nothing wants its next page now */
}

/* Once a second; between commits more often, but then it can only become full. */
static void look_at_disk (server_t *self, bool may_clear)
{
    disk_look (&self->disk, self->options.store, self->engine, self->now.mono_ms,
               self->durable_batch, self->options.free_bytes_min, may_clear);
}

/* Whoever deletes the database under the broker must not get a second more acknowledged. */
static void look_at_files (const server_t *self)
{
    store_error_t error = {STORE_OK, ""};
    if (store_check (self->options.store, &error) != STORE_OK)
        exits_store_failed (&error);
}

/* One lstat, of a file that mostly lies beside the database: where that waits for its disk, so does
 * everything. What is read is read by the errands' thread. */
static void look_at_access (server_t *self)
{
    self->access_at = self->now.mono_ms + ACCESS_FILE_LOOK_MS;
    if (!self->stopping && access_file_changed (self->options.access))
        run_errand (self, errand_new (TASKMQ__REQUEST__OP_ACCESS_READ));
}

static void maintain (server_t *self)
{
    if (self->now.mono_ms >= self->access_at)
        look_at_access (self);
    if (self->now.mono_ms >= self->look_at) {
        self->look_at = self->now.mono_ms + ROUTER_LOOK_MS;
        router_watch_bytes (self->options.router, reading (self));
        feed_watch (self->options.feed, self->now.mono_ms);
    }
    if (disk_is_due (&self->disk, self->now.mono_ms, self->durable_batch))
        look_at_disk (self, false);
    if (self->now.mono_ms < self->maintain_at)
        return;
    self->maintain_at = self->now.mono_ms + MAINTAIN_MS;
    look_at_files (self);
    if (!self->stopping)
        blob_desk_tick (self->blobs, self->now, self->errands_given > 0); /* a backup, perhaps */
    turn_key (self);
    doors_renew (self->options.doors, self->now.mono_ms);
    keep_head (self, false);
    take_logs (self);
    news_clock (self->engine, LOG_LEVEL_WARNING);
    router_maintain (self->options.router, self->now.mono_ms, self->heard_ms, is_linked, self);
    look_at_disk (self, true);
}

/* The longest commit of the last minute, or the one under way. */
static int64_t stall_ms (const server_t *self)
{
    int64_t us = peak_get (&self->stall, self->now.mono_ms);
    int64_t under_way =
        committer_idle (self->committer) ? 0 : clock_us (CLOCK_MONOTONIC) - self->committed_us;
    return (under_way > us ? under_way : us) / 1000;
}

static void tell_numbers (void *context)
{
    server_t *self = context;
    const server_options_t *options = &self->options;
    const numbers_t numbers = {.intake = self->intake,
                               .router = options->router,
                               .zap = options->zap,
                               .feed = options->feed,
                               .store = options->store,
                               .exporter = options->exporter,
                               .events = options->events,
                               .indexer = options->indexer,
                               .access = options->access,
                               .audit = options->audit,
                               .links_max = options->engine.links_max,
                               .logs = self->logs,
                               .blobs = self->blobs,
                               .backup_lacks = options->backup_lacks,
                               .policy = self->notes.policy,
                               .counts = &self->counts,
                               .durable_pos = self->boot.last_pos,
                               .wall_ms = self->now.wall_ms,
                               .stall_ms = stall_ms (self),
                               .full = self->disk.full,
                               .tenure = &self->tenure,
                               .mono_ms = self->now.mono_ms};
    numbers_tell (&numbers, self->engine);
}

/* The loop. */

static int wait_ms (const server_t *self)
{
    if (self->busy)
        return 0;
    if (store_reach_is_lost (&self->tenure))
        return AWAY_LOOK_MS;
    /* Deadlines are not judged while nothing is read; the commit in flight ends the wait. */
    if (!reading (self))
        return WAIT_MS_MAX;
    if (intake_is_full (self->intake))
        return FULL_LINES_MS;
    int64_t until = self->deadline < self->maintain_at ? self->deadline : self->maintain_at;
    if (self->access_at < until)
        until = self->access_at;
    if (self->look_at < until &&
        (router_has_connections (self->options.router) || feed_has_channels (self->options.feed)))
        until = self->look_at;
    int64_t ms = until - clock_now ().mono_ms;
    if (ms > CLOSING_MS && doors_are_closing (self->options.doors))
        return CLOSING_MS;
    if (ms <= 0)
        return 0;
    return ms < WAIT_MS_MAX ? (int) ms : WAIT_MS_MAX;
}

static void wait_sources (server_t *self)
{
    self->polled[SOURCE_SOCKET].events = reading (self) ? POLLIN : 0;
    /* One slice in each batch: what is removed must not hold up what is asked. */
    self->polled[SOURCE_SLICE].events = self->sweep_open ? 0 : POLLIN;
    int ready = poll (self->polled, self->sources_count, wait_ms (self));
    assert (ready >= 0 || errno == EINTR);
    for (size_t i = 0; ready <= 0 && i < self->sources_count; i++)
        self->polled[i].revents = 0;
    self->busy = false;

    /* A round ends with a wait of at most WAIT_MS_MAX; a longer gap was a pause: a slow commit, a
     * stopped process, a machine that slept. */
    now_t now = clock_now ();
    int64_t gap = now.mono_ms - self->now.mono_ms;
    if (gap > (int64_t) self->options.engine.heartbeat_ms + WAIT_MS_MAX) {
        self->pause_ms += gap;
        self->counts.pauses++;
        self->counts.pause_ms += (uint64_t) gap;
        log_write (LOG_LEVEL_WARNING, "PAUSE", "the loop stood still; leases are extended by it",
                   LOG_FIELDS (LOG_NUMBER ("ms", gap)));
    }
    self->now = now;
    self->counts.rounds++;
}

/* Everything taken is committed, answered and written back (so that the export is complete), or it
 * took too long. */
static bool is_finished (const server_t *self)
{
    if (self->stopping && self->now.mono_ms >= self->stop_at) /* else a commit has its time */
        store_reach_give_up (&self->tenure, store_away_ms (self->options.store) >= STOP_MS_MAX);
    if (!self->stopping || !committer_idle (self->committer))
        return false;
    bool quiet = self->emptied && intake_is_idle (self->intake) && !self->busy &&
                 !self->committing && self->reads == 0 && self->errands_given == 0 &&
                 log_desk_is_idle (self->logs) && blob_desk_is_idle (self->blobs);
    if (quiet && store_written (self->options.store) < self->durable_batch) {
        store_flush (self->options.store);
        quiet = false;
    }
    return quiet || self->now.mono_ms >= self->stop_at;
}

void server_run (server_t *self)
{
    do {
        wait_sources (self);
        self->busy =
            store_reach_look (&self->tenure, self->options.store, self->engine, self->now) ||
            self->busy;
        collect (self);
        drain (self);
        judge (self);
        read_ahead (self);
        run_errands (self);
        server_commit (self);
        deliver (self);
        maintain (self);
    } while (!is_finished (self));
}

/* Life. */

/* In the order in which a round takes from them. */
static void watch_sources (server_t *self)
{
    const server_options_t *options = &self->options;
    const source_t sources[] = {
        [SOURCE_SOCKET] = {.fd = router_fd (options->router)},
        [SOURCE_SLICE] = {sweeper_fd (self->sweeper), take_slice, false},
        {router_watch_fd (options->router), take_connections, false},
        {zap_fd (options->zap), take_knocks, false},
        {committer_fd (self->committer), take_commit, false},
        {options->written_fd, take_written, false},
        {readers_pool_fd (self->readers), take_reads, false},
        {finder_fd (self->finder), take_found, false},
        {errands_fd (self->errands), take_errands, false},
        {log_desk_fd (self->logs), take_logs, false},
        {blob_desk_fd (self->blobs), take_blobs, false},
        {options->signal_fd, take_signals, false},
    };
    static_assert (sizeof (sources) <= sizeof (self->sources), "a place for each");
    memcpy (self->sources, sources, sizeof (sources));
    self->sources_count = sizeof (sources) / sizeof (sources[0]);
    for (size_t i = 0; i < self->sources_count; i++)
        self->polled[i] = (struct pollfd){sources[i].fd, POLLIN, 0};
    self->busy = true;
}

static intake_t *make_intake (server_t *self)
{
    const server_options_t *options = &self->options;
    intake_options_t intake = {.engine = self->engine,
                               .router = options->router,
                               .store = options->store,
                               .trace = self->trace,
                               .drain_messages = options->drain_messages,
                               .drain_requests = options->drain_requests,
                               .drain_bytes = options->drain_bytes,
                               .drain_ms = options->drain_ms,
                               .lines = options->lines,
                               .peers_max = options->peers_max,
                               .stats_wanted = tell_numbers,
                               .context = self};
    return intake_new (&intake);
}

exits_t server_new (server_t **out, const server_options_t *options)
{
    server_t *self = memory_zero (1, sizeof (*self));
    store_error_t error = {STORE_OK, ""};
    self->options = *options;
    self->boot = options->boot;
    self->inline_inputs = store_inline_inputs (options->store);
    tenure_init (&self->tenure, options->away_ms, 0);
    self->now = clock_now ();
    self->deadline = INT64_MAX;
    notes_init (&self->notes, options->audit, access_file_path (options->access), &options->boot,
                options->engine.server_key);
    self->engine = engine_new (&options->engine);
    self->texts = (texts_t){.indexer = options->indexer, .store = options->store};
    self->trace = trace_new (trace_log, NULL);
    trace_set (self->trace, options->slow_ms);
    self->intake = make_intake (self);
    exits_t code = exits_of_store (server_stream_in (self, &error));
    if (code == EXITS_OK)
        code = exits_of_store (
            readers_pool_new (&self->readers, options->store, options->readers, &error));
    if (code != EXITS_OK) {
        server_free (&self);
        return exits_fail (code, error.text);
    }
    self->committer = committer_new (options->store);
    self->sweeper = sweeper_new (options->store);
    self->errands = errands_new (options->runners, options->runners_count, options->judge);
    self->finder = finder_new (options->store, options->indexer, options->directory);
    self->logs = log_desk_new (options->logs_directory, &options->logs, options->store);
    self->blobs =
        blob_desk_new (options->blobs_directory, &options->blobs, store_vault (options->store));
    if (self->intake == NULL || self->committer == NULL || self->sweeper == NULL ||
        self->errands == NULL || self->logs == NULL || self->finder == NULL ||
        self->blobs == NULL) {
        server_free (&self);
        return exits_fail (EXITS_INTERNAL, "cannot start a thread");
    }
    take_policy (self);
    notes_expect (&self->notes);
    self->notes.begun = true;                  /* with a file or without */
    news_clock (self->engine, LOG_LEVEL_INFO); /* the broker may have been down for long */
    watch_sources (self);
    *out = self;
    return EXITS_OK;
}

void server_configure (server_t *self, const server_options_t *options)
{
    self->options.lines = options->lines;
    self->options.pending_inputs_hard = options->pending_inputs_hard;
    self->options.pending_bytes_hard = options->pending_bytes_hard;
    self->options.dirty_bytes_hard = options->dirty_bytes_hard;
    self->options.free_bytes_min = options->free_bytes_min;
    self->tenure.patience_ms = options->away_ms;
    trace_set (self->trace, options->slow_ms);
    log_desk_configure (self->logs, &options->logs);
    blob_desk_configure (self->blobs, &options->blobs);
    engine_configure (self->engine, &options->engine);
    intake_configure (self->intake, &options->lines);
    self->busy = true; /* what was refused may be possible now */
}

void server_free (server_t **self_p)
{
    server_t *self = *self_p;
    if (self == NULL)
        return;
    *self_p = NULL;
    log_desk_free (&self->logs);
    blob_desk_free (&self->blobs);
    errands_free (&self->errands);
    sweeper_free (&self->sweeper);
    readers_pool_free (&self->readers);
    finder_free (&self->finder);
    committer_free (&self->committer);
    intake_free (&self->intake);
    trace_free (&self->trace);
    engine_free (self->engine);
    notes_free (&self->notes);
    free (self);
}
