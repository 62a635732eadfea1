/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Brokers of two versions on one database, as while a cluster is upgraded: that of today, and one
 * whose tables are a version further (next_version.c). Tables change when a newer broker owns them,
 * and not before; an older one never takes what it does not know, and says so; nothing is lost.
 *
 *     test_rolling [--percent N] [--seed N]      CI: 5 percent, seed 1 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cluster.h"
#include "store/postgresql/pg_steps.h"
#include "support/cmocka_all.h"
#include "support/timing.h"

enum { PERCENT = 5, ROUNDS = 20, NEWER = 8, LIFE_MS_MAX = 500 };

#define LEASE "2s"
#define NEXT "taskmqd-next"

static unsigned percent = PERCENT;
static unsigned seed = 1;

/* Both by their locks, as what a session does may not be shown (track_activities). */
static const char UPGRADING[] =
    "SELECT coalesce (max (pid), 0) FROM pg_stat_activity JOIN pg_locks USING (pid) WHERE"
    " application_name LIKE 'taskmq schema %' AND locktype = 'advisory' AND granted";
/* Since when the newest try waits for the row of the owner. */
static const char TAKER_WAITS[] =
    "SELECT coalesce (max (extract (epoch FROM waitstart) * 1000000)::int8, 0) FROM"
    " pg_stat_activity JOIN pg_locks USING (pid) WHERE application_name LIKE 'taskmq adoption %'"
    " AND NOT granted";

typedef struct scene {
    cluster_t cluster;
    load_t load;
} scene_t;

static void begin (scene_t *self, unsigned brokers)
{
    memset (self, 0, sizeof *self);
    cluster_init (&self->cluster, brokers, false, LEASE, seed);
}

static void begin_load (scene_t *self)
{
    load_options_t options = cluster_load (&self->cluster);
    load_start (&self->load, &options);
    cluster_wait_accepted (&self->cluster, &self->load, 1);
    timing_pause ((unsigned) rand_r (&seed) % LIFE_MS_MAX);
}

static void end (scene_t *self)
{
    cluster_finish (&self->cluster, &self->load);
    cluster_destroy (&self->cluster);
}

static long long number (const scene_t *self, const char *sql)
{
    return postgres_number (&self->cluster.stage.server, sql);
}

static int32_t version_of (const scene_t *self)
{
    return (int32_t) number (self, "SELECT version FROM taskmq.meta");
}

static void assert_works (scene_t *self)
{
    cluster_wait_accepted (&self->cluster, &self->load, timing_ms ());
}

static void wait_owner (scene_t *self, unsigned number)
{
    WAIT_FOR (cluster_owner (&self->cluster, &self->cluster.stage.server) == number,
              TIMING_PATIENCE_MS);
}

/* As a standby of this version. */
static void spawn_standby (scene_t *self, unsigned number, const char *program)
{
    daemon_t *broker = &self->cluster.brokers[number];
    broker->program = program;
    remove (broker->log); /* of its life before */
    daemon_spawn (broker);
    WAIT_FOR (daemon_logged (broker, "DATABASE-STANDBY"), TIMING_PATIENCE_MS);
}

/* It says what it is that it does not know, and what to do. */
static void assert_too_old (daemon_t *broker)
{
    assert_int_equal (daemon_exit_code (broker), NEWER);
    assert_true (daemon_logged (broker, "id=STORE-NEWER"));
    assert_true (daemon_logged (broker, "install that one here, too"));
}

/* The steps of docs/CLUSTER.md, one after the other. */
static void upgrade_a_pair (void)
{
    static scene_t scene;
    const int32_t before = pg_steps_version ();
    daemon_t *brokers = scene.cluster.brokers;
    begin (&scene, 2);
    cluster_start (&scene.cluster);
    begin_load (&scene);
    /* 1. The standby, first. Nothing changes. */
    cluster_stop (&scene.cluster, 1);
    spawn_standby (&scene, 1, NEXT);
    assert_works (&scene);
    assert_int_equal (version_of (&scene), before);
    /* 2. The owner is stopped: the new one takes over, and brings the tables to its version. */
    daemon_stop (&brokers[0]);
    wait_owner (&scene, 1);
    assert_works (&scene);
    assert_int_equal (version_of (&scene), before + 1);
    assert_true (daemon_logged (&brokers[1], "id=DATABASE-UPGRADED"));
    assert_int_equal (number (&scene, "SELECT count (*) FROM taskmq.task WHERE later <> 0"), 0);
    /* One that somebody starts too early changes nothing. */
    daemon_spawn (&brokers[0]);
    assert_too_old (&brokers[0]);
    /* 3. The new version there, too: a standby again, and an owner when it is needed. */
    spawn_standby (&scene, 0, NEXT);
    cluster_stop (&scene.cluster, 1);
    wait_owner (&scene, 0);
    assert_works (&scene);
    assert_int_equal (version_of (&scene), before + 1);
    assert_false (daemon_logged (&brokers[0], "id=DATABASE-UPGRADED"));
    end (&scene);
}

static void test_a_pair_is_upgraded (void **state)
{
    (void) state;
    unsigned rounds = stage_part (ROUNDS, percent);
    for (unsigned i = 0; i < rounds; i++)
        upgrade_a_pair ();
    print_message ("%u upgrades: of a pair under load\n", rounds);
}

/* Two standbys of both versions: that of before waits, until the other one has the tables. */
static void leave_an_older_standby (bool killed)
{
    static scene_t scene;
    const int32_t before = pg_steps_version ();
    daemon_t *brokers = scene.cluster.brokers;
    begin (&scene, 3);
    brokers[1].program = NEXT;
    cluster_start (&scene.cluster);
    begin_load (&scene);
    daemon_signal (&brokers[2], SIGSTOP); /* so that the other one is first */
    if (killed)
        cluster_kill (&scene.cluster, 0);
    else
        daemon_stop (&brokers[0]);
    wait_owner (&scene, 1);
    WAIT_FOR (version_of (&scene) == before + 1, TIMING_PATIENCE_MS);
    daemon_signal (&brokers[2], SIGCONT);
    assert_too_old (&brokers[2]);
    assert_works (&scene);
    wait_owner (&scene, 1);
    spawn_standby (&scene, 2, NEXT);
    cluster_kill (&scene.cluster, 1);
    wait_owner (&scene, 2);
    assert_works (&scene);
    assert_int_equal (version_of (&scene), before + 1);
    end (&scene);
}

static void test_an_older_standby_does_not_take_over (void **state)
{
    (void) state;
    unsigned rounds = stage_part_of_kinds (ROUNDS, percent, 2);
    for (unsigned i = 0; i < rounds; i++)
        leave_an_older_standby (i % 2 == 0);
    print_message ("%u upgrades: beside an older standby\n", rounds);
}

/* An owner of the version to come, at whose step the server works. The others wait. */
static void begin_long_upgrade (scene_t *self, const char *third, bool shown)
{
    daemon_t *brokers = self->cluster.brokers;
    begin (self, 3);
    if (!shown)
        free (postgres_sql (&self->cluster.stage.server,
                            "ALTER ROLE taskmq SET track_activities = off"));
    brokers[1].program = NEXT;
    brokers[2].program = third;
    cluster_start (&self->cluster);
    begin_load (self);
    free (postgres_sql (&self->cluster.stage.server, "CREATE ROLE hold"));
    daemon_signal (&brokers[2], SIGSTOP);
    daemon_stop (&brokers[0]);
    long long process = 0;
    long long first = 0;
    long long second = 0;
    WAIT_FOR ((process = number (self, UPGRADING)) != 0, TIMING_PATIENCE_MS);
    daemon_signal (&brokers[2], SIGCONT);
    WAIT_FOR ((first = number (self, TAKER_WAITS)) != 0, TIMING_PATIENCE_MS);
    WAIT_FOR ((second = number (self, TAKER_WAITS)) != 0 && second != first, TIMING_PATIENCE_MS);
    assert_int_equal (number (self, UPGRADING), process);
}

static void let_go (const scene_t *self)
{
    free (postgres_sql (&self->cluster.stage.server, "DROP ROLE hold"));
}

/* A step may take longer than a lease: nobody ends it, of either version. */
static void test_a_long_step_is_waited_for (void **state)
{
    (void) state;
    static scene_t scene;
    static const struct {
        const char *third;
        bool shown; /* what its sessions do */
    } cases[] = {{NEXT, true}, {NULL, true}, {NEXT, false}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        begin_long_upgrade (&scene, cases[i].third, cases[i].shown);
        long long epoch = number (&scene, "SELECT epoch FROM taskmq.shard");
        let_go (&scene);
        WAIT_FOR (version_of (&scene) == pg_steps_version () + 1, TIMING_PATIENCE_MS);
        if (cases[i].third == NULL)
            assert_too_old (&scene.cluster.brokers[2]);
        assert_works (&scene);
        assert_int_equal (number (&scene, "SELECT epoch FROM taskmq.shard"), epoch);
        wait_owner (&scene, 1);
        end (&scene);
    }
}

/* Who is killed in the middle of it leaves the tables of before, and the next one begins anew. */
static void test_an_owner_is_killed_in_a_long_step (void **state)
{
    (void) state;
    static scene_t scene;
    begin_long_upgrade (&scene, NEXT, true);
    cluster_kill (&scene.cluster, 1);
    WAIT_FOR (number (&scene, "SELECT count (*) FROM pg_stat_activity WHERE application_name LIKE"
                              " 'taskmq schema %' AND pid <> pg_backend_pid ()") == 0 ||
                  number (&scene, "SELECT epoch FROM taskmq.shard") == 3,
              TIMING_PATIENCE_MS);
    assert_int_equal (version_of (&scene), pg_steps_version ());
    let_go (&scene);
    wait_owner (&scene, 2);
    WAIT_FOR (version_of (&scene) == pg_steps_version () + 1, TIMING_PATIENCE_MS);
    assert_works (&scene);
    end (&scene);
}

int main (int argc, char **argv)
{
    stage_arguments (argc, argv, &percent, &seed);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (test_a_pair_is_upgraded),
        cmocka_unit_test (test_an_older_standby_does_not_take_over),
        cmocka_unit_test (test_a_long_step_is_waited_for),
        cmocka_unit_test (test_an_owner_is_killed_in_a_long_step),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}
