/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* The database fails over to its standby. Where that is synchronous, nothing is lost, and nobody
 * notices more than a wait. Where it is not, what was acknowledged may be gone, and then it is
 * said: the owner ends, and whoever comes after it begins a new history, so that subscribers are
 * told of a gap.
 *
 *     test_promotion [--percent N] [--seed N]      CI: 4 percent and each kind, seed 1 */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "cluster.h"
#include "support/cmocka_all.h"
#include "support/timing.h"

enum {
    PERCENT = 4,
    PROMOTIONS = 50,
    ASYNCHRONOUS_PROMOTIONS = 75,
    ASYNCHRONOUS_KINDS = 6, /* in one of them the standby has all */
    LIFE_MS_MAX = 500,
    AWAY_MS_MAX = 500,
    ROLLBACK = 16,
    ASK_MS = 50,
    TAKEN_MS = 200, /* for a submit to be on its way to the database */
    TASKS = 40,
    TASKS_LOST = 25
};

#define LEASE "2s"

static unsigned early; /* takeovers before the first checkpoint behind a promotion */
static unsigned percent = PERCENT;
static unsigned seed = 1;

static const char *const SYNCHRONOUS[] = {"wal_level=replica", "max_wal_senders=4",
                                          "synchronous_standby_names=*", NULL};
static const char *const ASYNCHRONOUS[] = {"wal_level=replica", "max_wal_senders=4", NULL};

static unsigned draw (unsigned below)
{
    return (unsigned) rand_r (&seed) % below;
}

/* Two servers, of which stage.server takes writes, and brokers that know both. */
typedef struct pair {
    cluster_t cluster;
    postgres_t standby;
} pair_t;

static postgres_t *primary_of (pair_t *self)
{
    return &self->cluster.stage.server;
}

static void wait_streams (pair_t *self)
{
    WAIT_FOR (postgres_number (primary_of (self), "SELECT count (*) FROM pg_stat_replication WHERE"
                                                  " state = 'streaming'") > 0,
              TIMING_PATIENCE_MS);
}

static void start_standby (pair_t *self)
{
    memcpy (self->standby.settings, primary_of (self)->settings, sizeof self->standby.settings);
    postgres_start (&self->standby);
    wait_streams (self);
}

static void begin (pair_t *self, const char *const *settings, const char *failover)
{
    char uri[2 * POSTGRES_URI_SIZE];
    memset (self, 0, sizeof *self);
    setenv ("TASKMQD_DATABASE_FAILOVER", failover, 1);
    stage_init (&self->cluster.stage, settings);
    postgres_init_standby (&self->standby, primary_of (self));
    start_standby (self);
    snprintf (uri, sizeof uri, "postgresql:///taskmq?host=%s,%s&port=5432,5432&user=taskmq",
              primary_of (self)->home, self->standby.home);
    cluster_init_on (&self->cluster, 2, uri, LEASE);
    cluster_start (&self->cluster);
}

static void finish (pair_t *self)
{
    postgres_destroy (&self->standby);
    cluster_destroy (&self->cluster);
    unsetenv ("TASKMQD_DATABASE_FAILOVER");
}

/* The standby becomes what the primary was. */
static void promote (pair_t *self)
{
    postgres_t dead = *primary_of (self);
    assert_int_equal (dead.pid, 0);
    free (postgres_sql (&self->standby, "SELECT pg_promote (true, 60)"));
    *primary_of (self) = self->standby;
    self->standby = dead;
}

/* A new standby in the place of what was the primary. */
static void make_whole (pair_t *self)
{
    postgres_copy (&self->standby, primary_of (self));
    start_standby (self);
}

/* Synchronous. */

typedef enum beside {
    BESIDE_NOTHING,
    BESIDE_OWNER, /* it is killed with the database */
    BESIDE_LATE,  /* the next standby comes late, and until then nothing is acknowledged */
    BESIDES
} beside_t;

static void fail_over (pair_t *pair, load_t *load, beside_t beside)
{
    cluster_t *cluster = &pair->cluster;
    unsigned owner = cluster_owner (cluster, primary_of (pair));
    pid_t pid = cluster->brokers[owner].pid;
    postgres_end (primary_of (pair), SIGKILL);
    if (beside == BESIDE_OWNER)
        cluster_kill (cluster, owner);
    timing_pause (draw (AWAY_MS_MAX));
    promote (pair);
    int64_t promoted_ms = timing_ms (); /* a client's thread may note an answer of before it late */
    if (beside == BESIDE_LATE) {
        timing_pause (draw (3 * CLUSTER_LEASE_MS));
        assert_true (atomic_load (&load->accepted_ms) < promoted_ms);
    }
    make_whole (pair);
    cluster_wait_accepted (cluster, load, timing_ms ());
    if (beside == BESIDE_NOTHING)
        assert_int_equal (cluster->brokers[owner].pid, pid);
    if (beside == BESIDE_OWNER)
        daemon_spawn (&cluster->brokers[owner]);
}

/* Subscribers see no gap and no other history, whoever owns the data behind it. */
static void test_a_synchronous_standby (void **state)
{
    (void) state;
    static load_t load;
    pair_t pair;
    unsigned promotions = stage_part_of_kinds (PROMOTIONS, percent, BESIDES);
    begin (&pair, SYNCHRONOUS, "synchronous");
    load_options_t options = cluster_load (&pair.cluster);
    load_start (&load, &options);
    cluster_wait_accepted (&pair.cluster, &load, 1);
    for (unsigned i = 0; i < promotions; i++) {
        timing_pause (draw (LIFE_MS_MAX));
        fail_over (&pair, &load, (beside_t) (i % BESIDES));
    }
    cluster_finish (&pair.cluster, &load);
    print_message ("%u promotions: of a synchronous standby\n", promotions);
    finish (&pair);
}

typedef struct submission {
    tmq_client_t *client;
    tmq_id_t id;
} submission_t;

static void *submit_one (void *context)
{
    submission_t *self = context;
    self->id = stage_submit (self->client, "promotion");
    return NULL;
}

/* The primary stands still, in the middle of a commit, and its kernel answers for it: no connection
 * is lost. The commit is not waited for there once the owner has found the promoted one whole. */
static void test_a_primary_that_stands_still (void **state)
{
    (void) state;
    pair_t pair;
    pthread_t thread;
    char uri[2 * POSTGRES_URI_SIZE];
    daemon_t *broker = &pair.cluster.stage.broker;
    memset (&pair, 0, sizeof pair);
    setenv ("TASKMQD_DATABASE_FAILOVER", "synchronous", 1);
    stage_init (&pair.cluster.stage, SYNCHRONOUS);
    postgres_init_standby (&pair.standby, primary_of (&pair));
    memcpy (pair.standby.settings, ASYNCHRONOUS, sizeof ASYNCHRONOUS); /* it stays alone */
    postgres_start (&pair.standby);
    wait_streams (&pair);
    snprintf (uri, sizeof uri, "postgresql:///taskmq?host=%s,%s&port=5432,5432&user=taskmq",
              primary_of (&pair)->home, pair.standby.home);
    broker->arguments[3] = uri;
    daemon_start (broker);
    submission_t submission = {.client = daemon_client (broker)};
    stage_submit (submission.client, "promotion");
    postgres_signal (primary_of (&pair), SIGSTOP);
    assert_int_equal (pthread_create (&thread, NULL, submit_one, &submission), 0);
    timing_pause (TAKEN_MS);
    free (postgres_sql (&pair.standby, "SELECT pg_promote (true, 60)"));
    pthread_join (thread, NULL);
    WAIT_FOR (postgres_number (&pair.standby, "SELECT count (*) FROM taskmq.task") == 2,
              TIMING_PATIENCE_MS);
    assert_int_equal (waitpid (broker->pid, NULL, WNOHANG), 0); /* it lives */
    postgres_end (primary_of (&pair), SIGKILL);
    stage_submit (submission.client, "promotion");
    tmq_client_free (&submission.client);
    daemon_stop (broker);
    unsetenv ("TASKMQD_DATABASE_FAILOVER");
    postgres_destroy (&pair.standby);
    stage_destroy (&pair.cluster.stage);
}

/* Asynchronous. */

/* A client of both brokers, one subscription, and what was acknowledged. */
typedef struct witness {
    tmq_client_t *client;
    tmq_subscription_t *subscription;
    tmq_id_t ids[4 * TASKS];
    size_t count;
    uint64_t generation;
} witness_t;

static void witness_init (witness_t *self, const cluster_t *cluster)
{
    const char *endpoints[LOAD_ENDPOINTS_MAX];
    tmq_client_options_t options;
    tmq_error_t error = {0};
    memset (self, 0, sizeof *self);
    cluster_endpoints (cluster, endpoints);
    tmq_client_options_init (&options);
    options.endpoints = endpoints;
    options.endpoints_count = cluster->count;
    options.reconnect_ms_max = 500;
    if (tmq_client_new (&self->client, &options, &error) != TMQ_OK ||
        tmq_subscription_new (&self->subscription, self->client, NULL, &error) != TMQ_OK)
        fail_msg ("%s", error.text);
}

static void witness_free (witness_t *self)
{
    tmq_subscription_free (&self->subscription);
    tmq_client_free (&self->client);
}

static void submit_some (witness_t *self, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        tmq_error_t error = {0};
        assert_true (self->count < sizeof self->ids / sizeof self->ids[0]);
        tmq_id_t *id = &self->ids[self->count++];
        *id = stage_submit (self->client, "promotion");
        if (i % 2 == 0 && i + 1 < count && /* what has ended is not kept in memory */
            tmq_cancel (NULL, self->client, id, NULL, TIMING_PATIENCE_MS, &error) != TMQ_OK)
            fail_msg ("%s", error.text);
    }
}

/* Up to the event of the newest task. */
static void take_events (witness_t *self)
{
    for (bool done = false; !done;) {
        tmq_event_t *event = NULL;
        tmq_error_t error = {0};
        if (tmq_subscription_next (&event, self->subscription, TIMING_PATIENCE_MS, &error) !=
            TMQ_OK)
            fail_msg ("no event: %s", error.text);
        self->generation = event->generation;
        done = event->item == TMQ_ITEM_EVENT &&
               memcmp (&event->task_id, &self->ids[self->count - 1], sizeof (tmq_id_t)) == 0;
        tmq_event_free (event);
    }
}

/* Whoever asks the owner, and no other one, is told that it is there, or hears nothing. */
static void ask_until_it_ends (const witness_t *self, daemon_t *broker, int expected)
{
    int code = -1;
    tmq_client_t *client = daemon_client (broker);
    int64_t until_ms = timing_ms () + TIMING_PATIENCE_MS;
    while (!daemon_has_ended (broker, &code)) {
        tmq_task_t *task = NULL;
        int told = tmq_get (&task, client, &self->ids[draw ((unsigned) self->count)], ASK_MS, NULL);
        tmq_task_free (task);
        if (told == TMQ_NOT_FOUND)
            fail_msg ("%s says that something acknowledged is not there", broker->log);
        if (timing_ms () > until_ms)
            fail_msg ("%s goes on, and what it acknowledged is gone", broker->log);
    }
    tmq_client_free (&client);
    assert_int_equal (code, expected);
}

static size_t count_lost (const witness_t *self)
{
    size_t lost = 0;
    for (size_t i = 0; i < self->count; i++) {
        tmq_error_t error = {0};
        tmq_task_t *task = NULL;
        int code = tmq_get (&task, self->client, &self->ids[i], TIMING_PATIENCE_MS, &error);
        if (code != TMQ_OK && code != TMQ_NOT_FOUND)
            fail_msg ("%s: %s", tmq_code_name (code), error.text);
        lost += code == TMQ_NOT_FOUND;
        tmq_task_free (task);
    }
    return lost;
}

/* True: a gap came before an event of what is submitted now. */
static bool is_told_a_gap (witness_t *self)
{
    bool gap = false;
    submit_some (self, 1);
    for (bool done = false; !done;) {
        tmq_event_t *event = NULL;
        tmq_error_t error = {0};
        if (tmq_subscription_next (&event, self->subscription, TIMING_PATIENCE_MS, &error) !=
            TMQ_OK)
            fail_msg ("no event: %s", error.text);
        gap = gap || event->item == TMQ_ITEM_GAP;
        done = event->item == TMQ_ITEM_EVENT &&
               memcmp (&event->task_id, &self->ids[self->count - 1], sizeof (tmq_id_t)) == 0;
        self->generation = event->generation;
        tmq_event_free (event);
    }
    return gap;
}

static void wait_caught_up (pair_t *self)
{
    wait_streams (self);
    char *end = postgres_sql (primary_of (self), "SELECT pg_current_wal_lsn ()");
    char sql[160];
    snprintf (sql, sizeof sql, "SELECT count (*) FROM pg_stat_replication WHERE flush_lsn >= '%s'",
              end);
    WAIT_FOR (postgres_number (primary_of (self), sql) > 0, TIMING_PATIENCE_MS);
    free (end);
}

/* From now on the standby hears nothing. */
static void cut_replication (pair_t *self)
{
    free (postgres_sql (&self->standby, "ALTER SYSTEM SET primary_conninfo = ''"));
    free (postgres_sql (&self->standby, "SELECT pg_reload_conf ()"));
    WAIT_FOR (postgres_number (&self->standby, "SELECT count (*) FROM pg_stat_wal_receiver") == 0,
              TIMING_PATIENCE_MS);
}

static void wait_written (pair_t *self)
{
    WAIT_FOR (postgres_number (primary_of (self), "SELECT count (*) FROM taskmq.journal") == 0,
              TIMING_PATIENCE_MS);
}

/* The control file still has the timeline of before when somebody owns the data: the one that came
 * back, or on a machine with much to do the other one. */
static void note_early (pair_t *self, const witness_t *witness)
{
    tmq_task_t *task = NULL;
    tmq_get (&task, witness->client, &witness->ids[0], TIMING_PATIENCE_MS, NULL);
    tmq_task_free (task);
    early += postgres_number (primary_of (self),
                              "SELECT (timeline_id < ('x' || substr (pg_walfile_name ("
                              "pg_current_wal_lsn ()), 1, 8))::bit (32)::int4)::int4"
                              " FROM pg_control_checkpoint ()") != 0;
}

typedef enum owner_does {
    OWNER_WORKS,     /* rows that it wrote are lost, and it has more of them to write */
    OWNER_IS_IDLE,   /* all that it had is in the tables */
    OWNER_IS_KILLED, /* with the database, and the other broker takes over */
    OWNER_COMES_BACK /* it is killed, and started again before the other one may take over */
} owner_does_t;

/* What was acknowledged is gone, and nobody acts as if it were not. */
static void lose_some (pair_t *pair, owner_does_t does)
{
    witness_t witness;
    cluster_t *cluster = &pair->cluster;
    witness_init (&witness, cluster);
    submit_some (&witness, TASKS);
    take_events (&witness);
    uint64_t before = witness.generation;
    if (draw (2) == 0)
        wait_written (pair);
    wait_caught_up (pair);
    cut_replication (pair);
    submit_some (&witness, TASKS_LOST + draw (TASKS));
    take_events (&witness);
    if (does != OWNER_IS_KILLED || draw (2) == 0)
        wait_written (pair);
    if (does == OWNER_WORKS)
        submit_some (&witness, 1);
    unsigned owner = cluster_owner (cluster, primary_of (pair));
    daemon_t *broker = &cluster->brokers[owner];
    postgres_end (primary_of (pair), SIGKILL);
    if (does == OWNER_IS_KILLED || does == OWNER_COMES_BACK)
        cluster_kill (cluster, owner);
    timing_pause (draw (AWAY_MS_MAX));
    if (does == OWNER_COMES_BACK)
        daemon_spawn (broker);
    promote (pair);
    if (does == OWNER_COMES_BACK)
        note_early (pair, &witness);
    if (does == OWNER_WORKS || does == OWNER_IS_IDLE)
        ask_until_it_ends (&witness, broker, ROLLBACK);
    size_t lost = count_lost (&witness);
    assert_true (lost >= TASKS_LOST);
    assert_true (is_told_a_gap (&witness));
    assert_true (witness.generation != before);
    witness_free (&witness);
}

static void bring_back (cluster_t *cluster)
{
    for (unsigned i = 0; i < cluster->count; i++)
        if (cluster->brokers[i].pid == 0)
            daemon_spawn (&cluster->brokers[i]);
}

/* The standby does not even know that another broker took over. The one that it knows as the owner
 * takes it again, by an epoch of the same number, while the other one stands still. */
static void lose_an_adoption (pair_t *pair)
{
    witness_t witness;
    cluster_t *cluster = &pair->cluster;
    witness_init (&witness, cluster);
    submit_some (&witness, TASKS);
    take_events (&witness);
    uint64_t before = witness.generation;
    wait_caught_up (pair);
    cut_replication (pair);
    unsigned first = cluster_owner (cluster, primary_of (pair));
    daemon_t *adopter = &cluster->brokers[1 - first];
    cluster_kill (cluster, first);
    submit_some (&witness, 1);
    take_events (&witness);
    daemon_signal (adopter, SIGSTOP);
    daemon_spawn (&cluster->brokers[first]);
    postgres_end (primary_of (pair), SIGKILL);
    promote (pair);
    daemon_wait_ready (&cluster->brokers[first]);
    witness_t other;
    witness_init (&other, cluster);
    submit_some (&other, TASKS); /* more commits than the adopter made */
    witness_free (&other);
    daemon_signal (adopter, SIGCONT);
    ask_until_it_ends (&witness, adopter, CLUSTER_FENCED);
    assert_true (is_told_a_gap (&witness));
    assert_true (witness.generation != before);
    witness_free (&witness);
}

/* The standby has all: the owner that lives finds that out, and who takes over from it knows. */
static void keep_all (pair_t *pair)
{
    witness_t witness;
    cluster_t *cluster = &pair->cluster;
    witness_init (&witness, cluster);
    submit_some (&witness, TASKS);
    take_events (&witness);
    uint64_t before = witness.generation;
    wait_caught_up (pair);
    unsigned owner = cluster_owner (cluster, primary_of (pair));
    pid_t pid = cluster->brokers[owner].pid;
    unsigned fenced = cluster->fenced;
    postgres_end (primary_of (pair), SIGKILL);
    timing_pause (draw (AWAY_MS_MAX));
    promote (pair);
    if (is_told_a_gap (&witness)) {
        /* Its lease was over before it found the new server, on a machine with much to do: a
         * successor could have been lost. */
        cluster_tend (cluster);
        assert_true (cluster->fenced > fenced);
        assert_int_equal (count_lost (&witness), 0);
        witness_free (&witness);
        return;
    }
    WAIT_FOR (
        postgres_number (primary_of (pair),
                         "SELECT count (*) FROM taskmq.shard WHERE timeline = ('x' || substr"
                         " (pg_walfile_name (pg_current_wal_lsn ()), 1, 8))::bit (32)::int4") == 1,
        TIMING_PATIENCE_MS);
    assert_int_equal (cluster->brokers[owner].pid, pid);
    cluster_kill (cluster, owner);
    assert_false (is_told_a_gap (&witness));
    assert_int_equal (count_lost (&witness), 0);
    assert_true (witness.generation == before);
    witness_free (&witness);
}

static void test_an_asynchronous_standby (void **state)
{
    (void) state;
    pair_t pair;
    unsigned promotions =
        stage_part_of_kinds (ASYNCHRONOUS_PROMOTIONS, percent, ASYNCHRONOUS_KINDS);
    begin (&pair, ASYNCHRONOUS, "asynchronous");
    for (unsigned i = 0; i < promotions; i++) {
        if (i > 0) {
            bring_back (&pair.cluster);
            make_whole (&pair);
        }
        unsigned kind = i % ASYNCHRONOUS_KINDS;
        if (kind == 1)
            lose_an_adoption (&pair);
        else if (kind == 2)
            keep_all (&pair);
        else
            lose_some (&pair, (owner_does_t) (kind == 0 ? OWNER_WORKS : kind - 2));
    }
    print_message ("%u promotions: of an asynchronous standby; %u takeovers came before its first "
                   "checkpoint\n",
                   promotions, early);
    finish (&pair);
}

/* With a password. */

static void put_file (const char *path, const char *text)
{
    FILE *file = fopen (path, "w");
    assert_non_null (file);
    assert_true (fputs (text, file) >= 0);
    assert_int_equal (fclose (file), 0);
    assert_int_equal (chmod (path, 0600), 0);
}

/* A standby takes the password, and then says that it only reads: the next host is asked. */
static void test_a_standby_that_takes_the_password_is_passed_by (void **state)
{
    (void) state;
    pair_t pair;
    char path[POSTGRES_PATH_MAX + 32];
    char passfile[DAEMON_PATH_MAX + 16];
    char uri[2 * POSTGRES_URI_SIZE];
    daemon_t *broker = &pair.cluster.stage.broker;
    memset (&pair, 0, sizeof pair);
    stage_init (&pair.cluster.stage, ASYNCHRONOUS);
    const postgres_t *primary = primary_of (&pair);
    free (postgres_sql (primary, "ALTER ROLE taskmq PASSWORD 'unspoken'"));
    snprintf (path, sizeof path, "%s/data/pg_hba.conf", primary->home);
    put_file (path, "local all,replication postgres trust\nlocal all taskmq scram-sha-256\n");
    free (postgres_sql (primary, "SELECT pg_reload_conf ()"));
    postgres_init_standby (&pair.standby, primary);
    start_standby (&pair);
    snprintf (uri, sizeof uri, "postgresql:///taskmq?host=%s,%s&port=5432,5432&user=taskmq",
              pair.standby.home, primary->home);
    broker->arguments[3] = uri;
    snprintf (passfile, sizeof passfile, "%s/passwords", broker->home);
    put_file (passfile, "*:*:*:taskmq:unspoken\n");
    setenv ("TASKMQD_DATABASE_PASSFILE", passfile, 1);
    daemon_start (broker);
    unsetenv ("TASKMQD_DATABASE_PASSFILE");
    daemon_stop (broker);
    postgres_destroy (&pair.standby);
    stage_destroy (&pair.cluster.stage);
}

int main (int argc, char **argv)
{
    stage_arguments (argc, argv, &percent, &seed);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (test_a_standby_that_takes_the_password_is_passed_by),
        cmocka_unit_test (test_a_primary_that_stands_still),
        cmocka_unit_test (test_a_synchronous_standby),
        cmocka_unit_test (test_an_asynchronous_standby),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}
