/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* How long it takes from a kill -9 of the owner until another broker acknowledges a submit, with so
 * many live tasks, by clients as they are made when nothing is set, and where that time went. It
 * prints, and asserts that no task is missing. The whole run also asserts the goal for 100,000
 * live tasks: it wants a quiet machine, and programs as they are installed.
 *
 *     test_recovery [--percent N] [--seed N]      CI: 1 percent: few tasks, the shortest lease
 *     test_recovery --tasks N [--kills N] [--lease TIME]      these alone
 *
 * The first kill comes right behind the tasks, so that their rows are not written yet. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "cluster.h"
#include "support/cmocka_all.h"
#include "support/timing.h"

enum {
    PERCENT = 1,
    KILLS = 40, /* with 10,000 and 100,000 live tasks; a tenth with 1,000,000 */
    BATCH = 1000,
    SUBMIT_MS = 120000,
    SLACK = 1000, /* places for what is submitted meanwhile: a broker takes a million */
    GOAL_TASKS = 100000,
    GOAL_P50_MS = 5000, /* of those, at a lease of 4 s */
    GOAL_P99_MS = 7000
};

static unsigned percent = PERCENT;
static unsigned seed = 1;
static size_t only_tasks;
static unsigned only_kills = KILLS;
static const char *only_lease = "4s";

static tmq_client_t *client_of (const cluster_t *cluster)
{
    const char *endpoints[LOAD_ENDPOINTS_MAX];
    tmq_client_options_t options;
    tmq_client_t *client = NULL;
    cluster_endpoints (cluster, endpoints);
    tmq_client_options_init (&options);
    options.endpoints = endpoints;
    options.endpoints_count = cluster->count;
    assert_int_equal (tmq_client_new (&client, &options, NULL), TMQ_OK);
    return client;
}

/* Tasks that nobody takes. */
static void submit (tmq_client_t *client, size_t count)
{
    static tmq_submit_t tasks[BATCH];
    static tmq_receipt_t receipts[BATCH];
    static char payload[200];
    tmq_error_t error = {0};
    memset (payload, 'x', sizeof payload);
    for (size_t done = 0; done < count;) {
        size_t some = count - done < BATCH ? count - done : BATCH;
        for (size_t i = 0; i < some; i++) {
            tmq_submit_init (&tasks[i]);
            tasks[i].queue = "waiting";
            tasks[i].payload = payload;
            tasks[i].payload_bytes = sizeof payload;
        }
        if (tmq_submit_batch (receipts, client, tasks, some, SUBMIT_MS, &error) != TMQ_OK)
            fail_msg ("%s", error.text);
        for (size_t i = 0; i < some; i++)
            if (receipts[i].code != TMQ_OK)
                fail_msg ("%s: %s", tmq_code_name (receipts[i].code), receipts[i].text);
        done += some;
    }
}

/* Where the time went, as the log of the new owner has it. */

enum { PHASES = 3 };
static const char *const PHASE_IDS[PHASES] = {"id=DATABASE-ADOPTED ", "id=DATABASE-OWNED ",
                                              "id=READY "};
static const char *const PHASE_NAMES[PHASES] = {"silence", "journal", "live tasks"};

static int64_t wall_ms (void)
{
    struct timespec now;
    clock_gettime (CLOCK_REALTIME, &now);
    return (int64_t) now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* The time at the beginning of a line of the log; 0: there is none. */
static int64_t line_ms (const char *line)
{
    struct tm tm = {.tm_isdst = 0};
    int ms;
    if (sscanf (line, "%d-%d-%dT%d:%d:%d.%dZ", &tm.tm_year, &tm.tm_mon, &tm.tm_mday, &tm.tm_hour,
                &tm.tm_min, &tm.tm_sec, &ms) != 7)
        return 0;
    tm.tm_year -= 1900;
    tm.tm_mon -= 1;
    return (int64_t) timegm (&tm) * 1000 + ms;
}

static void read_phases (const daemon_t *broker, int64_t out[PHASES])
{
    char line[4096];
    FILE *file = fopen (broker->log, "r");
    memset (out, 0, PHASES * sizeof out[0]);
    while (file != NULL && fgets (line, sizeof line, file) != NULL)
        for (size_t i = 0; i < PHASES; i++)
            if (strstr (line, PHASE_IDS[i]) != NULL)
                out[i] = line_ms (line);
    if (file != NULL)
        fclose (file);
}

static void print_phases (const daemon_t *broker, int64_t killed_ms)
{
    int64_t at[PHASES];
    int64_t before = killed_ms;
    read_phases (broker, at);
    print_message ("  %lld ms:", (long long) (wall_ms () - killed_ms));
    for (size_t i = 0; i < PHASES; i++) {
        print_message (" %s %lld,", PHASE_NAMES[i], (long long) (at[i] - before));
        before = at[i];
    }
    print_message (" clients %lld\n", (long long) (wall_ms () - before));
}

static void measure (size_t tasks, unsigned kills, const char *lease)
{
    static cluster_times_t times;
    char name[128];
    cluster_t cluster;
    times.count = 0;
    cluster_init (&cluster, 2, false, lease, seed);
    cluster_start (&cluster);
    tmq_client_t *client = client_of (&cluster);
    submit (client, tasks);
    for (unsigned i = 0; i < kills; i++) {
        unsigned owner = cluster_owner (&cluster, &cluster.stage.server);
        timing_pause ((uint32_t) rand_r (&seed) % 1000); /* anywhere between two beats */
        int64_t killed_ms = timing_ms ();
        int64_t killed_wall_ms = wall_ms ();
        cluster_kill (&cluster, owner);
        submit (client, 1);
        cluster_time (&times, timing_ms () - killed_ms);
        print_phases (&cluster.brokers[1 - owner], killed_wall_ms);
        daemon_t *standby = &cluster.brokers[owner];
        unlink (standby->log);
        daemon_spawn (standby);
        WAIT_FOR (daemon_logged (standby, "DATABASE-STANDBY"), TIMING_PATIENCE_MS);
    }
    tmq_client_free (&client);
    unsigned owner = cluster_owner (&cluster, &cluster.stage.server);
    cluster_stop (&cluster, 1 - owner);
    daemon_stop (&cluster.brokers[owner]);
    assert_int_equal (postgres_number (&cluster.stage.server, "SELECT count (*) FROM taskmq.task"),
                      tasks + kills);
    cluster_destroy (&cluster);
    snprintf (name, sizeof name, "from the kill to a submit, %zu live tasks, lease %s", tasks,
              lease);
    cluster_print_times (&times, name);
    if (percent >= 100 && tasks == GOAL_TASKS && strcmp (lease, "4s") == 0)
        cluster_assert_times (&times, name, GOAL_P50_MS, GOAL_P99_MS);
}

static void test_times (void **state)
{
    (void) state;
    if (only_tasks > 0) {
        measure (only_tasks, only_kills, only_lease);
        return;
    }
    bool all = percent > PERCENT;
    measure (10000, stage_part (KILLS, percent), all ? "4s" : "2s");
    if (all) {
        measure (10000, stage_part (KILLS, percent), "2s");
        measure (1000000 - SLACK, stage_part (KILLS / 10, percent), "4s");
        measure (GOAL_TASKS, stage_part (KILLS, percent), "4s"); /* the last: it may fail */
    }
}

int main (int argc, char **argv)
{
    for (int i = 1; i + 1 < argc; i += 2)
        if (strcmp (argv[i], "--tasks") == 0)
            only_tasks = strtoul (argv[i + 1], NULL, 10);
        else if (strcmp (argv[i], "--kills") == 0)
            only_kills = (unsigned) strtoul (argv[i + 1], NULL, 10);
        else if (strcmp (argv[i], "--lease") == 0)
            only_lease = argv[i + 1];
    stage_arguments (argc, argv, &percent, &seed);
    const struct CMUnitTest tests[] = {cmocka_unit_test (test_times)};
    return cmocka_run_group_tests (tests, NULL, NULL);
}
