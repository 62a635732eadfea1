/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* The postgresql backend (A105 to A109): a journal row in front, rows behind, both in the database.
 *
 * A commit is durable when the journal's row is. Then the batch waits in memory until the store
 * thread has written its rows, together with those of other batches. A database that is out of
 * reach is waited for; one that answers wrongly ends the process. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "core/base/memory.h"
#include "store/postgresql/pg_beat.h"
#include "store/postgresql/pg_blobs.h"
#include "store/postgresql/pg_commit.h"
#include "store/postgresql/pg_instance.h"
#include "store/postgresql/pg_load.h"
#include "store/postgresql/pg_own.h"
#include "store/postgresql/pg_readers.h"
#include "store/postgresql/pg_schema.h"
#include "store/postgresql/pg_steps.h"
#include "store/postgresql/pg_tables.h"
#include "store/postgresql/pg_watch.h"
#include "store/space.h"
#include "timestamp.h"

enum { SLOW_MS = 250 }; /* a commit that waits for so long finds the database out of reach */

/* Reach. */

void pg_store_say (pg_store_t *self, database_word_t word, const char *text)
{
    if (self->database.say != NULL)
        self->database.say (self->database.context, word, text);
}

/* With what was not told since the last line. */
static void say_counted (pg_store_t *self, database_word_t word, const char *what,
                         const told_left_t *left)
{
    char text[sizeof (((store_error_t *) 0)->text) + 120];
    char settled[60] = "";
    if (left->absences == 0 && left->news == 0) {
        pg_store_say (self, word, what);
        return;
    }
    if (left->news > 0)
        snprintf (settled, sizeof (settled), ", %llu commits in doubt settled",
                  (unsigned long long) left->news);
    snprintf (text, sizeof (text), "%s (also lost and found %llu times since the last line%s)",
              what, (unsigned long long) left->absences, settled);
    pg_store_say (self, word, text);
}

void pg_store_lost (pg_store_t *self, const store_error_t *error)
{
    int_fast64_t none = 0;
    told_left_t left;
    int64_t now_ms = clock_ms (CLOCK_MONOTONIC);
    uint64_t reason = XXH3_64bits (error->text, strlen (error->text));
    pthread_mutex_lock (&self->told_lock);
    bool fresh = atomic_compare_exchange_strong (&self->away_since, &none, now_ms);
    bool tells = !pg_link_is_missing (&self->target, error) && /* the keeper finds out why */
                 told_gone (&self->told, reason, now_ms, &left);
    pthread_mutex_unlock (&self->told_lock);
    if (tells)
        say_counted (self, DATABASE_AWAY, error->text, &left);
    if (!fresh)
        return;
    pg_keeper_hurry (self->keeper);
    pg_beat_hurry (self->beat);
}

bool pg_store_is_away (pg_store_t *self)
{
    return atomic_load (&self->away_since) != 0;
}

void pg_store_waits (pg_store_t *self, pg_link_t *link)
{
    store_error_t error;
    if (link->waits_for[0] == '\0')
        return;
    atomic_store (&self->commits_wait, true);
    store_fail (&error, STORE_ERROR_AWAY,
                "%s: commits wait for a synchronous standby (synchronous_standby_names = %s), and "
                "none answers: start it, or change the setting",
                self->target.where, link->waits_for);
    link->waits_for[0] = '\0';
    pg_store_lost (self, &error);
}

void pg_store_commits (pg_store_t *self)
{
    if (atomic_exchange (&self->commits_wait, false))
        pg_store_found (self, NULL);
}

void pg_store_found (pg_store_t *self, const char *text)
{
    told_left_t left;
    pthread_mutex_lock (&self->told_lock);
    atomic_store (&self->away_since, 0);
    bool waits = text == NULL && atomic_load (&self->commits_wait); /* it reads, and no more */
    bool tells =
        !waits && told_there (&self->told, text != NULL, clock_ms (CLOCK_MONOTONIC), &left);
    pthread_mutex_unlock (&self->told_lock);
    if (!tells)
        return;
    char place[PG_PLACE_SIZE];
    char what[128 + PG_PLACE_SIZE];
    pg_target_place (&self->target, place);
    snprintf (what, sizeof (what), "%.120s: %s", text == NULL ? "it answers" : text, place);
    say_counted (self, DATABASE_BACK, what, &left);
}

store_code_t pg_store_go_on (pg_store_t *self, store_code_t code, const store_error_t *error)
{
    if (code != STORE_ERROR_DAMAGED)
        return code;
    atomic_fetch_add (&self->damaged, 1);
    if (self->options.damaged != NULL)
        self->options.damaged (self->options.notify_context, error);
    return STORE_OK;
}

/* At least 1 ms: what is out of reach is never 0. */
static int64_t pg_away_ms (store_t *base)
{
    pg_store_t *self = (pg_store_t *) base;
    int64_t since = atomic_load (&self->away_since);
    int64_t away = since == 0 ? 0 : clock_ms (CLOCK_MONOTONIC) - since + 1;
    int64_t waits = pg_commit_waits_ms (self->commit);
    return waits > SLOW_MS && waits > away ? waits : away;
}

static int64_t pg_valid_until (store_t *base)
{
    return pg_beat_valid_until (((pg_store_t *) base)->beat);
}

/* Commits. */

static store_code_t pg_commit (store_t *base, batch_t *const *batches, size_t count,
                               store_error_t *error)
{
    pg_store_t *self = (pg_store_t *) base;
    int64_t start_us = clock_us (CLOCK_MONOTONIC);
    store_code_t code = behind_failure (self->behind, error);
    if (code == STORE_OK)
        code = pg_commit_append (self->commit, batches, count, error);
    if (code == STORE_OK) {
        behind_take (self->behind, batches, count, start_us);
        return STORE_OK;
    }
    for (size_t i = 0; i < count; i++)
        batch_free (batches[i]);
    return code;
}

static uint64_t pg_written (store_t *base)
{
    return behind_written (((pg_store_t *) base)->behind);
}

static void pg_flush (store_t *base)
{
    behind_flush (((pg_store_t *) base)->behind);
}

static void pg_exported (store_t *base, uint64_t pos)
{
    behind_exported (((pg_store_t *) base)->behind, pos);
}

static void pg_forgotten (store_t *base, forgotten_t *out)
{
    behind_forgotten (((pg_store_t *) base)->behind, out);
}

/* The store thread: how rows are written and forgotten. A write-back is one piece, so that it
 * can be made again after a lost connection. */

static store_code_t begin (void *context, store_error_t *error)
{
    (void) context;
    (void) error;
    return STORE_OK;
}

static store_code_t write_rows (void *context, const dirty_t *dirty, store_error_t *error)
{
    pg_store_t *self = context;
    store_code_t code = pg_tables_write (self->tables, dirty, error);
    if (code != STORE_OK)
        return code;
    const pg_meta_t *meta = pg_tables_meta (self->tables);
    atomic_fetch_add (&self->deleted_bytes, dirty->bytes);
    atomic_store (&self->tasks, meta->tasks);
    atomic_store (&self->tombstones, meta->tombstones);
    atomic_store (&self->removals, pg_tables_removals (self->tables));
    return STORE_OK;
}

static store_code_t commit (void *context, const batch_t *newest, store_error_t *error)
{
    (void) context;
    (void) newest;
    (void) error;
    return STORE_OK;
}

static void forgets (void *context, const forgotten_t *forgotten)
{
    behind_forgets (((pg_store_t *) context)->behind, forgotten->upto_seq);
}

/* What finds no space to be forgotten waits for the next time. */
static store_code_t forget (void *context, int64_t expiry_ms, uint64_t exported, bool *more,
                            store_error_t *error)
{
    pg_store_t *self = context;
    const store_options_t *options = &self->options;
    const forgotten_t *forgotten;
    const forget_limits_t limits = {expiry_ms - options->events_ms_max, options->events_bytes_max,
                                    exported, expiry_ms - options->tombstones_ms_max,
                                    options->tombstones_max};
    store_code_t code =
        pg_tables_forget (self->tables, &limits, forgets, self, &forgotten, more, error);
    if (code == STORE_OK && forgotten->count > 0)
        behind_forgot (self->behind, forgotten);
    atomic_store (&self->tombstones, pg_tables_meta (self->tables)->tombstones);
    return code == STORE_ERROR_FULL ? STORE_OK : code;
}

static store_code_t rest (void *context, behind_rest_t *rest, store_error_t *error)
{
    (void) context;
    (void) rest;
    (void) error;
    return STORE_OK;
}

static const behind_calls_t CALLS = {begin, write_rows, commit, forget, rest};

/* Reads. */

static store_code_t pg_load (store_t *base, lookup_t *keys, size_t count, store_error_t *error)
{
    pg_store_t *self = (pg_store_t *) base;
    if (self->overlay != NULL && pg_written (base) >= overlay_upto (self->overlay)) {
        overlay_free (self->overlay);
        self->overlay = NULL;
    }
    store_code_t code = pg_load_keys (self, self->load, keys, count, error);
    for (size_t i = 0; code == STORE_OK && self->overlay != NULL && i < count; i++)
        overlay_correct (self->overlay, &keys[i]);
    return code;
}

static store_code_t pg_due (store_t *base, store_sweep_t *sweep, store_error_t *error)
{
    pg_store_t *self = (pg_store_t *) base;
    return pg_load_due (self, self->due, sweep, error);
}

/* After a failed commit some batches may still wait for their rows, and if those find no space
 * either, for long: then their images are read from memory. */
static store_code_t pg_live (store_t *base, const store_live_visitor_t *visitor,
                             store_error_t *error)
{
    pg_store_t *self = (pg_store_t *) base;
    overlay_free (self->overlay);
    store_code_t code = behind_wait_all (self->behind, &self->overlay, error);
    return code == STORE_OK ? pg_load_live (self, self->load, self->overlay, visitor, error) : code;
}

static void pg_stats (store_t *base, store_stats_t *out)
{
    pg_store_t *self = (pg_store_t *) base;
    *out = (store_stats_t){
        .tasks = atomic_load (&self->tasks),
        .tombstones = atomic_load (&self->tombstones),
        .removals = atomic_load (&self->removals),
        .damaged = atomic_load (&self->damaged),
        .database_bytes = atomic_load (&self->database_bytes),
        .journal_bytes = atomic_load (&self->journal_bytes),
        .schema = (int) pg_steps_version (),
        .unknown_commits = atomic_load (&self->unknown_commits),
        .pinned_ms = (uint64_t) atomic_load (&self->pinned_ms),
        .standbys = atomic_load (&self->standbys),
        .taken_over = self->taken_over,
        .free_bytes = space_free_bytes (self->options.directory), /* not the database's */
    };
    behind_stats (self->behind, out);
}

/* Opening and owning. */

static void pg_free (pg_store_t *self)
{
    pg_beat_stop (self->beat); /* each of these threads may hurry the other one */
    behind_free (self->behind);
    pg_keeper_free (&self->keeper);
    pg_beat_free (&self->beat);
    free (self->watch);
    pg_readers_free (&self->readers);
    pg_blobs_free (&self->blobs);
    pg_commit_free (&self->commit);
    pg_tables_free (&self->tables);
    overlay_free (self->overlay);
    pg_target_destroy (&self->target);
    pthread_mutex_destroy (&self->told_lock);
    pthread_mutex_destroy (&self->whole_lock);
    free ((char *) self->options.directory);
    free (self);
}

static pg_store_t *pg_new (const store_options_t *options)
{
    pg_store_t *self = memory_zero (1, sizeof (*self));
    self->base.backend = &store_backend_postgresql;
    self->options = *options;
    self->options.directory = memory_text (options->directory);
    self->database.say = options->database->say;
    self->database.context = options->database->context;
    self->database.failover_synchronous = options->database->failover_synchronous;
    self->database.pinned_ms = options->database->pinned_ms;
    self->database.standby = options->database->standby;
    self->database.gives_up = options->database->gives_up;
    self->database.lease_ms = options->database->lease_ms;
    atomic_store (&self->impatient, true);
    pthread_mutex_init (&self->told_lock, NULL);
    pthread_mutex_init (&self->whole_lock, NULL);
    self->behind = behind_new (&CALLS, self, &self->options);
    self->keeper = pg_keeper_new (self);
    self->load = pg_load_new (self, "look-ups");
    self->due = pg_load_new (self, "sweep");
    self->watch = memory_alloc (sizeof (*self->watch));
    pg_watch_init (self->watch, self);
    self->readers = pg_readers_new (self);
    self->blobs = pg_blobs_new (self);
    self->commit = pg_commit_new (self);
    self->beat = pg_beat_new (self);
    self->tables = pg_tables_new (self);
    return self;
}

/* A first start that the server refuses has a wrong configuration, which no waiting mends. One
 * that was connected once may be in the middle of a failover, or of a change there. */
static store_code_t judge_first (pg_store_t *self, store_code_t code, store_error_t *error)
{
    if (code != STORE_ERROR_AWAY || pg_instance_is_there (self->options.directory))
        return code;
    return pg_target_judge (&self->target, PG_REFUSALS_ALL, error);
}

static store_code_t pg_open (store_t **out, const store_options_t *options, boot_t *boot,
                             store_error_t *error)
{
    *boot = (boot_t){0};
    if (options->database == NULL || options->directory == NULL)
        return store_fail (error, STORE_ERROR_ACCESS,
                           "store postgresql needs a data directory and database/uri");
    if (options->archive != NULL)
        return store_fail (error, STORE_ERROR_ACCESS,
                           "store/archive is of sqlite: PostgreSQL has archives of its own");
    pg_tables_of_t owned = {.system_id = 0};
    pg_store_t *self = pg_new (options);
    store_code_t code = pg_target_init (&self->target, options->database, error);
    if (!options->database->gives_up)
        pg_instance_owned (&owned, options->directory);
    if (code == STORE_OK)
        code = judge_first (self, pg_schema_prepare (&self->target, &owned, error), error);
    if (code == STORE_OK)
        *out = &self->base;
    else
        pg_free (self);
    return code;
}

static void say_adopted (pg_store_t *self, const pg_owned_t *owned)
{
    char owner[160];
    char text[256];
    if (owned->from[0] == '\0')
        return;
    pg_instance_text (owned->from, owner, sizeof (owner));
    snprintf (text, sizeof (text), "took over from %s, which gave no sign for %lld ms", owner,
              (long long) owned->silent_ms);
    pg_store_say (self, DATABASE_ADOPTED, text);
}

void pg_store_say_replicated (pg_store_t *self)
{
    char place[PG_PLACE_SIZE];
    char text[160 + PG_PLACE_SIZE];
    bool unreplicated = atomic_load (&self->target.unreplicated);
    if (!unreplicated && !self->target.is_local)
        return;
    pg_target_place (&self->target, place);
    snprintf (text, sizeof (text), "%s: a failover of the database may lose acknowledged work: %s",
              unreplicated
                  ? "synchronous_standby_names is empty"
                  : "database/synchronous_commit is local, so no commit waits for a standby",
              place);
    pg_store_say (self, DATABASE_UNREPLICATED, text);
}

static void say_owned (pg_store_t *self, const pg_owned_t *owned, uint64_t recovered)
{
    char place[PG_PLACE_SIZE];
    char text[80 + PG_PLACE_SIZE];
    pg_target_place (&self->target, place);
    snprintf (text, sizeof (text), "epoch %llu, %llu batches from the journal: %s",
              (unsigned long long) owned->epoch, (unsigned long long) recovered, place);
    pg_store_say (self, DATABASE_OWNED, text);
    if (owned->promoted)
        pg_store_say (self, DATABASE_TIMELINE,
                      "the database was promoted or restored, and may lack what was acknowledged: "
                      "a new history of events begins");
    pg_store_say_replicated (self);
    if (atomic_load (&self->target.unsummed))
        pg_store_say (self, DATABASE_UNSUMMED,
                      "data_checksums is off: the database would not notice damaged pages");
}

static void say_upgraded (pg_store_t *self, int32_t from)
{
    char text[128];
    if (from >= pg_steps_version ())
        return;
    snprintf (text, sizeof (text), "the tables were of version %d and are of version %d now",
              (int) from, (int) pg_steps_version ());
    pg_store_say (self, DATABASE_UPGRADED, text);
}

/* From the adoption on the owner beats, so that nobody else takes over from one that has much to
 * read. */
static store_code_t take (pg_store_t *self, int stop_fd, pg_owned_t *owned, store_error_t *error)
{
    int32_t from;
    store_code_t code = pg_own_take (self, stop_fd, owned, error);
    if (code == STORE_OK)
        code = pg_schema_upgrade (&self->target, owned->epoch, owned->instance.owner, &from, error);
    if (code != STORE_OK)
        return code;
    say_upgraded (self, from);
    self->taken_over = owned->from[0] != '\0';
    memcpy (self->owner, owned->instance.owner, sizeof (self->owner));
    self->epoch = owned->epoch;
    code = pg_beat_start (self->beat, owned->epoch, error);
    if (code == STORE_OK)
        say_adopted (self, owned);
    return code;
}

static store_code_t recover (pg_store_t *self, const pg_owned_t *owned, boot_t *boot,
                             store_error_t *error)
{
    uint64_t recovered = 0;
    int64_t newest_id_ms = 0;
    store_code_t code = pg_tables_recover (self->tables, owned->epoch, &recovered, error);
    if (code == STORE_OK)
        code = pg_tables_newest_id (self->tables, &newest_id_ms, error);
    if (code == STORE_OK)
        code = pg_commit_start (self->commit, owned->generation, owned->epoch, error);
    if (code != STORE_OK)
        return code;
    const pg_meta_t *meta = pg_tables_meta (self->tables);
    *boot = (boot_t){
        .generation = owned->generation,
        .epoch = owned->epoch,
        .last_number = meta->last_number,
        .last_pos = meta->last_pos,
        .newest_id_ms = newest_id_ms + 1, /* 0 would say that it is not known */
        .newest_ms = meta->newest_ms,
        .tasks = meta->tasks,
        .recovered_batches = recovered,
        .journal_way = "database",
    };
    memcpy (boot->instance, owned->instance.id, sizeof (boot->instance));
    atomic_store (&self->tasks, meta->tasks);
    atomic_store (&self->tombstones, meta->tombstones);
    say_owned (self, owned, recovered);
    return STORE_OK;
}

static void look (void *context)
{
    pg_store_t *self = context;
    pg_watch_look (self->watch, self);
}

static store_code_t pg_own (store_t *base, int stop_fd, boot_t *boot, store_error_t *error)
{
    pg_owned_t owned;
    pg_store_t *self = (pg_store_t *) base;
    if (self->owned)
        return STORE_OK;
    store_code_t code = take (self, stop_fd, &owned, error);
    if (code == STORE_OK)
        code = recover (self, &owned, boot, error);
    if (code == STORE_OK)
        code = pg_keeper_start (self->keeper, look, self, error);
    if (code == STORE_OK)
        code = behind_start (self->behind, error);
    self->owned = code == STORE_OK;
    atomic_store (&self->impatient, code != STORE_OK);
    return code;
}

/* What is not in the tables by then stands in the journal, for the next start. */
static store_code_t pg_close (store_t *base, store_error_t *error)
{
    pg_store_t *self = (pg_store_t *) base;
    store_code_t code = STORE_OK;
    atomic_store (&self->impatient, true);
    atomic_store (&self->ends, true);
    if (self->owned) {
        code = behind_stop (self->behind, error);
        pg_beat_stop (self->beat);
        if (code == STORE_OK)
            code = pg_own_release (self, self->epoch, error);
    }
    pg_free (self);
    return code;
}

/* What the server does better by itself. */

static store_code_t pg_backup (store_t *store, store_backup_t *backup, store_error_t *error)
{
    (void) store;
    (void) backup;
    return store_fail (error, STORE_ERROR_FOREIGN,
                       "the tasks are in PostgreSQL: copy them by its own tools, as pg_basebackup, "
                       "and the data directory beside them");
}

static store_code_t pg_vacuum (store_t *store, bool begin, store_vacuum_t *out,
                               store_error_t *error)
{
    (void) store;
    (void) begin;
    (void) out;
    return store_fail (error, STORE_ERROR_FOREIGN,
                       "the tasks are in PostgreSQL, which vacuums by itself (autovacuum)");
}

static const vault_t *pg_vault (store_t *store)
{
    return pg_blobs_vault (((const pg_store_t *) store)->blobs);
}

const store_backend_t store_backend_postgresql = {
    .uri = "postgresql",
    .open = pg_open,
    .close = pg_close,
    .own = pg_own,
    .valid_until = pg_valid_until,
    .away_ms = pg_away_ms,
    .live = pg_live,
    .commit = pg_commit,
    .written = pg_written,
    .flush = pg_flush,
    .exported = pg_exported,
    .load = pg_load,
    .reader_open = pg_reader_open,
    .reader_close = pg_reader_close,
    .reader_run = pg_reader_run,
    .backup = pg_backup,
    .vacuum = pg_vacuum,
    .vault = pg_vault,
    .due = pg_due,
    .forgotten = pg_forgotten,
    .stats = pg_stats,
};
