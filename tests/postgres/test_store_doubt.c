/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* What the store does when the database fails it: commits in doubt, fences, a history that was cut,
 * no space, and starts after all that. */
#include <libpq-fe.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "store/postgresql/database_options.h"
#include "store_fixture.h"
#include "support/proxy.h"
#include "support/timing.h"

/* What the store said last of each word. */
static pthread_mutex_t said_lock = PTHREAD_MUTEX_INITIALIZER;
static char said[DATABASE_WAITS + 1][256];

static void say (void *context, database_word_t word, const char *text)
{
    (void) context;
    pthread_mutex_lock (&said_lock);
    snprintf (said[word], sizeof said[word], "%s", text);
    pthread_mutex_unlock (&said_lock);
}

static bool was_said (database_word_t word, const char *words)
{
    pthread_mutex_lock (&said_lock);
    bool found = said[word][0] != '\0' && strstr (said[word], words) != NULL;
    pthread_mutex_unlock (&said_lock);
    return found;
}

static _Atomic (store_code_t) failed_with;

static void failed (void *context, const store_error_t *error)
{
    (void) context;
    atomic_store (&failed_with, error->code);
}

static fixture_t *fresh (void)
{
    memset (said, 0, sizeof said);
    atomic_store (&failed_with, STORE_OK);
    fixture_t *f = fixture_new ("postgresql");
    store_fixture_options (f)->say = say;
    f->options.failed = failed;
    return f;
}

static int setup (void **state)
{
    fixture_t *f = fresh ();
    fixture_open (f);
    *state = f;
    return 0;
}

/* A store that ended by a failure cannot be closed cleanly. */
static void give_up (fixture_t *f)
{
    store_error_t error;
    store_reader_close (&f->reader);
    store_close (&f->store, &error);
}

#define OURS "usename = 'taskmq' AND application_name LIKE "
#define COMMITS "'taskmq commits %'"
#define WRITES "'taskmq write-back %'"
#define LOOK_UPS "'taskmq look-ups %'"

static long long count_sessions (const fixture_t *f, const char *where)
{
    char sql[512];
    snprintf (sql, sizeof sql, "SELECT count (*) FROM pg_stat_activity WHERE " OURS "%s", where);
    return store_fixture_sql (f, sql);
}

static void terminate (const fixture_t *f, const char *where)
{
    char sql[512];
    snprintf (sql, sizeof sql,
              "SELECT pg_terminate_backend (pid) FROM pg_stat_activity WHERE " OURS "%s", where);
    store_fixture_sql (f, sql);
}

/* A commit on a thread of its own. */
typedef struct commit {
    fixture_t *f;
    batch_t *batch;
    store_code_t code;
    store_error_t error;
    pthread_t thread;
} commit_t;

static void *commit_run (void *context)
{
    commit_t *self = context;
    self->code = store_commit (self->f->store, &self->batch, 1, &self->error);
    return NULL;
}

static void commit_begin (commit_t *self, fixture_t *f, int64_t number)
{
    self->f = f;
    self->batch = fixture_batch (f);
    record_t record = test_record (number);
    fixture_change (f, self->batch, &record, TMQ_EVENT_SUBMITTED);
    assert_int_equal (pthread_create (&self->thread, NULL, commit_run, self), 0);
}

static void commit_end (commit_t *self, store_code_t expected)
{
    pthread_join (self->thread, NULL);
    if (self->code != expected)
        fail_msg ("%d in place of %d: %s", self->code, expected, self->error.text);
}

static void assert_whole (fixture_t *f, int64_t tasks)
{
    fixture_settle (f);
    assert_int_equal (store_fixture_sql (f, "SELECT count (*) FROM task"), tasks);
    assert_int_equal (store_fixture_sql (f, "SELECT sum (count) FROM event"), tasks);
    assert_int_equal (store_fixture_sql (f, "SELECT max (first_seq + count - 1) FROM event"),
                      tasks);
    assert_int_equal (store_fixture_sql (f, "SELECT tasks FROM written"), tasks);
    assert_int_equal (store_fixture_sql (f, "SELECT count (*) FROM journal"), 0);
}

/* Commits in doubt. */

static void a_commit_whose_answer_is_lost_is_not_made_twice (void **state)
{
    fixture_t *f = *state;
    fixture_submit (f, 1, 1);
    fixture_settle (f);
    store_fixture_hold_answers (f, true);
    commit_t commit;
    commit_begin (&commit, f, 2);
    WAIT_FOR (count_sessions (f, COMMITS " AND wait_event = 'SyncRep'") == 1, TIMING_PATIENCE_MS);
    terminate (f, COMMITS);
    WAIT_FOR (was_said (DATABASE_AWAY, ""), TIMING_PATIENCE_MS);
    store_fixture_hold_answers (f, false);
    commit_end (&commit, STORE_OK);
    WAIT_FOR (was_said (DATABASE_BACK, "commit 2 had landed"), TIMING_PATIENCE_MS);
    assert_whole (f, 2);
}

/* Something in the database holds inserts into a table up until it is calm. */
static void hold_inserts (const fixture_t *f, const char *table)
{
    char sql[1024];
    snprintf (sql, sizeof sql,
              "CREATE TABLE calm (n int); GRANT ALL ON calm TO taskmq;"
              "CREATE FUNCTION hold () RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN"
              " IF NOT EXISTS (SELECT 1 FROM calm) THEN PERFORM pg_sleep (600); END IF;"
              " RETURN NEW; END $$;"
              "CREATE TRIGGER hold BEFORE INSERT ON %s FOR EACH ROW EXECUTE FUNCTION hold ()",
              table);
    store_fixture_sql (f, sql);
}

static void be_calm (const fixture_t *f)
{
    store_fixture_sql (f, "INSERT INTO calm VALUES (1)");
}

static void a_commit_that_did_not_land_is_made_again (void **state)
{
    fixture_t *f = *state;
    fixture_submit (f, 1, 1);
    hold_inserts (f, "journal");
    commit_t commit;
    commit_begin (&commit, f, 2);
    WAIT_FOR (count_sessions (f, COMMITS " AND wait_event = 'PgSleep'") == 1, TIMING_PATIENCE_MS);
    assert_true (store_away_ms (f->store) == 0 || store_away_ms (f->store) > 250);
    be_calm (f);
    terminate (f, COMMITS);
    commit_end (&commit, STORE_OK);
    assert_true (was_said (DATABASE_BACK, "commit 2 had not landed"));
    assert_whole (f, 2);
}

/* Sessions die all the time, under commits, write-backs, look-ups and the sweep. */
typedef struct killer {
    const fixture_t *f;
    atomic_bool stop;
    atomic_uint kills;
} killer_t;

static void *kill_sessions (void *context)
{
    killer_t *self = context;
    unsigned seed = 1;
    while (!atomic_load (&self->stop)) {
        char *killed = postgres_sql (
            store_fixture_server (),
            "SELECT count (pg_terminate_backend (pid)) FROM (SELECT pid FROM pg_stat_activity"
            " WHERE usename = 'taskmq' ORDER BY random () LIMIT 2) s");
        atomic_fetch_add (&self->kills, (unsigned) atoi (killed));
        free (killed);
        seed = seed * 1103515245 + 12345;
        timing_pause ((seed >> 16) % 40);
    }
    return NULL;
}

static void nothing_is_lost_or_twice_while_sessions_die (void **state)
{
    enum { COMMITS_MADE = 300, COMMITS_MAX = 10 * COMMITS_MADE, KILLS = 20 };
    int64_t number = 0;
    fixture_t *f = *state;
    killer_t killer = {.f = f};
    pthread_t thread;
    assert_int_equal (pthread_create (&thread, NULL, kill_sessions, &killer), 0);
    unsigned answers = 0;
    while (number < COMMITS_MADE ||
           (atomic_load (&killer.kills) <= KILLS && number < COMMITS_MAX)) {
        number++;
        fixture_submit (f, number, number);
        tmq_id_t id = test_id ((uint64_t) number);
        lookup_t key = {.kind = LOOKUP_ID, .ns = "default", .id = id};
        store_error_t error;
        store_code_t code = store_load (f->store, &key, 1, &error);
        assert_true (code == STORE_OK || code == STORE_ERROR_AWAY);
        answers += code == STORE_OK;
        record_free (key.record);
    }
    atomic_store (&killer.stop, true);
    pthread_join (thread, NULL);
    assert_true (atomic_load (&killer.kills) > KILLS);
    assert_true (answers > 0);
    assert_whole (f, number);
    WAIT_FOR (store_away_ms (f->store) == 0, TIMING_PATIENCE_MS);
}

/* Write-backs. */

static void a_write_back_is_made_once (void **state)
{
    fixture_t *f = *state;
    f->options.dirty_ms_max = TIMING_PATIENCE_MS; /* only when it is asked for */
    give_up (f);
    fixture_open (f);
    for (int lost = 0; lost < 2; lost++) {
        int64_t number = lost + 1;
        if (lost == 0)
            hold_inserts (f, "tombstone"); /* of a removal below: so the rest is made again */
        batch_t *batch = fixture_batch (f);
        record_t gone = test_record (99 - lost);
        batch_add_removal (batch, &gone, TMQ_PURGED, 7);
        record_t record = test_record (number);
        fixture_change (f, batch, &record, TMQ_EVENT_SUBMITTED);
        fixture_commit (f, batch);
        if (lost == 1)
            store_fixture_hold_answers (f, true);
        store_flush (f->store);
        WAIT_FOR (count_sessions (f, lost == 0 ? WRITES " AND wait_event = 'PgSleep'"
                                               : WRITES " AND wait_event = 'SyncRep'") == 1,
                  TIMING_PATIENCE_MS);
        if (lost == 0)
            be_calm (f);
        terminate (f, WRITES);
        if (lost == 1)
            store_fixture_hold_answers (f, false);
        fixture_settle (f);
        assert_int_equal (store_fixture_sql (f, "SELECT count (*) FROM task"), number);
        assert_int_equal (store_fixture_sql (f, "SELECT tasks FROM written"), number);
        assert_int_equal (store_fixture_sql (f, "SELECT tombstones FROM written"), number);
        store_stats_t stats;
        store_stats (f->store, &stats);
        assert_int_equal (stats.removals, number);
    }
}

/* Fences and owners. */

static void who_lost_the_data_commits_nothing (void **state)
{
    fixture_t *f = *state;
    fixture_submit (f, 1, 3);
    store_t *second = NULL;
    boot_t boot;
    store_error_t error = {STORE_OK, ""};
    /* As a process that was started again on the same directory: the one before it has ended. */
    assert_int_equal (store_open (&second, "postgresql", &f->options, &boot, &error), STORE_OK);
    assert_int_equal (store_own (second, -1, &boot, &error), STORE_OK);
    assert_int_equal (boot.epoch, f->boot.epoch + 1);
    assert_int_equal (boot.generation, f->boot.generation);
    assert_int_equal (boot.last_number, 3);
    commit_t commit;
    commit_begin (&commit, f, 4);
    commit_end (&commit, STORE_ERROR_FENCED);
    assert_int_equal (store_fixture_sql (f, "SELECT count (*) FROM journal WHERE epoch < (SELECT "
                                            "epoch FROM shard)"),
                      0);
    assert_int_equal (store_close (&second, &error), STORE_OK);
    give_up (f);
    fixture_open (f);
    tmq_id_t id = test_id (4);
    assert_null (fixture_load (f, "default", &id));
}

static void a_late_write_back_puts_nothing_over_newer_rows (void **state)
{
    fixture_t *f = *state;
    fixture_submit (f, 1, 1);
    fixture_settle (f);
    store_fixture_sql (f, "UPDATE fence SET epoch = epoch + 1 WHERE part = 'w'");
    fixture_submit (f, 2, 2);
    store_flush (f->store);
    WAIT_FOR (atomic_load (&failed_with) == STORE_ERROR_FENCED, TIMING_PATIENCE_MS);
    assert_int_equal (store_fixture_sql (f, "SELECT count (*) FROM task"), 1);
    give_up (f);
    fixture_open (f); /* an adoption sets both parts */
    assert_int_equal (f->boot.recovered_batches, 1);
    assert_int_equal (store_fixture_sql (f, "SELECT count (*) FROM task"), 2);
}

static void data_of_another_instance_is_refused (void **state)
{
    fixture_t *f = *state;
    char directory[64];
    store_t *other = NULL;
    boot_t boot;
    store_error_t error;
    store_options_t options = f->options;
    directory_make (directory);
    options.directory = directory;
    for (int i = 0; i < 2; i++) {
        assert_int_equal (store_open (&other, "postgresql", &options, &boot, &error), STORE_OK);
        if (i == 1)
            break;
        assert_int_equal (store_own (other, -1, &boot, &error), STORE_ERROR_OWNED);
        assert_non_null (strstr (error.text, "another broker owns the data"));
        assert_int_equal (store_close (&other, &error), STORE_OK);
        fixture_submit (f, 1, 1); /* the owner was not disturbed */
        fixture_close (f);        /* … and leaves it to who comes */
    }
    assert_int_equal (store_own (other, -1, &boot, &error), STORE_OK);
    assert_int_equal (boot.tasks, 1);
    assert_int_equal (store_close (&other, &error), STORE_OK);
    directory_remove (directory);
}

static void a_copy_on_another_server_is_refused (void **state)
{
    fixture_t *f = *state;
    fixture_close (f);
    store_fixture_sql (f, "UPDATE shard SET system_id = 12345");
    store_error_t error;
    boot_t boot;
    assert_int_equal (store_open (&f->store, "postgresql", &f->options, &boot, &error), STORE_OK);
    assert_int_equal (store_own (f->store, -1, &boot, &error), STORE_ERROR_FOREIGN);
    store_close (&f->store, &error);
    /* As the text says: then it goes on, with a history of its own. */
    store_fixture_sql (f, "UPDATE shard SET system_id = 0");
    uint64_t generation = f->boot.generation;
    fixture_open (f);
    assert_true (f->boot.generation != generation);
}

/* After a promotion the history ends, unless nothing can have been lost by it. */
static void a_promotion_ends_the_history_or_not (void **state)
{
    fixture_t *f = *state;
    for (int synchronous = 0; synchronous < 2; synchronous++) {
        uint64_t generation = f->boot.generation;
        fixture_close (f);
        store_fixture_sql (f, "UPDATE shard SET timeline = 77");
        store_fixture_options (f)->failover_synchronous = synchronous != 0;
        fixture_open (f);
        assert_int_equal (f->boot.generation == generation, synchronous);
    }
}

/* A history that was cut. */

static void what_was_acknowledged_and_is_gone_ends_it (void **state)
{
    fixture_t *f = *state;
    fixture_submit (f, 1, 1);
    fixture_submit (f, 2, 2);
    fixture_settle (f);
    /* As a standby that had not got the last commit. The store thread may just forget something. */
    do {
        store_fixture_sql (f, "UPDATE written SET batch = 1");
        timing_pause (100);
    } while (store_fixture_sql (f, "SELECT batch FROM written") != 1);
    terminate (f, COMMITS);
    commit_t commit;
    commit_begin (&commit, f, 3);
    commit_end (&commit, STORE_ERROR_CUT);
    assert_non_null (strstr (commit.error.text, "commit 2"));
    assert_int_equal (store_fixture_sql (f, "SELECT count (*) FROM journal"), 0);
    give_up (f);
    fixture_open (f);
}

static void assert_starts_with (fixture_t *f, store_code_t expected, const char *words)
{
    store_error_t error = {STORE_OK, ""};
    boot_t boot;
    assert_int_equal (store_open (&f->store, "postgresql", &f->options, &boot, &error), STORE_OK);
    store_code_t code = store_own (f->store, -1, &boot, &error);
    if (code != expected || strstr (error.text, words) == NULL)
        fail_msg ("%d in place of %d: %s", code, expected, error.text);
    store_close (&f->store, &error);
}

/* Without space, or as superusers say. */
static void refuse_inserts (const fixture_t *f, const char *table, bool refuse)
{
    char sql[1024];
    if (refuse)
        snprintf (sql, sizeof sql,
                  "CREATE OR REPLACE FUNCTION refuse () RETURNS trigger LANGUAGE plpgsql AS $$"
                  " BEGIN RAISE 'no space left' USING ERRCODE = '53100'; END $$;"
                  "CREATE TRIGGER refuse BEFORE INSERT ON %s FOR EACH ROW"
                  " EXECUTE FUNCTION refuse ()",
                  table);
    else
        snprintf (sql, sizeof sql, "DROP TRIGGER refuse ON %s", table);
    store_fixture_sql (f, sql);
}

static void a_commit_without_space_keeps_nothing (void **state)
{
    fixture_t *f = *state;
    fixture_submit (f, 1, 1);
    refuse_inserts (f, "journal", true);
    commit_t commit;
    commit_begin (&commit, f, 2);
    commit_end (&commit, STORE_ERROR_FULL);
    refuse_inserts (f, "journal", false);
    f->seq--; /* what was not committed did not happen; its number is not given again */
    f->pos--;
    fixture_submit (f, 2, 2);
    assert_whole (f, 2);
}

static void rows_without_space_are_written_later (void **state)
{
    fixture_t *f = *state;
    store_stats_t stats = {0};
    refuse_inserts (f, "task", true);
    fixture_submit (f, 1, 3);
    store_flush (f->store);
    do
        store_stats (f->store, &stats);
    while (!stats.write_back_stalled);
    fixture_submit (f, 4, 4); /* commits go on */
    refuse_inserts (f, "task", false);
    assert_whole (f, 4);
}

static void a_start_finds_what_the_tables_lack (void **state)
{
    fixture_t *f = *state;
    fixture_submit (f, 1, 1);
    fixture_settle (f);
    refuse_inserts (f, "task", true);
    for (int64_t number = 2; number <= 6; number++)
        fixture_submit (f, number, number);
    give_up (f); /* its rows find no space until the end */
    assert_int_equal (store_fixture_sql (f, "SELECT count (*) FROM journal"), 5);
    assert_starts_with (f, STORE_ERROR_FULL, "no space left");
    refuse_inserts (f, "task", false);
    uint64_t epoch = f->boot.epoch;
    fixture_open (f);
    assert_int_equal (f->boot.recovered_batches, 5);
    assert_int_equal (f->boot.epoch, epoch + 2);
    assert_int_equal (f->boot.last_number, 6);
    assert_int_equal (f->boot.last_pos, 6);
    assert_int_equal (f->boot.tasks, 6);
    assert_whole (f, 6);
}

/* Nothing is passed over: a commit that is missing or damaged ends the start. */
static void a_journal_with_a_hole_is_refused (void **state)
{
    fixture_t *f = *state;
    refuse_inserts (f, "task", true);
    for (int64_t number = 1; number <= 3; number++)
        fixture_submit (f, number, number);
    give_up (f);
    refuse_inserts (f, "task", false);
    store_fixture_sql (f, "CREATE TABLE aside AS SELECT * FROM journal");
    store_fixture_sql (f, "DELETE FROM journal WHERE batch = 2");
    assert_starts_with (f, STORE_ERROR_CORRUPT, "a commit is missing");
    store_fixture_sql (f, "INSERT INTO journal SELECT shard, epoch, batch, set_byte (body, 20, "
                          "255 - get_byte (body, 20)) FROM aside WHERE batch = 2");
    assert_starts_with (f, STORE_ERROR_CORRUPT, "damaged");
    assert_int_equal (store_fixture_sql (f, "SELECT count (*) FROM task"), 0);
    store_fixture_sql (f, "DELETE FROM journal; INSERT INTO journal SELECT * FROM aside");
    fixture_open (f);
    assert_whole (f, 3);
}

/* A commit's session stands still before its lock, with its connection lost. */

typedef struct stopped {
    postgres_t server;
    char uri[POSTGRES_URI_SIZE];
    proxy_t *proxy;
    fixture_t *f;
    pid_t pid; /* of the session */
} stopped_t;

static void stopped_sql (const stopped_t *self, const char *sql)
{
    char text[1024];
    snprintf (text, sizeof text, "SET search_path = %s; %s", store_fixture_schema (self->f), sql);
    free (postgres_sql (&self->server, text));
}

static long long stopped_number (const stopped_t *self, const char *sql)
{
    char text[1024];
    snprintf (text, sizeof text, "SET search_path = %s; %s", store_fixture_schema (self->f), sql);
    return postgres_number (&self->server, text);
}

static void stopped_init (stopped_t *self)
{
    postgres_init_tcp (&self->server);
    postgres_start (&self->server);
    self->proxy = proxy_new (self->server.port, 1);
    postgres_uri_tcp (atoi (strrchr (proxy_endpoint (self->proxy), ':') + 1), self->uri);
    self->f = fresh ();
    store_fixture_options (self->f)->uri = self->uri;
    fixture_open (self->f);
    fixture_submit (self->f, 1, 1);
    fixture_settle (self->f);
    /* The journal finds no space until there is some. */
    stopped_sql (self, "CREATE TABLE space (n int); GRANT ALL ON space TO taskmq;"
                       "CREATE SEQUENCE refused; GRANT ALL ON SEQUENCE refused TO taskmq;"
                       "CREATE FUNCTION refuse () RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN"
                       " IF NOT EXISTS (SELECT 1 FROM space) THEN PERFORM nextval ('refused');"
                       " RAISE 'no space left' USING ERRCODE = '53100'; END IF; RETURN NEW; END $$;"
                       "CREATE TRIGGER refuse BEFORE INSERT ON journal FOR EACH ROW"
                       " EXECUTE FUNCTION refuse ()");
}

static void stopped_destroy (stopped_t *self)
{
    void *end = self->f;
    fixture_teardown (&end);
    proxy_free (self->proxy);
    postgres_destroy (&self->server);
}

/* Begins a commit, and lets its session stand still where it waits for a lock that nobody else has
 * afterwards. */
static void stopped_begin (stopped_t *self, commit_t *commit, int64_t number)
{
    char uri[POSTGRES_URI_SIZE];
    char text[256];
    static const char waits[] = "SELECT coalesce (max (pid), 0) FROM pg_stat_activity"
                                " WHERE wait_event_type = 'Lock'"
                                " AND application_name LIKE " COMMITS;
    postgres_uri (&self->server, "taskmq", "taskmq", uri);
    PGconn *holder = PQconnectdb (uri);
    PQclear (PQexec (holder, "BEGIN"));
    snprintf (text, sizeof text, "SELECT 1 FROM %s.fence WHERE part = 'c' FOR UPDATE",
              store_fixture_schema (self->f));
    PQclear (PQexec (holder, text));
    commit_begin (commit, self->f, number);
    WAIT_FOR ((self->pid = (pid_t) stopped_number (self, waits)) != 0, TIMING_PATIENCE_MS);
    assert_int_equal (kill (self->pid, SIGSTOP), 0);
    PQfinish (holder);
    proxy_cut (self->proxy, PROXY_CUT_RESET);
    WAIT_FOR (stopped_number (self, "SELECT is_called::int FROM refused") == 1, TIMING_PATIENCE_MS);
}

/* It is told to end as soon as it goes on. */
static bool is_told_to_end (pid_t pid)
{
    char path[64];
    char line[128];
    unsigned long long pending = 0;
    snprintf (path, sizeof path, "/proc/%d/status", (int) pid);
    FILE *file = fopen (path, "r");
    while (file != NULL && fgets (line, sizeof line, file) != NULL)
        if (strncmp (line, "ShdPnd:", 7) == 0)
            pending = strtoull (line + 7, NULL, 16);
    if (file != NULL)
        fclose (file);
    return (pending >> (SIGTERM - 1) & 1) != 0;
}

/* What the store gave up must not come about later, and what had a place is not given up. */
static void no_space_is_no_answer_while_the_first_try_may_land (void **state)
{
    (void) state;
    stopped_t stopped = {0};
    commit_t commit;
    stopped_init (&stopped);
    stopped_begin (&stopped, &commit, 2);
    WAIT_FOR (is_told_to_end (stopped.pid), TIMING_PATIENCE_MS);
    /* It waits meanwhile, and says so. */
    WAIT_FOR (store_away_ms (stopped.f->store) > 0, TIMING_PATIENCE_MS);
    stopped_sql (&stopped, "INSERT INTO space VALUES (1)");
    assert_int_equal (kill (stopped.pid, SIGCONT), 0);
    commit_end (&commit, STORE_ERROR_FULL);
    WAIT_FOR (kill (stopped.pid, 0) != 0, TIMING_PATIENCE_MS);
    assert_int_equal (stopped_number (&stopped, "SELECT count (*) FROM journal"), 0);
    assert_true (was_said (DATABASE_BACK, "commit 2 never landed"));
    stopped.f->seq--;
    stopped.f->pos--;
    fixture_submit (stopped.f, 2, 2);
    fixture_settle (stopped.f);
    assert_int_equal (stopped_number (&stopped, "SELECT count (*) FROM task"), 2);
    stopped_destroy (&stopped);
}

/* Away. */

static void a_database_that_is_away_is_waited_for (void **state)
{
    (void) state;
    char uri[POSTGRES_URI_SIZE];
    postgres_t server;
    postgres_init (&server);
    postgres_start (&server);
    postgres_uri (&server, "taskmq", "taskmq", uri);
    fixture_t *f = fresh ();
    store_fixture_options (f)->uri = uri;
    fixture_open (f);
    fixture_submit (f, 1, 1);
    fixture_settle (f);
    postgres_end (&server, SIGQUIT);
    tmq_id_t id = test_id (1);
    lookup_t key = {.kind = LOOKUP_ID, .ns = "default", .id = id};
    store_error_t error;
    assert_int_equal (store_load (f->store, &key, 1, &error), STORE_ERROR_AWAY);
    assert_null (key.record);
    assert_true (store_away_ms (f->store) > 0);
    store_sweep_t sweep = {.wall_ms = 1, .limit = 10};
    assert_int_equal (store_due (f->store, &sweep, &error), STORE_ERROR_AWAY);
    commit_t commit;
    commit_begin (&commit, f, 2);
    timing_pause (300);
    assert_true (store_away_ms (f->store) >= 300);
    postgres_start (&server);
    commit_end (&commit, STORE_OK);
    WAIT_FOR (store_load (f->store, &key, 1, &error) == STORE_OK, TIMING_PATIENCE_MS);
    assert_non_null (key.record);
    record_free (key.record);
    WAIT_FOR (store_away_ms (f->store) == 0, TIMING_PATIENCE_MS);
    fixture_settle (f);
    char sql[128];
    snprintf (sql, sizeof sql, "SELECT count (*) FROM %s.task", store_fixture_schema (f));
    assert_int_equal (postgres_number (&server, sql), 2);
    void *end = f;
    fixture_teardown (&end);
    postgres_destroy (&server);
}

/* Nobody waits for it at an end: what is not in the tables stands in the journal. */
static void an_end_does_not_wait_for_it (void **state)
{
    (void) state;
    char uri[POSTGRES_URI_SIZE];
    postgres_t server;
    postgres_init (&server);
    postgres_start (&server);
    postgres_uri (&server, "taskmq", "taskmq", uri);
    fixture_t *f = fresh ();
    store_fixture_options (f)->uri = uri;
    f->options.dirty_ms_max = 3600 * 1000;
    fixture_open (f);
    fixture_submit (f, 1, 5);
    postgres_end (&server, SIGKILL);
    store_error_t error;
    store_reader_close (&f->reader);
    assert_int_equal (store_close (&f->store, &error), STORE_ERROR_AWAY);
    postgres_start (&server);
    fixture_open (f);
    assert_int_equal (f->boot.recovered_batches, 1);
    assert_int_equal (f->boot.tasks, 5);
    void *end = f;
    fixture_teardown (&end);
    postgres_destroy (&server);
}

/* It is deleted as fast as it is written, and autovacuum would come once a minute. */
static void the_journal_is_vacuumed_by_its_owner (void **state)
{
    enum { BYTES = 1024 * 1024, TASKS = 70 };
    fixture_t *f = *state;
    uint64_t noise = 1;
    store_fixture_sql (f, "ALTER TABLE journal SET (autovacuum_enabled = off)");
    for (int64_t number = 1; number <= TASKS; number++) {
        record_t record = test_record (number);
        record.payload = buf_new_uninitialised (BYTES);
        for (size_t i = 0; i < BYTES; i++) {
            noise = noise * UINT64_C (6364136223846793005) + 1442695040888963407;
            buf_mutable (record.payload)[i] = (uint8_t) (noise >> 56);
        }
        record.payload_bytes = BYTES;
        batch_t *batch = fixture_batch (f);
        fixture_change (f, batch, &record, TMQ_EVENT_SUBMITTED);
        batch->bytes += BYTES; /* as the engine counts it */
        fixture_commit (f, batch);
        buf_drop (record.payload);
    }
    fixture_settle (f);
    WAIT_FOR (store_fixture_sql (f, "SELECT vacuum_count FROM pg_stat_user_tables WHERE relid = "
                                    "'journal'::regclass") > 0,
              TIMING_PATIENCE_MS);
}

/* The pages of live tasks: one is asked for while the one before it is taken in. */

enum { LIVE_TASKS = 6500, LIVE_CUT = 1900 /* now and then in another part of a page */ };

typedef struct live_walk {
    fixture_t *f;
    int64_t last;
    bool cuts;
    bool wrong; /* a task came twice, or not at all */
    store_code_t code;
    store_error_t error;
    atomic_bool done;
    pthread_t thread;
} live_walk_t;

static void next_live (void *context, record_t *record)
{
    live_walk_t *walk = context;
    walk->wrong =
        walk->wrong || record->number != walk->last + 1 || strcmp (record->ns, "default") != 0;
    walk->last = record->number;
    if (walk->cuts && walk->last % LIVE_CUT == 0)
        terminate (walk->f, LOOK_UPS);
    record_free (record);
}

static void no_space (void *context, const char *name, uint64_t last_seq)
{
    (void) context;
    (void) name;
    (void) last_seq;
}

static void *walk_run (void *context)
{
    live_walk_t *walk = context;
    const store_live_visitor_t visitor = {next_live, no_space, walk, NULL};
    walk->code = store_live (walk->f->store, &visitor, &walk->error);
    atomic_store (&walk->done, true);
    return NULL;
}

/* A store that waits for a session which never comes could not even be closed: then it is over. */
static void walk_end (live_walk_t *walk)
{
    int64_t until_ms = timing_ms () + TIMING_PATIENCE_MS;
    while (!atomic_load (&walk->done)) {
        if (timing_ms () > until_ms) {
            fprintf (stderr, "live tasks do not come behind %lld\n", (long long) walk->last);
            _exit (1);
        }
        timing_pause (5);
    }
    pthread_join (walk->thread, NULL);
    if (walk->code != STORE_OK || walk->wrong)
        fail_msg ("live tasks: %d %s", walk->code, walk->error.text);
}

static void live_tasks_come_once_while_their_session_dies (void **state)
{
    fixture_t *f = *state;
    for (int64_t from = 1; from <= LIVE_TASKS; from += 500)
        fixture_submit (f, from, from + 499);
    fixture_settle (f);
    for (int cuts = 0; cuts < 2; cuts++) {
        live_walk_t walk = {.f = f, .cuts = cuts != 0};
        assert_int_equal (pthread_create (&walk.thread, NULL, walk_run, &walk), 0);
        walk_end (&walk);
        assert_int_equal (walk.last, LIVE_TASKS);
        assert_int_equal (was_said (DATABASE_AWAY, ""), cuts);
    }
    const tmq_id_t id = test_id (1); /* the link serves look-ups behind it */
    record_t *found = fixture_load (f, "default", &id);
    assert_non_null (found);
    record_free (found);
}

/* What keeps the database from getting rid of what was deleted is named. */
static void an_old_transaction_is_named (void **state)
{
    (void) state;
    char uri[POSTGRES_URI_SIZE];
    fixture_t *f = fresh ();
    store_fixture_options (f)->pinned_ms = 200;
    fixture_open (f);
    fixture_submit (f, 1, 50);
    store_stats_t stats;
    do
        store_stats (f->store, &stats);
    while (stats.database_bytes == 0 || stats.journal_bytes == 0);
    assert_true (stats.journal_bytes < stats.database_bytes);
    assert_false (was_said (DATABASE_PINNED, "pid"));
    postgres_uri (store_fixture_server (), "taskmq", "taskmq", uri);
    PGconn *old = PQconnectdb (uri);
    PQclear (PQexec (old, "BEGIN ISOLATION LEVEL REPEATABLE READ"));
    PQclear (PQexec (old, "SELECT 1"));
    char pid[32];
    snprintf (pid, sizeof pid, "pid %d ", PQbackendPID (old));
    WAIT_FOR (was_said (DATABASE_PINNED, pid), TIMING_PATIENCE_MS);
    PQfinish (old);
    void *end = f;
    fixture_teardown (&end);
}

#define CASE(test) cmocka_unit_test_setup_teardown (test, setup, fixture_teardown)

int main (void)
{
    const struct CMUnitTest tests[] = {
        CASE (a_commit_whose_answer_is_lost_is_not_made_twice),
        CASE (a_commit_that_did_not_land_is_made_again),
        CASE (nothing_is_lost_or_twice_while_sessions_die),
        CASE (a_write_back_is_made_once),
        CASE (who_lost_the_data_commits_nothing),
        CASE (a_late_write_back_puts_nothing_over_newer_rows),
        CASE (data_of_another_instance_is_refused),
        CASE (a_copy_on_another_server_is_refused),
        CASE (a_promotion_ends_the_history_or_not),
        CASE (what_was_acknowledged_and_is_gone_ends_it),
        CASE (a_commit_without_space_keeps_nothing),
        CASE (rows_without_space_are_written_later),
        CASE (a_start_finds_what_the_tables_lack),
        CASE (a_journal_with_a_hole_is_refused),
        CASE (live_tasks_come_once_while_their_session_dies),
        cmocka_unit_test (no_space_is_no_answer_while_the_first_try_may_land),
        cmocka_unit_test (a_database_that_is_away_is_waited_for),
        cmocka_unit_test (an_end_does_not_wait_for_it),
        cmocka_unit_test (an_old_transaction_is_named),
        CASE (the_journal_is_vacuumed_by_its_owner),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}
