/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* A database in trouble: no connection left, its disk full, limits that somebody set for the role,
 * sessions that a pooler mixes, a transaction that is never ended. What was acknowledged is there
 * afterwards, and the same broker goes on.
 *
 *     test_trouble [--percent N] [--seed N]      CI: 2 percent of the ten minutes under load */
#include <libpq-fe.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "pooler.h"
#include "stage.h"
#include "support/cmocka_all.h"
#include "support/load.h"
#include "support/timing.h"

enum {
    PAYLOAD = 40000,
    FILL_MAX = 5000,
    FILL_MS = 2000,
    REFUSALS = 20,
    CONNECTIONS_MAX = 64,
    SHORT_MS = 300, /* less than a broker needs that is cut off */
    DATABASE_DISK = 24 << 20,
    BALLAST = 16 << 20,
    LARGE_DISK = 60 << 20,
    LARGE_BALLASTS = 3, /* that leave less room than a body needs */
    LARGE = 15 << 20,
    SESSIONS = 9,      /* of a broker at rest, … */
    SESSIONS_MAX = 12, /* … and for a moment (docs/CLUSTER.md says both) */
    SESSIONS_TASKS = 500,
    PERCENT = 2,
    PINNED_MS = 600000,
    PINNED_TOLD_MS = 70000, /* the broker tells of one that is a minute old */
    PINNED_GROWS_MAX = 2,   /* so many times may the p99 be of what it was before */
    END_MS = 180000,
    WAITS_MAX = 1 << 14,
    WAIT_PAUSE_MS = 5
};

static unsigned percent = PERCENT;
static unsigned seed_of_load = 1;

static void run_sql (const stage_t *stage, const char *sql)
{
    free (postgres_sql (&stage->server, sql));
}

/* Bytes that no server can make smaller. */
static int submit (tmq_client_t *client, size_t bytes, tmq_id_t *id, uint32_t timeout_ms)
{
    static unsigned char payload[PAYLOAD];
    static unsigned seed = 1;
    tmq_submit_t task;
    tmq_receipt_t receipt = {0};
    for (size_t i = 0; i < bytes; i++)
        payload[i] = (unsigned char) rand_r (&seed);
    tmq_submit_init (&task);
    task.queue = "trouble";
    task.payload = payload;
    task.payload_bytes = bytes;
    int code = tmq_submit (&receipt, client, &task, timeout_ms, NULL);
    *id = receipt.id;
    return code;
}

static void assert_there (tmq_client_t *client, const tmq_id_t *id)
{
    tmq_task_t *task = NULL;
    tmq_error_t error = {0};
    if (tmq_get (&task, client, id, TIMING_PATIENCE_MS, &error) != TMQ_OK)
        fail_msg ("I1: a task that was accepted is lost: %s", error.text);
    tmq_task_free (task);
}

/* Takes every connection that the role may have. */
static size_t take_connections (const stage_t *stage, PGconn **taken)
{
    size_t count = 0;
    while (count < CONNECTIONS_MAX / 2) {
        taken[count] = PQconnectdb (stage->uri);
        if (PQstatus (taken[count]) != CONNECTION_OK) {
            PQfinish (taken[count]);
            return count;
        }
        count++;
    }
    return count;
}

/* ... those of the broker, too, which tries to have them again. */
static size_t take_all_connections (const stage_t *stage, PGconn *taken[CONNECTIONS_MAX])
{
    static const char sessions[] = "SELECT count (*) FROM pg_stat_activity WHERE application_name "
                                   "LIKE 'taskmq%'";
    size_t count = take_connections (stage, taken);
    assert_in_range (count, 1, CONNECTIONS_MAX - 1);
    while (postgres_number (&stage->server, sessions) > 0) {
        run_sql (stage, "SELECT pg_terminate_backend (pid, 1000) FROM pg_stat_activity WHERE "
                        "application_name LIKE 'taskmq%'");
        count += take_connections (stage, taken + count);
        assert_true (count < CONNECTIONS_MAX);
    }
    return count;
}

static void test_no_connection_is_left (void **state)
{
    (void) state;
    static const char *const settings[] = {"max_connections=20", NULL};
    PGconn *taken[CONNECTIONS_MAX];
    tmq_id_t ids[2];
    stage_t stage;
    stage_init (&stage, settings);
    daemon_start (&stage.broker);
    tmq_client_t *client = daemon_client (&stage.broker);
    assert_int_equal (submit (client, 10, &ids[0], TIMING_PATIENCE_MS), TMQ_OK);
    size_t count = take_all_connections (&stage, taken);
    WAIT_FOR (daemon_logged (&stage.broker, "DATABASE-AWAY"), TIMING_PATIENCE_MS);
    assert_int_not_equal (submit (client, 10, &ids[1], SHORT_MS), TMQ_OK);
    for (size_t i = 0; i < count; i++)
        PQfinish (taken[i]);
    assert_int_equal (submit (client, 10, &ids[1], TIMING_PATIENCE_MS), TMQ_OK);
    for (size_t i = 0; i < 2; i++)
        assert_there (client, &ids[i]);
    tmq_client_free (&client);
    daemon_stop (&stage.broker);
    stage_destroy (&stage);
}

/* A session of ours is set by us. */
static void test_limits_that_somebody_set (void **state)
{
    (void) state;
    enum { TASKS = 200 };
    static tmq_id_t ids[TASKS];
    stage_t stage;
    stage_init (&stage, NULL);
    run_sql (&stage, "ALTER ROLE taskmq SET statement_timeout = 500");
    run_sql (&stage, "ALTER ROLE taskmq SET lock_timeout = 500");
    run_sql (&stage, "ALTER ROLE taskmq SET synchronous_commit = off");
    run_sql (&stage, "ALTER ROLE taskmq SET search_path = public");
    run_sql (&stage, "ALTER ROLE taskmq SET default_transaction_isolation = serializable");
    run_sql (&stage, "ALTER ROLE taskmq SET timezone = 'Asia/Kathmandu'");
    run_sql (&stage, "ALTER ROLE taskmq SET enable_indexscan = off");
    daemon_start (&stage.broker);
    tmq_client_t *client = daemon_client (&stage.broker);
    for (size_t i = 0; i < TASKS; i++)
        assert_int_equal (submit (client, 1000, &ids[i], TIMING_PATIENCE_MS), TMQ_OK);
    for (size_t i = 0; i < TASKS; i++)
        assert_there (client, &ids[i]);
    assert_false (daemon_logged (&stage.broker, "DATABASE-AWAY"));
    tmq_client_free (&client);
    daemon_stop (&stage.broker);
    assert_int_equal (postgres_number (&stage.server, "SELECT count (*) FROM taskmq.task"), TASKS);
    stage_destroy (&stage);
}

static void path_of_disk (const stage_t *stage, char out[POSTGRES_PATH_MAX + 16])
{
    snprintf (out, POSTGRES_PATH_MAX + 16, "%s/disk", stage->server.home);
}

/* A disk of its own for the server, which is stopped; it goes with this process. */
static bool make_disk (stage_t *stage, int bytes)
{
    char path[POSTGRES_PATH_MAX + 16];
    char size[32];
    struct stat home;
    path_of_disk (stage, path);
    snprintf (size, sizeof size, "size=%d", bytes);
    assert_int_equal (mkdir (path, 0700), 0);
    assert_int_equal (stat (stage->server.home, &home), 0);
    if (unshare (CLONE_NEWNS) != 0 || mount ("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0 ||
        mount ("tmpfs", path, "tmpfs", 0, size) != 0)
        return false;
    postgres_end (&stage->server, SIGINT);
    assert_int_equal (chown (path, home.st_uid, home.st_gid), 0);
    return true;
}

/* What the role makes stands there. The log of the database stays where it is: one without space
 * for that has crashed, and is away. */
static void keep_tables_on_disk (const stage_t *stage)
{
    char path[POSTGRES_PATH_MAX + 16];
    char sql[POSTGRES_PATH_MAX + 96];
    path_of_disk (stage, path);
    snprintf (sql, sizeof sql, "CREATE TABLESPACE disk LOCATION '%s'", path);
    run_sql (stage, sql);
    run_sql (stage, "GRANT CREATE ON TABLESPACE disk TO taskmq");
    run_sql (stage, "ALTER ROLE taskmq SET default_tablespace = disk");
}

/* The log of the database stands there, and nothing else. The server does not run. */
static void keep_log_on_disk (const stage_t *stage)
{
    const char *home = stage->server.home;
    char command[4 * POSTGRES_PATH_MAX];
    snprintf (command, sizeof command,
              "mv '%s/data/pg_wal' '%s/disk/' && ln -s ../disk/pg_wal '%s/data/pg_wal'", home, home,
              home);
    assert_int_equal (system (command), 0);
}

static void set_ballast (const stage_t *stage, unsigned pieces)
{
    char path[POSTGRES_PATH_MAX + 32];
    static char bytes[BALLAST];
    snprintf (path, sizeof path, "%s/disk/ballast", stage->server.home);
    if (pieces == 0) {
        assert_int_equal (unlink (path), 0);
        return;
    }
    FILE *file = fopen (path, "w");
    assert_non_null (file);
    for (unsigned i = 0; i < pieces; i++)
        assert_int_equal (fwrite (bytes, 1, sizeof bytes, file), BALLAST);
    fclose (file);
}

static void begin_on_disk (stage_t *stage, int bytes, bool log)
{
    stage_init (stage, NULL);
    if (!make_disk (stage, bytes)) {
        print_message ("skipped: no disk of its own can be mounted here\n");
        stage_destroy (stage);
        skip ();
    }
    if (log)
        keep_log_on_disk (stage);
    postgres_start (&stage->server); /* which sees it */
    if (!log)
        keep_tables_on_disk (stage);
}

static void end_with_disk (stage_t *stage)
{
    char path[POSTGRES_PATH_MAX + 16];
    postgres_end (&stage->server, SIGQUIT);
    path_of_disk (stage, path);
    assert_int_equal (umount2 (path, MNT_DETACH), 0);
    stage_destroy (stage);
}

/* What was taken, and how often there was no room. */
typedef struct filling {
    tmq_id_t taken[FILL_MAX];
    size_t count;
    unsigned refused;
    unsigned full;    /* of these for want of room */
    unsigned unknown; /* … and without an answer in time */
} filling_t;

/* Until so many are refused. "Unknown" is what a slow machine says, too, and where the database
 * died of it: it may have done what it was told before. */
static void fill (filling_t *self, tmq_client_t *client, unsigned refusals, bool dies)
{
    memset (self, 0, sizeof *self);
    while (self->refused < refusals) {
        int code = submit (client, PAYLOAD, &self->taken[self->count], FILL_MS);
        if (code == TMQ_OK) {
            assert_true (++self->count < FILL_MAX);
            continue;
        }
        self->refused++;
        self->full += code == TMQ_STORE_FULL;
        self->unknown += code == TMQ_UNKNOWN;
        if (code != TMQ_STORE_FULL && code != TMQ_UNAVAILABLE && code != TMQ_UNKNOWN)
            fail_msg ("where no room is left a submit ends with %s", tmq_code_name (code));
    }
    print_message ("%zu tasks of %d bytes were taken, %u refused, STORE_FULL was seen %u times\n",
                   self->count, (int) PAYLOAD, self->refused, self->full);
    assert_true (self->count > 0);
    assert_true (dies || self->full > 0);
}

/* The disk under the tables, or under the log of the server. Nothing that was taken is gone,
 * nothing that was refused is there, and the broker goes on when there is room again. */
static void fill_disk (bool log)
{
    static filling_t filling;
    stage_t stage;
    begin_on_disk (&stage, DATABASE_DISK, log);
    set_ballast (&stage, 1);
    daemon_start (&stage.broker);
    pid_t broker = stage.broker.pid;
    tmq_client_t *client = daemon_client (&stage.broker);
    fill (&filling, client, log ? 1 : REFUSALS, log);
    if (log)
        postgres_end (&stage.server, SIGKILL); /* what is left of it */
    set_ballast (&stage, 0);
    if (log)
        postgres_start (&stage.server);
    tmq_id_t id;
    WAIT_FOR (submit (client, 10, &id, TIMING_PATIENCE_MS) == TMQ_OK, TIMING_PATIENCE_MS);
    for (size_t i = 0; i < filling.count; i++)
        assert_there (client, &filling.taken[i]);
    assert_there (client, &id);
    assert_int_equal (stage.broker.pid, broker);
    tmq_client_free (&client);
    daemon_stop (&stage.broker);
    /* What was dropped never happened: no reader of events misses it. */
    assert_false (daemon_logged (&stage.broker, "EVENTS-GAP"));
    long long found = postgres_number (&stage.server, "SELECT count (*) FROM taskmq.task");
    assert_in_range (found, filling.count + 1, filling.count + 1 + filling.unknown);
    end_with_disk (&stage);
}

static void test_the_disk_of_the_database_is_full (void **state)
{
    (void) state;
    fill_disk (false);
}

/* A server without room for its log ends by itself, in the middle of whatever it does. */
static void test_the_log_of_the_database_is_full (void **state)
{
    (void) state;
    fill_disk (true);
}

/* A body that finds no room is refused; everything else goes on, and it is put later. */
static void test_a_body_finds_no_room (void **state)
{
    (void) state;
    static unsigned char body[LARGE];
    tmq_submit_t task;
    tmq_receipt_t receipt = {0};
    tmq_error_t error = {0};
    tmq_id_t small;
    stage_t stage;
    begin_on_disk (&stage, LARGE_DISK, false);
    set_ballast (&stage, LARGE_BALLASTS);
    daemon_start (&stage.broker);
    tmq_client_t *client = daemon_client (&stage.broker);
    tmq_submit_init (&task);
    task.queue = "trouble";
    task.payload = body;
    task.payload_bytes = LARGE;
    int code = tmq_submit (&receipt, client, &task, 3000, &error);
    print_message ("refused: %s (%s)\n", tmq_code_name (code), error.text);
    assert_int_equal (code, TMQ_STORE_FULL);
    assert_non_null (strstr (error.text, "the database has no room"));
    assert_int_equal (submit (client, 10, &small, TIMING_PATIENCE_MS), TMQ_OK);
    set_ballast (&stage, 0);
    if (tmq_submit (&receipt, client, &task, TIMING_PATIENCE_MS, &error) != TMQ_OK)
        fail_msg ("%s", error.text);
    assert_there (client, &receipt.id);
    assert_there (client, &small);
    assert_int_equal (postgres_number (&stage.server, "SELECT bytes FROM taskmq.blob WHERE whole"),
                      LARGE);
    tmq_client_free (&client);
    daemon_stop (&stage.broker);
    end_with_disk (&stage);
}

/* A part of the load, and what one more client waited in it for a small task to be durable. */
typedef struct window {
    size_t completed;
    uint32_t waits_us[WAITS_MAX];
    size_t count;
} window_t;

static int by_wait (const void *a, const void *b)
{
    uint32_t left = *(const uint32_t *) a;
    uint32_t right = *(const uint32_t *) b;
    return (left > right) - (left < right);
}

static void look_through (window_t *window, load_t *load, tmq_client_t *client, uint32_t ms)
{
    size_t before = history_completed_count (&load->history);
    int64_t until = timing_ms () + ms;
    window->count = 0;
    while (timing_ms () < until) {
        struct timespec began;
        struct timespec ended;
        clock_gettime (CLOCK_MONOTONIC, &began);
        load_submit (load, client, END_MS);
        clock_gettime (CLOCK_MONOTONIC, &ended);
        if (window->count < WAITS_MAX)
            window->waits_us[window->count++] =
                (uint32_t) ((ended.tv_sec - began.tv_sec) * 1000000 +
                            (ended.tv_nsec - began.tv_nsec) / 1000);
        timing_pause (WAIT_PAUSE_MS);
    }
    window->completed = history_completed_count (&load->history) - before;
}

/* Returns the p99. */
static uint32_t tell_of (window_t *window, const char *when, uint32_t ms)
{
    qsort (window->waits_us, window->count, sizeof window->waits_us[0], by_wait);
    uint32_t p99 = window->waits_us[window->count * 99 / 100];
    print_message ("%s: %zu completed in %u ms; %zu submits, p50 %u us, p99 %u us\n", when,
                   window->completed, ms, window->count, window->waits_us[window->count / 2], p99);
    return p99;
}

static PGconn *begin_old_transaction (const stage_t *stage)
{
    PGconn *old = PQconnectdb (stage->uri);
    PQclear (PQexec (old, "BEGIN ISOLATION LEVEL REPEATABLE READ"));
    PGresult *seen = PQexec (old, "SELECT count (*) FROM taskmq.task");
    assert_int_equal (PQresultStatus (seen), PGRES_TUPLES_OK);
    PQclear (seen);
    return old;
}

/* Held for all of ms, with a look at its beginning and one at its end. Returns the worse p99. */
static uint32_t hold_transaction (const stage_t *stage, load_t *load, tmq_client_t *client,
                                  uint32_t ms)
{
    static window_t window;
    PGconn *old = begin_old_transaction (stage);
    look_through (&window, load, client, ms / 10);
    uint32_t first = tell_of (&window, "with a snapshot, at its beginning", ms / 10);
    timing_pause (ms / 10 * 8);
    look_through (&window, load, client, ms / 10);
    uint32_t last = tell_of (&window, "with a snapshot, at its end", ms / 10);
    assert_true (window.completed > 0);
    if (ms > PINNED_TOLD_MS)
        assert_true (daemon_logged (&stage->broker, "DATABASE-PINNED"));
    PQfinish (old);
    return first > last ? first : last;
}

/* Only the whole run is long enough for the times to say something. */
static void assert_not_much_slower (uint32_t before_us, uint32_t pinned_us)
{
    if (percent >= 100 && pinned_us > PINNED_GROWS_MAX * before_us)
        fail_msg (
            "with a snapshot the p99 of a submit is %u us, more than %d times the %u us without",
            pinned_us, (int) PINNED_GROWS_MAX, before_us);
}

/* It keeps every row that the broker deletes: the journal grows, and work goes on. */
static void test_a_transaction_that_nobody_ends (void **state)
{
    (void) state;
    static load_t load;
    static window_t window;
    stage_t stage;
    uint32_t ms = stage_part (PINNED_MS, percent);
    stage_init (&stage, NULL);
    daemon_start (&stage.broker);
    tmq_client_t *client = daemon_client (&stage.broker);
    load_options_t options = {.endpoints = {stage.broker.endpoint},
                              .submitters = 2,
                              .workers = 2,
                              .subscribers = 1,
                              .open_max = 200,
                              .timeout_ms = END_MS};
    load_start (&load, &options);
    WAIT_FOR (history_completed_count (&load.history) > 0, TIMING_PATIENCE_MS);
    look_through (&window, &load, client, ms / 10);
    uint32_t before_us = tell_of (&window, "without a snapshot", ms / 10);
    uint32_t pinned_us = hold_transaction (&stage, &load, client, ms);
    load_finish (&load, END_MS);
    tmq_client_free (&client);
    daemon_stop (&stage.broker);
    checker_tasks_file (&load.history, stage.broker.data);
    stage_check_tables (&stage, &load.history);
    load_clear (&load);
    stage_destroy (&stage);
    assert_not_much_slower (before_us, pinned_us);
}

/* Sessions that are mixed would lose their settings and their locks, and nobody would notice. */
static void test_a_pooler_is_refused (void **state)
{
    (void) state;
    stage_t stage;
    stage_init_tcp (&stage, NULL);
    pooler_t *pooler = pooler_new (stage.server.port);
    stage_through (&stage, pooler_port (pooler));
    daemon_spawn (&stage.broker);
    assert_int_equal (daemon_exit_code (&stage.broker), 3);
    assert_true (daemon_logged (&stage.broker, "pooler"));
    stage_through (&stage, stage.server.port);
    daemon_start (&stage.broker);
    daemon_stop (&stage.broker);
    pooler_free (pooler);
    stage_destroy (&stage);
}

/* A server that took the password, and no session, is waited for. */
static void assert_start_waits (stage_t *stage, const char *before, const char *why,
                                const char *behind)
{
    run_sql (stage, before);
    daemon_spawn (&stage->broker);
    WAIT_FOR (daemon_logged (&stage->broker, why), TIMING_PATIENCE_MS);
    run_sql (stage, behind);
    daemon_wait_ready (&stage->broker);
    daemon_stop (&stage->broker);
}

/* A wrong password, or none, ends a start: nobody but a person can mend it. */
static void test_a_password_is_read_from_its_file (void **state)
{
    (void) state;
    char hba[POSTGRES_PATH_MAX + 32];
    char passfile[DAEMON_PATH_MAX + 16];
    stage_t stage;
    stage_init_tcp (&stage, NULL);
    run_sql (&stage, "ALTER ROLE taskmq PASSWORD 'unspoken'");
    snprintf (hba, sizeof hba, "%s/data/pg_hba.conf", stage.server.home);
    FILE *file = fopen (hba, "w");
    assert_true (
        fputs ("local all postgres trust\nhost all all 127.0.0.1/32 scram-sha-256\n", file) >= 0);
    assert_int_equal (fclose (file), 0);
    run_sql (&stage, "SELECT pg_reload_conf ()");
    snprintf (passfile, sizeof passfile, "%s/passwords", stage.broker.home);
    static const char *const passwords[] = {"wrong", "unspoken"};
    setenv ("TASKMQD_DATABASE_PASSFILE", passfile, 1);
    for (size_t i = 0; i < 2; i++) {
        file = fopen (passfile, "w");
        assert_true (fprintf (file, "*:*:*:taskmq:%s\n", passwords[i]) > 0);
        assert_int_equal (fclose (file), 0);
        assert_int_equal (chmod (passfile, 0600), 0);
        if (i == 0) {
            daemon_spawn (&stage.broker);
            assert_int_equal (daemon_exit_code (&stage.broker), 3);
            assert_true (daemon_logged (&stage.broker, "password authentication failed"));
        }
    }
    daemon_start (&stage.broker);
    daemon_stop (&stage.broker);
    assert_start_waits (&stage, "ALTER ROLE taskmq CONNECTION LIMIT 0", "too many connections",
                        "ALTER ROLE taskmq CONNECTION LIMIT -1");
    unsetenv ("TASKMQD_DATABASE_PASSFILE");
    assert_false (daemon_logged (&stage.broker, "unspoken"));
    stage_destroy (&stage);
}

static void reload_with (const stage_t *stage, const char *how)
{
    run_sql (stage, how);
    run_sql (stage, "SELECT pg_reload_conf ()");
}

/* Who fences a server off by its configuration means it. What a role or a database was set to, a
 * broker sets for itself. */
static void test_who_may_only_read (void **state)
{
    (void) state;
    stage_t stage;
    stage_init (&stage, NULL);
    run_sql (&stage, "ALTER ROLE taskmq SET default_transaction_read_only = on");
    daemon_start (&stage.broker);
    daemon_stop (&stage.broker);
    run_sql (&stage, "ALTER ROLE taskmq RESET default_transaction_read_only");
    run_sql (&stage, "ALTER DATABASE taskmq SET default_transaction_read_only = on");
    daemon_start (&stage.broker);
    daemon_stop (&stage.broker);
    run_sql (&stage, "SET transaction_read_only = off;"
                     " ALTER DATABASE taskmq RESET default_transaction_read_only");
    reload_with (&stage, "ALTER SYSTEM SET default_transaction_read_only = on");
    daemon_spawn (&stage.broker);
    WAIT_FOR (daemon_logged (&stage.broker, "default_transaction_read_only is on for all of it"),
              TIMING_PATIENCE_MS);
    reload_with (&stage, "ALTER SYSTEM RESET default_transaction_read_only");
    daemon_wait_ready (&stage.broker);
    daemon_stop (&stage.broker);
    stage_destroy (&stage);
}

static bool server_logged (const stage_t *stage, const char *text)
{
    daemon_t server = {0};
    snprintf (server.log, sizeof server.log, "%s/log", stage->server.home);
    return daemon_logged (&server, text);
}

static bool has_sessions (const stage_t *stage, long long count)
{
    return postgres_number (&stage->server, "SELECT count (*) FROM pg_stat_activity WHERE usename ="
                                            " 'taskmq'") == count;
}

/* In a namespace of its own: the load knows all tasks of its own one. */
static void pass_large_body (const daemon_t *broker)
{
    static unsigned char body[LARGE];
    tmq_client_options_t options;
    tmq_client_t *client = NULL;
    tmq_submit_t task;
    tmq_receipt_t receipt = {0};
    tmq_error_t error = {0};
    const char *endpoints[] = {broker->endpoint};
    FILE *file = tmpfile ();
    assert_non_null (file);
    tmq_client_options_init (&options);
    options.endpoints = endpoints;
    options.endpoints_count = 1;
    options.ns = "bodies";
    assert_int_equal (tmq_client_new (&client, &options, &error), TMQ_OK);
    tmq_submit_init (&task);
    task.queue = "trouble";
    task.payload = body;
    task.payload_bytes = LARGE;
    if (tmq_submit (&receipt, client, &task, TIMING_PATIENCE_MS, &error) != TMQ_OK ||
        tmq_payload_save (client, &receipt.id, fileno (file), TIMING_PATIENCE_MS, &error) != TMQ_OK)
        fail_msg ("%s", error.text);
    fclose (file);
    tmq_client_free (&client);
}

static void work_with_large_body (stage_t *stage)
{
    static load_t load;
    load_options_t options = {.endpoints = {stage->broker.endpoint},
                              .submitters = 2,
                              .workers = 2,
                              .subscribers = 2,
                              .readers = 4,
                              .visitors = 1,
                              .open_max = 200,
                              .timeout_ms = END_MS};
    load_start (&load, &options);
    pass_large_body (&stage->broker);
    WAIT_FOR (history_completed_count (&load.history) > SESSIONS_TASKS, TIMING_PATIENCE_MS);
    load_finish (&load, END_MS);
    load_clear (&load);
}

static void limit_sessions (const stage_t *stage, int most)
{
    char sql[64];
    snprintf (sql, sizeof sql, "ALTER ROLE taskmq CONNECTION LIMIT %d", most);
    run_sql (stage, sql);
}

/* Not one more than the documents say, so that nobody sets max_connections too low. An owner that
 * stands still keeps its own while another one takes over. */
static void test_how_many_sessions_there_are (void **state)
{
    (void) state;
    stage_t stage;
    daemon_t standby;
    stage_init (&stage, NULL);
    limit_sessions (&stage, SESSIONS_MAX);
    daemon_start (&stage.broker);
    WAIT_FOR (has_sessions (&stage, SESSIONS), TIMING_PATIENCE_MS);
    work_with_large_body (&stage);
    WAIT_FOR (has_sessions (&stage, SESSIONS), TIMING_PATIENCE_MS);
    daemon_stop (&stage.broker);
    daemon_start (&stage.broker);
    WAIT_FOR (has_sessions (&stage, SESSIONS), TIMING_PATIENCE_MS);
    limit_sessions (&stage, 2 * SESSIONS_MAX);
    daemon_init (&standby);
    memcpy (standby.arguments, stage.broker.arguments, sizeof standby.arguments);
    standby.arguments[4] = "--standby";
    daemon_spawn (&standby);
    WAIT_FOR (daemon_logged (&standby, "DATABASE-STANDBY"), TIMING_PATIENCE_MS);
    WAIT_FOR (has_sessions (&stage, SESSIONS + 1), TIMING_PATIENCE_MS);
    daemon_signal (&stage.broker, SIGSTOP);
    daemon_wait_ready (&standby);
    daemon_end (&stage.broker, SIGKILL);
    WAIT_FOR (has_sessions (&stage, SESSIONS), TIMING_PATIENCE_MS);
    daemon_stop (&standby);
    assert_false (server_logged (&stage, "too many connections"));
    daemon_destroy (&standby);
    stage_destroy (&stage);
}

int main (int argc, char **argv)
{
    stage_arguments (argc, argv, &percent, &seed_of_load);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (test_no_connection_is_left),
        cmocka_unit_test (test_limits_that_somebody_set),
        cmocka_unit_test (test_how_many_sessions_there_are),
        cmocka_unit_test (test_a_pooler_is_refused),
        cmocka_unit_test (test_a_password_is_read_from_its_file),
        cmocka_unit_test (test_who_may_only_read),
        cmocka_unit_test (test_the_disk_of_the_database_is_full),
        cmocka_unit_test (test_the_log_of_the_database_is_full),
        cmocka_unit_test (test_a_body_finds_no_room),
        cmocka_unit_test (test_a_transaction_that_nobody_ends),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}
