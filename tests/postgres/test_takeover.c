/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Two brokers, or three, on one database, and clients that know all of them, while the owner is
 * killed, stands still, is cut off from the database or from its clients, and is stopped. Nothing
 * acknowledged is lost or repeated, events have no gap, and nobody is told less than before,
 * whichever broker answers.
 *
 *     test_takeover [--percent N] [--seed N]      CI: 1 percent, seed 1 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cluster.h"
#include "support/cmocka_all.h"
#include "support/timing.h"

enum {
    PERCENT = 1,
    KILLS = 400,
    KILLS_OF_THREE = 200,
    KILLS_OF_BOTH = 100,
    PAUSES = 200,
    PARTITIONS = 200,
    CUTS = 300,
    STOPS = 200,
    LIFE_MS_MAX = 500, /* between two faults */
    PAUSE_MS_MAX = 20000,
    PAUSE_MS_MAX_CI = 5000,
    AWAY_MS_MAX = 1500,    /* without a database */
    COPY_MS = 500,         /* how long a write-back is waited for */
    HANDED_OVER_MS = 1000, /* a clean stop hands over in less */
    MODES = 4
};

#define LEASE "2s"

static unsigned percent = PERCENT;
static unsigned seed = 1;

static unsigned draw (unsigned below)
{
    return (unsigned) rand_r (&seed) % below;
}

static void begin (cluster_t *cluster, load_t *load, unsigned brokers, bool through)
{
    cluster_init (cluster, brokers, through, LEASE, seed);
    cluster_start (cluster);
    load_options_t options = cluster_load (cluster);
    load_start (load, &options);
    cluster_wait_accepted (cluster, load, 1);
}

static void end (cluster_t *cluster, load_t *load)
{
    cluster_finish (cluster, load);
    cluster_destroy (cluster);
}

static unsigned owner_of (const cluster_t *cluster)
{
    unsigned owner = cluster->count;
    WAIT_FOR ((owner = cluster_owner (cluster, &cluster->stage.server)) < cluster->count,
              TIMING_PATIENCE_MS);
    return owner;
}

/* Earlier than that behind a fault nobody can have taken over: what comes then was on its way. */
static int64_t earliest_of (int64_t fault_ms)
{
    return fault_ms + CLUSTER_LEASE_MS / 2;
}

/* How long it took from a fault that the owner does not survive to a submit. */
static int64_t wait_taken_over (cluster_t *cluster, load_t *load, int64_t fault_ms)
{
    return cluster_wait_accepted (cluster, load, earliest_of (fault_ms)) - fault_ms;
}

/* kill -9. */

/* Whoever was killed comes back when another one has taken over, or at once, and may be first. */
static void kill_owner (cluster_t *cluster, load_t *load, cluster_times_t *times)
{
    unsigned owner = owner_of (cluster);
    int64_t killed_ms = timing_ms ();
    cluster_kill (cluster, owner);
    if (draw (4) == 0) {
        daemon_spawn (&cluster->brokers[owner]);
        cluster_wait_accepted (cluster, load, timing_ms ());
        return;
    }
    cluster_time (times, wait_taken_over (cluster, load, killed_ms));
    assert_int_not_equal (owner_of (cluster), owner);
    daemon_spawn (&cluster->brokers[owner]);
}

static void test_kills_of_the_owner (void **state)
{
    (void) state;
    static load_t load;
    static cluster_times_t times;
    cluster_t cluster;
    unsigned kills = stage_part (KILLS, percent);
    begin (&cluster, &load, 2, false);
    for (unsigned i = 0; i < kills; i++) {
        timing_pause (draw (LIFE_MS_MAX));
        kill_owner (&cluster, &load, &times);
    }
    end (&cluster, &load);
    print_message ("%u kills: of the owner\n", kills);
    cluster_print_times (&times, "from the kill to a submit that is acknowledged");
}

/* One of the two that wait takes over, and sometimes both others are killed. */
static void test_kills_among_three (void **state)
{
    (void) state;
    static load_t load;
    static cluster_times_t times;
    cluster_t cluster;
    unsigned kills = stage_part (KILLS_OF_THREE, percent);
    begin (&cluster, &load, 3, false);
    for (unsigned i = 0; i < kills; i++) {
        unsigned other = (owner_of (&cluster) + 1 + draw (2)) % 3;
        bool both = draw (2) == 0;
        timing_pause (draw (LIFE_MS_MAX));
        if (both)
            cluster_kill (&cluster, other);
        kill_owner (&cluster, &load, &times);
        if (both)
            daemon_spawn (&cluster.brokers[other]);
    }
    end (&cluster, &load);
    print_message ("%u kills: of an owner with two standbys\n", kills);
    cluster_print_times (&times, "from the kill to a submit that is acknowledged");
}

static void kill_both (cluster_t *cluster, load_t *load)
{
    unsigned owner = owner_of (cluster);
    bool first = draw (2) == 0;
    postgres_end (&cluster->stage.server, SIGKILL);
    cluster_kill (cluster, owner);
    if (first)
        daemon_spawn (&cluster->brokers[owner]);
    timing_pause (draw (AWAY_MS_MAX));
    postgres_start (&cluster->stage.server);
    if (!first) {
        cluster_wait_accepted (cluster, load, timing_ms ());
        daemon_spawn (&cluster->brokers[owner]);
    }
    cluster_wait_accepted (cluster, load, timing_ms ());
}

static void test_kills_of_owner_and_database (void **state)
{
    (void) state;
    static load_t load;
    cluster_t cluster;
    unsigned kills = stage_part (KILLS_OF_BOTH, percent);
    begin (&cluster, &load, 2, false);
    for (unsigned i = 0; i < kills; i++) {
        timing_pause (draw (LIFE_MS_MAX));
        kill_both (&cluster, &load);
    }
    end (&cluster, &load);
    print_message ("%u kills: of owner and database\n", kills);
}

/* Stops in order. */

static void test_stops_back_and_forth (void **state)
{
    (void) state;
    static load_t load;
    static cluster_times_t times;
    cluster_t cluster;
    unsigned stops = stage_part (STOPS, percent);
    begin (&cluster, &load, 2, false);
    for (unsigned i = 0; i < stops; i++) {
        timing_pause (draw (LIFE_MS_MAX));
        unsigned owner = owner_of (&cluster);
        int64_t told_ms = timing_ms ();
        daemon_stop (&cluster.brokers[owner]);
        int64_t stopped_ms = timing_ms ();
        int64_t accepted_ms = cluster_wait_accepted (&cluster, &load, stopped_ms);
        cluster_time (&times, accepted_ms - told_ms);
        daemon_spawn (&cluster.brokers[owner]);
        WAIT_FOR (owner_of (&cluster) != owner, TIMING_PATIENCE_MS);
    }
    assert_int_equal (cluster.fenced, 0);
    end (&cluster, &load);
    print_message ("%u stops: clean, back and forth\n", stops);
    cluster_print_times (&times, "from the signal to a submit that is acknowledged");
    if (percent >= 100)
        cluster_assert_times (&times, "a clean stop", HANDED_OVER_MS, HANDED_OVER_MS);
}

/* Standing still. */

enum write_back { NONE, WORKS, WAITS };

/* What the server says of one that has changed something: does it work, or wait for the broker? */
static enum write_back write_back_of (const cluster_t *cluster)
{
    return (enum write_back) postgres_number (
        &cluster->stage.server,
        "SELECT coalesce (max (CASE wait_event WHEN 'ClientRead' THEN 2 ELSE 1 END), 0) FROM"
        " pg_stat_activity WHERE application_name LIKE 'taskmq write-back%' AND backend_xid IS NOT"
        " NULL");
}

/* Into the middle of a write-back, if there is one: true. The server waits for the rest of it. */
static bool stop_in_copy (const cluster_t *cluster, const daemon_t *broker)
{
    int64_t until_ms = timing_ms () + COPY_MS;
    for (;;) {
        while (write_back_of (cluster) == NONE && timing_ms () < until_ms)
            continue;
        daemon_signal (broker, SIGSTOP);
        enum write_back left;
        WAIT_FOR ((left = write_back_of (cluster)) != WORKS, TIMING_PATIENCE_MS);
        if (left == WAITS || timing_ms () >= until_ms)
            return left == WAITS;
        daemon_signal (broker, SIGCONT);
    }
}

static uint64_t epoch_of (const cluster_t *cluster)
{
    return (uint64_t) postgres_number (&cluster->stage.server, "SELECT epoch FROM taskmq.shard");
}

/* Either nobody took over and it is valid again, or it ends. False: it ended. fenced: of before. */
static bool is_valid_or_ends (cluster_t *cluster, unsigned number, uint64_t epoch, unsigned fenced)
{
    if (epoch_of (cluster) == epoch && cluster_owner (cluster, &cluster->stage.server) == number) {
        cluster_tend (cluster);
        return cluster->fenced == fenced;
    }
    WAIT_FOR ((cluster_tend (cluster), cluster->fenced > fenced), TIMING_PATIENCE_MS);
    return false;
}

typedef struct pauses {
    unsigned wanted_in_copy;
    unsigned in_copy;
    unsigned valid;
    cluster_times_t taken_over_ms;
    cluster_times_t valid_ms;
} pauses_t;

/* It stands still already, and goes on after so long. When a submit was acknowledged again. */
static int64_t continue_after (cluster_t *cluster, load_t *load, daemon_t *broker, uint32_t ms)
{
    int64_t began_ms = timing_ms ();
    int64_t until_ms = began_ms + ms;
    int64_t since_ms = earliest_of (began_ms) < until_ms ? earliest_of (began_ms) : until_ms;
    int64_t accepted_ms = 0;
    for (; timing_ms () < until_ms; timing_pause (5))
        if (accepted_ms < since_ms)
            accepted_ms = atomic_load (&load->accepted_ms);
    daemon_signal (broker, SIGCONT);
    if (accepted_ms < since_ms)
        accepted_ms = cluster_wait_accepted (cluster, load, since_ms);
    return accepted_ms - began_ms;
}

static void stand_still (cluster_t *cluster, load_t *load, pauses_t *self, uint32_t ms)
{
    unsigned owner = owner_of (cluster);
    daemon_t *broker = &cluster->brokers[owner];
    uint64_t epoch = epoch_of (cluster);
    unsigned fenced = cluster->fenced;
    if (draw (2) == 0) {
        self->wanted_in_copy++;
        self->in_copy += stop_in_copy (cluster, broker);
    } else {
        daemon_signal (broker, SIGSTOP);
    }
    int64_t took_ms = continue_after (cluster, load, broker, ms);
    bool valid = is_valid_or_ends (cluster, owner, epoch, fenced);
    self->valid += valid;
    cluster_time (valid ? &self->valid_ms : &self->taken_over_ms, took_ms);
    cluster_wait_accepted (cluster, load, timing_ms ());
}

static void test_an_owner_that_stands_still (void **state)
{
    (void) state;
    static load_t load;
    static pauses_t done;
    cluster_t cluster;
    unsigned pauses = stage_part (PAUSES, percent);
    begin (&cluster, &load, 2, false);
    for (unsigned i = 0; i < pauses; i++) {
        unsigned most_ms = percent > PERCENT ? PAUSE_MS_MAX : PAUSE_MS_MAX_CI;
        if (draw (2) == 0)
            most_ms = 2 * CLUSTER_LEASE_MS; /* about as long as it is valid */
        timing_pause (draw (LIFE_MS_MAX));
        stand_still (&cluster, &load, &done, 100 + draw (most_ms));
    }
    unsigned fenced = cluster.fenced;
    end (&cluster, &load);
    print_message ("%u pauses: %u times fenced, %u times still valid; %u of %u in a write-back\n",
                   pauses, fenced, done.valid, done.in_copy, done.wanted_in_copy);
    cluster_print_times (&done.taken_over_ms, "from the pause to a submit at another broker");
    cluster_print_times (&done.valid_ms, "from the pause to a submit at the same broker");
    assert_true (fenced + done.valid >= pauses);
    if (percent >= 100)
        assert_true (done.in_copy > 0);
}

/* Partitions. */

/* Between the owner and the database, for longer than a lease: another one takes over, and when the
 * network is whole again, the former owner ends. */
static void cut_off (cluster_t *cluster, load_t *load, proxy_mode_t mode, bool cut,
                     cluster_times_t *times)
{
    unsigned owner = owner_of (cluster);
    unsigned fenced = cluster->fenced;
    proxy_t *proxy = cluster->databases[owner];
    int64_t cut_ms = timing_ms ();
    proxy_set (proxy, mode);
    if (cut)
        proxy_cut (proxy, (proxy_cut_t) draw (PROXY_CUTS));
    cluster_time (times, wait_taken_over (cluster, load, cut_ms));
    WAIT_FOR (owner_of (cluster) != owner, TIMING_PATIENCE_MS);
    timing_pause (draw (2 * CLUSTER_LEASE_MS));
    proxy_set (proxy, PROXY_CLEAR);
    WAIT_FOR ((cluster_tend (cluster), cluster->fenced > fenced), TIMING_PATIENCE_MS);
    cluster_wait_accepted (cluster, load, timing_ms ());
}

static void test_an_owner_that_is_cut_off (void **state)
{
    (void) state;
    static load_t load;
    static cluster_times_t times[MODES];
    cluster_t cluster;
    static const struct {
        proxy_mode_t mode;
        const char *name;
    } modes[MODES] = {
        {PROXY_BLACKHOLE_UP, "from the cut, nothing reaches the database, to a submit"},
        {PROXY_BLACKHOLE_DOWN, "from the cut, nothing comes from the database, to a submit"},
        {PROXY_BLACKHOLE, "from the cut, nothing passes, to a submit"},
        {PROXY_REFUSE, "from the cut, connections are refused, to a submit"}};
    unsigned partitions = stage_part (PARTITIONS, percent);
    begin (&cluster, &load, 2, true);
    for (unsigned i = 0; i < partitions; i++) {
        unsigned kind = draw (MODES);
        timing_pause (draw (LIFE_MS_MAX));
        cut_off (&cluster, &load, modes[kind].mode,
                 modes[kind].mode == PROXY_REFUSE || draw (2) == 0, &times[kind]);
    }
    end (&cluster, &load);
    print_message ("%u partitions: of the owner and the database\n", partitions);
    for (unsigned i = 0; i < MODES; i++)
        cluster_print_times (&times[i], modes[i].name);
}

/* Whatever happens to any connection: of brokers to the database, of clients to brokers. Whether
 * one takes over is as it happens. */
static void test_a_bad_network (void **state)
{
    (void) state;
    static load_t load;
    cluster_t cluster;
    unsigned cuts = stage_part (CUTS, percent);
    begin (&cluster, &load, 2, true);
    for (unsigned i = 0; i < cuts; i++) {
        proxy_t *all[] = {cluster.databases[0], cluster.databases[1], cluster.doors[0],
                          cluster.doors[1]};
        proxy_t *proxy = all[draw (4)];
        if (draw (3) != 0)
            proxy_cut (proxy, (proxy_cut_t) draw (PROXY_CUTS));
        proxy_set (proxy, (proxy_mode_t) draw (PROXY_MODES));
        timing_pause (draw (2 * CLUSTER_LEASE_MS));
        cluster_tend (&cluster);
        if (i % 4 != 3)
            continue;
        for (size_t k = 0; k < 4; k++)
            proxy_set (all[k], PROXY_CLEAR);
        cluster_wait_accepted (&cluster, &load, timing_ms ());
    }
    for (unsigned k = 0; k < cluster.count; k++) {
        proxy_set (cluster.databases[k], PROXY_CLEAR);
        proxy_set (cluster.doors[k], PROXY_CLEAR);
    }
    end (&cluster, &load);
    print_message ("%u faults: of the network, on all sides\n", cuts);
}

int main (int argc, char **argv)
{
    stage_arguments (argc, argv, &percent, &seed);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (test_kills_of_the_owner),
        cmocka_unit_test (test_kills_among_three),
        cmocka_unit_test (test_kills_of_owner_and_database),
        cmocka_unit_test (test_stops_back_and_forth),
        cmocka_unit_test (test_an_owner_that_stands_still),
        cmocka_unit_test (test_an_owner_that_is_cut_off),
        cmocka_unit_test (test_a_bad_network),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}
